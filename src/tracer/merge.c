// SPDX-License-Identifier: Apache-2.0
#include "tracer/merge.h"

#include "tracer/load.h"

// By how much the clock of a process is behind that of the first: a negative number as its two's
// complement, so that damaged clocks wrap.
static uint64_t clock_difference(const model_t *model, uint32_t process)
{
    const process_t *first = &model->processes[0], *other = &model->processes[process];
    if (first->boot == other->boot || !first->real_ns || !other->real_ns) return 0;
    return (uint64_t)other->real_ns - (uint64_t)first->real_ns;
}

static void time_move(uint64_t *ns, uint64_t by_ns)
{
    if (*ns) *ns += by_ns;
}

// What a model has before something is added.
typedef struct place_t {
    uint32_t process, event, work;
} place_t;

static place_t place_of(const model_t *model)
{
    return (place_t){model->process_count, model->event_count, model->work_count};
}

// Moves the times of what was added.
static int64_t added_move(model_t *model, place_t from)
{
    if (!from.process || from.process == model->process_count) return 0;
    uint64_t by_ns = clock_difference(model, from.process);
    for (; from.event < model->event_count; from.event++)
        event_move(&model->events[from.event], by_ns);
    for (; from.work < model->work_count; from.work++) {
        work_t *moved = &model->works[from.work];
        time_move(&moved->submit_ns, by_ns);
        time_move(&moved->ready_ns, by_ns);
        time_move(&moved->begin_ns, by_ns);
        time_move(&moved->end_ns, by_ns);
    }
    for (; from.process < model->process_count; from.process++)
        model->processes[from.process].real_ns =
            (int64_t)((uint64_t)model->processes[from.process].real_ns - by_ns);
    return (int64_t)by_ns;
}

keel_status_t merge_add(model_t *model, const char *path, int64_t *moved_ns)
{
    place_t from = place_of(model);
    *moved_ns = 0;
    KEEL_TRY(load_path(model, path));
    *moved_ns = added_move(model, from);
    return NULL;
}

keel_status_t merge_add_set(model_t *model, const set_t *set)
{
    place_t from = place_of(model);
    KEEL_TRY(load_set(model, set));
    added_move(model, from);
    return NULL;
}
