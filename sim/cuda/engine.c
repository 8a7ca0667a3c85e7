// SPDX-License-Identifier: Apache-2.0
// A stream is a list of commands of which only the first is ever begun. Marks are reached, and
// waits passed, as soon as they stand first; work is handed to a worker, which pops the command
// when it is done. So no thread waits for another: a wait that cannot pass leaves the stream as a
// waiter at the mark.
#include "cuda/engine.h"

#include "cuda/arena.h"
#include "cuda/call.h"
#include "cuda/graph.h"
#include "cuda/pool.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static CUstream pump_first, pump_last;
static bool pumping;

mark_t *mark_create(void)
{
    mark_t *mark = calloc(1, sizeof *mark);
    if (!mark) abort();
    mark->references = 1;
    return mark;
}

mark_t *mark_retain(mark_t *mark)
{
    mark->references++;
    return mark;
}

void mark_release(mark_t *mark)
{
    if (!mark || --mark->references) return;
    free(mark->seen);
    free(mark);
}

void mark_reach(mark_t *mark)
{
    if (mark->done) return;
    mark->done = true;
    mark->time_ns = clock_ns();
    waiter_t *waiters = mark->waiters;
    mark->waiters = NULL;
    for (waiter_t *waiter = waiters, *next; waiter; waiter = next) {
        next = waiter->next;
        waiter->wake(waiter);
    }
    state_notify();
}

bool mark_watch(mark_t *mark, waiter_t *waiter)
{
    if (mark->done) return false;
    waiter->next = mark->waiters;
    mark->waiters = waiter;
    return true;
}

void mark_forget(mark_t *mark, waiter_t *waiter)
{
    for (waiter_t **link = &mark->waiters; *link; link = &(*link)->next) {
        if (*link != waiter) continue;
        *link = waiter->next;
        return;
    }
}

// The next task: of those most urgent the oldest, or with a seed any.
static task_t *task_take(CUcontext context)
{
    uint64_t skip = random_below(context->ready_count);
    task_list_t *list = context->ready;
    for (; skip >= list->count; list++) skip -= list->count;
    task_t **link = &list->first;
    for (; skip > 0; skip--) link = &(*link)->next;
    task_t *task = *link;
    *link = task->next;
    if (!task->next) list->last = link;
    list->count--;
    context->ready_count--;
    return task;
}

static void worker_start(CUcontext context);

static void *worker_main(void *user)
{
    CUcontext context = user;
    prctl(PR_SET_NAME, "sim-cuda"); // else it has the name of the thread that happened to need it
    pthread_mutex_lock(&state.lock);
    context->starting = false;
    for (;;) {
        while (!context->ready_count && !context->stopping) {
            context->idle++;
            pthread_cond_wait(&context->work, &state.lock);
            context->idle--;
        }
        if (!context->ready_count) break;
        task_t *task = task_take(context);
        worker_start(context);
        pthread_mutex_unlock(&state.lock);
        hold_back();
        task->run(task);
        pthread_mutex_lock(&state.lock);
        task->done(task);
    }
    pthread_mutex_unlock(&state.lock);
    return NULL;
}

static bool all_work(const struct CUctx_st *context)
{
    return context->worker_count == sizeof context->workers / sizeof *context->workers;
}

// Signals meant for the program are not for workers.
static void worker_create(CUcontext context)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGABRT);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t *thread = &context->workers[context->worker_count];
    if (pthread_create(thread, NULL, worker_main, context) == 0) {
        context->worker_count++;
        context->starting = true;
    } else if (context->worker_count == 0) {
        complain("the system gives no thread");
        abort();
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

// One more worker if there is more to do than others can take, but one at a time: for much that is
// short a few are enough.
static void worker_start(CUcontext context)
{
    if (context->ready_count <= context->idle || context->starting || all_work(context)) return;
    worker_create(context);
}

void engine_start(CUcontext context)
{
    for (unsigned count = 0; !all_work(context) && context->worker_count == count; count++)
        worker_create(context);
}

void engine_push(CUcontext context, task_t *task)
{
    task_list_t *list = &context->ready[task->priority - PRIORITY_GREATEST];
    if (!list->count) list->last = &list->first;
    task->next = NULL;
    *list->last = task;
    list->last = &task->next;
    list->count++;
    context->ready_count++;
    worker_start(context);
    pthread_cond_signal(&context->work);
}

void engine_stop(CUcontext context)
{
    context->stopping = true;
    pthread_cond_broadcast(&context->work);
    unsigned count = context->worker_count;
    pthread_mutex_unlock(&state.lock);
    for (unsigned i = 0; i < count; i++) pthread_join(context->workers[i], NULL);
    pthread_mutex_lock(&state.lock);
    context->worker_count = 0;
    context->stopping = false;
}

command_t *command_create(command_kind_t kind)
{
    command_t *command = calloc(1, sizeof *command);
    if (!command) abort();
    command->kind = kind;
    command->correlation = call_correlation();
    return command;
}

void command_destroy(command_t *command)
{
    work_finish(&command->work);
    mark_release(command->mark);
    launch_destroy(command->launch);
    free(command);
}

static bool is_work(const command_t *command)
{
    return command->kind == COMMAND_WORK || command->kind == COMMAND_GRAPH;
}

static bool has_kernels(const command_t *command)
{
    return command->kind == COMMAND_GRAPH ||
           (command->kind == COMMAND_WORK && command->work.kind == WORK_KERNEL);
}

bool stream_idle(CUstream stream)
{
    return stream->completed == stream->enqueued;
}

void stream_pop(CUstream stream)
{
    command_t *command = stream->head;
    stream->head = command->next;
    if (!stream->head) stream->tail = NULL;
    stream->completed++;
    stream->pending -= is_work(command);
    state.kernels -= has_kernels(command);
    stream->running = false;
    command_destroy(command);
    state_notify();
}

static void task_run(task_t *task)
{
    CUstream stream = (CUstream)((char *)task - offsetof(struct CUstream_st, task));
    work_run(&stream->head->work,
             (origin_t){.stream = stream, .correlation = stream->head->correlation});
}

static void task_done(task_t *task)
{
    CUstream stream = (CUstream)((char *)task - offsetof(struct CUstream_st, task));
    stream_pop(stream);
    stream_pump(stream);
}

static void stream_wake(waiter_t *waiter)
{
    CUstream stream = (CUstream)((char *)waiter - offsetof(struct CUstream_st, waiter));
    stream->running = false;
    stream_pump(stream);
}

// Begins the command at the head; what is left of a failed context is passed over.
static void command_begin(CUstream stream, command_t *command)
{
    bool failed = stream->context->error != CUDA_SUCCESS;
    stream->running = true;
    switch (command->kind) {
    case COMMAND_WAIT:
        stream->waiter.wake = stream_wake;
        if (!failed && mark_watch(command->mark, &stream->waiter)) return;
        break;
    case COMMAND_RECORD: mark_reach(command->mark); break;
    case COMMAND_ALLOC: pool_begin(command->address); break;
    case COMMAND_FREE: pool_end(command->address, stream, stream->completed + 1); break;
    case COMMAND_WORK:
        if (failed) break;
        stream->task = (task_t){NULL, stream->priority, task_run, task_done};
        engine_push(stream->context, &stream->task);
        return;
    case COMMAND_GRAPH:
        if (failed) break;
        launch_start(command->launch, stream);
        return;
    }
    stream_pop(stream);
}

static void stream_free(CUstream stream)
{
    CUstream *link = &stream->context->streams;
    while (*link != stream) link = &(*link)->next;
    *link = stream->next;
    object_bury(stream);
}

void stream_pump(CUstream stream)
{
    if (!stream->in_pump) {
        stream->in_pump = true;
        stream->pump_next = NULL;
        if (pump_first)
            pump_last->pump_next = stream;
        else
            pump_first = stream;
        pump_last = stream;
    }
    if (pumping) return;
    pumping = true;
    while (pump_first) {
        CUstream now = pump_first;
        pump_first = now->pump_next;
        now->in_pump = false;
        while (now->head && !now->running) command_begin(now, now->head);
        if (!now->head && now->dead) stream_free(now);
    }
    pumping = false;
}

static void stream_append(CUstream stream, command_t *command)
{
    command->next = NULL;
    if (stream->tail)
        stream->tail->next = command;
    else
        stream->head = command;
    stream->tail = command;
    stream->enqueued++;
    stream->pending += is_work(command);
    state.kernels += has_kernels(command);
}

// The mark stands where the stream ends now.
static void mark_place(mark_t *mark, CUstream stream)
{
    mark->stream = stream->id;
    mark->number = stream->enqueued;
    if (!stream->seen_count) return;
    mark->seen_count = stream->seen_count;
    size_t size = stream->seen_count * sizeof *stream->seen;
    mark->seen = malloc(size);
    if (!mark->seen) abort();
    memcpy(mark->seen, stream->seen, size);
}

bool mark_covers(const mark_t *mark, uint64_t stream, uint64_t number)
{
    if (mark->stream == stream) return mark->number >= number;
    for (unsigned i = 0; i < mark->seen_count; i++) {
        if (mark->seen[i].stream == stream) return mark->seen[i].number >= number;
    }
    return false;
}

mark_t *stream_mark(CUstream stream)
{
    command_t *record = command_create(COMMAND_RECORD);
    mark_t *mark = record->mark = mark_create();
    stream_append(stream, record);
    mark_place(mark, stream);
    mark_retain(mark);
    stream_pump(stream);
    return mark;
}

static void seen_note(CUstream stream, const mark_t *mark)
{
    for (unsigned i = 0; i < stream->seen_count; i++) {
        seen_t *seen = &stream->seen[i];
        if (seen->stream != mark->stream) continue;
        if (seen->number < mark->number) seen->number = mark->number;
        return;
    }
    unsigned most = sizeof stream->seen / sizeof *stream->seen;
    unsigned index =
        stream->seen_count < most ? stream->seen_count++ : (unsigned)mark->number % most;
    stream->seen[index] = (seen_t){mark->stream, mark->number};
}

bool stream_has_seen(CUstream stream, uint64_t other, uint64_t number)
{
    if (other == stream->id) return true;
    for (unsigned i = 0; i < stream->seen_count; i++) {
        if (stream->seen[i].stream == other) return stream->seen[i].number >= number;
    }
    return false;
}

void stream_wait(CUstream stream, mark_t *mark)
{
    seen_note(stream, mark);
    if (mark->done && stream_idle(stream)) return;
    command_t *command = command_create(COMMAND_WAIT);
    command->mark = mark_retain(mark);
    stream_append(stream, command);
    stream_pump(stream);
}

static bool is_blocking(CUstream stream)
{
    return stream->per_thread || !(stream->flags & CU_STREAM_NON_BLOCKING);
}

static void wait_for_end_of(CUstream stream, CUstream other)
{
    if (stream_idle(other)) return;
    mark_t *mark = stream_mark(other);
    stream_wait(stream, mark);
    mark_release(mark);
}

// What is enqueued in the legacy default stream comes after all that is in blocking streams, and
// before all that comes to them.
static void default_stream_rule(CUstream stream)
{
    CUcontext context = stream->context;
    if (stream != context->legacy) {
        if (is_blocking(stream)) wait_for_end_of(stream, context->legacy);
        return;
    }
    for (CUstream other = context->streams; other; other = other->next) {
        if (other != stream && is_blocking(other)) wait_for_end_of(stream, other);
    }
}

void stream_push(CUstream stream, command_t *command)
{
    while (is_work(command) && !stream->context->error &&
           (stream->pending >= settings()->depth || stream->context->settling)) {
        state_wait();
    }
    default_stream_rule(stream);
    stream_append(stream, command);
    if (command->kind == COMMAND_RECORD) mark_place(command->mark, stream);
    stream_pump(stream);
}

CUresult stream_work(CUstream stream, work_t *work)
{
    command_t *command = command_create(COMMAND_WORK);
    command->work = *work;
    stream_push(stream, command);
    return CUDA_SUCCESS;
}

CUresult stream_drain(CUstream stream)
{
    CUcontext context = stream->context;
    mark_t *end = stream_mark(stream);
    while (!end->done && !context->error) state_wait();
    pools_settle(context, end);
    mark_release(end);
    arena_close();
    return context_report(context);
}

void context_wait(CUcontext context)
{
    size_t count = 0;
    for (CUstream stream = context->streams; stream; stream = stream->next) count++;
    mark_t **ends = calloc(count + 1, sizeof *ends);
    if (!ends) abort();
    count = 0;
    for (CUstream stream = context->streams; stream; stream = stream->next) {
        if (!stream_idle(stream) && !context->error) ends[count++] = stream_mark(stream);
    }
    while (count) {
        mark_t *end = ends[--count];
        while (!end->done && !context->error) state_wait();
        mark_release(end);
    }
    free(ends);
}

void context_settle(CUcontext context)
{
    context->settling++;
    context_wait(context);
    context->settling--;
    state_notify();
}

void context_await_settled(CUcontext context)
{
    while (context->settling && !context->error) state_wait();
}

static bool command_fits(const command_t *command, work_fits_fn fits, const void *what)
{
    if (command->kind == COMMAND_WORK) return fits(&command->work, what);
    return command->kind == COMMAND_GRAPH && plan_fits(launch_plan(command->launch), fits, what);
}

const char *work_find(work_fits_fn fits, const void *what)
{
    for (CUcontext context = state.contexts; context; context = context->next) {
        if (!context->alive || context->error) continue;
        for (CUstream stream = context->streams; stream; stream = stream->next) {
            for (const command_t *c = stream->head; c; c = c->next) {
                if (!command_fits(c, fits, what)) continue;
                return c->kind == COMMAND_GRAPH ? "cuGraphLaunch" : c->work.maker;
            }
        }
    }
    return NULL;
}

CUresult context_drain(CUcontext context)
{
    context_wait(context);
    pools_settle(context, NULL);
    arena_close();
    return context_report(context);
}

void context_fail(CUcontext context, CUresult error)
{
    if (context->error) return;
    __atomic_store_n(&context->error, error, __ATOMIC_RELEASE);
    for (CUstream stream = context->streams, next; stream; stream = next) {
        next = stream->next;
        if (!stream->head || stream->head->kind != COMMAND_WAIT || !stream->running) continue;
        mark_forget(stream->head->mark, &stream->waiter);
        stream->running = false;
        stream_pump(stream);
    }
    state_notify();
}
