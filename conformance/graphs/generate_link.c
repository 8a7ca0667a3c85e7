// SPDX-License-Identifier: Apache-2.0
// Puts drafts into the graph, and the edges they need: points of submissions, semaphores that are
// signalled for the purpose, empty submissions in between, host waits and host signals.
#include "graphs/generator.h"

#include <assert.h>
#include <string.h>

static point_t own_point(size_t action)
{
    point_t point = {.own = true, .id = (uint8_t)action};
    return point;
}

// Fences of the queue that an action goes to. It is submitted behind them: else who waits for one
// could wait for an action that waits for it.
static uint64_t fences_before(const generator_t *generator, const action_t *action)
{
    uint64_t fences = 0;
    for (size_t i = 0; i < generator->graph->action_count; i++)
        if (generator->fences & action_bit(i) &&
            action_beside(action, &generator->graph->actions[i]))
            fences |= action_bit(i);
    return fences;
}

static size_t action_append(generator_t *generator, const action_t *action)
{
    graph_t *graph = generator->graph;
    size_t index = graph->action_count++;
    assert(index < MAX_ACTIONS);
    graph->actions[index] = *action;
    graph->actions[index].after |= fences_before(generator, action);
    order_append(graph, &generator->order, index);
    for (size_t i = 0; action->kind != ACTION_FAIL && i < action->signal_count; i++) {
        event_t event = {(uint8_t)index, false, action->signals[i].value};
        order_add_event(&generator->order, action->signals[i].id, event);
    }
    action_accesses(graph, action, &generator->accesses[index]);
    return index;
}

static uint32_t semaphore_last(const generator_t *generator, size_t semaphore)
{
    const order_t *order = &generator->order;
    size_t count = order->event_counts[semaphore];
    return count ? order->events[semaphore][count - 1].value
                 : generator->graph->semaphores[semaphore].initial;
}

bool signal_choose(generator_t *generator, size_t knower, point_t *point)
{
    const graph_t *graph = generator->graph;
    const action_t *action = &graph->actions[knower];
    if (!graph->semaphore_count || action->signal_count == MAX_SIGNALS) return false;
    for (size_t tries = 0; tries < 4; tries++) {
        uint32_t s = random_below(&generator->random, graph->semaphore_count);
        bool used = generator->order.event_counts[s] > 0, twice = false;
        if (used && generator->order.known[knower][s] < semaphore_last(generator, s)) continue;
        for (size_t i = 0; i < action->signal_count; i++) twice |= action->signals[i].id == s;
        if (twice) continue;
        uint32_t value = semaphore_last(generator, s) + random_range(&generator->random, 1, 3);
        *point = (point_t){.id = (uint8_t)s, .value = value};
        return true;
    }
    return false;
}

void signal_add(generator_t *generator, size_t index, point_t point)
{
    action_t *action = &generator->graph->actions[index];
    event_t event = {(uint8_t)index, false, point.value};
    action->signals[action->signal_count++] = point;
    order_add_event(&generator->order, point.id, event);
}

// Any value that the event, and no earlier one, reaches.
static point_t event_point(generator_t *generator, size_t semaphore, uint32_t value)
{
    const order_t *order = &generator->order;
    uint32_t low = generator->graph->semaphores[semaphore].initial;
    for (size_t i = 0; i < order->event_counts[semaphore]; i++)
        if (order->events[semaphore][i].value < value) low = order->events[semaphore][i].value;
    point_t point = {.id = (uint8_t)semaphore,
                     .value = random_range(&generator->random, low + 1, value)};
    return point;
}

// A point of a semaphore that submission `index` signals, if need be from now on.
static bool semaphore_point(generator_t *generator, size_t index, point_t *point)
{
    action_t *action = &generator->graph->actions[index];
    if (action->signal_count && random_chance(&generator->random, 60)) {
        const point_t *signal =
            &action->signals[random_below(&generator->random, action->signal_count)];
        *point = event_point(generator, signal->id, signal->value);
        return true;
    }
    if (!signal_choose(generator, index, point)) return false;
    signal_add(generator, index, *point);
    *point = event_point(generator, point->id, point->value);
    return true;
}

static void action_begin(generator_t *generator, action_kind_t kind, action_t *action)
{
    random_t *random = &generator->random;
    memset(action, 0, sizeof *action);
    action->kind = (uint8_t)kind;
    action->thread = (uint8_t)random_below(random, generator->threads);
    if (kind != ACTION_SUBMIT) return;
    action->device = generator->devices[random_below(random, (uint32_t)generator->device_count)];
    action->queue = (uint8_t)random_below(random, MAX_QUEUES);
}

// A host wait for the end of submission `index`.
static size_t wait_append(generator_t *generator, point_t point)
{
    static const uint8_t kinds[] = {ACTION_WAIT, ACTION_WAIT, ACTION_COMPLETION, ACTION_ANY};
    action_t wait;
    action_begin(generator, kinds[random_below(&generator->random, 4)], &wait);
    wait.waits[wait.wait_count++] = point;
    return action_append(generator, &wait);
}

// Whether there is room for actions that an edge could do without: what every draft may need,
// itself and joins of its waits, is kept free.
static bool room_for(const generator_t *generator, size_t more)
{
    return generator->graph->action_count + more + 8 < MAX_ACTIONS;
}

// An empty submission that takes over all waits of the draft, for a list can become too long.
static void draft_join(generator_t *generator)
{
    action_t *draft = &generator->draft, join;
    action_begin(generator, ACTION_SUBMIT, &join);
    join.wait_count = draft->wait_count;
    memcpy(join.waits, draft->waits, sizeof join.waits);
    draft->waits[0] = own_point(action_append(generator, &join));
    draft->wait_count = 1;
}

static void draft_wait(generator_t *generator, point_t point)
{
    action_t *draft = &generator->draft;
    if (draft->wait_count + 1 == MAX_WAITS) draft_join(generator);
    draft->waits[draft->wait_count++] = point;
}

// A submission that waits for `index` and moves a semaphore for the draft to wait for.
static bool relay_by_queue(generator_t *generator, size_t index)
{
    const graph_t *graph = generator->graph;
    action_t relay;
    if (!graph->semaphore_count || !room_for(generator, 2)) return false;
    uint32_t s = random_below(&generator->random, graph->semaphore_count);
    uint32_t last = semaphore_last(generator, s);
    action_begin(generator, ACTION_SUBMIT, &relay);
    relay.waits[relay.wait_count++] = own_point(index);
    if (generator->order.event_counts[s])
        relay.waits[relay.wait_count++] = event_point(generator, s, last);
    point_t signal = {.id = (uint8_t)s, .value = last + random_range(&generator->random, 1, 3)};
    relay.signals[relay.signal_count++] = signal;
    action_append(generator, &relay);
    draft_wait(generator, event_point(generator, s, signal.value));
    return true;
}

// The same by a thread of the host.
static bool relay_by_host(generator_t *generator, size_t index)
{
    const graph_t *graph = generator->graph;
    action_t relay;
    if (!graph->semaphore_count || !room_for(generator, 4)) return false;
    uint32_t s = random_below(&generator->random, graph->semaphore_count);
    uint32_t last = semaphore_last(generator, s);
    action_begin(generator, ACTION_SIGNAL, &relay);
    relay.after |= action_bit(wait_append(generator, own_point(index)));
    if (generator->order.event_counts[s])
        relay.after |= action_bit(wait_append(generator, event_point(generator, s, last)));
    point_t signal = {.id = (uint8_t)s, .value = last + random_range(&generator->random, 1, 3)};
    relay.signals[relay.signal_count++] = signal;
    action_append(generator, &relay);
    draft_wait(generator, event_point(generator, s, signal.value));
    return true;
}

// A submission to the queue of `index`, behind it and ordered by nothing; the draft waits for all
// up to there. A failure may lie anywhere before it: where there are any, an end must do.
static bool relay_by_fence(generator_t *generator, size_t index, bool firm)
{
    const action_t *first = &generator->graph->actions[index];
    bool failures = generator->graph->failures;
    action_t fence;
    if ((firm && failures) || !room_for(generator, 2)) return false;
    action_begin(generator, ACTION_SUBMIT, &fence);
    fence.device = first->device;
    fence.queue = first->queue;
    fence.after |= action_bit(index);
    point_t point = own_point(action_append(generator, &fence));
    point.up_to = true;
    point.ended = failures || random_chance(&generator->random, 30);
    generator->fences |= action_bit(point.id);
    draft_wait(generator, point);
    return true;
}

// The own point of a submission, or its end if the draft may run behind a failure.
static point_t end_point(generator_t *generator, size_t index, bool firm)
{
    point_t point = own_point(index);
    point.ended = !firm && random_chance(&generator->random, 30);
    return point;
}

// Orders the draft after a submission by a host wait.
static void draft_follow_host(generator_t *generator, size_t index)
{
    point_t point = end_point(generator, index, false);
    bool semaphore = !generator->graph->failures && random_chance(&generator->random, 50);
    if (semaphore && !semaphore_point(generator, index, &point)) point = own_point(index);
    generator->draft.after |= action_bit(wait_append(generator, point));
}

// Orders the draft after action `index`. `firm`: so that it fails if that one does.
static void draft_follow(generator_t *generator, size_t index, bool firm)
{
    action_t *draft = &generator->draft;
    uint32_t dice = random_below(&generator->random, 100);
    bool host_allowed = !firm || !generator->graph->failures;
    point_t point;
    if (generator->graph->actions[index].kind != ACTION_SUBMIT)
        draft->after |= action_bit(index);
    else if (draft->kind != ACTION_SUBMIT)
        draft_follow_host(generator, index);
    else if (dice < 40 && semaphore_point(generator, index, &point))
        draft_wait(generator, point);
    else if (dice >= 40 && dice < 50 && relay_by_queue(generator, index))
        return;
    else if (dice >= 50 && dice < 56 && relay_by_fence(generator, index, firm))
        return;
    else if (dice >= 56 && dice < 62 && host_allowed && relay_by_host(generator, index))
        return;
    else if (dice >= 62 && dice < 68 && host_allowed && room_for(generator, 1))
        draft_follow_host(generator, index);
    else
        draft_wait(generator, end_point(generator, index, firm));
}

// The latest action that the draft, standing at the end, must follow and does not; or -1.
static int draft_missing(generator_t *generator, const accesses_t *accesses, bool *firm)
{
    size_t end = generator->graph->action_count;
    generator->graph->actions[end] = generator->draft;
    generator->graph->action_count++;
    order_append(generator->graph, &generator->order, end);
    generator->graph->action_count--;
    for (size_t i = end; i-- > 0;) {
        const accesses_t *other = &generator->accesses[i];
        bool known = generator->order.before[end] & action_bit(i);
        *firm = generator->draft_firm & ~generator->order.firm[end] & action_bit(i);
        if (*firm) return (int)i;
        if (!known && accesses_conflict(accesses->list, accesses->count, other->list, other->count))
            return (int)i;
    }
    return -1;
}

size_t draft_place(generator_t *generator)
{
    accesses_t accesses;
    bool firm;
    int missing;
    action_accesses(generator->graph, &generator->draft, &accesses);
    while ((missing = draft_missing(generator, &accesses, &firm)) >= 0) {
        bool submit = generator->draft.kind == ACTION_SUBMIT;
        if (!submit && !room_for(generator, 1)) return generator->graph->action_count;
        draft_follow(generator, (size_t)missing, firm);
    }
    return action_append(generator, &generator->draft);
}
