// SPDX-License-Identifier: Apache-2.0
#include "graphs/judge.h"
#include "graphs/model.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_ACTION = MAX_ACTIONS };

typedef struct judge_t {
    const graph_t *graph;
    const outcome_t *outcome;
    judgement_t *judgement;
    order_t order;
    model_t model;
} judge_t;

__attribute__((format(printf, 4, 5))) static void complain(judge_t *judge, complaint_t kind,
                                                           size_t action, const char *format, ...)
{
    judgement_t *to = judge->judgement;
    size_t used = strlen(to->complaints), room = sizeof to->complaints - used;
    va_list arguments;
    to->kinds |= (uint32_t)kind;
    if (action != NO_ACTION) to->complained |= action_bit(action);
    if (action != NO_ACTION && room > 20)
        used += (size_t)snprintf(to->complaints + used, room, "action %zu: ", action);
    room = sizeof to->complaints - used;
    va_start(arguments, format);
    vsnprintf(to->complaints + used, room, format, arguments);
    va_end(arguments);
    used = strlen(to->complaints);
    if (used + 1 < sizeof to->complaints) strcpy(to->complaints + used, "\n");
}

// A point of a failed semaphore is reached if the value had come that far by then. All have ended.
static bool point_reached(const judge_t *judge, const point_t *point)
{
    if (point->ended) return true;
    if (point->own) return judge->outcome->actions[point->id].state == SEEN_REACHED;
    return judge->outcome->semaphores[point->id].value >= point->value;
}

static size_t reached_count(const judge_t *judge, const action_t *action)
{
    size_t count = 0;
    for (size_t i = 0; i < action->wait_count; i++)
        count += point_reached(judge, &action->waits[i]);
    return count;
}

// A cause quotes the number of an injected failure that can have reached here, and has its code.
// Memory used after it was given back has no number of ours.
static bool cause_good(const judge_t *judge, const cause_t *cause, uint64_t origins)
{
    if (cause->numbers & ~origins) return false;
    for (size_t i = 0; i < judge->graph->action_count; i++) {
        if (!(origins & action_bit(i))) continue;
        bool quoted = cause->numbers & action_bit(i);
        keel_code_t code = injected_code(judge->graph, i);
        if (quoted && cause->code == code) return true;
        if (!cause->numbers && cause->code == code && code == KEEL_FAILED_PRECONDITION) return true;
    }
    return false;
}

static void submit_judge(judge_t *judge, size_t index)
{
    const action_t *action = &judge->graph->actions[index];
    const seen_t *seen = &judge->outcome->actions[index];
    const verdict_t *verdict = &judge->judgement->verdict;
    bool reached = seen->state == SEEN_REACHED;
    bool waits_reached = reached_count(judge, action) == action->wait_count;
    bool well = waits_reached && model_run(&judge->model, index);
    if (reached && !waits_reached)
        complain(judge, COMPLAINT_ACTION, index,
                 "ran although a point it waits for was not reached");
    else if (reached && !well)
        complain(judge, COMPLAINT_ACTION, index, "did not fail as it should by itself");
    else if (!reached && well)
        complain(judge, COMPLAINT_ACTION, index, "failed for no reason: %s", seen->cause.text);
    else if (reached && verdict->must_fail[index])
        complain(judge, COMPLAINT_ACTION, index, "succeeded although something before it fails");
    else if (!reached && !verdict->origins[index])
        complain(judge, COMPLAINT_ACTION, index, "failed although nothing before it can: %s",
                 seen->cause.text);
    else if (!reached && !cause_good(judge, &seen->cause, verdict->origins[index]))
        complain(judge, COMPLAINT_CAUSE, index, "failed with a cause that is not its own: %s",
                 seen->cause.text);
}

static void wait_judge(judge_t *judge, size_t index)
{
    const action_t *action = &judge->graph->actions[index];
    const seen_t *seen = &judge->outcome->actions[index];
    size_t reached = reached_count(judge, action);
    bool any = action->kind == ACTION_ANY;
    if (seen->state == SEEN_REACHED) {
        if (any ? !reached : reached < action->wait_count)
            complain(judge, COMPLAINT_ACTION, index,
                     "the wait ended well although a point was not reached");
    } else if (reached == action->wait_count) {
        complain(judge, COMPLAINT_ACTION, index,
                 "the wait failed although all points were reached: %s", seen->cause.text);
    }
}

static void signal_judge(judge_t *judge, size_t index)
{
    const point_t *signal = &judge->graph->actions[index].signals[0];
    const seen_t *seen = &judge->outcome->actions[index];
    bool reached = judge->outcome->semaphores[signal->id].value >= signal->value;
    if (seen->state == SEEN_REACHED && !reached)
        complain(judge, COMPLAINT_ACTION, index, "the signal was accepted and lost");
    if (seen->state == SEEN_FAILED && !judge->outcome->semaphores[signal->id].failed)
        complain(judge, COMPLAINT_ACTION, index, "the signal was refused: %s", seen->cause.text);
}

static void bytes_judge(judge_t *judge, size_t action, span_t span, const uint8_t *seen)
{
    const uint8_t *expected = &judge->model.bytes[span.id][span.offset];
    const bool *unknown = &judge->model.unknown[span.id][span.offset];
    for (size_t i = 0; i < span.length; i++) {
        if (unknown[i] || seen[i] == expected[i]) continue;
        uint8_t writer = judge->model.writers[span.id][span.offset + i];
        complain(judge, COMPLAINT_MEMORY, action,
                 "b%u byte %zu is %02x, should be %02x (last written by %d)", span.id,
                 span.offset + i, seen[i], expected[i], writer == 255 ? -1 : writer);
        if (writer < MAX_ACTIONS) judge->judgement->complained |= action_bit(writer);
        return;
    }
}

static void action_judge(judge_t *judge, size_t index)
{
    const action_t *action = &judge->graph->actions[index];
    const seen_t *seen = &judge->outcome->actions[index];
    switch (action->kind) {
    case ACTION_SUBMIT: submit_judge(judge, index); break;
    case ACTION_WAIT:
    case ACTION_ANY:
    case ACTION_COMPLETION: wait_judge(judge, index); break;
    case ACTION_SIGNAL: signal_judge(judge, index); break;
    case ACTION_PEEK: bytes_judge(judge, index, action->ops[0].spans[0], seen->bytes); break;
    case ACTION_POKE: model_run(&judge->model, index); break;
    default: break;
    }
}

// Whether something has failed the semaphore.
static bool semaphore_struck(const judge_t *judge, size_t semaphore)
{
    for (size_t i = 0; i < judge->graph->action_count; i++) {
        const action_t *action = &judge->graph->actions[i];
        bool fails =
            action->kind == ACTION_FAIL ||
            (action->kind == ACTION_SUBMIT && judge->outcome->actions[i].state == SEEN_FAILED);
        for (size_t j = 0; fails && j < action->signal_count; j++)
            if (action->signals[j].id == semaphore) return true;
    }
    return false;
}

static void semaphore_judge(judge_t *judge, size_t s)
{
    const verdict_t *verdict = &judge->judgement->verdict;
    uint64_t value = judge->outcome->semaphores[s].value;
    bool failed = judge->outcome->semaphores[s].failed;
    bool reachable = value == judge->graph->semaphores[s].initial;
    for (size_t i = 0; i < judge->order.event_counts[s]; i++) {
        const event_t *event = &judge->order.events[s][i];
        reachable |= event->value == value;
        if (event->value <= value && judge->outcome->actions[event->action].state != SEEN_REACHED)
            complain(judge, COMPLAINT_SEMAPHORE, event->action,
                     "s%zu is at %" PRIu64 " although it failed", s, value);
    }
    if (!reachable)
        complain(judge, COMPLAINT_SEMAPHORE, NO_ACTION,
                 "s%zu is at %" PRIu64 ", which no action signals", s, value);
    if (failed != semaphore_struck(judge, s))
        complain(judge, COMPLAINT_SEMAPHORE, NO_ACTION, "s%zu has %s", s,
                 failed ? judge->outcome->semaphores[s].cause.text : "not failed");
    if (value < verdict->least[s] || value > verdict->most[s])
        complain(judge, COMPLAINT_SEMAPHORE, NO_ACTION,
                 "s%zu is at %" PRIu64 ", should be from %u to %u", s, value, verdict->least[s],
                 verdict->most[s]);
    if (failed &&
        !cause_good(judge, &judge->outcome->semaphores[s].cause, verdict->semaphore_origins[s]))
        complain(judge, COMPLAINT_CAUSE, NO_ACTION,
                 "s%zu failed with a cause that is not its own: %s", s,
                 judge->outcome->semaphores[s].cause.text);
}

static void memory_judge(judge_t *judge)
{
    for (size_t s = 0; s < judge->graph->space_count; s++) {
        span_t all = {false, (uint8_t)s, 0, judge->graph->spaces[s].size};
        if (!judge->model.resident[s]) continue;
        if (judge->outcome->readable[s])
            bytes_judge(judge, NO_ACTION, all, judge->outcome->memory[s]);
        else
            complain(judge, COMPLAINT_MEMORY, NO_ACTION, "b%zu cannot be read", s);
    }
}

bool graph_judge(const graph_t *graph, const outcome_t *outcome, judgement_t *judgement)
{
    judge_t *judge = calloc(1, sizeof *judge);
    if (!judge) abort();
    memset(judgement, 0, sizeof *judgement);
    judge->graph = graph;
    judge->outcome = outcome;
    judge->judgement = judgement;
    order_compute(graph, &judge->order);
    verdict_compute(graph, &judge->order, graph_failing(graph, &judge->order), &judgement->verdict);
    model_init(&judge->model, graph, NULL);
    if (outcome->problem[0]) {
        complain(judge, COMPLAINT_RUN, NO_ACTION, "%s", outcome->problem);
    } else {
        for (size_t i = 0; i < graph->action_count; i++) action_judge(judge, i);
        for (size_t s = 0; s < graph->semaphore_count; s++) semaphore_judge(judge, s);
        memory_judge(judge);
        if (outcome->left[0])
            complain(judge, COMPLAINT_LEFT, NO_ACTION, "objects are left:%s", outcome->left);
    }
    free(judge);
    return !judgement->kinds;
}
