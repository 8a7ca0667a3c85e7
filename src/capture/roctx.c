// SPDX-License-Identifier: Apache-2.0
// roctx, by which applications mark what they do: its functions, whether or not the program has
// AMD's library for them. What they return is what that library's would.
#include <stdbool.h>

#include "base/memory.h"
#include "capture/guard.h"
#include "trace/name.h"
#include "trace/trace.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void roctxMarkA(const char *message);
EXPORT int roctxRangePushA(const char *message);
EXPORT int roctxRangePop(void);
EXPORT uint64_t roctxRangeStartA(const char *message);
EXPORT void roctxRangeStop(uint64_t id);

typedef struct range_t {
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

static range_t range_begin(const char *message)
{
    if (!trace_is_on()) return (range_t){0};
    uint32_t name = trace_name(message ? message : "");
    return (range_t){trace_now(), name};
}

void roctxMarkA(const char *message)
{
    range_record(range_begin(message), TRACE_MARK);
}

// Ranges that a thread nests. Deeper ones are counted but not recorded.
enum { DEPTH = 64 };
static THREAD_LOCAL struct {
    int depth;
    range_t ranges[DEPTH];
} stack;

int roctxRangePushA(const char *message)
{
    if (stack.depth < DEPTH) stack.ranges[stack.depth] = range_begin(message);
    return stack.depth++;
}

int roctxRangePop(void)
{
    if (stack.depth == 0) return -1;
    if (--stack.depth < DEPTH) range_record(stack.ranges[stack.depth], TRACE_SPAN);
    return stack.depth;
}

// Ranges that any thread may end, by their numbers.
typedef struct open_t {
    struct open_t *next;
    uint64_t id;
    range_t range;
} open_t;
static open_t *opened; // under the guard
static uint64_t last;  // under the guard

uint64_t roctxRangeStartA(const char *message)
{
    range_t range = range_begin(message);
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

void roctxRangeStop(uint64_t id)
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
