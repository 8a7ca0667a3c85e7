// SPDX-License-Identifier: Apache-2.0
#include "tracer/usage.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "tracer/map.h"

static const uint32_t GONE = UINT32_MAX; // what was at an address was given back

keel_status_t usage_add(usage_t *usage, change_t change)
{
    change_t *grown =
        mem_reserve(usage->changes, &usage->capacity, usage->count, sizeof *usage->changes);
    if (!grown) return status_no_memory();
    usage->changes = grown;
    grown[usage->count++] = change;
    return NULL;
}

static int change_compare(const void *a, const void *b)
{
    uint64_t x = ((const change_t *)a)->ns, y = ((const change_t *)b)->ns;
    return (x > y) - (x < y);
}

static keel_status_t value_add(model_t *model, const change_t *change, uint32_t name,
                               uint64_t bytes)
{
    event_t event = {.start_ns = change->ns,
                     .end_ns = change->ns,
                     .kind = EVENT_COUNT,
                     .name = name,
                     .track = change->track};
    double value = (double)bytes;
    uint32_t index;
    memcpy(&event.value, &value, sizeof value);
    return model_event(model, event, &index);
}

// `places` has the changes that took what is there, by addresses.
static keel_status_t changes_walk(const usage_t *usage, model_t *model, uint32_t name,
                                  map_t *places)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < usage->count; i++) {
        const change_t *change = &usage->changes[i];
        uint32_t taken, place = change->bytes ? i : GONE;
        bool known = map_get(places, change->address, &taken) && taken != GONE;
        if (!known && !change->bytes) continue;
        if (known) bytes -= usage->changes[taken].bytes;
        bytes += change->bytes;
        KEEL_TRY(map_replace(places, change->address, place));
        KEEL_TRY(value_add(model, change, name, bytes));
    }
    return NULL;
}

keel_status_t usage_count(usage_t *usage, model_t *model, const char *name)
{
    map_t places = {0};
    uint32_t text;
    if (!usage->count) return NULL;
    qsort(usage->changes, usage->count, sizeof *usage->changes, change_compare);
    keel_status_t status = model_text(model, name, &text);
    if (!status) status = changes_walk(usage, model, text, &places);
    map_finish(&places);
    return status;
}

void usage_finish(usage_t *usage)
{
    mem_free(usage->changes);
}
