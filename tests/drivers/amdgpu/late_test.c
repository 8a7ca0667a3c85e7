// SPDX-License-Identifier: Apache-2.0
// Submissions that refer to buffers of pools are the GPU's, which finds their memory when the waits
// are over. Run on the software GPU (keel sim).
#include <stdlib.h>

#include "drivers/amdgpu/host/scheduler/scheduler.h"
#include "drivers/amdgpu/setup.h"

static const uint64_t block = WORDS * sizeof(uint32_t);

static keel_pool_t *pool_make(const setup_t *s)
{
    const keel_pool_options_t options = {.memory = KEEL_MEMORY_HOST_VISIBLE};
    keel_pool_t *pool;
    OK(keel_pool_create(s->device, &options, &pool));
    return pool;
}

static keel_buffer_t *reserve(keel_pool_t *pool)
{
    const keel_buffer_options_t options = {.size = block, .name = "late"};
    keel_buffer_t *buffer;
    OK(keel_buffer_reserve(pool, &options, &buffer));
    return buffer;
}

// An alloca or a dealloca, which the host does, until it has.
static void host_does(const setup_t *s, keel_op_t op)
{
    keel_point_t done;
    OK(keel_queue_submit(s->queue, KEEL_NO_WAITS, &op, 1, KEEL_NO_SIGNALS, &done));
    OK(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
}

// Waits for the next value of the semaphore, and signals the one behind it.
static void submit(setup_t *s, keel_op_t op)
{
    const keel_point_t wait = keel_point(s->semaphore, ++s->value),
                       signal = keel_point(s->semaphore, s->value + 1);
    OK(keel_queue_submit(s->queue, KEEL_POINTS(wait), &op, 1, KEEL_POINTS(signal), NULL));
}

// How the last of those that were submitted ended, when the first one may go.
static keel_status_t go(const setup_t *s)
{
    const keel_point_t last = keel_point(s->semaphore, s->value + 1);
    OK(keel_semaphore_signal(s->semaphore, 1));
    return keel_wait(KEEL_POINTS(last), KEEL_ALL, KEEL_FOREVER);
}

static void is_missing(keel_status_t status)
{
    char text[1024];
    assert_int_equal(keel_status_code(status), KEEL_FAILED_PRECONDITION);
    keel_status_format(status, text, sizeof text);
    assert_non_null(strstr(text, "'late' has no memory"));
    keel_status_release(status);
}

static void word_check(keel_buffer_t *buffer, uint32_t index, uint32_t value)
{
    uint32_t *words;
    OK(keel_buffer_map(buffer, 0, block, KEEL_ACCESS_READ, (void **)&words));
    assert_int_equal(words[index], value);
    keel_buffer_unmap(buffer);
}

static uint64_t issued(const setup_t *s)
{
    return amdgpu_device(s->device)->scheduler->controls[0].shared->issued;
}

// Every kind of command, in memory that comes when all of them are submitted.
static void test_commands_find_the_memory(void **state)
{
    (void)state;
    setup_t s;
    setup_open(&s, "amdgpu://0", 0);
    keel_pool_t *pool = pool_make(&s);
    keel_buffer_t *x = reserve(pool), *y;
    const uint32_t data[2] = {3, 4}, counts[3] = {5, 1, 1};
    OK(keel_buffer_subspan(x, 64, 256, &y));
    uint64_t before = issued(&s);
    submit(&s, keel_op_fill(keel_span(x, 0, 64), 7, 4));
    submit(&s, keel_op_update(keel_span(y, 4, 8), data));
    submit(&s, keel_op_copy(keel_span(y, 0, 16), keel_span(x, 1024, 16)));
    submit(&s, keel_op_update(keel_span(x, 2048, 12), counts));
    submit(&s, keel_op_fill(keel_span(x, 512, 4), 0, 4));
    keel_op_t tally = kernel(&s, "tally", KEEL_BIND(keel_span(x, 512, 4)));
    submit(&s, tally);
    submit(&s, keel_op_indirect(tally, KEEL_COUNTS_STATIC, keel_span(x, 2048, 12)));
    submit(&s, keel_op_timestamp(keel_span(x, 4096, 8)));
    assert_int_equal(issued(&s), before);
    host_does(&s, keel_op_alloca(x));
    OK(go(&s));
    assert_true(issued(&s) > before); // it was the GPU
    word_check(x, 0, 7);
    word_check(x, 17, 3);
    word_check(x, 18, 4);
    word_check(x, 257, 3);
    word_check(x, 128, 1 + counts[0]);
    keel_buffer_release(y);
    keel_buffer_release(x);
    keel_pool_release(pool);
    setup_close(&s);
}

// The memory is elsewhere when the waits are over.
static void test_memory_moves(void **state)
{
    (void)state;
    setup_t s;
    uint64_t first, second;
    setup_open(&s, "amdgpu://0", 1);
    keel_pool_t *pool = pool_make(&s);
    keel_buffer_t *x = reserve(pool), *other = reserve(pool);
    add(&s, keel_op_fill(keel_slot(0, 4, 4), 9, 4));
    OK(keel_recording_end(s.recording));
    host_does(&s, keel_op_alloca(x));
    OK(keel_buffer_address(x, &first));
    submit(&s, keel_op_fill(keel_span(x, 0, 4), 8, 4));
    submit(&s, keel_op_execute(s.recording, KEEL_BIND(x)));
    host_does(&s, keel_op_dealloca(x));
    host_does(&s, keel_op_alloca(other));
    host_does(&s, keel_op_alloca(x));
    OK(keel_buffer_address(x, &second));
    assert_true(first != second);
    OK(go(&s));
    word_check(x, 0, 8);
    word_check(x, 1, 9);
    keel_buffer_release(other);
    keel_buffer_release(x);
    keel_pool_release(pool);
    setup_close(&s);
}

// Neither a command nor a recording runs without the memory; what waits for it fails, too.
static void missing_check(keel_op_t (*op)(const setup_t *s, keel_buffer_t *buffer))
{
    setup_t s;
    setup_open(&s, "amdgpu://0", 2);
    keel_pool_t *pool = pool_make(&s);
    keel_buffer_t *x = reserve(pool);
    add(&s, keel_op_fill(keel_slot(0, 0, KEEL_WHOLE), 9, 4));
    OK(keel_recording_end(s.recording));
    uint64_t before = issued(&s);
    submit(&s, op(&s, x));
    submit(&s, keel_op_fill(word(&s, 0), 1, 4));
    is_missing(go(&s));
    OK(keel_device_wait_idle(s.device, KEEL_FOREVER));
    assert_int_equal(issued(&s), before);
    word_check(s.buffer, 0, 0);
    keel_buffer_release(x);
    keel_pool_release(pool);
    setup_close(&s);
}

static keel_op_t op_fill(const setup_t *s, keel_buffer_t *buffer)
{
    (void)s;
    return keel_op_fill(keel_whole(buffer), 1, 4);
}

static keel_op_t op_execute(const setup_t *s, keel_buffer_t *buffer)
{
    static keel_ref_t table[2]; // for the caller, who has it until it submits
    table[0] = keel_whole(buffer);
    table[1] = keel_whole(s->buffer);
    return keel_op_execute(s->recording, (keel_refs_t){table, 2});
}

static void test_missing_memory_fails(void **state)
{
    (void)state;
    missing_check(op_fill);
    missing_check(op_execute);
}

// A slot that no command refers to needs no memory.
static void test_what_is_not_used_may_be_missing(void **state)
{
    (void)state;
    setup_t s;
    setup_open(&s, "amdgpu://0", 2);
    keel_pool_t *pool = pool_make(&s);
    keel_buffer_t *x = reserve(pool);
    add(&s, keel_op_fill(keel_slot(0, 0, 4), 9, 4));
    OK(keel_recording_end(s.recording));
    submit(&s, keel_op_execute(s.recording, KEEL_BIND(s.buffer, x)));
    OK(go(&s));
    word_check(s.buffer, 0, 9);
    keel_buffer_release(x);
    keel_pool_release(pool);
    setup_close(&s);
}

int main(void)
{
    if (!getenv("KEEL_SIM_GPUS")) return 77; // to be run by keel sim
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands_find_the_memory),
        cmocka_unit_test(test_memory_moves),
        cmocka_unit_test(test_missing_memory_fails),
        cmocka_unit_test(test_what_is_not_used_may_be_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
