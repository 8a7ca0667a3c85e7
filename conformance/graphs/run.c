// SPDX-License-Identifier: Apache-2.0
#include "graphs/objects.h"
#include "graphs/order.h"
#include "graphs/runner.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void run_problem(run_t *run, const char *format, ...)
{
    va_list arguments;
    pthread_mutex_lock(&run->mutex);
    if (!run->outcome->problem[0]) {
        va_start(arguments, format);
        vsnprintf(run->outcome->problem, sizeof run->outcome->problem, format, arguments);
        va_end(arguments);
    }
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->mutex);
}

bool run_good(run_t *run, keel_status_t status, const char *what)
{
    char text[400];
    if (!status) return true;
    keel_status_format(status, text, sizeof text);
    keel_status_release(status);
    run_problem(run, "%s failed: %s", what, text);
    return false;
}

// Looks for the numbers of injected failures in what a status says.
static uint64_t numbers_find(const char *text)
{
    uint64_t numbers = 0;
    for (const char *at = text; (at = strstr(at, "7700")) != NULL; at++) {
        long number = strtol(at, NULL, 10) - FIRST_NUMBER;
        if (number >= 0 && number < MAX_ACTIONS) numbers |= action_bit((size_t)number);
    }
    return numbers;
}

void cause_take(keel_status_t status, cause_t *cause)
{
    char text[2000];
    if (!status) return;
    keel_status_format(status, text, sizeof text);
    cause->code = keel_status_code(status);
    cause->numbers = numbers_find(text);
    memcpy(cause->text, text, sizeof cause->text - 1);
    cause->text[sizeof cause->text - 1] = 0;
    for (char *c = cause->text; *c; c++)
        if (*c == '\n') *c = ' ';
    keel_status_release(status);
}

static uint64_t time_left(const run_t *run)
{
    uint64_t now = keel_now_ns();
    return now < run->deadline_ns ? run->deadline_ns - now : 0;
}

// Waits until all threads have ended; false if that takes too long or one met a problem.
static bool threads_await(run_t *run)
{
    bool good = true;
    pthread_mutex_lock(&run->mutex);
    while (good && run->threads && !run->outcome->problem[0]) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&run->changed, &run->mutex, &until);
        good = time_left(run) > 0;
    }
    good = good && !run->outcome->problem[0];
    pthread_mutex_unlock(&run->mutex);
    return good;
}

static bool points_observe(run_t *run)
{
    bool ended = true;
    for (size_t i = 0; i < run->graph->action_count; i++) {
        seen_t *seen = &run->outcome->actions[i];
        if (run->graph->actions[i].kind != ACTION_SUBMIT || seen->state != SEEN_BEGUN) continue;
        if (!run->points[i].semaphore) continue;
        keel_status_t status = keel_wait(KEEL_POINTS(run->points[i]), KEEL_ALL, time_left(run));
        if (keel_status_code(status) == KEEL_DEADLINE_EXCEEDED) {
            keel_status_release(status);
            ended = false;
            continue;
        }
        seen->state = status ? SEEN_FAILED : SEEN_REACHED;
        cause_take(status, &seen->cause);
    }
    return ended;
}

// Waits for the last value that any action signals.
static bool semaphore_observe(run_t *run, size_t index)
{
    order_t order;
    order_events(run->graph, &order);
    size_t count = order.event_counts[index];
    uint32_t last =
        count ? order.events[index][count - 1].value : run->graph->semaphores[index].initial;
    keel_point_t point = keel_point(run->semaphores[index], last);
    keel_status_t status = keel_wait(KEEL_POINTS(point), KEEL_ALL, time_left(run));
    bool ended = keel_status_code(status) != KEEL_DEADLINE_EXCEEDED;
    keel_status_release(status);
    status = keel_semaphore_value(run->semaphores[index], &run->outcome->semaphores[index].value);
    run->outcome->semaphores[index].failed = status != NULL;
    cause_take(status, &run->outcome->semaphores[index].cause);
    return ended;
}

static const char *seen_word(const run_t *run, size_t index)
{
    static const char *const words[] = {"not begun", "pending", "reached", "failed"};
    uint8_t state = run->outcome->actions[index].state;
    if (state == SEEN_BEGUN && run->graph->actions[index].kind != ACTION_SUBMIT) return "blocked";
    return words[state];
}

static void hang_report(run_t *run)
{
    char text[900];
    size_t length = 0;
    for (size_t i = 0; i < run->graph->action_count; i++) {
        uint8_t state = run->outcome->actions[i].state;
        if (run->graph->actions[i].kind == ACTION_NONE || state >= SEEN_REACHED) continue;
        if (length < sizeof text)
            length += (size_t)snprintf(text + length, sizeof text - length, " %zu %s,", i,
                                       seen_word(run, i));
    }
    for (size_t i = 0; i < run->graph->semaphore_count && length < sizeof text; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, " s%zu at %" PRIu64, i,
                                   run->outcome->semaphores[i].value);
    run_problem(run, "hangs:%s", length ? text : " after all actions");
}

// All that can be seen from outside once the threads are through.
static bool graph_observe(run_t *run)
{
    bool ended = points_observe(run);
    for (size_t i = 0; i < run->graph->semaphore_count; i++) ended &= semaphore_observe(run, i);
    for (size_t i = 0; ended && i < run->env->count; i++) {
        keel_status_t status = keel_device_wait_idle(run->env->devices[i].device, time_left(run));
        if (keel_status_code(status) == KEEL_DEADLINE_EXCEEDED) ended = false;
        keel_status_release(status);
    }
    if (!ended) hang_report(run);
    return ended;
}

static bool threads_start(run_t *run, thread_t *threads, pthread_t *handles)
{
    uint32_t used = 0;
    for (size_t i = 0; i < run->graph->action_count; i++)
        if (run->graph->actions[i].kind != ACTION_NONE) used |= 1u << run->graph->actions[i].thread;
    for (uint8_t i = 0; i < MAX_THREADS; i++) run->threads += used >> i & 1;
    for (uint8_t i = 0; i < MAX_THREADS; i++) {
        threads[i].run = run;
        threads[i].number = i;
        if (used >> i & 1 && pthread_create(&handles[i], NULL, thread_run, &threads[i])) abort();
    }
    return pthread_create(&handles[MAX_THREADS], NULL, calls_end, run) == 0;
}

static bool graph_play(run_t *run)
{
    thread_t threads[MAX_THREADS];
    pthread_t handles[MAX_THREADS + 1];
    memset(handles, 0, sizeof handles);
    if (!threads_start(run, threads, handles)) abort();
    bool ended = threads_await(run);
    bool seen = (ended || !run->outcome->problem[0]) && graph_observe(run);
    if (!ended && seen) run_problem(run, "a thread was blocked for too long");
    if (!ended || !seen) return false;
    pthread_mutex_lock(&run->mutex);
    run->closing = true;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->mutex);
    for (size_t i = 0; i <= MAX_THREADS; i++)
        if (handles[i]) pthread_join(handles[i], NULL);
    return true;
}

bool run_graph(env_t *env, const graph_t *graph, const run_options_t *options, outcome_t *outcome)
{
    run_t *run = calloc(1, sizeof *run);
    if (!run) abort();
    memset(outcome, 0, sizeof *outcome);
    run->env = env;
    run->graph = graph;
    run->options = options;
    run->outcome = outcome;
    run->deadline_ns = keel_now_ns() + (uint64_t)(options->limit_s * 1e9);
    keel_live_objects(&run->live);
    pthread_mutex_init(&run->mutex, NULL);
    pthread_cond_init(&run->changed, NULL);
    // Threads that hang hold on to everything, so nothing is cleaned up after them.
    if (!objects_make(run)) return false;
    if (!graph_play(run)) return false;
    objects_read(run);
    objects_release(run);
    live_check(run);
    pthread_cond_destroy(&run->changed);
    pthread_mutex_destroy(&run->mutex);
    free(run);
    return true;
}
