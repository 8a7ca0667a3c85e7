// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "tracer/export.h"

// In quotes, which are doubled inside.
static void csv_text(const char *text, FILE *out)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"') fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void shape_print(const model_t *model, const event_t *event, FILE *out)
{
    bool shaped = event->kind == EVENT_OP && event->op == TRACE_OP_DISPATCH && event->value;
    const trace_shape_t *shape = shaped ? &model->shapes[event->value] : NULL;
    if (shape)
        fprintf(out, ",%ux%ux%u,%ux%ux%u", shape->grid[0], shape->grid[1], shape->grid[2],
                shape->group_x, shape->group_y, shape->group_z);
    else
        fputs(",,", out);
}

static void value_print(const event_t *event, FILE *out)
{
    fputc(',', out);
    bool moved = event->kind == EVENT_OP && event->op == TRACE_OP_COPY && event->value;
    if (moved || event->kind == EVENT_LAUNCHES)
        fprintf(out, "%llu", (unsigned long long)event->value);
    if (event->kind != EVENT_COUNT) return;
    double value;
    memcpy(&value, &event->value, sizeof value);
    fprintf(out, "%.17g", value);
}

static void event_print(const model_t *model, uint32_t index, FILE *out)
{
    static const char *const kinds[EVENT_KINDS] = {"call", "operation", "span",
                                                   "mark", "counter",   "launches"};
    const event_t *event = &model->events[index];
    const track_t *track = &model->tracks[event->track];
    fprintf(out, "%u,%s,", index + 1, kinds[event->kind]);
    csv_text(model_name(model, event), out);
    fprintf(out, ",%llu,%llu,%llu,%u,%llu,", (unsigned long long)event->start_ns,
            (unsigned long long)event->end_ns,
            (unsigned long long)(event->end_ns - event->start_ns),
            model->processes[track->process].pid,
            track->is_queue ? 0ull : (unsigned long long)track->number);
    if (track->is_queue) {
        csv_text(model_string(model, model->devices[track->device].name), out);
        fputc(',', out);
        csv_text(model_string(model, track->name), out);
    } else {
        fputc(',', out);
    }
    value_print(event, out);
    shape_print(model, event, out);
    fprintf(out, ",%.0u,", event->link);
    if (event->args) csv_text(model_string(model, event->args), out);
    fputc('\n', out);
}

keel_status_t export_csv(const model_t *model, FILE *out)
{
    fputs("id,kind,name,start_ns,end_ns,duration_ns,pid,tid,device,queue,value,grid,workgroup,"
          "call_id,arguments\n",
          out);
    for (uint32_t i = 0; i < model->event_count; i++) event_print(model, i, out);
    return NULL;
}
