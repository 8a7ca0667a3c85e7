// SPDX-License-Identifier: Apache-2.0
// All that the GPU does by itself in one chain: loops, counts that are read and that are written
// just before, wide segments, memory of a pool. No thread of the host has part in it: none is told
// of anything, and those that would end a submission are kept from it until the chain is over. Run
// on the software GPU (keel sim).
#include <sched.h>
#include <stdlib.h>

#include "drivers/amdgpu/host/scheduler/scheduler.h"
#include "drivers/amdgpu/setup.h"

enum { TURNS = 4, ROUNDS = 5, GROUPS = 3, WIDE = 40, BLOCK = 64 << 10 };
enum { TALLY = 64, COPIED = 128, FILLED = 256 }; // words of the buffer
enum { LOOP, DYNAMIC, STATIC, FILL, COPY, RECORDINGS };

typedef struct steady_t {
    setup_t s;
    keel_queue_t *queues[2], *second; // of two GPUs, or of one: then the other is `second`
    keel_recording_t *recordings[RECORDINGS];
    keel_pool_t *pool;
    uint64_t links;
} steady_t;

static void loop_record(const setup_t *s)
{
    add(s, keel_op_fill(word(s, 0), ROUNDS, 4));
    add(s, keel_op_while(word(s, 0)));
    add(s, kernel(s, "count_down", KEEL_BIND(s->buffer)));
    add(s, keel_op_end());
}

static void counted_add(const setup_t *s, keel_counts_t when)
{
    const keel_op_t tally = kernel(s, "tally", KEEL_BIND(word(s, TALLY)));
    add(s, keel_op_indirect(tally, when, keel_span(s->buffer, 16, 12)));
}

static void dynamic_record(const setup_t *s)
{
    add(s, keel_op_update(keel_span(s->buffer, 16, 12), (uint32_t[]){GROUPS, 1, 1}));
    add(s, keel_op_barrier());
    counted_add(s, KEEL_COUNTS_DYNAMIC);
}

static void static_record(const setup_t *s)
{
    counted_add(s, KEEL_COUNTS_STATIC);
}

static void fill_record(const setup_t *s)
{
    for (uint32_t i = 0; i < WIDE; i++)
        add(s, keel_op_fill(keel_slot(0, (FILLED + i) * sizeof i, sizeof i), i + 1, sizeof i));
}

// Of a buffer whose memory is there when its turn comes.
static void copy_record(const setup_t *s)
{
    add(s, keel_op_copy(keel_slot(0, 0, 4), word(s, COPIED)));
}

static void recordings_make(steady_t *c)
{
    static void (*const records[])(const setup_t *) = {loop_record, dynamic_record, static_record,
                                                       fill_record, copy_record};
    const keel_recording_options_t options = {.slots = 1};
    setup_t s = c->s;
    for (int i = 0; i < RECORDINGS; i++) {
        OK(keel_recording_create(s.device, &options, &s.recording));
        records[i](&s);
        OK(keel_recording_end(s.recording));
        c->recordings[i] = s.recording;
    }
}

static void buffers_reserve(const steady_t *c, keel_buffer_t *buffers[2])
{
    const keel_buffer_options_t small = {.size = 4096}, large = {.size = 12 << 10};
    OK(keel_buffer_reserve(c->pool, &small, &buffers[0]));
    OK(keel_buffer_reserve(c->pool, &large, &buffers[1]));
}

// With all its blocks, so that no alloca is the host's; or one of any sizes, which were used
// before.
static void pool_make(steady_t *c, uint64_t block_size)
{
    const keel_pool_options_t options = {
        .memory = KEEL_MEMORY_HOST_VISIBLE, .block_size = block_size, .limit = 2 * BLOCK};
    keel_semaphore_t *own;
    keel_buffer_t *b[2];
    OK(keel_pool_create(c->s.device, &options, &c->pool));
    OK(keel_semaphore_create(c->s.device, NULL, &own));
    buffers_reserve(c, b);
    keel_op_t ops[] = {keel_op_alloca(b[0]), keel_op_alloca(b[1]), keel_op_barrier(),
                       keel_op_dealloca(b[0]), keel_op_dealloca(b[1])};
    const keel_point_t done = keel_point(own, 1);
    OK(keel_queue_submit(c->s.queue, KEEL_NO_WAITS, ops, 5, KEEL_POINTS(done), NULL));
    OK(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    OK(keel_device_wait_idle(c->s.device, KEEL_FOREVER));
    for (int i = 0; i < 2; i++) keel_buffer_release(b[i]);
    keel_semaphore_release(own);
}

static void steady_open(steady_t *c, const char *uri, uint64_t block_size)
{
    *c = (steady_t){0};
    setup_open(&c->s, uri, 0);
    c->queues[0] = c->s.queue;
    c->queues[1] = keel_device_queue(c->s.device, 1);
    if (!c->queues[1]) {
        OK(keel_queue_create(c->s.device, NULL, &c->second));
        c->queues[1] = c->second;
    }
    recordings_make(c);
    pool_make(c, block_size);
}

static void steady_close(steady_t *c)
{
    keel_pool_release(c->pool);
    for (int i = 0; i < RECORDINGS; i++) keel_recording_release(c->recordings[i]);
    keel_queue_release(c->second);
    setup_close(&c->s);
}

// The next link of the chain; the two queues take turns.
static void link_submit(steady_t *c, const keel_op_t *ops, size_t count)
{
    const keel_point_t wait = keel_point(c->s.semaphore, ++c->links),
                       signal = keel_point(c->s.semaphore, c->links + 1);
    OK(keel_queue_submit(c->queues[c->links % 2], KEEL_POINTS(wait), ops, count,
                         KEEL_POINTS(signal), NULL));
}

static void op_submit(steady_t *c, keel_op_t op)
{
    link_submit(c, &op, 1);
}

static void turn_submit(steady_t *c)
{
    keel_buffer_t *b[2];
    buffers_reserve(c, b);
    const keel_op_t takes[] = {keel_op_alloca(b[0]), keel_op_alloca(b[1])},
                    gives[] = {keel_op_dealloca(b[0]), keel_op_dealloca(b[1])};
    for (int i = 0; i < COPY; i++)
        op_submit(c, keel_op_execute(c->recordings[i], KEEL_BIND(c->s.buffer)));
    link_submit(c, takes, 2);
    op_submit(c, keel_op_fill(keel_whole(b[0]), 7, 4));
    op_submit(c, keel_op_copy(keel_span(b[0], 0, 4), keel_span(b[1], 0, 4)));
    op_submit(c, keel_op_execute(c->recordings[COPY], KEEL_BIND(b[1])));
    link_submit(c, gives, 2);
    for (int i = 0; i < 2; i++) keel_buffer_release(b[i]);
}

typedef struct counts_t {
    uint64_t ticks, told;
} counts_t;

// What the schedulers have done so far, when all ticks that were asked for are over.
static counts_t counts_settled(const steady_t *c)
{
    const amdgpu_scheduler_t *scheduler = amdgpu_device(c->s.device)->scheduler;
    counts_t sum = {0};
    for (uint32_t i = 0; i < scheduler->control_count; i++) {
        const amdgpu_control_t *control = &scheduler->controls[i];
        const uint64_t *write = PROTOCOL_AT(const uint64_t, control->shared->control.write);
        while (control->device->hsa->hsa_queue_load_read_index_scacquire(control->queue) !=
               __atomic_load_n(write, __ATOMIC_ACQUIRE))
            sched_yield();
        sum.ticks += control->shared->ticks;
        sum.told += control->shared->told;
    }
    return sum;
}

// Submissions that wait for more than the chain: while there are some, a scheduler has no reason to
// tell the host that it has nothing left.
static void keepers_submit(const steady_t *c)
{
    const keel_point_t over = keel_point(c->s.semaphore, c->links + 2);
    for (int i = 0; i < 2; i++)
        OK(keel_queue_submit(c->queues[i], KEEL_POINTS(over), NULL, 0, KEEL_NO_SIGNALS, NULL));
}

// No thread can end a submission meanwhile.
static void chain_go(const steady_t *c)
{
    amdgpu_scheduler_t *scheduler = amdgpu_device(c->s.device)->scheduler;
    const cell_t *cell = amdgpu_cell_of(c->s.semaphore, c->s.device);
    lock_enter(&scheduler->runs_lock);
    OK(keel_semaphore_signal(c->s.semaphore, 1));
    while (PROTOCOL_LOAD(&cell->value, __ATOMIC_ACQUIRE) <= c->links) sched_yield();
    lock_leave(&scheduler->runs_lock);
}

static void words_check(const steady_t *c)
{
    const uint32_t *words = map(&c->s);
    assert_int_equal(words[1], TURNS * ROUNDS);
    assert_int_equal(words[TALLY], 2 * TURNS * GROUPS);
    assert_int_equal(words[COPIED], 7);
    for (uint32_t i = 0; i < WIDE; i++) assert_int_equal(words[FILLED + i], i + 1);
    keel_buffer_unmap(c->s.buffer);
}

static void steady_check(const char *uri, uint64_t block_size)
{
    steady_t c;
    steady_open(&c, uri, block_size);
    for (int i = 0; i < TURNS; i++) turn_submit(&c);
    keepers_submit(&c);
    counts_t before = counts_settled(&c);
    chain_go(&c);
    counts_t after = counts_settled(&c);
    assert_int_equal(after.ticks - before.ticks, c.links);
    assert_int_equal(after.told - before.told, 0);
    words_check(&c);
    OK(keel_semaphore_signal(c.s.semaphore, c.links + 2));
    OK(keel_device_wait_idle(c.s.device, KEEL_FOREVER));
    steady_close(&c);
}

static void test_one_gpu_needs_no_host(void **state)
{
    (void)state;
    steady_check("amdgpu://0", BLOCK);
    steady_check("amdgpu://0", 0);
    steady_check("amdgpu://0?schedulers=2", 0);
}

static void test_nor_do_two(void **state)
{
    (void)state;
    steady_check("amdgpu://0,1", BLOCK);
    steady_check("amdgpu://0,1", 0);
}

int main(void)
{
    if (!getenv("KEEL_SIM_GPUS")) return 77; // to be run by keel sim
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_gpu_needs_no_host),
        cmocka_unit_test(test_nor_do_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
