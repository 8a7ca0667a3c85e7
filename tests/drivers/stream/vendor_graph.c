// SPDX-License-Identifier: Apache-2.0
// Graphs. What is instantiated is a program: the nodes in an order that their edges allow. A run
// has the program as it was when the run was issued, but for launches that the device changes.
#include <stdlib.h>
#include <string.h>

#include "drivers/stream/vendor_inside.h"

enum { MOST_CONDITIONS = 64 };

typedef struct graph_t graph_t;

typedef struct node_t {
    struct node_t *next; // of its graph; that added last comes first
    struct node_t **after;
    size_t after_count;
    bool is_work, is_loop, placed;
    bool followed;            // by a node of its branch
    work_t work;              // of those that work
    graph_t *body;            // of a branch; NULL: none
    uint32_t *condition;      //
    bool updatable, disabled; // by the device
} node_t;

struct graph_t {
    thing_t thing;
    node_t *nodes;
    uint32_t conditions[MOST_CONDITIONS], condition_count;
};

// A node in its place.
typedef struct part_t {
    node_t *node;
    work_t work; // what it does in this program, unless the device changes it
    program_t *body;
} part_t;

struct program_t {
    uint32_t refs, count;
    graph_t *graph;
    part_t *parts;
};

typedef struct exec_t {
    thing_t thing;
    program_t *program;
    bool updatable;
    stream_h uploaded; // to which stream
} exec_t;

static void *grown(void *array, size_t count, size_t size)
{
    array = realloc(array, count * size);
    if (!array) abort();
    return array;
}

static void graph_finish(thing_t *thing)
{
    for (node_t *next, *node = ((graph_t *)thing)->nodes; node; node = next) {
        next = node->next;
        work_finish(&node->work);
        free(node->after);
        free(node);
    }
}

static graph_t *graph_new(thing_kind_t kind)
{
    graph_t *graph = thing_new(kind, sizeof *graph);
    graph->thing.finish = graph_finish;
    return graph;
}

static void work_copy(work_t *to, const work_t *from)
{
    *to = *from;
    if (from->kind == WORK_LAUNCH) launch_copy(&to->launch, &from->launch);
}

static bool node_is_ready(const node_t *node)
{
    bool ready = !node->placed;
    for (size_t i = 0; i < node->after_count; i++) ready &= node->after[i]->placed;
    return ready;
}

static program_t *program_make(graph_t *graph, bool *updatable)
{
    program_t *program = grown(NULL, 1, sizeof *program);
    *program = (program_t){.refs = 1, .graph = graph};
    for (node_t *node = graph->nodes; node; node = node->next) node->placed = false;
    for (;;) {
        node_t *node = graph->nodes;
        while (node && !node_is_ready(node)) node = node->next;
        if (!node) return program;
        node->placed = true;
        *updatable |= node->updatable;
        program->parts = grown(program->parts, program->count + 1, sizeof *program->parts);
        part_t *part = &program->parts[program->count++];
        *part = (part_t){.node = node};
        work_copy(&part->work, &node->work);
        if (node->body) part->body = program_make(node->body, updatable);
    }
}

void program_release(program_t *program)
{
    if (--program->refs) return;
    for (uint32_t i = 0; i < program->count; i++) {
        work_finish(&program->parts[i].work);
        if (program->parts[i].body) program_release(program->parts[i].body);
    }
    free(program->parts);
    free(program);
}

uint32_t program_length(const program_t *program)
{
    return program->count;
}

static program_t *program_copy(const program_t *program)
{
    program_t *copy = grown(NULL, 1, sizeof *copy);
    *copy = *program;
    copy->refs = 1;
    copy->parts = grown(NULL, program->count + 1, sizeof *copy->parts);
    for (uint32_t i = 0; i < program->count; i++) {
        copy->parts[i] = program->parts[i];
        work_copy(&copy->parts[i].work, &program->parts[i].work);
        if (program->parts[i].body) copy->parts[i].body = program_copy(program->parts[i].body);
    }
    return copy;
}

void program_run(program_t *program)
{
    memset(program->graph->conditions, 0, sizeof program->graph->conditions);
    for (uint32_t i = 0; i < program->count; i++) {
        const part_t *part = &program->parts[i];
        const node_t *node = part->node;
        if (node->is_work && !node->disabled) work_run(node->updatable ? &node->work : &part->work);
        while (part->body && *node->condition) {
            program_run(part->body);
            if (!node->is_loop) break;
        }
    }
}

void node_set_grid(uint64_t handle, bool enabled, const uint32_t groups[3])
{
    node_t *node = (node_t *)(uintptr_t)handle;
    node->disabled = !enabled;
    memcpy(node->work.launch.groups, groups, sizeof node->work.launch.groups);
}

void node_set_arguments(uint64_t handle, uint64_t arguments, uint64_t size)
{
    const node_t *node = (const node_t *)(uintptr_t)handle;
    if (!node->updatable || size > node->work.launch.size) misuse("a node is set that cannot be; ");
    memcpy((void *)(uintptr_t)node->work.launch.arguments, (void *)(uintptr_t)arguments, size);
}

static keel_status_t graph_create(stream_vendor_t *v, stream_graph_h *graph)
{
    BEGIN(graph_create);
    *graph = graph_new(THING_GRAPH);
    return done(NULL);
}

static void graph_destroy(stream_vendor_t *v, void *graph)
{
    BEGIN_VOID(graph_destroy);
    thing_end(graph, THING_GRAPH);
    done(NULL);
}

static void node_follow(node_t *node, node_t *first)
{
    node->after = grown(node->after, node->after_count + 1, sizeof(node_t *));
    node->after[node->after_count++] = first;
}

static node_t *node_add(const stream_place_t *place, stream_node_h *handle)
{
    graph_t *graph = place->graph;
    node_t *node = grown(NULL, 1, sizeof *node);
    *node = (node_t){.next = graph->nodes};
    graph->nodes = node;
    for (size_t i = 0; i < place->count; i++) node_follow(node, place->after[i]);
    *handle = node;
    return node;
}

static keel_status_t graph_launch(stream_vendor_t *v, const stream_place_t *place,
                                  const stream_launch_t *launch, stream_node_h *handle)
{
    BEGIN(graph_launch);
    launch_check(launch);
    node_t *node = node_add(place, handle);
    node->is_work = true;
    launch_copy(&node->work.launch, launch);
    return done(NULL);
}

static keel_status_t graph_copy(stream_vendor_t *v, const stream_place_t *place,
                                const bound_copy_t *copy, stream_node_h *handle)
{
    BEGIN(graph_copy);
    node_t *node = node_add(place, handle);
    node->is_work = true;
    node->work = (work_t){.kind = WORK_COPY, .copy = *copy};
    return done(NULL);
}

static keel_status_t graph_fill(stream_vendor_t *v, const stream_place_t *place,
                                const bound_fill_t *fill, stream_node_h *handle)
{
    BEGIN(graph_fill);
    node_t *node = node_add(place, handle);
    node->is_work = true;
    node->work = (work_t){.kind = WORK_FILL, .fill = *fill};
    return done(NULL);
}

static keel_status_t graph_join(stream_vendor_t *v, const stream_place_t *place,
                                stream_node_h *handle)
{
    BEGIN(graph_join);
    node_add(place, handle)->work.kind = WORK_WAIT;
    return done(NULL);
}

static keel_status_t graph_order(stream_vendor_t *v, stream_graph_h graph, stream_node_h first,
                                 stream_node_h then)
{
    BEGIN(graph_order);
    (void)graph;
    node_follow(then, first);
    return done(NULL);
}

static keel_status_t graph_condition(stream_vendor_t *v, stream_graph_h handle, uint64_t *condition)
{
    BEGIN(graph_condition);
    graph_t *graph = handle;
    if (graph->condition_count == MOST_CONDITIONS) abort();
    *condition = (uintptr_t)&graph->conditions[graph->condition_count++];
    return done(NULL);
}

static keel_status_t graph_branch(stream_vendor_t *v, const stream_place_t *place,
                                  stream_condition_t kind, uint64_t condition,
                                  stream_node_h *handle, stream_graph_h *body)
{
    BEGIN(graph_branch);
    node_t *node = node_add(place, handle);
    node->work.kind = WORK_WAIT;
    node->condition = (uint32_t *)(uintptr_t)condition;
    node->is_loop = kind == STREAM_WHILE;
    *body = node->body = graph_new(THING_GONE); // it goes with the whole
    return done(NULL);
}

static keel_status_t graph_updatable(stream_vendor_t *v, stream_node_h handle, uint64_t *updatable)
{
    BEGIN(graph_updatable);
    node_t *node = handle;
    node->updatable = true;
    *updatable = (uintptr_t)node;
    return done(NULL);
}

static void exec_finish(thing_t *thing)
{
    if (((exec_t *)thing)->program) program_release(((exec_t *)thing)->program);
}

// A node goes on where one before it ended, unless another node does: then it is a branch.
static bool node_branches(const node_t *node)
{
    for (size_t i = 0; i < node->after_count; i++) {
        if (node->after[i]->followed) continue;
        node->after[i]->followed = true;
        return false;
    }
    return true;
}

static void branches_check(const program_t *program)
{
    uint32_t most = kind_now()->quirks.graph_branches, branches = 0;
    for (uint32_t i = 0; i < program->count; i++) branches += node_branches(program->parts[i].node);
    if (most && branches > most + 1) misuse("a graph has %u branches; ", branches);
}

static keel_status_t graph_instantiate(stream_vendor_t *v, stream_graph_h graph,
                                       stream_exec_h *handle)
{
    BEGIN(graph_instantiate);
    exec_t *exec = thing_new(THING_EXEC, sizeof *exec);
    exec->thing.finish = exec_finish;
    exec->program = program_make(thing_of(graph, THING_GRAPH), &exec->updatable);
    branches_check(exec->program);
    *handle = exec;
    return done(NULL);
}

static void exec_destroy(stream_vendor_t *v, void *exec)
{
    BEGIN_VOID(exec_destroy);
    thing_end(exec, THING_EXEC);
    done(NULL);
}

static keel_status_t exec_run(stream_vendor_t *v, stream_exec_h handle, stream_h stream)
{
    BEGIN(exec_run);
    const exec_t *exec = thing_of(handle, THING_EXEC);
    if (exec->updatable && exec->uploaded != stream)
        misuse("a graph that the device changes was not uploaded to its stream; ");
    exec->program->refs++;
    stream_put(stream, &(work_t){.kind = WORK_RUN, .program = exec->program});
    return done(NULL);
}

static keel_status_t exec_upload(stream_vendor_t *v, stream_exec_h handle, stream_h stream)
{
    BEGIN(exec_upload);
    ((exec_t *)thing_of(handle, THING_EXEC))->uploaded = stream;
    return done(NULL);
}

static part_t *part_find(program_t *program, const node_t *node)
{
    for (uint32_t i = 0; i < program->count; i++) {
        part_t *part = &program->parts[i], *inner;
        if (part->node == node) return part;
        if (part->body && (inner = part_find(part->body, node))) return inner;
    }
    return NULL;
}

// Runs that were issued keep the program that they have.
static void exec_set(stream_exec_h handle, node_t *node, const work_t *work)
{
    exec_t *exec = thing_of(handle, THING_EXEC);
    if (exec->program->refs > 1) {
        exec->program->refs--;
        exec->program = program_copy(exec->program);
    }
    work_t *set = node->updatable ? &node->work : &part_find(exec->program, node)->work;
    if (set->kind != work->kind) misuse("a node is set to another kind; ");
    work_finish(set);
    work_copy(set, work);
    if (node->updatable) exec->uploaded = NULL;
}

static keel_status_t exec_set_launch(stream_vendor_t *v, stream_exec_h exec, stream_node_h node,
                                     const stream_launch_t *launch)
{
    BEGIN(exec_set_launch);
    launch_check(launch);
    exec_set(exec, node, &(work_t){.kind = WORK_LAUNCH, .launch = *launch});
    return done(NULL);
}

static keel_status_t exec_set_copy(stream_vendor_t *v, stream_exec_h exec, stream_node_h node,
                                   const bound_copy_t *copy)
{
    BEGIN(exec_set_copy);
    exec_set(exec, node, &(work_t){.kind = WORK_COPY, .copy = *copy});
    return done(NULL);
}

static keel_status_t exec_set_fill(stream_vendor_t *v, stream_exec_h exec, stream_node_h node,
                                   const bound_fill_t *fill)
{
    BEGIN(exec_set_fill);
    exec_set(exec, node, &(work_t){.kind = WORK_FILL, .fill = *fill});
    return done(NULL);
}

void graph_slots(stream_api_t *api, uint32_t features)
{
    if (features & STREAM_GRAPHS) {
        api->graph_create = graph_create;
        api->graph_destroy = graph_destroy;
        api->graph_launch = graph_launch;
        api->graph_copy = graph_copy;
        api->graph_fill = graph_fill;
        api->graph_join = graph_join;
        api->graph_order = graph_order;
        api->graph_instantiate = graph_instantiate;
        api->exec_destroy = exec_destroy;
        api->exec_run = exec_run;
        api->exec_set_launch = exec_set_launch;
        api->exec_set_copy = exec_set_copy;
        api->exec_set_fill = exec_set_fill;
    }
    if (features & STREAM_CONDITIONS) {
        api->graph_condition = graph_condition;
        api->graph_branch = graph_branch;
    }
    if (features & STREAM_UPDATABLE) api->graph_updatable = graph_updatable;
    if (features & STREAM_UPLOAD) api->exec_upload = exec_upload;
}
