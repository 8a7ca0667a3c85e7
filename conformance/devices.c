// SPDX-License-Identifier: Apache-2.0
// Several devices in one process: points and failures across them.
#include "suite/suite.h"

static keel_semaphore_t *semaphore_of(keel_device_t *device)
{
    keel_semaphore_t *semaphore = NULL;
    TRY(keel_semaphore_create(device, NULL, &semaphore));
    OWN(semaphore);
    return semaphore;
}

// The partners that the device under test is tried with: another of its kind, and the cpu.
static const char *partner(int i)
{
    return i ? "cpu://?threads=1" : the_partner();
}

TEST(devices, reach)
{
    keel_reach_t own, here, there;
    TRY(keel_device_reach(the_device(), the_device(), &own));
    CHECK_EQ(own.how, KEEL_REACH_PEER);
    CHECK_EQ(own.bandwidth, 0);
    for (int i = 0; i < 2; i++) {
        row("with %s", partner(i));
        keel_device_t *other = open_device(partner(i));
        TRY(keel_device_reach(the_device(), other, &here));
        TRY(keel_device_reach(other, the_device(), &there));
        CHECK_EQ(here.how, there.how);
        CHECK_EQ(here.bandwidth, there.bandwidth);
        bool both = the_caps()->bits & keel_device_caps(other)->bits & KEEL_CAP_COPY_ACROSS;
        if (both) CHECK(here.how != KEEL_REACH_NONE);
        if (here.how == KEEL_REACH_PEER) CHECK_EQ(here.bandwidth, 0);
    }
}

TEST(devices, reach_bad_arguments)
{
    keel_reach_t reach;
    keel_device_t *device = the_device();
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device", keel_device_reach(NULL, device, &reach));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "other", keel_device_reach(device, NULL, &reach));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "reach", keel_device_reach(device, device, NULL));
}

TEST(devices, wait_for_a_foreign_point)
{
    for (int i = 0; i < 2; i++) {
        row("with %s", partner(i));
        keel_device_t *other = open_device(partner(i));
        keel_semaphore_t *gate = semaphore_of(other);
        keel_point_t done = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_barrier());
        CHECK(pending(done));
        TRY(keel_queue_signal(keel_device_queue(other, 0), KEEL_NO_WAITS,
                              KEEL_SIGNAL(keel_point(gate, 1)), NULL));
        reach(done);
    }
}

TEST(devices, signal_a_foreign_point)
{
    for (int i = 0; i < 2; i++) {
        row("with %s", partner(i));
        keel_semaphore_t *there = semaphore_of(open_device(partner(i)));
        TRY(keel_queue_signal(the_queue(), KEEL_NO_WAITS, KEEL_SIGNAL(keel_point(there, 4)), NULL));
        reach_value(there, 4);
    }
}

TEST(devices, wait_for_a_foreign_timeline)
{
    for (int i = 0; i < 2; i++) {
        row("with %s", partner(i));
        keel_device_t *other = open_device(partner(i));
        keel_semaphore_t *gate = new_semaphore(0);
        keel_point_t there;
        TRY(keel_queue_signal(keel_device_queue(other, 0), KEEL_AFTER(keel_point(gate, 1)),
                              KEEL_NO_SIGNALS, &there));
        keel_point_t here = submit_after(KEEL_AFTER(there), keel_op_barrier());
        CHECK(pending(here));
        TRY(keel_semaphore_signal(gate, 1));
        reach(here);
    }
}

TEST(devices, ping_pong)
{
    keel_device_t *other = open_device(partner(1));
    keel_semaphore_t *here = new_semaphore(0), *there = semaphore_of(other);
    for (uint64_t i = 1; i <= 100; i++) {
        TRY(keel_queue_signal(the_queue(), KEEL_AFTER(keel_point(there, i - 1)),
                              KEEL_SIGNAL(keel_point(here, i)), NULL));
        TRY(keel_queue_signal(keel_device_queue(other, 0), KEEL_AFTER(keel_point(here, i)),
                              KEEL_SIGNAL(keel_point(there, i)), NULL));
    }
    reach_value(there, 100);
    CHECK_EQ(value_of(here), 100);
}

// Work on memory they share, in turn.
TEST(devices, share_memory, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_IMPORT_HOST)
{
    keel_device_t *other = open_device(partner(1));
    uint32_t *memory = scratch(64);
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = memory, .size = 64};
    keel_buffer_t *here = NULL, *there = NULL;
    TRY(keel_buffer_import(the_device(), &external, NULL, &here));
    OWN(here);
    TRY(keel_buffer_import(other, &external, NULL, &there));
    OWN(there);
    keel_entry_t scale[] = {kernel("scale"), kernel_on(other, "scale")};
    keel_queue_t *queues[] = {the_queue(), keel_device_queue(other, 0)};
    keel_buffer_t *buffers[] = {here, there};
    keel_point_t last = keel_point(keel_queue_timeline(the_queue()), 0);
    uint32_t expected = 0;
    for (uint32_t i = 0; i < 50; i++) {
        uint32_t constants[] = {5, i};
        keel_op_t op = keel_op_dispatch(scale[i % 2], keel_groups(1, 1, 1), constants, 8,
                                        KEEL_BIND(buffers[i % 2]));
        TRY(keel_queue_run(queues[i % 2], KEEL_AFTER(last), op, &last));
        expected = expected * 5 + i;
    }
    reach(last);
    CHECK_EQ(memory[0], expected);
}

TEST(devices, failure_crosses)
{
    for (int i = 0; i < 2; i++) {
        row("with %s", partner(i));
        keel_device_t *other = open_device(partner(i));
        keel_semaphore_t *gate = semaphore_of(other), *back = new_semaphore(0);
        keel_point_t there, here;
        TRY(keel_queue_signal(keel_device_queue(other, 0), KEEL_AFTER(keel_point(gate, 1)),
                              KEEL_NO_SIGNALS, &there));
        TRY(keel_queue_signal(the_queue(), KEEL_AFTER(there), KEEL_SIGNAL(keel_point(back, 1)),
                              &here));
        TRY(keel_semaphore_fail(gate, KEEL_ERROR(KEEL_CORRUPT, "from over there")));
        reach_failure_saying(here, KEEL_CORRUPT, "from over there");
        reach_failure_saying(keel_point(back, 1), KEEL_CORRUPT, "from over there");
    }
}

// The other device closes: what waits for it is told, and ours works on.
TEST(devices, other_one_closes)
{
    for (int i = 0; i < 2; i++) {
        row("with %s", partner(i));
        keel_device_t *other = open_device(partner(i));
        keel_semaphore_t *gate = semaphore_of(other);
        keel_point_t done = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_barrier());
        drop(other);
        reach_failure(done, KEEL_CANCELLED);
        reach(submit(keel_op_barrier()));
    }
}

// Ours closes while work of the other waits for it.
TEST(devices, ours_closes)
{
    keel_device_t *other = open_device(partner(1));
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t there;
    TRY(keel_queue_signal(keel_device_queue(other, 0), KEEL_AFTER(keel_point(gate, 1)),
                          KEEL_NO_SIGNALS, &there));
    drop(the_device());
    reach_failure(there, KEEL_CANCELLED);
    keel_point_t done;
    TRY(keel_queue_signal(keel_device_queue(other, 0), KEEL_NO_WAITS, KEEL_NO_SIGNALS, &done));
    reach(done);
}

// Ours closes while its work waits for the other's point, which comes later.
TEST(devices, signal_after_close)
{
    keel_device_t *other = open_device(partner(1));
    keel_semaphore_t *gate = semaphore_of(other);
    keel_semaphore_t *timeline = keel_semaphore_retain(keel_queue_timeline(the_queue()));
    OWN(timeline);
    keel_point_t done = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_barrier());
    drop(the_device());
    FAILS(KEEL_CANCELLED, keel_wait(KEEL_POINTS(done), KEEL_ALL, 0));
    TRY(keel_semaphore_signal(gate, 1));
    CHECK_EQ(value_of(gate), 1);
}

TEST(devices, many_at_once)
{
    enum { N = 6 };
    keel_device_t *devices[N];
    keel_semaphore_t *s[N];
    for (int i = 0; i < N; i++) {
        devices[i] = open_device(partner(i % 2));
        s[i] = semaphore_of(devices[i]);
    }
    // A ring: each passes on what the one before it signalled.
    for (uint64_t lap = 1; lap <= 20; lap++) {
        for (int i = 0; i < N; i++) {
            keel_point_t before = i ? keel_point(s[i - 1], lap) : keel_point(s[N - 1], lap - 1);
            TRY(keel_queue_signal(keel_device_queue(devices[i], 0), KEEL_AFTER(before),
                                  KEEL_SIGNAL(keel_point(s[i], lap)), NULL));
        }
    }
    reach_value(s[N - 1], 20);
}
