// SPDX-License-Identifier: Apache-2.0
// The flags of what a CUDA device makes, which show in no result: on the CUDA driver in software,
// whose copies take 300 ms, does one of everything and looks at them.
#include <stdlib.h>
#include <sys/mman.h>

#include "drivers/cuda/device.h"

enum { SIZE = 1 << 16, SLEEPERS = 64 };

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
static _Atomic(const char *) wrong;                   // what was asked for with other flags
static _Atomic uint32_t streams, events, host, pages; // made or locked
static _Atomic(CUevent) sleepers[SLEEPERS];           // events that one may sleep on
static _Atomic uint32_t sleeper_count, slept;

static void check(bool good, const char *what, _Atomic uint32_t *count)
{
    if (!good) atomic_store(&wrong, what);
    atomic_fetch_add(count, 1);
}

// The caller's default stream waits for no stream of ours, nor any of ours for that one.
static CUresult stream_create(CUstream *stream, unsigned int flags, int priority)
{
    check(flags == CU_STREAM_NON_BLOCKING, "a stream", &streams);
    return real.cuStreamCreateWithPriority(stream, flags, priority);
}

// No thread looks at their time, which would cost some.
static CUresult event_create(CUevent *event, unsigned int flags)
{
    check(flags & CU_EVENT_DISABLE_TIMING, "an event", &events);
    CUresult result = real.cuEventCreate(event, flags);
    if (!result && flags & CU_EVENT_BLOCKING_SYNC)
        atomic_store(&sleepers[atomic_fetch_add(&sleeper_count, 1) % SLEEPERS], *event);
    return result;
}

// Who waits for an event of another kind polls.
static CUresult event_sync(CUevent event)
{
    bool may_sleep = false;
    for (int i = 0; i < SLEEPERS; i++) may_sleep |= atomic_load(&sleepers[i]) == event;
    check(may_sleep, "an event to sleep on", &slept);
    return real.cuEventSynchronize(event);
}

// All contexts know it, and the device reaches it.
static CUresult host_alloc(void **data, size_t size, unsigned int flags)
{
    check(flags == (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP), "host memory", &host);
    return real.cuMemHostAlloc(data, size, flags);
}

static CUresult host_register(void *data, size_t size, unsigned int flags)
{
    check(flags == (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP), "pages", &pages);
    return real.cuMemHostRegister(data, size, flags);
}

// An event that waits outside of all captures is an ordinary one.
static CUresult stream_wait(CUstream stream, CUevent event, unsigned int flags)
{
    static _Atomic uint32_t waits;
    check(!flags, "a wait", &waits);
    return real.cuStreamWaitEvent(stream, event, flags);
}

static int setup(void **state)
{
    (void)state;
    setenv("KEEL_SIM_CUDA", "slow=300000,leaks=2", 1);
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    symbols->cuStreamCreateWithPriority = stream_create;
    symbols->cuStreamWaitEvent = stream_wait;
    symbols->cuEventCreate = event_create;
    symbols->cuEventSynchronize = event_sync;
    symbols->cuMemHostAlloc = host_alloc;
    symbols->cuMemHostRegister = host_register;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    *symbols = real;
    return 0;
}

static void test_flags(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_HOST, .size = SIZE};
    external.handle.host =
        mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(external.handle.host, MAP_FAILED);
    keel_queue_t *queue = NULL;
    keel_buffer_t *from = NULL, *to = buffer_create(device, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    keel_buffer_t *seen = buffer_create(device, SIZE, KEEL_MEMORY_HOST_VISIBLE);
    keel_point_t copied, filled;
    assert_null(keel_buffer_import(device, &external, NULL, &from));
    assert_null(keel_queue_create(device, NULL, &queue));
    assert_null(keel_queue_copy(queue, KEEL_NO_WAITS, keel_whole(from), keel_whole(to), &copied));
    assert_null(keel_queue_fill(keel_device_queue(device, 0), KEEL_AFTER(copied), keel_whole(seen),
                                1, 4, &filled));
    ok(filled);
    keel_queue_release(queue);
    keel_buffer_release(from), keel_buffer_release(to), keel_buffer_release(seen);
    keel_device_release(device);
    munmap(external.handle.host, SIZE);
    if (atomic_load(&wrong)) fail_msg("%s has other flags", atomic_load(&wrong));
    assert_true(atomic_load(&streams) && atomic_load(&events) && atomic_load(&host));
    assert_true(atomic_load(&pages) && atomic_load(&slept));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_flags)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
