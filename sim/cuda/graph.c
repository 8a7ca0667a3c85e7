// SPDX-License-Identifier: Apache-2.0
// Graphs and their edges.
#include "cuda/graph.h"

#include "cuda/call.h"
#include "cuda/engine.h"

#include <stdlib.h>
#include <string.h>

CUgraph graph_create(CUcontext context)
{
    CUgraph graph = calloc(1, sizeof *graph);
    if (!graph) return NULL;
    graph->magic = MAGIC_GRAPH;
    graph->references = 1;
    graph->context = context;
    if (context) {
        context->graphs++;
        context_list(context, &graph->kin);
    }
    return graph;
}

static void node_free(CUgraphNode node)
{
    work_finish(&node->work);
    graph_release(node->child);
    for (unsigned i = 0; i < node->body_count; i++) graph_release(node->bodies[i]);
    free(node->bodies);
    if (node->device) {
        free(node->device->params);
        object_bury(node->device);
    }
    free(node->pointers);
    free(node->dependencies);
    object_bury(node);
}

void graph_release(CUgraph graph)
{
    if (!graph || --graph->references) return;
    for (size_t i = 0; i < graph->count; i++) node_free(graph->nodes[i]);
    for (condition_t *condition = graph->conditions, *next; condition; condition = next) {
        next = condition->next;
        object_bury(condition);
    }
    free(graph->nodes);
    kin_remove(&graph->kin);
    object_bury(graph);
}

bool graph_has(CUgraph graph, CUgraphNodeType type)
{
    for (size_t i = 0; i < graph->count; i++) {
        if (graph->nodes[i]->type == type) return true;
        if (graph->nodes[i]->child && graph_has(graph->nodes[i]->child, type)) return true;
    }
    return false;
}

size_t graph_updatable(CUgraph graph)
{
    size_t count = 0;
    for (size_t i = 0; i < graph->count; i++) {
        CUgraphNode node = graph->nodes[i];
        count += node->device != NULL;
        if (node->child) count += graph_updatable(node->child);
        for (unsigned k = 0; k < node->body_count; k++) count += graph_updatable(node->bodies[k]);
    }
    return count;
}

static bool dependencies_valid(CUgraph graph, const CUgraphNode *nodes, size_t count)
{
    if (count && !nodes) return false;
    for (size_t i = 0; i < count; i++) {
        if (!IS(nodes[i], MAGIC_NODE) || nodes[i]->graph != graph) return false;
        // Quadratic only in what one node depends on.
        for (size_t k = 0; k < i && count <= 4096; k++) {
            if (nodes[k] == nodes[i]) return false;
        }
    }
    return true;
}

CUresult node_add(CUgraph graph, CUgraphNodeType type, const CUgraphNode *dependencies,
                  size_t count, CUgraphNode *out)
{
    if (!IS(graph, MAGIC_GRAPH) || !out) return CUDA_ERROR_INVALID_VALUE;
    if (!dependencies_valid(graph, dependencies, count)) return CUDA_ERROR_INVALID_VALUE;
    if (graph->count == graph->capacity) {
        size_t capacity = graph->capacity ? graph->capacity * 2 : 16;
        CUgraphNode *nodes = realloc(graph->nodes, capacity * sizeof *nodes);
        if (!nodes) return CUDA_ERROR_OUT_OF_MEMORY;
        graph->nodes = nodes;
        graph->capacity = capacity;
    }
    CUgraphNode node = calloc(1, sizeof *node);
    if (!node) return CUDA_ERROR_OUT_OF_MEMORY;
    node->magic = MAGIC_NODE;
    node->graph = graph;
    node->type = type;
    node->dependencies = malloc((count + 1) * sizeof *dependencies);
    if (!node->dependencies) {
        free(node);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (count) memcpy(node->dependencies, dependencies, count * sizeof *dependencies);
    node->dependency_count = count;
    graph->nodes[graph->count++] = node;
    *out = node;
    return CUDA_SUCCESS;
}

static bool dependency_drop(CUgraphNode node, CUgraphNode from)
{
    for (size_t i = 0; i < node->dependency_count; i++) {
        if (node->dependencies[i] != from) continue;
        node->dependency_count--;
        memmove(&node->dependencies[i], &node->dependencies[i + 1],
                (node->dependency_count - i) * sizeof *node->dependencies);
        return true;
    }
    return false;
}

void node_remove(CUgraphNode node)
{
    CUgraph graph = node->graph;
    size_t index = 0;
    while (graph->nodes[index] != node) index++;
    graph->count--;
    memmove(&graph->nodes[index], &graph->nodes[index + 1],
            (graph->count - index) * sizeof *graph->nodes);
    for (size_t i = 0; i < graph->count; i++) dependency_drop(graph->nodes[i], node);
    node_free(node);
}

static bool node_clone(CUgraph graph, CUgraphNode node)
{
    CUgraphNode copy;
    if (node_add(graph, node->type, NULL, 0, &copy) != CUDA_SUCCESS) return false;
    copy->original = node;
    copy->context = node->context;
    copy->as = node->as;
    copy->event = node->event;
    copy->priority = node->priority;
    if (!work_clone(&copy->work, &node->work)) return false;
    if (node->child && !(copy->child = graph_clone(node->child, NULL))) return false;
    free(copy->dependencies);
    copy->dependencies = malloc((node->dependency_count + 1) * sizeof *copy->dependencies);
    return copy->dependencies != NULL;
}

CUgraph graph_clone(CUgraph from, CUcontext context)
{
    CUgraph graph = graph_create(context);
    bool good = graph != NULL;
    for (size_t i = 0; good && i < from->count; i++) {
        from->nodes[i]->index = i;
        good = node_clone(graph, from->nodes[i]);
    }
    for (size_t i = 0; good && i < from->count; i++) {
        CUgraphNode node = from->nodes[i], copy = graph->nodes[i];
        copy->dependency_count = node->dependency_count;
        for (size_t k = 0; k < node->dependency_count; k++) {
            copy->dependencies[k] = graph->nodes[node->dependencies[k]->index];
        }
    }
    if (good) return graph;
    graph_release(graph);
    return NULL;
}

CUresult cuGraphCreate(CUgraph *out, unsigned int flags)
{
    CALL(CALL_PLAIN);
    if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
    *out = graph_create(call.context);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    USES(graph);
    CALL(CALL_RELEASE);
    if (!IS(graph, MAGIC_GRAPH) || graph->is_body) return CUDA_ERROR_INVALID_VALUE;
    if (graph->context && graph_updatable(graph)) context_wait(graph->context);
    if (graph->context && graph->context->graphs) graph->context->graphs--;
    graph->magic = 0;
    graph_release(graph);
    use_end(&use);
    return call.late;
}

CUresult cuGraphClone(CUgraph *out, CUgraph graph)
{
    USES(graph);
    CALL(CALL_PLAIN);
    if (!out || !IS(graph, MAGIC_GRAPH)) return CUDA_ERROR_INVALID_VALUE;
    if (graph_has(graph, CU_GRAPH_NODE_TYPE_CONDITIONAL)) return CUDA_ERROR_NOT_SUPPORTED;
    *out = graph_clone(graph, call.context);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode original, CUgraph clone)
{
    USES(clone);
    CALL(CALL_PLAIN);
    if (!out || !IS(original, MAGIC_NODE) || !IS(clone, MAGIC_GRAPH)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < clone->count; i++) {
        if (clone->nodes[i]->original != original) continue;
        *out = clone->nodes[i];
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

// An answer of many parts: how many there are, or as many of them as there is room for.
typedef struct answer_t {
    CUgraphNode *first, *second;
    CUgraphEdgeData *data;
    size_t *count;
    size_t room, found;
} answer_t;

static void answer_add(answer_t *answer, CUgraphNode first, CUgraphNode second)
{
    size_t i = answer->found++;
    if (i >= answer->room) return;
    if (answer->first) answer->first[i] = first;
    if (answer->second) answer->second[i] = second;
    if (answer->data) memset(&answer->data[i], 0, sizeof *answer->data);
}

static CUresult answer_end(answer_t *answer)
{
    bool asks = !answer->first && !answer->second;
    for (size_t i = answer->found; i < answer->room && !asks; i++) {
        if (answer->first) answer->first[i] = NULL;
        if (answer->second) answer->second[i] = NULL;
    }
    *answer->count = asks || answer->found < answer->room ? answer->found : answer->room;
    return CUDA_SUCCESS;
}

static CUresult nodes_get(CUgraph graph, CUgraphNode *out, size_t *count, bool roots)
{
    if (!IS(graph, MAGIC_GRAPH) || !count) return CUDA_ERROR_INVALID_VALUE;
    answer_t answer = {.first = out, .count = count, .room = out ? *count : 0};
    for (size_t i = 0; i < graph->count; i++) {
        if (!roots || graph->nodes[i]->dependency_count == 0) {
            answer_add(&answer, graph->nodes[i], NULL);
        }
    }
    return answer_end(&answer);
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *out, size_t *count)
{
    USES(graph);
    CALL(CALL_PLAIN);
    return nodes_get(graph, out, count, false);
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *out, size_t *count)
{
    USES(graph);
    CALL(CALL_PLAIN);
    return nodes_get(graph, out, count, true);
}

static CUresult edges_get(CUgraph graph, answer_t answer)
{
    if (!IS(graph, MAGIC_GRAPH) || !answer.count || !answer.first != !answer.second) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    answer.room = answer.first ? *answer.count : 0;
    for (size_t i = 0; i < graph->count; i++) {
        CUgraphNode node = graph->nodes[i];
        for (size_t k = 0; k < node->dependency_count; k++) {
            answer_add(&answer, node->dependencies[k], node);
        }
    }
    return answer_end(&answer);
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    USES(graph);
    CALL(CALL_PLAIN);
    return edges_get(graph, (answer_t){.first = from, .second = to, .count = count});
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
                            CUgraphEdgeData *data, size_t *count)
{
    USES(graph);
    CALL(CALL_PLAIN);
    return edges_get(graph, (answer_t){from, to, data, count, 0, 0});
}

static CUresult dependencies_get(CUgraphNode node, answer_t answer)
{
    if (!IS(node, MAGIC_NODE) || !answer.count) return CUDA_ERROR_INVALID_VALUE;
    answer.room = answer.first ? *answer.count : 0;
    for (size_t i = 0; i < node->dependency_count; i++) {
        answer_add(&answer, node->dependencies[i], NULL);
    }
    return answer_end(&answer);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *out, size_t *count)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    return dependencies_get(node, (answer_t){.first = out, .count = count});
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data,
                                       size_t *count)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    return dependencies_get(node, (answer_t){.first = out, .data = data, .count = count});
}

static CUresult dependents_get(CUgraphNode node, answer_t answer)
{
    if (!IS(node, MAGIC_NODE) || !answer.count) return CUDA_ERROR_INVALID_VALUE;
    answer.room = answer.first ? *answer.count : 0;
    CUgraph graph = node->graph;
    for (size_t i = 0; i < graph->count; i++) {
        for (size_t k = 0; k < graph->nodes[i]->dependency_count; k++) {
            if (graph->nodes[i]->dependencies[k] != node) continue;
            answer_add(&answer, graph->nodes[i], NULL);
        }
    }
    return answer_end(&answer);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *out, size_t *count)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    return dependents_get(node, (answer_t){.first = out, .count = count});
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data,
                                         size_t *count)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    return dependents_get(node, (answer_t){.first = out, .data = data, .count = count});
}

static CUresult pairs_check(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                            size_t count)
{
    if (!IS(graph, MAGIC_GRAPH) || (count && (!from || !to))) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (!dependencies_valid(graph, &from[i], 1) || !dependencies_valid(graph, &to[i], 1) ||
            from[i] == to[i]) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

static bool depends(CUgraphNode node, CUgraphNode on)
{
    for (size_t i = 0; i < node->dependency_count; i++) {
        if (node->dependencies[i] == on) return true;
    }
    return false;
}

static CUresult dependencies_add(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                 size_t count)
{
    CUresult error = pairs_check(graph, from, to, count);
    if (error) return error;
    for (size_t i = 0; i < count; i++) {
        if (depends(to[i], from[i])) return CUDA_ERROR_INVALID_VALUE;
        size_t size = (to[i]->dependency_count + 1) * sizeof *to[i]->dependencies;
        CUgraphNode *grown = realloc(to[i]->dependencies, size);
        if (!grown) return CUDA_ERROR_OUT_OF_MEMORY;
        to[i]->dependencies = grown;
        to[i]->dependencies[to[i]->dependency_count++] = from[i];
    }
    return CUDA_SUCCESS;
}

static CUresult dependencies_remove(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                    size_t count)
{
    CUresult error = pairs_check(graph, from, to, count);
    for (size_t i = 0; i < count && !error; i++) {
        if (!dependency_drop(to[i], from[i])) error = CUDA_ERROR_INVALID_VALUE;
    }
    return error;
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                size_t count)
{
    USES(graph);
    CALL(CALL_PLAIN);
    return dependencies_add(graph, from, to, count);
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *data, size_t count)
{
    USES(graph);
    CALL(CALL_PLAIN);
    return dependencies_add(graph, from, to, count);
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   size_t count)
{
    USES(graph);
    CALL(CALL_PLAIN);
    return dependencies_remove(graph, from, to, count);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                      const CUgraphEdgeData *data, size_t count)
{
    USES(graph);
    CALL(CALL_PLAIN);
    return dependencies_remove(graph, from, to, count);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *out)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    if (!IS(node, MAGIC_NODE) || !out) return CUDA_ERROR_INVALID_VALUE;
    *out = node->type;
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroyNode(CUgraphNode node)
{
    USES(node_graph(node));
    CALL(CALL_RELEASE);
    if (!IS(node, MAGIC_NODE) || node->device) return CUDA_ERROR_INVALID_VALUE;
    node_remove(node);
    return call.late;
}
