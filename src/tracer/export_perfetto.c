// SPDX-License-Identifier: Apache-2.0
// The numbers of fields are those of Perfetto's public protos (TracePacket, TrackEvent,
// TrackDescriptor). A slice is a packet for its begin and one for its end. Perfetto sorts packets
// by time and keeps the order of those at one time, so that both may be written together.
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "tracer/depth.h"
#include "tracer/export.h"
#include "tracer/lanes.h"
#include "tracer/protobuf.h"

enum {
    TRACE_PACKET = 1,
    PACKET_TIME = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_TRACK = 60,
    INTERNED_NAMES = 2, // of events
    NAME_IID = 1,
    NAME_TEXT = 2,
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK = 11,
    EVENT_CATEGORY = 22,
    EVENT_DOUBLE = 44,
    EVENT_FLOW = 47,
    ANNOTATION_UINT = 3,
    ANNOTATION_TEXT = 6,
    ANNOTATION_NAME = 10,
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
    THREAD_PID = 1,
    THREAD_TID = 2,
    THREAD_NAME = 5,
    BEGIN = 1,
    END = 2,
    INSTANT = 3,
    COUNTER = 4,
    SEQUENCE = 1,   // there is one
    FLAG_FIRST = 1, // no name is known before this packet
    FLAG_NAMES = 2, // it uses names of packets before
};

typedef struct perfetto_t {
    const model_t *model;
    FILE *out;
    lanes_t lanes;
    uint8_t *named;  // owned: for each string and kind of copy, whether its name was written
    uint32_t device; // whose depth is written
    bool begun;
    uint8_t *makes; // owned: of each event, whether it is the call that made an operation
    pb_t packet, inner, part, names;
} perfetto_t;

static uint64_t uuid_process(uint32_t process)
{
    return 1ull << 56 | process;
}

static uint64_t uuid_device(uint32_t device)
{
    return 2ull << 56 | device;
}

static uint64_t uuid_lane(uint32_t track, uint32_t lane)
{
    return 3ull << 56 | (uint64_t)track << 16 | lane;
}

static uint64_t uuid_depth(uint32_t device)
{
    return 4ull << 56 | device;
}

// A counter of the application, of a process.
static uint64_t uuid_counter(uint32_t process, uint32_t name)
{
    return 5ull << 56 | (uint64_t)process << 32 | name;
}

static void packet_write(perfetto_t *perfetto)
{
    pb_t *head = &perfetto->part, *packet = &perfetto->packet;
    pb_varint(packet, PACKET_SEQUENCE, SEQUENCE);
    pb_varint(packet, PACKET_FLAGS, FLAG_NAMES | (perfetto->begun ? 0 : FLAG_FIRST));
    perfetto->begun = true;
    head->size = 0;
    pb_message(head, TRACE_PACKET, packet);
    fwrite(head->data, 1, head->size, perfetto->out);
    packet->size = 0;
}

// Writes the descriptor of a track, of which `inner` has the rest.
static void track_write(perfetto_t *perfetto, uint64_t uuid, uint64_t parent)
{
    pb_varint(&perfetto->inner, TRACK_UUID, uuid);
    if (parent) pb_varint(&perfetto->inner, TRACK_PARENT, parent);
    pb_message(&perfetto->packet, PACKET_TRACK, &perfetto->inner);
    perfetto->inner.size = 0;
    packet_write(perfetto);
}

static void process_write(perfetto_t *perfetto, uint32_t index)
{
    const process_t *process = &perfetto->model->processes[index];
    perfetto->part.size = 0;
    pb_varint(&perfetto->part, PROCESS_PID, export_pid(process));
    pb_text(&perfetto->part, PROCESS_NAME, model_string(perfetto->model, process->command));
    pb_message(&perfetto->inner, TRACK_PROCESS, &perfetto->part);
    track_write(perfetto, uuid_process(index), 0);
}

static void device_write(perfetto_t *perfetto, uint32_t index)
{
    const device_t *device = &perfetto->model->devices[index];
    pb_text(&perfetto->inner, TRACK_NAME, model_string(perfetto->model, device->name));
    track_write(perfetto, uuid_device(index), uuid_process(device->process));
    pb_text(&perfetto->inner, TRACK_NAME, "queue depth");
    perfetto->part.size = 0;
    pb_message(&perfetto->inner, TRACK_COUNTER, &perfetto->part);
    track_write(perfetto, uuid_depth(index), uuid_device(index));
}

static void lane_write(perfetto_t *perfetto, uint32_t index, uint32_t lane)
{
    const model_t *model = perfetto->model;
    const track_t *track = &model->tracks[index];
    const char *name = model_string(model, track->name);
    if (track->is_queue || lane) {
        pb_text(&perfetto->inner, TRACK_NAME, *name ? name : "queue");
        uint64_t parent = track->is_queue ? uuid_device(track->device) : uuid_lane(index, 0);
        track_write(perfetto, uuid_lane(index, lane), parent);
        return;
    }
    perfetto->part.size = 0;
    pb_varint(&perfetto->part, THREAD_PID, export_pid(&model->processes[track->process]));
    pb_varint(&perfetto->part, THREAD_TID, track->number);
    pb_text(&perfetto->part, THREAD_NAME, name);
    pb_message(&perfetto->inner, TRACK_THREAD, &perfetto->part);
    track_write(perfetto, uuid_lane(index, 0), uuid_process(track->process));
}

static void tracks_write(perfetto_t *perfetto)
{
    const model_t *model = perfetto->model;
    for (uint32_t i = 0; i < model->process_count; i++) process_write(perfetto, i);
    for (uint32_t i = 0; i < model->device_count; i++) device_write(perfetto, i);
    for (uint32_t i = 0; i < model->track_count; i++)
        for (uint32_t lane = 0; !lane || lane < perfetto->lanes.count[i]; lane++)
            lane_write(perfetto, i, lane);
}

// Puts the number of the event's name into `inner`, and the name into the packet the first time.
static void name_put(perfetto_t *perfetto, const event_t *event)
{
    uint64_t iid = event->name
                       ? event->name
                       : perfetto->model->strings.count + 1u +
                             (event->op == TRACE_OP_COPY ? event->copy : (uint32_t)TRACE_COPIES);
    pb_varint(&perfetto->inner, EVENT_NAME_IID, iid);
    if (perfetto->named[iid]) return;
    perfetto->named[iid] = 1;
    pb_t *part = &perfetto->part;
    part->size = 0;
    pb_varint(part, NAME_IID, iid);
    pb_text(part, NAME_TEXT, model_name(perfetto->model, event));
    perfetto->names.size = 0;
    pb_message(&perfetto->names, INTERNED_NAMES, part);
    pb_message(&perfetto->packet, PACKET_INTERNED, &perfetto->names);
}

static void annotate(perfetto_t *perfetto, const char *name, const char *text, uint64_t number)
{
    pb_t *part = &perfetto->part;
    part->size = 0;
    pb_text(part, ANNOTATION_NAME, name);
    if (text)
        pb_text(part, ANNOTATION_TEXT, text);
    else
        pb_varint(part, ANNOTATION_UINT, number);
    pb_message(&perfetto->inner, EVENT_ANNOTATION, part);
}

static void details_put(perfetto_t *perfetto, const event_t *event)
{
    const model_t *model = perfetto->model;
    if (event->args) annotate(perfetto, "arguments", model_string(model, event->args), 0);
    // Launches that were counted are a mark, where the first one was.
    if (event->kind == EVENT_LAUNCHES) annotate(perfetto, "launches", NULL, event->value);
    if (event->kind != EVENT_OP || !event->value) return;
    if (event->op == TRACE_OP_COPY) annotate(perfetto, "bytes", NULL, event->value);
    if (event->op != TRACE_OP_DISPATCH) return;
    const trace_shape_t *shape = &model->shapes[event->value];
    char text[64];
    snprintf(text, sizeof text, "%u x %u x %u", shape->grid[0], shape->grid[1], shape->grid[2]);
    annotate(perfetto, "grid", text, 0);
    snprintf(text, sizeof text, "%u x %u x %u", shape->group_x, shape->group_y, shape->group_z);
    annotate(perfetto, "workgroup", text, 0);
}

static void event_finish(perfetto_t *perfetto, uint64_t ns, uint64_t track, uint32_t type)
{
    pb_varint(&perfetto->inner, EVENT_TYPE, type);
    pb_varint(&perfetto->inner, EVENT_TRACK, track);
    pb_varint(&perfetto->packet, PACKET_TIME, ns);
    pb_message(&perfetto->packet, PACKET_EVENT, &perfetto->inner);
    perfetto->inner.size = 0;
    packet_write(perfetto);
}

// Arrows go from a call to the first operation that it made, and on to the next: Perfetto draws
// them in the order of time between all slices of one number.
static void slice_write(perfetto_t *perfetto, uint32_t index)
{
    static const char *const kinds[EVENT_KINDS] = {"call", "operation", "span",
                                                   "mark", "counter",   "launches"};
    const event_t *event = &perfetto->model->events[index];
    uint64_t track = uuid_lane(event->track, perfetto->lanes.lane[index]);
    name_put(perfetto, event);
    pb_text(&perfetto->inner, EVENT_CATEGORY, kinds[event->kind]);
    details_put(perfetto, event);
    if (perfetto->makes[index]) pb_fixed64(&perfetto->inner, EVENT_FLOW, (uint64_t)index + 1);
    if (event->link) pb_fixed64(&perfetto->inner, EVENT_FLOW, event->link);
    bool lasts = event->kind <= EVENT_SPAN;
    event_finish(perfetto, event->start_ns, track, lasts ? BEGIN : INSTANT);
    if (lasts) event_finish(perfetto, event->end_ns, track, END);
}

static void counter_write(perfetto_t *perfetto, const event_t *event)
{
    const model_t *model = perfetto->model;
    uint32_t process = model->tracks[event->track].process;
    uint64_t uuid = uuid_counter(process, event->name);
    double value;
    memcpy(&value, &event->value, sizeof value);
    pb_text(&perfetto->inner, TRACK_NAME, model_name(model, event));
    perfetto->part.size = 0;
    pb_message(&perfetto->inner, TRACK_COUNTER, &perfetto->part);
    track_write(perfetto, uuid, uuid_process(process));
    pb_double(&perfetto->inner, EVENT_DOUBLE, value);
    event_finish(perfetto, event->start_ns, uuid, COUNTER);
}

static keel_status_t depth_write(void *user, uint64_t ns, int64_t depth)
{
    perfetto_t *perfetto = user;
    pb_double(&perfetto->inner, EVENT_DOUBLE, (double)depth);
    event_finish(perfetto, ns, uuid_depth(perfetto->device), COUNTER);
    return NULL;
}

static keel_status_t events_write(perfetto_t *perfetto)
{
    const model_t *model = perfetto->model;
    for (uint32_t i = 0; i < model->event_count; i++)
        if (model->events[i].link) perfetto->makes[model->events[i].link - 1] = 1;
    tracks_write(perfetto);
    for (uint32_t i = 0; i < perfetto->lanes.order.count; i++)
        slice_write(perfetto, perfetto->lanes.order.indices[i]);
    for (uint32_t i = 0; i < model->event_count; i++) {
        const event_t *event = &model->events[i];
        if (event->kind == EVENT_COUNT)
            counter_write(perfetto, event);
        else if (event->kind > EVENT_SPAN)
            slice_write(perfetto, i);
    }
    keel_status_t status = NULL;
    for (; !status && perfetto->device < model->device_count; perfetto->device++)
        status = depth_each(model, perfetto->device, depth_write, perfetto);
    return status;
}

static keel_status_t perfetto_begin(perfetto_t *perfetto, const model_t *model, FILE *out)
{
    perfetto->model = model;
    perfetto->out = out;
    perfetto->named = mem_zalloc(model->strings.count + TRACE_COPIES + 2u);
    perfetto->makes = mem_zalloc(model->event_count + 1u);
    if (!perfetto->named || !perfetto->makes) return status_no_memory();
    return lanes_find(&perfetto->lanes, model, true);
}

keel_status_t export_perfetto(const model_t *model, FILE *out)
{
    perfetto_t *perfetto = mem_zalloc(sizeof *perfetto);
    if (!perfetto) return status_no_memory();
    keel_status_t status = perfetto_begin(perfetto, model, out);
    if (!status) status = events_write(perfetto);
    lanes_finish(&perfetto->lanes);
    mem_free(perfetto->named);
    mem_free(perfetto->makes);
    mem_free(perfetto);
    return status;
}
