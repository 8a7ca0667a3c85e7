// SPDX-License-Identifier: Apache-2.0
// fork(2), and processes that end in the middle of their work.
#include "suite/suite.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS .needs = KEEL_CAP_EXECUTES

// What the child inherits.
typedef struct heirloom_t {
    keel_queue_t *queue;
    keel_semaphore_t *semaphore;
    keel_buffer_t *buffer;
    keel_recording_t *recording;
    keel_recording_t *open;
    keel_pool_t *pool;
    keel_executable_t *executable;
    keel_completion_t *completion;
    keel_on_t *on;
} heirloom_t;

static void ignore(void *user, keel_status_t status)
{
    keel_status_release(status);
}

static void cancel(void *on)
{
    keel_on_cancel(on);
}

static heirloom_t *new_heirloom(void)
{
    heirloom_t *h = scratch(sizeof *h);
    keel_point_t point;
    h->queue = new_queue(0);
    h->semaphore = new_semaphore(1);
    h->buffer = new_buffer_filled(64, 3);
    h->recording = RECORD(0, keel_op_barrier());
    TRY(keel_recording_create(the_device(), NULL, &h->open));
    OWN(h->open);
    if (the_caps()->bits & KEEL_CAP_QUEUE_ALLOCA) h->pool = new_pool(0, 0);
    h->executable = kernels();
    point = keel_point(h->semaphore, 2);
    TRY(keel_completion_create(&h->completion));
    OWN(h->completion);
    TRY(keel_completion_add(h->completion, KEEL_POINTS(point), KEEL_ALL, NULL));
    TRY(keel_on(KEEL_POINTS(point), KEEL_ALL, ignore, NULL, &h->on));
    own_cleanup(cancel, h->on);
    return h;
}

static void use_what_is_lost(void *user)
{
    heirloom_t *h = user;
    keel_buffer_options_t size = {.size = 16};
    keel_buffer_t *buffer = NULL;
    keel_queue_t *queue = NULL;
    keel_semaphore_t *semaphore = NULL;
    keel_recording_t *recording = NULL;
    keel_executable_options_t image = {.name = "x"};
    keel_executable_t *executable = NULL;
    keel_clock_pair_t pair;
    keel_point_t point = keel_point(h->semaphore, 2);
    keel_status_t end = NULL;
    void *none = NULL;
    keel_op_t barrier = keel_op_barrier();
    kernels_image(&image.data, &image.size);
    FAILS(KEEL_DEVICE_LOST, keel_queue_run(h->queue, KEEL_NO_WAITS, keel_op_barrier(), NULL));
    FAILS(KEEL_DEVICE_LOST, keel_queue_wait_idle(h->queue, KEEL_FOREVER));
    FAILS(KEEL_DEVICE_LOST, keel_device_wait_idle(the_device(), KEEL_FOREVER));
    FAILS(KEEL_DEVICE_LOST, keel_device_clock(the_device(), &pair));
    FAILS(KEEL_DEVICE_LOST, keel_buffer_create(the_device(), &size, &buffer));
    FAILS(KEEL_DEVICE_LOST, keel_queue_create(the_device(), NULL, &queue));
    FAILS(KEEL_DEVICE_LOST, keel_semaphore_create(the_device(), NULL, &semaphore));
    FAILS(KEEL_DEVICE_LOST, keel_semaphore_signal(h->semaphore, 2));
    FAILS(KEEL_DEVICE_LOST, keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER));
    FAILS(KEEL_DEVICE_LOST, keel_on(KEEL_POINTS(point), KEEL_ALL, ignore, NULL, NULL));
    FAILS(KEEL_DEVICE_LOST, keel_completion_add(h->completion, KEEL_NO_WAITS, KEEL_ALL, NULL));
    FAILS(KEEL_DEVICE_LOST, keel_completion_next(h->completion, KEEL_FOREVER, &none, &end));
    FAILS(KEEL_DEVICE_LOST, keel_recording_create(the_device(), NULL, &recording));
    FAILS(KEEL_DEVICE_LOST, keel_recording_prepare(h->recording, h->queue));
    FAILS(KEEL_DEVICE_LOST, keel_executable_load(the_device(), &image, &executable));
    FAILS(KEEL_DEVICE_LOST, keel_recording_add(h->open, &barrier, 1));
    FAILS(KEEL_DEVICE_LOST, keel_recording_end(h->open));
    if (h->pool) {
        keel_pool_stats_t stats;
        FAILS(KEEL_DEVICE_LOST, keel_buffer_reserve(h->pool, &size, &buffer));
        FAILS(KEEL_DEVICE_LOST, keel_pool_trim(h->pool, 0));
        keel_pool_stats(h->pool, &stats);
    }
    // Reading is allowed.
    CHECK_EQ(keel_buffer_size(h->buffer), 64);
    CHECK_EQ(keel_recording_count(h->recording), 1);
    CHECK_STR(keel_device_info(the_device())->uri, the_uri());
}

TEST(fork, devices_of_the_child_are_lost, RUNS)
{
    in_child(use_what_is_lost, new_heirloom());
    reach(submit(keel_op_barrier())); // and the parent's are not
}

static void release_all(void *user)
{
    heirloom_t *h = user;
    keel_completion_release(h->completion);
    CHECK(keel_on_cancel(h->on) || faulted()); // a device that was lost before has called it
    keel_recording_release(h->recording);
    keel_recording_release(h->open);
    keel_pool_release(h->pool);
    keel_buffer_release(h->buffer);
    keel_executable_release(h->executable);
    keel_semaphore_release(h->semaphore);
    keel_queue_release(h->queue);
    keel_device_release(the_device());
}

TEST(fork, child_releases, RUNS)
{
    heirloom_t *h = new_heirloom();
    in_child(release_all, h);
    keel_point_t done;
    TRY(keel_queue_fill(h->queue, KEEL_NO_WAITS, keel_whole(h->buffer), 4, 1, &done));
    reach(done);
    check_filled(h->buffer, 0, 64, 4);
    TRY(keel_semaphore_signal(h->semaphore, 2));
}

static void release_with_work(void *user)
{
    keel_semaphore_release(user);
    keel_device_release(the_device());
}

// The parent's work in flight stays the parent's.
TEST(fork, work_in_flight, RUNS)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *x = new_buffer(64);
    keel_point_t done =
        submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_fill(keel_whole(x), 8, 1));
    in_child(release_with_work, gate);
    CHECK(pending(done));
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
    check_filled(x, 0, 64, 8);
}

static void open_and_work(void *user)
{
    keel_device_t *device = NULL;
    keel_buffer_options_t options = {.size = 64, .memory = KEEL_MEMORY_HOST_VISIBLE};
    keel_buffer_t *x = NULL;
    keel_point_t done;
    uint8_t bytes[64];
    TRY(keel_device_open(the_uri(), NULL, &device));
    TRY(keel_buffer_create(device, &options, &x));
    TRY(keel_queue_fill(keel_device_queue(device, 0), KEEL_NO_WAITS, keel_whole(x), 9, 1, &done));
    TRY(keel_wait(KEEL_POINTS(done), KEEL_ALL, patience()));
    TRY(keel_buffer_read(x, 0, bytes, 64));
    CHECK_EQ(bytes[63], 9);
    keel_buffer_release(x);
    keel_device_release(device);
}

// The child of a process with threads cannot have threads under ThreadSanitizer.
static void needs_threads_after_fork(void)
{
#if defined(__SANITIZE_THREAD__)
    skip("TSAN", "ThreadSanitizer lets the child of a fork start no threads");
#endif
}

TEST(fork, child_opens_its_own, RUNS, .also = NEED_FORK)
{
    needs_threads_after_fork();
    reach(submit(keel_op_barrier()));
    in_child(open_and_work, NULL);
    in_child(open_and_work, NULL);
    reach(submit(keel_op_barrier()));
}

// A point of the parent's that fails, or is waited for, in both.
static void submit_foreign(void *user)
{
    keel_device_t *device = NULL;
    TRY(keel_device_open(the_uri(), NULL, &device));
    keel_point_t point = keel_point(user, 1);
    FAILS(KEEL_DEVICE_LOST, keel_queue_signal(keel_device_queue(device, 0), keel_points(&point, 1),
                                              KEEL_NO_SIGNALS, NULL));
    FAILS(KEEL_DEVICE_LOST, keel_queue_signal(keel_device_queue(device, 0), KEEL_NO_WAITS,
                                              keel_points(&point, 1), NULL));
    keel_device_release(device);
}

TEST(fork, semaphores_of_the_parent_are_refused, .also = NEED_FORK)
{
    needs_threads_after_fork();
    keel_semaphore_t *semaphore = new_semaphore(0);
    in_child(submit_foreign, semaphore);
    TRY(keel_semaphore_signal(semaphore, 1));
}

static void busy(void *user)
{
    atomic_bool *stop = user;
    keel_queue_t *queue = NULL;
    keel_buffer_t *x = new_buffer(4096);
    TRY(keel_queue_create(the_device(), NULL, &queue));
    OWN(queue);
    while (!atomic_load(stop)) {
        keel_point_t done;
        TRY(keel_queue_fill(queue, KEEL_NO_WAITS, keel_whole(x), 1, 1, &done));
        reach(done);
    }
}

static void stop_it(void *user)
{
    atomic_store((atomic_bool *)user, true);
}

// Forked while others are in the middle of everything: whatever locks they hold, the child can
// release what it inherited.
TEST(fork, under_load, RUNS)
{
    atomic_bool *stop = scratch(sizeof *stop);
    heirloom_t *h = new_heirloom();
    thread_t *threads[2];
    for (int i = 0; i < 2; i++) threads[i] = thread_start(busy, stop);
    own_cleanup(stop_it, stop);
    for (size_t i = 0; i < few(160); i++) in_child(release_all, h);
    stop_it(stop);
    for (int i = 0; i < 2; i++) thread_join(threads[i]);
}

// Another process with a device of its own is killed in the middle of work on memory we share.
TEST(fork, killed_in_the_middle, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_EXPORT_FD, .also = NEED_FORK)
{
    needs_threads_after_fork();
    keel_buffer_options_t options = {
        .size = 1 << 16, .usage = KEEL_USAGE_TRANSFER | KEEL_USAGE_MAP | KEEL_USAGE_EXPORT};
    keel_buffer_t *shared = NULL;
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_FD};
    TRY(keel_buffer_create(the_device(), &options, &shared));
    OWN(shared);
    TRY(keel_buffer_export(shared, &external));
    int ready[2];
    CHECK(pipe(ready) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        keel_device_t *device = NULL;
        keel_buffer_t *mine = NULL;
        keel_status_t status = keel_device_open(the_uri(), NULL, &device);
        if (!status) status = keel_buffer_import(device, &external, NULL, &mine);
        bool told = false;
        while (!status) {
            keel_point_t done;
            status = keel_queue_fill(keel_device_queue(device, 0), KEEL_NO_WAITS, keel_whole(mine),
                                     0x55, 1, &done);
            if (!status) status = keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
            if (!told) (void)!write(ready[1], "", 1);
            told = true;
        }
        _exit(keel_status_code(status) == KEEL_OUT_OF_MEMORY ? 2 : 1);
    }
    char byte;
    close(ready[1]);
    ssize_t got = read(ready[0], &byte, 1);
    close(ready[0]);
    kill(pid, SIGKILL);
    int ended_with = 0;
    waitpid(pid, &ended_with, 0);
    close(external.handle.fd);
    bool starved_there = WIFEXITED(ended_with) && WEXITSTATUS(ended_with) == 2;
    CHECK(got == 1 || starved_there);
    reach(submit(keel_op_fill(keel_whole(shared), 0x66, 1)));
    check_filled(shared, 0, 1 << 16, 0x66);
}
