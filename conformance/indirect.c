// SPDX-License-Identifier: Apache-2.0
// Dispatches whose counts are read from a buffer.
#include "suite/suite.h"

#define RUNS    .needs = KEEL_CAP_EXECUTES
#define DYNAMIC .needs = KEEL_CAP_EXECUTES | KEEL_CAP_DYNAMIC_COUNTS

static keel_op_t tally(keel_buffer_t *word, keel_counts_t kind, keel_ref_t counts)
{
    return keel_op_indirect(op_kernel("tally", 9, NULL, 0, KEEL_BIND(word)), kind, counts);
}

static keel_buffer_t *new_counts(uint32_t x, uint32_t y, uint32_t z)
{
    return new_buffer_of((uint32_t[]){x, y, z}, 12);
}

static keel_op_t make_counts(keel_buffer_t *target, const uint32_t *counts)
{
    return op_kernel("make_counts", 1, counts, 12, KEEL_BIND(target));
}

TEST(indirect, static_counts, RUNS)
{
    static const uint32_t rows[][3] = {{1, 1, 1}, {7, 1, 1}, {2, 3, 4}, {0, 1, 1}, {5, 0, 5}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        row("%u x %u x %u", rows[i][0], rows[i][1], rows[i][2]);
        keel_buffer_t *word = new_buffer(4), *counts = new_buffer_of(rows[i], 12);
        reach(submit(tally(word, KEEL_COUNTS_STATIC, keel_whole(counts))));
        CHECK_EQ(buffer_u32(word, 0), rows[i][0] * rows[i][1] * rows[i][2]);
    }
}

// Final once the waits are satisfied, not when the dispatch is submitted.
TEST(indirect, static_counts_from_earlier_work, RUNS)
{
    keel_buffer_t *word = new_buffer(4), *counts = new_counts(100, 1, 1);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t written =
        submit_after(KEEL_AFTER(keel_point(gate, 1)),
                     keel_op_update(keel_span(counts, 0, 12), (uint32_t[]){6, 1, 1}));
    keel_point_t done =
        submit_after(KEEL_AFTER(written), tally(word, KEEL_COUNTS_STATIC, keel_whole(counts)));
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
    CHECK_EQ(buffer_u32(word, 0), 6);
}

TEST(indirect, static_counts_from_the_host, RUNS)
{
    keel_buffer_t *word = new_buffer(4), *counts = new_counts(100, 1, 1);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t done = submit_after(KEEL_AFTER(keel_point(gate, 1)),
                                     tally(word, KEEL_COUNTS_STATIC, keel_whole(counts)));
    buffer_put(counts, 0, (uint32_t[]){3, 3, 1}, 12);
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
    CHECK_EQ(buffer_u32(word, 0), 9);
}

TEST(indirect, subspan_of_counts, RUNS)
{
    uint32_t data[] = {90, 90, 90, 90, 4, 2, 1, 90};
    keel_buffer_t *all = new_buffer_of(data, sizeof data), *part = new_subspan(all, 8, 24);
    keel_buffer_t *word = new_buffer(4);
    reach(submit(tally(word, KEEL_COUNTS_STATIC, keel_span(part, 8, KEEL_WHOLE))));
    CHECK_EQ(buffer_u32(word, 0), 8);
    reach(submit(tally(word, KEEL_COUNTS_STATIC, keel_span(all, 16, 12))));
    CHECK_EQ(buffer_u32(word, 0), 16);
}

TEST(indirect, dynamic_counts_from_update, DYNAMIC)
{
    keel_buffer_t *word = new_buffer(4), *counts = new_counts(100, 1, 1);
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_update(keel_span(counts, 0, 12), (uint32_t[]){5, 2, 1}),
                 keel_op_barrier(), tally(word, KEEL_COUNTS_DYNAMIC, keel_whole(counts))));
    CHECK_EQ(buffer_u32(word, 0), 10);
}

TEST(indirect, dynamic_counts_from_fill, DYNAMIC)
{
    keel_buffer_t *word = new_buffer(4), *counts = new_counts(100, 1, 1);
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_fill(keel_whole(counts), 3, 4), keel_op_barrier(),
                 tally(word, KEEL_COUNTS_DYNAMIC, keel_whole(counts))));
    CHECK_EQ(buffer_u32(word, 0), 27);
}

TEST(indirect, dynamic_counts_from_a_kernel, DYNAMIC)
{
    keel_buffer_t *word = new_buffer(4), *counts = new_counts(100, 1, 1);
    static const uint32_t wanted[] = {11, 1, 2};
    reach(SUBMIT(KEEL_NO_WAITS, make_counts(counts, wanted), keel_op_barrier(),
                 tally(word, KEEL_COUNTS_DYNAMIC, keel_whole(counts))));
    CHECK_EQ(buffer_u32(word, 0), 22);
}

TEST(indirect, dynamic_counts_in_a_recording, DYNAMIC)
{
    keel_buffer_t *word = new_buffer(4), *counts = new_counts(0, 0, 0);
    static const uint32_t wanted[] = {2, 2, 2};
    keel_recording_t *recording = RECORD(0, make_counts(counts, wanted), keel_op_barrier(),
                                         tally(word, KEEL_COUNTS_DYNAMIC, keel_whole(counts)),
                                         keel_op_barrier(), keel_op_fill(keel_whole(counts), 0, 4));
    for (uint32_t i = 1; i <= 5; i++) {
        row("round %u", i);
        reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
        CHECK_EQ(buffer_u32(word, 0), 8 * i);
    }
}

TEST(indirect, static_counts_in_a_recording, RUNS)
{
    keel_buffer_t *word = new_buffer(4), *counts = new_counts(4, 1, 1);
    keel_recording_t *recording = RECORD(0, tally(word, KEEL_COUNTS_STATIC, keel_whole(counts)));
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
    CHECK_EQ(buffer_u32(word, 0), 4);
    buffer_put(counts, 0, (uint32_t[]){10, 1, 1}, 12); // read anew by each execution
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
    CHECK_EQ(buffer_u32(word, 0), 14);
}

TEST(indirect, counts_in_a_slot, RUNS)
{
    keel_buffer_t *word = new_buffer(4), *a = new_counts(3, 1, 1), *b = new_counts(1, 5, 1);
    keel_op_t op =
        keel_op_dispatch(kernel("tally"), keel_groups(1, 1, 1), NULL, 0, KEEL_BIND(word));
    keel_recording_t *recording =
        RECORD(1, keel_op_indirect(op, KEEL_COUNTS_STATIC, keel_slot(0, 0, 12)));
    reach(submit(keel_op_execute(recording, KEEL_BIND(a))));
    CHECK_EQ(buffer_u32(word, 0), 3);
    reach(submit(keel_op_execute(recording, KEEL_BIND(b))));
    CHECK_EQ(buffer_u32(word, 0), 8);
}

TEST(indirect, counts_released_in_flight, RUNS)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *word = new_buffer(4), *counts = new_counts(6, 1, 1);
    keel_point_t done = submit_after(KEEL_AFTER(keel_point(gate, 1)),
                                     tally(word, KEEL_COUNTS_STATIC, keel_whole(counts)));
    drop(counts);
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
    CHECK_EQ(buffer_u32(word, 0), 6);
}

// Counts beyond the device's limits are found when they are read.
TEST(indirect, too_many_groups, RUNS)
{
    keel_buffer_t *word = new_buffer(4), *counts = new_counts(UINT32_MAX, UINT32_MAX, UINT32_MAX);
    reach_failure_saying(submit(tally(word, KEEL_COUNTS_STATIC, keel_whole(counts))),
                         KEEL_OUT_OF_RANGE, "tally");
    CHECK_EQ(buffer_u32(word, 0), 0);
}

// What only the device finds out fails whatever waits for it, on other queues as well.
TEST(indirect, too_many_groups_downstream, RUNS)
{
    keel_buffer_t *word = new_buffer(4), *counts = new_counts(UINT32_MAX, UINT32_MAX, UINT32_MAX);
    keel_queue_t *other = new_queue(0);
    keel_point_t failed = submit(tally(word, KEEL_COUNTS_STATIC, keel_whole(counts))), after;
    TRY(keel_queue_fill(other, KEEL_AFTER(failed), keel_whole(word), 7, 1, &after));
    reach_failure(after, KEEL_OUT_OF_RANGE);
    CHECK_EQ(buffer_u32(word, 0), 0);
}

// One of many has counts that are too large, and is the one that is named.
TEST(indirect, the_right_one_is_named, RUNS)
{
    enum { OPS = 40, BAD = 37 };
    static const uint32_t good[] = {1, 1, 1}, bad[] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    keel_buffer_t *word = new_buffer(4), *fine = new_buffer_of(good, 12);
    keel_buffer_t *wrong = new_buffer_of(bad, 12);
    keel_op_t ops[OPS];
    for (int i = 0; i < OPS; i++) // of different sizes
        ops[i] = i % 3
                     ? tally(word, KEEL_COUNTS_STATIC, keel_whole(i == BAD ? wrong : fine))
                     : keel_op_update(keel_span(new_buffer(64), 0, (uint64_t)i + 4), numbered(64));
    reach_failure_saying(submit_all(KEEL_NO_WAITS, ops, OPS), KEEL_OUT_OF_RANGE, "command 37 ");
    keel_op_t execute = keel_op_execute(new_recording(0, ops, OPS), KEEL_NO_BINDINGS);
    for (int i = 0; i < 2; i++)
        reach_failure_saying(submit(execute), KEEL_OUT_OF_RANGE, "> command 37 ");
}

// Kernels made elsewhere know nothing of counts in memory; the device launches them over what is
// there when it gets to them.
#define FOREIGN .needs = KEEL_CAP_EXECUTES | KEEL_CAP_DYNAMIC_COUNTS | KEEL_CAP_RAW_ARGUMENTS

static keel_op_t foreign_tally(keel_ref_t word, keel_counts_t kind, keel_ref_t counts)
{
    keel_patch_t *patch = scratch(sizeof *patch);
    uint64_t *block = scratch(sizeof *block);
    *patch = (keel_patch_t){0, word};
    keel_op_t op = keel_op_dispatch(kernel("raw_tally"), keel_groups(9, 1, 1), block, sizeof *block,
                                    KEEL_NO_BINDINGS);
    op.as.dispatch.raw = true;
    op.as.dispatch.patches = patch;
    op.as.dispatch.patch_count = 1;
    return keel_op_indirect(op, kind, counts);
}

TEST(indirect, foreign_static_counts, FOREIGN)
{
    static const uint32_t rows[][3] = {{1, 1, 1}, {7, 1, 1}, {2, 3, 4}, {0, 1, 1}, {5, 0, 5}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        row("%u x %u x %u", rows[i][0], rows[i][1], rows[i][2]);
        keel_buffer_t *word = new_buffer(4), *counts = new_buffer_of(rows[i], 12);
        reach(submit(foreign_tally(keel_whole(word), KEEL_COUNTS_STATIC, keel_whole(counts))));
        CHECK_EQ(buffer_u32(word, 0), rows[i][0] * rows[i][1] * rows[i][2]);
    }
}

// Several in one submission, each with counts that the one before could not have had.
TEST(indirect, foreign_dynamic_counts, FOREIGN)
{
    keel_buffer_t *word = new_buffer(8), *counts = new_counts(100, 1, 1);
    static const uint32_t first[] = {11, 1, 2}, then[] = {3, 1, 1}, none[] = {0, 9, 9};
    keel_op_t op = foreign_tally(keel_span(word, 0, 4), KEEL_COUNTS_DYNAMIC, keel_whole(counts));
    keel_op_t other = foreign_tally(keel_span(word, 4, 4), KEEL_COUNTS_DYNAMIC, keel_whole(counts));
    reach(SUBMIT(KEEL_NO_WAITS, make_counts(counts, first), keel_op_barrier(), op, other,
                 keel_op_barrier(), make_counts(counts, none), keel_op_barrier(), op,
                 keel_op_barrier(), make_counts(counts, then), keel_op_barrier(), op));
    CHECK_EQ(buffer_u32(word, 0), 25);
    CHECK_EQ(buffer_u32(word, 1), 22);
}

// Many in flight, and whatever they need is gone with the submission.
TEST(indirect, foreign_counts_pipelined, FOREIGN)
{
    keel_buffer_t *word = new_buffer(4), *counts = new_counts(0, 1, 1);
    keel_op_t op = foreign_tally(keel_whole(word), KEEL_COUNTS_DYNAMIC, keel_whole(counts));
    keel_point_t done = submit(keel_op_fill(keel_whole(counts), 1, 4));
    for (uint32_t i = 0; i < 40; i++)
        done = SUBMIT(KEEL_AFTER(done), keel_op_fill(keel_span(counts, 0, 4), i, 4),
                      keel_op_barrier(), op);
    reach(done);
    CHECK_EQ(buffer_u32(word, 0), 40 * 39 / 2);
}

// What the first one made, those after it have.
TEST(indirect, foreign_counts_again_allocate_nothing, FOREIGN)
{
    keel_buffer_t *word = new_buffer(4), *counts = new_counts(3, 1, 1);
    keel_op_t op = foreign_tally(keel_whole(word), KEEL_COUNTS_STATIC, keel_whole(counts));
    // As in dispatch.allocates_nothing: one at a time can need what several had.
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t held[8];
    for (int i = 0; i < 8; i++) held[i] = submit_after(KEEL_AFTER(keel_point(gate, 1)), op);
    TRY(keel_semaphore_signal(gate, 1));
    for (int i = 0; i < 8; i++) reach(held[i]);
    for (int i = 0; i < 8; i++) reach(submit(op));
    uint64_t before = allocations();
    for (int i = 0; i < 8; i++) reach(submit(op));
    if (!starved()) CHECK_EQ(allocations(), before);
    CHECK_EQ(buffer_u32(word, 0), 24 * 3);
}

TEST(indirect, foreign_too_many_groups, FOREIGN)
{
    keel_buffer_t *word = new_buffer(4), *counts = new_counts(UINT32_MAX, UINT32_MAX, UINT32_MAX);
    keel_op_t op = foreign_tally(keel_whole(word), KEEL_COUNTS_STATIC, keel_whole(counts));
    reach_failure_saying(submit(op), KEEL_OUT_OF_RANGE, "raw_tally");
    keel_recording_t *recording = RECORD(0, op);
    reach_failure_saying(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)), KEEL_OUT_OF_RANGE,
                         "raw_tally");
    CHECK_EQ(buffer_u32(word, 0), 0);
}

// What is below the device's limit in all may be beyond that of a launch in one dimension.
TEST(indirect, foreign_limits_per_dimension, FOREIGN, .driver = "cuda")
{
    static const uint32_t rows[][3] = {{3000000000u, 1, 1}, {1, 65536, 1}, {1, 1, 65536}};
    keel_buffer_t *word = new_buffer(4);
    for (size_t i = 0; i < COUNT(rows); i++) {
        row("%u x %u x %u", rows[i][0], rows[i][1], rows[i][2]);
        keel_buffer_t *counts = new_buffer_of(rows[i], 12);
        keel_op_t op = foreign_tally(keel_whole(word), KEEL_COUNTS_STATIC, keel_whole(counts));
        reach_failure_saying(submit(op), KEEL_OUT_OF_RANGE, "takes at most");
    }
    CHECK_EQ(buffer_u32(word, 0), 0);
}

// Other counts and another target for each execution, while those before are in flight.
TEST(indirect, foreign_counts_in_slots, FOREIGN)
{
    enum { WORDS = 4, ROUNDS = 24 };
    keel_buffer_t *word[WORDS], *counts[WORDS];
    for (uint32_t i = 0; i < WORDS; i++) {
        word[i] = new_buffer(4);
        counts[i] = new_counts(i + 1, 2, 1);
    }
    keel_recording_t *recording =
        RECORD(2, foreign_tally(keel_slot(0, 0, 4), KEEL_COUNTS_STATIC, keel_slot(1, 0, 12)));
    TRY(keel_recording_prepare(recording, the_queue()));
    keel_point_t done = submit(keel_op_barrier());
    for (uint32_t i = 0; i < ROUNDS; i++)
        done = submit_after(
            KEEL_AFTER(done),
            keel_op_execute(recording, KEEL_BIND(word[i % WORDS], counts[i / 2 % WORDS])));
    reach(done);
    uint32_t expected[WORDS] = {0};
    for (uint32_t i = 0; i < ROUNDS; i++) expected[i % WORDS] += (i / 2 % WORDS + 1) * 2;
    for (uint32_t i = 0; i < WORDS; i++) CHECK_EQ(buffer_u32(word[i], 0), expected[i]);
}

TEST(indirect, bad_counts, RUNS)
{
    keel_buffer_t *word = new_buffer(4), *counts = new_counts(1, 1, 1);
    keel_queue_t *q = the_queue();
    const struct {
        keel_code_t code;
        keel_counts_t kind;
        keel_ref_t counts;
    } rows[] = {
        {KEEL_OUT_OF_RANGE, KEEL_COUNTS_STATIC, keel_span(counts, 4, 12)},
        {KEEL_OUT_OF_RANGE, KEEL_COUNTS_STATIC, keel_span(counts, 0, 8)},
        {KEEL_OUT_OF_RANGE, KEEL_COUNTS_STATIC, keel_span(counts, 8, KEEL_WHOLE)},
        {KEEL_INVALID_ARGUMENT, KEEL_COUNTS_STATIC, keel_span(new_buffer(64), 1, 12)},
        {KEEL_INVALID_ARGUMENT, KEEL_COUNTS_STATIC, keel_span(NULL, 0, 12)},
        {KEEL_INVALID_ARGUMENT, (keel_counts_t)7, keel_whole(counts)},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        row("row %zu", i);
        FAILS_SAYING(
            rows[i].code, "counts",
            keel_queue_run(q, KEEL_NO_WAITS, tally(word, rows[i].kind, rows[i].counts), NULL));
    }
}

TEST(indirect, usage_of_counts, RUNS, .also = NEED_EXACT_USAGE)
{
    keel_buffer_options_t options = {.size = 64,
                                     .usage = KEEL_USAGE_TRANSFER | KEEL_USAGE_DISPATCH};
    keel_buffer_t *word = new_buffer(4), *unusable = NULL;
    TRY(keel_buffer_create(the_device(), &options, &unusable));
    OWN(unusable);
    need_no_usage(unusable, KEEL_USAGE_COUNTS);
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "COUNTS",
                 keel_queue_run(the_queue(), KEEL_NO_WAITS,
                                tally(word, KEEL_COUNTS_STATIC, keel_span(unusable, 0, 12)), NULL));
}

TEST(indirect, foreign_counts_in_a_loop,
     .needs = KEEL_CAP_EXECUTES | KEEL_CAP_DYNAMIC_COUNTS | KEEL_CAP_RAW_ARGUMENTS |
              KEEL_CAP_BRANCHES)
{
    keel_buffer_t *word = new_buffer(4), *counts = new_counts(5, 1, 1);
    keel_recording_t *recording = RECORD(
        0, keel_op_while(keel_span(counts, 0, 4)),
        foreign_tally(keel_whole(word), KEEL_COUNTS_DYNAMIC, keel_whole(counts)), keel_op_barrier(),
        op_kernel("count_down", 1, NULL, 0, KEEL_BIND(keel_span(counts, 0, 8))), keel_op_end());
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
    CHECK_EQ(buffer_u32(word, 0), 5 * 1 + 4 * 2 + 3 * 3 + 2 * 4 + 1 * 5);
}
