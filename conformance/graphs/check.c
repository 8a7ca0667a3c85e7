// SPDX-License-Identifier: Apache-2.0
#include "graphs/check.h"
#include "graphs/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool check_problem(check_t *check, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(check->problem, sizeof check->problem, format, arguments);
    va_end(arguments);
    return false;
}

// What has begun and ended while the graph is played without failures: more than that can only end
// things sooner.
typedef struct play_t {
    const graph_t *graph;
    const order_t *order;
    uint64_t begun, ended;
} play_t;

// Whether all have ended that may have come to the queue of submission `last` before it.
static bool queue_ended(const play_t *play, size_t last)
{
    const graph_t *graph = play->graph;
    for (size_t i = 0; i < graph->action_count; i++)
        if (action_beside(&graph->actions[i], &graph->actions[last]) &&
            !(play->order->issued[i] & action_bit(last)) && !(play->ended & action_bit(i)))
            return false;
    return true;
}

static bool point_ended(const play_t *play, const point_t *point)
{
    bool missing;
    if (point->up_to) return queue_ended(play, point->id);
    if (point->own) return play->ended & action_bit(point->id);
    const event_t *event = order_event(play->graph, play->order, point, &missing);
    return !missing && (!event || play->ended & action_bit(event->action));
}

static bool waits_ended(const play_t *play, const action_t *action)
{
    size_t ended = 0;
    for (size_t i = 0; action_waits(action) && i < action->wait_count; i++)
        ended += point_ended(play, &action->waits[i]);
    if (action->kind == ACTION_ANY) return ended > 0 || !action->wait_count;
    return !action_waits(action) || ended == action->wait_count;
}

static bool may_begin(const play_t *play, size_t index)
{
    const action_t *action = &play->graph->actions[index];
    uint64_t needs = action->after;
    for (size_t i = 0; i < play->graph->action_count; i++) {
        const action_t *other = &play->graph->actions[i];
        if (other->kind == ACTION_NONE) needs &= ~action_bit(i);
        if (other->kind != ACTION_NONE && other->thread == action->thread &&
            other->turn < action->turn)
            needs |= action_bit(i);
    }
    for (size_t i = 0; action_waits(action) && i < action->wait_count; i++)
        if (action->waits[i].own) needs |= action_bit(action->waits[i].id);
    return (needs & ~play->begun) == 0;
}

static bool play_step(play_t *play, size_t index)
{
    const action_t *action = &play->graph->actions[index];
    uint64_t bit = action_bit(index);
    uint64_t begun = play->begun, ended = play->ended;
    if (action->kind == ACTION_SUBMIT) {
        if (may_begin(play, index)) play->begun |= bit;
        if (play->begun & bit && waits_ended(play, action)) play->ended |= bit;
    } else if (may_begin(play, index) && waits_ended(play, action)) {
        play->begun |= bit;
        play->ended |= bit;
    }
    return begun != play->begun || ended != play->ended;
}

bool end_check(const graph_t *graph, check_t *check)
{
    play_t play = {graph, &check->order, 0, 0};
    bool progress = true;
    while (progress) {
        progress = false;
        for (size_t i = 0; i < graph->action_count; i++)
            if (graph->actions[i].kind != ACTION_NONE) progress |= play_step(&play, i);
    }
    for (size_t i = 0; i < graph->action_count; i++)
        if (graph->actions[i].kind != ACTION_NONE && !(play.ended & action_bit(i)))
            return check_problem(check, "action %zu would wait for ever", i);
    return true;
}

bool signals_check(const graph_t *graph, check_t *check)
{
    const order_t *order = &check->order;
    for (size_t s = 0; s < graph->semaphore_count; s++) {
        uint32_t last = graph->semaphores[s].initial;
        for (size_t i = 0; i < order->event_counts[s]; i++) {
            const event_t *event = &order->events[s][i];
            if (event->value <= last)
                return check_problem(check, "s%zu:%u is signalled twice or too low", s,
                                     event->value);
            if (i && order->known[event->action][s] < last)
                return check_problem(check, "action %u signals s%zu:%u without knowing of s%zu:%u",
                                     event->action, s, event->value, s, last);
            last = event->value;
        }
    }
    return true;
}

// The action that does this to a space, or -1.
static int action_of(const graph_t *graph, op_kind_t kind, size_t space)
{
    for (size_t i = 0; i < graph->action_count; i++)
        for (size_t j = 0; j < graph->actions[i].op_count; j++)
            if (graph->actions[i].ops[j].kind == kind &&
                graph->actions[i].ops[j].spans[0].id == space)
                return (int)i;
    return -1;
}

// Whether the buffer `first` of a tight pool is sure to make room for `second`.
static bool makes_room(const graph_t *graph, const order_t *order, size_t first, size_t second)
{
    int took = action_of(graph, OP_ALLOCA, first), take = action_of(graph, OP_ALLOCA, second);
    int give = action_of(graph, OP_DEALLOCA, first);
    if (give < 0 || took < 0 || take < 0) return false;
    return order->before[take] & action_bit((size_t)took) &&
           order->issued[take] & action_bit((size_t)give) &&
           !(order->before[give] & action_bit((size_t)take));
}

bool pools_check(const graph_t *graph, check_t *check)
{
    for (size_t i = 0; i < graph->space_count; i++) {
        const space_t *a = &graph->spaces[i];
        if (a->kind != SPACE_POOL || a->pool != TIGHT_POOL) continue;
        if (action_of(graph, OP_ALLOCA, i) < 0) continue;
        if (graph->failures)
            return check_problem(check, "b%zu: where failures are, no pool may be tight", i);
        for (size_t j = 0; j < i; j++) {
            const space_t *b = &graph->spaces[j];
            if (b->kind != SPACE_POOL || b->pool != TIGHT_POOL || b->device != a->device) continue;
            if (action_of(graph, OP_ALLOCA, j) < 0) continue;
            if (!makes_room(graph, &check->order, i, j) && !makes_room(graph, &check->order, j, i))
                return check_problem(check, "b%zu and b%zu may want the tight pool at once", j, i);
        }
    }
    return true;
}

bool control_check(const graph_t *graph, check_t *check)
{
    model_t *model = malloc(sizeof *model);
    uint64_t failed = 0;
    bool good = true;
    if (!model) return check_problem(check, "out of memory");
    model_init(model, graph, &check->order);
    for (size_t i = 0; good && i < graph->action_count; i++) {
        const action_t *action = &graph->actions[i];
        if (action->kind == ACTION_NONE || check->order.firm[i] & failed) continue;
        if (action->kind == ACTION_FAIL && !graph->failures)
            good =
                check_problem(check, "action %zu fails a semaphore, which `failures 0` denies", i);
        if (model_run(model, i)) {
            if (model->error) good = check_problem(check, "action %zu: %s", i, model->error);
            continue;
        }
        failed |= action_bit(i);
        if (!graph->failures)
            good = check_problem(check, "action %zu fails, which `failures 0` denies", i);
        for (size_t j = 0; j < action->op_count; j++)
            if (action->ops[j].kind == OP_ALLOCA || action->ops[j].kind == OP_DEALLOCA)
                good = check_problem(check, "action %zu fails and changes a pool", i);
    }
    free(model);
    return good;
}

bool graph_check(const graph_t *graph, check_t *check)
{
    check->problem[0] = 0;
    if (!shape_check(graph, check)) return false;
    order_compute(graph, &check->order);
    return end_check(graph, check) && signals_check(graph, check) && hazards_check(graph, check) &&
           pools_check(graph, check) && control_check(graph, check);
}
