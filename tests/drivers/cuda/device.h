// SPDX-License-Identifier: Apache-2.0
// What tests of CUDA devices on the CUDA driver in software have in common.
#ifndef TESTS_DRIVERS_CUDA_DEVICE_H_
#define TESTS_DRIVERS_CUDA_DEVICE_H_

#include <keel/keel.h>

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "drivers/cuda/symbols.h"
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

#endif
