// SPDX-License-Identifier: Apache-2.0
// When memory is used up, pools give back what no buffer uses: pools that the vendor keeps, and
// those that the kit cuts from slabs.
#include "drivers/stream/fixture.h"

enum { LARGE = 64 << 20, ALL = LARGE / 2 * 3 }; // the device has memory for one, not for two

static keel_queue_t *other; // the vendor's queue 1
static keel_pool_t *pools[2];
static keel_buffer_t *x;

static int pools_open(void **state)
{
    fixture_open(state);
    ok_status(keel_queue_create(device, NULL, &other));
    for (int i = 0; i < 2; i++) ok_status(keel_pool_create(device, NULL, &pools[i]));
    x = numbers(0, 0, 0);
    vendor_memory(ALL);
    return 0;
}

static int pools_close(void **state)
{
    keel_buffer_release(x);
    for (int i = 0; i < 2; i++) keel_pool_release(pools[i]);
    keel_queue_release(other);
    return fixture_close(state);
}

static keel_point_t alloca_on(keel_queue_t *on, int pool, uint64_t size, keel_buffer_t **buffer)
{
    keel_point_t ready;
    ok_status(keel_queue_alloca(on, pools[pool], size, buffer, &ready));
    return ready;
}

// The pool has had so much, and no buffer has it now.
static void leave_idle(int pool, uint64_t size)
{
    keel_buffer_t *buffer;
    keel_point_t freed, ready = alloca_on(queue, pool, size, &buffer);
    ok_status(keel_queue_dealloca(queue, KEEL_AFTER(ready), buffer, &freed));
    ok(freed);
    keel_buffer_release(buffer);
}

static void buffers_get_what_pools_hold(void **state)
{
    (void)state;
    leave_idle(0, LARGE);
    keel_buffer_release(buffer_create(LARGE));
}

static void other_pools_get_it(void **state)
{
    (void)state;
    keel_buffer_t *buffer;
    leave_idle(0, LARGE);
    ok(alloca_on(other, 1, LARGE, &buffer));
    keel_buffer_release(buffer);
}

// What the pool has is too small, and its limit is not in the way.
static void the_pool_itself_gets_it(void **state)
{
    (void)state;
    keel_buffer_t *buffer;
    leave_idle(0, LARGE / 4 * 3);
    ok(alloca_on(queue, 0, LARGE, &buffer));
    keel_buffer_release(buffer);
}

// The recording finds no memory but what the pool has.
static void recording_gets_it(bool prepared)
{
    keel_op_t op = keel_op_fill(keel_whole(x), 7, 4);
    keel_recording_t *recording = record(&op, 1, 0);
    leave_idle(0, ALL - (1 << 20));
    vendor_memory(ALL - (1 << 20)); // nothing is left
    if (prepared) ok_status(keel_recording_prepare(recording, queue));
    ok(execute(queue, recording, KEEL_NO_BINDINGS));
    assert_int_equal(words_of(x)[0], 7);
    keel_recording_release(recording);
}

static void prepared_recordings_get_it(void **state)
{
    (void)state;
    recording_gets_it(true);
}

static void recordings_get_it(void **state)
{
    (void)state;
    recording_gets_it(false);
}

// A dealloca behind work, of another pool.
static void deallocas_of_other_pools_are_waited_for(void **state)
{
    (void)state;
    keel_buffer_t *old, *fresh;
    keel_point_t freed, ready = alloca_on(queue, 0, LARGE, &old);
    ok(ready);
    keel_op_t op = keel_op_fill(keel_span(old, 0, 64), 1, 4);
    vendor_hold();
    keel_point_t filled = submit(queue, KEEL_NO_WAITS, &op, 1);
    ok_status(keel_queue_dealloca(queue, KEEL_AFTER(filled), old, &freed));
    ready = alloca_on(other, 1, LARGE, &fresh);
    assert_false(is_reached(ready));
    vendor_go();
    ok(ready);
    keel_buffer_release(old);
    keel_buffer_release(fresh);
}

// The submission itself gives back what its alloca needs.
static void deallocas_before_an_alloca(void **state)
{
    (void)state;
    keel_buffer_t *old, *fresh = NULL;
    keel_buffer_options_t options = {.size = LARGE};
    ok(alloca_on(queue, 0, LARGE, &old));
    ok_status(keel_buffer_reserve(pools[1], &options, &fresh));
    keel_op_t ops[] = {keel_op_fill(keel_span(old, 0, 64), 1, 4), keel_op_barrier(),
                       keel_op_dealloca(old), keel_op_barrier(), keel_op_alloca(fresh)};
    ok(submit(queue, KEEL_NO_WAITS, ops, COUNT(ops)));
    keel_buffer_release(old);
    keel_buffer_release(fresh);
}

static void more_than_there_is(void **state)
{
    (void)state;
    keel_buffer_t *first, *second;
    leave_idle(1, LARGE / 4);
    ok(alloca_on(queue, 0, LARGE, &first));
    fails(alloca_on(other, 1, LARGE, &second), KEEL_RESOURCE_EXHAUSTED, "67108864 bytes");
    keel_buffer_release(first);
    keel_buffer_release(second);
}

static void code_gets_it(void **state)
{
    (void)state;
    keel_executable_t *more = NULL;
    keel_buffer_t *buffer;
    leave_idle(0, LARGE);
    vendor_fail(SLOT(module_load), 1, KEEL_RESOURCE_EXHAUSTED);
    ok_status(kernels_load(device, &more));
    buffer = buffer_create(LARGE); // which the pool has no more
    keel_executable_release(more);
    keel_buffer_release(buffer);
}

static void code_that_the_vendor_does_not_know(void **state)
{
    (void)state;
    keel_executable_t *more = NULL;
    uint64_t calls = vendor_calls(SLOT(module_load));
    vendor_fail(SLOT(module_load), 1, KEEL_UNSUPPORTED);
    keel_status_t status = kernels_load(device, &more);
    assert_int_equal(keel_status_code(status), KEEL_UNSUPPORTED);
    keel_status_release(status);
    assert_int_equal(vendor_calls(SLOT(module_load)), calls + 1);
}

#define POOLS(f) cmocka_unit_test_setup_teardown(f, pools_open, pools_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        POOLS(buffers_get_what_pools_hold),
        POOLS(other_pools_get_it),
        POOLS(the_pool_itself_gets_it),
        POOLS(prepared_recordings_get_it),
        POOLS(recordings_get_it),
        POOLS(deallocas_of_other_pools_are_waited_for),
        POOLS(deallocas_before_an_alloca),
        POOLS(more_than_there_is),
        POOLS(code_gets_it),
        POOLS(code_that_the_vendor_does_not_know),
    };
    return run_on_all(tests, COUNT(tests));
}
