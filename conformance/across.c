// SPDX-License-Identifier: Apache-2.0
// Copies between two devices.
#include <string.h>

#include "suite/suite.h"

#define ACROSS .needs = KEEL_CAP_COPY_ACROSS
#define COPIES .needs = KEEL_CAP_COPY_ACROSS | KEEL_CAP_EXECUTES

// The partners that the device under test is tried with: another of its kind, one whose memory the
// host sees, and one whose memory it does not see.
enum { PARTNERS = 4 };
static const char *partner(int i)
{
    static const char *const others[] = {"cpu://?threads=1", "cpu://inline",
                                         "cpu://?threads=1&memory=discrete"};
    return i ? others[i - 1] : the_partner();
}

// Bytes of either side, by that side's own queue, or by the host.
static void bytes_put(keel_device_t *device, keel_buffer_t *buffer, const void *data, uint64_t size)
{
    keel_buffer_t *host = new_host_buffer_on(device, size);
    keel_point_t done;
    TRY(keel_buffer_write(host, 0, data, size));
    TRY(keel_queue_copy(keel_device_queue(device, 0), KEEL_NO_WAITS, keel_whole(host),
                        keel_span(buffer, 0, size), &done));
    reach(done);
    drop(host);
}

static void bytes_check(keel_device_t *device, keel_buffer_t *buffer, const uint8_t *expected,
                        uint64_t size)
{
    uint8_t *found = scratch(size);
    buffer_get_on(device, buffer, found, size);
    CHECK_MEM(found, expected, size);
    drop(found);
}

// One side of a copy.
typedef struct side_t {
    keel_device_t *device;
    keel_buffer_t *buffer;
} side_t;

static side_t side_of(keel_device_t *device, uint64_t size, bool host)
{
    keel_buffer_t *b = host ? new_host_buffer_on(device, size) : new_buffer_on(device, size);
    return (side_t){device, b};
}

static void copy_between(keel_queue_t *queue, side_t from, side_t to, uint64_t size)
{
    enum { GAP = 3 };
    uint8_t *data = numbered(size), *expected = scratch(size);
    keel_point_t done;
    memset(expected, 0xa5, size);
    bytes_put(to.device, to.buffer, expected, size);
    bytes_put(from.device, from.buffer, data, size);
    uint64_t length = size > 2 * GAP ? size - 2 * GAP : size, at = size > 2 * GAP ? GAP : 0;
    TRY(keel_queue_copy(queue, KEEL_NO_WAITS, keel_span(from.buffer, 2 * at, length),
                        keel_span(to.buffer, at, length), &done));
    reach(done);
    memcpy(expected + at, data + 2 * at, length);
    bytes_check(to.device, to.buffer, expected, size);
    drop(data);
    drop(expected);
}

static void copy_all_ways(keel_device_t *other, uint64_t size)
{
    keel_queue_t *queues[] = {the_queue(), keel_device_queue(other, 0)};
    for (int kinds = 0; kinds < 4; kinds++) {
        side_t ours = side_of(the_device(), size, kinds & 1),
               theirs = side_of(other, size, kinds & 2);
        for (int i = 0; i < 2; i++) {
            copy_between(queues[i], ours, theirs, size);
            copy_between(queues[i], theirs, ours, size);
        }
        drop(ours.buffer);
        drop(theirs.buffer);
    }
}

// Small ones, and in many pieces where there are pieces.
TEST(across, all_ways, COPIES, .seconds = 60)
{
    for (int i = 0; i < PARTNERS; i++) {
        row("with %s", partner(i));
        keel_device_t *other = open_device(partner(i));
        copy_all_ways(other, 1);
        copy_all_ways(other, 5000);
        drop(other);
    }
}

static side_t side_exported(keel_device_t *device, uint64_t size)
{
    keel_buffer_options_t options = {.size = size,
                                     .usage = KEEL_USAGE_TRANSFER | KEEL_USAGE_EXPORT};
    side_t side = {.device = device};
    TRY(keel_buffer_create(device, &options, &side.buffer));
    OWN(side.buffer);
    return side;
}

// Other devices see such memory only if the vendor was told that they may.
TEST(across, exported, .needs = KEEL_CAP_COPY_ACROSS | KEEL_CAP_EXECUTES | KEEL_CAP_EXPORT_FD)
{
    enum { SIZE = 5000 };
    for (int i = 0; i < PARTNERS; i++) {
        row("with %s", partner(i));
        keel_device_t *other = open_device(partner(i));
        keel_queue_t *queues[] = {the_queue(), keel_device_queue(other, 0)};
        bool both = keel_device_caps(other)->bits & KEEL_CAP_EXPORT_FD;
        side_t ours = side_exported(the_device(), SIZE);
        side_t theirs = both ? side_exported(other, SIZE) : side_of(other, SIZE, false);
        for (int q = 0; q < 2; q++) {
            copy_between(queues[q], ours, theirs, SIZE);
            copy_between(queues[q], theirs, ours, SIZE);
        }
        drop(ours.buffer);
        drop(theirs.buffer);
        drop(other);
    }
}

TEST(across, large, COPIES, .seconds = 60, .heavy = true)
{
    enum { SIZE = (17 << 20) + 77 };
    for (int i = 0; i < PARTNERS; i += 3) {
        row("with %s", partner(i));
        keel_device_t *other = open_device(partner(i));
        side_t ours = side_of(the_device(), SIZE, false), theirs = side_of(other, SIZE, false);
        copy_between(i ? the_queue() : keel_device_queue(other, 0), ours, theirs, SIZE);
        drop(other);
        drop(ours.buffer);
        drop(theirs.buffer);
    }
}

TEST(across, nothing, ACROSS)
{
    for (int i = 0; i < PARTNERS; i++) {
        row("with %s", partner(i));
        keel_device_t *other = open_device(partner(i));
        keel_buffer_t *x = new_buffer_on(the_device(), 16), *y = new_buffer_on(other, 0);
        reach(submit(keel_op_copy(keel_span(x, 3, 0), keel_whole(y))));
    }
}

// Barriers order it like all else: each step sees what the one before it wrote, on both devices.
TEST(across, in_order, COPIES)
{
    for (int i = 0; i < PARTNERS; i++) {
        row("with %s", partner(i));
        keel_device_t *other = open_device(partner(i));
        keel_buffer_t *x = new_buffer(4096), *y = new_buffer(4096);
        keel_buffer_t *there = new_buffer_on(other, 4096);
        for (uint8_t round = 1; round < 20; round++) {
            reach(SUBMIT(KEEL_NO_WAITS, keel_op_fill(keel_whole(x), round, 1), keel_op_barrier(),
                         keel_op_copy(keel_whole(x), keel_whole(there)), keel_op_barrier(),
                         keel_op_fill(keel_whole(x), 0xff, 1),
                         keel_op_copy(keel_whole(there), keel_whole(y)), keel_op_barrier(),
                         keel_op_copy(keel_span(y, 0, 8), keel_span(x, 8, 8))));
            check_filled(y, 0, 4096, round);
            check_filled(x, 8, 8, round);
            check_filled(x, 16, 4080, 0xff);
        }
        drop(other);
    }
}

// Points order the two devices: a value goes to and fro, and grows on either side.
TEST(across, to_and_fro, COPIES)
{
    enum { ROUNDS = 30 };
    for (int i = 0; i < PARTNERS; i++) {
        row("with %s", partner(i));
        keel_device_t *other = open_device(partner(i));
        keel_entry_t scale[] = {kernel("scale"), kernel_on(other, "scale")};
        keel_queue_t *queues[] = {the_queue(), keel_device_queue(other, 0)};
        keel_buffer_t *x[] = {new_buffer(4), new_buffer_on(other, 4)};
        keel_point_t last = keel_queue_newest(the_queue());
        uint32_t expected = 0;
        for (uint32_t n = 0; n < ROUNDS; n++) {
            uint32_t constants[] = {3, n}, me = n % 2;
            keel_op_t ops[] = {
                keel_op_dispatch(scale[me], keel_groups(1, 1, 1), constants, 8, KEEL_BIND(x[me])),
                keel_op_barrier(),
                keel_op_copy(keel_whole(x[me]), keel_whole(x[!me])),
            };
            TRY(keel_queue_submit(queues[me], KEEL_AFTER(last), ops, 3, KEEL_NO_SIGNALS, &last));
            expected = expected * 3 + n;
        }
        reach(last);
        CHECK_EQ(buffer_u32(x[0], 0), expected);
        drop(other);
    }
}

// Many at once, by queues of both devices.
TEST(across, many, COPIES, .seconds = 60)
{
    enum { N = 64, SIZE = 4096 };
    for (int i = 0; i < PARTNERS; i++) {
        row("with %s", partner(i));
        keel_device_t *other = open_device(partner(i));
        keel_queue_t *queues[] = {the_queue(), keel_device_queue(other, 0)};
        keel_buffer_t *x = new_buffer(N * SIZE), *y = new_buffer(N * SIZE);
        keel_buffer_t *there = new_buffer_on(other, N * SIZE);
        uint8_t *data = numbered(N * SIZE);
        keel_point_t back[N];
        buffer_put(x, 0, data, N * SIZE);
        for (uint64_t n = 0; n < N; n++) {
            keel_point_t out;
            TRY(keel_queue_copy(queues[n % 2], KEEL_NO_WAITS, keel_span(x, n * SIZE, SIZE),
                                keel_span(there, n * SIZE, SIZE), &out));
            TRY(keel_queue_copy(queues[n / 2 % 2], KEEL_AFTER(out),
                                keel_span(there, n * SIZE, SIZE), keel_span(y, n * SIZE, SIZE),
                                &back[n]));
        }
        for (int n = 0; n < N; n++) reach(back[n]);
        check_bytes(y, 0, data, N * SIZE);
        drop(other);
    }
}

// Work in flight holds the buffers of both sides.
TEST(across, buffers_are_held, COPIES)
{
    for (int i = 0; i < PARTNERS; i++) {
        row("with %s", partner(i));
        keel_device_t *other = open_device(partner(i));
        keel_semaphore_t *gate = new_semaphore(0);
        keel_buffer_t *x = new_buffer_filled(4096, 7), *y = new_buffer(4096);
        keel_buffer_t *there = new_buffer_on(other, 4096);
        keel_point_t done =
            SUBMIT(KEEL_AFTER(keel_point(gate, 1)), keel_op_copy(keel_whole(x), keel_whole(there)),
                   keel_op_barrier(), keel_op_copy(keel_whole(there), keel_whole(y)));
        drop(x);
        drop(there);
        TRY(keel_semaphore_signal(gate, 1));
        reach(done);
        check_filled(y, 0, 4096, 7);
        drop(other);
    }
}

// Memory that comes and goes, on either side.
TEST(across, queue_ordered,
     .needs = KEEL_CAP_COPY_ACROSS | KEEL_CAP_EXECUTES | KEEL_CAP_QUEUE_ALLOCA)
{
    for (int i = 0; i < PARTNERS; i++) {
        row("with %s", partner(i));
        keel_device_t *other = open_device(partner(i));
        keel_buffer_t *x = new_reserved(keel_device_pool(the_device(), 0), 70000);
        keel_buffer_t *there = new_reserved(keel_device_pool(other, 0), 70000);
        keel_buffer_t *y = new_buffer(70000);
        keel_point_t ready, done;
        TRY(keel_queue_run(keel_device_queue(other, 0), KEEL_NO_WAITS, keel_op_alloca(there),
                           &ready));
        done = SUBMIT(KEEL_AFTER(ready), keel_op_alloca(x), keel_op_barrier(),
                      keel_op_fill(keel_whole(x), 9, 1), keel_op_barrier(),
                      keel_op_copy(keel_whole(x), keel_whole(there)), keel_op_barrier(),
                      keel_op_copy(keel_whole(there), keel_whole(y)), keel_op_barrier(),
                      keel_op_dealloca(x));
        TRY(keel_queue_run(keel_device_queue(other, 0), KEEL_AFTER(done), keel_op_dealloca(there),
                           &done));
        reach(done);
        check_filled(y, 0, 70000, 9);
        drop(other);
    }
}

TEST(across, without_memory,
     .needs = KEEL_CAP_COPY_ACROSS | KEEL_CAP_EXECUTES | KEEL_CAP_QUEUE_ALLOCA)
{
    for (int i = 0; i < PARTNERS; i++) {
        row("with %s", partner(i));
        keel_device_t *other = open_device(partner(i));
        keel_buffer_t *x = new_buffer(64), *there = new_reserved(keel_device_pool(other, 0), 64);
        reach_failure_saying(submit(keel_op_copy(keel_whole(x), keel_whole(there))),
                             KEEL_FAILED_PRECONDITION, "no memory");
        reach_failure_saying(submit(keel_op_copy(keel_whole(there), keel_whole(x))),
                             KEEL_FAILED_PRECONDITION, "no memory");
        drop(other);
    }
}

// The owner of imported memory has it back when the last reference is gone.
TEST(across, imported, .needs = KEEL_CAP_COPY_ACROSS | KEEL_CAP_EXECUTES)
{
    keel_device_t *other = open_device(partner(1));
    keel_buffer_t *x = new_buffer_filled(10000, 5);
    for (int round = 0; round < 5; round++) {
        uint8_t *memory = scratch(10000);
        keel_external_buffer_t external = {
            .kind = KEEL_EXTERNAL_HOST, .handle.host = memory, .size = 10000};
        keel_buffer_t *there = NULL;
        TRY(keel_buffer_import(other, &external, NULL, &there));
        OWN(there);
        reach(submit(keel_op_copy(keel_whole(x), keel_whole(there))));
        CHECK_EQ(memory[9999], 5);
        drop(there);
        drop(memory);
    }
}

// A copy from another device that waits for its gate to come to 1.
typedef struct held_t {
    keel_device_t *other;
    keel_semaphore_t *gate;
    keel_buffer_t *x, *there; // filled with ones; on the other device
    keel_point_t done;
} held_t;

static held_t hold_copy(const char *uri)
{
    held_t held = {.other = open_device(uri), .gate = new_semaphore(0)};
    held.x = new_buffer_filled(64, 1);
    held.there = new_buffer_on(held.other, 64);
    held.done = submit_after(KEEL_AFTER(keel_point(held.gate, 1)),
                             keel_op_copy(keel_whole(held.there), keel_whole(held.x)));
    return held;
}

// A failed wait fails the copy, which touches nothing.
TEST(across, failed_wait, COPIES)
{
    for (int i = 0; i < PARTNERS; i++) {
        row("with %s", partner(i));
        held_t held = hold_copy(partner(i));
        TRY(keel_semaphore_fail(held.gate, KEEL_ERROR(KEEL_CORRUPT, "no good")));
        reach_failure_saying(held.done, KEEL_CORRUPT, "no good");
        check_filled(held.x, 0, 64, 1);
        drop(held.other);
    }
}

TEST(across, cancelled, COPIES)
{
    for (int i = 0; i < PARTNERS; i++) {
        row("with %s", partner(i));
        held_t held = hold_copy(partner(i));
        TRY(keel_queue_cancel(held.done, NULL));
        reach_failure(held.done, KEEL_CANCELLED);
        check_filled(held.x, 0, 64, 1);
        drop(held.other);
    }
}

// One submission copies to all the others, in turn. Then each of them can be closed: nothing of the
// copies is left there.
TEST(across, several_others, COPIES)
{
    keel_device_t *others[PARTNERS];
    keel_buffer_t *x = new_buffer(64), *there[PARTNERS];
    keel_op_t ops[2 * PARTNERS];
    for (int i = 0; i < PARTNERS; i++) {
        others[i] = open_device(partner(i));
        there[i] = new_buffer_on(others[i], 64);
        ops[i] = keel_op_copy(keel_span(x, 0, 32), keel_span(there[i], 0, 32));
        ops[PARTNERS + i] = keel_op_copy(keel_span(x, 32, 32), keel_span(there[i], 32, 32));
    }
    keel_point_t done;
    uint8_t *data = numbered(64);
    buffer_put(x, 0, data, 64);
    TRY(keel_queue_submit(the_queue(), KEEL_NO_WAITS, ops, 2 * PARTNERS, KEEL_NO_SIGNALS, &done));
    reach(done);
    for (int i = 0; i < PARTNERS; i++) {
        row("with %s", partner(i));
        bytes_check(others[i], there[i], data, 64);
        drop(others[i]);
    }
}

// The other device closes before the copy begins: it fails, and ours works on.
TEST(across, other_one_closes, COPIES)
{
    for (int i = 0; i < PARTNERS; i++) {
        row("with %s", partner(i));
        held_t held = hold_copy(partner(i));
        drop(held.other);
        TRY(keel_semaphore_signal(held.gate, 1));
        reach_failure_saying(held.done, KEEL_CANCELLED, "closed");
        check_filled(held.x, 0, 64, 1);
        keel_op_t op = keel_op_copy(keel_whole(held.there), keel_whole(held.x));
        FAILS_SAYING(KEEL_FAILED_PRECONDITION, "closed",
                     keel_queue_submit(the_queue(), KEEL_NO_WAITS, &op, 1, KEEL_NO_SIGNALS, NULL));
        reach(submit(keel_op_fill(keel_whole(held.x), 2, 1)));
    }
}

// Either device closes while copies are under way: each of them ends, one way or the other.
static void close_in_flight(int partner_index, bool ours)
{
    enum { N = 20, SIZE = 1 << 20 };
    keel_device_t *here = open_device(the_uri()), *other = open_device(partner(partner_index));
    keel_queue_t *queues[] = {keel_device_queue(here, 0), keel_device_queue(other, 0)};
    keel_buffer_t *x = new_buffer_on(here, SIZE), *there = new_buffer_on(other, SIZE);
    keel_semaphore_t *timelines[2];
    keel_point_t points[N];
    for (int i = 0; i < 2; i++) {
        timelines[i] = keel_semaphore_retain(keel_queue_timeline(queues[i]));
        OWN(timelines[i]);
    }
    for (int i = 0; i < N; i++)
        TRY(keel_queue_copy(queues[i % 2], i ? KEEL_AFTER(points[i - 1]) : KEEL_NO_WAITS,
                            keel_whole(i & 2 ? x : there), keel_whole(i & 2 ? there : x),
                            &points[i]));
    drop(ours ? here : other);
    for (int i = 0; i < N; i++) {
        keel_status_t status = keel_wait(KEEL_POINTS(points[i]), KEEL_ALL, patience());
        if (status) FAILS(KEEL_CANCELLED, status);
    }
    drop(ours ? other : here);
}

TEST(across, closes_in_flight, COPIES, .seconds = 60)
{
    for (int i = 0; i < PARTNERS; i++) {
        row("with %s, which closes", partner(i));
        close_in_flight(i, false);
        row("with %s, and ours closes", partner(i));
        close_in_flight(i, true);
    }
}

// A buffer that a device has copied outlives that device, and the other way round.
TEST(across, device_goes_first, COPIES)
{
    for (int i = 0; i < PARTNERS; i++) {
        row("with %s", partner(i));
        keel_device_t *other = open_device(partner(i));
        keel_buffer_t *x = new_buffer(4096), *there = new_buffer_on(other, 4096);
        for (int round = 0; round < 3; round++) {
            keel_device_t *again = open_device(the_uri());
            keel_buffer_t *y = new_buffer_on(again, 4096);
            keel_point_t done;
            TRY(keel_queue_copy(keel_device_queue(again, 0), KEEL_NO_WAITS, keel_whole(there),
                                keel_whole(y), &done));
            reach(done);
            drop(again);
            reach(submit(keel_op_copy(keel_whole(there), keel_whole(x))));
            drop(y);
        }
        drop(other);
        drop(there);
    }
}

TEST(across, third_device, ACROSS)
{
    keel_device_t *a = open_device(partner(1)), *b = open_device(partner(2));
    keel_buffer_t *x = new_buffer_on(a, 64), *y = new_buffer_on(b, 64);
    keel_op_t op = keel_op_copy(keel_whole(x), keel_whole(y));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "one of these two",
                 keel_queue_submit(the_queue(), KEEL_NO_WAITS, &op, 1, KEEL_NO_SIGNALS, NULL));
}

TEST(across, not_in_recordings, ACROSS)
{
    keel_device_t *other = open_device(partner(1));
    keel_buffer_t *x = new_buffer_on(the_device(), 64), *y = new_buffer_on(other, 64);
    keel_op_t op = keel_op_copy(keel_whole(x), keel_whole(y));
    keel_recording_t *recording = NULL;
    TRY(keel_recording_create(the_device(), NULL, &recording));
    OWN(recording);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "recordings", keel_recording_add(recording, &op, 1));
}

TEST(across, bad_arguments, ACROSS)
{
    keel_device_t *other = open_device(partner(1));
    keel_buffer_t *x = new_buffer_on(the_device(), 64), *y = new_buffer_on(other, 32);
    keel_buffer_options_t options = {.size = 64, .access = KEEL_ACCESS_READ, .name = "constant"};
    keel_buffer_t *constant = NULL;
    TRY(keel_buffer_create(other, &options, &constant));
    OWN(constant);
    const struct {
        keel_code_t code;
        const char *says;
        keel_op_t op;
    } rows[] = {
        {KEEL_INVALID_ARGUMENT, "target", keel_op_copy(keel_whole(y), keel_slot(0, 0, 32))},
        {KEEL_INVALID_ARGUMENT, "source", keel_op_copy(keel_slot(0, 0, 32), keel_whole(y))},
        {KEEL_INVALID_ARGUMENT, "64", keel_op_copy(keel_whole(x), keel_whole(y))},
        {KEEL_OUT_OF_RANGE, "32", keel_op_copy(keel_whole(x), keel_span(y, 0, 64))},
        {KEEL_OUT_OF_RANGE, "source", keel_op_copy(keel_span(y, 33, 1), keel_span(x, 0, 1))},
        {KEEL_PERMISSION_DENIED, "constant", keel_op_copy(keel_whole(x), keel_whole(constant))},
    };
    for (size_t i = 0; i < KEEL_LENGTH(rows); i++) {
        row("%zu", i);
        FAILS_SAYING(
            rows[i].code, rows[i].says,
            keel_queue_submit(the_queue(), KEEL_NO_WAITS, &rows[i].op, 1, KEEL_NO_SIGNALS, NULL));
    }
}

// Other operations stay on their device; and a device that makes no such copies says so.
TEST(across, only_copies)
{
    keel_buffer_t *x = new_buffer_on(the_device(), 64);
    keel_buffer_t *there = new_buffer_on(open_device(partner(1)), 64);
    keel_op_t op = keel_op_fill(keel_whole(there), 0, 1);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "another device",
                 keel_queue_submit(the_queue(), KEEL_NO_WAITS, &op, 1, KEEL_NO_SIGNALS, NULL));
    if (the_caps()->bits & KEEL_CAP_COPY_ACROSS) return;
    op = keel_op_copy(keel_whole(x), keel_whole(there));
    FAILS_SAYING(KEEL_UNSUPPORTED, "KEEL_CAP_COPY_ACROSS",
                 keel_queue_submit(the_queue(), KEEL_NO_WAITS, &op, 1, KEEL_NO_SIGNALS, NULL));
}
