// SPDX-License-Identifier: Apache-2.0
// A CUDA device whose memory is used up, on the CUDA driver in software: 64 MiB, and copies that
// take 50 ms.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/cuda/device.h"

enum { LARGE = 40 << 20 };

typedef struct memory_t {
    keel_device_t *device;
    keel_queue_t *queues[2];
    keel_pool_t *pools[2];
} memory_t;

static cuda_symbols_t real, *symbols;
static _Atomic bool trimming, held;

// Takes as long as it is held.
static CUresult pool_trim_slowly(CUmemoryPool pool, size_t keep)
{
    if (atomic_load(&held)) atomic_store(&trimming, true);
    held_wait(&held);
    return real.cuMemPoolTrimTo(pool, keep);
}

// The function is replaced while no thread of the device can call it.
static int setup(void **state)
{
    static memory_t memory;
    setenv("KEEL_SIM_CUDA", "memory=64M,slow=50000,leaks=2", 1);
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    symbols->cuMemPoolTrimTo = pool_trim_slowly;
    memory.device = device_open("");
    memory.queues[0] = keel_device_queue(memory.device, 0);
    if (keel_queue_create(memory.device, NULL, &memory.queues[1])) return 1;
    keel_pool_options_t options = {.limit = 1 << 30};
    for (int i = 0; i < 2; i++)
        if (keel_pool_create(memory.device, &options, &memory.pools[i])) return 1;
    *state = &memory;
    return 0;
}

static int teardown(void **state)
{
    memory_t *m = *state;
    for (int i = 0; i < 2; i++) keel_pool_release(m->pools[i]);
    keel_queue_release(m->queues[1]);
    keel_device_release(m->device);
    *symbols = real;
    return 0;
}

static keel_buffer_t *reserve(keel_pool_t *pool, uint64_t size)
{
    keel_buffer_options_t options = {.size = size};
    keel_buffer_t *buffer = NULL;
    assert_null(keel_buffer_reserve(pool, &options, &buffer));
    return buffer;
}

static void exhausted(keel_point_t point)
{
    keel_status_t status = keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER);
    assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
    keel_status_release(status);
}

static keel_point_t run(keel_queue_t *queue, keel_points_t waits, keel_op_t op)
{
    keel_point_t done;
    assert_null(keel_queue_run(queue, waits, op, &done));
    return done;
}

static keel_buffer_t *take(memory_t *m, int pool)
{
    keel_buffer_t *buffer = reserve(m->pools[pool], LARGE);
    ok(run(m->queues[0], KEEL_NO_WAITS, keel_op_alloca(buffer)));
    return buffer;
}

static void give(memory_t *m, keel_buffer_t *buffer)
{
    ok(run(m->queues[0], KEEL_NO_WAITS, keel_op_dealloca(buffer)));
    keel_buffer_release(buffer);
}

// What one pool keeps for later is there for another, and for buffers.
static void test_pools_let_go(void **state)
{
    memory_t *m = *state;
    keel_buffer_options_t options = {.size = LARGE};
    keel_buffer_t *buffer = NULL;
    give(m, take(m, 0));
    give(m, take(m, 1));
    give(m, take(m, 0));
    assert_null(keel_buffer_create(m->device, &options, &buffer));
    keel_buffer_release(buffer);
}

static void test_nothing_is_under_way(void **state)
{
    memory_t *m = *state;
    keel_buffer_t *x = take(m, 0), *y = reserve(m->pools[1], LARGE);
    keel_point_t failed = run(m->queues[1], KEEL_NO_WAITS, keel_op_alloca(y));
    exhausted(failed);
    keel_status_t status = keel_wait(KEEL_POINTS(failed), KEEL_ALL, KEEL_FOREVER);
    assert_non_null(strstr(keel_status_message(status), "41943040 bytes"));
    keel_status_release(status);
    give(m, x);
    ok(run(m->queues[1], KEEL_NO_WAITS, keel_op_alloca(y)));
    give(m, y);
}

// A dealloca that is on its stream, behind a copy, of the same pool or of another.
static void test_waits_for_issued(void **state)
{
    memory_t *m = *state;
    for (int other = 0; other < 2; other++) {
        keel_buffer_t *x = take(m, 0), *y = reserve(m->pools[other], LARGE);
        keel_op_t ops[] = {keel_op_copy(keel_span(x, 0, 1 << 20), keel_span(x, 1 << 20, 1 << 20)),
                           keel_op_barrier(), keel_op_dealloca(x)};
        keel_point_t done;
        assert_null(keel_queue_submit(m->queues[0], KEEL_NO_WAITS, ops, 3, KEEL_NO_SIGNALS, &done));
        ok(run(m->queues[1], KEEL_NO_WAITS, keel_op_alloca(y)));
        ok(done);
        give(m, y);
        keel_buffer_release(x);
    }
}

// A dealloca of the pool that waits for a point itself.
static void test_waits_for_submitted(void **state)
{
    memory_t *m = *state;
    keel_semaphore_t *gate = NULL;
    assert_null(keel_semaphore_create(m->device, NULL, &gate));
    keel_buffer_t *x = take(m, 0), *y = reserve(m->pools[0], LARGE);
    keel_point_t gone = run(m->queues[0], KEEL_AFTER(keel_point(gate, 1)), keel_op_dealloca(x));
    keel_point_t got = run(m->queues[1], KEEL_NO_WAITS, keel_op_alloca(y));
    keel_status_t status = keel_wait(KEEL_POINTS(got), KEEL_ALL, 20000000);
    assert_int_equal(keel_status_code(status), KEEL_DEADLINE_EXCEEDED);
    keel_status_release(status);
    assert_null(keel_semaphore_signal(gate, 1));
    ok(gone);
    ok(got);
    give(m, y);
    keel_buffer_release(x);
    keel_semaphore_release(gate);
}

// The dealloca never runs: then there is nothing to wait for.
static void test_submitted_fails(void **state)
{
    memory_t *m = *state;
    keel_semaphore_t *gate = NULL;
    assert_null(keel_semaphore_create(m->device, NULL, &gate));
    keel_buffer_t *x = take(m, 0), *y = reserve(m->pools[0], LARGE);
    run(m->queues[0], KEEL_AFTER(keel_point(gate, 1)), keel_op_dealloca(x));
    keel_point_t got = run(m->queues[1], KEEL_NO_WAITS, keel_op_alloca(y));
    assert_null(keel_semaphore_fail(gate, KEEL_ERROR(KEEL_ABORTED, "never mind")));
    exhausted(got);
    give(m, x);
    keel_buffer_release(y);
    keel_semaphore_release(gate);
}

// The submission's own dealloca, of another pool; and two such at a time, of which each could wait
// for the other.
static void test_own_dealloca(void **state)
{
    memory_t *m = *state;
    enum { HALF = 20 << 20 };
    keel_point_t done[2];
    keel_buffer_t *x[2], *y[2];
    for (int i = 0; i < 2; i++) {
        x[i] = reserve(m->pools[i], HALF);
        y[i] = reserve(m->pools[1 - i], 30 << 20);
        ok(run(m->queues[0], KEEL_NO_WAITS, keel_op_alloca(x[i])));
    }
    for (int i = 0; i < 2; i++) {
        keel_op_t ops[] = {
            keel_op_copy(keel_span(x[i], 0, 1 << 20), keel_span(x[i], 1 << 20, 1 << 20)),
            keel_op_barrier(), keel_op_dealloca(x[i]), keel_op_barrier(), keel_op_alloca(y[i])};
        assert_null(
            keel_queue_submit(m->queues[i], KEEL_NO_WAITS, ops, 5, KEEL_NO_SIGNALS, &done[i]));
    }
    for (int i = 0; i < 2; i++) ok(done[i]);
    for (int i = 0; i < 2; i++) {
        give(m, y[i]);
        keel_buffer_release(x[i]);
    }
}

// One submission has given back what the other waits for, and waits for a limit that the other
// will lift.
static void test_limit_and_memory(void **state)
{
    memory_t *m = *state;
    enum { HALF = 30 << 20 };
    keel_pool_options_t options = {.limit = HALF};
    keel_pool_t *small = NULL;
    assert_null(keel_pool_create(m->device, &options, &small));
    keel_buffer_t *x = reserve(m->pools[0], HALF), *y = reserve(m->pools[0], HALF);
    keel_buffer_t *w = reserve(small, HALF), *z = reserve(small, HALF);
    ok(run(m->queues[0], KEEL_NO_WAITS, keel_op_alloca(x)));
    ok(run(m->queues[0], KEEL_NO_WAITS, keel_op_alloca(z)));
    keel_semaphore_t *gate = NULL;
    assert_null(keel_semaphore_create(m->device, NULL, &gate));
    keel_point_t gone = run(m->queues[1], KEEL_AFTER(keel_point(gate, 1)), keel_op_dealloca(z));
    keel_op_t first[] = {keel_op_copy(keel_span(x, 0, 1 << 20), keel_span(x, 1 << 20, 1 << 20)),
                         keel_op_barrier(), keel_op_dealloca(x), keel_op_barrier(),
                         keel_op_alloca(w)};
    keel_point_t got;
    assert_null(keel_queue_submit(m->queues[0], KEEL_NO_WAITS, first, 5, KEEL_NO_SIGNALS, &got));
    ok(run(m->queues[1], KEEL_NO_WAITS, keel_op_alloca(y)));
    assert_null(keel_semaphore_signal(gate, 1));
    ok(gone);
    ok(got);
    give(m, w);
    give(m, y);
    keel_buffer_release(x);
    keel_buffer_release(z);
    keel_pool_release(small);
    keel_semaphore_release(gate);
}

static void *create_large(void *user)
{
    memory_t *m = user;
    keel_buffer_options_t options = {.size = LARGE};
    keel_buffer_t *buffer = NULL;
    keel_status_t status = keel_buffer_create(m->device, &options, &buffer);
    keel_buffer_release(buffer);
    return (void *)status;
}

// While pools are trimmed for one thread, others do what has nothing to do with it.
static void test_trim_holds_up_nobody(void **state)
{
    memory_t *m = *state;
    keel_buffer_t *x = take(m, 0);
    keel_queue_t *queue = NULL;
    pthread_t thread;
    void *status = NULL;
    atomic_store(&held, true);
    assert_int_equal(pthread_create(&thread, NULL, create_large, m), 0);
    while (!atomic_load(&trimming)) nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
    uint64_t start = keel_now_ns();
    assert_null(keel_queue_create(m->device, NULL, &queue));
    keel_queue_release(queue);
    assert_true(keel_now_ns() - start < PATIENCE_NS / 2); // what is held takes twice that
    atomic_store(&held, false);
    pthread_join(thread, &status);
    assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
    keel_status_release(status);
    give(m, x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pools_let_go),     cmocka_unit_test(test_nothing_is_under_way),
        cmocka_unit_test(test_waits_for_issued), cmocka_unit_test(test_waits_for_submitted),
        cmocka_unit_test(test_submitted_fails),  cmocka_unit_test(test_own_dealloca),
        cmocka_unit_test(test_limit_and_memory), cmocka_unit_test(test_trim_holds_up_nobody),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
