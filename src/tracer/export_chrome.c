// SPDX-License-Identifier: Apache-2.0
// Processes of the format are processes and devices; threads are threads and lanes of queues. Times
// are us from the first event, with three digits, since a double cannot hold a clock's ns.
#include <math.h>
#include <string.h>

#include "tracer/depth.h"
#include "tracer/export.h"
#include "tracer/lanes.h"

enum { LANES = 1000 }; // of a queue, at most

typedef struct chrome_t {
    const model_t *model;
    FILE *out;
    lanes_t lanes;
    uint64_t first_ns;
    uint32_t device; // whose depth is printed
} chrome_t;

static void time_print(const chrome_t *chrome, const char *name, uint64_t ns)
{
    fprintf(chrome->out, ",\"%s\":%llu.%03llu", name, (unsigned long long)(ns / 1000),
            (unsigned long long)(ns % 1000));
}

static uint32_t pid_of(const chrome_t *chrome, const track_t *track)
{
    return track->is_queue ? EXPORT_PIDS + track->device
                           : export_pid(&chrome->model->processes[track->process]);
}

static uint64_t tid_of(const chrome_t *chrome, uint32_t event, uint32_t track)
{
    const track_t *of = &chrome->model->tracks[track];
    if (of->is_queue) return (uint64_t)track * LANES + chrome->lanes.lane[event] % LANES;
    return of->number + ((uint64_t)chrome->lanes.lane[event] << 32);
}

static void name_print(const chrome_t *chrome, const char *what, uint32_t pid, const char *text)
{
    fprintf(chrome->out, ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"args\":{\"name\":", what,
            pid);
    json_text(text, chrome->out);
    fputs("}}", chrome->out);
}

static void names_print(const chrome_t *chrome)
{
    const model_t *model = chrome->model;
    for (uint32_t i = 0; i < model->process_count; i++)
        name_print(chrome, "process_name", export_pid(&model->processes[i]),
                   model_string(model, model->processes[i].command));
    for (uint32_t i = 0; i < model->device_count; i++) {
        char name[512];
        snprintf(name, sizeof name, "%s of process %u", model_string(model, model->devices[i].name),
                 model->processes[model->devices[i].process].pid);
        name_print(chrome, "process_name", EXPORT_PIDS + i, name);
    }
    for (uint32_t i = 0; i < model->track_count; i++) {
        const track_t *track = &model->tracks[i];
        for (uint32_t lane = 0; lane < chrome->lanes.count[i]; lane++) {
            uint64_t tid = track->is_queue ? (uint64_t)i * LANES + lane % LANES
                                           : track->number + ((uint64_t)lane << 32);
            fprintf(chrome->out,
                    ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%llu,"
                    "\"args\":{\"name\":",
                    pid_of(chrome, track), (unsigned long long)tid);
            json_text(model_string(model, track->name), chrome->out);
            fputs("}}", chrome->out);
        }
    }
}

static void shape_print(const chrome_t *chrome, const event_t *event)
{
    const trace_shape_t *shape = &chrome->model->shapes[event->value];
    fprintf(chrome->out, "\"grid\":[%u,%u,%u],\"workgroup\":[%u,%u,%u]", shape->grid[0],
            shape->grid[1], shape->grid[2], shape->group_x, shape->group_y, shape->group_z);
}

static void args_print(const chrome_t *chrome, const event_t *event)
{
    FILE *out = chrome->out;
    bool has_shape = event->kind == EVENT_OP && event->op == TRACE_OP_DISPATCH && event->value;
    bool has_bytes = event->kind == EVENT_OP && event->op == TRACE_OP_COPY && event->value;
    fputs(",\"args\":{", out);
    if (has_shape) shape_print(chrome, event);
    if (has_bytes) fprintf(out, "\"bytes\":%llu", (unsigned long long)event->value);
    if (event->kind == EVENT_LAUNCHES)
        fprintf(out, "\"launches\":%llu", (unsigned long long)event->value);
    if (event->args) {
        fputs(has_shape || has_bytes ? ",\"arguments\":" : "\"arguments\":", out);
        json_text(model_string(chrome->model, event->args), out);
    }
    fputc('}', out);
}

// An arrow from a call to its operation.
static void flow_print(const chrome_t *chrome, const event_t *event, uint32_t index)
{
    uint32_t call = event->link - 1;
    const event_t *from = &chrome->model->events[call];
    const track_t *tracks = chrome->model->tracks;
    fprintf(chrome->out,
            ",\n{\"ph\":\"s\",\"cat\":\"launch\",\"name\":\"launch\",\"id\":%u,\"pid\":%u,"
            "\"tid\":%llu",
            index, pid_of(chrome, &tracks[from->track]),
            (unsigned long long)tid_of(chrome, call, from->track));
    time_print(chrome, "ts", from->start_ns - chrome->first_ns);
    fprintf(chrome->out,
            "},\n{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"launch\",\"name\":\"launch\",\"id\":%u,"
            "\"pid\":%u,\"tid\":%llu",
            index, pid_of(chrome, &tracks[event->track]),
            (unsigned long long)tid_of(chrome, index, event->track));
    time_print(chrome, "ts", event->start_ns - chrome->first_ns);
    fputc('}', chrome->out);
}

static double counter_value(const event_t *event)
{
    double value;
    memcpy(&value, &event->value, sizeof value);
    return value;
}

static void event_print(const chrome_t *chrome, uint32_t index)
{
    static const char *const kinds[EVENT_KINDS] = {"call", "operation", "span",
                                                   "mark", "counter",   "launches"};
    const event_t *event = &chrome->model->events[index];
    FILE *out = chrome->out;
    // JSON has no number for it, and the format no other way to say it.
    if (event->kind == EVENT_COUNT && !isfinite(counter_value(event))) return;
    // Launches that were counted are a mark, where the first one was.
    const char *phase = event->kind == EVENT_COUNT ? "C" : event->kind > EVENT_SPAN ? "i" : "X";
    fprintf(out, ",\n{\"ph\":\"%s\",\"cat\":\"%s\",\"name\":", phase, kinds[event->kind]);
    json_text(model_name(chrome->model, event), out);
    fprintf(out, ",\"pid\":%u,\"tid\":%llu", pid_of(chrome, &chrome->model->tracks[event->track]),
            (unsigned long long)tid_of(chrome, index, event->track));
    time_print(chrome, "ts", event->start_ns - chrome->first_ns);
    if (*phase == 'X') time_print(chrome, "dur", event->end_ns - event->start_ns);
    if (*phase == 'i') fputs(",\"s\":\"t\"", out);
    if (*phase == 'C') {
        fprintf(out, ",\"args\":{\"value\":%.17g}", counter_value(event));
    } else {
        args_print(chrome, event);
    }
    fputc('}', out);
    if (event->link) flow_print(chrome, event, index);
}

static keel_status_t depth_print(void *user, uint64_t ns, int64_t depth)
{
    const chrome_t *chrome = user;
    fprintf(chrome->out, ",\n{\"ph\":\"C\",\"name\":\"queue depth\",\"pid\":%u",
            EXPORT_PIDS + chrome->device);
    time_print(chrome, "ts", ns - chrome->first_ns);
    fprintf(chrome->out, ",\"args\":{\"operations\":%lld}}", (long long)depth);
    return NULL;
}

keel_status_t export_chrome(const model_t *model, FILE *out)
{
    chrome_t chrome = {.model = model, .out = out, .first_ns = model_range(model).first_ns};
    keel_status_t status = lanes_find(&chrome.lanes, model, true);
    if (!status) {
        fprintf(out,
                "{\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":%llu,\"traceEvents\":[\n"
                "{\"ph\":\"M\",\"name\":\"writer\",\"pid\":0,\"args\":{\"name\":\"keel trace\"}}",
                (unsigned long long)chrome.first_ns);
        names_print(&chrome);
        for (uint32_t i = 0; i < model->event_count; i++) event_print(&chrome, i);
        for (; !status && chrome.device < model->device_count; chrome.device++)
            status = depth_each(model, chrome.device, depth_print, &chrome);
        fputs("\n]}\n", out);
    }
    lanes_finish(&chrome.lanes);
    return status;
}
