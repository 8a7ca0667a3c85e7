// SPDX-License-Identifier: Apache-2.0
// In which order threads begin the actions of a graph: any in which no thread is blocked for ever.
#include "graphs/generator.h"

typedef struct needs_t {
    uint64_t begin[MAX_ACTIONS]; // what must have been begun before the action can be
    uint64_t end[MAX_ACTIONS];   // before it can end
} needs_t;

// Whether an action may have to wait for those it comes after to end: deallocas of a tight pool.
static bool waits_for_memory(const graph_t *graph, const action_t *action)
{
    for (size_t i = 0; i < action->op_count; i++)
        if (action->ops[i].kind == OP_ALLOCA &&
            graph->spaces[action->ops[i].spans[0].id].pool == TIGHT_POOL)
            return true;
    return false;
}

// What must have been begun before all can end that may come to the queue of `last` before it.
static uint64_t needs_up_to(const graph_t *graph, const needs_t *needs, size_t last)
{
    uint64_t end = 0;
    for (size_t i = 0; i < last; i++)
        if (action_beside(&graph->actions[i], &graph->actions[last]))
            end |= action_bit(i) | needs->end[i];
    return end;
}

static void needs_compute(generator_t *generator, size_t index, needs_t *needs)
{
    const graph_t *graph = generator->graph;
    const action_t *action = &graph->actions[index];
    uint64_t direct = action->after;
    uint64_t end = 0;
    for (size_t i = 0; action_waits(action) && i < action->wait_count; i++) {
        const point_t *point = &action->waits[i];
        bool missing;
        const event_t *event =
            point->own ? NULL : order_event(graph, &generator->order, point, &missing);
        if (point->own) direct |= action_bit(point->id);
        if (!point->own && !event) continue;
        size_t signaller = point->own ? point->id : event->action;
        end |= action_bit(signaller) | needs->end[signaller];
        if (point->up_to) end |= needs_up_to(graph, needs, signaller);
    }
    for (size_t i = 0; i < index && waits_for_memory(graph, action); i++)
        if (action->after & action_bit(i)) end |= needs->end[i];
    needs->begin[index] = direct;
    for (size_t i = 0; i < index; i++) {
        if (!(direct & action_bit(i))) continue;
        needs->begin[index] |= needs->begin[i];
        if (action_on_host(&graph->actions[i])) needs->begin[index] |= needs->end[i];
    }
    needs->end[index] = needs->begin[index] | end;
}

void schedule_generate(generator_t *generator)
{
    graph_t *graph = generator->graph;
    random_t *random = &generator->random;
    needs_t needs;
    uint64_t begun = 0;
    // In the logical order, against it, or as it comes: the first is the common one.
    uint32_t style = random_below(random, 3);
    for (size_t i = 0; i < graph->action_count; i++) needs_compute(generator, i, &needs);
    for (uint8_t turn = 0; turn < graph->action_count; turn++) {
        size_t ready[MAX_ACTIONS], count = 0;
        for (size_t i = 0; i < graph->action_count; i++) {
            bool host = action_on_host(&graph->actions[i]);
            uint64_t need = host ? needs.end[i] : needs.begin[i];
            if (!(begun & action_bit(i)) && !(need & ~begun)) ready[count++] = i;
        }
        size_t pick = style == 0 ? 0 : count - 1;
        if (style == 2 || random_chance(random, 15)) pick = random_below(random, (uint32_t)count);
        graph->actions[ready[pick]].turn = turn;
        begun |= action_bit(ready[pick]);
    }
}
