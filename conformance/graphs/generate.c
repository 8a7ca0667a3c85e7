// SPDX-License-Identifier: Apache-2.0
#include "graphs/generator.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint8_t device_choose(generator_t *generator)
{
    return generator->devices[random_below(&generator->random, (uint32_t)generator->device_count)];
}

static void devices_generate(generator_t *generator)
{
    const generate_options_t *options = generator->options;
    graph_t *graph = generator->graph;
    graph->device_count = (uint8_t)options->device_count;
    for (size_t i = 0; i < options->device_count; i++) {
        strncpy(graph->uris[i], options->devices[i].uri, sizeof graph->uris[i] - 1);
        generator->devices[i] = (uint8_t)i;
    }
    // A few of them, the first of a random order.
    for (size_t i = options->device_count; i-- > 1;) {
        size_t j = random_below(&generator->random, (uint32_t)i + 1);
        uint8_t device = generator->devices[i];
        generator->devices[i] = generator->devices[j];
        generator->devices[j] = device;
    }
    uint32_t most = options->device_count < 3 ? (uint32_t)options->device_count : 3;
    generator->device_count = random_range(&generator->random, 1, most);
    generator->bits = UINT32_MAX;
    for (size_t i = 0; i < generator->device_count; i++)
        generator->bits &= options->devices[generator->devices[i]].bits;
}

static void space_add(generator_t *generator, space_kind_t kind, uint8_t device, uint16_t size)
{
    graph_t *graph = generator->graph;
    assert(graph->space_count < MAX_SPACES);
    space_t *space = &graph->spaces[graph->space_count++];
    space->kind = (uint8_t)kind;
    space->device = device;
    space->size = size;
    space->node =
        (uint8_t)random_below(&generator->random, generator->options->devices[device].nodes);
    space->pool =
        generator->tight ? TIGHT_POOL : (uint8_t)random_below(&generator->random, TIGHT_POOL);
}

static void spaces_generate(generator_t *generator)
{
    random_t *random = &generator->random;
    generator->tight = !generator->graph->failures && random_chance(random, 30);
    for (size_t i = 0; i < generator->device_count; i++) {
        uint8_t device = generator->devices[i];
        uint32_t buffers = random_range(random, 1, 3);
        uint32_t pools = generator->tight ? 4 : random_below(random, 3);
        if (!(generator->bits & KEEL_CAP_QUEUE_ALLOCA)) pools = 0;
        generator->control[device] = generator->graph->space_count;
        space_add(generator, SPACE_BUFFER, device, SPACE_SIZE);
        for (uint32_t j = 0; j < buffers; j++)
            space_add(generator, SPACE_BUFFER, device, (uint16_t)random_range(random, 64, 256));
        for (uint32_t j = 0; j < pools; j++)
            space_add(generator, SPACE_POOL, device, (uint16_t)(random_range(random, 16, 64) * 4));
    }
    if (generator->bits & KEEL_CAP_IMPORT_HOST && random_chance(random, 60))
        space_add(generator, SPACE_SHARED, device_choose(generator), 192);
    if (generator->bits & KEEL_CAP_FILES && random_chance(random, 25))
        space_add(generator, SPACE_FILE, device_choose(generator), 192);
}

static void objects_generate(generator_t *generator)
{
    graph_t *graph = generator->graph;
    random_t *random = &generator->random;
    memset(generator->cells, -1, sizeof generator->cells);
    spaces_generate(generator);
    graph->semaphore_count = (uint8_t)random_below(random, 6);
    for (size_t i = 0; i < graph->semaphore_count; i++) {
        graph->semaphores[i].device = device_choose(generator);
        graph->semaphores[i].initial = random_chance(random, 70) ? 0 : random_below(random, 5);
    }
    graph->recording_count = (uint8_t)random_below(random, 5);
    for (size_t i = 0; i < graph->recording_count; i++) recording_generate(generator, i);
}

static void draft_begin(generator_t *generator, action_kind_t kind)
{
    random_t *random = &generator->random;
    action_t *draft = &generator->draft;
    memset(draft, 0, sizeof *draft);
    draft->kind = (uint8_t)kind;
    draft->thread = (uint8_t)random_below(random, generator->threads);
    draft->device = kind == ACTION_SUBMIT ? device_choose(generator) : 0;
    draft->queue = kind == ACTION_SUBMIT ? (uint8_t)random_below(random, MAX_QUEUES) : 0;
    if (random_chance(random, 10)) draft->delay_us = (uint16_t)random_below(random, 60);
    generator->draft_firm = 0;
    generator->draft_fails = generator->draft_pool = false;
    generator->draft_cells_read = generator->draft_cells_written = 0;
}

// A point of the past: to wait for it needs no reason.
static bool point_choose(generator_t *generator, point_t *point)
{
    const graph_t *graph = generator->graph;
    random_t *random = &generator->random;
    if (graph->semaphore_count && random_chance(random, 50)) {
        uint32_t s = random_below(random, graph->semaphore_count);
        size_t count = generator->order.event_counts[s];
        uint32_t last =
            count ? generator->order.events[s][count - 1].value : graph->semaphores[s].initial;
        point_t made = {false, random_chance(random, 20), false, (uint8_t)s,
                        random_range(random, 0, last)};
        *point = made;
        return true;
    }
    if (!graph->action_count) return false;
    uint32_t index = random_below(random, graph->action_count);
    point_t made = {true, random_chance(random, 20), false, (uint8_t)index, 0};
    *point = made;
    return graph->actions[index].kind == ACTION_SUBMIT;
}

static void draft_noise(generator_t *generator, uint32_t most)
{
    action_t *draft = &generator->draft;
    uint32_t count = random_range(&generator->random, 0, most);
    for (uint32_t i = 0; i < count; i++)
        if (point_choose(generator, &draft->waits[draft->wait_count])) draft->wait_count++;
}

// What placing the draft has made true.
static void draft_done(generator_t *generator, size_t index)
{
    for (size_t i = 0; i < generator->graph->space_count; i++) {
        if (generator->pool_actions[i] == THE_DRAFT) generator->pool_actions[i] = (uint8_t)index;
        if (generator->pool_allocas[i] == THE_DRAFT) generator->pool_allocas[i] = (uint8_t)index;
    }
    for (size_t d = 0; d < MAX_DEVICES; d++)
        for (size_t c = 0; c < CELLS; c++)
            if (generator->cells[d][c] == THE_DRAFT_CELL) generator->cells[d][c] = (int8_t)index;
    if (generator->draft_fails) generator->failing |= action_bit(index);
}

// A host call of the submission signals a semaphore, which says nothing of the submission's end.
static void call_signal_add(generator_t *generator, size_t index)
{
    action_t *action = &generator->graph->actions[index];
    point_t signal;
    if (action->op_count == MAX_OPS || !signal_choose(generator, index, &signal)) return;
    op_t *op = &action->ops[action->op_count++];
    event_t event = {(uint8_t)index, true, signal.value};
    *op = op_make(OP_CALL_SIGNAL);
    op->numbers[0] = signal.id;
    op->numbers[1] = signal.value;
    order_add_event(&generator->order, signal.id, event);
}

static void submit_generate(generator_t *generator)
{
    random_t *random = &generator->random;
    draft_begin(generator, ACTION_SUBMIT);
    draft_ops(generator, random_below(random, 7));
    if (random_chance(random, 25)) draft_noise(generator, 2);
    size_t index = draft_place(generator);
    draft_done(generator, index);
    point_t signal;
    if (random_chance(random, 25) && signal_choose(generator, index, &signal))
        signal_add(generator, index, signal);
    bool calls = generator->bits & KEEL_CAP_HOST_CALLS && !generator->graph->failures;
    if (calls && random_chance(random, 12)) call_signal_add(generator, index);
}

// Reads or writes memory from a thread.
static void touch_generate(generator_t *generator)
{
    const graph_t *graph = generator->graph;
    random_t *random = &generator->random;
    bool peek = random_chance(random, 60);
    uint32_t s = random_below(random, graph->space_count);
    const space_t *space = &graph->spaces[s];
    bool control = space->kind == SPACE_BUFFER && generator->control[space->device] == s;
    if ((space->kind != SPACE_BUFFER && space->kind != SPACE_SHARED) || control) return;
    draft_begin(generator, peek ? ACTION_PEEK : ACTION_POKE);
    op_t op = op_make(peek ? OP_PEEK : OP_POKE);
    op.spans[0].id = (uint8_t)s;
    op.spans[0].length = (uint16_t)random_range(random, 1, 64);
    op.spans[0].offset = (uint16_t)random_range(random, 0, space->size - op.spans[0].length);
    op.numbers[0] = peek ? 0 : random_below(random, 1000);
    generator->draft.ops[generator->draft.op_count++] = op;
    draft_place(generator);
}

static void host_generate(generator_t *generator)
{
    static const uint8_t kinds[] = {ACTION_WAIT, ACTION_ANY, ACTION_COMPLETION};
    const graph_t *graph = generator->graph;
    random_t *random = &generator->random;
    uint32_t dice = random_below(random, 100);
    point_t signal;
    if (dice < 45) {
        touch_generate(generator);
    } else if (dice < 65) {
        draft_begin(generator, kinds[random_below(random, 3)]);
        draft_noise(generator, 4);
        if (generator->draft.wait_count) draft_place(generator);
    } else if (dice < 85) {
        // A signal needs to know of the last; one that no wait needs is put off until a wait does.
        draft_begin(generator, ACTION_SIGNAL);
        generator->graph->actions[graph->action_count] = generator->draft;
        order_append(graph, &generator->order, graph->action_count);
        if (!signal_choose(generator, graph->action_count, &signal)) return;
        generator->draft.signals[generator->draft.signal_count++] = signal;
        draft_place(generator);
    } else if (graph->failures && graph->semaphore_count) {
        draft_begin(generator, ACTION_FAIL);
        generator->draft.signals[0].id = (uint8_t)random_below(random, graph->semaphore_count);
        generator->draft.signal_count = 1;
        if (graph->action_count && random_chance(random, 50))
            generator->draft.after = action_bit(random_below(random, graph->action_count));
        draft_place(generator);
    }
}

// Small graphs find most, and are read with most pleasure; a few are large.
static uint32_t size_choose(generator_t *generator)
{
    uint32_t most = random_chance(&generator->random, 25) ? 40 : 18;
    return random_range(&generator->random, 5, most);
}

void graph_generate(const generate_options_t *options, uint64_t seed, graph_t *graph)
{
    generator_t *generator = calloc(1, sizeof *generator);
    if (!generator) abort();
    memset(graph, 0, sizeof *graph);
    graph->seed = seed;
    generator->random.state = random_mix(seed);
    generator->options = options;
    generator->graph = graph;
    generator->threads = (uint8_t)random_range(&generator->random, 1, options->threads);
    graph->failures = options->failures && random_chance(&generator->random, 50);
    devices_generate(generator);
    objects_generate(generator);
    uint32_t size = size_choose(generator);
    while (size && graph->action_count + RESERVE < MAX_ACTIONS) {
        if (random_chance(&generator->random, 80)) {
            submit_generate(generator);
            size--;
        } else {
            host_generate(generator);
        }
    }
    schedule_generate(generator);
    free(generator);
}
