// SPDX-License-Identifier: Apache-2.0
// What the threads of a graph do.
#include "graphs/runner.h"
#include "graphs/stage.h"
#include "graphs/verdict.h"

#include <poll.h>
#include <string.h>
#include <time.h>

keel_point_t point_build(const run_t *run, const point_t *point)
{
    keel_point_t built =
        point->own ? run->points[point->id] : keel_point(run->semaphores[point->id], point->value);
    if (point->up_to) built = keel_up_to(built);
    return point->ended ? keel_ended(built) : built;
}

static size_t waits_build(const run_t *run, size_t index, keel_point_t *points)
{
    const action_t *action = &run->graph->actions[index];
    if (run->options->skip && run->options->skip_action == index) return 0;
    for (size_t i = 0; i < action->wait_count; i++) points[i] = point_build(run, &action->waits[i]);
    return action->wait_count;
}

// One-shot recordings are made by the thread that executes them, right before.
static keel_status_t shots_make(run_t *run, size_t index)
{
    const action_t *action = &run->graph->actions[index];
    for (size_t i = 0; i < action->op_count; i++) {
        const op_t *op = &action->ops[i];
        if (op->kind == OP_EXECUTE && run->graph->recordings[op->numbers[0]].one_shot)
            KEEL_TRY(recording_build(run, op->numbers[0], index, &run->recordings[op->numbers[0]]));
    }
    return NULL;
}

static keel_status_t submit(run_t *run, size_t index)
{
    const action_t *action = &run->graph->actions[index];
    keel_point_t waits[MAX_WAITS], signals[MAX_SIGNALS];
    size_t wait_count = waits_build(run, index, waits);
    built_t built;
    KEEL_TRY(shots_make(run, index));
    ops_build(run, index, action->device, action->ops, action->op_count, &built);
    for (size_t i = 0; i < action->signal_count; i++)
        signals[i] = point_build(run, &action->signals[i]);
    return keel_queue_submit(run->queues[action->device][action->queue],
                             keel_points(waits, wait_count), built.ops, action->op_count,
                             keel_points(signals, action->signal_count), &run->points[index]);
}

static keel_status_t wait_by_completion(const keel_point_t *points, size_t count)
{
    keel_completion_t *queue;
    keel_status_t end = NULL;
    void *user;
    KEEL_TRY(keel_completion_create(&queue));
    keel_status_t status = keel_completion_add(queue, keel_points(points, count), KEEL_ALL, NULL);
    struct pollfd poll_fd = {.fd = keel_completion_fd(queue), .events = POLLIN};
    while (!status && poll(&poll_fd, 1, -1) != 1) continue;
    if (!status) status = keel_completion_next(queue, 0, &user, &end);
    keel_completion_release(queue);
    return status ? status : end;
}

static keel_status_t host_wait(run_t *run, size_t index)
{
    const action_t *action = &run->graph->actions[index];
    keel_point_t points[MAX_WAITS];
    size_t count = waits_build(run, index, points);
    keel_wait_mode_t mode = action->kind == ACTION_ANY ? KEEL_ANY : KEEL_ALL;
    keel_wait_options_t options = {.spin_ns = index % 3 * 5000};
    if (action->kind == ACTION_COMPLETION) return wait_by_completion(points, count);
    return keel_wait_with(keel_points(points, count), mode, KEEL_FOREVER, &options);
}

// Reads or writes through any device that has the memory.
static keel_status_t touch(run_t *run, size_t index)
{
    const op_t *op = &run->graph->actions[index].ops[0];
    const span_t *span = &op->spans[0];
    uint8_t where = run->graph->spaces[span->id].device;
    env_device_t *device = &run->env->devices[where];
    keel_buffer_t *buffer = run->buffers[span->id][where];
    uint8_t bytes[SPACE_SIZE];
    if (op->kind == OP_PEEK)
        return stage_read(device, buffer, span->offset, run->outcome->actions[index].bytes,
                          span->length);
    update_data(op, bytes);
    return stage_write(device, buffer, span->offset, bytes, span->length);
}

static keel_status_t semaphore_fail(run_t *run, size_t index)
{
    keel_semaphore_t *semaphore = run->semaphores[run->graph->actions[index].signals[0].id];
    return keel_semaphore_fail(semaphore,
                               KEEL_ERROR(injected_code(run->graph, index),
                                          "failed by the host with %zu", FIRST_NUMBER + index));
}

static keel_status_t act(run_t *run, size_t index)
{
    const point_t *signal = &run->graph->actions[index].signals[0];
    switch (run->graph->actions[index].kind) {
    case ACTION_SUBMIT: return submit(run, index);
    case ACTION_SIGNAL: return keel_semaphore_signal(run->semaphores[signal->id], signal->value);
    case ACTION_FAIL: return semaphore_fail(run, index);
    case ACTION_PEEK:
    case ACTION_POKE: return touch(run, index);
    default: return host_wait(run, index);
    }
}

static void action_run(run_t *run, size_t index)
{
    const action_t *action = &run->graph->actions[index];
    seen_t *seen = &run->outcome->actions[index];
    if (action->delay_us) {
        struct timespec delay = {0, action->delay_us * 1000L};
        nanosleep(&delay, NULL);
    }
    seen->state = SEEN_BEGUN;
    keel_status_t status = act(run, index);
    bool may_fail = action_waits(action) || action->kind == ACTION_SIGNAL;
    if (status && (action->kind == ACTION_SUBMIT || !may_fail)) {
        run_good(run, status, "a call");
    } else if (action->kind != ACTION_SUBMIT) {
        seen->state = status ? SEEN_FAILED : SEEN_REACHED;
        cause_take(status, &seen->cause);
    }
}

static uint64_t action_needs(const action_t *action)
{
    uint64_t needs = action->after;
    for (size_t i = 0; i < action->wait_count; i++)
        if (action->waits[i].own) needs |= action_bit(action->waits[i].id);
    return needs;
}

// The thread's next action after turn `turn`, or -1.
static int action_next(const graph_t *graph, uint8_t thread, int turn)
{
    int next = -1;
    for (int i = 0; i < graph->action_count; i++) {
        const action_t *action = &graph->actions[i];
        if (action->kind == ACTION_NONE || action->thread != thread || action->turn <= turn)
            continue;
        if (next < 0 || action->turn < graph->actions[next].turn) next = i;
    }
    return next;
}

void *thread_run(void *user)
{
    thread_t *thread = user;
    run_t *run = thread->run;
    const graph_t *graph = run->graph;
    uint64_t there = 0;
    for (size_t i = 0; i < graph->action_count; i++)
        if (graph->actions[i].kind != ACTION_NONE) there |= action_bit(i);
    int next = action_next(graph, thread->number, -1);
    while (next >= 0) {
        uint64_t needs = action_needs(&graph->actions[next]) & there;
        pthread_mutex_lock(&run->mutex);
        while (needs & ~run->begun) pthread_cond_wait(&run->changed, &run->mutex);
        pthread_mutex_unlock(&run->mutex);
        action_run(run, (size_t)next);
        pthread_mutex_lock(&run->mutex);
        run->begun |= action_bit((size_t)next);
        pthread_cond_broadcast(&run->changed);
        pthread_mutex_unlock(&run->mutex);
        next = action_next(graph, thread->number, graph->actions[next].turn);
    }
    pthread_mutex_lock(&run->mutex);
    run->threads--;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->mutex);
    return NULL;
}
