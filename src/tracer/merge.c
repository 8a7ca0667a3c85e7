// SPDX-License-Identifier: Apache-2.0
#include "tracer/merge.h"

#include "tracer/load.h"

// By how much the clock of a process is behind that of the first.
static int64_t clock_difference(const model_t *model, uint32_t process)
{
    const process_t *first = &model->processes[0], *other = &model->processes[process];
    if (first->boot == other->boot || !first->real_ns || !other->real_ns) return 0;
    return other->real_ns - first->real_ns;
}

static void time_move(uint64_t *ns, int64_t by_ns)
{
    if (*ns) *ns += (uint64_t)by_ns;
}

keel_status_t merge_add(model_t *model, const char *path, int64_t *moved_ns)
{
    uint32_t process = model->process_count, event = model->event_count, work = model->work_count;
    *moved_ns = 0;
    KEEL_TRY(load_path(model, path));
    if (!process || process == model->process_count) return NULL;
    int64_t by_ns = *moved_ns = clock_difference(model, process);
    for (; event < model->event_count; event++) {
        time_move(&model->events[event].start_ns, by_ns);
        time_move(&model->events[event].end_ns, by_ns);
    }
    for (; work < model->work_count; work++) {
        work_t *moved = &model->works[work];
        time_move(&moved->submit_ns, by_ns);
        time_move(&moved->ready_ns, by_ns);
        time_move(&moved->begin_ns, by_ns);
        time_move(&moved->end_ns, by_ns);
    }
    for (; process < model->process_count; process++) model->processes[process].real_ns -= by_ns;
    return NULL;
}
