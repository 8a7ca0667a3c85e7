// SPDX-License-Identifier: Apache-2.0
// What every other header needs: versions, attributes, time, the allocator and the leak counters.
#ifndef KEEL_BASE_H_
#define KEEL_BASE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEEL_VERSION_MAJOR 0
#define KEEL_VERSION_MINOR 1
#define KEEL_VERSION_PATCH 0

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

#define KEEL_API          __attribute__((visibility("default")))
#define KEEL_MUST_USE     __attribute__((warn_unused_result))
#define KEEL_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define KEEL_COLD         __attribute__((cold)) // code that leads to it is kept apart
#define KEEL_HOT          __attribute__((hot))  // kept together with others on the same way

// Times are nanoseconds. A timeout of KEEL_FOREVER never expires; 0 asks and does not wait.
#define KEEL_FOREVER UINT64_MAX
// As a length: all that follows the offset.
#define KEEL_WHOLE UINT64_MAX

KEEL_EXTERN_C_BEGIN

// The version of the library in use as "0.1.0"; the macros above are those of the headers. Any
// thread.
KEEL_API const char *keel_version(void);

// The host's monotonic clock, on which deadlines are given and clock pairs reported. Any thread.
KEEL_API uint64_t keel_now_ns(void);

// Where the library gets its own host memory (not the memory of buffers). `resize` is given NULL to
// allocate; each result is aligned for any type. A function that returns NULL makes the call in
// progress fail with KEEL_OUT_OF_MEMORY and leaves everything as it was. Both are called from any
// thread, also under locks of the library: they must not call Keel.
typedef struct keel_allocator_t {
    void *(*resize)(void *user, void *old, size_t size);
    void (*free)(void *user, void *memory);
    void *user;
} keel_allocator_t;

// Replaces the allocator; NULL restores malloc. Call it before anything else: what one allocator
// gave is never given to another, so objects made before must be gone. Not thread safe.
KEEL_API void keel_set_allocator(const keel_allocator_t *allocator);

// The objects alive in this process, by type: all zero once everything was released. A queue that
// was released while a thread of its device looked at it counts a moment longer, not beyond the
// device. Any thread.
typedef struct keel_live_t {
    int64_t devices, queues, semaphores, buffers, pools, executables, recordings, files, watches;
    int64_t submissions; // in flight
    int64_t statuses;
} keel_live_t;
KEEL_API void keel_live_objects(keel_live_t *out);

KEEL_EXTERN_C_END

#endif
