// SPDX-License-Identifier: Apache-2.0
// Memory behind a file descriptor, with no name that others could guess.
#ifndef KEEL_SRC_BASE_SHARED_MEMORY_H_
#define KEEL_SRC_BASE_SHARED_MEMORY_H_

#include <keel/status.h>

// A new descriptor, closed on exec.
keel_status_t shared_memory_create(uint64_t size, int *fd) KEEL_MUST_USE;
keel_status_t shared_memory_duplicate(int fd, int *copy) KEEL_MUST_USE;
// That a part of a file of the application's (keel_external_buffer_t) lies within it.
keel_status_t shared_memory_check(int fd, uint64_t offset, uint64_t size) KEEL_MUST_USE;

#endif
