// SPDX-License-Identifier: Apache-2.0
// Fill, update and copy in recordings, directly and through slots.
#include <string.h>

#include "suite/suite.h"

#include "transfer.h"

#define RUNS .needs = KEEL_CAP_EXECUTES

static void run_recorded(const keel_op_t *ops, size_t count)
{
    reach(submit(keel_op_execute(new_recording(0, ops, count), KEEL_NO_BINDINGS)));
}

TEST(recorded_transfer, fill_table, RUNS)
{
    transfer_fill_table(run_recorded);
}

TEST(recorded_transfer, update_table, RUNS)
{
    transfer_update_table(run_recorded);
}

TEST(recorded_transfer, copy_table, RUNS)
{
    transfer_copy_table(run_recorded);
}

// Of buffers that the host sees: nothing is done before a recording runs, and all of it each time.
TEST(recorded_transfer, memory_of_the_host, RUNS)
{
    enum { SIZE = 64, KINDS = 3 };
    uint8_t zeros[SIZE] = {0}, found[SIZE], bytes[SIZE];
    keel_buffer_t *source = new_host_buffer(SIZE), *target = new_host_buffer(SIZE);
    memset(bytes, 0x21, SIZE);
    TRY(keel_buffer_write(source, 0, bytes, SIZE));
    const keel_op_t ops[KINDS] = {
        keel_op_fill(keel_whole(target), 0x21, 1),
        keel_op_update(keel_whole(target), bytes),
        keel_op_copy(keel_whole(source), keel_whole(target)),
    };
    for (int i = 0; i < KINDS; i++) {
        TRY(keel_buffer_write(target, 0, zeros, SIZE));
        keel_recording_t *recording = new_recording(0, &ops[i], 1);
        for (int runs = 0; runs < 3; runs++) {
            TRY(keel_recording_prepare(recording, the_queue()));
            TRY(keel_buffer_read(target, 0, found, SIZE));
            CHECK_MEM(found, zeros, SIZE);
            reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
            TRY(keel_buffer_read(target, 0, found, SIZE));
            CHECK_MEM(found, bytes, SIZE);
            TRY(keel_buffer_write(target, 0, zeros, SIZE));
        }
    }
}

// Puts each buffer of the list into a slot of its own and replaces it by that slot.
static keel_ref_t into_slot(keel_ref_t ref, keel_ref_t *table, uint32_t *slots)
{
    uint32_t slot = (*slots)++;
    table[slot] = keel_whole(ref.buffer);
    return keel_slot(slot, ref.offset, ref.length);
}

static void run_through_slots(const keel_op_t *ops, size_t count)
{
    keel_op_t op = ops[0];
    keel_ref_t table[2];
    uint32_t slots = 0;
    CHECK_EQ(count, 1);
    if (op.kind == KEEL_OP_COPY) {
        op.as.copy.source = into_slot(op.as.copy.source, table, &slots);
        op.as.copy.target = into_slot(op.as.copy.target, table, &slots);
    } else if (op.kind == KEEL_OP_FILL) {
        op.as.fill.target = into_slot(op.as.fill.target, table, &slots);
    } else {
        op.as.update.target = into_slot(op.as.update.target, table, &slots);
    }
    keel_recording_t *recording = new_recording(slots, &op, 1);
    reach(submit(keel_op_execute(recording, keel_refs(table, slots))));
}

TEST(recorded_transfer, fill_table_through_slots, RUNS)
{
    transfer_fill_table(run_through_slots);
}

TEST(recorded_transfer, update_table_through_slots, RUNS)
{
    transfer_update_table(run_through_slots);
}

TEST(recorded_transfer, copy_table_through_slots, RUNS)
{
    transfer_copy_table(run_through_slots);
}

TEST(recorded_transfer, update_is_taken_when_recorded, RUNS)
{
    keel_buffer_t *x = new_buffer(4);
    char data[] = "abc";
    keel_recording_t *recording = RECORD(0, keel_op_update(keel_span(x, 0, 4), data));
    memset(data, 'z', 3);
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
    check_bytes(x, 0, "abc", 4);
}

TEST(recorded_transfer, large_updates, RUNS)
{
    enum { N = 40, SIZE = 30000 };
    keel_buffer_t *x = new_buffer(N * SIZE);
    uint8_t *data = numbered(N * SIZE);
    keel_op_t ops[N];
    for (uint32_t i = 0; i < N; i++) {
        ops[i] = keel_op_update(keel_span(x, i * SIZE, SIZE), data + i * SIZE);
    }
    run_recorded(ops, N);
    check_bytes(x, 0, data, N * SIZE);
}

TEST(recorded_transfer, fill_then_copy, RUNS)
{
    keel_buffer_t *x = new_buffer(64), *y = new_buffer(64);
    keel_recording_t *recording =
        RECORD(0, keel_op_fill(keel_whole(x), 0x44332211, 4), keel_op_barrier(),
               keel_op_copy(keel_span(x, 0, 32), keel_span(y, 32, 32)), keel_op_barrier(),
               keel_op_fill(keel_span(y, 40, 8), 0, 1));
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
    uint8_t expected[64] = {0};
    for (int i = 32; i < 64; i++) expected[i] = (uint8_t)(0x11 * (1 + i % 4));
    memset(expected + 40, 0, 8);
    check_bytes(y, 0, expected, 64);
}

// What a slot holds changes in all ways there are: memory of the device and of the host, lengths,
// alignments; in turns, and while executions before are in flight.
TEST(recorded_transfer, slots_in_turns, RUNS)
{
    enum { ROUNDS = 24, KINDS = 6, SIZE = 40000 };
    static const struct {
        bool host;
        uint64_t offset, length;
    } kinds[KINDS] = {
        {false, 0, SIZE}, {true, 0, SIZE}, {false, 4, 8},
        {true, 3, 4096},  {false, 64, 0},  {true, 16, 16},
    };
    keel_buffer_t *filled[ROUNDS], *copied[ROUNDS], *updated[ROUNDS];
    keel_op_t update = keel_op_update(keel_slot(2, 1, 5), "hello");
    keel_recording_t *recording = RECORD(
        3, keel_op_fill(keel_slot(0, 0, KEEL_WHOLE), 0xd4c3b2a1, 4), update, keel_op_barrier(),
        keel_op_copy(keel_slot(0, 0, KEEL_WHOLE), keel_slot(1, 0, KEEL_WHOLE)));
    keel_point_t done = submit(keel_op_barrier());
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint64_t offset = kinds[i % KINDS].offset, length = kinds[i % KINDS].length;
        filled[i] = kinds[i % KINDS].host ? new_host_buffer(SIZE + 16) : new_buffer(SIZE + 16);
        copied[i] = i / KINDS % 2 ? new_host_buffer(SIZE + 16) : new_buffer(SIZE + 16);
        updated[i] = i % 2 ? new_host_buffer(8) : new_buffer(8);
        keel_ref_t table[] = {keel_span(filled[i], offset, length),
                              keel_span(copied[i], i % 5, length), keel_whole(updated[i])};
        done = submit_after(KEEL_AFTER(done), keel_op_execute(recording, keel_refs(table, 3)));
    }
    reach(done);
    uint8_t *expected = scratch(SIZE);
    for (int i = 0; i < SIZE; i++) expected[i] = (uint8_t)(0xd4c3b2a1 >> i % 4 * 8);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        row("round %u", i);
        check_bytes(filled[i], kinds[i % KINDS].offset, expected, kinds[i % KINDS].length);
        check_bytes(copied[i], i % 5, expected, kinds[i % KINDS].length);
        check_bytes(updated[i], 1, "hello", 5);
    }
}

// Each execution has another buffer in some of the slots, and the same as before in the others.
TEST(recorded_transfer, some_slots_change, RUNS)
{
    enum { SLOTS = 5, ROUNDS = 40, BUFFERS = SLOTS * 3 };
    keel_buffer_t *buffers[BUFFERS], *out = new_buffer(SLOTS * ROUNDS * 4);
    keel_ref_t table[SLOTS + 1];
    keel_op_t ops[SLOTS];
    uint32_t expected[ROUNDS][SLOTS], seed = 1;
    for (uint32_t i = 0; i < BUFFERS; i++) buffers[i] = new_buffer_of(&i, 4);
    for (uint32_t i = 0; i < SLOTS; i++) {
        ops[i] = keel_op_copy(keel_slot(i, 0, 4), keel_slot(SLOTS, i * 4, 4));
        table[i] = keel_whole(buffers[i]);
    }
    keel_recording_t *recording = new_recording(SLOTS + 1, ops, SLOTS);
    keel_point_t done = submit(keel_op_barrier());
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < SLOTS; i++) {
            seed = seed * 1103515245 + 12345;
            if (seed >> 16 & 1) table[i] = keel_whole(buffers[seed / 65536 % BUFFERS]);
            uint32_t which = 0;
            while (buffers[which] != table[i].buffer) which++;
            expected[round][i] = which;
        }
        table[SLOTS] = keel_span(out, round * SLOTS * 4, SLOTS * 4);
        done =
            submit_after(KEEL_AFTER(done), keel_op_execute(recording, keel_refs(table, SLOTS + 1)));
    }
    reach(done);
    check_bytes(out, 0, expected, sizeof expected);
}

// What is not known yet when a recording is prepared may be longer or shorter than what is.
TEST(recorded_transfer, prepared_copies, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_QUEUE_ALLOCA)
{
    static const uint64_t sizes[] = {100, 1 << 20};
    enum { KNOWN, SLOT, WHOLE_SLOT, LATE, PLACES };
    keel_pool_t *pool = new_pool(0, 0);
    for (uint32_t i = 0; i < 2 * PLACES * PLACES; i++) {
        uint64_t size = sizes[i / (PLACES * PLACES)];
        uint32_t from = i / PLACES % PLACES, to = i % PLACES;
        row("%u bytes, from %u to %u", (unsigned)size, from, to);
        uint8_t *data = numbered(size);
        keel_buffer_t *source = from == LATE ? new_reserved(pool, size) : new_buffer(size);
        keel_buffer_t *target = to == LATE ? new_reserved(pool, size) : new_buffer(size);
        keel_ref_t table[] = {keel_whole(source), keel_whole(target)}, refs[2];
        for (uint32_t side = 0; side < 2; side++) {
            uint32_t place = side ? to : from;
            refs[side] = place == SLOT         ? keel_slot(side, 0, size)
                         : place == WHOLE_SLOT ? keel_slot(side, 0, KEEL_WHOLE)
                                               : table[side];
        }
        keel_recording_t *recording = RECORD(2, keel_op_copy(refs[0], refs[1]));
        TRY(keel_recording_prepare(recording, the_queue()));
        if (from == LATE) reach(submit(keel_op_alloca(source)));
        if (to == LATE) reach(submit(keel_op_alloca(target)));
        buffer_put(source, 0, data, size);
        reach(submit(keel_op_execute(recording, keel_refs(table, 2))));
        check_bytes(target, 0, data, size);
    }
}
