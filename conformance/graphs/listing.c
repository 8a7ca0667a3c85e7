// SPDX-License-Identifier: Apache-2.0
#include "graphs/listing.h"
#include "graphs/words.h"

#include <inttypes.h>

const char *const space_words[] = {"buffer", "shared", "pool", "file", NULL};
const char *const action_words[] = {"none", "submit",     "signal", "fail", "wait",
                                    "any",  "completion", "peek",   "poke", NULL};
const char *const counts_words[] = {"groups", "static", "dynamic", NULL};

static void span_print(span_t span, FILE *file)
{
    fprintf(file, "%c%u+%u:%u", span.slot ? '$' : 'b', span.id, span.offset, span.length);
}

static void op_print(const op_t *op, FILE *file)
{
    const op_info_t *info = &op_infos[op->kind];
    fputs(info->name, file);
    if (op->kind == OP_EXECUTE) fprintf(file, " r%u", op->numbers[0]);
    for (size_t i = 0; i < op->span_count; i++) {
        fputc(' ', file);
        span_print(op->spans[i], file);
    }
    if (info->numbers && op->kind != OP_EXECUTE) {
        fprintf(file, " k=%u", op->numbers[0]);
        if (info->numbers > 1) fprintf(file, ",%u", op->numbers[1]);
    }
    if (op->kind == OP_EXECUTE && op->numbers[1]) fprintf(file, " add=%u", op->numbers[1]);
    if (op->given) fputs(" given", file);
    if (!(info->traits & TRAIT_KERNEL)) return;
    fprintf(file, " %s=", counts_words[op->counts]);
    if (op->counts == COUNTS_DIRECT)
        fprintf(file, "%u,%u,%u", op->groups[0], op->groups[1], op->groups[2]);
    else
        span_print(op->spans[MAX_SPANS - 1], file);
}

static void ops_print(const op_t *ops, size_t count, FILE *file)
{
    for (size_t i = 0; i < count; i++) {
        fputs(i ? "; " : " : ", file);
        op_print(&ops[i], file);
    }
}

static void points_print(const char *name, const point_t *points, size_t count, FILE *file)
{
    for (size_t i = 0; i < count; i++) {
        fprintf(file, i ? "," : " %s=", name);
        if (points[i].own)
            fprintf(file, "@%u", points[i].id);
        else
            fprintf(file, "s%u:%u", points[i].id, points[i].value);
        if (points[i].ended) fprintf(file, "/ended");
        if (points[i].up_to) fprintf(file, "/up_to");
    }
}

void action_print(const graph_t *graph, size_t index, FILE *file)
{
    const action_t *action = &graph->actions[index];
    bool first = true;
    fprintf(file, "%zu t%u n%u %s", index, action->thread, action->turn,
            action_words[action->kind]);
    if (action->kind == ACTION_SUBMIT) fprintf(file, " q%u.%u", action->device, action->queue);
    points_print("wait", action->waits, action->wait_count, file);
    points_print("signal", action->signals, action->signal_count, file);
    for (size_t i = 0; i < graph->action_count; i++) {
        if (!(action->after & action_bit(i))) continue;
        fprintf(file, first ? " after=%zu" : ",%zu", i);
        first = false;
    }
    if (action->delay_us) fprintf(file, " delay=%u", action->delay_us);
    ops_print(action->ops, action->op_count, file);
}

// What the graph makes or uses; the rest need not be shown.
typedef struct used_t {
    uint64_t spaces, semaphores, recordings;
} used_t;

static void ops_used(const graph_t *graph, const op_t *ops, size_t count, used_t *used)
{
    for (size_t i = 0; i < count; i++) {
        const op_t *op = &ops[i];
        for (size_t j = 0; j < op->span_count; j++)
            if (!op->spans[j].slot) used->spaces |= action_bit(op->spans[j].id);
        if (op->counts && !op->spans[MAX_SPANS - 1].slot)
            used->spaces |= action_bit(op->spans[MAX_SPANS - 1].id);
        if (op->kind == OP_CALL_SIGNAL) used->semaphores |= action_bit(op->numbers[0]);
        if (op->kind != OP_EXECUTE) continue;
        const recording_t *recording = &graph->recordings[op->numbers[0]];
        used->recordings |= action_bit(op->numbers[0]);
        ops_used(graph, recording->commands, recording->count, used);
    }
}

static used_t graph_used(const graph_t *graph)
{
    used_t used = {0, 0, 0};
    for (size_t i = 0; i < graph->recording_count; i++) {
        const recording_t *recording = &graph->recordings[i];
        if (!recording->used || recording->one_shot) continue; // those are made where they run
        used.recordings |= action_bit(i);
        ops_used(graph, recording->commands, recording->count, &used);
    }
    for (size_t i = 0; i < graph->action_count; i++) {
        const action_t *action = &graph->actions[i];
        if (action->kind == ACTION_NONE) continue;
        ops_used(graph, action->ops, action->op_count, &used);
        for (size_t j = 0; j < action->wait_count; j++)
            if (!action->waits[j].own) used.semaphores |= action_bit(action->waits[j].id);
        for (size_t j = 0; j < action->signal_count; j++)
            used.semaphores |= action_bit(action->signals[j].id);
    }
    return used;
}

static void objects_print(const graph_t *graph, FILE *file)
{
    used_t used = graph_used(graph);
    for (size_t i = 0; i < graph->device_count; i++)
        fprintf(file, "device %zu %s\n", i, graph->uris[i]);
    for (size_t i = 0; i < graph->space_count; i++) {
        const space_t *space = &graph->spaces[i];
        if (!(used.spaces & action_bit(i))) continue;
        fprintf(file, "space %zu %s device=%u node=%u pool=%u size=%u\n", i,
                space_words[space->kind], space->device, space->node, space->pool, space->size);
    }
    for (size_t i = 0; i < graph->semaphore_count; i++)
        if (used.semaphores & action_bit(i))
            fprintf(file, "semaphore %zu device=%u initial=%u\n", i, graph->semaphores[i].device,
                    graph->semaphores[i].initial);
    for (size_t i = 0; i < graph->recording_count; i++) {
        const recording_t *recording = &graph->recordings[i];
        if (!(used.recordings & action_bit(i))) continue;
        fprintf(file, "recording %zu device=%u slots=%u one_shot=%u prepare=%u", i,
                recording->device, recording->slot_count, recording->one_shot, recording->prepare);
        ops_print(recording->commands, recording->count, file);
        fputc('\n', file);
    }
}

void graph_print(const graph_t *graph, listing_note_fn note, void *user, FILE *file)
{
    fprintf(file, "seed %" PRIu64 "\nfailures %d\n", graph->seed, graph->failures);
    objects_print(graph, file);
    for (size_t i = 0; i < graph->action_count; i++) {
        if (graph->actions[i].kind == ACTION_NONE) continue;
        action_print(graph, i, file);
        if (note) note(user, i, file);
        fputc('\n', file);
    }
}
