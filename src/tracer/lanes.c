// SPDX-License-Identifier: Apache-2.0
#include "tracer/lanes.h"

#include "base/memory.h"
#include "base/status.h"

enum { DEPTH = 64 }; // events that enclose each other, in one lane

// What is going on in a lane: the ends of those that enclose each other, the outermost first.
typedef struct lane_t {
    uint32_t depth;
    uint64_t ends[DEPTH];
} lane_t;

typedef struct track_lanes_t {
    lane_t *lanes; // owned
    uint32_t count, capacity;
} track_lanes_t;

static bool lane_takes(lane_t *lane, const event_t *event, bool nests)
{
    while (lane->depth && lane->ends[lane->depth - 1] <= event->start_ns) lane->depth--;
    if (!lane->depth) return true;
    return nests && lane->depth < DEPTH && event->end_ns <= lane->ends[lane->depth - 1];
}

static keel_status_t event_place(track_lanes_t *track, const event_t *event, bool nests,
                                 uint16_t *lane)
{
    uint32_t i = 0;
    while (i < track->count && !lane_takes(&track->lanes[i], event, nests)) i++;
    if (i == UINT16_MAX) i--; // drawn over another one
    if (i == track->count) {
        lane_t *lanes = mem_reserve(track->lanes, &track->capacity, i, sizeof *lanes);
        if (!lanes) return status_no_memory();
        track->lanes = lanes;
        lanes[i].depth = 0;
        track->count++;
    }
    lane_t *into = &track->lanes[i];
    if (into->depth < DEPTH) into->ends[into->depth++] = event->end_ns;
    *lane = (uint16_t)i;
    return NULL;
}

static keel_status_t events_place(lanes_t *lanes, const model_t *model, track_lanes_t *tracks,
                                  bool nested)
{
    for (uint32_t i = 0; i < lanes->order.count; i++) {
        uint32_t index = lanes->order.indices[i];
        const event_t *event = &model->events[index];
        bool nests = nested && !model->tracks[event->track].is_queue;
        KEEL_TRY(event_place(&tracks[event->track], event, nests, &lanes->lane[index]));
        lanes->count[event->track] = (uint16_t)tracks[event->track].count;
    }
    return NULL;
}

keel_status_t lanes_find(lanes_t *lanes, const model_t *model, bool nested)
{
    *lanes = (lanes_t){.lane = mem_zalloc((model->event_count + 1) * sizeof *lanes->lane),
                       .count = mem_zalloc((model->track_count + 1) * sizeof *lanes->count)};
    track_lanes_t *tracks = mem_zalloc((model->track_count + 1) * sizeof *tracks);
    keel_status_t status = lanes->lane && lanes->count && tracks ? NULL : status_no_memory();
    for (uint32_t i = 0; !status && i < model->event_count; i++)
        if (model->events[i].kind <= EVENT_SPAN) status = order_add(&lanes->order, i);
    if (!status) status = order_sort(&lanes->order, model);
    if (!status) status = events_place(lanes, model, tracks, nested);
    for (uint32_t i = 0; tracks && i < model->track_count; i++) mem_free(tracks[i].lanes);
    mem_free(tracks);
    return status;
}

void lanes_finish(lanes_t *lanes)
{
    order_finish(&lanes->order);
    mem_free(lanes->lane);
    mem_free(lanes->count);
    *lanes = (lanes_t){0};
}
