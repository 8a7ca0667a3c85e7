// SPDX-License-Identifier: Apache-2.0
#include "graphs/graph.h"
#include "graphs/random.h"

#include <assert.h>
#include <string.h>

const op_info_t op_infos[OP_KINDS] = {
#define GRAPH_OP_(kind, name, spans, numbers, traits) [kind] = {name, spans, numbers, traits},
    GRAPH_OPS(GRAPH_OP_)
#undef GRAPH_OP_
};

bool op_can_be_given(const op_t *op)
{
    if (op->kind == OP_UPDATE) return op->spans[0].length <= GIVEN_SIZE;
    return op->kind == OP_FILL || op->kind == OP_SCALE || op->kind == OP_MOVE || op->kind == OP_MIX;
}

op_t op_given(const op_t *op, uint32_t added)
{
    op_t given = *op;
    if (!op->given) return given;
    given.numbers[0] += added;
    for (size_t i = 0; i < 3; i++) given.groups[i] = (uint8_t)((op->groups[i] + added) % 4);
    return given;
}

span_t span_resolve(span_t span, const span_t *table)
{
    if (!span.slot) return span;
    span_t bound = table[span.id];
    bound.offset = (uint16_t)(bound.offset + span.offset);
    bound.length = span.length;
    return bound;
}

static void access_add(accesses_t *out, span_t span, bool write)
{
    assert(out->count < MAX_ACCESSES);
    access_t access = {span.id, write, span.offset, (uint16_t)(span.offset + span.length)};
    out->list[out->count++] = access;
}

static void recording_accesses(const graph_t *graph, const op_t *execute, accesses_t *out)
{
    const recording_t *recording = &graph->recordings[execute->numbers[0]];
    for (size_t i = 0; i < recording->count; i++)
        op_accesses(graph, &recording->commands[i], execute->spans, out);
}

void op_accesses(const graph_t *graph, const op_t *op, const span_t *table, accesses_t *out)
{
    const char *spans = op_infos[op->kind].spans;
    if (op->kind == OP_EXECUTE) {
        recording_accesses(graph, op, out);
        return;
    }
    for (size_t i = 0; spans[i]; i++)
        access_add(out, span_resolve(op->spans[i], table), spans[i] != 'r');
    if (op->counts != COUNTS_DIRECT)
        access_add(out, span_resolve(op->spans[MAX_SPANS - 1], table), false);
}

void action_accesses(const graph_t *graph, const action_t *action, accesses_t *out)
{
    out->count = 0;
    for (size_t i = 0; i < action->op_count; i++) op_accesses(graph, &action->ops[i], NULL, out);
}

bool accesses_conflict(const access_t *a, size_t a_count, const access_t *b, size_t b_count)
{
    for (size_t i = 0; i < a_count; i++)
        for (size_t j = 0; j < b_count; j++)
            if (a[i].space == b[j].space && (a[i].write || b[j].write) && a[i].begin < b[j].end &&
                b[j].begin < a[i].end)
                return true;
    return false;
}

uint8_t data_byte(uint32_t seed, uint32_t index)
{
    return (uint8_t)random_mix((uint64_t)seed << 32 | index);
}

void update_data(const op_t *op, uint8_t *data)
{
    uint16_t length = op->spans[0].length;
    for (uint32_t i = 0; i < length; i++) data[i] = data_byte(op->numbers[0], i);
    if (op->kind != OP_UPDATE || !op->numbers[1]) return;
    for (uint32_t i = 0; i + 4 <= length; i += 4) {
        uint32_t word;
        memcpy(&word, data + i, 4);
        word %= op->numbers[1];
        memcpy(data + i, &word, 4);
    }
}
