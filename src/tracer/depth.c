// SPDX-License-Identifier: Apache-2.0
#include "tracer/depth.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/status.h"

typedef struct change_t {
    uint64_t ns;
    int64_t by;
} change_t;

static int change_compare(const void *a, const void *b)
{
    const change_t *x = a, *y = b;
    if (x->ns != y->ns) return x->ns < y->ns ? -1 : 1;
    return (x->by < y->by) - (x->by > y->by);
}

static bool counts(const model_t *model, const event_t *event, uint32_t device)
{
    return event->kind == EVENT_OP && event->link && !event->later &&
           model->tracks[event->track].device == device;
}

keel_status_t depth_each(const model_t *model, uint32_t device, depth_fn fn, void *user)
{
    size_t count = 0, at = 0;
    for (uint32_t i = 0; i < model->event_count; i++)
        count += counts(model, &model->events[i], device);
    if (!count) return NULL;
    change_t *changes = mem_alloc(2 * count * sizeof *changes);
    if (!changes) return status_no_memory();
    for (uint32_t i = 0; i < model->event_count; i++) {
        const event_t *event = &model->events[i];
        if (!counts(model, event, device)) continue;
        changes[at++] = (change_t){model->events[event->link - 1].start_ns, 1};
        changes[at++] = (change_t){event->end_ns, -1};
    }
    qsort(changes, at, sizeof *changes, change_compare);
    keel_status_t status = NULL;
    int64_t depth = 0;
    for (size_t i = 0; !status && i < at; i++) {
        depth += changes[i].by;
        if (i + 1 == at || changes[i + 1].ns != changes[i].ns)
            status = fn(user, changes[i].ns, depth);
    }
    mem_free(changes);
    return status;
}
