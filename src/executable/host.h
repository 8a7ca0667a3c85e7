// SPDX-License-Identifier: Apache-2.0
// Reads shared objects for a host's processor: what cpu:// loads.
#ifndef KEEL_SRC_EXECUTABLE_HOST_H_
#define KEEL_SRC_EXECUTABLE_HOST_H_

#include "executable/image.h"

// That these are a whole shared object for this machine, so that the system's loader can be trusted
// with them: KEEL_CORRUPT if they are damaged or no ELF file, KEEL_UNSUPPORTED if it is for another
// machine.
keel_status_t host_check(const void *data, size_t size) KEEL_MUST_USE;

// The entry points that the table keel_host_library (keel/host_kernel.h) lists, for any of the
// machines that are known, without loading anything: pointers of the table are found by its
// relocations. An object without that table has no entry points.
keel_status_t host_read(const void *data, size_t size, image_info_t *info) KEEL_MUST_USE;

#endif
