// SPDX-License-Identifier: Apache-2.0
// Timestamps: by the GPU's clock where it tells the time, else by the end of command buffers.
#include "drivers/metal/device.h"

enum { SIZE = 4096, TIMES = 3 };

static uint64_t device_now(keel_device_t *device)
{
    keel_clock_pair_t pair;
    assert_null(keel_device_clock(device, &pair));
    return pair.device_ns;
}

// Three times around two fills: one can be written where it belongs, the others not.
static keel_point_t times_submit(keel_device_t *device, keel_buffer_t *x, keel_buffer_t *times)
{
    keel_op_t ops[] = {
        keel_op_timestamp(keel_span(times, 0, 8)),  keel_op_barrier(),
        keel_op_fill(keel_whole(x), 1, 1),          keel_op_barrier(),
        keel_op_timestamp(keel_span(times, 8, 8)),  keel_op_barrier(),
        keel_op_fill(keel_whole(x), 0x1234, 2),     keel_op_barrier(),
        keel_op_timestamp(keel_span(times, 16, 8)),
    };
    keel_point_t done;
    assert_null(keel_queue_submit(keel_device_queue(device, 0), KEEL_NO_WAITS, ops,
                                  sizeof ops / sizeof *ops, KEEL_NO_SIGNALS, &done));
    return done;
}

static void times_check(keel_device_t *device)
{
    keel_buffer_t *x = buffer_create(device, SIZE), *times = buffer_create(device, SIZE);
    uint64_t before = device_now(device), seen[TIMES];
    ok(times_submit(device, x, times));
    uint64_t after = device_now(device);
    assert_null(keel_buffer_read(times, 0, seen, sizeof seen));
    if (before > seen[0] || seen[0] > seen[1] || seen[1] > seen[2] || seen[2] > after)
        fail_msg("%llu: %llu %llu %llu: %llu", (unsigned long long)before,
                 (unsigned long long)seen[0], (unsigned long long)seen[1],
                 (unsigned long long)seen[2], (unsigned long long)after);
    keel_buffer_release(x);
    keel_buffer_release(times);
}

// One command buffer: the host has no part in it.
static void by_the_gpu(void)
{
    keel_device_t *device = device_open();
    times_check(device);
    assert_int_equal(sim_sent("commit"), 2); // the first one tries the clock
    assert_int_equal(sim_sent("resolveCounters:inRange:destinationBuffer:destinationOffset:"),
                     TIMES);
    assert_int_equal(sim_sent("encodeSignalEvent:value:"), TIMES); // between sample and reader
    assert_int_equal(sim_sent("encodeWaitForEvent:value:"), TIMES);
    assert_true(device_now(device) > keel_now_ns() + 1000000000); // its clock is another
    for (int i = 0; i < 300; i++) times_check(device);            // slices are used again
    assert_int_equal(sim_sent("newCounterSampleBufferWithDescriptor:error:"), 1);
    device_close(device);
}

static void by_command_buffers(void)
{
    keel_device_t *device = device_open();
    times_check(device);
    assert_int_equal(sim_sent("newCounterSampleBufferWithDescriptor:error:"), 0);
    assert_true(sim_sent("GPUEndTime") > 0);
    device_close(device);
}

// It is noticed before anything is written, and the host has the clock.
static void all_zero(void)
{
    keel_device_t *device = device_open();
    keel_buffer_t *x = buffer_create(device, SIZE), *times = buffer_create(device, SIZE);
    uint64_t before = device_now(device), seen[TIMES];
    ok(times_submit(device, x, times));
    assert_null(keel_buffer_read(times, 0, seen, sizeof seen));
    for (int i = 0; i < TIMES; i++) assert_in_range(seen[i], before, device_now(device));
    times_check(device);
    assert_int_equal(sim_sent("resolveCounters:inRange:destinationBuffer:destinationOffset:"), 0);
    keel_buffer_release(x);
    keel_buffer_release(times);
    device_close(device);
}

// What the application writes behind a timestamp stays, also in the first submission.
static void overwritten(void)
{
    keel_device_t *device = device_open();
    keel_buffer_t *times = buffer_create(device, SIZE);
    keel_op_t ops[] = {keel_op_fill(keel_whole(times), 9, 1), keel_op_barrier(),
                       keel_op_timestamp(keel_span(times, 0, 8)), keel_op_barrier(),
                       keel_op_fill(keel_whole(times), 0, 1)};
    keel_point_t done;
    uint64_t seen = 9;
    assert_null(keel_queue_submit(keel_device_queue(device, 0), KEEL_NO_WAITS, ops,
                                  sizeof ops / sizeof *ops, KEEL_NO_SIGNALS, &done));
    ok(done);
    assert_null(keel_buffer_read(times, 0, &seen, sizeof seen));
    assert_int_equal(seen, 0);
    keel_buffer_release(times);
    device_close(device);
}

// There is no buffer for samples: the times are the host's reading of the GPU's clock.
static void no_samples(void)
{
    keel_device_t *device = device_open();
    times_check(device);
    assert_int_equal(sim_sent("resolveCounters:inRange:destinationBuffer:destinationOffset:"), 0);
    device_close(device);
}

// There is no command buffer for a timestamp. The next submission is a copy to the same GPU, opened
// once more, and has no times.
static void not_begun(void)
{
    keel_device_t *device = device_open(), *other = device_open();
    keel_buffer_t *x = buffer_create(device, SIZE), *y = buffer_create(other, SIZE);
    keel_status_t status =
        wait_for(submit(device, KEEL_NO_WAITS, keel_op_timestamp(keel_span(x, 0, 8))));
    assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
    keel_status_release(status);
    ok(submit(device, KEEL_NO_WAITS, keel_op_copy(keel_whole(x), keel_whole(y))));
    assert_int_equal(sim_sent("setSampleBuffer:"), 0);
    keel_buffer_release(x);
    keel_buffer_release(y);
    keel_device_release(other);
    device_close(device);
}

#define TEST(name, settings)                                                                       \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        run_with(settings, name);                                                                  \
    }
TEST(by_the_gpu, "seed=2 residency=1")
TEST(by_command_buffers, "samples=0")
TEST(all_zero, "samples=2")
TEST(overwritten, "samples=2")
TEST(not_begun, "fail=commandBufferWithUnretainedReferences/1")
TEST(no_samples, "fail=newCounterSampleBufferWithDescriptor:error:/1+")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_the_gpu), cmocka_unit_test(test_by_command_buffers),
        cmocka_unit_test(test_all_zero),   cmocka_unit_test(test_no_samples),
        cmocka_unit_test(test_not_begun),  cmocka_unit_test(test_overwritten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
