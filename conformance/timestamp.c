// SPDX-License-Identifier: Apache-2.0
// Timestamps written by the device.
#include "suite/suite.h"

#define STAMPS .needs = KEEL_CAP_EXECUTES | KEEL_CAP_TIMESTAMPS

TEST(timestamp, between_clock_pairs, STAMPS)
{
    keel_buffer_t *t = new_buffer(16);
    keel_clock_pair_t before, after;
    TRY(keel_device_clock(the_device(), &before));
    reach(submit(keel_op_timestamp(keel_span(t, 8, 8))));
    TRY(keel_device_clock(the_device(), &after));
    CHECK_GE(buffer_u64(t, 1), before.device_ns);
    CHECK_LE(buffer_u64(t, 1), after.device_ns);
    CHECK_EQ(buffer_u64(t, 0), 0);
}

// Written once all before the last barrier has ended.
TEST(timestamp, measures_work, STAMPS)
{
    keel_buffer_t *t = new_buffer(16), *word = new_buffer(4);
    uint32_t us = 5000;
    keel_op_t slow =
        keel_op_dispatch(kernel("slow"), keel_groups(1, 1, 1), &us, 4, KEEL_BIND(word));
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_timestamp(keel_span(t, 0, 8)), keel_op_barrier(), slow,
                 keel_op_barrier(), keel_op_timestamp(keel_span(t, 8, 8))));
    CHECK_GE(buffer_u64(t, 1) - buffer_u64(t, 0), 4990000);
    CHECK_LE(buffer_u64(t, 1) - buffer_u64(t, 0), 5000000000);
}

TEST(timestamp, monotone_in_a_recording, STAMPS)
{
    enum { N = 100 };
    keel_buffer_t *t = new_buffer(8 * N);
    keel_op_t ops[2 * N];
    for (uint32_t i = 0; i < N; i++) {
        ops[2 * i] = keel_op_timestamp(keel_span(t, 8 * i, 8));
        ops[2 * i + 1] = keel_op_barrier();
    }
    keel_recording_t *recording = new_recording(0, ops, 2 * N);
    uint64_t last = 0, times[N];
    for (int round = 0; round < 3; round++) {
        reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
        buffer_get(t, 0, times, sizeof times);
        for (uint32_t i = 0; i < N; i++) {
            CHECK_GE(times[i], last);
            last = times[i];
        }
    }
}

TEST(timestamp, through_a_slot, STAMPS)
{
    keel_buffer_t *t = new_buffer(64);
    keel_op_t op = keel_op_timestamp(keel_slot(0, 8, 8));
    reach(submit(keel_op_execute(new_recording(1, &op, 1), KEEL_BIND(keel_span(t, 16, 24)))));
    CHECK_NE(buffer_u64(t, 3), 0);
    CHECK_EQ(buffer_u64(t, 2), 0);
    CHECK_EQ(buffer_u64(t, 4), 0);
}

TEST(timestamp, bad_targets, STAMPS)
{
    keel_buffer_t *t = new_buffer(64);
    keel_queue_t *q = the_queue();
    keel_op_t longer = keel_op_timestamp(keel_span(t, 0, 8));
    longer.as.timestamp.target.length = 16;
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "target",
                 keel_queue_run(q, KEEL_NO_WAITS, keel_op_timestamp(keel_span(t, 64, 8)), NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "target",
                 keel_queue_run(q, KEEL_NO_WAITS, keel_op_timestamp(keel_span(t, 4, 8)), NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "target",
                 keel_queue_run(q, KEEL_NO_WAITS, keel_op_timestamp(keel_span(NULL, 0, 8)), NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "target", keel_queue_run(q, KEEL_NO_WAITS, longer, NULL));
}
