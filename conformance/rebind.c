// SPDX-License-Identifier: Apache-2.0
// Recordings of many dispatches that work on something else with every execution. So many that a
// driver may change them in another way than few.
#include <string.h>

#include "suite/fixture.h"
#include "suite/run.h"

enum {
    MANY = 160,     // dispatches
    IN_FLIGHT = 12, // executions, all submitted before the first may begin
    WORDS = 16,
    BYTES = WORDS * 4,
    SLOTS = 3,
};

#define RUNS .needs = KEEL_CAP_EXECUTES

typedef keel_ref_t table_t[SLOTS];

static keel_recording_t *begin(void)
{
    keel_recording_options_t options = {.slots = SLOTS};
    keel_recording_t *recording = NULL;
    TRY(keel_recording_create(the_device(), &options, &recording));
    OWN(recording);
    return recording;
}

static void add(keel_recording_t *recording, keel_op_t op)
{
    TRY(keel_recording_add(recording, &op, 1));
}

// x = 3 x + summand.
static void add_step(keel_recording_t *recording, uint32_t summand, keel_ref_t x)
{
    uint32_t constants[] = {3, summand};
    add(recording, op_kernel("scale", 1, constants, sizeof constants, KEEL_BIND(x)));
}

// So many of them in a chain, and what they make of 0.
static uint32_t add_chain(keel_recording_t *recording, uint32_t count, keel_ref_t x)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; i++) {
        add_step(recording, i, x);
        add(recording, keel_op_barrier());
        value = 3 * value + i;
    }
    return value;
}

static void check_words(keel_buffer_t *buffer, uint64_t offset, uint32_t value)
{
    uint32_t words[WORDS];
    for (int i = 0; i < WORDS; i++) words[i] = value;
    check_bytes(buffer, offset, words, BYTES);
}

// Executes once with each of the tables, in this order. None begins before all are submitted.
static void execute_all(keel_recording_t *recording, table_t *tables)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t last = keel_point(gate, 1);
    for (uint32_t i = 0; i < IN_FLIGHT; i++)
        last =
            submit_after(KEEL_AFTER(last), keel_op_execute(recording, keel_refs(tables[i], SLOTS)));
    TRY(keel_semaphore_signal(gate, 1));
    reach(last);
}

static void check_chain(keel_recording_t *recording, keel_ref_t first, uint32_t value)
{
    table_t tables[IN_FLIGHT] = {0};
    keel_buffer_t *x = new_buffer(IN_FLIGHT * BYTES);
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        tables[i][0] = keel_span(x, i * BYTES, BYTES);
        tables[i][1] = first;
    }
    execute_all(recording, tables);
    for (uint32_t i = 0; i < IN_FLIGHT; i++) check_words(x, i * BYTES, value);
}

TEST(rebind, chain, RUNS)
{
    keel_recording_t *recording = begin();
    uint32_t value = add_chain(recording, MANY, keel_slot(0, 0, BYTES));
    TRY(keel_recording_end(recording));
    for (int i = 0; i < 3; i++) check_chain(recording, keel_span(NULL, 0, 0), value);
}

// The first execution finds another table than what was prepared for.
TEST(rebind, prepared, RUNS)
{
    keel_recording_t *recording = begin();
    uint32_t value = add_chain(recording, MANY, keel_slot(0, 0, BYTES));
    TRY(keel_recording_end(recording));
    TRY(keel_recording_prepare(recording, the_queue()));
    check_chain(recording, keel_span(NULL, 0, 0), value);
}

// In turns with executions that change nothing, and with few dispatches that do.
TEST(rebind, few_of_many, RUNS)
{
    enum { OWN = MANY / 4 };
    table_t tables[IN_FLIGHT] = {0};
    keel_buffer_t *x = new_buffer(IN_FLIGHT * BYTES), *same = new_buffer(MANY * BYTES);
    keel_recording_t *recording = begin();
    for (uint32_t i = 0; i < MANY - OWN; i++)
        add_step(recording, i, keel_slot(1, (uint64_t)i * BYTES, BYTES));
    uint32_t value = add_chain(recording, OWN, keel_slot(0, 0, BYTES));
    TRY(keel_recording_end(recording));
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        tables[i][0] = keel_span(x, i / 2 * 2 * BYTES, BYTES);
        tables[i][1] = keel_whole(same);
    }
    execute_all(recording, tables);
    for (uint32_t n = 0; n < MANY - OWN; n++) {
        uint32_t expected = 0;
        for (uint32_t i = 0; i < IN_FLIGHT; i++) expected = 3 * expected + n;
        check_words(same, (uint64_t)n * BYTES, expected);
    }
    for (uint32_t n = 0; n < OWN; n++) value = 3 * value + n; // by the second of two
    for (uint32_t i = 0; i < IN_FLIGHT; i++) check_words(x, i * BYTES, i % 2 ? 0 : value);
}

// Fills, updates and copies that change as well, between memory of the device and of the host.
TEST(rebind, transfers_among_them, RUNS)
{
    enum { PAIR = 2 * BYTES };
    static const uint32_t sevens[WORDS] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
    table_t tables[IN_FLIGHT] = {0};
    keel_buffer_t *x[] = {new_buffer(IN_FLIGHT * PAIR), new_host_buffer(IN_FLIGHT * PAIR)};
    keel_buffer_t *y[] = {new_buffer(IN_FLIGHT * PAIR), new_host_buffer(IN_FLIGHT * PAIR)};
    keel_recording_t *recording = begin();
    keel_op_t update = keel_op_update(keel_slot(0, BYTES, BYTES), sevens);
    add(recording, keel_op_fill(keel_slot(0, 0, BYTES), 0, 4));
    add(recording, update);
    add(recording, keel_op_barrier());
    uint32_t first = add_chain(recording, MANY / 2, keel_slot(0, 0, BYTES)), second = 7;
    add_chain(recording, MANY / 2, keel_slot(0, BYTES, BYTES));
    for (uint32_t i = 0; i < MANY / 2; i++) second = 3 * second + i;
    add(recording, keel_op_copy(keel_slot(0, 0, PAIR), keel_slot(1, 0, PAIR)));
    TRY(keel_recording_end(recording));
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        tables[i][0] = keel_span(x[i / 2 % 2], i * PAIR, PAIR);
        tables[i][1] = keel_span(y[i % 2], i * PAIR, PAIR);
    }
    for (int round = 0; round < 2; round++) {
        execute_all(recording, tables);
        for (uint32_t i = 0; i < IN_FLIGHT; i++) {
            row("round %d, execution %u", round, i);
            check_words(y[i % 2], i * PAIR, first);
            check_words(y[i % 2], i * PAIR + BYTES, second);
        }
    }
}

// Long ones, prepared before their bindings are known.
TEST(rebind, long_transfers_prepared, RUNS)
{
    enum { LONG = 300 << 10, PAIR = 2 * LONG };
    uint8_t *expected = scratch(PAIR), *bytes = numbered(LONG);
    keel_buffer_t *x = new_buffer(2 * PAIR), *y = new_buffer(2 * PAIR), *z = new_buffer(BYTES);
    keel_recording_t *recording = begin();
    keel_op_t update = keel_op_update(keel_slot(0, LONG, LONG), bytes);
    memset(expected, 5, LONG);
    memcpy(expected + LONG, bytes, LONG);
    add(recording, keel_op_fill(keel_slot(0, 0, LONG), 5, 1));
    add(recording, update);
    add(recording, keel_op_barrier());
    add(recording, keel_op_copy(keel_slot(0, 0, PAIR), keel_slot(1, 0, PAIR)));
    add_chain(recording, MANY, keel_slot(2, 0, BYTES));
    TRY(keel_recording_end(recording));
    TRY(keel_recording_prepare(recording, the_queue()));
    for (uint64_t i = 0; i < 2; i++) {
        table_t table = {keel_span(x, i * PAIR, PAIR), keel_span(y, i * PAIR, PAIR), keel_whole(z)};
        reach(submit(keel_op_execute(recording, keel_refs(table, SLOTS))));
        check_bytes(y, i * PAIR, expected, PAIR);
    }
}

// Blocks among them, with dispatches of their own.
TEST(rebind, blocks_among_them, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_BRANCHES)
{
    uint32_t words[] = {0, 1};
    keel_buffer_t *flags = new_buffer_of(words, sizeof words);
    keel_recording_t *recording = begin();
    uint32_t value = add_chain(recording, MANY, keel_slot(0, 0, BYTES));
    for (uint64_t i = 0; i < 2; i++) {
        add(recording, keel_op_if(keel_slot(1, 4 * i, 4)));
        add_step(recording, 1000, keel_slot(0, 0, BYTES));
        add(recording, keel_op_barrier());
        add_step(recording, 2000, keel_slot(0, 0, BYTES));
        add(recording, keel_op_end());
    }
    TRY(keel_recording_end(recording));
    check_chain(recording, keel_whole(flags), 9 * value + 5000);
}

// A loop whose value, and what it works on, is of the table; bounded, so that it counts its rounds.
TEST(rebind, loops_among_them, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_BRANCHES)
{
    table_t tables[IN_FLIGHT] = {0};
    uint32_t words[IN_FLIGHT * 4] = {0};
    keel_op_t loop = keel_op_while(keel_slot(1, 0, 4));
    keel_recording_t *recording = begin();
    uint32_t value = add_chain(recording, MANY, keel_slot(0, 0, BYTES));
    loop.as.branch.max_iterations = IN_FLIGHT;
    add(recording, loop);
    add(recording, op_kernel("count_down", 1, NULL, 0, KEEL_BIND(keel_slot(1, 0, 8))));
    add(recording, keel_op_end());
    TRY(keel_recording_end(recording));
    for (uint32_t i = 0; i < IN_FLIGHT; i++) words[i * 4] = i;
    keel_buffer_t *x = new_buffer(IN_FLIGHT * BYTES), *y = new_buffer_of(words, sizeof words);
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        tables[i][0] = keel_span(x, i * BYTES, BYTES);
        tables[i][1] = keel_span(y, i * 16, 8);
    }
    execute_all(recording, tables);
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        check_words(x, i * BYTES, value);
        CHECK_EQ(buffer_u32(y, i * 4), 0);
        CHECK_EQ(buffer_u32(y, i * 4 + 1), i);
    }
}

// Timestamps into the table, each later than that of the execution before.
TEST(rebind, timestamps_among_them, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_TIMESTAMPS)
{
    table_t tables[IN_FLIGHT] = {0};
    uint64_t before = 1;
    keel_op_t stamp = keel_op_timestamp(keel_slot(1, 0, 8));
    keel_recording_t *recording = begin();
    add_chain(recording, MANY, keel_slot(0, 0, BYTES));
    add(recording, stamp);
    TRY(keel_recording_end(recording));
    keel_buffer_t *x = new_buffer(IN_FLIGHT * BYTES), *y = new_buffer(IN_FLIGHT * 8);
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        tables[i][0] = keel_span(x, i * BYTES, BYTES);
        tables[i][1] = keel_span(y, i * 8, 8);
    }
    execute_all(recording, tables);
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        uint64_t now = buffer_u64(y, i);
        CHECK(now >= before);
        before = now;
    }
}

// On memory that lies elsewhere every time: another allocation gets where it was.
TEST(rebind, late_allocations, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_QUEUE_ALLOCA)
{
    keel_pool_t *pool = new_pool(0, 0);
    keel_buffer_t *x = new_reserved(pool, BYTES), *out = new_buffer(IN_FLIGHT * BYTES);
    keel_recording_t *recording = begin();
    add(recording, keel_op_fill(keel_whole(x), 0, 4));
    add(recording, keel_op_barrier());
    uint32_t value = add_chain(recording, MANY, keel_whole(x));
    add(recording, keel_op_copy(keel_whole(x), keel_slot(0, 0, BYTES)));
    TRY(keel_recording_end(recording));
    keel_point_t last = submit(keel_op_barrier());
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        table_t table = {keel_span(out, i * BYTES, BYTES)};
        last = submit_after(KEEL_AFTER(last), keel_op_alloca(x));
        last = submit_after(KEEL_AFTER(last), keel_op_execute(recording, keel_refs(table, SLOTS)));
        last = submit_after(KEEL_AFTER(last), keel_op_dealloca(x));
        last = submit_after(KEEL_AFTER(last), keel_op_alloca(new_reserved(pool, BYTES)));
    }
    reach(last);
    for (uint32_t i = 0; i < IN_FLIGHT; i++) check_words(out, i * BYTES, value);
}

// Kernels with a block of arguments that they came with, of which two words are addresses.
TEST(rebind, raw_arguments, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_RAW_ARGUMENTS)
{
    struct {
        uint32_t factor, count;
        uint64_t in, out;
        uint32_t offset;
    } block = {.count = WORDS};
    uint32_t ones[WORDS];
    for (int i = 0; i < WORDS; i++) ones[i] = 1;
    keel_buffer_t *x = new_buffer_of(ones, BYTES), *y = new_buffer(IN_FLIGHT * MANY * BYTES);
    table_t tables[IN_FLIGHT] = {0};
    keel_recording_t *recording = begin();
    for (uint32_t i = 0; i < MANY; i++) {
        keel_patch_t patches[] = {{8, keel_slot(0, 0, BYTES)},
                                  {16, keel_slot(1, (uint64_t)i * BYTES, BYTES)}};
        block.factor = i;
        keel_op_t op = keel_op_dispatch(kernel("raw"), keel_groups(1, 1, 1), &block, sizeof block,
                                        KEEL_NO_BINDINGS);
        op.as.dispatch.raw = true;
        op.as.dispatch.patches = patches;
        op.as.dispatch.patch_count = 2;
        add(recording, op);
    }
    TRY(keel_recording_end(recording));
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        tables[i][0] = keel_whole(x);
        tables[i][1] = keel_span(y, (uint64_t)i * MANY * BYTES, MANY * BYTES);
    }
    execute_all(recording, tables);
    for (uint32_t i = 0; i < IN_FLIGHT * MANY; i++) check_words(y, (uint64_t)i * BYTES, i % MANY);
}

// Grids in memory of the table, for kernels that read them themselves.
TEST(rebind, grids_in_slots, RUNS)
{
    table_t tables[IN_FLIGHT] = {0};
    uint32_t counts[IN_FLIGHT * 4] = {0};
    keel_recording_t *recording = begin();
    for (uint32_t i = 0; i < MANY; i++) {
        keel_op_t op = op_kernel("tally", 1, NULL, 0, KEEL_BIND(keel_slot(0, 0, 4)));
        add(recording, keel_op_indirect(op, KEEL_COUNTS_STATIC, keel_slot(1, 0, 12)));
    }
    TRY(keel_recording_end(recording));
    for (uint32_t i = 0; i < IN_FLIGHT * 4; i++) counts[i] = i % 4 ? 1 : i / 4;
    keel_buffer_t *x = new_buffer(IN_FLIGHT * 16);
    keel_buffer_t *y = new_buffer_of(counts, sizeof counts);
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        tables[i][0] = keel_span(x, i * 16, 4);
        tables[i][1] = keel_span(y, i * 16, 12);
    }
    execute_all(recording, tables);
    for (uint32_t i = 0; i < IN_FLIGHT; i++) CHECK_EQ(buffer_u32(x, i * 4), i * MANY);
}

// Each counts the groups of a grid in slot 1 in slot 0, and cannot read that grid.
static void add_tallies(keel_recording_t *recording, uint32_t count)
{
    uint64_t block = 0;
    keel_patch_t patch = {0, keel_slot(0, 0, 4)};
    keel_op_t op = keel_op_dispatch(kernel("raw_tally"), keel_groups(1, 1, 1), &block, sizeof block,
                                    KEEL_NO_BINDINGS);
    op.as.dispatch.raw = true;
    op.as.dispatch.patches = &patch;
    op.as.dispatch.patch_count = 1;
    op = keel_op_indirect(op, KEEL_COUNTS_STATIC, keel_slot(1, 0, 12));
    while (count--) add(recording, op);
}

// Grids in memory of the table for kernels that cannot read them, in front of a block and in it.
TEST(rebind, foreign_grids, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_RAW_ARGUMENTS | KEEL_CAP_BRANCHES)
{
    table_t tables[IN_FLIGHT] = {0};
    uint32_t words[IN_FLIGHT * 8] = {0}; // a grid, and from 16 on whether to enter the block
    keel_recording_t *recording = begin();
    add_tallies(recording, 4);
    add(recording, keel_op_if(keel_slot(1, 16, 4)));
    add_tallies(recording, 4);
    add(recording, keel_op_end());
    TRY(keel_recording_end(recording));
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        for (int k = 0; k < 3; k++) words[i * 8 + k] = k ? 1 : i;
        words[i * 8 + 4] = i % 2;
    }
    keel_buffer_t *x = new_buffer(IN_FLIGHT * 16), *y = new_buffer_of(words, sizeof words);
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        tables[i][0] = keel_span(x, i * 16, 4);
        tables[i][1] = keel_span(y, i * 32, 20);
    }
    execute_all(recording, tables);
    for (uint32_t i = 0; i < IN_FLIGHT; i++) CHECK_EQ(buffer_u32(x, i * 4), i * 4 * (1 + i % 2));
}

// Beside such grids, transfers of as much as their slots hold, which is little and much in turns.
TEST(rebind, whole_slots, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_RAW_ARGUMENTS)
{
    enum { LARGE = 600 << 10 };
    uint32_t grid[] = {3, 1, 1, 0};
    uint8_t *expected = scratch(LARGE);
    keel_buffer_t *words = new_buffer(16), *counts = new_buffer_of(grid, sizeof grid);
    keel_recording_t *recording = begin();
    memset(expected, 6, LARGE);
    add_tallies(recording, 1);
    add(recording, keel_op_fill(keel_slot(2, 0, KEEL_WHOLE), 6, 1));
    TRY(keel_recording_end(recording));
    for (uint32_t i = 0; i < 6; i++) {
        uint64_t size = i % 2 ? LARGE : 64;
        keel_buffer_t *x = new_buffer(LARGE + 64);
        table_t table = {keel_whole(words), keel_whole(counts), keel_span(x, 0, size)};
        reach(submit(keel_op_execute(recording, keel_refs(table, SLOTS))));
        row("execution %u", i);
        check_bytes(x, 0, expected, size);
        CHECK_EQ(buffer_u32(x, size / 4), 0);
        CHECK_EQ(buffer_u32(words, 0), 3 * (i + 1));
    }
}

// On a queue, and when that is gone on another, with the same table first.
TEST(rebind, another_queue, RUNS)
{
    keel_buffer_t *x = new_buffer(3 * BYTES);
    keel_recording_t *recording = begin();
    uint32_t value = add_chain(recording, MANY, keel_slot(0, 0, BYTES)), twice = value;
    for (uint32_t i = 0; i < MANY; i++) twice = 3 * twice + i;
    TRY(keel_recording_end(recording));
    for (uint32_t i = 0; i < 4; i++) {
        keel_queue_t *queue = new_queue(0);
        keel_point_t last;
        for (uint32_t k = 0; k < 2 && i + k < 4; k++) {
            table_t table = {keel_span(x, (i + k) % 3 * BYTES, BYTES)};
            TRY(keel_queue_execute(queue, KEEL_NO_WAITS, recording, keel_refs(table, SLOTS),
                                   &last));
            reach(last);
        }
        drop(queue);
    }
    check_words(x, BYTES, twice);
    check_words(x, 2 * BYTES, twice);
}

// An execution finds no memory, and says where; the next is none the worse for it.
TEST(rebind, names_the_command, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_QUEUE_ALLOCA)
{
    keel_pool_t *pool = new_pool(0, 0);
    keel_buffer_t *x = new_buffer(BYTES), *y = new_buffer(BYTES), *none = new_reserved(pool, BYTES);
    table_t tables[] = {{keel_whole(x), keel_whole(y)},
                        {keel_whole(y), keel_whole(none)},
                        {keel_whole(y), keel_whole(x)}};
    keel_recording_t *recording = begin();
    add(recording, keel_op_fill(keel_slot(0, 0, BYTES), 0, 4));
    add(recording, keel_op_barrier());
    uint32_t value = add_chain(recording, MANY, keel_slot(0, 0, BYTES));
    add(recording, keel_op_fill(keel_slot(1, 0, BYTES), 7, 4));
    TRY(keel_recording_end(recording));
    reach(submit(keel_op_execute(recording, keel_refs(tables[0], SLOTS))));
    reach_failure_saying(submit(keel_op_execute(recording, keel_refs(tables[1], SLOTS))),
                         KEEL_FAILED_PRECONDITION, "(execute) > command 322 (fill)");
    reach(submit(keel_op_execute(recording, keel_refs(tables[2], SLOTS))));
    check_words(x, 0, 7);
    check_words(y, 0, value);
}

// Each queue with tables of its own, at the same time.
TEST(rebind, two_queues, RUNS)
{
    enum { EACH = 6 };
    keel_queue_t *queues[] = {the_queue(), new_queue(0)};
    keel_point_t last[2] = {submit(keel_op_barrier()), submit(keel_op_barrier())};
    keel_buffer_t *x = new_buffer(2 * EACH * BYTES);
    keel_recording_t *recording = begin();
    uint32_t value = add_chain(recording, MANY, keel_slot(0, 0, BYTES));
    TRY(keel_recording_end(recording));
    for (uint32_t i = 0; i < 2 * EACH; i++) {
        table_t table = {keel_span(x, i * BYTES, BYTES)};
        TRY(keel_queue_execute(queues[i % 2], KEEL_AFTER(last[i % 2]), recording,
                               keel_refs(table, SLOTS), &last[i % 2]));
    }
    reach(last[0]);
    reach(last[1]);
    for (uint32_t i = 0; i < 2 * EACH; i++) check_words(x, i * BYTES, value);
}
