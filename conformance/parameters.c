// SPDX-License-Identifier: Apache-2.0
// Parameters: what recordings get with each execution besides buffers.
#include "suite/suite.h"

#include <string.h>

enum {
    MANY = 140,    // dispatches: so many that a driver may change them in another way than few
    IN_FLIGHT = 6, // executions, all submitted before the first may begin
    WORDS = 16,
    BYTES = WORDS * 4,
};

#define RUNS   .needs = KEEL_CAP_EXECUTES
#define RAW    .needs = KEEL_CAP_EXECUTES | KEEL_CAP_RAW_ARGUMENTS
#define BLOCKS .needs = KEEL_CAP_EXECUTES | KEEL_CAP_BRANCHES

// The parameters of most tests.
typedef struct given_t {
    uint32_t factor, summand;
    uint32_t counts[3];
    uint32_t word;
} given_t;

#define GIVEN(field) keel_parameter(offsetof(given_t, field), sizeof((given_t *)0)->field)

static keel_op_t execute(keel_recording_t *recording, const given_t *given)
{
    return keel_op_execute_with(recording, KEEL_NO_BINDINGS, given, sizeof *given);
}

// A dispatch whose constants are all to come.
static keel_op_t op_bare(const char *name, uint32_t constant_size, keel_refs_t bindings)
{
    keel_op_t op = op_kernel(name, 1, NULL, 0, bindings);
    op.as.dispatch.constants = NULL;
    op.as.dispatch.constant_size = constant_size;
    return op;
}

// Patches that live as long as the test.
static keel_op_t patched(keel_op_t dispatch, keel_patch_t first, keel_patch_t second)
{
    keel_patch_t *patches = scratch(2 * sizeof *patches);
    patches[0] = first;
    patches[1] = second;
    return keel_op_patched(dispatch, patches, 2);
}

// x = factor x + summand, of parameters.
static keel_op_t op_given_scale(keel_ref_t x)
{
    return patched(op_bare("scale", 8, KEEL_BIND(x)), (keel_patch_t){0, GIVEN(factor)},
                   (keel_patch_t){4, GIVEN(summand)});
}

// Counts the groups of a grid that comes with the execution.
static keel_op_t op_given_tally(keel_ref_t word)
{
    return keel_op_indirect(op_kernel("tally", 1, NULL, 0, KEEL_BIND(word)), KEEL_COUNTS_STATIC,
                            GIVEN(counts));
}

static keel_status_t attempt(keel_op_t op)
{
    return keel_queue_run(the_queue(), KEEL_NO_WAITS, op, NULL);
}

// What keel_recording_add says to one operation.
static keel_status_t add(keel_op_t op)
{
    keel_recording_options_t options = {.slots = 1};
    keel_recording_t *recording = NULL;
    TRY(keel_recording_create(the_device(), &options, &recording));
    OWN(recording);
    return keel_recording_add(recording, &op, 1);
}

// Executes with each of them, in this order. None begins before all are submitted.
static void execute_all(keel_recording_t *recording, const given_t *given, size_t count)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t last = keel_point(gate, 1);
    for (size_t i = 0; i < count; i++)
        last = submit_after(KEEL_AFTER(last), execute(recording, &given[i]));
    TRY(keel_semaphore_signal(gate, 1));
    reach(last);
}

TEST(parameters, constants, RUNS)
{
    keel_buffer_t *x = new_buffer(BYTES);
    keel_recording_t *recording = RECORD(0, op_given_scale(keel_whole(x)));
    uint32_t expected = 0;
    for (uint32_t i = 0; i < 5; i++) {
        given_t given = {.factor = 2 + i, .summand = 10 * i + 1};
        reach(submit(execute(recording, &given)));
        memset(&given, 0xee, sizeof given);
        expected = expected * (2 + i) + 10 * i + 1;
        CHECK_EQ(buffer_u32(x, 0), expected);
        CHECK_EQ(buffer_u32(x, WORDS - 1), expected);
    }
}

// Where nothing is patched, constants are as recorded; none given are zeros.
TEST(parameters, beside_recorded_constants, RUNS)
{
    keel_buffer_t *out = new_buffer(512);
    uint8_t *bytes = numbered(256), expected[512] = {0}, given[] = {201, 202, 203, 204, 205};
    keel_patch_t patches[] = {{7, keel_parameter(1, 3)}, {252, keel_parameter(0, 4)}};
    keel_op_t op = op_kernel("many_constants", 1, bytes, 256, KEEL_BIND(keel_span(out, 0, 256)));
    keel_op_t bare = op_bare("many_constants", 256, KEEL_BIND(keel_span(out, 256, 256)));
    keel_recording_t *recording =
        RECORD(0, keel_op_patched(op, patches, 2), keel_op_patched(bare, patches, 2));
    memcpy(expected, bytes, 256);
    for (int i = 0; i < 512; i += 256) {
        memcpy(expected + i + 7, given + 1, 3);
        memcpy(expected + i + 252, given, 4);
    }
    reach(submit(keel_op_execute_with(recording, KEEL_NO_BINDINGS, given, sizeof given)));
    check_bytes(out, 0, expected, 512);
}

TEST(parameters, many_in_flight, RUNS)
{
    given_t given[IN_FLIGHT];
    uint32_t expected = 0;
    keel_buffer_t *x = new_buffer(BYTES);
    keel_recording_t *recording = RECORD(0, op_given_scale(keel_whole(x)));
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        given[i] = (given_t){.factor = 3 + i % 2, .summand = i / 3}; // some as before
        expected = expected * given[i].factor + given[i].summand;
    }
    execute_all(recording, given, IN_FLIGHT);
    CHECK_EQ(buffer_u32(x, 3), expected);
}

// Dispatches that have their constants from parameters; behind every seventh one that has its own.
static keel_recording_t *record_chain(keel_ref_t x, uint32_t slots, bool prepare)
{
    static const uint32_t own[] = {3, 1};
    keel_op_t *ops = scratch(4 * MANY * sizeof *ops), *op = ops;
    for (uint32_t i = 0; i < MANY; i++) {
        *op++ = op_given_scale(x);
        *op++ = keel_op_barrier();
        if (i % 7) continue;
        *op++ = op_kernel("scale", 1, own, sizeof own, KEEL_BIND(x));
        *op++ = keel_op_barrier();
    }
    keel_recording_t *recording = new_recording(slots, ops, (size_t)(op - ops));
    if (prepare) TRY(keel_recording_prepare(recording, the_queue()));
    return recording;
}

static uint32_t chain(uint32_t value, const given_t *given)
{
    for (uint32_t i = 0; i < MANY; i++) {
        value = value * given->factor + given->summand;
        if (i % 7 == 0) value = 3 * value + 1;
    }
    return value;
}

static void check_chain(keel_recording_t *recording, keel_buffer_t *x)
{
    given_t given[IN_FLIGHT];
    uint32_t expected = buffer_u32(x, 0);
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        given[i] = (given_t){.factor = 5 + i, .summand = i / 2};
        expected = chain(expected, &given[i]);
    }
    execute_all(recording, given, IN_FLIGHT);
    CHECK_EQ(buffer_u32(x, 0), expected);
    CHECK_EQ(buffer_u32(x, WORDS - 1), expected);
}

TEST(parameters, many_dispatches, RUNS)
{
    keel_buffer_t *x = new_buffer(BYTES);
    keel_recording_t *recording = record_chain(keel_whole(x), 0, false);
    for (int i = 0; i < 2; i++) check_chain(recording, x);
}

// The first execution brings what was not known when it was prepared.
TEST(parameters, many_dispatches_prepared, RUNS)
{
    keel_buffer_t *x = new_buffer(BYTES);
    check_chain(record_chain(keel_whole(x), 0, true), x);
}

// In turns buffers change, parameters, both and nothing.
TEST(parameters, with_slots, RUNS)
{
    for (int prepare = 0; prepare < 2; prepare++) {
        keel_buffer_t *x[] = {new_buffer(BYTES), new_buffer(BYTES)};
        keel_recording_t *recording = record_chain(keel_slot(0, 0, BYTES), 1, prepare);
        keel_point_t last = submit(keel_op_barrier());
        uint32_t expected[2] = {0};
        for (uint32_t i = 0; i < 8; i++) {
            given_t given = {.factor = 7 + i / 4, .summand = i / 2 % 2};
            keel_op_t op = execute(recording, &given);
            keel_ref_t table = keel_whole(x[i % 2]);
            op.as.execute.bindings = keel_refs(&table, 1);
            last = submit_after(KEEL_AFTER(last), op);
            expected[i % 2] = chain(expected[i % 2], &given);
        }
        reach(last);
        for (int i = 0; i < 2; i++) CHECK_EQ(buffer_u32(x[i], 0), expected[i]);
    }
}

// On several queues at the same time, each with its own.
TEST(parameters, on_two_queues, RUNS)
{
    enum { QUEUES = 2, EACH = 6 };
    keel_queue_t *queues[QUEUES] = {the_queue(), new_queue(0)};
    keel_buffer_t *x[QUEUES] = {new_buffer(BYTES), new_buffer(BYTES)};
    keel_recording_t *recording = record_chain(keel_slot(0, 0, BYTES), 1, false);
    keel_point_t last[QUEUES];
    uint32_t expected[QUEUES] = {0};
    for (uint32_t i = 0; i < QUEUES * EACH; i++) {
        uint32_t q = i % QUEUES;
        given_t given = {.factor = 3 + i, .summand = q};
        keel_op_t op = execute(recording, &given);
        keel_ref_t table = keel_whole(x[q]);
        op.as.execute.bindings = keel_refs(&table, 1);
        TRY(keel_queue_run(queues[q], i < QUEUES ? KEEL_NO_WAITS : KEEL_AFTER(last[q]), op,
                           &last[q]));
        expected[q] = chain(expected[q], &given);
    }
    for (int q = 0; q < QUEUES; q++) {
        reach(last[q]);
        CHECK_EQ(buffer_u32(x[q], 0), expected[q]);
    }
}

typedef struct raw_t {
    uint32_t factor;
    uint32_t count;
    uint64_t in, out;
    uint32_t offset;
} raw_t;

// Parameters and addresses in one block.
TEST(parameters, raw_kernels, RAW)
{
    static const uint32_t words[] = {1, 2, 3};
    keel_buffer_t *x = new_buffer_of(words, sizeof words), *y = new_buffer(sizeof words);
    raw_t block = {.count = 3};
    keel_patch_t patches[] = {{offsetof(raw_t, in), keel_whole(x)},
                              {offsetof(raw_t, out), keel_whole(y)},
                              {offsetof(raw_t, factor), GIVEN(factor)},
                              {offsetof(raw_t, offset), GIVEN(summand)}};
    keel_op_t op = keel_op_dispatch(kernel("raw"), keel_groups(1, 1, 1), &block, sizeof block,
                                    KEEL_NO_BINDINGS);
    op.as.dispatch.raw = true;
    keel_recording_t *recording = RECORD(0, keel_op_patched(op, patches, 4));
    for (uint32_t i = 1; i < 4; i++) {
        given_t given = {.factor = i, .summand = 100 * i};
        reach(submit(execute(recording, &given)));
        for (uint32_t n = 0; n < 3; n++) CHECK_EQ(buffer_u32(y, n), words[n] * i + 100 * i);
    }
}

// Executes with such counts in turns, and looks how many groups ran.
static void check_counts(keel_recording_t *recording, keel_buffer_t *word)
{
    static const uint32_t rows[][3] = {{5, 1, 1}, {0, 1, 1},   {2, 3, 4}, {1, 1, 0}, {1, 0, 1},
                                       {7, 1, 1}, {300, 1, 1}, {1, 9, 9}, {7, 1, 1}};
    given_t given[COUNT(rows)] = {0};
    uint32_t expected = buffer_u32(word, 0);
    for (size_t i = 0; i < COUNT(rows); i++) {
        memcpy(given[i].counts, rows[i], sizeof rows[i]);
        expected += rows[i][0] * rows[i][1] * rows[i][2];
    }
    execute_all(recording, given, COUNT(rows));
    CHECK_EQ(buffer_u32(word, 0), expected);
}

TEST(parameters, counts, RUNS)
{
    keel_buffer_t *word = new_buffer(4);
    keel_recording_t *recording = RECORD(0, op_given_tally(keel_whole(word)));
    for (int i = 0; i < 2; i++) check_counts(recording, word);
    TRY(keel_recording_prepare(recording, the_queue()));
    check_counts(recording, word);
}

// Counts of a kernel that cannot look at its grid by itself, and an address in its arguments.
TEST(parameters, counts_of_raw_kernels, RAW)
{
    keel_buffer_t *word = new_buffer(4);
    keel_patch_t patch = {0, keel_whole(word)};
    keel_op_t op = keel_op_dispatch(kernel("raw_tally"), keel_groups(1, 1, 1), scratch(8), 8,
                                    KEEL_NO_BINDINGS);
    op.as.dispatch.raw = true;
    op = keel_op_indirect(keel_op_patched(op, &patch, 1), KEEL_COUNTS_STATIC, GIVEN(counts));
    keel_recording_t *recording = RECORD(0, op);
    for (int i = 0; i < 2; i++) check_counts(recording, word);
}

TEST(parameters, counts_in_a_one_shot_recording, RUNS)
{
    keel_recording_options_t options = {.one_shot = true};
    keel_buffer_t *word = new_buffer(4), *x = new_buffer(BYTES);
    keel_recording_t *recording = NULL;
    given_t given = {.counts = {3, 2, 1}, .factor = 2, .summand = 9};
    keel_op_t ops[] = {op_given_tally(keel_whole(word)), op_given_scale(keel_whole(x))};
    TRY(keel_recording_create(the_device(), &options, &recording));
    OWN(recording);
    TRY(keel_recording_add(recording, ops, 2));
    TRY(keel_recording_end(recording));
    reach(submit(execute(recording, &given)));
    CHECK_EQ(buffer_u32(word, 0), 6);
    CHECK_EQ(buffer_u32(x, 0), 9);
}

// The call that submits them refuses too many, and names the command.
TEST(parameters, too_many_groups, RUNS)
{
    keel_buffer_t *word = new_buffer(4);
    keel_recording_t *recording = RECORD(0, keel_op_barrier(), op_given_tally(keel_whole(word)));
    given_t given = {.counts = {UINT32_MAX, UINT32_MAX, UINT32_MAX}};
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "command 1 (dispatch 'tally')",
                 attempt(execute(recording, &given)));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "4294967295 x 4294967295", attempt(execute(recording, &given)));
    given.counts[1] = 0;
    reach(submit(execute(recording, &given)));
    CHECK_EQ(buffer_u32(word, 0), 0);
}

TEST(parameters, patterns, RUNS)
{
    uint8_t given[8] = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88}, expected[64];
    keel_buffer_t *x = new_buffer(64);
    // Fills of each size, at offsets that suit a word and such that do not.
    keel_recording_t *recording =
        RECORD(0, keel_op_fill_with(keel_span(x, 0, 16), keel_parameter(1, 4)),
               keel_op_fill_with(keel_span(x, 17, 8), keel_parameter(2, 4)),
               keel_op_fill_with(keel_span(x, 26, 6), keel_parameter(3, 2)),
               keel_op_fill_with(keel_span(x, 33, 6), keel_parameter(4, 2)),
               keel_op_fill_with(keel_span(x, 40, 8), keel_parameter(5, 1)),
               keel_op_fill_with(keel_span(x, 49, 5), keel_parameter(7, 1)));
    static const struct {
        int target, length, offset, size;
    } rows[] = {{0, 16, 1, 4}, {17, 8, 2, 4}, {26, 6, 3, 2},
                {33, 6, 4, 2}, {40, 8, 5, 1}, {49, 5, 7, 1}};
    for (int round = 0; round < 4; round++) {
        row("round %d", round);
        memset(expected, 0, sizeof expected);
        for (size_t i = 0; i < COUNT(rows); i++)
            for (int n = 0; n < rows[i].length; n++)
                expected[rows[i].target + n] = given[rows[i].offset + n % rows[i].size];
        reach(submit(keel_op_execute_with(recording, KEEL_NO_BINDINGS, given, sizeof given)));
        check_bytes(x, 0, expected, 64);
        // The same bytes throughout, and others.
        for (int i = 0; i < 8; i++) given[i] = round == 1 ? 0x5a : (uint8_t)(given[i] * 3 + i);
    }
}

TEST(parameters, patterns_through_slots, RUNS)
{
    keel_buffer_t *x[] = {new_buffer(64), new_buffer(64)};
    keel_recording_t *recording =
        RECORD(1, keel_op_fill_with(keel_slot(0, 0, KEEL_WHOLE), GIVEN(word)));
    for (uint32_t i = 0; i < 4; i++) {
        given_t given = {.word = 0x01020304 * (i + 1)};
        keel_op_t op = execute(recording, &given);
        op.as.execute.bindings = KEEL_BIND(x[i % 2]);
        reach(submit(op));
        CHECK_EQ(buffer_u32(x[i % 2], 15), given.word);
    }
}

TEST(parameters, copies, RUNS)
{
    enum { LONG = 1 << 16 };
    keel_buffer_t *x = new_buffer(LONG), *y = new_buffer(16);
    keel_recording_t *recording =
        RECORD(1, keel_op_copy(keel_parameter(3, LONG), keel_whole(x)),
               keel_op_copy(keel_parameter(5, 7), keel_slot(0, 2, KEEL_WHOLE)),
               keel_op_update(keel_span(y, 12, 4), "last"));
    uint8_t *bytes = numbered(LONG + 64);
    keel_point_t last = submit(keel_op_barrier());
    for (int i = 0; i < 3; i++) {
        keel_op_t op =
            keel_op_execute_with(recording, KEEL_BIND(keel_span(y, 0, 9)), bytes + i, LONG + 3);
        last = submit_after(KEEL_AFTER(last), op);
    }
    reach(last);
    check_bytes(x, 0, bytes + 2 + 3, LONG);
    check_bytes(y, 2, bytes + 2 + 5, 7);
    check_bytes(y, 12, "last", 4);
}

TEST(parameters, copies_of_nothing, RUNS)
{
    keel_buffer_t *x = new_buffer_filled(16, 7);
    keel_recording_t *recording = RECORD(0, keel_op_copy(keel_parameter(9, 0), keel_span(x, 4, 0)));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "needs 9 bytes",
                 attempt(keel_op_execute_with(recording, KEEL_NO_BINDINGS, "12345678", 8)));
    reach(submit(keel_op_execute_with(recording, KEEL_NO_BINDINGS, "123456789", 9)));
    keel_recording_t *nothing = RECORD(0, keel_op_copy(keel_parameter(0, 0), keel_span(x, 4, 0)));
    reach(submit(keel_op_execute(nothing, KEEL_NO_BINDINGS)));
    check_filled(x, 0, 16, 7);
}

// Inside of blocks, and as their values.
TEST(parameters, blocks, BLOCKS)
{
    keel_buffer_t *x = new_buffer(BYTES), *word = new_buffer(4);
    keel_op_t loop = keel_op_while(GIVEN(summand));
    loop.as.branch.max_iterations = 3;
    keel_recording_t *recording =
        RECORD(0, keel_op_if(GIVEN(word)), op_given_scale(keel_whole(x)), keel_op_else(),
               op_given_tally(keel_whole(word)), keel_op_end(), keel_op_switch(GIVEN(factor)),
               keel_op_case(2), keel_op_fill_with(keel_span(x, 4, 4), GIVEN(word)), keel_op_case(3),
               keel_op_copy(GIVEN(summand), keel_span(x, 8, 4)), keel_op_end());
    given_t rows[] = {{.word = 1, .factor = 2, .summand = 9},
                      {.word = 0, .factor = 2, .counts = {4, 1, 1}},
                      {.word = 7, .factor = 3, .summand = 5},
                      {.word = 0, .factor = 4, .counts = {2, 2, 2}}};
    execute_all(recording, rows, COUNT(rows));
    CHECK_EQ(buffer_u32(word, 0), 4 + 8);
    CHECK_EQ(buffer_u32(x, 0), 9 * 3 + 5);
    CHECK_EQ(buffer_u32(x, 1), 5); // 1, then 0, then 0 * 3 + 5
    CHECK_EQ(buffer_u32(x, 2), 5);
    // A loop on a parameter runs not at all, or for ever.
    keel_recording_t *rounds = RECORD(0, loop, op_given_scale(keel_whole(x)), keel_op_end());
    given_t none = {.summand = 0}, ever = {.factor = 1, .summand = 2};
    reach(submit(execute(rounds, &none)));
    CHECK_EQ(buffer_u32(x, 2), 5);
    reach_failure(submit(execute(rounds, &ever)), KEEL_RESOURCE_EXHAUSTED);
    if (!faulted()) CHECK_EQ(buffer_u32(x, 2), 5 + 3 * 2); // it may have failed before
}

TEST(parameters, too_few, RUNS)
{
    keel_buffer_t *x = new_buffer(BYTES);
    keel_recording_t *recording =
        RECORD(0, keel_op_fill_with(keel_whole(x), GIVEN(factor)), keel_op_barrier(),
               op_given_scale(keel_whole(x)), keel_op_barrier(), keel_op_fill(keel_whole(x), 0, 4));
    given_t given = {0};
    keel_op_t op = keel_op_execute(recording, KEEL_NO_BINDINGS);
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "parameter_size is 0", attempt(op));
    op.as.execute.parameters = &given;
    op.as.execute.parameter_size = 7;
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "needs 8 bytes, for command 2 (dispatch 'scale')", attempt(op));
    op.as.execute.parameter_size = 8;
    reach(submit(op));
    op.as.execute.parameter_size = sizeof given; // more than it needs
    reach(submit(op));
    op.as.execute.parameters = NULL;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "parameters is NULL", attempt(op));
}

// A recording that takes none may be given some.
TEST(parameters, unused, RUNS)
{
    keel_buffer_t *x = new_buffer(16);
    given_t given = {0};
    reach(submit(execute(RECORD(0, keel_op_fill(keel_whole(x), 3, 1)), &given)));
    check_filled(x, 0, 16, 3);
}

// What no operation can do with them.
TEST(parameters, refused)
{
    keel_buffer_t *x = new_buffer(64);
    keel_ref_t whole = keel_whole(x), word = keel_parameter(0, 4);
    struct {
        keel_op_t op;
        keel_code_t code;
        const char *part;
    } rows[] = {
        {keel_op_fill(word, 0, 4), KEEL_OUT_OF_RANGE, "target: slot"},
        {keel_op_copy(whole, keel_parameter(0, 64)), KEEL_OUT_OF_RANGE, "target: slot"},
        {keel_op_update(word, "four"), KEEL_OUT_OF_RANGE, "target: slot"},
        {keel_op_fill_with(whole, keel_parameter(0, 3)), KEEL_INVALID_ARGUMENT, "pattern_size"},
        {keel_op_fill_with(whole, keel_span(x, 0, 4)), KEEL_INVALID_ARGUMENT, "parameter"},
        {keel_op_fill_with(whole, keel_slot(0, 0, 4)), KEEL_INVALID_ARGUMENT, "parameter"},
        {keel_op_fill_with(keel_span(x, 0, 6), word), KEEL_INVALID_ARGUMENT, "multiple"},
        {keel_op_copy(keel_parameter(0, 63), whole), KEEL_INVALID_ARGUMENT, "63 bytes"},
        {keel_op_copy(keel_parameter(0, KEEL_WHOLE), whole), KEEL_OUT_OF_RANGE, "source"},
        {keel_op_copy(keel_parameter(INT32_MAX - 63, 64), whole), KEEL_OUT_OF_RANGE, "source"},
        {keel_op_copy(keel_parameter(UINT64_MAX, 64), whole), KEEL_OUT_OF_RANGE, "source"},
        {keel_op_copy(keel_parameter(0, 65), keel_span(x, 0, 65)), KEEL_OUT_OF_RANGE, "target"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        row("row %zu", i);
        FAILS_SAYING(rows[i].code, rows[i].part, add(rows[i].op));
    }
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "for recordings",
                 attempt(keel_op_copy(keel_parameter(0, 64), whole)));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "for recordings", attempt(keel_op_fill_with(whole, word)));
    TRY(add(keel_op_copy(keel_parameter(INT32_MAX - 64, 64), whole)));
}

TEST(parameters, refused_by_blocks, .needs = KEEL_CAP_BRANCHES)
{
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "value", add(keel_op_if(keel_parameter(0, 3))));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "value", add(keel_op_while(keel_parameter(2, 4))));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "value", add(keel_op_switch(keel_parameter(1u << 31, 4))));
}

TEST(parameters, refused_by_dispatches, RUNS)
{
    keel_buffer_t *x = new_buffer(64);
    keel_ref_t whole = keel_whole(x);
    uint32_t constants[2] = {0};
    keel_op_t op = op_kernel("scale", 1, constants, 8, KEEL_BIND(whole));
    keel_patch_t patch = {4, keel_parameter(0, 4)};
    TRY(add(keel_op_patched(op, &patch, 1)));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "for recordings", attempt(keel_op_patched(op, &patch, 1)));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "patches is NULL", add(keel_op_patched(op, NULL, 1)));
    patch.offset = 5;
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "patches[0]", add(keel_op_patched(op, &patch, 1)));
    patch = (keel_patch_t){0, keel_parameter(0, KEEL_WHOLE)};
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "patches[0]", add(keel_op_patched(op, &patch, 1)));
    patch = (keel_patch_t){0, keel_parameter(INT32_MAX, 4)};
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "patches[0]", add(keel_op_patched(op, &patch, 1)));
    patch = (keel_patch_t){0, whole};
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "raw", add(keel_op_patched(op, &patch, 1)));
    keel_patch_t *many = scratch((the_caps()->max_bindings + 1) * sizeof *many);
    for (uint32_t i = 0; i <= the_caps()->max_bindings; i++) many[i].ref = keel_parameter(i, 4);
    TRY(add(keel_op_patched(op, many, the_caps()->max_bindings)));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "patch_count",
                 add(keel_op_patched(op, many, the_caps()->max_bindings + 1)));
    op.as.dispatch.bindings = KEEL_BIND(keel_parameter(0, 64));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "bindings[0]: slot", add(op));
    op.as.dispatch.bindings = KEEL_BIND(whole);
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "counts",
                 add(keel_op_indirect(op, KEEL_COUNTS_STATIC, keel_parameter(0, 8))));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "counts",
                 add(keel_op_indirect(op, KEEL_COUNTS_STATIC, keel_parameter(2, 12))));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "for recordings",
                 attempt(keel_op_indirect(op, KEEL_COUNTS_STATIC, keel_parameter(0, 12))));
    TRY(add(keel_op_indirect(op, KEEL_COUNTS_DYNAMIC, keel_parameter(0, 12))));
}
