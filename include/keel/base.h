// SPDX-License-Identifier: Apache-2.0
// What every other header needs: the version, attributes, time, the allocator and the counters of
// live objects. <keel/keel.h> states the rules that all functions follow.
#ifndef KEEL_BASE_H_
#define KEEL_BASE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The version of these headers. keel_version() tells the version of the library that is linked.
#define KEEL_VERSION_MAJOR 0
#define KEEL_VERSION_MINOR 1
#define KEEL_VERSION_PATCH 0

// C linkage around declarations, for C++.
// KEEL_ZERO is the initialiser that sets every field of a struct to zero in both languages:
//     keel_buffer_options_t options = KEEL_ZERO;
#ifdef __cplusplus
#define KEEL_EXTERN_C_BEGIN extern "C" {
#define KEEL_EXTERN_C_END   }
#define KEEL_ZERO                                                                                  \
    {                                                                                              \
    }
#else
#define KEEL_EXTERN_C_BEGIN
#define KEEL_EXTERN_C_END
#define KEEL_ZERO {0}
#endif

// The number of elements of an array.
#define KEEL_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

// Attributes of functions, for gcc and clang.
#define KEEL_API          __attribute__((visibility("default"))) // the library exports it
#define KEEL_MUST_USE     __attribute__((warn_unused_result))    // the caller must use the result
#define KEEL_PRINTF(f, a) __attribute__((format(printf, f, a)))  // the compiler checks the format
#define KEEL_COLD         __attribute__((cold)) // rarely runs: placed away from the hot code
#define KEEL_HOT          __attribute__((hot))  // runs often: placed beside other hot code

// Times are in nanoseconds. A timeout of KEEL_FOREVER never expires. A timeout of 0 polls: the call
// looks once and does not sleep.
#define KEEL_FOREVER UINT64_MAX

// A length that means "everything from the offset to the end". The functions and operations that
// take it say so.
#define KEEL_WHOLE UINT64_MAX

KEEL_EXTERN_C_BEGIN

// Returns the version of the library in use, as "0.1.0". The string is static. It may differ from
// the macros above when the program was compiled with other headers than the library.
//
// Any thread. Never fails.
KEEL_API const char *keel_version(void);

// Returns the host's monotonic clock in nanoseconds. Deadlines (keel_wait_options_t) and clock
// pairs (keel_device_clock) are times on this clock. Its zero has no meaning.
//
// Any thread. Never fails.
KEEL_API uint64_t keel_now_ns(void);

// The functions by which the library gets host memory for its own objects. The memory of buffers
// does not come from here.
//
// Any thread may call both functions, the threads of the library included. The caller may hold a
// lock of the library, so neither function may call Keel.
typedef struct keel_allocator_t {
    // Behaves like realloc. `old` is NULL to allocate. `size` is never 0. The result is aligned for
    // any type. NULL means that there is no memory: `old` stays valid, and the call into Keel that
    // needed the memory fails with KEEL_OUT_OF_MEMORY and changes nothing.
    void *(*resize)(void *user, void *old, size_t size);
    // Behaves like free. `memory` is never NULL.
    void (*free)(void *user, void *memory);
    void *user; // first argument of both; borrowed until the allocator is replaced
} keel_allocator_t;

// Replaces the library's allocator. NULL restores realloc and free of the C library. The struct is
// copied.
//
// Call it before any other function of Keel, or after everything was released: memory from one
// allocator is never passed to another. Not thread safe. Never fails.
KEEL_API void keel_allocator_set(const keel_allocator_t *allocator);

// The number of objects that are alive in this process, by type.
typedef struct keel_live_t {
    int64_t devices, queues, semaphores, buffers, pools, executables, recordings, files;
    int64_t completions; // completion queues, and waits of keel_on that have not ended
    int64_t submissions; // in flight
    int64_t statuses;    // error statuses with at least one reference
} keel_live_t;

// Counts the live objects of the process into `out`. All counts are zero once the application has
// released everything and every device is closed. Tests use this to find leaks.
//
// A thread of a device may hold a reference to a queue for a moment. Such a queue is counted until
// that thread releases it, at the latest until the device is closed.
//
// Any thread. Takes a lock for the sum. Never fails.
KEEL_API void keel_live_objects(keel_live_t *out);

KEEL_EXTERN_C_END

#endif
