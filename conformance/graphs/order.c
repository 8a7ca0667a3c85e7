// SPDX-License-Identifier: Apache-2.0
#include "graphs/order.h"

#include <string.h>

static bool bits_add(uint64_t *bits, uint64_t more)
{
    uint64_t old = *bits;
    *bits |= more;
    return *bits != old;
}

static bool known_raise(uint32_t *known, uint32_t value)
{
    if (*known >= value) return false;
    *known = value;
    return true;
}

static bool known_merge(order_t *order, size_t to, size_t from)
{
    bool changed = false;
    for (size_t s = 0; s < MAX_SEMAPHORES; s++)
        changed |= known_raise(&order->known[to][s], order->known[from][s]);
    return changed;
}

void order_add_event(order_t *order, size_t semaphore, event_t event)
{
    event_t *events = order->events[semaphore];
    size_t i = order->event_counts[semaphore]++;
    for (; i > 0 && events[i - 1].value > event.value; i--) events[i] = events[i - 1];
    events[i] = event;
}

const event_t *order_event(const graph_t *graph, const order_t *order, const point_t *point,
                           bool *missing)
{
    *missing = false;
    if (point->value <= graph->semaphores[point->id].initial) return NULL;
    for (size_t i = 0; i < order->event_counts[point->id]; i++)
        if (order->events[point->id][i].value >= point->value) return &order->events[point->id][i];
    *missing = true;
    return NULL;
}

// `action` comes after what `other` came after.
static bool learn_past(order_t *order, size_t action, size_t other)
{
    bool changed = bits_add(&order->before[action], order->before[other]);
    changed |= bits_add(&order->firm[action], order->firm[other]);
    changed |= known_merge(order, action, other);
    return changed;
}

// `action` has seen the end of what `other` did. `reached` says that it went well.
static bool learn_end(const graph_t *graph, order_t *order, size_t action, size_t other,
                      bool reached)
{
    const action_t *past = &graph->actions[other];
    bool submitted = past->kind == ACTION_SUBMIT;
    bool changed = bits_add(&order->before[action], action_bit(other));
    if (past->kind == ACTION_SIGNAL)
        changed |= known_raise(&order->known[action][past->signals[0].id], past->signals[0].value);
    if (submitted && reached) changed |= bits_add(&order->firm[action], action_bit(other));
    // What a host action knows holds whatever became of it.
    if (reached || !submitted) changed |= learn_past(order, action, other);
    return changed;
}

// `action` has seen the end of all that was submitted to the queue of `last` before it.
static bool learn_up_to(const graph_t *graph, order_t *order, size_t action, size_t last,
                        bool reached)
{
    bool changed = false;
    for (size_t i = 0; i < graph->action_count; i++)
        if (order->issued[last] & action_bit(i) &&
            action_beside(&graph->actions[i], &graph->actions[last]))
            changed |= learn_end(graph, order, action, i, reached);
    return changed;
}

static bool learn_wait(const graph_t *graph, order_t *order, size_t index, const point_t *point)
{
    const action_t *action = &graph->actions[index];
    bool submitted = action->kind == ACTION_SUBMIT;
    bool reached = (submitted && !point->ended) || !graph->failures;
    bool missing, changed = false;
    if (action->kind == ACTION_ANY && action->wait_count > 1) return false;
    if (!reached && !submitted && action->wait_count > 1) return false; // a failure ends it early
    if (point->up_to) changed = learn_up_to(graph, order, index, point->id, reached);
    if (point->own) return learn_end(graph, order, index, point->id, reached) || changed;
    const event_t *event = order_event(graph, order, point, &missing);
    if (!event) return false;
    // If the semaphore failed instead, nothing moves it any more: as good as knowing the value.
    changed |= known_raise(&order->known[index][point->id], event->value);
    if (reached && event->inside) changed |= learn_past(order, index, event->action);
    if (reached && !event->inside) changed |= learn_end(graph, order, index, event->action, true);
    return changed;
}

static bool order_update(const graph_t *graph, order_t *order, size_t index, bool threads)
{
    const action_t *action = &graph->actions[index];
    bool changed = false;
    uint64_t issued = action->after;
    for (size_t i = 0; action_waits(action) && i < action->wait_count; i++) {
        if (action->waits[i].own) issued |= action_bit(action->waits[i].id);
        changed |= learn_wait(graph, order, index, &action->waits[i]);
    }
    for (size_t j = 0; j < graph->action_count; j++) {
        const action_t *other = &graph->actions[j];
        if (other->kind == ACTION_NONE || j == index) continue;
        if (threads && other->thread == action->thread && other->turn < action->turn)
            issued |= action_bit(j);
        if (issued & action_bit(j)) issued |= order->issued[j];
    }
    changed |= bits_add(&order->issued[index], issued);
    for (size_t j = 0; j < graph->action_count; j++)
        if (order->issued[index] & action_bit(j) && action_on_host(&graph->actions[j]))
            changed |= learn_end(graph, order, index, j, !graph->failures);
    if (!graph->failures) changed |= bits_add(&order->firm[index], order->before[index]);
    return changed;
}

void order_events(const graph_t *graph, order_t *order)
{
    memset(order->event_counts, 0, sizeof order->event_counts);
    for (size_t i = 0; i < graph->action_count; i++) {
        const action_t *action = &graph->actions[i];
        if (action->kind != ACTION_SUBMIT && action->kind != ACTION_SIGNAL) continue;
        for (size_t j = 0; j < action->signal_count; j++) {
            event_t event = {(uint8_t)i, false, action->signals[j].value};
            order_add_event(order, action->signals[j].id, event);
        }
        for (size_t j = 0; j < action->op_count; j++) {
            event_t event = {(uint8_t)i, true, action->ops[j].numbers[1]};
            if (action->ops[j].kind == OP_CALL_SIGNAL)
                order_add_event(order, action->ops[j].numbers[0], event);
        }
    }
}

void order_compute(const graph_t *graph, order_t *order)
{
    bool changed = true;
    memset(order, 0, sizeof *order);
    order_events(graph, order);
    while (changed) {
        changed = false;
        for (size_t i = 0; i < graph->action_count; i++)
            if (graph->actions[i].kind != ACTION_NONE)
                changed |= order_update(graph, order, i, true);
    }
}

void order_append(const graph_t *graph, order_t *order, size_t index)
{
    order->issued[index] = order->before[index] = order->firm[index] = 0;
    memset(order->known[index], 0, sizeof order->known[index]);
    order_update(graph, order, index, false);
}
