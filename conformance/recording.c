// SPDX-License-Identifier: Apache-2.0
// Recordings: their life, slots, limits, several in flight.
#include "suite/suite.h"

#define RUNS .needs = KEEL_CAP_EXECUTES

static keel_recording_t *open_recording(uint32_t slots)
{
    keel_recording_options_t options = {.slots = slots, .name = "recorded"};
    keel_recording_t *recording = NULL;
    TRY(keel_recording_create(the_device(), &options, &recording));
    OWN(recording);
    return recording;
}

static keel_status_t add(keel_recording_t *recording, keel_op_t op)
{
    return keel_recording_add(recording, &op, 1);
}

static keel_status_t execute(keel_recording_t *recording, keel_refs_t bindings)
{
    return keel_queue_execute(the_queue(), KEEL_NO_WAITS, recording, bindings, NULL);
}

static keel_op_t tally(keel_ref_t word)
{
    return op_kernel("tally", 1, NULL, 0, KEEL_BIND(word));
}

TEST(recording, empty)
{
    keel_recording_t *recording = open_recording(0);
    CHECK_EQ(keel_recording_count(recording), 0);
    TRY(keel_recording_end(recording));
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
}

TEST(recording, created_without_options)
{
    keel_recording_t *recording = NULL;
    TRY(keel_recording_create(the_device(), NULL, &recording));
    OWN(recording);
    TRY(keel_recording_end(recording));
}

TEST(recording, create_bad_arguments)
{
    keel_recording_t *recording = NULL;
    keel_recording_options_t options = {.slots = the_caps()->max_slots + 1};
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device", keel_recording_create(NULL, NULL, &recording));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "recording",
                 keel_recording_create(the_device(), NULL, NULL));
    if (options.slots) {
        FAILS_SAYING(KEEL_OUT_OF_RANGE, "slots",
                     keel_recording_create(the_device(), &options, &recording));
    }
    CHECK(recording == NULL);
}

TEST(recording, counts_its_operations)
{
    keel_recording_t *recording = open_recording(0);
    keel_buffer_t *x = new_buffer(16);
    keel_op_t ops[] = {keel_op_fill(keel_whole(x), 1, 1), keel_op_barrier(),
                       keel_op_fill(keel_whole(x), 2, 1)};
    TRY(keel_recording_add(recording, ops, 3));
    CHECK_EQ(keel_recording_count(recording), 3);
    TRY(keel_recording_add(recording, NULL, 0));
    TRY(keel_recording_add(recording, ops, 1));
    CHECK_EQ(keel_recording_count(recording), 4);
    TRY(keel_recording_end(recording));
    CHECK_EQ(keel_recording_count(recording), 4);
}

// Nothing is allocated per operation: only now and then, for all that comes after.
TEST(recording, adding_allocates_little)
{
    enum { N = 10000 };
    keel_recording_t *recording = open_recording(0);
    keel_op_t op = keel_op_fill(keel_whole(new_buffer(16)), 1, 1);
    TRY(add(recording, op));
    uint64_t before = allocations();
    for (int i = 0; i < N; i++) TRY(add(recording, op));
    CHECK_LE(allocations() - before, 40);
}

TEST(recording, add_bad_arguments)
{
    keel_recording_t *recording = open_recording(0);
    keel_op_t op = keel_op_barrier();
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "recording", keel_recording_add(NULL, &op, 1));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "ops", keel_recording_add(recording, NULL, 1));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "recording", keel_recording_end(NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "recording", keel_recording_prepare(NULL, the_queue()));
}

// An error names the operation; those before it are recorded, it and the rest are not.
TEST(recording, add_stops_at_the_bad_one, RUNS)
{
    keel_recording_t *recording = open_recording(0);
    keel_buffer_t *x = new_buffer(16);
    keel_op_t ops[] = {
        keel_op_fill(keel_span(x, 0, 4), 1, 1), keel_op_fill(keel_span(x, 4, 4), 1, 1),
        keel_op_fill(keel_span(x, 12, 8), 1, 1), keel_op_fill(keel_span(x, 8, 4), 1, 1)};
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "[2]", keel_recording_add(recording, ops, 4));
    CHECK_EQ(keel_recording_count(recording), 2);
    TRY(keel_recording_end(recording));
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
    check_filled(x, 0, 8, 1);
    check_filled(x, 8, 8, 0);
}

TEST(recording, refuses_what_belongs_in_submissions, .needs = KEEL_CAP_QUEUE_ALLOCA)
{
    keel_recording_t *recording = open_recording(0), *other = RECORD(0, keel_op_barrier());
    keel_buffer_t *x = new_reserved(new_pool(0, 0), 16);
    keel_op_t ops[] = {keel_op_alloca(x),
                       keel_op_dealloca(x),
                       keel_op_read(NULL, 0, keel_whole(x)),
                       keel_op_write(keel_whole(x), NULL, 0),
                       keel_op_execute(other, KEEL_NO_BINDINGS),
                       keel_op_host_call(NULL, NULL)};
    for (size_t i = 0; i < COUNT(ops); i++) {
        row("operation kind %d", ops[i].kind);
        FAILS(KEEL_INVALID_ARGUMENT, add(recording, ops[i]));
    }
    CHECK_EQ(keel_recording_count(recording), 0);
}

TEST(recording, closed_to_changes)
{
    keel_recording_t *recording = RECORD(0, keel_op_barrier());
    FAILS(KEEL_FAILED_PRECONDITION, add(recording, keel_op_barrier()));
    FAILS(KEEL_FAILED_PRECONDITION, keel_recording_end(recording));
    CHECK_EQ(keel_recording_count(recording), 1);
}

TEST(recording, not_executed_while_open)
{
    keel_recording_t *recording = open_recording(0);
    FAILS_SAYING(KEEL_FAILED_PRECONDITION, "recorded", execute(recording, KEEL_NO_BINDINGS));
    FAILS(KEEL_FAILED_PRECONDITION, keel_recording_prepare(recording, the_queue()));
    TRY(keel_recording_end(recording));
    TRY(execute(recording, KEEL_NO_BINDINGS));
}

TEST(recording, execute_bad_arguments)
{
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "recording", execute(NULL, KEEL_NO_BINDINGS));
}

TEST(recording, foreign_objects_are_refused)
{
    keel_device_t *other = open_device(the_uri());
    keel_recording_t *recording = open_recording(0), *here = RECORD(0, keel_op_barrier());
    keel_buffer_t *there = new_buffer_on(other, 16);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device",
                 add(recording, keel_op_fill(keel_whole(there), 0, 1)));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device",
                 keel_queue_execute(keel_device_queue(other, 0), KEEL_NO_WAITS, here,
                                    KEEL_NO_BINDINGS, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device",
                 keel_recording_prepare(here, keel_device_queue(other, 0)));
}

TEST(recording, executed_often, RUNS)
{
    keel_buffer_t *word = new_buffer(4);
    keel_recording_t *recording = RECORD(0, tally(keel_whole(word)));
    for (uint32_t i = 1; i <= 20; i++) {
        reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
        CHECK_EQ(buffer_u32(word, 0), i);
    }
}

TEST(recording, several_times_in_one_submission, RUNS)
{
    keel_buffer_t *x = new_buffer(4), *y = new_buffer(4);
    keel_recording_t *recording = RECORD(1, tally(keel_slot(0, 0, 4)));
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_execute(recording, KEEL_BIND(x)), keel_op_barrier(),
                 keel_op_execute(recording, KEEL_BIND(x)),
                 keel_op_execute(recording, KEEL_BIND(y))));
    CHECK_EQ(buffer_u32(x, 0), 2);
    CHECK_EQ(buffer_u32(y, 0), 1);
}

// From the same start, more or less of a buffer.
TEST(recording, whole_slots_of_other_lengths, RUNS)
{
    static const uint64_t lengths[] = {64, 16, 48, 16, 64};
    keel_buffer_t *x = new_buffer(64), *y = new_buffer(64);
    keel_ref_t from = keel_slot(0, 0, KEEL_WHOLE), to = keel_slot(1, 0, KEEL_WHOLE);
    keel_recording_t *recording =
        RECORD(2, keel_op_fill(from, 7, 1), keel_op_barrier(), keel_op_copy(from, to));
    for (size_t i = 0; i < COUNT(lengths); i++) {
        uint64_t length = lengths[i];
        row("%llu bytes", (unsigned long long)length);
        reach(SUBMIT(KEEL_NO_WAITS, keel_op_fill(keel_whole(x), 1, 1),
                     keel_op_fill(keel_whole(y), 2, 1), keel_op_barrier(),
                     keel_op_execute(recording,
                                     KEEL_BIND(keel_span(x, 0, length), keel_span(y, 0, length)))));
        check_filled(x, 0, length, 7), check_filled(y, 0, length, 7);
        check_filled(x, length, 64 - length, 1), check_filled(y, length, 64 - length, 2);
    }
}

// In flight several times at once, with other bindings each.
TEST(recording, several_in_flight, RUNS)
{
    enum { N = 30 };
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *words = new_buffer(N * 4);
    keel_recording_t *recording =
        RECORD(1, tally(keel_slot(0, 0, 4)), keel_op_barrier(), tally(keel_slot(0, 0, 4)));
    keel_point_t done[N];
    for (uint32_t i = 0; i < N; i++) {
        done[i] = submit_after(KEEL_AFTER(keel_point(gate, 1)),
                               keel_op_execute(recording, KEEL_BIND(keel_span(words, i * 4, 4))));
    }
    TRY(keel_semaphore_signal(gate, 1));
    TRY(keel_wait(keel_points(done, N), KEEL_ALL, patience()));
    for (uint32_t i = 0; i < N; i++) CHECK_EQ(buffer_u32(words, i), 2);
}

TEST(recording, one_shot, RUNS)
{
    keel_recording_options_t options = {.one_shot = true, .name = "once"};
    keel_recording_t *recording = NULL;
    keel_buffer_t *word = new_buffer(4);
    TRY(keel_recording_create(the_device(), &options, &recording));
    OWN(recording);
    TRY(add(recording, tally(keel_whole(word))));
    TRY(keel_recording_end(recording));
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
    FAILS_SAYING(KEEL_FAILED_PRECONDITION, "once", execute(recording, KEEL_NO_BINDINGS));
    CHECK_EQ(buffer_u32(word, 0), 1);
}

TEST(recording, one_shot_twice_in_one_submission)
{
    keel_recording_options_t options = {.one_shot = true};
    keel_recording_t *recording = NULL;
    TRY(keel_recording_create(the_device(), &options, &recording));
    OWN(recording);
    TRY(keel_recording_end(recording));
    keel_op_t ops[] = {keel_op_execute(recording, KEEL_NO_BINDINGS),
                       keel_op_execute(recording, KEEL_NO_BINDINGS)};
    FAILS(KEEL_FAILED_PRECONDITION,
          keel_queue_submit(the_queue(), KEEL_NO_WAITS, ops, 2, KEEL_NO_SIGNALS, NULL));
    // Nothing was submitted, so its one shot is still there.
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
}

TEST(recording, prepare, RUNS)
{
    keel_buffer_t *word = new_buffer(4);
    keel_recording_t *recording = RECORD(0, tally(keel_whole(word)));
    TRY(keel_recording_prepare(recording, the_queue()));
    TRY(keel_recording_prepare(recording, the_queue()));
    TRY(keel_recording_prepare(recording, new_queue(0)));
    CHECK_EQ(buffer_u32(word, 0), 0);
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
    CHECK_EQ(buffer_u32(word, 0), 1);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "queue", keel_recording_prepare(recording, NULL));
}

// Whatever it refers to lives as long as the recording; and the recording as long as it is in
// flight.
TEST(recording, retains_what_it_names, RUNS)
{
    keel_buffer_t *x = new_buffer(16), *y = new_buffer(16);
    uint32_t constants[] = {0, 7};
    keel_recording_t *recording = RECORD(
        0, keel_op_dispatch(kernel("poke"), keel_groups(1, 1, 1), constants, 8, KEEL_BIND(x)),
        keel_op_barrier(), keel_op_copy(keel_whole(x), keel_whole(y)));
    drop(x);
    drop(kernels());
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
    CHECK_EQ(buffer_u32(y, 0), 7);
}

TEST(recording, released_in_flight, RUNS)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *word = new_buffer(4), *bound = new_buffer(4), *out = new_buffer(8);
    keel_recording_t *recording =
        RECORD(2, tally(keel_whole(word)), tally(keel_slot(0, 0, 4)), keel_op_barrier(),
               keel_op_copy(keel_whole(word), keel_slot(1, 0, 4)),
               keel_op_copy(keel_slot(0, 0, 4), keel_slot(1, 4, 4)));
    keel_point_t done = submit_after(KEEL_AFTER(keel_point(gate, 1)),
                                     keel_op_execute(recording, KEEL_BIND(bound, out)));
    drop(recording);
    drop(word);
    drop(bound);
    drop(kernels());
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
    CHECK_EQ(buffer_u32(out, 0), 1);
    CHECK_EQ(buffer_u32(out, 1), 1);
}

TEST(recording, released_while_open)
{
    keel_recording_t *recording = open_recording(0);
    TRY(add(recording, keel_op_fill(keel_whole(new_buffer(16)), 0, 1)));
    TRY(add(recording, keel_op_group_begin("open")));
    drop(recording);
    keel_recording_release(NULL);
}

TEST(recording, retain_and_release)
{
    keel_recording_t *recording = RECORD(0, keel_op_barrier());
    CHECK(keel_recording_retain(recording) == recording);
    keel_recording_release(recording);
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
}

TEST(recording, slots, RUNS)
{
    keel_buffer_t *x = new_buffer(64), *y = new_buffer(64);
    keel_recording_t *recording =
        RECORD(3, keel_op_fill(keel_slot(0, 0, 8), 1, 1), keel_op_fill(keel_slot(2, 4, 4), 2, 1));
    // Offsets of the recording count from where the table's entry begins; slot 1 is not used.
    reach(submit(keel_op_execute(
        recording, KEEL_BIND(keel_span(x, 16, 8), keel_span(NULL, 0, 0), keel_span(y, 32, 8)))));
    uint8_t expected[64] = {0};
    memset(expected + 16, 1, 8);
    check_bytes(x, 0, expected, 64);
    memset(expected, 0, 64);
    memset(expected + 36, 2, 4);
    check_bytes(y, 0, expected, 64);
}

TEST(recording, slots_and_buffers_mixed, RUNS)
{
    int32_t in[16];
    for (int i = 0; i < 16; i++) in[i] = -i;
    keel_buffer_t *x = new_buffer_of(in, 64), *y = new_buffer(64), *z = new_buffer(64);
    keel_recording_t *recording =
        RECORD(1, keel_op_dispatch(kernel("abs"), keel_groups(1, 1, 1), NULL, 0,
                                   KEEL_BIND(x, keel_slot(0, 0, KEEL_WHOLE))));
    reach(submit(keel_op_execute(recording, KEEL_BIND(y))));
    reach(submit(keel_op_execute(recording, KEEL_BIND(z))));
    CHECK_EQ(buffer_u32(y, 15), 15);
    CHECK_EQ(buffer_u32(z, 15), 15);
}

// KEEL_WHOLE of a slot is what follows in the table's entry, whatever was bound.
TEST(recording, whole_of_a_slot, RUNS)
{
    keel_recording_t *recording = RECORD(1, keel_op_fill(keel_slot(0, 4, KEEL_WHOLE), 5, 1));
    static const uint64_t lengths[] = {4, 5, 16, 60};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        row("bound with %llu bytes", (unsigned long long)lengths[i]);
        keel_buffer_t *x = new_buffer(64);
        reach(submit(keel_op_execute(recording, KEEL_BIND(keel_span(x, 2, lengths[i])))));
        check_filled(x, 0, 6, 0);
        check_filled(x, 6, lengths[i] - 4, 5);
        check_filled(x, 2 + lengths[i], 62 - lengths[i], 0);
    }
}

TEST(recording, sixty_four_slots, RUNS)
{
    keel_op_t ops[64];
    keel_ref_t table[64];
    keel_buffer_t *x = new_buffer(64);
    uint8_t expected[64];
    for (uint32_t i = 0; i < 64; i++) {
        ops[i] = keel_op_fill(keel_slot(i, 0, 1), i + 1, 1);
        table[i] = keel_span(x, 63 - i, 1);
        expected[63 - i] = (uint8_t)(i + 1);
    }
    keel_recording_t *recording = new_recording(64, ops, 64);
    reach(submit(keel_op_execute(recording, keel_refs(table, 64))));
    check_bytes(x, 0, expected, 64);
}

TEST(recording, bad_slots)
{
    keel_recording_t *recording = open_recording(2);
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "slot", add(recording, keel_op_fill(keel_slot(2, 0, 4), 0, 1)));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "slot",
                 add(recording, keel_op_fill(keel_slot(UINT32_MAX, 0, 4), 0, 1)));
}

TEST(recording, bad_binding_tables)
{
    keel_recording_t *recording = RECORD(2, keel_op_fill(keel_slot(0, 8, 8), 0, 1),
                                         keel_op_copy(keel_slot(1, 0, 4), keel_slot(0, 0, 4)));
    keel_buffer_t *x = new_buffer(64), *small = new_buffer(12);
    keel_buffer_t *there = new_buffer_on(open_device(the_uri()), 64);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "bindings", execute(recording, KEEL_NO_BINDINGS));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "bindings", execute(recording, KEEL_BIND(x)));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "bindings", execute(recording, KEEL_BIND(x, x, x)));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "bindings", execute(recording, keel_refs(NULL, 2)));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "bindings[1]",
                 execute(recording, KEEL_BIND(x, keel_span(NULL, 0, 4))));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "bindings[0]", execute(recording, KEEL_BIND(small, x)));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "bindings[0]",
                 execute(recording, KEEL_BIND(keel_span(x, 56, 8), x)));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "bindings[0]",
                 execute(recording, KEEL_BIND(keel_span(x, 60, 16), x)));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "bindings[0]", execute(recording, KEEL_BIND(there, x)));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "bindings[0]",
                 execute(recording, KEEL_BIND(keel_slot(0, 0, 16), x)));
}

TEST(recording, slots_respect_access)
{
    keel_recording_t *recording = RECORD(2, keel_op_copy(keel_slot(0, 0, 4), keel_slot(1, 0, 4)));
    keel_buffer_options_t read = {.size = 64, .access = KEEL_ACCESS_READ};
    keel_buffer_options_t write = {.size = 64, .access = KEEL_ACCESS_WRITE};
    keel_buffer_t *r = NULL, *w = NULL;
    TRY(keel_buffer_create(the_device(), &read, &r));
    OWN(r);
    TRY(keel_buffer_create(the_device(), &write, &w));
    OWN(w);
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "bindings[0]", execute(recording, KEEL_BIND(w, w)));
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "bindings[1]", execute(recording, KEEL_BIND(r, r)));
    TRY(execute(recording, KEEL_BIND(r, w)));
}

// What could not be checked when it was recorded is checked when the table is known.
TEST(recording, slots_are_checked_like_buffers, RUNS)
{
    keel_buffer_t *x = new_buffer(64), *y = new_buffer(64);
    keel_recording_t *whole =
        RECORD(2, keel_op_copy(keel_slot(0, 0, KEEL_WHOLE), keel_slot(1, 0, KEEL_WHOLE)));
    keel_recording_t *pattern = RECORD(1, keel_op_fill(keel_slot(0, 0, KEEL_WHOLE), 0, 4));
    keel_recording_t *same = RECORD(2, keel_op_copy(keel_slot(0, 0, 16), keel_slot(1, 0, 16)));
    const struct {
        keel_recording_t *recording;
        keel_refs_t table;
    } rows[] = {
        {whole, KEEL_BIND(x, keel_span(y, 0, 32))},
        {pattern, KEEL_BIND(keel_span(x, 0, 7))},
        {same, KEEL_BIND(x, keel_span(x, 8, 32))},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        row("row %zu", i);
        keel_point_t done = keel_point(NULL, 0);
        keel_status_t status =
            keel_queue_execute(the_queue(), KEEL_NO_WAITS, rows[i].recording, rows[i].table, &done);
        if (!status) status = keel_wait(KEEL_POINTS(done), KEEL_ALL, patience()); // or when it runs
        FAILS(KEEL_INVALID_ARGUMENT, status);
    }
}

TEST(recording, a_million_commands, RUNS, .heavy = true, .seconds = 60)
{
    const uint32_t count = careful() ? 50000 : 1 << 20;
    keel_recording_t *recording = open_recording(0);
    keel_buffer_t *x = new_buffer(4096);
    enum { BATCH = 1024 };
    keel_op_t ops[BATCH];
    for (uint32_t done = 0; done < count; done += BATCH) {
        for (uint32_t i = 0; i < BATCH; i++) {
            uint32_t n = done + i;
            ops[i] = keel_op_fill(keel_span(x, n % 4096, 1), n / 4096 + n, 1);
            if (n % 4096 == 0 && n) ops[i] = keel_op_barrier();
        }
        TRY(keel_recording_add(recording, ops, count - done < BATCH ? count - done : BATCH));
    }
    CHECK_EQ(keel_recording_count(recording), count);
    TRY(keel_recording_end(recording));
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
    uint8_t expected[4096];
    for (uint32_t n = 0; n < count; n++) {
        if (n % 4096 || !n) expected[n % 4096] = (uint8_t)(n / 4096 + n);
    }
    check_bytes(x, 0, expected, 4096);
}

TEST(recording, too_many_commands, .also = NEED_BOUNDED_RECORDINGS, .heavy = true, .seconds = 60)
{
    keel_recording_t *recording = open_recording(0);
    static keel_op_t ops[4096];
    for (size_t i = 0; i < COUNT(ops); i++) ops[i] = keel_op_barrier();
    uint32_t room = the_caps()->max_commands;
    for (; room > COUNT(ops); room -= COUNT(ops)) {
        TRY(keel_recording_add(recording, ops, COUNT(ops)));
    }
    TRY(keel_recording_add(recording, ops, room));
    FAILS_SAYING(KEEL_RESOURCE_EXHAUSTED, "commands", add(recording, keel_op_barrier()));
    CHECK_EQ(keel_recording_count(recording), the_caps()->max_commands);
    TRY(keel_recording_end(recording));
}

TEST(recording, long_chain_of_barriers, RUNS)
{
    enum { N = 2000 };
    keel_recording_t *recording = open_recording(0);
    keel_buffer_t *x = new_buffer(4);
    keel_entry_t scale = kernel("scale");
    uint32_t expected = 0;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t constants[] = {3, i};
        TRY(add(recording,
                keel_op_dispatch(scale, keel_groups(1, 1, 1), constants, 8, KEEL_BIND(x))));
        TRY(add(recording, keel_op_barrier()));
        expected = expected * 3 + i;
    }
    TRY(keel_recording_end(recording));
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
    CHECK_EQ(buffer_u32(x, 0), expected);
}

TEST(recording, wide_between_barriers, RUNS)
{
    enum { N = 500 };
    keel_recording_t *recording = open_recording(0);
    keel_buffer_t *x = new_buffer(N * 4);
    keel_entry_t poke = kernel("poke");
    for (uint32_t round = 1; round <= 3; round++) {
        for (uint32_t i = 0; i < N; i++) {
            uint32_t constants[] = {i, i * round};
            TRY(add(recording,
                    keel_op_dispatch(poke, keel_groups(1, 1, 1), constants, 8, KEEL_BIND(x))));
        }
        TRY(add(recording, keel_op_barrier()));
    }
    TRY(keel_recording_end(recording));
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
    for (uint32_t i = 0; i < N; i++) CHECK_EQ(buffer_u32(x, i), i * 3);
}

TEST(recording, groups_must_balance)
{
    keel_recording_t *open = open_recording(0), *closed = open_recording(0);
    TRY(add(open, keel_op_group_begin("outer")));
    TRY(add(open, keel_op_group_begin("inner")));
    TRY(add(open, keel_op_group_end()));
    FAILS_SAYING(KEEL_FAILED_PRECONDITION, "group", keel_recording_end(open));
    FAILS(KEEL_FAILED_PRECONDITION, add(closed, keel_op_group_end()));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "name", add(closed, keel_op_group_begin(NULL)));
    TRY(keel_recording_end(closed));
}

TEST(recording, groups_do_not_order, RUNS)
{
    keel_buffer_t *x = new_buffer(8);
    char name[] = "stage one";
    keel_recording_t *recording =
        RECORD(0, keel_op_group_begin(name), keel_op_fill(keel_span(x, 0, 4), 1, 1),
               keel_op_group_begin(""), keel_op_fill(keel_span(x, 4, 4), 2, 1), keel_op_group_end(),
               keel_op_group_end());
    name[0] = 'X';
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
    check_filled(x, 0, 4, 1);
    check_filled(x, 4, 4, 2);
}

TEST(recording, groups_in_submissions, RUNS)
{
    keel_buffer_t *x = new_buffer(8);
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_group_begin("a"), keel_op_fill(keel_whole(x), 1, 1),
                 keel_op_group_end()));
    check_filled(x, 0, 8, 1);
    FAILS(KEEL_FAILED_PRECONDITION,
          keel_queue_run(the_queue(), KEEL_NO_WAITS, keel_op_group_begin("a"), NULL));
    FAILS(KEEL_FAILED_PRECONDITION,
          keel_queue_run(the_queue(), KEEL_NO_WAITS, keel_op_group_end(), NULL));
}

static void execute_in_a_loop(void *user)
{
    keel_recording_t *recording = user;
    keel_queue_t *queue = NULL;
    TRY(keel_queue_create(the_device(), NULL, &queue));
    OWN(queue);
    keel_buffer_t *word = new_buffer(4);
    keel_point_t last = keel_point(keel_queue_timeline(queue), 0);
    for (uint32_t i = 0; i < 100; i++) {
        TRY(keel_queue_execute(queue, KEEL_AFTER(last), recording, KEEL_BIND(word), &last));
    }
    reach(last);
    CHECK_EQ(buffer_u32(word, 0), 100);
}

TEST(recording, shared_by_threads, RUNS)
{
    keel_recording_t *recording = RECORD(1, tally(keel_slot(0, 0, 4)));
    thread_t *threads[4];
    for (int i = 0; i < 4; i++) threads[i] = thread_start(execute_in_a_loop, recording);
    for (int i = 0; i < 4; i++) thread_join(threads[i]);
}

// The front door to raw arguments through a recording and a slot.
TEST(recording, raw_arguments_through_slots, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_RAW_ARGUMENTS)
{
    struct {
        uint32_t factor, count;
        uint64_t in, out;
        uint32_t offset;
    } block = {.factor = 5, .count = 2, .offset = 1};
    uint32_t in[] = {1, 2};
    keel_buffer_t *x = new_buffer_of(in, 8), *y = new_buffer(16);
    keel_patch_t patches[] = {{8, keel_slot(0, 0, 8)}, {16, keel_slot(1, 4, 8)}};
    keel_op_t op = keel_op_dispatch(kernel("raw"), keel_groups(1, 1, 1), &block, sizeof block,
                                    KEEL_NO_BINDINGS);
    op.as.dispatch.raw = true;
    op.as.dispatch.patches = patches;
    op.as.dispatch.patch_count = 2;
    keel_recording_t *recording = new_recording(2, &op, 1);
    reach(submit(keel_op_execute(recording, KEEL_BIND(x, keel_span(y, 4, 12)))));
    CHECK_EQ(buffer_u32(y, 1), 0);
    CHECK_EQ(buffer_u32(y, 2), 6);
    CHECK_EQ(buffer_u32(y, 3), 11);
}
