// SPDX-License-Identifier: Apache-2.0
// Split barriers.
#include "suite/suite.h"

#define EVENTS .needs = KEEL_CAP_EXECUTES | KEEL_CAP_EVENTS

static keel_op_t slow(keel_buffer_t *word, uint32_t us)
{
    return op_kernel("slow", 1, &us, 4, KEEL_BIND(word));
}

// What follows the wait starts after all that came before the set.
TEST(event, orders, EVENTS)
{
    keel_buffer_t *x = new_buffer(4), *y = new_buffer(4), *z = new_buffer(4);
    keel_recording_t *recording =
        RECORD(0, slow(x, 2000), keel_op_event_set(0), keel_op_fill(keel_whole(z), 7, 4),
               keel_op_event_wait(0), keel_op_copy(keel_whole(x), keel_whole(y)));
    for (uint32_t i = 1; i <= 10; i++) {
        row("round %u", i);
        reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
        CHECK_EQ(buffer_u32(y, 0), i);
        CHECK_EQ(buffer_u32(z, 0), 7);
    }
}

TEST(event, several, EVENTS)
{
    keel_buffer_t *a = new_buffer(4), *b = new_buffer(4), *out = new_buffer(8);
    keel_recording_t *recording =
        RECORD(0, slow(a, 3000), keel_op_event_set(5), slow(b, 1000), keel_op_event_set(0),
               keel_op_event_wait(5), keel_op_copy(keel_whole(a), keel_span(out, 0, 4)),
               keel_op_event_wait(0), keel_op_copy(keel_whole(b), keel_span(out, 4, 4)));
    for (uint32_t i = 1; i <= 5; i++) {
        row("round %u", i);
        reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
        CHECK_EQ(buffer_u32(out, 0), i);
        CHECK_EQ(buffer_u32(out, 1), i);
    }
}

TEST(event, waited_for_twice, EVENTS)
{
    keel_buffer_t *x = new_buffer(4), *y = new_buffer(8);
    reach(submit(keel_op_execute(
        RECORD(0, slow(x, 1000), keel_op_event_set(1), keel_op_event_wait(1),
               keel_op_copy(keel_whole(x), keel_span(y, 0, 4)), keel_op_event_wait(1),
               keel_op_copy(keel_whole(x), keel_span(y, 4, 4))),
        KEEL_NO_BINDINGS)));
    CHECK_EQ(buffer_u32(y, 0), 1);
    CHECK_EQ(buffer_u32(y, 1), 1);
}

TEST(event, never_waited_for, EVENTS)
{
    reach(submit(keel_op_execute(RECORD(0, keel_op_event_set(3)), KEEL_NO_BINDINGS)));
}

TEST(event, many, EVENTS)
{
    enum { N = 100 };
    keel_op_t ops[4 * N];
    keel_buffer_t *x = new_buffer(4 * N), *y = new_buffer(4 * N);
    for (uint32_t i = 0; i < N; i++) {
        ops[2 * i] = keel_op_fill(keel_span(x, 4 * i, 4), i + 1, 4);
        ops[2 * i + 1] = keel_op_event_set(i);
    }
    for (uint32_t i = 0; i < N; i++) {
        uint32_t e = N - 1 - i;
        ops[2 * N + 2 * i] = keel_op_event_wait(e);
        ops[2 * N + 2 * i + 1] = keel_op_copy(keel_span(x, 4 * e, 4), keel_span(y, 4 * e, 4));
    }
    reach(submit(keel_op_execute(new_recording(0, ops, 4 * N), KEEL_NO_BINDINGS)));
    for (uint32_t i = 0; i < N; i++) CHECK_EQ(buffer_u32(y, i), i + 1);
}

TEST(event, in_a_block, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_EVENTS | KEEL_CAP_BRANCHES)
{
    keel_buffer_t *w = new_buffer(16), *y = new_buffer(4);
    buffer_put(w, 0, &(uint32_t){5}, 4);
    keel_op_t down = keel_op_dispatch(kernel("count_down"), keel_groups(1, 1, 1), NULL, 0,
                                      KEEL_BIND(keel_span(w, 0, 8)));
    reach(submit(
        keel_op_execute(RECORD(0, keel_op_while(keel_span(w, 0, 4)), down, keel_op_event_set(0),
                               keel_op_event_wait(0),
                               keel_op_copy(keel_span(w, 4, 4), keel_whole(y)), keel_op_end()),
                        KEEL_NO_BINDINGS)));
    CHECK_EQ(buffer_u32(y, 0), 5);
}

// What lies between set and wait may run at the same time as what came before the set.
TEST(event, is_a_split_barrier, EVENTS, .driver = "cpu")
{
    keel_device_t *device = open_device("cpu://?threads=2");
    keel_buffer_t *arrived = new_buffer_on(device, 4);
    buffer_put(arrived, 0, &(uint32_t){0}, 4);
    uint32_t two = 2;
    keel_op_t meet = keel_op_dispatch(kernel_on(device, "meet"), keel_groups(1, 1, 1), &two, 4,
                                      KEEL_BIND(arrived));
    keel_op_t ops[] = {meet, keel_op_event_set(0), meet, keel_op_event_wait(0)};
    keel_recording_t *recording = NULL;
    keel_point_t done;
    TRY(keel_recording_create(device, NULL, &recording));
    OWN(recording);
    TRY(keel_recording_add(recording, ops, 4));
    TRY(keel_recording_end(recording));
    TRY(keel_queue_execute(keel_device_queue(device, 0), KEEL_NO_WAITS, recording, KEEL_NO_BINDINGS,
                           &done));
    reach(done);
}

static void refused(const keel_op_t *ops, size_t count)
{
    keel_recording_t *recording = NULL;
    TRY(keel_recording_create(the_device(), NULL, &recording));
    OWN(recording);
    keel_status_t status = keel_recording_add(recording, ops, count);
    if (!status) status = keel_recording_end(recording);
    FAILS_SAYING(KEEL_FAILED_PRECONDITION, "event", status);
}

#define REFUSED(...)                                                                               \
    refused((const keel_op_t[]){__VA_ARGS__},                                                      \
            sizeof((const keel_op_t[]){__VA_ARGS__}) / sizeof(keel_op_t))

TEST(event, rules, .needs = KEEL_CAP_EVENTS | KEEL_CAP_BRANCHES)
{
    keel_ref_t v = keel_whole(new_buffer(4));
    REFUSED(keel_op_event_wait(0));
    REFUSED(keel_op_event_wait(0), keel_op_event_set(0));
    REFUSED(keel_op_event_set(2), keel_op_event_set(2));
    REFUSED(keel_op_event_set(2), keel_op_event_wait(1));
    REFUSED(keel_op_event_set(0), keel_op_if(v), keel_op_event_wait(0), keel_op_end());
    REFUSED(keel_op_if(v), keel_op_event_set(0), keel_op_else(), keel_op_event_wait(0),
            keel_op_end());
    REFUSED(keel_op_if(v), keel_op_event_set(0), keel_op_end(), keel_op_event_wait(0));
}
