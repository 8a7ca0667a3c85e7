// SPDX-License-Identifier: Apache-2.0
// Allocas and deallocas of pools of blocks are the GPU's: chains of them need no host, those that
// find no block wait on the GPU, and what it cannot decide is left to the host. So are those of
// other pools, for sizes that were used before: all is tested with both. Run on the software GPU
// (keel sim).
#include <sched.h>
#include <stdlib.h>

#include "drivers/amdgpu/host/scheduler/scheduler.h"
#include "drivers/amdgpu/setup.h"

enum { CHAIN = 12, BLOCK = 64 << 10 };

static uint64_t block_size; // of the pools: BLOCK, or 0

static keel_pool_t *pool_make(const setup_t *s, uint64_t blocks, keel_pool_full_t full)
{
    const keel_pool_options_t options = {.memory = KEEL_MEMORY_HOST_VISIBLE,
                                         .block_size = block_size,
                                         .limit = blocks * BLOCK,
                                         .full = full,
                                         .name = "blocks"};
    keel_pool_t *pool;
    OK(keel_pool_create(s->device, &options, &pool));
    return pool;
}

static keel_buffer_t *reserve_size(keel_pool_t *pool, uint64_t size)
{
    const keel_buffer_options_t options = {.size = size, .name = "b"};
    keel_buffer_t *buffer;
    OK(keel_buffer_reserve(pool, &options, &buffer));
    return buffer;
}

static keel_buffer_t *reserve(keel_pool_t *pool)
{
    return reserve_size(pool, BLOCK);
}

// Waits for a value of the semaphore, and signals another.
static void submit(const setup_t *s, uint64_t after, keel_op_t op, uint64_t value)
{
    const keel_point_t wait = keel_point(s->semaphore, after),
                       signal = keel_point(s->semaphore, value);
    OK(keel_queue_submit(s->queue, KEEL_POINTS(wait), &op, 1, KEEL_POINTS(signal), NULL));
}

static keel_status_t await(const setup_t *s, uint64_t value)
{
    const keel_point_t point = keel_point(s->semaphore, value);
    return keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER);
}

static uint64_t told(const setup_t *s)
{
    return __atomic_load_n(&amdgpu_device(s->device)->scheduler->controls[0].shared->told,
                           __ATOMIC_ACQUIRE);
}

static uint64_t ticks(const setup_t *s)
{
    return __atomic_load_n(&amdgpu_device(s->device)->scheduler->controls[0].shared->ticks,
                           __ATOMIC_ACQUIRE);
}

// Until the ticks that were asked for are over: all records have come, and wait.
static void settle(const setup_t *s)
{
    const amdgpu_control_t *control = &amdgpu_device(s->device)->scheduler->controls[0];
    const uint64_t *write = PROTOCOL_AT(const uint64_t, control->shared->control.write);
    while (control->device->hsa->hsa_queue_load_read_index_scacquire(control->queue) !=
           __atomic_load_n(write, __ATOMIC_ACQUIRE))
        sched_yield();
}

static bool has_memory(keel_buffer_t *buffer)
{
    keel_buffer_info_t info;
    keel_buffer_info(buffer, &info);
    return info.resident;
}

static keel_pool_stats_t stats_of(keel_pool_t *pool)
{
    keel_pool_stats_t stats;
    keel_pool_stats(pool, &stats);
    return stats;
}

// The pool has a block of that size, and no buffer has it. The first time the GPU asks for it.
static void size_warm(const setup_t *s, keel_pool_t *pool, uint64_t size)
{
    keel_semaphore_t *own;
    keel_buffer_t *buffer = reserve_size(pool, size);
    keel_op_t ops[] = {keel_op_alloca(buffer), keel_op_barrier(), keel_op_dealloca(buffer)};
    OK(keel_semaphore_create(s->device, NULL, &own));
    const keel_point_t done = keel_point(own, 1);
    OK(keel_queue_submit(s->queue, KEEL_NO_WAITS, ops, 3, KEEL_POINTS(done), NULL));
    OK(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    OK(keel_device_wait_idle(s->device, KEEL_FOREVER));
    keel_semaphore_release(own);
    keel_buffer_release(buffer);
}

static void pool_warm(const setup_t *s, keel_pool_t *pool)
{
    size_warm(s, pool, BLOCK);
}

// A device, and a pool of it that is warm.
static keel_pool_t *begin(setup_t *s, uint64_t blocks, keel_pool_full_t full)
{
    setup_open(s, "amdgpu://0", 0);
    keel_pool_t *pool = pool_make(s, blocks, full);
    pool_warm(s, pool);
    return pool;
}

static void end(setup_t *s, keel_pool_t *pool, keel_buffer_t *x, keel_buffer_t *y)
{
    keel_buffer_release(y);
    keel_buffer_release(x);
    keel_pool_release(pool);
    setup_close(s);
}

// Each link: alloca, a fill, dealloca, one after the other, in the same few blocks.
static void test_a_chain_needs_no_host(void **state)
{
    (void)state;
    setup_t s;
    keel_pool_t *pool = begin(&s, 2, KEEL_POOL_WAITS);
    keel_buffer_t *buffers[CHAIN];
    uint64_t value = 1;
    for (int i = 0; i < CHAIN; i++, value += 4) {
        keel_buffer_t *b = buffers[i] = reserve(pool);
        submit(&s, value, keel_op_alloca(b), value + 1);
        submit(&s, value + 1, keel_op_fill(keel_whole(b), 7, 4), value + 2);
        submit(&s, value + 2, keel_op_copy(keel_span(b, 0, 4), word(&s, (uint32_t)i)), value + 3);
        submit(&s, value + 3, keel_op_dealloca(b), value + 4);
    }
    settle(&s);
    uint64_t before = told(&s), first = ticks(&s);
    OK(keel_semaphore_signal(s.semaphore, 1));
    OK(await(&s, value));
    assert_in_range(told(&s) - before, 0, 1);
    assert_true(ticks(&s) - first >= 4 * CHAIN); // it was the GPU, all of it
    const uint32_t *words = map(&s);
    for (int i = 0; i < CHAIN; i++) assert_int_equal(words[i], 7);
    keel_buffer_unmap(s.buffer);
    for (int i = 0; i < CHAIN; i++) assert_false(has_memory(buffers[i]));
    assert_int_equal(stats_of(pool).used, 0);
    assert_int_equal(stats_of(pool).buffers, 0);
    assert_int_equal(stats_of(pool).peak, BLOCK);
    for (int i = 0; i < CHAIN; i++) keel_buffer_release(buffers[i]);
    keel_pool_release(pool);
    setup_close(&s);
}

// The second alloca waits on the GPU until the first buffer has given its block back; the host
// hears nothing of that.
static void test_an_alloca_waits_on_the_gpu(void **state)
{
    (void)state;
    setup_t s;
    keel_semaphore_t *other;
    setup_open(&s, "amdgpu://0", 0);
    OK(keel_semaphore_create(s.device, NULL, &other));
    keel_pool_t *pool = pool_make(&s, 1, KEEL_POOL_WAITS);
    pool_warm(&s, pool);
    keel_buffer_t *x = reserve(pool), *y = reserve(pool);
    const keel_point_t got = keel_point(other, 1), first = keel_point(s.semaphore, 2);
    keel_op_t op = keel_op_alloca(y);
    submit(&s, 1, keel_op_alloca(x), 2);
    OK(keel_queue_submit(s.queue, KEEL_POINTS(first), &op, 1, KEEL_POINTS(got), NULL));
    submit(&s, 3, keel_op_dealloca(x), 4);
    OK(keel_semaphore_signal(s.semaphore, 1));
    OK(await(&s, 2));
    const amdgpu_scheduler_t *scheduler = amdgpu_device(s.device)->scheduler;
    const shelf_t *shelf = amdgpu_shelf_of(pool);
    const shelf_side_t *side = PROTOCOL_AT(const shelf_side_t, shelf->sides);
    while (!__atomic_load_n(&side->waiting, __ATOMIC_ACQUIRE)) sched_yield();
    assert_int_equal(scheduler->controls[0].shared->live, 2);
    assert_int_equal(stats_of(pool).waiting, 1);
    assert_true(has_memory(x));
    assert_int_equal(stats_of(pool).used, BLOCK);
    uint64_t before = told(&s);
    OK(keel_semaphore_signal(s.semaphore, 3));
    OK(keel_wait(KEEL_POINTS(got), KEEL_ALL, KEEL_FOREVER));
    assert_in_range(told(&s) - before, 0, 1); // of the last one that ended
    assert_false(has_memory(x));
    assert_true(has_memory(y));
    assert_int_equal(side->waiting, 0);
    OK(keel_device_wait_idle(s.device, KEEL_FOREVER));
    keel_buffer_release(y); // gives its block back
    assert_int_equal(stats_of(pool).used, 0);
    keel_buffer_release(x);
    keel_pool_release(pool);
    keel_semaphore_release(other);
    setup_close(&s);
}

// A block that the host gives back, with the last reference to its buffer, wakes it as well.
static void test_the_host_wakes_it(void **state)
{
    (void)state;
    setup_t s;
    keel_pool_t *pool = begin(&s, 1, KEEL_POOL_WAITS);
    keel_buffer_t *x = reserve(pool), *y = reserve(pool);
    submit(&s, 1, keel_op_alloca(x), 2);
    submit(&s, 2, keel_op_alloca(y), 3);
    OK(keel_semaphore_signal(s.semaphore, 1));
    const shelf_t *shelf = amdgpu_shelf_of(pool);
    const shelf_side_t *side = PROTOCOL_AT(const shelf_side_t, shelf->sides);
    while (!__atomic_load_n(&side->waiting, __ATOMIC_ACQUIRE)) sched_yield();
    keel_buffer_release(x);
    OK(await(&s, 3));
    assert_true(has_memory(y));
    keel_buffer_release(y);
    keel_pool_release(pool);
    setup_close(&s);
}

static void code_check(keel_status_t status, keel_code_t code, const char *text)
{
    char words[1024];
    assert_int_equal(keel_status_code(status), code);
    keel_status_format(status, words, sizeof words);
    assert_non_null(strstr(words, text));
    keel_status_release(status);
}

// What the GPU cannot decide is said by the host, as for any other pool.
static void refused(keel_pool_full_t full, bool held, bool gives, keel_code_t code,
                    const char *text)
{
    setup_t s;
    setup_open(&s, "amdgpu://0", 0);
    keel_pool_t *pool = pool_make(&s, 1, full);
    keel_buffer_t *x = reserve(pool), *y = reserve(pool);
    submit(&s, 1, keel_op_alloca(x), 2);
    submit(&s, 2, gives ? keel_op_dealloca(y) : keel_op_alloca(held ? x : y), 3);
    OK(keel_semaphore_signal(s.semaphore, 1));
    code_check(await(&s, 3), code, text);
    assert_true(has_memory(x));
    assert_int_equal(stats_of(pool).used, BLOCK);
    end(&s, pool, x, y);
}

static void test_the_host_refuses(void **state)
{
    (void)state;
    refused(KEEL_POOL_FAILS, false, false, KEEL_RESOURCE_EXHAUSTED, "no dealloca is on its way");
    refused(KEEL_POOL_WAITS, true, false, KEEL_FAILED_PRECONDITION, "has memory already");
    refused(KEEL_POOL_WAITS, false, true, KEEL_FAILED_PRECONDITION, "no memory to give back");
}

// Until an alloca that the host runs waits for memory of the pool.
static void host_waits(keel_pool_t *pool)
{
    while (!__atomic_load_n(&amdgpu_shelf_of(pool)->host, __ATOMIC_ACQUIRE) ||
           !stats_of(pool).waiting)
        sched_yield();
}

static keel_point_t submit_after(const setup_t *s, keel_point_t after, const keel_op_t *ops,
                                 size_t count)
{
    keel_point_t done;
    OK(keel_queue_submit(s->queue, KEEL_POINTS(after), ops, count, KEEL_NO_SIGNALS, &done));
    return done;
}

// A pool that fails has the host decide, which knows of the deallocas that the GPU is to run: none
// is refused while one of them is on its way, and it gets the block.
static void test_a_dealloca_of_the_gpu_helps(void **state)
{
    (void)state;
    setup_t s;
    keel_pool_t *pool = begin(&s, 1, KEEL_POOL_FAILS);
    keel_buffer_t *x = reserve(pool), *y = reserve(pool);
    keel_op_t op = keel_op_alloca(y);
    submit(&s, 1, keel_op_alloca(x), 2);
    submit(&s, 3, keel_op_dealloca(x), 4);
    keel_point_t got = submit_after(&s, keel_point(s.semaphore, 2), &op, 1);
    OK(keel_semaphore_signal(s.semaphore, 1));
    host_waits(pool);
    OK(keel_semaphore_signal(s.semaphore, 3));
    OK(keel_wait(KEEL_POINTS(got), KEEL_ALL, KEEL_FOREVER));
    assert_false(has_memory(x));
    assert_true(has_memory(y));
    assert_int_equal(stats_of(pool).waiting, 0);
    end(&s, pool, x, y);
}

// One that waits for the very alloca does not.
static void test_a_dealloca_behind_it_does_not(void **state)
{
    (void)state;
    setup_t s;
    keel_pool_t *pool = begin(&s, 1, KEEL_POOL_FAILS);
    keel_buffer_t *x = reserve(pool), *y = reserve(pool);
    keel_op_t takes = keel_op_alloca(y), gives = keel_op_dealloca(x);
    submit(&s, 1, keel_op_alloca(x), 2);
    keel_point_t got = submit_after(&s, keel_point(s.semaphore, 2), &takes, 1);
    submit_after(&s, got, &gives, 1);
    OK(keel_semaphore_signal(s.semaphore, 1));
    code_check(keel_wait(KEEL_POINTS(got), KEEL_ALL, KEEL_FOREVER), KEEL_RESOURCE_EXHAUSTED,
               "all deallocas on their way wait for this alloca");
    assert_true(has_memory(x));
    end(&s, pool, x, y);
}

// The same where the dealloca waits on the GPU, over a semaphore and a submission in between.
static void behind_semaphores(void)
{
    const keel_pool_options_t options = {.memory = KEEL_MEMORY_HOST_VISIBLE,
                                         .block_size = block_size,
                                         .limit = BLOCK,
                                         .full = KEEL_POOL_FAILS};
    const keel_buffer_options_t whole = {.size = BLOCK};
    setup_t s;
    keel_semaphore_t *other;
    keel_pool_t *pool;
    keel_buffer_t *x, *y;
    setup_open(&s, "amdgpu://0", 0);
    OK(keel_semaphore_create(s.device, NULL, &other));
    OK(keel_pool_create(s.device, &options, &pool));
    OK(keel_buffer_reserve(pool, &whole, &x));
    OK(keel_buffer_reserve(pool, &whole, &y));
    const keel_point_t points[] = {keel_point(s.semaphore, 2), keel_point(other, 1),
                                   keel_point(other, 2), keel_point(other, 3)};
    const keel_op_t ops[] = {keel_op_alloca(y), keel_op_fill(word(&s, 0), 5, 4),
                             keel_op_dealloca(x)};
    submit(&s, 1, keel_op_alloca(x), 2);
    for (int i = 0; i < 3; i++)
        OK(keel_queue_submit(s.queue, KEEL_POINTS(points[i]), &ops[i], 1,
                             KEEL_POINTS(points[i + 1]), NULL));
    OK(keel_semaphore_signal(s.semaphore, 1));
    code_check(keel_wait(KEEL_POINTS(points[3]), KEEL_ALL, KEEL_FOREVER), KEEL_RESOURCE_EXHAUSTED,
               "all deallocas on their way wait for this alloca");
    assert_true(has_memory(x));
    assert_false(has_memory(y));
    assert_int_equal(*map(&s), 0); // what is behind it has not run
    keel_buffer_unmap(s.buffer);
    keel_semaphore_release(other);
    end(&s, pool, x, y);
}

static void test_nor_does_one_that_waits_on_the_gpu(void **state)
{
    (void)state;
    behind_semaphores();
}

// Host and GPU wait for the same block: each gets it, one after the other.
static void test_both_sides_wait(void **state)
{
    (void)state;
    setup_t s;
    keel_pool_t *pool = begin(&s, 1, KEEL_POOL_WAITS);
    keel_buffer_t *x = reserve(pool), *y = reserve(pool), *z = reserve(pool);
    const keel_point_t first = keel_point(s.semaphore, 2);
    keel_op_t device[] = {keel_op_alloca(y), keel_op_barrier(), keel_op_dealloca(y)};
    keel_op_t host[] = {keel_op_fill(word(&s, 0), 5, 4), keel_op_barrier(), keel_op_alloca(z),
                        keel_op_barrier(), keel_op_dealloca(z)};
    submit(&s, 1, keel_op_alloca(x), 2);
    keel_point_t ends[] = {submit_after(&s, first, device, sizeof device / sizeof *device),
                           submit_after(&s, first, host, sizeof host / sizeof *host)};
    submit(&s, 3, keel_op_dealloca(x), 4);
    OK(keel_semaphore_signal(s.semaphore, 1));
    while (stats_of(pool).waiting < 2) sched_yield();
    OK(keel_semaphore_signal(s.semaphore, 3));
    OK(keel_wait((keel_points_t){ends, 2}, KEEL_ALL, KEEL_FOREVER));
    OK(await(&s, 4));
    assert_int_equal(stats_of(pool).used, 0);
    assert_int_equal(stats_of(pool).waiting, 0);
    keel_buffer_release(z);
    end(&s, pool, x, y);
}

// One that waits for a block ends when its submission is cancelled.
static void test_who_waits_can_be_cancelled(void **state)
{
    (void)state;
    setup_t s;
    keel_pool_t *pool = begin(&s, 1, KEEL_POOL_WAITS);
    keel_buffer_t *x = reserve(pool), *y = reserve(pool);
    const keel_point_t wait = keel_point(s.semaphore, 2), signal = keel_point(s.semaphore, 3);
    keel_op_t op = keel_op_alloca(y);
    keel_point_t own;
    submit(&s, 1, keel_op_alloca(x), 2);
    OK(keel_queue_submit(s.queue, KEEL_POINTS(wait), &op, 1, KEEL_POINTS(signal), &own));
    OK(keel_semaphore_signal(s.semaphore, 1));
    const shelf_t *shelf = amdgpu_shelf_of(pool);
    const shelf_side_t *side = PROTOCOL_AT(const shelf_side_t, shelf->sides);
    while (!__atomic_load_n(&side->waiting, __ATOMIC_ACQUIRE)) sched_yield();
    OK(keel_queue_cancel(own, NULL));
    code_check(await(&s, 3), KEEL_CANCELLED, "cancelled");
    assert_false(has_memory(y));
    assert_int_equal(side->waiting, 0);
    end(&s, pool, x, y);
}

// Work with memory of its own, in one submission; the pool gets its first slab for it.
static void test_one_submission_does_all(void **state)
{
    (void)state;
    setup_t s;
    setup_open(&s, "amdgpu://0", 0);
    keel_pool_t *pool = pool_make(&s, 4, KEEL_POOL_WAITS);
    keel_buffer_t *x = reserve(pool), *y = reserve(pool);
    keel_op_t ops[] = {keel_op_alloca(x),  keel_op_alloca(y),
                       keel_op_barrier(),  keel_op_fill(keel_whole(x), 3, 4),
                       keel_op_barrier(),  keel_op_copy(keel_span(x, 0, 64), keel_span(y, 0, 64)),
                       keel_op_barrier(),  keel_op_copy(keel_span(y, 0, 4), word(&s, 0)),
                       keel_op_barrier(),  keel_op_dealloca(x),
                       keel_op_dealloca(y)};
    for (uint64_t i = 1; i < 4; i++) {
        const keel_point_t wait = keel_point(s.semaphore, i), end = keel_point(s.semaphore, i + 1);
        OK(keel_queue_submit(s.queue, KEEL_POINTS(wait), ops, sizeof ops / sizeof *ops,
                             KEEL_POINTS(end), NULL));
    }
    OK(keel_semaphore_signal(s.semaphore, 1));
    OK(await(&s, 4));
    assert_int_equal(*map(&s), 3);
    keel_buffer_unmap(s.buffer);
    assert_int_equal(stats_of(pool).used, 0);
    assert_int_equal(stats_of(pool).peak, 2 * BLOCK);
    assert_int_equal(stats_of(pool).reserved, 4 * BLOCK);
    OK(keel_pool_trim(pool, 0));
    assert_int_equal(stats_of(pool).reserved, 0);
    end(&s, pool, x, y);
}

// Three sizes that take turns: the memory of each is there when it is wanted again. Another size
// gets what is free of them, by the host, and all of it goes when the pool is trimmed.
static void test_sizes_are_used_again(void **state)
{
    (void)state;
    enum { SIZES = 3 };
    static const uint64_t sizes[SIZES] = {4096, 12 << 10, 100};
    setup_t s;
    keel_pool_t *pool = begin(&s, 2, KEEL_POOL_WAITS);
    keel_buffer_t *buffers[CHAIN];
    uint64_t value = 1;
    for (int i = 0; i < SIZES; i++) size_warm(&s, pool, sizes[i]);
    for (int i = 0; i < CHAIN; i++, value += 2) {
        buffers[i] = reserve_size(pool, sizes[i % SIZES]);
        submit(&s, value, keel_op_alloca(buffers[i]), value + 1);
        submit(&s, value + 1, keel_op_dealloca(buffers[i]), value + 2);
    }
    settle(&s);
    uint64_t before = told(&s), first = ticks(&s);
    OK(keel_semaphore_signal(s.semaphore, 1));
    OK(await(&s, value));
    assert_in_range(told(&s) - before, 0, 1);
    assert_true(ticks(&s) - first >= 2 * CHAIN);
    assert_int_equal(stats_of(pool).used, 0);
    if (!block_size) {
        keel_buffer_t *all = reserve_size(pool, 2 * BLOCK);
        submit(&s, value, keel_op_alloca(all), value + 1);
        OK(await(&s, value + 1));
        assert_int_equal(stats_of(pool).used, 2 * BLOCK);
        assert_int_equal(stats_of(pool).reserved, 2 * BLOCK);
        keel_buffer_release(all);
    }
    OK(keel_device_wait_idle(s.device, KEEL_FOREVER));
    OK(keel_pool_trim(pool, 0));
    assert_int_equal(stats_of(pool).reserved, 0);
    for (int i = 0; i < CHAIN; i++) keel_buffer_release(buffers[i]);
    keel_pool_release(pool);
    setup_close(&s);
}

// A record that wants two sizes, of which one is there, waits without a tick of its own: it takes
// nothing that it would have to give back.
static void test_half_is_no_work(void **state)
{
    (void)state;
    enum { LARGE = BLOCK + 4096, SMALL = 4096, OTHERS = 4 };
    setup_t s;
    if (block_size) return; // has blocks of one size
    keel_pool_t *pool = begin(&s, 2, KEEL_POOL_WAITS);
    keel_buffer_t *held = reserve_size(pool, LARGE), *large = reserve_size(pool, LARGE),
                  *small = reserve_size(pool, SMALL);
    keel_op_t both[] = {keel_op_alloca(small), keel_op_alloca(large)};
    keel_semaphore_t *own;
    OK(keel_semaphore_create(s.device, NULL, &own));
    const keel_point_t done = keel_point(own, 1);
    size_warm(&s, pool, LARGE); // takes what begin() has left there
    size_warm(&s, pool, SMALL);
    submit(&s, 1, keel_op_alloca(held), 2);
    OK(keel_semaphore_signal(s.semaphore, 1));
    OK(await(&s, 2));
    OK(keel_queue_submit(s.queue, KEEL_NO_WAITS, both, 2, KEEL_POINTS(done), NULL));
    settle(&s);
    uint64_t before = told(&s), first = ticks(&s);
    for (uint64_t i = 0; i < OTHERS; i++) {
        submit(&s, 2 + i, keel_op_barrier(), 3 + i);
        OK(await(&s, 3 + i));
    }
    assert_in_range(ticks(&s) - first, OTHERS, 3 * OTHERS);
    assert_false(has_memory(large) || has_memory(small));
    submit(&s, 2 + OTHERS, keel_op_dealloca(held), 3 + OTHERS);
    OK(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    assert_true(has_memory(large) && has_memory(small));
    assert_in_range(told(&s) - before, 0, 2 + OTHERS);
    OK(keel_device_wait_idle(s.device, KEEL_FOREVER));
    keel_semaphore_release(own);
    keel_buffer_release(held);
    keel_buffer_release(large);
    keel_buffer_release(small);
    keel_pool_release(pool);
    setup_close(&s);
}

// More sizes than there are bins for: the bins of buffers that have gone serve others.
static void test_bins_are_used_again(void **state)
{
    (void)state;
    setup_t s;
    keel_pool_t *pool = begin(&s, 4, KEEL_POOL_WAITS);
    for (uint64_t i = 1; i <= 2 * SHELF_BINS + 3; i++) size_warm(&s, pool, i * 64);
    assert_int_equal(stats_of(pool).used, 0);
    assert_int_equal(stats_of(pool).buffers, 0);
    assert_in_range(stats_of(pool).reserved, 1, 4 * BLOCK);
    keel_pool_release(pool);
    setup_close(&s);
}

// More buffers of a size than a bin has blocks: the rest is the host's. All of them at once.
static void test_a_bin_is_full(void **state)
{
    (void)state;
    enum { MANY = SHELF_CUTS + 8, SMALL = 64 };
    setup_t s;
    keel_pool_t *pool = begin(&s, 1, KEEL_POOL_WAITS);
    keel_buffer_t *buffers[MANY];
    uint64_t value = 1;
    if (!block_size) {
        for (int i = 0; i < MANY; i++) buffers[i] = reserve_size(pool, SMALL);
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < MANY; i++, value++)
                submit(&s, value, keel_op_alloca(buffers[i]), value + 1);
            if (!round) OK(keel_semaphore_signal(s.semaphore, 1));
            OK(await(&s, value));
            assert_int_equal(stats_of(pool).used, MANY * SMALL);
            assert_int_equal(stats_of(pool).buffers, MANY);
            for (int i = 0; i < MANY; i++, value++)
                submit(&s, value, keel_op_dealloca(buffers[i]), value + 1);
            OK(await(&s, value));
            assert_int_equal(stats_of(pool).used, 0);
        }
        OK(keel_device_wait_idle(s.device, KEEL_FOREVER));
        for (int i = 0; i < MANY; i++) keel_buffer_release(buffers[i]);
    }
    keel_pool_release(pool);
    setup_close(&s);
}

int main(void)
{
    if (!getenv("KEEL_SIM_GPUS")) return 77; // to be run by keel sim
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_chain_needs_no_host),
        cmocka_unit_test(test_an_alloca_waits_on_the_gpu),
        cmocka_unit_test(test_the_host_wakes_it),
        cmocka_unit_test(test_the_host_refuses),
        cmocka_unit_test(test_a_dealloca_of_the_gpu_helps),
        cmocka_unit_test(test_a_dealloca_behind_it_does_not),
        cmocka_unit_test(test_nor_does_one_that_waits_on_the_gpu),
        cmocka_unit_test(test_both_sides_wait),
        cmocka_unit_test(test_who_waits_can_be_cancelled),
        cmocka_unit_test(test_one_submission_does_all),
        cmocka_unit_test(test_sizes_are_used_again),
        cmocka_unit_test(test_half_is_no_work),
        cmocka_unit_test(test_bins_are_used_again),
        cmocka_unit_test(test_a_bin_is_full),
    };
    block_size = BLOCK;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    block_size = 0;
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
