// SPDX-License-Identifier: Apache-2.0
// Blocks in recordings: if, else, while, switch.
#include "suite/suite.h"

#define BRANCHES .needs = KEEL_CAP_EXECUTES | KEEL_CAP_BRANCHES

// words[0] is the condition, words[4...] are written.
static keel_op_t poke(keel_buffer_t *words, uint32_t index, uint32_t value)
{
    return op_kernel("poke", 1, (uint32_t[]){index, value}, 8, KEEL_BIND(words));
}

static keel_op_t count_down(keel_buffer_t *words)
{
    return op_kernel("count_down", 1, NULL, 0, KEEL_BIND(words));
}

static keel_ref_t word(keel_buffer_t *words, uint32_t index)
{
    return keel_span(words, index * 4, 4);
}

static void put_word(keel_buffer_t *words, uint32_t index, uint32_t value)
{
    buffer_put(words, index * 4, &value, 4);
}

static void run(keel_recording_t *recording)
{
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
}

TEST(branch, if_taken_or_not, BRANCHES)
{
    keel_buffer_t *w = new_buffer(64);
    keel_recording_t *recording =
        RECORD(0, keel_op_if(word(w, 0)), poke(w, 4, 1), keel_op_end(), poke(w, 5, 2));
    run(recording);
    CHECK_EQ(buffer_u32(w, 4), 0);
    CHECK_EQ(buffer_u32(w, 5), 2);
    static const uint32_t truths[] = {1, 2, 0x80000000, UINT32_MAX};
    for (size_t i = 0; i < COUNT(truths); i++) {
        row("value 0x%x", truths[i]);
        put_word(w, 0, truths[i]);
        put_word(w, 4, 0);
        run(recording);
        CHECK_EQ(buffer_u32(w, 4), 1);
    }
}

TEST(branch, if_else, BRANCHES)
{
    keel_buffer_t *w = new_buffer(64);
    keel_recording_t *recording = RECORD(0, keel_op_if(word(w, 0)), poke(w, 4, 1), keel_op_else(),
                                         poke(w, 4, 2), keel_op_end());
    run(recording);
    CHECK_EQ(buffer_u32(w, 4), 2);
    put_word(w, 0, 1);
    run(recording);
    CHECK_EQ(buffer_u32(w, 4), 1);
}

// The value is read when the device gets there.
TEST(branch, condition_written_before, BRANCHES)
{
    keel_buffer_t *w = new_buffer(64);
    run(RECORD(0, poke(w, 0, 1), keel_op_if(word(w, 0)), poke(w, 4, 1), poke(w, 0, 0),
               keel_op_end(), keel_op_if(word(w, 0)), poke(w, 5, 1), keel_op_else(), poke(w, 6, 1),
               keel_op_end()));
    CHECK_EQ(buffer_u32(w, 4), 1);
    CHECK_EQ(buffer_u32(w, 5), 0);
    CHECK_EQ(buffer_u32(w, 6), 1);
}

// Beginnings and ends are barriers: no other is needed around them.
TEST(branch, blocks_are_barriers, BRANCHES)
{
    keel_buffer_t *w = new_buffer(64), *copy = new_buffer(64);
    keel_op_t into = keel_op_copy(keel_span(w, 16, 16), keel_span(copy, 16, 16));
    keel_op_t out = keel_op_copy(keel_span(w, 32, 16), keel_span(copy, 32, 16));
    put_word(w, 0, 1);
    for (uint32_t i = 1; i < 50; i++) {
        row("round %u", i);
        keel_recording_t *recording = RECORD(0, poke(w, 4, i), keel_op_if(word(w, 0)), into,
                                             poke(w, 8, i), keel_op_end(), out);
        run(recording);
        drop(recording);
        CHECK_EQ(buffer_u32(copy, 4), i);
        CHECK_EQ(buffer_u32(copy, 8), i);
    }
}

TEST(branch, nested_ifs, BRANCHES)
{
    keel_buffer_t *w = new_buffer(64);
    keel_recording_t *recording =
        RECORD(0, keel_op_fill(keel_span(w, 16, 16), 0, 4), keel_op_if(word(w, 0)),
               keel_op_if(word(w, 1)), poke(w, 4, 1), keel_op_else(), poke(w, 5, 1), keel_op_end(),
               keel_op_else(), keel_op_if(word(w, 1)), poke(w, 6, 1), keel_op_else(), poke(w, 7, 1),
               keel_op_end(), keel_op_end());
    for (uint32_t i = 0; i < 4; i++) {
        row("conditions %u %u", i & 1, i >> 1);
        put_word(w, 0, i & 1);
        put_word(w, 1, i >> 1);
        run(recording);
        CHECK_EQ(buffer_u32(w, 4), i == 3);
        CHECK_EQ(buffer_u32(w, 5), i == 1);
        CHECK_EQ(buffer_u32(w, 6), i == 2);
        CHECK_EQ(buffer_u32(w, 7), i == 0);
    }
}

TEST(branch, while_counts_down, BRANCHES)
{
    static const uint32_t counts[] = {0, 1, 2, 17, 1000};
    for (size_t i = 0; i < COUNT(counts); i++) {
        row("%u iterations", counts[i]);
        keel_buffer_t *w = new_buffer(64);
        put_word(w, 0, counts[i]);
        keel_recording_t *recording =
            RECORD(0, keel_op_while(word(w, 0)), count_down(w), keel_op_end(), poke(w, 4, 1));
        run(recording);
        CHECK_EQ(buffer_u32(w, 0), 0);
        CHECK_EQ(buffer_u32(w, 1), counts[i]);
        CHECK_EQ(buffer_u32(w, 4), 1);
    }
}

TEST(branch, while_in_while, BRANCHES)
{
    keel_buffer_t *outer = new_buffer(16), *inner = new_buffer(16);
    put_word(outer, 0, 5);
    run(RECORD(0, keel_op_while(word(outer, 0)), poke(inner, 0, 3), keel_op_barrier(),
               keel_op_while(word(inner, 0)), count_down(inner), keel_op_end(), count_down(outer),
               keel_op_end()));
    CHECK_EQ(buffer_u32(outer, 1), 5);
    CHECK_EQ(buffer_u32(inner, 1), 15);
}

TEST(branch, while_is_bounded, BRANCHES)
{
    keel_buffer_t *w = new_buffer(64);
    keel_op_t loop = keel_op_while(word(w, 0));
    loop.as.branch.max_iterations = 10;
    keel_recording_t *recording = RECORD(0, loop, count_down(w), keel_op_end());
    put_word(w, 0, 10);
    run(recording);
    CHECK_EQ(buffer_u32(w, 1), 10);
    put_word(w, 0, 11);
    put_word(w, 1, 0);
    reach_failure_saying(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)),
                         KEEL_RESOURCE_EXHAUSTED, "run 10 times, which is its max_iterations");
    if (!faulted()) CHECK_EQ(buffer_u32(w, 1), 10); // else it may have ended before
}

// The bound counts each run of the loop anew.
TEST(branch, inner_bound_starts_over, BRANCHES)
{
    keel_buffer_t *outer = new_buffer(16), *inner = new_buffer(16);
    keel_op_t loop = keel_op_while(word(inner, 0));
    loop.as.branch.max_iterations = 3;
    put_word(outer, 0, 4);
    run(RECORD(0, keel_op_while(word(outer, 0)), poke(inner, 0, 3), loop, count_down(inner),
               keel_op_end(), count_down(outer), keel_op_end()));
    CHECK_EQ(buffer_u32(inner, 1), 12);
}

TEST(branch, switch_picks_one, BRANCHES)
{
    keel_buffer_t *w = new_buffer(64);
    keel_recording_t *recording =
        RECORD(0, keel_op_fill(keel_span(w, 16, 16), 0, 4), keel_op_switch(word(w, 0)),
               keel_op_case(3), poke(w, 4, 1), keel_op_case(0), poke(w, 5, 1),
               keel_op_case(UINT32_MAX), poke(w, 6, 1), keel_op_end(), poke(w, 7, 1));
    static const uint32_t values[] = {3, 0, UINT32_MAX, 1, 4};
    for (size_t i = 0; i < COUNT(values); i++) {
        row("value %u", values[i]);
        put_word(w, 0, values[i]);
        run(recording);
        for (uint32_t c = 0; c < 3; c++) CHECK_EQ(buffer_u32(w, 4 + c), c == i);
        CHECK_EQ(buffer_u32(w, 7), 1);
    }
}

TEST(branch, switch_in_while, BRANCHES)
{
    keel_buffer_t *w = new_buffer(64);
    put_word(w, 0, 4);
    run(RECORD(0, keel_op_while(word(w, 0)), keel_op_switch(word(w, 0)), keel_op_case(4),
               poke(w, 4, 40), keel_op_case(2), keel_op_if(word(w, 4)), poke(w, 5, 20),
               keel_op_end(), keel_op_case(1), poke(w, 6, 10), keel_op_end(), count_down(w),
               keel_op_end()));
    CHECK_EQ(buffer_u32(w, 1), 4);
    CHECK_EQ(buffer_u32(w, 4), 40);
    CHECK_EQ(buffer_u32(w, 5), 20);
    CHECK_EQ(buffer_u32(w, 6), 10);
}

TEST(branch, empty_blocks, BRANCHES)
{
    keel_buffer_t *w = new_buffer(64);
    put_word(w, 0, 1);
    run(RECORD(0, keel_op_if(word(w, 0)), keel_op_end(), keel_op_if(word(w, 1)), keel_op_else(),
               keel_op_end(), keel_op_while(word(w, 1)), keel_op_end(), keel_op_switch(word(w, 0)),
               keel_op_end(), keel_op_switch(word(w, 0)), keel_op_case(1), keel_op_case(2),
               keel_op_end(), poke(w, 4, 1)));
    CHECK_EQ(buffer_u32(w, 4), 1);
}

TEST(branch, condition_in_a_slot, BRANCHES)
{
    keel_buffer_t *w = new_buffer(64), *yes = new_buffer_of((uint32_t[]){0, 1}, 8);
    keel_recording_t *recording = RECORD(1, keel_op_if(keel_slot(0, 4, 4)), poke(w, 4, 1),
                                         keel_op_else(), poke(w, 5, 1), keel_op_end());
    reach(submit(keel_op_execute(recording, KEEL_BIND(yes))));
    CHECK_EQ(buffer_u32(w, 4), 1);
    CHECK_EQ(buffer_u32(w, 5), 0);
    reach(submit(keel_op_execute(recording, KEEL_BIND(keel_span(w, 40, 8)))));
    CHECK_EQ(buffer_u32(w, 5), 1);
}

// Several in flight take their own ways.
TEST(branch, several_in_flight, BRANCHES)
{
    enum { N = 20 };
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *w = new_buffer(N * 8);
    keel_op_t down = keel_op_dispatch(kernel("count_down"), keel_groups(1, 1, 1), NULL, 0,
                                      KEEL_BIND(keel_slot(0, 0, 8)));
    keel_recording_t *recording = RECORD(1, keel_op_while(keel_slot(0, 0, 4)), down, keel_op_end());
    keel_point_t done[N];
    for (uint32_t i = 0; i < N; i++) {
        put_word(w, 2 * i, i);
        done[i] = submit_after(KEEL_AFTER(keel_point(gate, 1)),
                               keel_op_execute(recording, KEEL_BIND(keel_span(w, 8 * i, 8))));
    }
    TRY(keel_semaphore_signal(gate, 1));
    TRY(keel_wait(keel_points(done, N), KEEL_ALL, patience()));
    for (uint32_t i = 0; i < N; i++) CHECK_EQ(buffer_u32(w, 2 * i + 1), i);
}

TEST(branch, failure_inside_names_the_command,
     .needs = KEEL_CAP_EXECUTES | KEEL_CAP_BRANCHES | KEEL_CAP_KERNEL_STATUS)
{
    keel_buffer_t *w = new_buffer(64);
    uint32_t constants[] = {9, 0};
    keel_op_t fail = keel_op_dispatch(kernel("fail"), keel_groups(1, 1, 1), constants, 8,
                                      KEEL_BIND(keel_span(w, 16, 4)));
    keel_recording_t *recording = RECORD(0, keel_op_while(word(w, 0)), keel_op_group_begin("step"),
                                         fail, keel_op_group_end(), keel_op_end());
    put_word(w, 0, 3);
    reach_failure_saying(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)), KEEL_ABORTED,
                         "step");
}

static void refused(keel_code_t code, const keel_op_t *ops, size_t count)
{
    keel_recording_t *recording = NULL;
    TRY(keel_recording_create(the_device(), NULL, &recording));
    OWN(recording);
    keel_status_t status = keel_recording_add(recording, ops, count);
    if (!status) status = keel_recording_end(recording);
    FAILS(code, status);
}

#define REFUSED(code, ...)                                                                         \
    refused((code), (const keel_op_t[]){__VA_ARGS__},                                              \
            sizeof((const keel_op_t[]){__VA_ARGS__}) / sizeof(keel_op_t))

TEST(branch, unbalanced_blocks, BRANCHES)
{
    keel_buffer_t *w = new_buffer(64);
    keel_ref_t v = word(w, 0);
    REFUSED(KEEL_FAILED_PRECONDITION, keel_op_if(v));
    REFUSED(KEEL_FAILED_PRECONDITION, keel_op_while(v));
    REFUSED(KEEL_FAILED_PRECONDITION, keel_op_switch(v), keel_op_case(1));
    REFUSED(KEEL_FAILED_PRECONDITION, keel_op_end());
    REFUSED(KEEL_FAILED_PRECONDITION, keel_op_if(v), keel_op_end(), keel_op_end());
    REFUSED(KEEL_FAILED_PRECONDITION, keel_op_else());
    REFUSED(KEEL_FAILED_PRECONDITION, keel_op_while(v), keel_op_else());
    REFUSED(KEEL_FAILED_PRECONDITION, keel_op_if(v), keel_op_else(), keel_op_else());
    REFUSED(KEEL_FAILED_PRECONDITION, keel_op_case(1));
    REFUSED(KEEL_FAILED_PRECONDITION, keel_op_if(v), keel_op_case(1));
    REFUSED(KEEL_FAILED_PRECONDITION, keel_op_switch(v), keel_op_barrier());
    REFUSED(KEEL_FAILED_PRECONDITION, keel_op_switch(v), keel_op_case(1), keel_op_case(2));
    REFUSED(KEEL_FAILED_PRECONDITION, keel_op_group_begin("g"), keel_op_if(v), keel_op_group_end());
    REFUSED(KEEL_FAILED_PRECONDITION, keel_op_if(v), keel_op_group_begin("g"), keel_op_end());
}

TEST(branch, cases_differ, BRANCHES)
{
    keel_buffer_t *w = new_buffer(64);
    keel_ref_t v = word(w, 0);
    REFUSED(KEEL_INVALID_ARGUMENT, keel_op_switch(v), keel_op_case(1), keel_op_case(1),
            keel_op_end());
    REFUSED(KEEL_INVALID_ARGUMENT, keel_op_switch(v), keel_op_case(1), poke(w, 1, 1),
            keel_op_case(2), keel_op_case(3), keel_op_case(2), keel_op_end());
    run(RECORD(0, keel_op_switch(v), keel_op_case(1), keel_op_switch(v), keel_op_case(1),
               keel_op_end(), keel_op_case(0), poke(w, 2, 1), keel_op_end()));
    CHECK_EQ(buffer_u32(w, 2), 1);
}

TEST(branch, bad_conditions, BRANCHES)
{
    keel_buffer_t *w = new_buffer(64);
    REFUSED(KEEL_OUT_OF_RANGE, keel_op_if(keel_span(w, 64, 4)), keel_op_end());
    REFUSED(KEEL_OUT_OF_RANGE, keel_op_while(keel_span(w, 61, 4)), keel_op_end());
    REFUSED(KEEL_INVALID_ARGUMENT, keel_op_if(keel_span(w, 2, 4)), keel_op_end());
    REFUSED(KEEL_INVALID_ARGUMENT, keel_op_switch(keel_span(w, 1, 4)), keel_op_end());
}

TEST(branch, usage_of_conditions, BRANCHES, .also = NEED_EXACT_USAGE)
{
    keel_buffer_options_t options = {.size = 64,
                                     .usage = KEEL_USAGE_TRANSFER | KEEL_USAGE_DISPATCH};
    keel_buffer_t *unusable = NULL;
    TRY(keel_buffer_create(the_device(), &options, &unusable));
    OWN(unusable);
    need_no_usage(unusable, KEEL_USAGE_COUNTS);
    REFUSED(KEEL_PERMISSION_DENIED, keel_op_if(word(unusable, 0)), keel_op_end());
}

TEST(branch, depth, BRANCHES)
{
    keel_buffer_t *w = new_buffer(64);
    uint32_t depth = the_caps()->max_depth;
    keel_op_t *ops = scratch((2 * depth + 3) * sizeof *ops);
    put_word(w, 0, 1);
    for (uint32_t i = 0; i < depth; i++) {
        ops[i] = keel_op_if(word(w, 0));
        ops[depth + 1 + i] = keel_op_end();
    }
    ops[depth] = poke(w, 4, 1);
    run(new_recording(0, ops, 2 * depth + 1));
    CHECK_EQ(buffer_u32(w, 4), 1);
    ops[depth] = keel_op_if(word(w, 0));
    keel_recording_t *recording = NULL;
    TRY(keel_recording_create(the_device(), NULL, &recording));
    OWN(recording);
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "deep", keel_recording_add(recording, ops, depth + 1));
}
