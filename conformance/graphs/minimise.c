// SPDX-License-Identifier: Apache-2.0
#include "graphs/minimise.h"
#include "graphs/check.h"

#include <stdlib.h>
#include <string.h>

#include <keel/base.h>

typedef struct shrink_t {
    graph_t *graph; // the smallest so far
    graph_t candidate;
    check_t check;
    still_fails_fn still_fails;
    void *user;
    uint64_t deadline_ns;
    size_t tried;
} shrink_t;

static void wait_add(action_t *action, point_t point)
{
    for (size_t i = 0; i < action->wait_count; i++) {
        const point_t *other = &action->waits[i];
        if (other->own == point.own && other->ended == point.ended && other->up_to == point.up_to &&
            other->id == point.id && other->value == point.value)
            return;
    }
    if (action->wait_count < MAX_WAITS) action->waits[action->wait_count++] = point;
}

static void wait_remove(action_t *action, size_t at)
{
    action->wait_count--;
    memmove(&action->waits[at], &action->waits[at + 1],
            (action->wait_count - at) * sizeof action->waits[0]);
}

// Whether the action brings the semaphore to the point.
static bool action_reaches(const graph_t *graph, const order_t *order, size_t index,
                           const point_t *point)
{
    bool missing;
    if (point->own) return point->id == index;
    const event_t *event = order_event(graph, order, point, &missing);
    return event && event->action == index;
}

// Instead of all up to `gone`, which is left out, waits for all up to those it came behind.
static void wait_add_up_to(const graph_t *graph, const action_t *gone, point_t point,
                           action_t *action)
{
    for (size_t i = 0; i < graph->action_count; i++) {
        if (!(gone->after & action_bit(i)) || !action_beside(&graph->actions[i], gone)) continue;
        point.id = (uint8_t)i;
        wait_add(action, point);
    }
}

static void waits_redirect(const graph_t *graph, const order_t *order, size_t index,
                           action_t *action)
{
    const action_t *gone = &graph->actions[index];
    bool waited = false;
    for (size_t i = action->wait_count; i-- > 0;) {
        point_t point = action->waits[i];
        if (!action_reaches(graph, order, index, &point)) continue;
        wait_remove(action, i);
        if (point.up_to) wait_add_up_to(graph, gone, point, action);
        waited = true;
    }
    bool followed = action->after & action_bit(index);
    action->after &= ~action_bit(index);
    if (!waited && !followed) return;
    action->after |= gone->after;
    if (!action_waits(action)) return;
    for (size_t i = 0; action_waits(gone) && i < gone->wait_count; i++)
        wait_add(action, gone->waits[i]);
}

void action_drop(graph_t *graph, size_t index)
{
    order_t order;
    order_events(graph, &order);
    for (size_t i = 0; i < graph->action_count; i++)
        if (i != index && graph->actions[i].kind != ACTION_NONE)
            waits_redirect(graph, &order, index, &graph->actions[i]);
    memset(&graph->actions[index], 0, sizeof graph->actions[index]);
}

static bool time_is_up(const shrink_t *shrink)
{
    return keel_now_ns() >= shrink->deadline_ns;
}

// Keeps the candidate if it still fails.
static bool try_candidate(shrink_t *shrink)
{
    if (time_is_up(shrink) || !graph_check(&shrink->candidate, &shrink->check)) return false;
    shrink->tried++;
    if (!shrink->still_fails(shrink->user, &shrink->candidate)) return false;
    *shrink->graph = shrink->candidate;
    return true;
}

static size_t action_total(const graph_t *graph)
{
    size_t total = 0;
    for (size_t i = 0; i < graph->action_count; i++) total += graph->actions[i].kind != ACTION_NONE;
    return total;
}

// Drops runs of actions, long ones first. Pairs are among them: an alloca goes with its dealloca.
static bool drop_actions(shrink_t *shrink)
{
    bool changed = false;
    size_t length = action_total(shrink->graph) + 1;
    while (length > 1) {
        length = (length + 1) / 2;
        for (size_t end = shrink->graph->action_count; end > 0;) {
            size_t dropped = 0;
            shrink->candidate = *shrink->graph;
            while (end > 0 && dropped < length) {
                end--;
                if (shrink->candidate.actions[end].kind == ACTION_NONE) continue;
                action_drop(&shrink->candidate, end);
                dropped++;
            }
            if (dropped) changed |= try_candidate(shrink);
        }
    }
    return changed;
}

static void ops_remove(op_t *ops, uint8_t *count, size_t at, size_t length)
{
    memmove(&ops[at], &ops[at + length], (*count - at - length) * sizeof ops[0]);
    *count = (uint8_t)(*count - length);
}

static bool drop_ops(shrink_t *shrink)
{
    bool changed = false;
    for (size_t i = 0; i < shrink->graph->action_count; i++)
        for (size_t j = shrink->graph->actions[i].op_count; j-- > 0;) {
            shrink->candidate = *shrink->graph;
            action_t *action = &shrink->candidate.actions[i];
            ops_remove(action->ops, &action->op_count, j, 1);
            changed |= try_candidate(shrink);
        }
    return changed;
}

static bool recording_executed(const graph_t *graph, size_t index)
{
    for (size_t i = 0; i < graph->action_count; i++)
        for (size_t j = 0; j < graph->actions[i].op_count; j++) {
            const op_t *op = &graph->actions[i].ops[j];
            if (op->kind == OP_EXECUTE && op->numbers[0] == index) return true;
        }
    return false;
}

// Recordings that no action executes: to make them is something, too.
static bool drop_recordings(shrink_t *shrink)
{
    bool changed = false;
    for (size_t i = 0; i < shrink->graph->recording_count; i++) {
        if (!shrink->graph->recordings[i].used || recording_executed(shrink->graph, i)) continue;
        shrink->candidate = *shrink->graph;
        shrink->candidate.recordings[i].used = false;
        changed |= try_candidate(shrink);
    }
    return changed;
}

// Commands of recordings: one, or a row of them, since blocks come and go as a whole.
static bool drop_commands(shrink_t *shrink)
{
    bool changed = false;
    for (size_t i = 0; i < shrink->graph->recording_count; i++)
        for (size_t j = shrink->graph->recordings[i].count; j-- > 0;)
            for (size_t length = 1; shrink->graph->recordings[i].used &&
                                    j + length <= shrink->graph->recordings[i].count;
                 length++) {
                shrink->candidate = *shrink->graph;
                recording_t *recording = &shrink->candidate.recordings[i];
                ops_remove(recording->commands, &recording->count, j, length);
                if (try_candidate(shrink)) changed = true;
            }
    return changed;
}

static bool drop_points(shrink_t *shrink)
{
    bool changed = false;
    for (size_t i = 0; i < shrink->graph->action_count; i++) {
        for (size_t j = shrink->graph->actions[i].wait_count; j-- > 0;) {
            shrink->candidate = *shrink->graph;
            wait_remove(&shrink->candidate.actions[i], j);
            changed |= try_candidate(shrink);
        }
        for (size_t j = shrink->graph->actions[i].signal_count; j-- > 0;) {
            shrink->candidate = *shrink->graph;
            action_t *action = &shrink->candidate.actions[i];
            action->signals[j] = action->signals[--action->signal_count];
            changed |= try_candidate(shrink);
        }
        for (size_t j = 0; j < shrink->graph->action_count; j++) {
            if (!(shrink->graph->actions[i].after & action_bit(j))) continue;
            shrink->candidate = *shrink->graph;
            shrink->candidate.actions[i].after &= ~action_bit(j);
            changed |= try_candidate(shrink);
        }
    }
    return changed;
}

static bool graph_differs(const shrink_t *shrink)
{
    return memcmp(shrink->graph, &shrink->candidate, sizeof shrink->candidate) != 0;
}

// Fewer threads, no delays, the plain order, no failures: whatever of these changes nothing.
static bool simplify(shrink_t *shrink)
{
    bool changed = false;
    for (size_t step = 0; step < 4; step++) {
        graph_t *candidate = &shrink->candidate;
        *candidate = *shrink->graph;
        for (size_t i = 0; i < candidate->action_count; i++) {
            action_t *action = &candidate->actions[i];
            if (step == 0) action->delay_us = 0;
            if (step == 1) action->thread = 0;
            if (step == 2 && action->kind != ACTION_NONE) action->turn = (uint8_t)i;
        }
        if (step == 3) candidate->failures = false;
        if (graph_differs(shrink)) changed |= try_candidate(shrink);
    }
    return changed;
}

size_t graph_minimise(graph_t *graph, still_fails_fn still_fails, void *user, uint64_t deadline_ns)
{
    shrink_t *shrink = calloc(1, sizeof *shrink);
    if (!shrink) abort();
    shrink->graph = graph;
    shrink->still_fails = still_fails;
    shrink->user = user;
    shrink->deadline_ns = deadline_ns;
    bool changed = true;
    while (changed && !time_is_up(shrink)) {
        changed = drop_actions(shrink);
        changed |= drop_ops(shrink);
        changed |= drop_recordings(shrink);
        changed |= drop_commands(shrink);
        changed |= drop_points(shrink);
        changed |= simplify(shrink);
    }
    size_t tried = shrink->tried;
    free(shrink);
    return tried;
}
