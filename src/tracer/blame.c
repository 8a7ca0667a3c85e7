// SPDX-License-Identifier: Apache-2.0
#include "tracer/blame.h"

#include <stdio.h>

keel_status_t blame_init(blame_t *blame, const model_t *model)
{
    blame->model = model;
    for (uint32_t i = 0; i < model->need_count; i++) {
        const need_t *need = &model->needs[i];
        uint32_t first, call = model->works[need->work].call;
        if (map_get(&blame->needs, need->work + 1ull, &first)) continue;
        KEEL_TRY(map_put(&blame->needs, need->work + 1ull, i));
        if (call) KEEL_TRY(map_put(&blame->works, call, need->work));
    }
    return NULL;
}

void blame_finish(blame_t *blame)
{
    map_finish(&blame->works);
    map_finish(&blame->needs);
}

const need_t *blame_find(const blame_t *blame, const event_t *event, uint64_t from_ns)
{
    const model_t *model = blame->model;
    const need_t *last = NULL, *unknown = NULL;
    uint64_t last_ns = from_ns;
    uint32_t work, first;
    if (!event->link || !map_get(&blame->works, event->link, &work) ||
        !map_get(&blame->needs, work + 1ull, &first))
        return NULL;
    for (uint32_t i = first; i < model->need_count && model->needs[i].work == work; i++) {
        const need_t *need = &model->needs[i];
        uint64_t came_ns = need->on ? model->works[need->on - 1].end_ns : 0;
        if (!came_ns) unknown = need;
        if (came_ns <= last_ns) continue;
        last = need;
        last_ns = came_ns;
    }
    return last ? last : unknown;
}

uint64_t blame_key(const blame_t *blame, const need_t *need)
{
    return need->on ? blame->model->works[need->on - 1].track + 1ull : 1ull << 32 | need->name;
}

void blame_text(const blame_t *blame, const need_t *need, char *text, size_t size)
{
    const model_t *model = blame->model;
    if (!need->on) {
        snprintf(text, size, "semaphore '%s'", model_string(model, need->name));
        return;
    }
    const track_t *track = &model->tracks[model->works[need->on - 1].track];
    snprintf(text, size, "queue '%s' of %s", model_string(model, track->name),
             model_string(model, model->devices[track->device].name));
}
