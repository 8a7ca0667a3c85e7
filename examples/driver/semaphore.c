// SPDX-License-Identifier: Apache-2.0
// Semaphores that the toy keeps: its thread waits for them and signals them by itself. The device's
// lock guards them all.
#include "toy.h"

typedef struct toy_semaphore_t {
    toy_device_t *device;
    uint64_t value;
    keel_status_t failure; // owned; NULL: it has not failed
} toy_semaphore_t;

// Under the lock: the first failure stays, and a failed one stands still.
static void cell_fail(toy_semaphore_t *s, keel_status_t cause)
{
    if (!s->failure) s->failure = keel_status_retain(cause);
}

static bool cell_signal(toy_semaphore_t *s, uint64_t value)
{
    if (s->failure || value <= s->value) return false;
    s->value = value;
    return true;
}

static keel_status_t semaphore_load(void *own, uint64_t *value)
{
    toy_semaphore_t *s = own;
    pthread_mutex_lock(&s->device->lock);
    *value = s->value;
    keel_status_t failure = keel_status_retain(s->failure);
    pthread_mutex_unlock(&s->device->lock);
    return failure;
}

static bool semaphore_signal(void *own, uint64_t value)
{
    toy_semaphore_t *s = own;
    pthread_mutex_lock(&s->device->lock);
    bool done = cell_signal(s, value);
    pthread_cond_signal(&s->device->changed);
    pthread_mutex_unlock(&s->device->lock);
    return done;
}

static void semaphore_fail(void *own, keel_status_t cause)
{
    toy_semaphore_t *s = own;
    pthread_mutex_lock(&s->device->lock);
    cell_fail(s, cause);
    pthread_cond_signal(&s->device->changed);
    pthread_mutex_unlock(&s->device->lock);
}

static void semaphore_destroy(void *own)
{
    toy_semaphore_t *s = own;
    keel_status_release(s->failure);
    keel_mem_free(s);
}

keel_status_t toy_semaphore_create(keel_device_t *device, uint64_t initial,
                                   keel_semaphore_t **semaphore)
{
    static const keel_remote_ops_t ops = {
        .load = semaphore_load,
        .signal = semaphore_signal,
        .fail = semaphore_fail,
        .destroy = semaphore_destroy,
    };
    toy_semaphore_t *s = keel_mem_zalloc(sizeof *s);
    if (!s) return keel_status_no_memory();
    s->device = (toy_device_t *)(void *)device;
    s->value = initial;
    keel_status_t status = keel_remote_create(device, &ops, s, initial, semaphore);
    if (status) semaphore_destroy(s);
    return status;
}

bool toy_run_waits(toy_run_t *run)
{
    bool waits = false;
    for (uint32_t i = 0; i < run->base.wait_count && !run->failure; i++) {
        uint64_t value = 0;
        const toy_semaphore_t *s = keel_submission_remote_wait(&run->base, i, &value);
        if (!s || s->value >= value) continue;
        waits = true;
        if (s->failure) run->failure = keel_status_retain(s->failure);
    }
    // What waits when the device ends, or comes to wait later, fails with the device.
    if (waits && !run->failure)
        run->failure = keel_status_retain(atomic_load(&run->base.queue->device->ended));
    if (waits && !run->failure && atomic_load(&run->base.cancelled))
        run->failure = KEEL_ERROR(KEEL_CANCELLED, "submission %llu was cancelled",
                                  (unsigned long long)run->base.id);
    return waits && !run->failure;
}

void toy_run_signal(toy_run_t *run)
{
    toy_device_t *device = (toy_device_t *)(void *)run->base.queue->device;
    pthread_mutex_lock(&device->lock);
    for (uint32_t i = 0; i < run->base.signal_count; i++) {
        uint64_t value = 0;
        toy_semaphore_t *s = keel_submission_remote_signal(&run->base, i, &value);
        if (s && run->failure) cell_fail(s, run->failure);
        if (!s || s->failure || cell_signal(s, value)) continue;
        keel_submission_remote_leave(&run->base, i); // it is out of order
        break;
    }
    pthread_mutex_unlock(&device->lock);
}

void toy_queue_cancel(keel_queue_t *queue, keel_status_t cause)
{
    (void)cause; // toy_run_waits finds it in the device or the submission
    toy_device_t *device = (toy_device_t *)(void *)queue->device;
    pthread_mutex_lock(&device->lock);
    pthread_cond_signal(&device->changed);
    pthread_mutex_unlock(&device->lock);
}
