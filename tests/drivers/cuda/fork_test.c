// SPDX-License-Identifier: Apache-2.0
// The child of a fork lets go of what it inherited, whatever locks the threads held that stayed
// with the parent: it takes none of them, and goes on with nothing of the parent's.
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/cuda/device.h"
#include "drivers/stream/driver.h"
#include "kit/device.h"

extern const unsigned char keel_embed_conformance_kernels[];
extern const uint64_t keel_embed_conformance_kernels_size;

typedef struct heirloom_t {
    keel_device_t *device;
    keel_queue_t *queue;
    keel_buffer_t *word;
    keel_executable_t *kernels;
    keel_recording_t *recording;
    keel_pool_t *pool;
    keel_semaphore_t *semaphore;
} heirloom_t;

static void heirloom_make(heirloom_t *h)
{
    keel_executable_options_t options = {.data = keel_embed_conformance_kernels,
                                         .size = keel_embed_conformance_kernels_size};
    keel_entry_t entry;
    keel_point_t done;
    h->device = device_open("");
    assert_null(keel_queue_create(h->device, NULL, &h->queue));
    h->word = buffer_create(h->device, 4, 0);
    assert_null(keel_executable_load(h->device, &options, &h->kernels));
    assert_null(keel_executable_entry(h->kernels, "tally", &entry));
    keel_op_t tally = keel_op_dispatch(entry, keel_groups(1, 1, 1), NULL, 0, KEEL_BIND(h->word));
    assert_null(keel_recording_create(h->device, NULL, &h->recording));
    assert_null(keel_recording_add(h->recording, &tally, 1));
    assert_null(keel_recording_end(h->recording));
    assert_null(keel_recording_prepare(h->recording, h->queue));
    assert_null(keel_pool_create(h->device, NULL, &h->pool));
    assert_null(keel_semaphore_create(h->device, NULL, &h->semaphore));
    uint32_t zero = 0;
    keel_op_t ops[] = {keel_op_update(keel_span(h->word, 0, sizeof zero), &zero), keel_op_barrier(),
                       tally};
    assert_null(
        keel_queue_submit(h->queue, KEEL_NO_WAITS, ops, 3, KEEL_NO_SIGNALS, &done)); // has a ring
    ok(done);
}

static void heirloom_release(const heirloom_t *h)
{
    keel_semaphore_release(h->semaphore);
    keel_pool_release(h->pool);
    keel_recording_release(h->recording);
    keel_buffer_release(h->word);
    keel_executable_release(h->kernels);
    keel_queue_release(h->queue);
    keel_device_release(h->device);
}

enum { LOCKS = 14 };

// Takes what is private: which locks are held when a process forks is chance, and here it is all.
static void locks_of(const heirloom_t *h, lock_t *locks[LOCKS])
{
    stream_device_t *device = stream_device(h->device);
    stream_queue_t *queue = stream_queue(h->queue);
    lock_t *all[LOCKS] = {
        &device->lock,        device_lock(h->device),
        &device->blocks.lock, &device->modules.lock,
        &device->chores.lock, &device->chores.helper.lock,
        &device->keeper.lock, &device->issuer.lock,
        &queue->lock,         &queue->base.timeline->lock,
        &queue->issuer.lock,  &queue->watchers[0].helper.lock,
        &h->semaphore->lock,  &device->reclaim.lock,
    };
    for (int i = 0; i < LOCKS; i++) locks[i] = all[i];
}

static void test_locks_are_held(void **state)
{
    (void)state;
    heirloom_t h;
    lock_t *locks[LOCKS];
    int result = -1;
    heirloom_make(&h);
    stream_device_t *device = stream_device(h.device);
    reclaim_waiter_t waiter = {0};        // an alloca that waits for memory
    await(!atomic_load(&device->active)); // or the keeper would wait with a lock of ours
    locks_of(&h, locks);
    for (int i = 0; i < LOCKS; i++) lock_enter(locks[i]);
    atomic_store(&device->reclaim.waiters, &waiter);
    pid_t child = fork();
    if (!child) {
        alarm((unsigned)(PATIENCE_NS / SECOND_NS));
        heirloom_release(&h);
        _exit(0);
    }
    atomic_store(&device->reclaim.waiters, NULL);
    for (int i = 0; i < LOCKS; i++) lock_leave(locks[i]);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    heirloom_release(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_locks_are_held)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
