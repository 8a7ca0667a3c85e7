// SPDX-License-Identifier: Apache-2.0
// Closing devices, and what is left of them.
#include "suite/suite.h"

#define RUNS .needs = KEEL_CAP_EXECUTES

static keel_semaphore_t *keep_timeline(void)
{
    keel_semaphore_t *timeline = keel_semaphore_retain(keel_queue_timeline(the_queue()));
    OWN(timeline);
    return timeline;
}

TEST(lifetime, close_cancels_what_waits, RUNS)
{
    keep_timeline();
    keel_semaphore_t *gate = new_semaphore(0), *out = new_semaphore(0);
    keel_buffer_t *x = new_buffer(16);
    keel_point_t done[5];
    for (int i = 0; i < 5; i++) {
        keel_op_t op = keel_op_fill(keel_whole(x), 1, 1);
        TRY(keel_queue_submit(the_queue(), KEEL_AFTER(keel_point(gate, 1)), &op, 1,
                              i ? KEEL_NO_SIGNALS : KEEL_SIGNAL(keel_point(out, 1)), &done[i]));
    }
    drop(the_device());
    for (int i = 0; i < 5; i++) {
        FAILS(KEEL_CANCELLED, keel_wait(KEEL_POINTS(done[i]), KEEL_ALL, 0));
    }
    FAILS(KEEL_CANCELLED, keel_wait(KEEL_POINTS(keel_point(out, 1)), KEEL_ALL, 0));
}

TEST(lifetime, close_names_the_device)
{
    keel_device_options_t options = {.name = "my accelerator"};
    keel_device_t *device = NULL;
    keel_semaphore_t *semaphore = NULL;
    TRY(keel_device_open(the_uri(), &options, &device));
    OWN(device);
    TRY(keel_semaphore_create(device, NULL, &semaphore));
    OWN(semaphore);
    drop(device);
    FAILS_SAYING(KEEL_CANCELLED, "my accelerator",
                 keel_wait(KEEL_POINTS(keel_point(semaphore, 1)), KEEL_ALL, 0));
}

// What runs ends as soon as the device can end it, and the call returns when it has. What has ended
// well is whole.
TEST(lifetime, close_ends_what_runs,
     .needs = KEEL_CAP_EXECUTES | KEEL_CAP_HOST_CALLS | KEEL_CAP_IMPORT_HOST, .also = NEED_WORKERS)
{
    keep_timeline();
    hold_t *hold = new_hold();
    keel_semaphore_t *out = new_semaphore(0);
    uint32_t *memory = scratch(64);
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = memory, .size = 64};
    keel_buffer_t *x = NULL;
    TRY(keel_buffer_import(the_device(), &external, NULL, &x));
    OWN(x);
    keel_buffer_t *word = new_buffer(4); // not every GPU can count in memory of the host
    uint32_t us = 20000;
    keel_op_t ops[] = {
        op_hold(hold),     keel_op_fill(keel_whole(word), 0, 4),
        keel_op_barrier(), op_kernel("slow", 3, &us, 4, KEEL_BIND(word)),
        keel_op_barrier(), keel_op_copy(keel_whole(word), keel_span(x, 0, 4)),
    };
    keel_point_t done;
    TRY(keel_queue_submit(the_queue(), KEEL_NO_WAITS, ops, sizeof ops / sizeof *ops,
                          KEEL_SIGNAL(keel_point(out, 1)), &done));
    hold_entered(hold, done);
    gate_open(hold->gate);
    drop(the_device());
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, 0);
    if (status) {
        FAILS(KEEL_CANCELLED, status);
        FAILS(KEEL_CANCELLED, keel_wait(KEEL_POINTS(keel_point(out, 1)), KEEL_ALL, 0));
    } else {
        TRY(keel_wait(KEEL_POINTS(keel_point(out, 1)), KEEL_ALL, 0));
        CHECK_EQ(memory[0], 3);
    }
}

// Work behind what runs, waiting for its point, is given up.
TEST(lifetime, close_in_the_middle_of_a_chain, .needs = KEEL_CAP_HOST_CALLS, .also = NEED_WORKERS)
{
    keep_timeline();
    hold_t *hold = new_hold();
    keel_point_t first = submit(op_hold(hold));
    keel_point_t second = submit_after(KEEL_AFTER(first), keel_op_barrier());
    keel_point_t third = submit_after(KEEL_AFTER(second), keel_op_barrier());
    hold_entered(hold, first);
    gate_open(hold->gate);
    drop(the_device());
    TRY(keel_wait(KEEL_POINTS(first), KEEL_ALL, 0));
    keel_point_t rest[] = {second, third};
    for (int i = 0; i < 2; i++) {
        keel_status_t status = keel_wait(KEEL_POINTS(rest[i]), KEEL_ALL, 0);
        if (keel_status_code(status) != KEEL_CANCELLED)
            TRY(status); // it may just have been in time
        keel_status_release(status);
    }
}

TEST(lifetime, two_references, RUNS)
{
    keel_device_t *device = the_device();
    keel_device_retain(device);
    OWN(device);
    drop(device);
    reach(submit(keel_op_barrier()));
}

// Objects may outlive the device; all but reading them and releasing them fails then.
TEST(lifetime, objects_after_the_device, RUNS)
{
    keel_queue_t *queue = new_queue(0);
    keel_semaphore_t *semaphore = new_semaphore(3);
    keel_buffer_t *buffer = new_buffer_filled(16, 5);
    keel_executable_t *executable = kernels();
    keel_recording_options_t slots = {.name = "open"};
    keel_recording_t *open = NULL, *closed = RECORD(0, keel_op_barrier());
    TRY(keel_recording_create(the_device(), &slots, &open));
    OWN(open);
    drop(the_device());
    keel_op_t op = keel_op_barrier();
    uint64_t value = 0;
    keel_entry_info_t info;
    FAILS(KEEL_FAILED_PRECONDITION, keel_queue_run(queue, KEEL_NO_WAITS, op, NULL));
    FAILS(KEEL_FAILED_PRECONDITION,
          keel_queue_execute(queue, KEEL_NO_WAITS, closed, KEEL_NO_BINDINGS, NULL));
    FAILS(KEEL_FAILED_PRECONDITION, keel_recording_add(open, &op, 1));
    FAILS(KEEL_FAILED_PRECONDITION, keel_recording_prepare(closed, queue));
    FAILS(KEEL_CANCELLED, keel_semaphore_signal(semaphore, 4));
    FAILS(KEEL_CANCELLED, keel_semaphore_value(semaphore, &value));
    CHECK_EQ(value, 3);
    CHECK_EQ(keel_buffer_size(buffer), 16);
    CHECK_GE(keel_executable_entry_count(executable), 1);
    TRY(keel_entry_info((keel_entry_t){executable, 0}, &info));
    CHECK_EQ(keel_recording_count(closed), 1);
    CHECK_STR(keel_device_info(keel_queue_info(queue)->device)->uri, the_uri());
}

TEST(lifetime, pools_after_the_device, .needs = KEEL_CAP_QUEUE_ALLOCA)
{
    keel_pool_t *pool = new_pool(0, 0);
    keel_buffer_t *with = new_reserved(pool, 64), *without = new_reserved(pool, 64);
    keel_queue_t *queue = new_queue(0);
    reach(submit(keel_op_alloca(with)));
    drop(the_device());
    keel_buffer_options_t options = {.size = 16};
    keel_buffer_t *more = NULL;
    keel_pool_stats_t stats;
    FAILS(KEEL_FAILED_PRECONDITION, keel_buffer_reserve(pool, &options, &more));
    FAILS(KEEL_FAILED_PRECONDITION,
          keel_queue_run(queue, KEEL_NO_WAITS, keel_op_alloca(without), NULL));
    keel_pool_stats(pool, &stats);
    CHECK_EQ(stats.buffers, 1);
}

// An alloca that waits for a dealloca is work not yet started, too.
TEST(lifetime, close_with_a_waiting_alloca, .needs = KEEL_CAP_QUEUE_ALLOCA)
{
    keep_timeline();
    keel_pool_t *pool = new_pool(4096, 0);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *x = new_reserved(pool, 4096), *y = new_reserved(pool, 4096);
    reach(submit(keel_op_alloca(x)));
    keel_point_t freed = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_dealloca(x));
    keel_point_t ready = submit(keel_op_alloca(y));
    drop(the_device());
    FAILS(KEEL_CANCELLED, keel_wait(KEEL_POINTS(freed), KEEL_ALL, 0));
    FAILS(KEEL_CANCELLED, keel_wait(KEEL_POINTS(ready), KEEL_ALL, 0));
}

// Nor does one that waits for room keep a device open: one that no dealloca is submitted for, and
// one whose own submission has a dealloca behind it.
TEST(lifetime, close_with_allocas_without_room, .needs = KEEL_CAP_QUEUE_ALLOCA)
{
    keep_timeline();
    keel_pool_t *pool = new_pool(8192, 4096);
    keel_buffer_t *a = new_reserved(pool, 4096), *b = new_reserved(pool, 4096);
    keel_buffer_t *x = new_reserved(pool, 4096), *y = new_reserved(pool, 4096);
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_alloca(a), keel_op_alloca(b)));
    keel_point_t ready = submit(keel_op_alloca(x));
    keel_point_t done =
        SUBMIT(KEEL_NO_WAITS, keel_op_alloca(y), keel_op_barrier(), keel_op_dealloca(a));
    keel_pool_stats_t stats;
    do {
        keel_pool_stats(pool, &stats);
    } while (stats.waiting < 2 && !ended(ready) && !ended(done));
    drop(the_device());
    FAILS(KEEL_CANCELLED, keel_wait(KEEL_POINTS(ready), KEEL_ALL, 0));
    FAILS(KEEL_CANCELLED, keel_wait(KEEL_POINTS(done), KEEL_ALL, 0));
}

// In whatever order things are released, nothing is lost and nothing is touched too late.
TEST(lifetime, released_in_any_order, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_QUEUE_ALLOCA)
{
    for (size_t round = 0; round < few(48); round++) {
        row("round %zu", round);
        keel_device_t *device = open_device(the_uri());
        keel_queue_t *queue = NULL;
        keel_semaphore_t *gate = NULL;
        keel_pool_t *pool = NULL;
        keel_recording_t *recording = NULL;
        keel_buffer_options_t size = {.size = 64};
        keel_buffer_t *buffer = new_buffer_on(device, 64), *reserved = NULL;
        keel_executable_t *executable = kernels_on(device);
        TRY(keel_queue_create(device, NULL, &queue));
        OWN(queue);
        TRY(keel_semaphore_create(device, NULL, &gate));
        OWN(gate);
        TRY(keel_pool_create(device, NULL, &pool));
        OWN(pool);
        TRY(keel_buffer_reserve(pool, &size, &reserved));
        OWN(reserved);
        TRY(keel_recording_create(device, NULL, &recording));
        OWN(recording);
        keel_op_t fill = keel_op_fill(keel_whole(buffer), 1, 1);
        TRY(keel_recording_add(recording, &fill, 1));
        TRY(keel_recording_end(recording));
        keel_op_t ops[] = {keel_op_alloca(reserved), keel_op_barrier(),
                           keel_op_execute(recording, KEEL_NO_BINDINGS),
                           keel_op_fill(keel_whole(reserved), 1, 1)};
        TRY(keel_queue_submit(queue, round % 2 ? KEEL_AFTER(keel_point(gate, 1)) : KEEL_NO_WAITS,
                              ops, 4, KEEL_NO_SIGNALS, NULL));
        void *objects[] = {device, queue, gate, pool, buffer, reserved, executable, recording};
        for (size_t left = COUNT(objects); left; left--) {
            size_t pick = random_below(left);
            drop(objects[pick]);
            objects[pick] = objects[left - 1];
        }
    }
}

typedef struct submitter_t {
    keel_queue_t *queue;
    gate_t *going;
    atomic_bool stop; // for a test that ends before it closes the device
} submitter_t;

static void stop_submitter(void *user)
{
    atomic_store(&((submitter_t *)user)->stop, true);
}

static void submit_until_refused(void *user)
{
    submitter_t *submitter = user;
    while (!atomic_load(&submitter->stop)) {
        keel_point_t done;
        keel_status_t status =
            keel_queue_run(submitter->queue, KEEL_NO_WAITS, keel_op_barrier(), &done);
        gate_open(submitter->going);
        if (status) {
            FAILS(KEEL_FAILED_PRECONDITION, status);
            return;
        }
        status = keel_wait(KEEL_POINTS(done), KEEL_ALL, patience());
        if (keel_status_code(status) != KEEL_CANCELLED) TRY(status);
        keel_status_release(status);
    }
}

// Closing while others submit.
TEST(lifetime, close_races_with_submit)
{
    for (size_t round = 0; round < few(48); round++) {
        keel_device_t *device = open_device(the_uri());
        thread_t *threads[2];
        for (int i = 0; i < 2; i++) {
            submitter_t *submitter = scratch(sizeof *submitter);
            submitter->going = new_gate();
            TRY(keel_queue_create(device, NULL, &submitter->queue));
            OWN(submitter->queue);
            threads[i] = thread_start(submit_until_refused, submitter);
            own_cleanup(stop_submitter, submitter);
            gate_wait(submitter->going);
        }
        drop(device);
        for (int i = 0; i < 2; i++) thread_join(threads[i]);
    }
}

static void release_device(void *user)
{
    keel_device_release(user);
}

TEST(lifetime, closed_by_one_of_many_threads)
{
    keel_live_t before, live;
    keel_live_objects(&before);
    for (size_t round = 0; round < few(48); round++) {
        keel_device_t *device = open_device(the_uri());
        thread_t *threads[4];
        for (int i = 0; i < 4; i++) {
            keel_device_retain(device);
            threads[i] = thread_start(release_device, device);
        }
        drop(device);
        for (int i = 0; i < 4; i++) thread_join(threads[i]);
        keel_live_objects(&live);
        CHECK_EQ(live.devices, before.devices);
    }
}

// Everything a submission names is released at once; the work still finds it.
TEST(lifetime, work_keeps_what_it_touches, RUNS)
{
    keel_semaphore_t *gate = new_semaphore(0), *out = new_semaphore(0);
    keel_buffer_t *in = new_buffer_filled(64, 0xff), *middle = new_buffer(64),
                  *last = new_buffer(64);
    keel_op_t copy = keel_op_copy(keel_whole(in), keel_whole(middle));
    keel_op_t absolute = op_kernel("abs", 1, NULL, 0, KEEL_BIND(middle, last));
    keel_op_t ops[] = {copy, keel_op_barrier(), absolute};
    keel_queue_t *queue = new_queue(0);
    TRY(keel_queue_submit(queue, KEEL_AFTER(keel_point(gate, 1)), ops, 3,
                          KEEL_SIGNAL(keel_point(out, 1)), NULL));
    drop(in);
    drop(middle);
    drop(kernels());
    drop(queue);
    TRY(keel_semaphore_signal(gate, 1));
    reach_value(out, 1);
    CHECK_EQ(buffer_u32(last, 15), 1);
}

// Semaphores that only a submission knows any more.
TEST(lifetime, semaphores_released_in_flight)
{
    keel_semaphore_t *gate = new_semaphore(0);
    for (int i = 0; i < 10; i++) {
        keel_semaphore_t *out = new_semaphore(0);
        TRY(keel_queue_signal(the_queue(), KEEL_AFTER(keel_point(gate, 1)),
                              KEEL_SIGNAL(keel_point(out, 1)), NULL));
        TRY(keel_queue_signal(the_queue(), KEEL_AFTER(keel_point(out, 1)), KEEL_NO_SIGNALS, NULL));
        drop(out);
    }
    TRY(keel_semaphore_signal(gate, 1));
    TRY(keel_device_wait_idle(the_device(), patience()));
}

// A point that is never signalled: the submission that waits for it must end with the device.
TEST(lifetime, never_signalled)
{
    for (int i = 0; i < 10; i++) {
        keel_semaphore_t *never = new_semaphore(0);
        TRY(keel_queue_signal(the_queue(), KEEL_AFTER(keel_point(never, 1)), KEEL_NO_SIGNALS,
                              NULL));
        drop(never);
    }
}

TEST(lifetime, memory_goes_with_the_last_reference)
{
    keel_memory_stats_t before, with, after;
    TRY(keel_device_memory(the_device(), &before));
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *x = new_buffer(1 << 16);
    keel_point_t done =
        submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_fill(keel_whole(x), 1, 1));
    drop(x);
    TRY(keel_device_memory(the_device(), &with));
    CHECK_GE(with.used, before.used + (1 << 16));
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
    uint64_t start = keel_now_ns();
    do {
        TRY(keel_device_memory(the_device(), &after));
    } while (after.used != before.used && keel_now_ns() - start < patience());
    CHECK_EQ(after.used, before.used);
}
