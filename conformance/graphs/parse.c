// SPDX-License-Identifier: Apache-2.0
#include "graphs/listing.h"
#include "graphs/words.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

// A cursor in one line. The first thing not understood is kept as `wrong`, and nothing more is
// read.
typedef struct cursor_t {
    const char *at;
    const char *wrong;
} cursor_t;

static void spaces_skip(cursor_t *c)
{
    while (*c->at == ' ' || *c->at == '\t') c->at++;
}

static bool char_take(cursor_t *c, char wanted)
{
    if (c->wrong || *c->at != wanted) return false;
    c->at++;
    return true;
}

// A word that ends with the line or before one of " =:;,/".
static bool word_take(cursor_t *c, const char *word)
{
    size_t length = strlen(word);
    spaces_skip(c);
    if (c->wrong || strncmp(c->at, word, length) != 0) return false;
    if (c->at[length] && !strchr(" \t=:;,/", c->at[length])) return false;
    c->at += length;
    return true;
}

static uint32_t number_take(cursor_t *c, uint32_t limit)
{
    char *end;
    if (c->wrong) return 0;
    unsigned long long value = strtoull(c->at, &end, 10);
    if (end == c->at || *c->at == '-' || value >= limit) {
        c->wrong = c->at;
        return 0;
    }
    c->at = end;
    return (uint32_t)value;
}

static void char_need(cursor_t *c, char wanted)
{
    if (!char_take(c, wanted) && !c->wrong) c->wrong = c->at;
}

// "key=number", 0 if the key is not there.
static uint32_t option_take(cursor_t *c, const char *key, uint32_t limit)
{
    if (!word_take(c, key)) return 0;
    char_need(c, '=');
    return number_take(c, limit);
}

static size_t choice_take(cursor_t *c, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        if (word_take(c, words[i])) return i;
    if (!c->wrong) c->wrong = c->at;
    return 0;
}

static span_t span_take(cursor_t *c)
{
    span_t span;
    memset(&span, 0, sizeof span);
    spaces_skip(c);
    span.slot = char_take(c, '$');
    if (!span.slot) char_need(c, 'b');
    span.id = (uint8_t)number_take(c, span.slot ? MAX_SPANS : MAX_SPACES);
    char_need(c, '+');
    span.offset = (uint16_t)number_take(c, SPACE_SIZE);
    char_need(c, ':');
    span.length = (uint16_t)number_take(c, SPACE_SIZE + 1);
    return span;
}

static void grid_take(cursor_t *c, op_t *op)
{
    op->counts = (uint8_t)choice_take(c, counts_words);
    char_need(c, '=');
    if (op->counts != COUNTS_DIRECT) {
        op->spans[MAX_SPANS - 1] = span_take(c);
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        if (i) char_need(c, ',');
        op->groups[i] = (uint8_t)number_take(c, 256);
    }
}

static void table_take(cursor_t *c, op_t *op)
{
    spaces_skip(c);
    char_need(c, 'r');
    op->numbers[0] = number_take(c, MAX_RECORDINGS);
    for (spaces_skip(c); *c->at == 'b' && op->span_count < MAX_SPANS; spaces_skip(c))
        op->spans[op->span_count++] = span_take(c);
    op->numbers[1] = option_take(c, "add", UINT32_MAX);
}

static void op_take(cursor_t *c, op_t *op)
{
    size_t kind = 0;
    memset(op, 0, sizeof *op);
    while (kind < OP_KINDS && !word_take(c, op_infos[kind].name)) kind++;
    if (kind == OP_KINDS) {
        if (!c->wrong) c->wrong = c->at;
        return;
    }
    const op_info_t *info = &op_infos[kind];
    op->kind = (uint8_t)kind;
    if (kind == OP_EXECUTE) {
        table_take(c, op);
        return;
    }
    op->span_count = (uint8_t)strlen(info->spans);
    for (size_t i = 0; i < op->span_count; i++) op->spans[i] = span_take(c);
    for (size_t i = 0; i < info->numbers; i++) {
        if (!i && !word_take(c, "k")) c->wrong = c->wrong ? c->wrong : c->at;
        char_need(c, i ? ',' : '=');
        op->numbers[i] = number_take(c, UINT32_MAX);
    }
    op->given = word_take(c, "given");
    if (info->traits & TRAIT_KERNEL) grid_take(c, op);
}

static uint8_t ops_take(cursor_t *c, op_t *ops, size_t most)
{
    uint8_t count = 0;
    spaces_skip(c);
    if (!char_take(c, ':')) return 0;
    do {
        spaces_skip(c);
        if (count == most) c->wrong = c->at;
        if (!c->wrong) op_take(c, &ops[count++]);
        spaces_skip(c);
    } while (char_take(c, ';'));
    return count;
}

static uint8_t points_take(cursor_t *c, const char *key, point_t *points, size_t most)
{
    uint8_t count = 0;
    if (!word_take(c, key)) return 0;
    char_need(c, '=');
    do {
        if (count == most) c->wrong = c->at;
        if (c->wrong) return count;
        point_t *point = &points[count++];
        point->own = char_take(c, '@');
        if (!point->own) char_need(c, 's');
        point->id = (uint8_t)number_take(c, point->own ? MAX_ACTIONS : MAX_SEMAPHORES);
        if (!point->own) {
            char_need(c, ':');
            point->value = number_take(c, UINT32_MAX);
        }
        while (char_take(c, '/')) {
            bool *kind = word_take(c, "ended") ? &point->ended : &point->up_to;
            if (kind == &point->up_to && !word_take(c, "up_to") && !c->wrong) c->wrong = c->at;
            *kind = true;
        }
    } while (char_take(c, ','));
    return count;
}

static void action_take(cursor_t *c, graph_t *graph)
{
    size_t index = number_take(c, MAX_ACTIONS);
    action_t *action = &graph->actions[index];
    if (index >= graph->action_count) graph->action_count = (uint8_t)(index + 1);
    spaces_skip(c);
    char_need(c, 't');
    action->thread = (uint8_t)number_take(c, MAX_THREADS);
    spaces_skip(c);
    char_need(c, 'n');
    action->turn = (uint8_t)number_take(c, MAX_ACTIONS);
    action->kind = (uint8_t)choice_take(c, action_words);
    spaces_skip(c);
    if (action->kind == ACTION_SUBMIT) {
        char_need(c, 'q');
        action->device = (uint8_t)number_take(c, MAX_DEVICES);
        char_need(c, '.');
        action->queue = (uint8_t)number_take(c, MAX_QUEUES);
    }
    action->wait_count = points_take(c, "wait", action->waits, MAX_WAITS);
    action->signal_count = points_take(c, "signal", action->signals, MAX_SIGNALS);
    if (word_take(c, "after")) {
        char_need(c, '=');
        do action->after |= action_bit(number_take(c, MAX_ACTIONS));
        while (char_take(c, ','));
    }
    action->delay_us = (uint16_t)option_take(c, "delay", 10000);
    action->op_count = ops_take(c, action->ops, MAX_OPS);
}

static size_t index_take(cursor_t *c, uint8_t *count, size_t limit)
{
    spaces_skip(c);
    size_t index = number_take(c, (uint32_t)limit);
    if (!c->wrong && index >= *count) *count = (uint8_t)(index + 1);
    return index;
}

static void device_take(cursor_t *c, graph_t *graph)
{
    char *uri = graph->uris[index_take(c, &graph->device_count, MAX_DEVICES)];
    spaces_skip(c);
    size_t length = strcspn(c->at, " \t");
    if (length >= sizeof graph->uris[0]) length = sizeof graph->uris[0] - 1;
    memcpy(uri, c->at, length);
    c->at += length;
}

static void space_take(cursor_t *c, graph_t *graph)
{
    space_t *space = &graph->spaces[index_take(c, &graph->space_count, MAX_SPACES)];
    space->kind = (uint8_t)choice_take(c, space_words);
    space->device = (uint8_t)option_take(c, "device", MAX_DEVICES);
    space->node = (uint8_t)option_take(c, "node", 256);
    space->pool = (uint8_t)option_take(c, "pool", POOLS);
    space->size = (uint16_t)option_take(c, "size", SPACE_SIZE + 1);
}

static void recording_take(cursor_t *c, graph_t *graph)
{
    recording_t *recording =
        &graph->recordings[index_take(c, &graph->recording_count, MAX_RECORDINGS)];
    recording->used = true;
    recording->device = (uint8_t)option_take(c, "device", MAX_DEVICES);
    recording->slot_count = (uint8_t)option_take(c, "slots", MAX_SPANS + 1);
    recording->one_shot = option_take(c, "one_shot", 2);
    recording->prepare = option_take(c, "prepare", 2);
    recording->count = ops_take(c, recording->commands, MAX_COMMANDS);
}

static void semaphore_take(cursor_t *c, graph_t *graph)
{
    semaphore_t *semaphore =
        &graph->semaphores[index_take(c, &graph->semaphore_count, MAX_SEMAPHORES)];
    semaphore->device = (uint8_t)option_take(c, "device", MAX_DEVICES);
    semaphore->initial = option_take(c, "initial", UINT32_MAX);
}

static void line_take(cursor_t *c, graph_t *graph)
{
    spaces_skip(c);
    if (!*c->at) return;
    if (word_take(c, "seed")) {
        char *end;
        graph->seed = strtoull(c->at, &end, 10);
        c->at = end;
    } else if (word_take(c, "failures")) {
        spaces_skip(c);
        graph->failures = number_take(c, 2);
    } else if (word_take(c, "device")) {
        device_take(c, graph);
    } else if (word_take(c, "space")) {
        space_take(c, graph);
    } else if (word_take(c, "semaphore")) {
        semaphore_take(c, graph);
    } else if (word_take(c, "recording")) {
        recording_take(c, graph);
    } else {
        action_take(c, graph);
    }
    spaces_skip(c);
    if (!c->wrong && *c->at) c->wrong = c->at;
}

// Spaces that a listing leaves out, for nothing uses them, become the smallest there can be.
static void gaps_fill(graph_t *graph)
{
    for (size_t i = 0; i < graph->space_count; i++)
        if (!graph->spaces[i].size) graph->spaces[i].size = 1;
}

bool graph_parse(const char *text, graph_t *graph, char *message, size_t size)
{
    memset(graph, 0, sizeof *graph);
    for (size_t number = 1; *text; number++) {
        size_t length = strcspn(text, "\n");
        char *line = strndup(text, length);
        if (!line) abort();
        line[strcspn(line, "#")] = 0;
        cursor_t cursor = {line, NULL};
        line_take(&cursor, graph);
        if (cursor.wrong) snprintf(message, size, "line %zu: '%s'", number, cursor.wrong);
        free(line);
        if (cursor.wrong) return false;
        text += length + (text[length] == '\n');
    }
    gaps_fill(graph);
    return true;
}
