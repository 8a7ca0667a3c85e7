// SPDX-License-Identifier: Apache-2.0
// Is a graph well formed: numbers in range, operations where they are allowed, blocks balanced.
#include "graphs/check.h"

#include <string.h>

// The list an operation stands in.
typedef struct place_t {
    const graph_t *graph;
    check_t *check;
    const op_t *ops;
    size_t count;
    const recording_t *recording; // NULL in a submission
    const span_t *table;          // of the execution looked at
    uint8_t device;
} place_t;

// A range that is there, on whatever device; *here: on that of the list.
static bool span_exists(const place_t *place, span_t span, bool file, bool *here)
{
    *here = true;
    if (span.slot) {
        if (!place->recording || span.id >= place->recording->slot_count) return false;
        if (!place->table) return true;
        if (span.offset + span.length > place->table[span.id].length) return false;
        span = span_resolve(span, place->table);
    }
    if (span.id >= place->graph->space_count) return false;
    const space_t *space = &place->graph->spaces[span.id];
    *here =
        space->kind == SPACE_SHARED || space->kind == SPACE_FILE || space->device == place->device;
    return file == (space->kind == SPACE_FILE) && span.length &&
           span.offset + span.length <= space->size;
}

static bool span_good(const place_t *place, span_t span, bool file)
{
    bool here;
    return span_exists(place, span, file, &here) && here;
}

static bool word_good(const place_t *place, span_t span, size_t words)
{
    span_t at = place->table ? span_resolve(span, place->table) : span;
    return span_good(place, span, false) && span.length == words * 4 && at.offset % 4 == 0;
}

// An operation must not race with itself.
static bool spans_apart(const place_t *place, const op_t *op)
{
    const char *uses = op_infos[op->kind].spans;
    for (size_t i = 0; uses[i]; i++)
        for (size_t j = 0; j < i; j++) {
            span_t a = op->spans[i], b = op->spans[j];
            if (place->table) a = span_resolve(a, place->table);
            if (place->table) b = span_resolve(b, place->table);
            if (a.slot == b.slot && a.id == b.id && (uses[i] != 'r' || uses[j] != 'r') &&
                a.offset < b.offset + b.length && b.offset < a.offset + a.length)
                return false;
        }
    return true;
}

static bool spans_good(const place_t *place, const op_t *op)
{
    const char *uses = op_infos[op->kind].spans;
    size_t elsewhere = 0, most = op->kind == OP_COPY && !place->recording; // one side of a copy
    for (size_t i = 0; uses[i]; i++) {
        bool file = (op->kind == OP_READ && i == 0) || (op->kind == OP_WRITE && i == 1), here;
        if (!span_exists(place, op->spans[i], file, &here)) return false;
        if (op->spans[i].length != op->spans[0].length) return false;
        elsewhere += !here;
    }
    return elsewhere <= most && spans_apart(place, op);
}

static bool kernel_good(const place_t *place, const op_t *op)
{
    size_t groups = (size_t)op->groups[0] * op->groups[1] * op->groups[2];
    if (op->spans[0].length % 4 || groups > SPACE_SIZE) return false;
    if (op->kind == OP_MODULO && !op->numbers[1]) return false;
    if (op->kind == OP_ABORT && place->recording && !place->recording->one_shot) return false;
    return op->counts == COUNTS_DIRECT || word_good(place, op->spans[MAX_SPANS - 1], 3);
}

static bool pool_good(const place_t *place, const op_t *op)
{
    const space_t *space = &place->graph->spaces[op->spans[0].id];
    return space->kind == SPACE_POOL && op->spans[0].length == space->size;
}

static bool execute_good(const place_t *place, const op_t *op);

static bool op_good(const place_t *place, const op_t *op)
{
    if (op->kind >= OP_KINDS || op->counts > COUNTS_DYNAMIC || op->span_count > MAX_SPANS)
        return false;
    const op_info_t *info = &op_infos[op->kind];
    if (info->traits & (place->recording ? TRAIT_SUBMISSION : TRAIT_RECORDING)) return false;
    if (!spans_good(place, op)) return false;
    if (op->given && (!place->recording || !op_can_be_given(op))) return false;
    if (!(info->traits & TRAIT_KERNEL) && op->counts) return false;
    if (info->traits & TRAIT_KERNEL) return kernel_good(place, op);
    switch (op->kind) {
    case OP_FILL:
        return (op->numbers[1] == 1 || op->numbers[1] == 2 || op->numbers[1] == 4) &&
               op->spans[0].length % op->numbers[1] == 0;
    case OP_ALLOCA:
    case OP_DEALLOCA: return pool_good(place, op);
    case OP_CALL: return op->numbers[1] <= CALL_FAIL_LATER;
    case OP_CALL_SIGNAL:
        return op->numbers[0] < place->graph->semaphore_count && !place->graph->failures;
    case OP_IF:
    case OP_WHILE:
    case OP_SWITCH: return word_good(place, op->spans[0], 1);
    case OP_EXECUTE: return execute_good(place, op);
    default: return true;
    }
}

// Blocks and groups: each is closed, in the block in which it was opened.
static bool blocks_good(const place_t *place)
{
    uint8_t open[MAX_COMMANDS];
    size_t depth = 0;
    for (size_t i = 0; i < place->count; i++) {
        uint8_t kind = place->ops[i].kind;
        uint8_t top = depth ? open[depth - 1] : OP_KINDS;
        if (kind == OP_IF || kind == OP_WHILE || kind == OP_SWITCH || kind == OP_GROUP)
            open[depth++] = kind;
        if (kind == OP_ELSE && top != OP_IF) return false;
        if (kind == OP_ELSE) open[depth - 1] = OP_ELSE;
        if (kind == OP_CASE && top != OP_SWITCH && top != OP_CASE) return false;
        if (kind == OP_CASE) open[depth - 1] = OP_CASE;
        if (kind == OP_UNGROUP && top != OP_GROUP) return false;
        if (kind == OP_END && (top == OP_GROUP || top == OP_KINDS)) return false;
        if (kind == OP_END || kind == OP_UNGROUP)
            depth--;
        else if (top == OP_SWITCH && kind != OP_CASE)
            return false;
    }
    return !depth;
}

static bool event_good(const place_t *place, size_t wait)
{
    size_t depth = 0, sets = 0;
    for (size_t i = wait; i-- > 0;) {
        uint8_t kind = place->ops[i].kind;
        if (kind == OP_END) depth++;
        if (kind == OP_IF || kind == OP_WHILE || kind == OP_SWITCH) {
            if (!depth) return false;
            depth--;
        }
        if ((kind == OP_ELSE || kind == OP_CASE) && !depth) return false;
        if (kind == OP_EVENT_SET && place->ops[i].numbers[0] == place->ops[wait].numbers[0]) {
            if (depth) return false;
            sets++;
            break;
        }
    }
    return sets == 1;
}

static bool events_good(const place_t *place)
{
    uint64_t set = 0;
    for (size_t i = 0; i < place->count; i++) {
        const op_t *op = &place->ops[i];
        if (op->kind == OP_EVENT_SET) {
            if (op->numbers[0] > 63 || set & action_bit(op->numbers[0])) return false;
            set |= action_bit(op->numbers[0]);
        }
        if (op->kind == OP_EVENT_WAIT && !event_good(place, i)) return false;
    }
    return true;
}

static bool list_good(const place_t *place)
{
    for (size_t i = 0; i < place->count; i++)
        if (!op_good(place, &place->ops[i]))
            return check_problem(place->check, "operation %zu is malformed", i);
    if (!blocks_good(place)) return check_problem(place->check, "blocks are not balanced");
    if (!events_good(place))
        return check_problem(place->check, "events are not set once, then waited");
    return true;
}

static bool execute_good(const place_t *place, const op_t *op)
{
    if (op->numbers[0] >= place->graph->recording_count) return false;
    const recording_t *recording = &place->graph->recordings[op->numbers[0]];
    if (!recording->used || recording->device != place->device) return false;
    if (op->span_count != recording->slot_count) return false;
    for (size_t i = 0; i < op->span_count; i++)
        if (op->spans[i].slot || !span_good(place, op->spans[i], false)) return false;
    place_t inner = *place;
    inner.ops = recording->commands;
    inner.count = recording->count;
    inner.recording = recording;
    inner.table = op->spans;
    return list_good(&inner);
}

bool execute_shape_check(const graph_t *graph, const op_t *execute, uint8_t device, check_t *check)
{
    place_t place = {graph, check, execute, 1, NULL, NULL, device};
    return execute_good(&place, execute);
}

static bool submit_good(const graph_t *graph, const action_t *action, check_t *check)
{
    size_t executes = 0;
    place_t place = {graph, check, action->ops, action->op_count, NULL, NULL, action->device};
    if (action->device >= graph->device_count || action->queue >= MAX_QUEUES)
        return check_problem(check, "there is no such queue");
    for (size_t i = 0; i < action->op_count; i++) {
        uint8_t kind = action->ops[i].kind;
        bool compute = kind == OP_EXECUTE || op_infos[kind % OP_KINDS].traits & TRAIT_KERNEL;
        executes += kind == OP_EXECUTE;
        if (compute && action->queue == TRANSFER_QUEUE)
            return check_problem(check, "a transfer queue runs no kernels");
    }
    if (executes > MAX_EXECUTES) return check_problem(check, "too many recordings are executed");
    return list_good(&place);
}

static bool host_good(const graph_t *graph, const action_t *action, check_t *check)
{
    if (action->kind == ACTION_SIGNAL || action->kind == ACTION_FAIL)
        return action->signal_count == 1 || check_problem(check, "one signal is needed");
    if (action->kind != ACTION_PEEK && action->kind != ACTION_POKE)
        return action->wait_count > 0 || check_problem(check, "something to wait for is needed");
    place_t place = {graph, check, action->ops, action->op_count, NULL, NULL, 0};
    const op_t *op = &action->ops[0];
    uint8_t kind = action->kind == ACTION_PEEK ? OP_PEEK : OP_POKE;
    if (action->op_count != 1 || op->kind != kind || op->spans[0].id >= graph->space_count)
        return check_problem(check, "one operation on memory is needed");
    const space_t *space = &graph->spaces[op->spans[0].id];
    place.device = space->device;
    if (space->kind == SPACE_POOL)
        return check_problem(check, "a pool's buffer is for queues only");
    return list_good(&place);
}

static bool points_good(const graph_t *graph, const action_t *action, check_t *check)
{
    size_t self = (size_t)(action - graph->actions);
    uint64_t signalled = 0;
    for (size_t i = 0; i < action->wait_count; i++) {
        const point_t *point = &action->waits[i];
        size_t limit = point->own ? graph->action_count : graph->semaphore_count;
        if (point->id >= limit) return check_problem(check, "a wait is for nothing there is");
        if (point->own && graph->actions[point->id].kind != ACTION_SUBMIT)
            return check_problem(check, "only submissions have points of their own");
        if (point->own && point->id >= self)
            return check_problem(check, "a wait is for a later action");
        if (point->up_to && !point->own)
            return check_problem(check, "a semaphore has no submissions up to a point");
        if (point->up_to && graph->failures && !point->ended)
            return check_problem(check, "where something fails, up_to goes with ended");
    }
    for (size_t i = 0; i < action->signal_count; i++) {
        const point_t *point = &action->signals[i];
        if (point->own || point->id >= graph->semaphore_count)
            return check_problem(check, "a signal is of nothing there is");
        if (point->ended || point->up_to) return check_problem(check, "a signal has no end");
        if (signalled & action_bit(point->id))
            return check_problem(check, "two signals of a semaphore");
        signalled |= action_bit(point->id);
    }
    for (size_t i = 0; i < action->op_count; i++) {
        const op_t *op = &action->ops[i];
        if (op->kind != OP_CALL_SIGNAL || op->numbers[0] >= MAX_SEMAPHORES) continue;
        if (signalled & action_bit(op->numbers[0]))
            return check_problem(check, "two signals of a semaphore");
        signalled |= action_bit(op->numbers[0]);
    }
    return true;
}

static bool objects_good(const graph_t *graph, check_t *check)
{
    for (size_t i = 0; i < graph->space_count; i++) {
        const space_t *space = &graph->spaces[i];
        if (space->kind > SPACE_FILE || space->device >= graph->device_count || !space->size ||
            space->size > SPACE_SIZE)
            return check_problem(check, "space %zu is malformed", i);
    }
    for (size_t i = 0; i < graph->semaphore_count; i++)
        if (graph->semaphores[i].device >= graph->device_count)
            return check_problem(check, "semaphore %zu has no device", i);
    for (size_t i = 0; i < graph->recording_count; i++) {
        const recording_t *recording = &graph->recordings[i];
        place_t place = {graph,     check, recording->commands, recording->count,
                         recording, NULL,  recording->device};
        if (!recording->used) continue;
        if (recording->device >= graph->device_count || recording->slot_count > MAX_SPANS)
            return check_problem(check, "recording %zu is malformed", i);
        if (!list_good(&place)) return false;
    }
    return true;
}

// A recording for one shot is executed once.
static bool shots_good(const graph_t *graph, check_t *check)
{
    uint64_t shot = 0;
    for (size_t i = 0; i < graph->action_count; i++) {
        const action_t *action = &graph->actions[i];
        for (size_t j = 0; action->kind != ACTION_NONE && j < action->op_count; j++) {
            const op_t *op = &action->ops[j];
            if (op->kind != OP_EXECUTE || !graph->recordings[op->numbers[0]].one_shot) continue;
            if (shot & action_bit(op->numbers[0]))
                return check_problem(check, "recording %u is for one shot", op->numbers[0]);
            shot |= action_bit(op->numbers[0]);
        }
    }
    return true;
}

bool shape_check(const graph_t *graph, check_t *check)
{
    if (!objects_good(graph, check)) return false;
    for (size_t i = 0; i < graph->action_count; i++) {
        const action_t *action = &graph->actions[i];
        if (action->kind == ACTION_NONE) continue;
        bool good = action->kind < ACTION_KINDS || check_problem(check, "unknown kind");
        good = good && (action->thread < MAX_THREADS || check_problem(check, "too many threads"));
        good = good && points_good(graph, action, check);
        good = good && (action->kind == ACTION_SUBMIT ? submit_good(graph, action, check)
                                                      : host_good(graph, action, check));
        if (good) continue;
        char inner[sizeof check->problem / 2];
        memcpy(inner, check->problem, sizeof inner);
        inner[sizeof inner - 1] = 0;
        return check_problem(check, "action %zu: %s", i, inner);
    }
    return shots_good(graph, check);
}
