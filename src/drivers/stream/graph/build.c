// SPDX-License-Identifier: Apache-2.0
// Makes graphs of commands.
//
// What is open has been added since the last barrier; the gate is what the next node comes after.
// A barrier joins the open nodes into the new gate: n edges in, and one out to each that follows.
// The set of an event joins them too, and stands for them from then on, so that each event comes
// after all that were set before it and one gate is enough: the latest that was waited for. A block
// is a node with a graph of its own inside, behind nodes that look at the value and set its
// condition. Where the vendor bounds what lies side by side, the next node also comes after the
// last open one, in whose place it is then open.
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/graph/graph.h"

enum { PIECE_NODES = 8192 }; // after which a recording goes on in another graph

typedef struct nodes_t {
    stream_node_h *items; // owned
    uint32_t count, capacity;
} nodes_t;

typedef struct event_t {
    uint32_t number;    // in the order of sets, from 1
    stream_node_h node; // NULL: nothing came before its set
} event_t;

typedef struct builder_t {
    graph_instance_t *instance;
    const stream_context_t *context;
    const keel_commands_t *commands;
    stream_graph_h graph;
    nodes_t open;
    stream_node_h gate;       // NULL: none
    event_t *events;          // owned; by their names
    uint32_t event_capacity;  //
    uint32_t set, waited_for; // the last event that was set, and the last that the gate is behind
    uint32_t number;          // of the command at hand, from 1
    uint32_t branches;        // nodes that were put beside an open one
    bool passed;              // the gate may not come before the last open node
    bool nested;              // in a block
} builder_t;

static keel_status_t build_range(builder_t *b, const keel_command_t *from,
                                 const keel_command_t *to);

static keel_status_t nodes_add(nodes_t *nodes, stream_node_h node)
{
    stream_node_h *items = mem_reserve(nodes->items, &nodes->capacity, nodes->count, sizeof *items);
    if (!items) return status_no_memory();
    nodes->items = items;
    items[nodes->count++] = node;
    return NULL;
}

static void builder_finish(builder_t *b)
{
    mem_free(b->open.items);
    mem_free(b->events);
}

static stream_place_t place_behind_gate(const builder_t *b)
{
    return (stream_place_t){b->graph, &b->gate, b->gate != NULL};
}

// Whether the next node is not to lie beside the last open one.
static bool is_chained(const builder_t *b)
{
    uint32_t most = b->instance->device->limits.quirks.graph_branches;
    return most && b->open.count && b->branches >= most;
}

// Where the next node goes. `before` has room for two.
static stream_place_t place_next(const builder_t *b, stream_node_h before[2])
{
    if (!is_chained(b)) return place_behind_gate(b);
    stream_node_h last = b->open.items[b->open.count - 1];
    bool both = b->passed && b->gate && b->gate != last;
    before[0] = last;
    before[1] = b->gate;
    return (stream_place_t){b->graph, before, both ? 2 : 1};
}

// It was added there.
static keel_status_t open_add(builder_t *b, stream_node_h node)
{
    bool chained = is_chained(b);
    b->passed = false;
    if (chained) b->open.items[b->open.count - 1] = node;
    b->branches += !chained && b->open.count;
    return chained ? NULL : nodes_add(&b->open, node);
}

// One node behind all of these: itself if there is but one, NULL if there is none.
static keel_status_t nodes_join(builder_t *b, const nodes_t *nodes, stream_node_h *join)
{
    const stream_device_t *device = b->instance->device;
    *join = nodes->count ? nodes->items[0] : NULL;
    if (nodes->count < 2) return NULL;
    stream_place_t place = {b->graph, nodes->items, nodes->count};
    return device->api->graph_join(device->vendor, &place, join);
}

// Nothing is open then.
static void gate_set(builder_t *b, stream_node_h node)
{
    b->gate = node;
    b->open.count = 0;
    b->waited_for = b->set;
}

static keel_status_t barrier(builder_t *b)
{
    stream_node_h join;
    if (!b->open.count) return NULL;
    KEEL_TRY(nodes_join(b, &b->open, &join));
    gate_set(b, join);
    return NULL;
}

static graph_node_t *node_new(builder_t *b, const keel_command_t *command, graph_role_t role)
{
    graph_instance_t *instance = b->instance;
    graph_node_t *node, *nodes = mem_reserve(instance->nodes, &instance->node_capacity,
                                             instance->node_count, sizeof *nodes);
    if (!nodes) return NULL;
    instance->nodes = nodes;
    node = &nodes[instance->node_count++];
    *node = (graph_node_t){
        .command = command,
        .number = b->number,
        .role = (uint8_t)role,
        .piece = instance->piece_count - 1,
    };
    return node;
}

// What the vendor has on a stream for a node of a graph that it launches.
static void node_weigh(const graph_instance_t *instance, const graph_node_t *node)
{
    const stream_quirks_t *quirks = &instance->device->limits.quirks;
    graph_piece_t *piece = &instance->pieces[node->piece];
    bool transfers = node->kind == GRAPH_COPY || node->kind == GRAPH_FILL;
    if (quirks->graph_unrolls) piece->room += transfers ? quirks->transfer_room : 1;
}

// Adds the node where the next one goes.
static keel_status_t node_add(builder_t *b, graph_node_t *node)
{
    graph_work_t work;
    node->changes = command_reach(node->command).moves;
    keel_status_t status = graph_work_make(b->instance, b->context, node, &work);
    stream_node_h before[2];
    stream_place_t place = place_next(b, before);
    node->kind = (uint8_t)work.kind;
    node_weigh(b->instance, node);
    if (!status) status = graph_work_add(b->instance, &place, &work, &node->node);
    if (!status) status = graph_rebind_offer(b->instance, node, &work);
    if (work.arguments.large) mem_free(work.arguments.large);
    return status;
}

// A dispatch whose grid only the device knows, and which cannot look for itself: a node in front
// of it gives it its grid.
static keel_status_t add_updatable(builder_t *b, const keel_command_t *c)
{
    const stream_device_t *device = b->instance->device;
    graph_node_t *node = node_new(b, c, GRAPH_COMMAND);
    if (!node) return status_no_memory();
    KEEL_TRY(node_add(b, node));
    stream_node_h launch = node->node;
    uint64_t handle = node->handle;
    if (!handle) KEEL_TRY(device->api->graph_updatable(device->vendor, launch, &handle));
    graph_node_t *setter = node_new(b, c, GRAPH_GRID);
    if (!setter) return status_no_memory();
    setter->extra.updatable = handle;
    KEEL_TRY(node_add(b, setter));
    KEEL_TRY(device->api->graph_order(device->vendor, b->graph, setter->node, launch));
    b->instance->reports = b->instance->fresh = true;
    return open_add(b, launch);
}

// Beside a dispatch that reads its grid by itself: a node that reports a grid that is too large.
static keel_status_t add_counts(builder_t *b, const keel_command_t *c)
{
    graph_node_t *node = node_new(b, c, GRAPH_COUNTS);
    if (!node) return status_no_memory();
    KEEL_TRY(node_add(b, node));
    b->instance->reports = true;
    return open_add(b, node->node);
}

// Where the bytes of an update are when the graph runs.
static uint64_t update_source(const builder_t *b, const keel_command_t *c)
{
    const keel_cmd_update_t *update = (const keel_cmd_update_t *)(const void *)c;
    return update->given ? b->context->binder.parameters_at + update->offset
                         : b->instance->updates->address + update->place;
}

static keel_status_t add_command(builder_t *b, const keel_command_t *c)
{
    const keel_cmd_dispatch_t *dispatch = (const keel_cmd_dispatch_t *)(const void *)c;
    if (stream_dispatch_is_foreign(c)) return add_updatable(b, c);
    if (c->kind == KEEL_CMD_DISPATCH && dispatch->counts_kind != KEEL_COUNTS_DIRECT &&
        !keel_ref_is_parameter(&dispatch->counts)) // which were checked when they came
        KEEL_TRY(add_counts(b, c));
    graph_node_t *node = node_new(b, c, GRAPH_COMMAND);
    if (!node) return status_no_memory();
    if (c->kind == KEEL_CMD_UPDATE) node->extra.staging = update_source(b, c);
    KEEL_TRY(node_add(b, node));
    return node->node ? open_add(b, node->node) : NULL;
}

static keel_status_t event_set(builder_t *b, uint32_t event)
{
    stream_node_h join = b->gate;
    event_t *events = mem_reserve(b->events, &b->event_capacity, event, sizeof *events);
    if (!events) return status_no_memory();
    b->events = events;
    if (b->open.count) {
        KEEL_TRY(nodes_join(b, &b->open, &join));
        b->open.items[0] = join;
        b->open.count = 1;
    }
    events[event] = (event_t){++b->set, join};
    return NULL;
}

// It was set in this block.
static void event_wait(builder_t *b, uint32_t event)
{
    if (b->events[event].number <= b->waited_for) return;
    b->gate = b->events[event].node;
    b->waited_for = b->events[event].number;
    b->passed = true;
}

// Adds the node that sets a block's condition, behind the gate.
static keel_status_t add_setter(builder_t *b, const keel_command_t *c, graph_branch_t branch,
                                nodes_t *setters)
{
    graph_node_t *node = node_new(b, c, GRAPH_BRANCH);
    if (!node) return status_no_memory();
    node->extra.branch = branch;
    KEEL_TRY(node_add(b, node));
    const keel_cmd_block_t *command = (const keel_cmd_block_t *)(const void *)c;
    b->instance->reports |= branch.loop && command->max_iterations;
    return nodes_add(setters, node->node);
}

// One way through a block.
typedef struct way_t {
    graph_branch_t branch;
    const keel_cmd_block_t *record; // which it begins behind
} way_t;

static way_t way_of(const keel_cmd_block_t *record)
{
    bool loop = record->head.kind == KEEL_CMD_WHILE;
    return (way_t){
        .branch = {.match = record->match,
                   .differs = loop || record->head.kind == KEEL_CMD_IF,
                   .first = loop,
                   .loop = loop},
        .record = record,
    };
}

static keel_status_t body_build(builder_t *b, const keel_command_t *c, const way_t *way,
                                stream_graph_h body)
{
    builder_t inner = {
        .instance = b->instance,
        .context = b->context,
        .commands = b->commands,
        .graph = body,
        .number = way->record->index + 2,
        .nested = true,
    };
    keel_status_t status = build_range(&inner, keel_command_next(&way->record->head),
                                       keel_commands_at(b->commands, way->record->next));
    if (!status) status = barrier(&inner);
    if (!status && way->branch.loop) { // and once more?
        nodes_t setters = {0};
        graph_branch_t again = way->branch;
        again.first = false;
        inner.number = b->number;
        status = add_setter(&inner, c, again, &setters);
        mem_free(setters.items);
    }
    builder_finish(&inner);
    return status;
}

// Adds the ways of a block: all conditions are set before any of them is taken, and all meet in
// the new gate.
static keel_status_t add_ways(builder_t *b, const keel_command_t *c, way_t *ways, uint32_t count)
{
    const stream_device_t *device = b->instance->device;
    nodes_t setters = {0}, ends = {0};
    stream_node_h join = NULL;
    keel_status_t status = NULL;
    for (uint32_t i = 0; !status && i < count; i++) {
        status = device->api->graph_condition(device->vendor, b->graph, &ways[i].branch.condition);
        if (!status) status = add_setter(b, c, ways[i].branch, &setters);
    }
    if (!status) status = nodes_join(b, &setters, &join);
    if (!status) gate_set(b, join);
    for (uint32_t i = 0; !status && i < count; i++) {
        stream_node_h node;
        stream_graph_h body;
        stream_place_t place = place_behind_gate(b);
        status = device->api->graph_branch(device->vendor, &place,
                                           ways[i].branch.loop ? STREAM_WHILE : STREAM_IF,
                                           ways[i].branch.condition, &node, &body);
        if (!status) status = body_build(b, c, &ways[i], body);
        if (!status) status = nodes_add(&ends, node);
    }
    if (!status) status = nodes_join(b, &ends, &join);
    if (!status) gate_set(b, join);
    mem_free(setters.items);
    mem_free(ends.items);
    return status;
}

// Adds a block, of which `last` becomes the end.
static keel_status_t add_block(builder_t *b, const keel_cmd_block_t *block,
                               const keel_command_t **last)
{
    const keel_cmd_block_t *end = keel_block_at(b->commands, block->end);
    uint32_t count = 0;
    KEEL_TRY(barrier(b));
    KEEL_EACH_WAY(w, b->commands, block) count++;
    if (count) {
        way_t *ways = mem_zalloc(count * sizeof *ways), *way = ways;
        if (!ways) return status_no_memory();
        KEEL_EACH_WAY(w, b->commands, block) *way++ = way_of(w);
        keel_status_t status = add_ways(b, &block->head, ways, count);
        mem_free(ways);
        if (status) return status;
    }
    b->number = end->index + 1;
    *last = &end->head;
    return NULL;
}

static keel_status_t piece_begin(builder_t *b)
{
    graph_instance_t *instance = b->instance;
    graph_piece_t *piece, *pieces = mem_reserve(instance->pieces, &instance->piece_capacity,
                                                instance->piece_count, sizeof *pieces);
    if (!pieces) return status_no_memory();
    instance->pieces = pieces;
    piece = &pieces[instance->piece_count];
    *piece = (graph_piece_t){.room = 1};
    KEEL_TRY(instance->device->api->graph_create(instance->device->vendor, &piece->graph));
    instance->piece_count++;
    b->graph = piece->graph;
    gate_set(b, NULL);
    return NULL;
}

// Goes on in another graph if this one is long, or takes half of the room that a stream has: at a
// barrier of the whole recording nothing else is needed, for graphs of one stream follow each
// other.
static keel_status_t piece_maybe_end(builder_t *b, uint32_t *first)
{
    const graph_instance_t *instance = b->instance;
    uint32_t nodes = instance->node_count - *first;
    uint64_t room = instance->pieces[instance->piece_count - 1].room;
    bool fills = room >= instance->device->most_pending / 2;
    if (b->nested || (nodes < PIECE_NODES && !fills)) return NULL;
    *first = b->instance->node_count;
    return piece_begin(b);
}

// Builds a command, or the block that it begins: then `last` becomes the block's end.
static keel_status_t build_one(builder_t *b, const keel_command_t *c, const keel_command_t **last)
{
    const keel_cmd_event_t *event = (const keel_cmd_event_t *)(const void *)c;
    switch ((keel_cmd_t)c->kind) {
    case KEEL_CMD_BARRIER: return barrier(b);
    case KEEL_CMD_EVENT_SET: return event_set(b, event->event);
    case KEEL_CMD_EVENT_WAIT: event_wait(b, event->event); return NULL;
    case KEEL_CMD_IF:
    case KEEL_CMD_WHILE:
    case KEEL_CMD_SWITCH: return add_block(b, (const keel_cmd_block_t *)(const void *)c, last);
    case KEEL_CMD_FILL:
    case KEEL_CMD_UPDATE:
    case KEEL_CMD_COPY:
    case KEEL_CMD_DISPATCH:
    case KEEL_CMD_TIMESTAMP: return add_command(b, c);
    default: return NULL;
    }
}

static keel_status_t build_range(builder_t *b, const keel_command_t *from, const keel_command_t *to)
{
    uint32_t first = b->instance->node_count;
    for (const keel_command_t *c = from; c != to; c = keel_command_next(c), b->number++) {
        const keel_command_t *last = c;
        keel_status_t status = build_one(b, c, &last);
        if (status) {
            if (!b->instance->culprit) b->instance->culprit = c; // not the block around it
            return status;
        }
        c = last;
        if (c->kind == KEEL_CMD_BARRIER || c->kind == KEEL_CMD_END)
            KEEL_TRY(piece_maybe_end(b, &first));
    }
    return NULL;
}

static keel_status_t updates_stage(graph_instance_t *instance)
{
    const keel_commands_t *commands = instance->recording->commands;
    if (!commands->updates || instance->updates) return NULL;
    KEEL_TRY(stream_block_acquire(instance->device, commands->updates, &instance->updates));
    commands_updates(commands, instance->updates->data);
    return NULL;
}

keel_status_t graph_build(graph_instance_t *instance, const stream_context_t *context)
{
    const stream_api_t *api = instance->device->api;
    const keel_commands_t *commands = instance->recording->commands;
    builder_t b = {.instance = instance, .context = context, .commands = commands, .number = 1};
    instance->culprit = NULL;
    instance->updatable =
        stream_commands_have_foreign(commands) || graph_rebind_pays(instance->device, commands);
    keel_status_t status = updates_stage(instance);
    if (!status) status = piece_begin(&b);
    if (!status)
        status = build_range(&b, keel_commands_first(commands), keel_commands_end(commands));
    builder_finish(&b);
    for (uint32_t i = 0; !status && i < instance->piece_count; i++)
        status = api->graph_instantiate(instance->device->vendor, instance->pieces[i].graph,
                                        &instance->pieces[i].exec);
    instance->fronted = instance->reports || graph_reads_parameters(instance);
    return status;
}

void graph_unbuild(graph_instance_t *instance)
{
    stream_device_t *device = instance->device;
    for (uint32_t i = 0; i < instance->piece_count; i++) {
        const graph_piece_t *piece = &instance->pieces[i];
        stream_free(device, instance->updatable, device->api->exec_destroy, piece->exec);
        stream_free(device, instance->updatable, device->api->graph_destroy, piece->graph);
    }
    instance->piece_count = instance->node_count = 0;
    instance->rebound = instance->arguments = 0;
}
