// SPDX-License-Identifier: Apache-2.0
#include "graphs/verdict.h"
#include "graphs/model.h"

#include <stdlib.h>
#include <string.h>

// Those of `origins` that may strike while the semaphore is below `value`.
static uint64_t origins_before(const order_t *order, uint64_t origins, size_t semaphore,
                               uint32_t value)
{
    for (size_t i = 0; i < MAX_ACTIONS; i++)
        if (origins & action_bit(i) && order->known[i][semaphore] >= value)
            origins &= ~action_bit(i);
    return origins;
}

// Whether a semaphore must fail before it reaches its event number `last`.
static bool events_must_fail(const graph_t *graph, const order_t *order, const verdict_t *verdict,
                             size_t semaphore, size_t last)
{
    for (size_t i = 0; i <= last; i++) {
        size_t signaller = order->events[semaphore][i].action;
        if (verdict->must_fail[signaller]) return true;
        for (size_t f = 0; f < graph->action_count; f++) {
            const action_t *action = &graph->actions[f];
            if (action->kind == ACTION_FAIL && action->signals[0].id == semaphore &&
                order->before[signaller] & action_bit(f))
                return true;
        }
    }
    return false;
}

static void wait_judge(const graph_t *graph, const order_t *order, size_t index,
                       const point_t *point, verdict_t *verdict)
{
    bool missing;
    if (point->ended) return; // it passes no failure on
    if (point->own) {
        verdict->origins[index] |= verdict->origins[point->id];
        verdict->must_fail[index] |= verdict->must_fail[point->id];
        return;
    }
    const event_t *event = order_event(graph, order, point, &missing);
    if (!event) return;
    verdict->origins[index] |=
        origins_before(order, verdict->semaphore_origins[point->id], point->id, event->value);
    size_t number = (size_t)(event - order->events[point->id]);
    verdict->must_fail[index] |= events_must_fail(graph, order, verdict, point->id, number);
}

static void action_judge(const graph_t *graph, const order_t *order, size_t index,
                         verdict_t *verdict)
{
    const action_t *action = &graph->actions[index];
    if (action->kind == ACTION_FAIL) {
        verdict->semaphore_origins[action->signals[0].id] |= action_bit(index);
        verdict->semaphore_must_fail[action->signals[0].id] = true;
    }
    if (action->kind != ACTION_SUBMIT) return;
    for (size_t i = 0; i < action->wait_count; i++)
        wait_judge(graph, order, index, &action->waits[i], verdict);
    for (size_t i = 0; i < action->signal_count; i++) {
        size_t semaphore = action->signals[i].id;
        verdict->semaphore_origins[semaphore] |= verdict->origins[index];
        verdict->semaphore_must_fail[semaphore] |= verdict->must_fail[index];
    }
}

static void bounds_compute(const graph_t *graph, const order_t *order, verdict_t *verdict)
{
    for (size_t s = 0; s < graph->semaphore_count; s++) {
        verdict->least[s] = verdict->most[s] = graph->semaphores[s].initial;
        for (size_t i = 0; i < order->event_counts[s]; i++) {
            uint32_t value = order->events[s][i].value;
            if (!origins_before(order, verdict->semaphore_origins[s], s, value))
                verdict->least[s] = value;
            if (!events_must_fail(graph, order, verdict, s, i)) verdict->most[s] = value;
        }
    }
}

void verdict_compute(const graph_t *graph, const order_t *order, uint64_t failing,
                     verdict_t *verdict)
{
    verdict_t before;
    memset(verdict, 0, sizeof *verdict);
    for (size_t i = 0; i < graph->action_count; i++)
        if (failing & action_bit(i)) {
            verdict->origins[i] = action_bit(i);
            verdict->must_fail[i] = true;
        }
    // A failure can reach an earlier action through a semaphore: until nothing changes any more.
    do {
        memcpy(&before, verdict, sizeof before);
        for (size_t i = 0; i < graph->action_count; i++) action_judge(graph, order, i, verdict);
    } while (memcmp(&before, verdict, sizeof before) != 0);
    bounds_compute(graph, order, verdict);
}

uint64_t graph_failing(const graph_t *graph, const order_t *order)
{
    model_t *model = malloc(sizeof *model);
    uint64_t failing = 0;
    if (!model) abort();
    model_init(model, graph, NULL);
    for (size_t i = 0; i < graph->action_count; i++) {
        if (graph->actions[i].kind == ACTION_NONE || order->firm[i] & failing) continue;
        if (!model_run(model, i)) failing |= action_bit(i);
    }
    free(model);
    return failing;
}

static bool recording_aborts(const recording_t *recording)
{
    for (size_t i = 0; i < recording->count; i++)
        if (recording->commands[i].kind == OP_ABORT) return true;
    return false;
}

keel_code_t injected_code(const graph_t *graph, size_t index)
{
    static const keel_code_t codes[] = {KEEL_ABORTED, KEEL_INTERNAL, KEEL_IO, KEEL_CORRUPT,
                                        KEEL_OUT_OF_RANGE};
    const action_t *action = &graph->actions[index];
    keel_code_t mine = codes[index % (sizeof codes / sizeof codes[0])];
    if (action->kind == ACTION_FAIL) return mine;
    for (size_t i = 0; i < action->op_count; i++) {
        const op_t *op = &action->ops[i];
        if (op->kind == OP_ABORT) return KEEL_ABORTED;
        if (op->kind == OP_CALL && op->numbers[1] >= CALL_FAIL) return mine;
        if (op->kind == OP_EXECUTE && recording_aborts(&graph->recordings[op->numbers[0]]))
            return KEEL_ABORTED;
    }
    return KEEL_FAILED_PRECONDITION;
}
