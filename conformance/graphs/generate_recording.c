// SPDX-License-Identifier: Apache-2.0
#include "graphs/generator.h"
#include "graphs/kernels/arith.h"

#include <assert.h>

enum { SLOT_SPACE = 100, MAX_NESTING = 2 };

// A recording while it is made. Slots stand for spaces of their own, since what is bound to them
// never overlaps.
typedef struct maker_t {
    generator_t *generator;
    recording_t *recording;
    size_t index;
    span_t table[MAX_SPANS];
    size_t data_slots;
    bool cell; // the last slot is a cell, to be written
    uint32_t events;
    uint32_t depth;
} maker_t;

static bool maker_add(maker_t *maker, const op_t *op)
{
    recording_t *recording = maker->recording;
    return list_add(maker->generator, recording->commands, &recording->count, MAX_COMMANDS, op,
                    maker->table);
}

static void maker_mark(maker_t *maker, op_kind_t kind, uint32_t number)
{
    op_t op = op_make(kind);
    op.numbers[0] = number;
    assert(maker->recording->count < MAX_COMMANDS);
    maker->recording->commands[maker->recording->count++] = op;
}

static size_t maker_room(const maker_t *maker)
{
    return MAX_COMMANDS - (size_t)maker->recording->count;
}

static span_t cell_word(const maker_t *maker, uint32_t offset, uint32_t length)
{
    span_t span = {true, (uint8_t)maker->data_slots, (uint16_t)offset, (uint16_t)length};
    return span;
}

// Moves some spans of an operation into slots, one each.
static void op_to_slots(maker_t *maker, op_t *op)
{
    random_t *random = &maker->generator->random;
    size_t slot = random_below(random, (uint32_t)maker->data_slots + 1);
    for (size_t i = 0; i < op->span_count; i++, slot++) {
        if (slot >= maker->data_slots || op->spans[i].length > SLOT_SIZE) continue;
        uint32_t slack = SLOT_SIZE - (uint32_t)op->spans[i].length;
        op->spans[i].slot = true;
        op->spans[i].id = (uint8_t)slot;
        op->spans[i].offset = (uint16_t)random_range(random, 0, slack);
    }
}

static void add_memory_op(maker_t *maker)
{
    op_t op;
    // What is named directly must be there at each execution: no pool's buffers.
    if (!memory_op(maker->generator, maker->recording->device, true, &op)) return;
    op_to_slots(maker, &op);
    uint32_t dice = given_random(maker->generator, maker->index, maker->recording->count) % 100;
    op.given = op_can_be_given(&op) && dice < 30;
    maker_add(maker, &op);
}

static void add_memory_ops(maker_t *maker, uint32_t most)
{
    uint32_t count = random_range(&maker->generator->random, 1, most);
    for (uint32_t i = 0; i < count && maker_room(maker) > 4; i++) add_memory_op(maker);
}

// Writes a small number where a branch or a grid will look for it.
static void add_control(maker_t *maker, span_t span, uint32_t modulus)
{
    random_t *random = &maker->generator->random;
    op_t op = op_make(OP_UPDATE);
    op.spans[0] = span;
    op.numbers[0] = random_below(random, 1000);
    op.numbers[1] = modulus;
    // Where nothing fails, a number computed from data is as good.
    if (!maker->generator->graph->failures && maker->data_slots && random_chance(random, 50)) {
        op.kind = OP_MODULO;
        op.span_count = 2;
        op.spans[1] = span;
        op.spans[0].id = 0;
        op.spans[0].offset = 0;
        op.groups[0] = op.groups[1] = op.groups[2] = 1;
    }
    maker_add(maker, &op);
}

static void add_grid(maker_t *maker)
{
    op_t op;
    if (!memory_op(maker->generator, maker->recording->device, true, &op)) return;
    if (!(op_infos[op.kind].traits & TRAIT_KERNEL)) return;
    op_to_slots(maker, &op);
    add_control(maker, cell_word(maker, CELL_COUNTS, 12), 4);
    op.counts = COUNTS_DYNAMIC;
    op.spans[MAX_SPANS - 1] = cell_word(maker, CELL_COUNTS, 12);
    maker_add(maker, &op);
}

// Work on both sides of a split barrier, and some that it does not order.
static void add_event(maker_t *maker)
{
    uint32_t event = maker->events++;
    add_memory_op(maker);
    maker_mark(maker, OP_EVENT_SET, event);
    add_memory_op(maker);
    maker_mark(maker, OP_EVENT_WAIT, event);
    add_memory_ops(maker, 2);
}

static void add_work(maker_t *maker);

static void add_if(maker_t *maker, uint32_t word)
{
    span_t value = cell_word(maker, word * 4, 4);
    add_control(maker, value, 2);
    maker_mark(maker, OP_IF, 0);
    maker->recording->commands[maker->recording->count - 1].spans[0] = value;
    add_work(maker);
    if (random_chance(&maker->generator->random, 60)) {
        maker_mark(maker, OP_ELSE, 0);
        add_work(maker);
    }
    maker_mark(maker, OP_END, 0);
}

static void add_while(maker_t *maker, uint32_t word)
{
    span_t value = cell_word(maker, word * 4, 4);
    op_t op = op_make(OP_DECREMENT);
    op.spans[0] = value;
    op.groups[0] = op.groups[1] = op.groups[2] = 1;
    add_control(maker, value, 4);
    maker_mark(maker, OP_WHILE, random_chance(&maker->generator->random, 50) ? 4 : 0);
    maker->recording->commands[maker->recording->count - 1].spans[0] = value;
    add_work(maker);
    maker_add(maker, &op);
    maker_mark(maker, OP_END, 0);
}

static void add_switch(maker_t *maker, uint32_t word)
{
    span_t value = cell_word(maker, word * 4, 4);
    uint32_t cases = random_range(&maker->generator->random, 1, 3);
    add_control(maker, value, 3);
    maker_mark(maker, OP_SWITCH, 0);
    maker->recording->commands[maker->recording->count - 1].spans[0] = value;
    for (uint32_t i = 0; i < cases; i++) {
        maker_mark(maker, OP_CASE, i);
        if (maker_room(maker) > 10) add_memory_op(maker);
    }
    maker_mark(maker, OP_END, 0);
}

// One piece of a recording, with all its room reserved before.
static void add_work(maker_t *maker)
{
    random_t *random = &maker->generator->random;
    uint32_t word = maker->depth++;
    uint32_t dice = random_below(random, 100);
    uint32_t bits = maker->generator->bits;
    bool blocks = bits & KEEL_CAP_BRANCHES && maker->cell && maker->depth <= MAX_NESTING &&
                  maker_room(maker) > 18;
    bool grids = bits & KEEL_CAP_DYNAMIC_COUNTS && maker->cell && maker_room(maker) > 8;
    bool events = bits & KEEL_CAP_EVENTS && maker_room(maker) > 10;
    if (blocks && dice < 14)
        add_if(maker, word);
    else if (blocks && dice < 24)
        add_while(maker, word);
    else if (blocks && dice < 34)
        add_switch(maker, word);
    else if (grids && dice < 50)
        add_grid(maker);
    else if (events && dice < 65)
        add_event(maker);
    else if (maker_room(maker) > 6)
        add_memory_ops(maker, 2);
    maker->depth--;
}

// A recording that takes its counts from a cell written long before.
static void add_static(maker_t *maker)
{
    op_t op;
    for (size_t tries = 0; tries < 6; tries++) {
        if (!memory_op(maker->generator, maker->recording->device, true, &op)) continue;
        if (!(op_infos[op.kind].traits & TRAIT_KERNEL)) continue;
        op_to_slots(maker, &op);
        op.counts = COUNTS_STATIC;
        op.spans[MAX_SPANS - 1] = cell_word(maker, CELL_COUNTS, 12);
        maker_add(maker, &op);
        return;
    }
}

// A kernel that fails, where it is executed once: the failure carries the number of that action.
static void add_abort(maker_t *maker)
{
    op_t op = op_make(OP_ABORT);
    if (!maker->data_slots || maker_room(maker) < 2) return;
    op.spans[0].slot = true;
    op.spans[0].length = 16;
    op.groups[0] = 3;
    op.groups[1] = op.groups[2] = 1;
    op.numbers[0] = random_below(&maker->generator->random, 3);
    maker->generator->aborts[maker->index] = maker_add(maker, &op);
}

void recording_generate(generator_t *generator, size_t index)
{
    recording_t *recording = &generator->graph->recordings[index];
    random_t *random = &generator->random;
    maker_t maker = {.generator = generator, .recording = recording, .index = index};
    recording->used = true;
    recording->one_shot = random_chance(random, 25);
    recording->prepare = random_chance(random, 30);
    recording->device = generator->devices[random_below(random, (uint32_t)generator->device_count)];
    maker.data_slots = random_below(random, MAX_SPANS);
    maker.cell = random_chance(random, 60);
    recording->slot_count = (uint8_t)(maker.data_slots + maker.cell);
    generator->has_cell[index] = maker.cell;
    generator->reads_cell[index] = maker.cell && random_chance(random, 40);
    for (uint8_t i = 0; i < recording->slot_count; i++) {
        span_t span = {false, (uint8_t)(SLOT_SPACE + i), 0, SLOT_SIZE};
        maker.table[i] = span;
    }
    if (generator->reads_cell[index]) {
        add_static(&maker);
        maker.cell = false;
    }
    uint32_t pieces = random_range(random, 1, 4);
    for (uint32_t i = 0; i < pieces; i++) add_work(&maker);
    bool abort = generator->graph->failures && recording->one_shot && random_chance(random, 30) &&
                 generator->bits & KEEL_CAP_KERNEL_STATUS;
    if (abort) add_abort(&maker);
}
