// SPDX-License-Identifier: Apache-2.0
#include "graphs/model.h"
#include "graphs/kernels/arith.h"

#include <string.h>

enum { NO_WRITER = 255, MOST_ITERATIONS = 64 };

// An operation list with what its slots are bound to.
typedef struct list_t {
    const op_t *ops;
    size_t count;
    const span_t *table;
    uint32_t added; // to what the execution gives
} list_t;

void model_init(model_t *model, const graph_t *graph, const order_t *order)
{
    memset(model, 0, sizeof *model);
    memset(model->writers, NO_WRITER, sizeof model->writers);
    memset(model->residence, NO_WRITER, sizeof model->residence);
    model->graph = graph;
    model->order = order;
    for (size_t s = 0; s < graph->space_count; s++) {
        bool pool = graph->spaces[s].kind == SPACE_POOL;
        model->resident[s] = !pool;
        for (uint32_t i = 0; i < SPACE_SIZE; i++) {
            model->bytes[s][i] = data_byte((uint32_t)s, i);
            model->unknown[s][i] = pool;
        }
    }
}

// Whether the present action knows that `writer` succeeded.
static bool writer_firm(const model_t *model, uint8_t writer)
{
    if (!model->order || writer == NO_WRITER || writer == model->action) return true;
    return model->order->firm[model->action] & action_bit(writer);
}

static bool byte_unknown(const model_t *model, size_t space, size_t index)
{
    return model->unknown[space][index] || !writer_firm(model, model->writers[space][index]);
}

static bool span_unknown(const model_t *model, span_t span)
{
    for (size_t i = 0; i < span.length; i++)
        if (byte_unknown(model, span.id, span.offset + i)) return true;
    return false;
}

static void span_written(model_t *model, span_t span, bool unknown)
{
    memset(&model->unknown[span.id][span.offset], unknown, span.length);
    memset(&model->writers[span.id][span.offset], (int)model->action, span.length);
}

static uint8_t *span_bytes(model_t *model, span_t span)
{
    return &model->bytes[span.id][span.offset];
}

static uint32_t word_get(model_t *model, span_t span, uint32_t index)
{
    uint32_t word;
    memcpy(&word, span_bytes(model, span) + (size_t)index * 4, 4);
    return word;
}

static void word_set(model_t *model, span_t span, uint32_t index, uint32_t word)
{
    memcpy(span_bytes(model, span) + (size_t)index * 4, &word, 4);
}

// A word that decides what happens.
static uint32_t control_get(model_t *model, span_t span, uint32_t index)
{
    span_t word = span;
    word.offset = (uint16_t)(word.offset + index * 4);
    word.length = 4;
    if (span_unknown(model, word)) model->error = "a branch or a count depends on unknown memory";
    return word_get(model, span, index);
}

static void fill_apply(model_t *model, const op_t *op, span_t target)
{
    uint8_t *bytes = span_bytes(model, target);
    for (size_t i = 0; i < target.length; i++)
        bytes[i] = (uint8_t)(op->numbers[0] >> i % op->numbers[1] * 8);
}

static void kernel_word(model_t *model, const op_t *op, const span_t *at, uint32_t i)
{
    uint32_t k = op->numbers[0];
    uint32_t x = word_get(model, at[0], i);
    switch (op->kind) {
    case OP_SCALE: word_set(model, at[0], i, arith_scale(x, k, i)); break;
    case OP_MOVE: word_set(model, at[1], i, arith_move(x, k)); break;
    case OP_MIX:
        x = arith_mix(x, word_get(model, at[1], i), word_get(model, at[2], i), k);
        word_set(model, at[2], i, x);
        break;
    case OP_MODULO: word_set(model, at[1], i, arith_modulo(x, k, op->numbers[1])); break;
    case OP_DECREMENT: word_set(model, at[0], i, arith_decrement(x)); break;
    default: break;
    }
}

// Returns how many words the grid covers.
static uint32_t kernel_apply(model_t *model, const op_t *op, const span_t *at)
{
    uint32_t groups = 1, words = at[0].length / 4;
    for (uint32_t i = 0; i < 3; i++)
        groups *=
            op->counts == COUNTS_DIRECT ? op->groups[i] : control_get(model, at[MAX_SPANS - 1], i);
    if (groups > SPACE_SIZE) model->error = "a grid is too large";
    if (op->kind == OP_ABORT) model->failed |= op->numbers[0] < groups;
    if (groups < (words + ARITH_GROUP - 1) / ARITH_GROUP) words = groups * ARITH_GROUP;
    for (uint32_t i = 0; i < words; i++) kernel_word(model, op, at, i);
    return words;
}

static void call_apply(model_t *model, const op_t *op, span_t target)
{
    uint8_t *bytes = span_bytes(model, target);
    if (op->numbers[1] == CALL_FAIL || op->numbers[1] == CALL_FAIL_LATER) model->failed = true;
    for (size_t i = 0; i < target.length; i++) bytes[i] = call_byte(bytes[i], op->numbers[0]);
}

static void bytes_apply(model_t *model, const op_t *op, const span_t *at)
{
    switch (op->kind) {
    case OP_FILL: fill_apply(model, op, at[0]); break;
    case OP_UPDATE:
    case OP_POKE: update_data(op, span_bytes(model, at[0])); break;
    case OP_COPY:
    case OP_READ:
    case OP_WRITE: memmove(span_bytes(model, at[1]), span_bytes(model, at[0]), at[0].length); break;
    case OP_CALL: call_apply(model, op, at[0]); break;
    case OP_ALLOCA:
    case OP_DEALLOCA:
        model->resident[at[0].id] = op->kind == OP_ALLOCA;
        model->residence[at[0].id] = (uint8_t)model->action;
        break;
    default: break;
    }
}

// Whether the buffer of a span has memory, as far as the action can know.
static bool span_resident(model_t *model, span_t span)
{
    if (!writer_firm(model, model->residence[span.id]))
        model->error = "a buffer may or may not have memory";
    return model->resident[span.id];
}

static void op_apply(model_t *model, const op_t *op, const span_t *table)
{
    const char *uses = op_infos[op->kind].spans;
    bool kernel = op_infos[op->kind].traits & TRAIT_KERNEL;
    bool unknown = op->kind == OP_ALLOCA || op->kind == OP_DEALLOCA, resident = true;
    span_t at[MAX_SPANS];
    for (size_t i = 0; i < MAX_SPANS; i++)
        at[i] = op->spans[i].slot ? span_resolve(op->spans[i], table) : op->spans[i];
    for (size_t i = 0; uses[i]; i++) {
        if (op->kind != OP_ALLOCA) resident &= span_resident(model, at[i]);
        if (uses[i] != 'w' && span_unknown(model, at[i])) unknown = true;
    }
    uint32_t words = kernel ? kernel_apply(model, op, at) : 0;
    // Whether a grid of nothing minds that there is no memory is for the device to decide.
    if (!resident && kernel && !words) model->error = "an empty grid has a buffer without memory";
    if (!resident) model->failed = true;
    if (model->failed) return;
    if (!kernel) bytes_apply(model, op, at);
    for (size_t i = 0; uses[i]; i++) {
        if (kernel) at[i].length = (uint16_t)(words * 4);
        if (uses[i] != 'r') span_written(model, at[i], unknown);
    }
}

// The next `else`, `case` or `end` of the block in which `at` lies.
static size_t block_next(const list_t *list, size_t at)
{
    size_t depth = 0;
    for (; at < list->count; at++) {
        uint8_t kind = list->ops[at].kind;
        if (kind == OP_IF || kind == OP_WHILE || kind == OP_SWITCH) depth++;
        if (!depth && (kind == OP_ELSE || kind == OP_CASE || kind == OP_END)) return at;
        if (kind == OP_END) depth--;
    }
    return list->count;
}

static void list_run(model_t *model, const list_t *list, size_t from, size_t to);

static size_t if_run(model_t *model, const list_t *list, size_t at)
{
    size_t middle = block_next(list, at + 1);
    size_t end = list->ops[middle].kind == OP_ELSE ? block_next(list, middle + 1) : middle;
    if (control_get(model, span_resolve(list->ops[at].spans[0], list->table), 0))
        list_run(model, list, at + 1, middle);
    else if (middle != end)
        list_run(model, list, middle + 1, end);
    return end + 1;
}

static size_t while_run(model_t *model, const list_t *list, size_t at)
{
    size_t end = block_next(list, at + 1);
    span_t value = span_resolve(list->ops[at].spans[0], list->table);
    size_t most = list->ops[at].numbers[0] ? list->ops[at].numbers[0] : MOST_ITERATIONS;
    for (size_t i = 0; !model->error && !model->failed && control_get(model, value, 0); i++) {
        if (i == most) model->error = "a loop does not end";
        list_run(model, list, at + 1, end);
    }
    return end + 1;
}

static size_t switch_run(model_t *model, const list_t *list, size_t at)
{
    uint32_t value = control_get(model, span_resolve(list->ops[at].spans[0], list->table), 0);
    size_t next = block_next(list, at + 1);
    while (list->ops[next].kind == OP_CASE) {
        size_t begin = next + 1;
        uint32_t match = list->ops[next].numbers[0];
        next = block_next(list, begin);
        if (match == value) list_run(model, list, begin, next);
    }
    return next + 1;
}

static void execute_run(model_t *model, const op_t *op)
{
    const recording_t *recording = &model->graph->recordings[op->numbers[0]];
    list_t list = {recording->commands, recording->count, op->spans, op->numbers[1]};
    list_run(model, &list, 0, list.count);
}

static void list_run(model_t *model, const list_t *list, size_t from, size_t to)
{
    while (from < to && !model->error && !model->failed) {
        const op_t *op = &list->ops[from], own = op_given(op, list->added);
        switch (op->kind) {
        case OP_IF: from = if_run(model, list, from); break;
        case OP_WHILE: from = while_run(model, list, from); break;
        case OP_SWITCH: from = switch_run(model, list, from); break;
        case OP_EXECUTE:
            execute_run(model, op);
            from++;
            break;
        default: op_apply(model, &own, list->table); from++;
        }
    }
}

bool model_run(model_t *model, size_t action)
{
    const action_t *what = &model->graph->actions[action];
    list_t list = {what->ops, what->op_count, NULL, 0};
    model->action = action;
    model->failed = false;
    list_run(model, &list, 0, list.count);
    if (!model->failed) return true;
    accesses_t accesses;
    action_accesses(model->graph, what, &accesses);
    for (size_t i = 0; i < accesses.count; i++) {
        const access_t *a = &accesses.list[i];
        span_t span = {false, a->space, a->begin, (uint16_t)(a->end - a->begin)};
        if (a->write) span_written(model, span, true);
    }
    return false;
}
