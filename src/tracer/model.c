// SPDX-License-Identifier: Apache-2.0
#include "tracer/model.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"

// Makes room for one more item of an array of the model.
#define RESERVE(model, items, item)                                                                \
    do {                                                                                           \
        void *grown_ = mem_reserve((model)->items, &(model)->item##_capacity,                      \
                                   (model)->item##_count, sizeof *(model)->items);                 \
        if (!grown_) return status_no_memory();                                                    \
        (model)->items = grown_;                                                                   \
    } while (0)

void model_finish(model_t *model)
{
    strings_finish(&model->strings);
    mem_free(model->kept);
    mem_free(model->processes);
    mem_free(model->devices);
    mem_free(model->tracks);
    mem_free(model->events);
    mem_free(model->works);
    mem_free(model->needs);
    mem_free(model->shapes);
    map_finish(&model->shape_places);
    map_finish(&model->track_places);
    *model = (model_t){0};
}

// The number is that of another process of the node.
static bool node_has(const model_t *model, uint32_t node, uint32_t pid)
{
    for (uint32_t i = 0; i < model->process_count; i++)
        if (model->processes[i].node == node && model->processes[i].pid == pid) return true;
    return false;
}

static uint32_t node_find(const model_t *model, const process_t *process)
{
    uint32_t fresh = 0;
    for (uint32_t i = model->process_count; i-- > 0;) {
        const process_t *other = &model->processes[i];
        if (other->boot == process->boot && !node_has(model, other->node, process->pid))
            return other->node;
        if (other->node >= fresh) fresh = other->node + 1;
    }
    return fresh;
}

keel_status_t model_process(model_t *model, process_t process, uint32_t *index)
{
    RESERVE(model, processes, process);
    process.node = node_find(model, &process);
    *index = model->process_count++;
    model->processes[*index] = process;
    return NULL;
}

keel_status_t model_device(model_t *model, device_t device, uint32_t *index)
{
    for (*index = 0; *index < model->device_count; ++*index) {
        const device_t *there = &model->devices[*index];
        if (there->process == device.process && there->name == device.name) return NULL;
    }
    RESERVE(model, devices, device);
    model->devices[model->device_count++] = device;
    return NULL;
}

static bool track_is(const track_t *a, const track_t *b)
{
    return a->process == b->process && a->is_queue == b->is_queue && a->number == b->number;
}

static uint64_t track_key(const track_t *track)
{
    uint64_t key = track->number * 0x9e3779b97f4a7c15u;
    key = (key ^ key >> 29 ^ track->process) * 0xbf58476d1ce4e5b9u;
    key = (key ^ key >> 32) << 1 | track->is_queue;
    return key ? key : 2;
}

keel_status_t model_track(model_t *model, track_t track, uint32_t *index)
{
    uint64_t key = track_key(&track);
    bool taken = map_get(&model->track_places, key, index);
    if (taken && track_is(&model->tracks[*index], &track)) return NULL;
    for (uint32_t i = 0; taken && i < model->track_count; i++) { // two with one key
        *index = i;
        if (track_is(&model->tracks[i], &track)) return NULL;
    }
    RESERVE(model, tracks, track);
    *index = model->track_count++;
    model->tracks[*index] = track;
    return taken ? NULL : map_put(&model->track_places, key, *index);
}

keel_status_t model_work(model_t *model, work_t work, uint32_t *index)
{
    RESERVE(model, works, work);
    *index = model->work_count++;
    model->works[*index] = work;
    return NULL;
}

keel_status_t model_need(model_t *model, need_t need)
{
    RESERVE(model, needs, need);
    model->needs[model->need_count++] = need;
    return NULL;
}

enum { KEPT_KERNEL = 1, KEPT_CALL = 2, JUDGED = 4 };

static bool regex_takes(const regex_t *regex, const char *text)
{
    return !regex || regexec(regex, text, 0, NULL, 0) == 0;
}

// Each name is judged once.
static keel_status_t name_judge(model_t *model, uint32_t name, const char *text, uint8_t *kept)
{
    while (model->kept_count <= name) {
        uint8_t *all = mem_reserve(model->kept, &model->kept_capacity, model->kept_count, 1);
        if (!all) return status_no_memory();
        model->kept = all;
        all[model->kept_count++] = 0;
    }
    if (!model->kept[name])
        model->kept[name] =
            (uint8_t)(JUDGED | (regex_takes(model->filter.kernels, text) ? KEPT_KERNEL : 0) |
                      (regex_takes(model->filter.calls, text) ? KEPT_CALL : 0));
    *kept = model->kept[name];
    return NULL;
}

static keel_status_t event_judge(model_t *model, const event_t *event, bool *kept)
{
    *kept = true;
    bool is_call = event->kind == EVENT_CALL;
    bool is_op = event->kind == EVENT_OP || event->kind == EVENT_LAUNCHES;
    if (!(is_op && model->filter.kernels) && !(is_call && model->filter.calls)) return NULL;
    if (!event->name) { // several kinds of operations have none
        *kept = regex_takes(is_call ? model->filter.calls : model->filter.kernels,
                            model_name(model, event));
        return NULL;
    }
    uint8_t bits = 0;
    KEEL_TRY(name_judge(model, event->name, model_name(model, event), &bits));
    *kept = bits & (is_call ? KEPT_CALL : KEPT_KERNEL);
    return NULL;
}

keel_status_t model_event(model_t *model, event_t event, uint32_t *index)
{
    bool kept;
    *index = UINT32_MAX;
    KEEL_TRY(event_judge(model, &event, &kept));
    if (!kept) return NULL;
    RESERVE(model, events, event);
    *index = model->event_count++;
    model->events[*index] = event;
    event_move(&model->events[*index], 0);
    return NULL;
}

void event_move(event_t *event, uint64_t by_ns)
{
    event->start_ns += by_ns;
    event->end_ns += by_ns;
    if (event->end_ns < event->start_ns) event->end_ns = event->start_ns;
}

static uint64_t shape_key(const trace_shape_t *shape)
{
    uint64_t words[sizeof *shape / sizeof(uint64_t)], key = 0;
    memcpy(words, shape, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        key = ((key ^ words[i]) * 0x9e3779b97f4a7c15u) ^ key >> 29;
    return key ? key : 1;
}

keel_status_t model_shape(model_t *model, trace_shape_t shape, uint64_t *number)
{
    static const trace_shape_t none;
    uint64_t key = shape_key(&shape);
    uint32_t known;
    *number = 0;
    if (memcmp(&shape, &none, sizeof none) == 0) return NULL;
    if (map_get(&model->shape_places, key, &known) &&
        memcmp(&model->shapes[known], &shape, sizeof shape) == 0) {
        *number = known;
        return NULL;
    }
    if (!model->shape_count) {
        RESERVE(model, shapes, shape);
        model->shapes[model->shape_count++] = none;
    }
    RESERVE(model, shapes, shape);
    *number = model->shape_count++;
    model->shapes[*number] = shape;
    return map_put(&model->shape_places, key, (uint32_t)*number);
}

static const char *copy_name(uint8_t copy)
{
    static const char *const names[TRACE_COPIES] = {
        "Copy",           "CopyHostToDevice", "CopyDeviceToHost", "CopyDeviceToDevice",
        "CopyPeerToPeer", "CopyHostToHost",   "FillBuffer",
    };
    return names[copy < TRACE_COPIES ? copy : 0];
}

const char *model_name(const model_t *model, const event_t *event)
{
    if (event->name) return model_string(model, event->name);
    if (event->kind != EVENT_OP) return "";
    return event->op == TRACE_OP_COPY ? copy_name(event->copy) : "operation";
}

range_t model_range(const model_t *model)
{
    range_t range = {UINT64_MAX, 0};
    if (!model->event_count) return (range_t){0};
    for (uint32_t i = 0; i < model->event_count; i++) {
        const event_t *event = &model->events[i];
        if (event->start_ns < range.first_ns) range.first_ns = event->start_ns;
        if (event->end_ns > range.last_ns) range.last_ns = event->end_ns;
    }
    for (uint32_t i = 0; i < model->work_count; i++)
        if (model->works[i].end_ns > range.last_ns) range.last_ns = model->works[i].end_ns;
    return range;
}

keel_status_t model_leave_out(model_t *model, uint64_t count, const char *why)
{
    if (count && !model->left_out) KEEL_TRY(model_text(model, why, &model->left_why));
    model->left_out += count;
    return NULL;
}

bool model_is_incomplete(const model_t *model)
{
    if (model->left_out) return true;
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = &model->processes[i];
        if (!process->ended || process->lost || process->damaged) return true;
    }
    return false;
}
