// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU that shares it with the host, and of one that has its own.
#include "drivers/metal/hold.h"

enum { SIZE = 1000 };

static keel_buffer_t *buffer_of(keel_device_t *device, uint32_t memory)
{
    keel_buffer_options_t options = {.size = SIZE, .memory = memory};
    keel_buffer_t *buffer = NULL;
    assert_null(keel_buffer_create(device, &options, &buffer));
    return buffer;
}

static uint32_t memory_of(const keel_buffer_t *buffer)
{
    keel_buffer_info_t info;
    keel_buffer_info(buffer, &info);
    return info.memory;
}

static keel_point_t copy(keel_device_t *device, keel_buffer_t *from, keel_buffer_t *to)
{
    return submit(device, KEEL_NO_WAITS, keel_op_copy(keel_whole(from), keel_whole(to)));
}

static void bytes_are(const uint8_t *bytes, int value, int from, int to)
{
    for (int i = from; i < to; i++) assert_int_equal(bytes[i], value);
}

static void unified(void)
{
    keel_device_t *device = device_open();
    keel_buffer_t *x = buffer_of(device, KEEL_MEMORY_DEVICE_LOCAL);
    const uint32_t all = KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_DEVICE_VISIBLE |
                         KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_HOST_COHERENT |
                         KEEL_MEMORY_HOST_CACHED;
    assert_int_equal(memory_of(x), all);
    assert_null(keel_buffer_flush(x, 0, KEEL_WHOLE));
    assert_null(keel_buffer_invalidate(x, 0, KEEL_WHOLE));
    assert_int_equal(sim_sent("didModifyRange:"), 0);
    keel_buffer_release(x);
    device_close(device);
}

// Private, shared and managed, as they are asked for.
static void discrete(void)
{
    keel_device_t *device = device_open();
    keel_buffer_t *hidden = buffer_of(device, 0),
                  *seen = buffer_of(device, KEEL_MEMORY_HOST_COHERENT);
    const uint32_t both = KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_HOST_VISIBLE;
    keel_buffer_t *twice = buffer_of(device, both);
    assert_false(memory_of(hidden) & KEEL_MEMORY_HOST_VISIBLE);
    assert_false(memory_of(seen) & KEEL_MEMORY_DEVICE_LOCAL);
    assert_false(memory_of(twice) & KEEL_MEMORY_HOST_COHERENT);
    void *memory = NULL;
    keel_status_t status = keel_buffer_map(hidden, 0, KEEL_WHOLE, KEEL_ACCESS_READ, &memory);
    assert_int_equal(keel_status_code(status), KEEL_PERMISSION_DENIED);
    keel_status_release(status);
    ok(submit(device, KEEL_NO_WAITS, keel_op_fill(keel_whole(hidden), 7, 1)));
    ok(copy(device, hidden, seen));
    uint8_t bytes[SIZE];
    assert_null(keel_buffer_read(seen, 0, bytes, SIZE));
    bytes_are(bytes, 7, 0, SIZE);
    keel_buffer_release(hidden);
    keel_buffer_release(seen);
    keel_buffer_release(twice);
    device_close(device);
}

// What the host writes goes by a flush, what the GPU writes comes by an invalidate, of that range
// alone: writes elsewhere that are not flushed yet stay.
static void managed(void)
{
    keel_device_t *device = device_open();
    keel_buffer_t *twice = buffer_of(device, KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_HOST_VISIBLE);
    keel_buffer_t *seen = buffer_of(device, KEEL_MEMORY_HOST_COHERENT);
    void *mapped = NULL;
    assert_null(keel_buffer_map(twice, 0, KEEL_WHOLE, KEEL_ACCESS_ALL, &mapped));
    uint8_t *bytes = mapped, out[SIZE];
    memset(bytes, 1, SIZE);
    assert_null(keel_buffer_flush(twice, 0, KEEL_WHOLE));
    ok(copy(device, twice, seen));
    assert_null(keel_buffer_read(seen, 0, out, SIZE));
    bytes_are(out, 1, 0, SIZE);
    ok(submit(device, KEEL_NO_WAITS, keel_op_fill(keel_span(twice, 0, 501), 2, 1)));
    bytes_are(bytes, 1, 0, SIZE); // a copy of its own
    bytes[900] = 3;
    assert_null(keel_buffer_invalidate(twice, 101, 402));
    bytes_are(bytes, 1, 0, 101);
    bytes_are(bytes, 2, 101, 501);
    bytes_are(bytes, 1, 501, 503);
    assert_int_equal(bytes[900], 3);
    assert_null(keel_buffer_flush(twice, 900, 1));
    ok(copy(device, twice, seen));
    assert_null(keel_buffer_read(seen, 0, out, SIZE));
    bytes_are(out, 2, 0, 501);
    assert_int_equal(out[900], 3);
    keel_buffer_unmap(twice);
    keel_buffer_release(twice);
    keel_buffer_release(seen);
    device_close(device);
}

// Coherent memory, of which each side writes a part at the same time: neither undoes what the other
// writes, and no message brings it across. Two copies could not have that.
static void coherent(void)
{
    keel_device_t *device = device_open();
    hold_t hold = hold_make(device);
    keel_buffer_t *x = buffer_of(device, KEEL_MEMORY_HOST_COHERENT);
    void *mapped = NULL;
    assert_null(keel_buffer_map(x, 0, KEEL_WHOLE, KEEL_ACCESS_ALL, &mapped));
    uint8_t *bytes = mapped;
    memset(bytes, 1, SIZE);
    keel_point_t held = hold_submit(keel_device_queue(device, 0), &hold);
    keel_point_t done =
        submit(device, KEEL_AFTER(held), keel_op_fill(keel_span(x, 0, SIZE / 2), 2, 1));
    memset(bytes + SIZE / 2, 3, SIZE / 2);
    hold_let_go(&hold);
    ok(done);
    bytes_are(bytes, 2, 0, SIZE / 2);
    bytes_are(bytes, 3, SIZE / 2, SIZE);
    assert_int_equal(sim_sent("didModifyRange:") + sim_sent("synchronizeResource:"), 0);
    keel_buffer_unmap(x);
    keel_buffer_release(x);
    hold_release(&hold);
    keel_buffer_options_t options = {
        .size = SIZE, .memory = KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_HOST_COHERENT};
    keel_status_t status = keel_buffer_create(device, &options, &x);
    assert_int_equal(keel_status_code(status), KEEL_UNSUPPORTED);
    keel_status_release(status);
    device_close(device);
}

// On a GPU that is not Apple's, dispatches of an encoder come one after the other: the software
// Metal, which tells of those that nothing orders, has nothing to tell.
static void serial(void)
{
    keel_device_t *device = device_open();
    keel_buffer_t *x = buffer_of(device, KEEL_MEMORY_HOST_COHERENT);
    keel_op_t ops[] = {keel_op_fill(keel_span(x, 1, 3), 1, 1),
                       keel_op_fill(keel_span(x, 2, 3), 2, 1)};
    keel_point_t done;
    assert_null(keel_queue_submit(keel_device_queue(device, 0), KEEL_NO_WAITS, ops, 2,
                                  KEEL_NO_SIGNALS, &done));
    ok(done);
    uint8_t bytes[5];
    assert_null(keel_buffer_read(x, 0, bytes, sizeof bytes));
    bytes_are(bytes, 2, 2, 5);
    keel_buffer_release(x);
    device_close(device);
}

// What Metal says that the process has taken is not to be had again.
static void budget(void)
{
    keel_device_t *device = device_open();
    keel_memory_stats_t before, after;
    assert_null(keel_device_memory(device, &before));
    keel_buffer_options_t options = {.size = 64 << 20};
    keel_buffer_t *buffer = NULL;
    assert_null(keel_buffer_create(device, &options, &buffer));
    assert_null(keel_device_memory(device, &after));
    assert_int_equal(after.total, before.total);
    assert_int_equal(after.budget, before.budget - options.size);
    keel_buffer_release(buffer);
    device_close(device);
}

// What is released after the device is closed finds no residency set.
static void closed_first(void)
{
    keel_device_t *device = NULL;
    assert_null(device_try_open("0?residency=1", &device));
    keel_buffer_t *x = buffer_create(device, SIZE);
    keel_device_release(device);
    keel_buffer_release(x);
    while (sim_objects(NULL)) sched_yield();
}

static void test_closed_first(void **state)
{
    (void)state;
    run_with("residency=1", closed_first);
}

static void test_unified(void **state)
{
    (void)state;
    run_with("", unified);
}

static void test_discrete(void **state)
{
    (void)state;
    run_with("discrete=1", discrete);
}

static void test_coherent(void **state)
{
    (void)state;
    run_with("discrete=1", coherent);
}

static void test_serial(void **state)
{
    (void)state;
    run_with("discrete=1 hazards=1", serial);
}

static void test_managed(void **state)
{
    (void)state;
    run_with("discrete=1", managed);
}

static void test_budget(void **state)
{
    (void)state;
    run_with("", budget);
    run_with("discrete=1", budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unified),      cmocka_unit_test(test_discrete),
        cmocka_unit_test(test_managed),      cmocka_unit_test(test_coherent),
        cmocka_unit_test(test_serial),       cmocka_unit_test(test_budget),
        cmocka_unit_test(test_closed_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
