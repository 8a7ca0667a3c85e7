// SPDX-License-Identifier: Apache-2.0
// What tests of CUDA devices on the CUDA driver in software have in common.
#ifndef TESTS_DRIVERS_CUDA_DEVICE_H_
#define TESTS_DRIVERS_CUDA_DEVICE_H_

#include <keel/keel.h>

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "drivers/cuda/symbols.h"
#include "kit/helper.h"
#include "unit.h"

enum { MS = 1000000, SECOND_NS = 1000 * MS };
static const uint64_t PATIENCE_NS = 20ull * SECOND_NS; // on a machine that has much else to do

// Bytes that CUDA fills itself; fewer are a launch.
enum { FILLED = 1 << 17 };

// Opens cuda://WHICH of the library, with options as "&commands=stream".
static inline keel_status_t device_try_open(const char *which, const char *options,
                                            keel_device_t **device)
{
    char uri[512];
    snprintf(uri, sizeof uri, "cuda://%s?lib=%s%s", which, CUDA_LIBRARY, options);
    return keel_device_open(uri, NULL, device);
}

static inline keel_device_t *device_open(const char *options)
{
    keel_device_t *device = NULL;
    assert_null(device_try_open("0", options, &device));
    return device;
}

static inline keel_buffer_t *buffer_create(keel_device_t *device, uint64_t size, uint32_t memory)
{
    keel_buffer_options_t options = {.size = size, .memory = memory};
    keel_buffer_t *buffer = NULL;
    assert_null(keel_buffer_create(device, &options, &buffer));
    return buffer;
}

// Waits until the point is reached.
static inline void ok(keel_point_t point)
{
    keel_status_t status = keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER);
    if (status) fail_msg("%s", keel_status_message(status));
}

// Waits until it holds, PATIENCE_NS at most, by when it must.
#define await(condition)                                                                           \
    do {                                                                                           \
        uint64_t end_ = keel_now_ns() + PATIENCE_NS;                                               \
        while (!(condition) && keel_now_ns() < end_)                                               \
            nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);                                    \
        assert_true(condition);                                                                    \
    } while (0)

// Waits as long as it is set, PATIENCE_NS at most.
static inline void held_wait(const _Atomic bool *held)
{
    uint64_t end = keel_now_ns() + PATIENCE_NS;
    while (atomic_load(held) && keel_now_ns() < end)
        nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
}

// The same, as work of a stream.
static inline void held_call(void *held)
{
    held_wait(held);
}

// A copy that takes as long as that, for cuMemcpyAsync of a table whose own is `real`.
static inline CUresult held_copy(const cuda_symbols_t *real, _Atomic bool *held, CUdeviceptr target,
                                 CUdeviceptr source, size_t size, CUstream stream)
{
    CUresult result = real->cuLaunchHostFunc(stream, held_call, held);
    return result ? result : real->cuMemcpyAsync(target, source, size, stream);
}

// The table by which the driver calls the library, to put other functions there, and a copy of what
// is in it; NULL if the library cannot be opened.
static inline cuda_symbols_t *symbols_open(cuda_symbols_t *real)
{
    const cuda_symbols_t *found = NULL;
    keel_status_t status = cuda_symbols_open(CUDA_LIBRARY, &found);
    keel_status_release(status);
    if (status) return NULL;
    *real = *found;
    return (cuda_symbols_t *)(uintptr_t)found;
}

// Whether the calling thread is one of the library's of that name (docs/threads.md).
static inline bool thread_is(const char *name)
{
    const helper_t *here = helper_here();
    return here && !strcmp(here->name, name);
}

// Threads of that name in this process; the portable build names none.
static inline int threads_named(const char *wanted)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    assert_non_null(tasks);
    for (const struct dirent *task; (task = readdir(tasks));) {
        char path[sizeof task->d_name + 32], name[16] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file)) name[strcspn(name, "\n")] = '\0';
        count += !strcmp(name, wanted);
        if (file) fclose(file);
    }
    closedir(tasks);
    return count;
}

static cuda_symbols_t stream_symbols;           // the table, before stream_of changed it
static _Thread_local CUstream stream_filled_on; // by this thread

static inline CUresult stream_fill(CUdeviceptr target, unsigned int value, size_t count,
                                   CUstream stream)
{
    stream_filled_on = stream;
    return stream_symbols.cuMemsetD32Async(target, value, count, stream);
}

// The stream of a queue, by a fill of the buffer, of FILLED bytes. Returns when this thread has
// issued it: then no other thread issues to the queue any more.
static inline CUstream stream_of(keel_queue_t *queue, keel_buffer_t *buffer)
{
    cuda_symbols_t *table = symbols_open(&stream_symbols);
    uint64_t end = keel_now_ns() + PATIENCE_NS;
    table->cuMemsetD32Async = stream_fill;
    for (stream_filled_on = NULL; !stream_filled_on && keel_now_ns() < end;) {
        keel_point_t done;
        assert_null(keel_queue_fill(queue, KEEL_NO_WAITS, keel_whole(buffer), 7, 4, &done));
        ok(done);
    }
    table->cuMemsetD32Async = stream_symbols.cuMemsetD32Async;
    assert_non_null(stream_filled_on);
    return stream_filled_on;
}

#endif
