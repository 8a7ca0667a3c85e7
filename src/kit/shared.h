// SPDX-License-Identifier: Apache-2.0
// Semaphores of several processes: value, failure and cause lie in a page that all of them have
// open (shared_page.h). For each process this is a semaphore that a device keeps (remote.h), with
// the page in the place of the device; queues of every device wait for it by way of the host.
//
//     this process                   the page                     another process
//     signal, fail ----------------> value, cause --- bell -----> its watcher (watcher.h) looks
//     its watcher looks <--- bell -- value, cause <-------------- signal, fail
//
// The page is what the other processes say, and is taken for no more than that: each look reads the
// value once and checks it, texts have a bound, and every loop has one. A value that falls fails
// the semaphore.
//
// A process that has it open while something here waits can still signal. When the last one is
// gone, and no descriptor is left by which another could come, the watcher fails what waits.
#ifndef KEEL_SRC_KIT_SHARED_H_
#define KEEL_SRC_KIT_SHARED_H_

#include "kit/semaphore.h"

enum { SHARED_TEXT = 512 }; // bytes of a cause that travel, the last one zero

// New ones, without object, device and name, which the front door fills in.
keel_status_t shared_create(uint64_t initial, keel_semaphore_t **semaphore) KEEL_MUST_USE;
// The descriptor stays the caller's. KEEL_INVALID_ARGUMENT if it is no such semaphore, or not at
// `initial` yet.
keel_status_t shared_import(int fd, uint64_t initial, keel_semaphore_t **semaphore) KEEL_MUST_USE;

#endif
