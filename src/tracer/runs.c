// SPDX-License-Identifier: Apache-2.0
#include "tracer/runs.h"

#include "base/memory.h"
#include "base/status.h"

// Neither key is 0.
static uint64_t other_key(int64_t id)
{
    return (uint64_t)id + 1 ? (uint64_t)id + 1 : (uint64_t)1 << 63;
}

// How far an id is behind the first one of a run.
static uint64_t run_offset(const run_t *run, int64_t id)
{
    return (uint64_t)id - (uint64_t)run->id;
}

keel_status_t runs_put(runs_t *runs, int64_t id, uint32_t value)
{
    run_t *last = runs->count ? &runs->runs[runs->count - 1] : NULL;
    if (last && (id < last->id || run_offset(last, id) < last->count))
        return map_put(&runs->others, other_key(id), value);
    if (last && run_offset(last, id) == last->count && value - last->value == last->count) {
        last->count++;
        return NULL;
    }
    run_t *grown = mem_reserve(runs->runs, &runs->capacity, runs->count, sizeof *grown);
    if (!grown) return status_no_memory();
    runs->runs = grown;
    grown[runs->count++] = (run_t){id, value, 1};
    return NULL;
}

bool runs_get(const runs_t *runs, int64_t id, uint32_t *value)
{
    uint32_t low = 0, high = runs->count; // the run is before `high`, at `low` or behind it
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (runs->runs[middle].id <= id)
            low = middle;
        else
            high = middle;
    }
    if (high) {
        const run_t *run = &runs->runs[low];
        if (id >= run->id && run_offset(run, id) < run->count) {
            *value = run->value + (uint32_t)run_offset(run, id);
            return true;
        }
    }
    return map_get(&runs->others, other_key(id), value);
}

void runs_finish(runs_t *runs)
{
    mem_free(runs->runs);
    map_finish(&runs->others);
    *runs = (runs_t){0};
}
