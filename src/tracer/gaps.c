// SPDX-License-Identifier: Apache-2.0
#include "tracer/gaps.h"

#include "tracer/order.h"

// How far the operations that were looked at reach.
typedef struct walk_t {
    uint64_t until_ns;  // all
    uint64_t worked_ns; // those that are no copies; 0: there was none
    uint64_t copied_ns; // copies
    uint64_t copies_ns; // for how long copies have run since worked_ns
} walk_t;

static uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// How much an interval adds to those that reach until `until_ns`, if they start in order.
static uint64_t added(const event_t *event, uint64_t until_ns)
{
    uint64_t from = max64(event->start_ns, until_ns);
    return event->end_ns > from ? event->end_ns - from : 0;
}

static uint32_t gap_size(uint64_t ns)
{
    uint32_t size = 0;
    for (uint64_t limit = 1000; size + 1 < GAP_SIZES && ns >= limit; limit *= 10) size++;
    return size;
}

static gap_cause_t gap_cause(const model_t *model, const walk_t *walk, const event_t *next)
{
    uint64_t ns = next->start_ns - walk->worked_ns;
    uint64_t beyond_ns = walk->copied_ns > next->start_ns ? walk->copied_ns - next->start_ns : 0;
    if (walk->copies_ns >= beyond_ns + (ns + 1) / 2) return GAP_COPY;
    if (!next->link) return GAP_UNKNOWN;
    return model->events[next->link - 1].start_ns >= walk->worked_ns ? GAP_HOST : GAP_DEPENDENCY;
}

// Whom to tell of gaps.
typedef struct listener_t {
    gap_fn fn;
    void *user;
} listener_t;

static keel_status_t op_walk(const model_t *model, walk_t *walk, const event_t *event, gaps_t *gaps,
                             listener_t listener)
{
    keel_status_t status = NULL;
    gaps->ops += !event->later;
    if (event->op == TRACE_OP_WAIT) return NULL;
    gaps->busy_ns += added(event, walk->until_ns);
    walk->until_ns = max64(walk->until_ns, event->end_ns);
    if (event->op == TRACE_OP_COPY) {
        walk->copies_ns += added(event, max64(walk->copied_ns, walk->worked_ns));
        walk->copied_ns = max64(walk->copied_ns, event->end_ns);
        return NULL;
    }
    if (walk->worked_ns && event->start_ns > walk->worked_ns) {
        gap_cause_t cause = gap_cause(model, walk, event);
        gaps->total_ns[cause] += event->start_ns - walk->worked_ns;
        gaps->count[cause][gap_size(event->start_ns - walk->worked_ns)]++;
        status = listener.fn(listener.user, cause, walk->worked_ns, event);
    }
    walk->worked_ns = max64(walk->worked_ns, event->end_ns);
    walk->copies_ns = walk->copied_ns > walk->worked_ns ? walk->copied_ns - walk->worked_ns : 0;
    return status;
}

keel_status_t gaps_find(const model_t *model, uint32_t device, gaps_t *gaps, gap_fn fn, void *user)
{
    order_t order = {0};
    walk_t walk = {0};
    *gaps = (gaps_t){0};
    keel_status_t status = order_device(&order, model, device);
    for (uint32_t i = 0; !status && i < order.count; i++)
        status =
            op_walk(model, &walk, &model->events[order.indices[i]], gaps, (listener_t){fn, user});
    order_finish(&order);
    return status;
}

const char *gaps_cause(gap_cause_t cause)
{
    static const char *const names[GAP_CAUSES] = {"host late", "dependency", "copy", "not known"};
    return names[cause];
}
