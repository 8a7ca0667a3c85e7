// SPDX-License-Identifier: Apache-2.0
// What a driver uses of the library for itself: host memory, one more status, the log.
//
// Any thread. Nothing here blocks.
#ifndef KEEL_DRIVER_BASE_H_
#define KEEL_DRIVER_BASE_H_

#include <keel/log.h>
#include <keel/status.h>

KEEL_EXTERN_C_BEGIN

// Host memory of the library's allocator (keel_allocator_set), zeroed, aligned for any type; NULL
// if there is none. The structs that a driver hands to the library (devices, queues, executables)
// come from here, and everything else should: then tests can make each allocation fail.
KEEL_API void *keel_mem_zalloc(size_t size);

// Makes `old`, which may be NULL, `size` bytes large and returns where it is then; what is new is
// not zeroed. NULL if there is no memory, and `old` is untouched.
KEEL_API void *keel_mem_resize(void *old, size_t size);

// Takes back what the two above gave; NULL is fine.
KEEL_API void keel_mem_free(void *memory);

// Zeroed memory at a multiple of `align`, a power of two; NULL if there is none. Only
// keel_mem_free_aligned takes it back.
KEEL_API void *keel_mem_zalloc_aligned(size_t size, size_t align);

// Takes back memory of keel_mem_zalloc_aligned. NULL is fine.
KEEL_API void keel_mem_free_aligned(void *memory);

// The status for NULL from the functions above: KEEL_OUT_OF_MEMORY. Needs no memory itself. Other
// statuses are made by KEEL_ERROR.
KEEL_API keel_status_t keel_status_no_memory(void) KEEL_COLD KEEL_MUST_USE;

// Says something to the application by its log function (keel_log_set), which may take its time:
// hold no lock. For what no status can carry, as why `list` finds no devices.
KEEL_API void keel_log_say(keel_log_level_t level, const char *format, ...) KEEL_PRINTF(2, 3);

KEEL_EXTERN_C_END

#endif
