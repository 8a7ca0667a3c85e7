// SPDX-License-Identifier: Apache-2.0
// Memory is touched in a known order only: between actions, between the operations of a submission,
// between the commands of a recording.
#include "graphs/check.h"

#include <stdlib.h>

enum { MAX_LIST = MAX_COMMANDS > MAX_OPS ? MAX_COMMANDS : MAX_OPS };

static bool ops_conflict(const graph_t *graph, const op_t *a, const op_t *b, const span_t *table)
{
    accesses_t first, second;
    first.count = second.count = 0;
    op_accesses(graph, a, table, &first);
    op_accesses(graph, b, table, &second);
    return accesses_conflict(first.list, first.count, second.list, second.count);
}

// The commands that have ended before command `at` begins: those before the last barrier and those
// before the set of an event waited for, and all before these.
static uint64_t commands_before(const op_t *ops, size_t at, const uint64_t *before)
{
    uint64_t result = 0;
    for (size_t i = 0; i < at; i++) {
        if (ops[i].kind == OP_BARRIER) result |= action_bit(i) - 1;
        if (op_infos[ops[i].kind].traits & TRAIT_BLOCK) result |= action_bit(i + 1) - 1;
        if (ops[i].kind != OP_EVENT_WAIT) continue;
        for (size_t j = 0; j < i; j++)
            if (ops[j].kind == OP_EVENT_SET && ops[j].numbers[0] == ops[i].numbers[0])
                result |= action_bit(j) - 1;
    }
    if (op_infos[ops[at].kind].traits & TRAIT_BLOCK) result |= action_bit(at) - 1;
    for (size_t i = 0; i < at; i++)
        if (result & action_bit(i)) result |= before[i];
    return result;
}

bool ops_ordered(const graph_t *graph, const op_t *ops, size_t count, const span_t *table)
{
    uint64_t before[MAX_LIST] = {0};
    for (size_t i = 0; i < count; i++) before[i] = commands_before(ops, i, before);
    for (size_t i = 0; i + 1 < count; i++)
        if (!(before[count - 1] & action_bit(i)) &&
            ops_conflict(graph, &ops[i], &ops[count - 1], table))
            return false;
    return true;
}

static bool list_check(const graph_t *graph, const op_t *ops, size_t count, const span_t *table,
                       check_t *check)
{
    uint64_t before[MAX_LIST] = {0};
    for (size_t j = 0; j < count; j++) {
        before[j] = commands_before(ops, j, before);
        for (size_t i = 0; i < j; i++)
            if (!(before[j] & action_bit(i)) && ops_conflict(graph, &ops[i], &ops[j], table))
                return check_problem(check, "operations %zu and %zu race", i, j);
        if (ops[j].kind != OP_EXECUTE) continue;
        const recording_t *recording = &graph->recordings[ops[j].numbers[0]];
        if (!list_check(graph, recording->commands, recording->count, ops[j].spans, check))
            return false;
    }
    return true;
}

bool execute_check(const graph_t *graph, const op_t *execute, uint8_t device, check_t *check)
{
    return execute_shape_check(graph, execute, device, check) &&
           list_check(graph, execute, 1, NULL, check);
}

// Static counts must be there when the submission begins.
static bool static_check(const graph_t *graph, const action_t *action, check_t *check)
{
    accesses_t all;
    action_accesses(graph, action, &all);
    for (size_t i = 0; i < action->op_count; i++) {
        const op_t *op = &action->ops[i];
        const recording_t *recording =
            op->kind == OP_EXECUTE ? &graph->recordings[op->numbers[0]] : NULL;
        size_t count = recording ? recording->count : 1;
        for (size_t j = 0; j < count; j++) {
            const op_t *command = recording ? &recording->commands[j] : op;
            if (command->counts != COUNTS_STATIC) continue;
            span_t span = span_resolve(command->spans[MAX_SPANS - 1], op->spans);
            access_t read = {span.id, false, span.offset, (uint16_t)(span.offset + span.length)};
            if (accesses_conflict(all.list, all.count, &read, 1))
                return check_problem(check, "a static count is written by its own submission");
        }
    }
    return true;
}

static bool pairs_check(const graph_t *graph, const accesses_t *accesses, check_t *check)
{
    const order_t *order = &check->order;
    for (size_t j = 0; j < graph->action_count; j++) {
        if (order->before[j] & action_bit(j))
            return check_problem(check, "action %zu comes before itself", j);
        for (size_t i = 0; i < j; i++) {
            if (order->before[j] & action_bit(i)) continue;
            if (accesses_conflict(accesses[i].list, accesses[i].count, accesses[j].list,
                                  accesses[j].count))
                return check_problem(check, "actions %zu and %zu race", i, j);
        }
    }
    return true;
}

bool hazards_check(const graph_t *graph, check_t *check)
{
    for (size_t i = 0; i < graph->action_count; i++) {
        const action_t *action = &graph->actions[i];
        if (action->kind == ACTION_NONE) continue;
        if (!list_check(graph, action->ops, action->op_count, NULL, check) ||
            !static_check(graph, action, check)) {
            char inner[sizeof check->problem / 2];
            __builtin_memcpy(inner, check->problem, sizeof inner);
            inner[sizeof inner - 1] = 0;
            return check_problem(check, "action %zu: %s", i, inner);
        }
    }
    accesses_t *accesses = calloc(graph->action_count + 1u, sizeof *accesses);
    if (!accesses) return check_problem(check, "out of memory");
    for (size_t i = 0; i < graph->action_count; i++)
        if (graph->actions[i].kind != ACTION_NONE)
            action_accesses(graph, &graph->actions[i], &accesses[i]);
    bool good = pairs_check(graph, accesses, check);
    free(accesses);
    return good;
}
