// SPDX-License-Identifier: Apache-2.0
#include "kit/native/native.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"
#include "kit/device.h"
#include "kit/object.h"
#include "kit/poller.h"
#include "kit/submission.h"

enum { POLL_NS = 200000, ROOM = 8 };

// Memory of the device: a semaphore.
typedef struct cell_t {
    _Atomic uint64_t value; // and SEMAPHORE_FAILED
    _Atomic uint64_t cause; // number of a status in the device's table; set before the bit
} cell_t;

typedef struct native_semaphore_t {
    remote_t remote;
    cell_t cell;
} native_semaphore_t;

typedef struct at_t {
    cell_t *cell;
    uint64_t value;
    uint32_t index; // in the list of the submission
} at_t;

// A submission as the device sees it.
typedef struct native_run_t {
    keel_submission_t base;
    struct native_run_t *next;
    struct native_queue_t *queue;
    at_t *waits, *signals; // in `room`, or both in memory of their own
    at_t room[ROOM];
    uint32_t wait_count, signal_count;
    uint64_t cause;      // why it failed
    const at_t *refused; // the first signal that is out of order: from here on none was made
} native_run_t;

typedef struct native_queue_t {
    keel_queue_t base;
    _Atomic uint64_t stopped; // the cause: what waits is to fail
} native_queue_t;

typedef struct native_device_t {
    keel_device_t base;
    bool polled, running;
    // Memory of the device.
    _Atomic uint32_t doorbell;
    _Atomic(native_run_t *) inbox;
    _Atomic bool stop;
    _Atomic uint64_t lost; // the cause
    native_run_t *waiting; // the processor's
    // The host's.
    pthread_t processor;
    helper_t interrupt; // ends what the processor is done with
    _Atomic(native_run_t *) done;
    poller_t poller;
    lock_t lock; // for the causes
    keel_status_t *causes;
    size_t cause_count;
} native_device_t;

static native_device_t *native_of(const keel_device_t *device)
{
    return (native_device_t *)(void *)device;
}

static void push(_Atomic(native_run_t *) *list, native_run_t *run)
{
    run->next = atomic_load(list);
    while (!atomic_compare_exchange_weak(list, &run->next, run)) {
    }
}

// Takes all, the oldest first.
static native_run_t *take(_Atomic(native_run_t *) *list)
{
    native_run_t *run = atomic_exchange(list, NULL), *turned = NULL;
    while (run) {
        native_run_t *next = run->next;
        run->next = turned;
        turned = run;
        run = next;
    }
    return turned;
}

static void ring(native_device_t *native)
{
    atomic_fetch_add(&native->doorbell, 1);
    futex_wake(&native->doorbell, 1);
}

// The table of causes. The device knows them by number.
static uint64_t cause_add(native_device_t *native, keel_status_t cause)
{
    lock_enter(&native->lock);
    keel_status_t *causes = realloc(native->causes, (native->cause_count + 1) * sizeof *causes);
    if (!causes) abort();
    native->causes = causes;
    causes[native->cause_count] = cause;
    uint64_t number = ++native->cause_count;
    lock_leave(&native->lock);
    return number;
}

static keel_status_t cause_get(native_device_t *native, uint64_t number)
{
    if (!number) return NULL;
    lock_enter(&native->lock);
    keel_status_t cause = keel_status_retain(native->causes[number - 1]);
    lock_leave(&native->lock);
    return cause;
}

// What the device does with cells: the first cause stays, and a failed one stands still.
static void cell_fail(cell_t *cell, uint64_t cause)
{
    uint64_t none = 0;
    atomic_compare_exchange_strong(&cell->cause, &none, cause);
    // release: pairs with the acquire in native_load and run_state.
    atomic_fetch_or(&cell->value, SEMAPHORE_FAILED);
}

static bool cell_signal(cell_t *cell, uint64_t value)
{
    uint64_t old = atomic_load(&cell->value);
    do {
        if (value <= old) return false; // a failed one's bit is above all values
        // release: pairs with the acquire in native_load and run_state.
    } while (!atomic_compare_exchange_weak(&cell->value, &old, value));
    return true;
}

// The processor.

typedef enum run_state_t { RUN_WAITS, RUN_READY, RUN_FAILED } run_state_t;

static run_state_t run_state(native_device_t *native, native_run_t *run)
{
    run_state_t state = RUN_READY;
    for (uint32_t i = 0; i < run->wait_count; i++) {
        // acquire: pairs with cell_signal and cell_fail.
        uint64_t value = atomic_load(&run->waits[i].cell->value);
        if ((value & ~SEMAPHORE_FAILED) >= run->waits[i].value) continue;
        state = RUN_WAITS;
        if (!(value & SEMAPHORE_FAILED)) continue;
        run->cause = atomic_load(&run->waits[i].cell->cause);
        return RUN_FAILED;
    }
    uint64_t stopped = atomic_load(&run->queue->stopped);
    if (state == RUN_WAITS && !stopped && atomic_load(&run->base.cancelled))
        stopped = cause_add(native, submission_cancelled(&run->base));
    if (state == RUN_WAITS && stopped) {
        run->cause = stopped;
        return RUN_FAILED;
    }
    if (atomic_load(&native->lost)) {
        run->cause = atomic_load(&native->lost);
        return RUN_FAILED;
    }
    return state;
}

static void run_signal(native_device_t *native, native_run_t *run)
{
    for (uint32_t i = 0; i < run->signal_count && !atomic_load(&native->lost); i++) {
        const at_t *signal = &run->signals[i];
        if (run->cause)
            cell_fail(signal->cell, run->cause);
        else if (!cell_signal(signal->cell, signal->value))
            run->refused = signal;
        if (run->refused) break;
    }
    if (run->signal_count && !native->polled) poller_wake(&native->poller); // an interrupt
}

// Goes once through what waits. True: something went on.
static bool processor_step(native_device_t *native)
{
    bool went_on = false;
    native_run_t **link = &native->waiting, *run;
    while (*link) link = &(*link)->next;
    *link = take(&native->inbox);
    for (link = &native->waiting; (run = *link);) {
        if (run_state(native, run) == RUN_WAITS) {
            link = &run->next;
            continue;
        }
        *link = run->next;
        went_on = true;
        run_signal(native, run);
        push(&native->done, run);
        helper_wake(&native->interrupt); // an interrupt, too
    }
    return went_on;
}

static void *processor_main(void *argument)
{
    native_device_t *native = argument;
    for (;;) {
        uint32_t seen = atomic_load(&native->doorbell);
        if (processor_step(native)) continue;
        if (atomic_load(&native->stop)) return NULL;
        futex_wait(&native->doorbell, seen, KEEL_FOREVER);
    }
}

// The host.

static uint64_t interrupt_work(void *argument)
{
    native_device_t *native = argument;
    native_run_t *next;
    for (native_run_t *run = take(&native->done); run; run = next) {
        next = run->next;
        if (run->refused) remote_leave(&run->base, run->refused->index);
        if (run->waits != run->room) mem_free(run->waits);
        submission_end(&run->base, cause_get(native, run->cause));
    }
    return KEEL_FOREVER;
}

static native_semaphore_t *semaphore_of(remote_t *remote)
{
    return (native_semaphore_t *)(void *)remote;
}

static native_device_t *remote_native(const remote_t *remote)
{
    return native_of(remote->semaphore.device);
}

static keel_status_t native_load(remote_t *remote, uint64_t *value)
{
    cell_t *cell = &semaphore_of(remote)->cell;
    native_device_t *native = remote_native(remote);
    uint64_t now = atomic_load(&cell->value); // acquire: pairs with cell_signal and cell_fail
    *value = now & ~SEMAPHORE_FAILED;
    return now & SEMAPHORE_FAILED ? cause_get(native, atomic_load(&cell->cause)) : NULL;
}

static keel_status_t native_signal(remote_t *remote, uint64_t value)
{
    if (!cell_signal(&semaphore_of(remote)->cell, value)) return remote_refusal(remote, value);
    ring(remote_native(remote));
    return NULL;
}

static void native_fail(remote_t *remote, keel_status_t cause)
{
    native_device_t *native = remote_native(remote);
    cell_fail(&semaphore_of(remote)->cell, cause_add(native, keel_status_retain(cause)));
    ring(native);
}

static void native_watch(remote_t *remote)
{
    poller_watch(&remote_native(remote)->poller, remote);
}

static void native_semaphore_destroy(remote_t *remote)
{
    if (object_is_ours(&remote->semaphore.object))
        poller_forget(&remote_native(remote)->poller, remote);
    mem_free_aligned(remote);
}

static const remote_ops_t native_remote_ops = {
    .load = native_load,
    .signal = native_signal,
    .fail = native_fail,
    .watch = native_watch,
    .destroy = native_semaphore_destroy,
};

static keel_status_t native_semaphore_create(keel_device_t *device, uint64_t initial,
                                             keel_semaphore_t **semaphore)
{
    KEEL_TRY(poller_start(&native_of(device)->poller));
    native_semaphore_t *s = mem_zalloc_aligned(sizeof *s, _Alignof(native_semaphore_t));
    if (!s) return status_no_memory();
    remote_init(&s->remote, &native_remote_ops, device, initial);
    atomic_init(&s->cell.value, initial);
    *semaphore = &s->remote.semaphore;
    return NULL;
}

// Its waits are over, or are for cells: makes the packet and gives it to the device.
static void native_start(keel_submission_t *submission)
{
    native_run_t *run = (native_run_t *)(void *)submission;
    keel_device_t *device = submission->queue->device;
    uint32_t waits = submission->wait_count, signals = submission->signal_count;
    run->queue = (native_queue_t *)(void *)submission->queue;
    run->wait_count = run->signal_count = 0;
    run->cause = 0;
    run->refused = NULL;
    run->waits = run->room;
    if (waits + signals > ROOM) run->waits = mem_alloc((waits + signals) * sizeof *run->waits);
    if (!run->waits) {
        submission_end(submission, status_no_memory());
        return;
    }
    run->signals = run->waits + waits;
    for (uint32_t i = 0; i < waits; i++) {
        const submission_wait_t *wait = &submission->waits[i];
        if (!wait->waiter.promise) continue; // reached
        remote_t *remote = remote_here(wait->point.semaphore, device);
        run->waits[run->wait_count++] = (at_t){&semaphore_of(remote)->cell, wait->point.value, i};
    }
    for (uint32_t i = 0; i < signals; i++) {
        signal_t *signal = &submission->signals[i];
        remote_t *remote = remote_here(signal->point.semaphore, device);
        if (!remote) continue; // the host makes it
        signal->native = true;
        run->signals[run->signal_count++] =
            (at_t){&semaphore_of(remote)->cell, signal->point.value, i};
    }
    push(&native_of(device)->inbox, run);
    ring(native_of(device));
}

static void native_queue_submit(keel_queue_t *queue, keel_submission_t *submission)
{
    (void)queue;
    if (submission_wait_early(submission, native_start)) submission_later(submission, native_start);
}

// What comes later, when the device has ended, finds the queue stopped.
static void native_queue_cancel(keel_queue_t *queue, keel_status_t cause)
{
    native_device_t *native = native_of(queue->device);
    native_queue_t *q = (native_queue_t *)(void *)queue;
    if (atomic_load(&queue->device->ended))
        atomic_store(&q->stopped, cause_add(native, keel_status_retain(cause)));
    ring(native);
}

static keel_status_t native_queue_create(keel_device_t *device, const keel_queue_options_t *options,
                                         keel_queue_t **queue)
{
    (void)device, (void)options;
    native_queue_t *q = mem_zalloc(sizeof *q);
    if (!q) return status_no_memory();
    q->base.submission_size = sizeof(native_run_t);
    q->base.early = true;
    *queue = &q->base;
    return NULL;
}

static void native_queue_destroy(keel_queue_t *queue)
{
    mem_free(queue);
}

static void native_device_close(keel_device_t *device)
{
    native_device_t *native = native_of(device);
    atomic_store(&native->stop, true);
    ring(native);
    if (native->running) pthread_join(native->processor, NULL);
    native->running = false;
    helper_stop(&native->interrupt);
    poller_stop(&native->poller);
}

static void native_device_destroy(keel_device_t *device)
{
    native_device_t *native = native_of(device);
    for (size_t i = 0; i < native->cause_count; i++) keel_status_release(native->causes[i]);
    free(native->causes);
    mem_free(native);
}

static void native_device_memory(keel_device_t *device, keel_memory_stats_t *stats)
{
    stats->total = stats->budget = device->caps.max_buffer_size;
}

static keel_status_t native_buffer_alloc(keel_buffer_t *buffer)
{
    void *data = mem_zalloc_aligned(buffer->size, buffer->alignment);
    if (!data) return status_no_memory();
    buffer->capacity = buffer->size;
    atomic_store(&buffer->data, data);
    atomic_store(&buffer->address, (uint64_t)(uintptr_t)data);
    return NULL;
}

static void native_buffer_free(keel_buffer_t *buffer)
{
    mem_free_aligned(atomic_load(&buffer->data));
}

static uint32_t native_executable_rank(keel_device_t *device, keel_image_kind_t kind,
                                       const char *target)
{
    (void)device, (void)kind, (void)target;
    return KEEL_RANK_PORTABLE;
}

static keel_status_t native_executable_load(keel_device_t *device, const keel_image_t *image,
                                            keel_executable_t **executable)
{
    (void)device, (void)image;
    *executable = mem_zalloc(sizeof **executable);
    return *executable ? NULL : status_no_memory();
}

static void native_executable_unload(keel_executable_t *executable)
{
    mem_free(executable);
}

static const keel_device_ops_t native_ops = {
    .device_close = native_device_close,
    .device_destroy = native_device_destroy,
    .device_memory = native_device_memory,
    .queue_create = native_queue_create,
    .queue_destroy = native_queue_destroy,
    .queue_submit = native_queue_submit,
    .queue_cancel = native_queue_cancel,
    .semaphore_create = native_semaphore_create,
    .buffer_alloc = native_buffer_alloc,
    .buffer_free = native_buffer_free,
    .executable_rank = native_executable_rank,
    .executable_load = native_executable_load,
    .executable_unload = native_executable_unload,
};

static void caps_fill(keel_caps_t *caps)
{
    *caps = (keel_caps_t){
        .bits = KEEL_CAP_DYNAMIC_COUNTS | KEEL_CAP_BRANCHES | KEEL_CAP_EVENTS | KEEL_CAP_TIMESTAMPS,
        .queue_families = 1u << KEEL_QUEUE_COMPUTE | 1u << KEEL_QUEUE_TRANSFER,
        .nodes = 1,
        .max_bindings = 64,
        .max_slots = 64,
        .max_constants = 256,
        .max_group_size = 1024,
        .max_group_sizes = {1024, 1024, 1024},
        .subgroup_size = 1,
        .max_groups = UINT32_MAX,
        .max_group_counts = {UINT32_MAX, UINT32_MAX, UINT32_MAX},
        .max_buffer_size = UINT64_C(1) << 32,
        .buffer_alignment = 64,
        .max_commands = 1u << 20,
        .max_depth = 16,
        .memory_types = {KEEL_MEMORY_DEVICE_VISIBLE | KEEL_MEMORY_HOST_VISIBLE |
                         KEEL_MEMORY_HOST_COHERENT | KEEL_MEMORY_HOST_CACHED},
    };
    caps->native = caps->bits;
}

static keel_status_t native_open(const keel_uri_t *uri, keel_device_t **device)
{
    for (size_t i = 0; i < uri->option_count; i++)
        if (strcmp(uri->options[i].key, "poll") != 0)
            return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "native:// has no option '%s'",
                              uri->options[i].key);
    native_device_t *native = mem_zalloc(sizeof *native);
    if (!native) return status_no_memory();
    native->base.ops = &native_ops;
    native->polled = uri->option_count != 0;
    snprintf(native->base.info.hardware, sizeof native->base.info.hardware, "waits by itself");
    caps_fill(&native->base.caps);
    helper_init(&native->interrupt, "native-interrupt", interrupt_work, native);
    poller_init(&native->poller, "native-poller", native->polled ? POLL_NS : KEEL_FOREVER);
    native->running =
        thread_start(&native->processor, "native-device", processor_main, native) == 0;
    if (!native->running) {
        native_device_destroy(&native->base);
        return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "there is no thread for the device");
    }
    *device = &native->base;
    return NULL;
}

static keel_status_t native_list(keel_device_listing_t *devices, size_t capacity, size_t *count)
{
    *count = 1;
    if (capacity)
        devices[0] = (keel_device_listing_t){.uri = "native://", .name = "waits by itself"};
    return NULL;
}

const keel_driver_t native_driver = {KEEL_DRIVER_HEAD, .name = "native", .list = native_list,
                                     .open = native_open};

// For tests.

static cell_t *cell_of(keel_semaphore_t *semaphore)
{
    return &semaphore_of(remote_here(semaphore, semaphore->device))->cell;
}

uint64_t native_value(keel_semaphore_t *semaphore)
{
    return atomic_load(&cell_of(semaphore)->value);
}

static void changed_there(keel_semaphore_t *semaphore)
{
    native_device_t *native = native_of(semaphore->device);
    ring(native);
    if (!native->polled) poller_wake(&native->poller);
}

void native_signal_there(keel_semaphore_t *semaphore, uint64_t value)
{
    cell_signal(cell_of(semaphore), value);
    changed_there(semaphore);
}

void native_fail_there(keel_semaphore_t *semaphore, keel_status_t cause)
{
    cell_fail(cell_of(semaphore), cause_add(native_of(semaphore->device), cause));
    changed_there(semaphore);
}

static void settle(keel_device_t *device)
{
    ring(native_of(device)); // all that is there ends, without a signal
}

void native_lose(keel_device_t *device, keel_status_t cause)
{
    native_device_t *native = native_of(device);
    atomic_store(&native->lost, cause_add(native, keel_status_retain(cause)));
    device_end(device, cause, settle);
}
