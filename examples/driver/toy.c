// SPDX-License-Identifier: Apache-2.0
// A driver that works, outside of the library: <keel/driver/driver.h> is all that it includes of
// Keel. Its device is a thread of its own. Work goes there, waits there for semaphores that the toy
// keeps (semaphore.c), ends there, and goes on with others while it waits for memory: as with a
// device that takes work and interrupts.
//
//     cc -shared -fPIC toy.c executable.c semaphore.c -o libtoy.so
//     keel --driver=./libtoy.so conformance --device=toy://
//
// toy://?lose=N loses the device with the Nth command that works.
#include "toy.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static toy_device_t *device_of(keel_device_t *device)
{
    return (toy_device_t *)(void *)device;
}

static void run_push(toy_run_t *run)
{
    toy_device_t *device = device_of(run->base.queue->device);
    run->base.next = NULL;
    pthread_mutex_lock(&device->lock);
    *device->last = &run->base;
    device->last = &run->base.next;
    pthread_cond_signal(&device->changed);
    pthread_mutex_unlock(&device->lock);
}

// The first one whose waits are over, under the lock; NULL: there is none.
static toy_run_t *run_take(toy_device_t *device)
{
    for (keel_submission_t **link = &device->first, *s; (s = *link); link = &s->next) {
        if (toy_run_waits((toy_run_t *)(void *)s)) continue;
        *link = s->next;
        if (!s->next) device->last = link;
        return (toy_run_t *)(void *)s;
    }
    return NULL;
}

// The next one; NULL: there is none, and if it waited, none will come.
static toy_run_t *run_pop(toy_device_t *device, bool wait)
{
    toy_run_t *run;
    pthread_mutex_lock(&device->lock);
    while (!(run = run_take(device)) && wait && !device->stopping)
        pthread_cond_wait(&device->changed, &device->lock);
    pthread_mutex_unlock(&device->lock);
    return run;
}

static keel_status_t fill_run(const keel_cmd_fill_t *c, const keel_cmd_execute_t *execute)
{
    keel_bound_t target;
    uint32_t pattern;
    KEEL_TRY(keel_bind_fill(c, execute, &target, &pattern));
    for (uint64_t i = 0; i < target.length; i++)
        ((char *)target.data)[i] = ((const char *)&pattern)[i % 4];
    return NULL;
}

static keel_status_t update_run(const keel_cmd_update_t *c, const keel_cmd_execute_t *execute)
{
    keel_bound_t target;
    KEEL_TRY(keel_bind_ref(&c->target, execute, &target));
    memcpy(target.data, keel_update_data(c, execute), target.length);
    return NULL;
}

static keel_status_t copy_run(const keel_cmd_copy_t *c, const keel_cmd_execute_t *execute)
{
    keel_bound_t source, target;
    KEEL_TRY(keel_bind_copy(c, execute, &source, &target));
    memcpy(target.data, source.data, source.length);
    return NULL;
}

static keel_status_t timestamp_run(const keel_cmd_timestamp_t *c, const keel_cmd_execute_t *execute)
{
    keel_bound_t target;
    uint64_t now = keel_now_ns();
    KEEL_TRY(keel_bind_ref(&c->target, execute, &target));
    memcpy(target.data, &now, sizeof now);
    return NULL;
}

static keel_status_t transfer_run(const keel_cmd_transfer_t *c)
{
    keel_bound_t bound;
    KEEL_TRY(keel_bind_ref(&c->ref, NULL, &bound));
    return keel_file_transfer(c, bound.data);
}

// A command that works on memory. One after another, so barriers and events need nothing.
static keel_status_t command_run(toy_device_t *device, const keel_command_t *command,
                                 const keel_cmd_execute_t *execute)
{
    const void *c = command;
    if (device->lose && --device->lose == 0)
        device->lost = KEEL_ERROR(KEEL_DEVICE_LOST, "the toy is lost, as its URI asks for");
    if (device->lost) return keel_status_retain(device->lost);
    switch (command->kind) {
    case KEEL_CMD_FILL: return fill_run(c, execute);
    case KEEL_CMD_UPDATE: return update_run(c, execute);
    case KEEL_CMD_COPY: return copy_run(c, execute);
    case KEEL_CMD_TIMESTAMP: return timestamp_run(c, execute);
    case KEEL_CMD_DISPATCH: return toy_dispatch(device, c, execute);
    case KEEL_CMD_READ:
    case KEEL_CMD_WRITE: return transfer_run(c);
    default: return NULL;
    }
}

static keel_status_t recording_run(toy_run_t *run, const keel_cmd_execute_t *execute)
{
    toy_device_t *device = device_of(run->base.queue->device);
    const keel_commands_t *commands = execute->recording->commands;
    const keel_command_t *at = keel_commands_first(commands), *end = keel_commands_end(commands);
    uint32_t loops[TOY_MAX_DEPTH] = {0};
    while (at != end) {
        const keel_command_t *c = at;
        keel_status_t status = command_run(device, c, execute);
        if (!status) status = keel_command_step(commands, execute, loops, &at);
        if (status) return keel_submission_blame(&run->base, execute, c, status);
    }
    return NULL;
}

// Memory has come, or will not; on any thread.
static void alloca_done(keel_pool_request_t *request, keel_status_t status)
{
    toy_run_t *run = request->context;
    run->failure = status;
    run_push(run);
}

// The application has completed a call that it had deferred; on any thread.
static void call_done(keel_call_state_t *state, keel_status_t status)
{
    toy_run_t *run = state->context;
    run->failure = status;
    run_push(run);
}

// False: the run goes on later, from run->at, and may be gone.
static bool run_step(toy_run_t *run, const keel_command_t *c, keel_status_t *status)
{
    void *command = (void *)(uintptr_t)c; // allocas, deallocas and calls keep state in theirs
    switch (c->kind) {
    case KEEL_CMD_ALLOCA: return keel_slabs_alloca(command, alloca_done, run, status);
    case KEEL_CMD_DEALLOCA: *status = keel_slabs_dealloca(command); return true;
    case KEEL_CMD_HOST_CALL: return keel_call_run(&run->base, command, call_done, run, status);
    case KEEL_CMD_EXECUTE: *status = recording_run(run, command); return true;
    default: *status = command_run(device_of(run->base.queue->device), c, NULL); return true;
    }
}

// Why a run may begin nothing more; NULL: it may.
static keel_status_t run_stopped(const toy_run_t *run)
{
    const toy_device_t *device = device_of(run->base.queue->device);
    if (device->lost) return keel_status_retain(device->lost);
    if (!atomic_load(&run->base.cancelled)) return NULL;
    return KEEL_ERROR(KEEL_CANCELLED, "the submission was cancelled");
}

// A run that was started, or goes on: to its end, or until it has to wait.
static void run_drive(toy_run_t *run)
{
    const keel_command_t *end = keel_commands_end(&run->base.commands);
    while (!run->failure && run->at != end) {
        const keel_command_t *c = run->at;
        keel_status_t status = run_stopped(run);
        run->at = keel_command_next(c); // before it may be gone
        if (!status && !run_step(run, c, &status)) return;
        if (status && c->kind != KEEL_CMD_EXECUTE)
            status = keel_submission_blame(&run->base, NULL, c, status);
        run->failure = status;
    }
    toy_run_signal(run);
    keel_submission_end(&run->base, run->failure);
}

static void run_start(keel_submission_t *submission)
{
    toy_run_t *run = (toy_run_t *)(void *)submission;
    run->at = keel_commands_first(&submission->commands);
    run->failure = NULL;
    run_push(run);
}

static void queue_submit(keel_queue_t *queue, keel_submission_t *submission)
{
    (void)queue;
    keel_submission_wait_remote(submission, run_start);
}

// Ends what was started. Nothing of it runs: this is the device's thread.
static void runs_settle(keel_device_t *device)
{
    for (toy_run_t *run; (run = run_pop(device_of(device), false));) run_drive(run);
}

static void *device_work(void *argument)
{
    toy_device_t *device = argument;
    for (toy_run_t *run; (run = run_pop(device, true));) {
        bool works = !device->lost;
        run_drive(run);
        if (works && device->lost)
            keel_device_lose(&device->base, keel_status_retain(device->lost), runs_settle);
    }
    return NULL;
}

static void device_close(keel_device_t *device)
{
    toy_device_t *d = device_of(device);
    pthread_mutex_lock(&d->lock);
    d->stopping = true;
    pthread_cond_signal(&d->changed);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
}

static void device_destroy(keel_device_t *device)
{
    keel_status_release(device_of(device)->lost);
    keel_mem_free_aligned(device_of(device)->local);
    keel_mem_free(device);
}

static void device_memory(keel_device_t *device, keel_memory_stats_t *stats)
{
    stats->total = stats->budget = device->caps.max_buffer_size;
}

static keel_status_t queue_create(keel_device_t *device, const keel_queue_options_t *options,
                                  keel_queue_t **queue)
{
    (void)device, (void)options;
    *queue = keel_mem_zalloc(sizeof **queue);
    if (!*queue) return keel_status_no_memory();
    (*queue)->submission_size = sizeof(toy_run_t);
    return NULL;
}

static void queue_destroy(keel_queue_t *queue)
{
    keel_mem_free(queue);
}

static keel_status_t buffer_alloc(keel_buffer_t *buffer)
{
    void *data = keel_mem_zalloc_aligned(buffer->size, buffer->alignment);
    if (!data) return keel_status_no_memory();
    buffer->capacity = buffer->size;
    atomic_store(&buffer->data, data);
    atomic_store(&buffer->address, (uint64_t)(uintptr_t)data);
    return NULL;
}

static void buffer_free(keel_buffer_t *buffer)
{
    keel_mem_free_aligned(atomic_load(&buffer->data));
}

// Addresses are the same for the host and for the device.
static keel_status_t buffer_import(keel_buffer_t *buffer)
{
    const keel_external_buffer_t *external = &buffer->external;
    if (external->kind == KEEL_EXTERNAL_FD)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "toy:// imports no file descriptors");
    void *data = external->kind == KEEL_EXTERNAL_HOST ? external->handle.host
                                                      : (void *)(uintptr_t)external->handle.device;
    buffer->memory = buffer->device->caps.memory_types[0];
    atomic_store(&buffer->data, data);
    atomic_store(&buffer->address, (uint64_t)(uintptr_t)data);
    return NULL;
}

static void buffer_forget(keel_buffer_t *buffer)
{
    if (buffer->external.release) buffer->external.release(buffer->external.user);
}

static const keel_device_ops_t toy_ops = {
    .device_close = device_close,
    .device_destroy = device_destroy,
    .device_memory = device_memory,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .queue_submit = queue_submit,
    .queue_cancel = toy_queue_cancel,
    .semaphore_create = toy_semaphore_create,
    .buffer_alloc = buffer_alloc,
    .buffer_free = buffer_free,
    .buffer_import = buffer_import,
    .buffer_forget = buffer_forget,
    .executable_rank = toy_rank,
    .executable_load = toy_load,
    .executable_unload = toy_unload,
    .executable_global = toy_global,
    KEEL_SLABS_OPS,
};

static const keel_caps_t toy_caps = {
    .bits = KEEL_CAP_QUEUE_ALLOCA | KEEL_CAP_DYNAMIC_COUNTS | KEEL_CAP_BRANCHES | KEEL_CAP_EVENTS |
            KEEL_CAP_TIMESTAMPS | KEEL_CAP_RAW_ARGUMENTS | KEEL_CAP_FILES | KEEL_CAP_HOST_CALLS |
            KEEL_CAP_IMPORT_HOST | KEEL_CAP_GROUP_SIZE | KEEL_CAP_EXECUTES,
    .native = KEEL_CAP_DYNAMIC_COUNTS | KEEL_CAP_BRANCHES | KEEL_CAP_EVENTS | KEEL_CAP_TIMESTAMPS |
              KEEL_CAP_RAW_ARGUMENTS | KEEL_CAP_IMPORT_HOST | KEEL_CAP_GROUP_SIZE |
              KEEL_CAP_EXECUTES,
    .queue_families = 1u << KEEL_QUEUE_COMPUTE | 1u << KEEL_QUEUE_TRANSFER,
    .nodes = 1,
    .workers = 1,
    .max_bindings = TOY_MAX_BINDINGS,
    .max_slots = 64,
    .max_constants = TOY_MAX_CONSTANTS,
    .max_arguments = TOY_MAX_CONSTANTS,
    .max_group_size = 1024,
    .max_group_sizes = {1024, 1024, 1024},
    .subgroup_size = 1,
    .max_local_memory = TOY_MAX_LOCAL,
    .max_groups = UINT32_MAX,
    .max_group_counts = {UINT32_MAX, UINT32_MAX, UINT32_MAX},
    .max_buffer_size = UINT64_C(1) << 32,
    .buffer_alignment = 64,
    .max_commands = 1u << 20,
    .max_depth = TOY_MAX_DEPTH,
    .memory_types = {KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_DEVICE_VISIBLE |
                     KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_HOST_COHERENT |
                     KEEL_MEMORY_HOST_CACHED},
};

static keel_status_t list(keel_device_listing_t *devices, size_t capacity, size_t *count)
{
    *count = 1;
    if (capacity) devices[0] = (keel_device_listing_t){.uri = "toy://", .name = "a thread"};
    return NULL;
}

// Signals are for the application's threads.
static keel_status_t thread_start(toy_device_t *device)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&device->thread, NULL, device_work, device);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error) return NULL;
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "there is no thread for the toy: %s",
                      strerror(error));
}

static keel_status_t open_toy(const keel_uri_t *uri, keel_device_t **device)
{
    static const keel_option_t table[] = {
        {"lose", KEEL_OPTION_U64, .least = 1, .most = UINT64_MAX}, // all that there is
    };
    uint64_t lose = 0;
    if (uri->which[0])
        return KEEL_ERROR(KEEL_NOT_FOUND, "there is no toy://%s; there is one toy://", uri->which);
    KEEL_TRY(keel_options_read(uri, table, 1, &lose));
    toy_device_t *d = keel_mem_zalloc(sizeof *d);
    if (!d) return keel_status_no_memory();
    d->base.ops = &toy_ops;
    d->base.caps = toy_caps;
    snprintf(d->base.info.target, sizeof d->base.info.target, "%s", toy_target);
    snprintf(d->base.info.hardware, sizeof d->base.info.hardware, "a thread");
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    d->last = &d->first;
    d->lose = lose;
    d->local = keel_mem_zalloc_aligned(TOY_MAX_LOCAL, 64);
    keel_status_t status = d->local ? thread_start(d) : keel_status_no_memory();
    if (status) {
        device_destroy(&d->base);
        return status;
    }
    keel_log_say(KEEL_LOG_INFO, "toy://: work runs on a thread");
    *device = &d->base;
    return NULL;
}

static const keel_driver_t toy_driver = {KEEL_DRIVER_HEAD, .name = "toy", .list = list,
                                         .open = open_toy};

KEEL_DRIVER_ENTRY(toy_driver)
