// SPDX-License-Identifier: Apache-2.0
#include "capture/ranges.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "capture/guard.h"
#include "trace/trace.h"

typedef struct range_t {
    const void *domain;
    uint64_t start; // 0: it is not recorded
    uint32_t name;
} range_t;

static void range_record(range_t range, trace_kind_t kind)
{
    trace_record_t *record = range.start ? trace_take() : NULL;
    if (!record) return;
    record->name = range.name;
    record->start = range.start;
    record->end = kind == TRACE_MARK ? range.start : trace_now();
    trace_put(record, kind);
}

void ranges_mark(uint32_t name)
{
    range_record((range_t){NULL, trace_start(), name}, TRACE_MARK);
}

// Ranges that a thread nests. Deeper ones are counted as lost. It is allocated, because
// little of a thread's own memory is left for libraries that are loaded late.
enum { DEPTH = 1024 };
typedef struct range_stack_t {
    int depth, deeper;     // those with a place here, and how many more
    const void *deeper_of; // the domain of these; those of others are not counted
    range_t ranges[DEPTH];
} range_stack_t;
static THREAD_LOCAL range_stack_t *own;
static pthread_key_t key; // whose destructor frees it
static bool has_key;

// Others that the thread's end calls may still have ranges.
static void stack_free(void *stack)
{
    own = NULL;
    mem_free(stack);
}

__attribute__((constructor)) static void ranges_load(void)
{
    has_key = pthread_key_create(&key, stack_free) == 0;
}

static range_stack_t *stack_find(void)
{
    if (own || !has_key) return own;
    own = mem_zalloc(sizeof *own);
    if (own && pthread_setspecific(key, own) != 0) stack_free(own);
    return own;
}

static int depth_of(const range_stack_t *stack, const void *domain)
{
    int depth = 0;
    for (int i = 0; i < stack->depth; i++) depth += stack->ranges[i].domain == domain;
    return depth;
}

int ranges_push(const void *domain, uint32_t name)
{
    range_stack_t *stack = stack_find();
    if (!stack) return -1;
    int depth = depth_of(stack, domain);
    if (stack->depth == DEPTH) {
        trace_lose_many(1);
        if (!stack->deeper) stack->deeper_of = domain;
        return domain == stack->deeper_of ? depth + stack->deeper++ : depth;
    }
    stack->ranges[stack->depth++] = (range_t){domain, trace_start(), name};
    return depth;
}

int ranges_pop(const void *domain)
{
    range_stack_t *stack = stack_find();
    if (!stack) return -1;
    if (stack->deeper && domain == stack->deeper_of)
        return depth_of(stack, domain) + --stack->deeper;
    int at = stack->depth - 1;
    while (at >= 0 && stack->ranges[at].domain != domain) at--;
    if (at < 0) return -1;
    range_record(stack->ranges[at], TRACE_SPAN);
    stack->depth--;
    size_t after = (size_t)(stack->depth - at);
    memmove(&stack->ranges[at], &stack->ranges[at + 1], after * sizeof *stack->ranges);
    return depth_of(stack, domain);
}

typedef struct open_t {
    struct open_t *next;
    uint64_t id;
    range_t range;
} open_t;
static open_t *opened; // under the guard
static uint64_t last;  // under the guard

uint64_t ranges_start(uint32_t name)
{
    range_t range = {NULL, trace_start(), name};
    open_t *open = range.start ? mem_zalloc(sizeof *open) : NULL;
    guard_enter();
    uint64_t id = ++last;
    if (open) {
        *open = (open_t){opened, id, range};
        opened = open;
    }
    guard_leave();
    return id;
}

void ranges_stop(uint64_t id)
{
    guard_enter();
    open_t **at = &opened;
    while (*at && (*at)->id != id) at = &(*at)->next;
    open_t *open = *at;
    if (open) *at = open->next;
    guard_leave();
    if (!open) return;
    range_record(open->range, TRACE_SPAN);
    mem_free(open);
}
