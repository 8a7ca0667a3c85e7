// SPDX-License-Identifier: Apache-2.0
// steps FILE [URI]: work that tests know in advance: a write and a read of FILE, and a host call
// that ends after it has returned. Without a URI, on a processor with one worker, there is an
// alloca before it that waits for memory; and after it the process forks, and both fill a buffer.
#include <keel/keel.h>
#include <keel/trace.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 1 << 16 };

static const char *uri = "cpu://?threads=1";
static keel_device_t *device;
static keel_queue_t *main_queue, *other_queue;

static keel_status_t submit(keel_queue_t *queue, keel_op_t op, keel_point_t *done)
{
    return keel_queue_submit(queue, KEEL_NO_WAITS, &op, 1, KEEL_NO_SIGNALS, done);
}

static keel_status_t run(keel_queue_t *queue, keel_op_t op)
{
    keel_point_t done;
    KEEL_TRY(submit(queue, op, &done));
    return keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
}

static keel_status_t pool_steps(keel_pool_t *pool, keel_buffer_t *first, keel_buffer_t *second)
{
    keel_point_t done;
    keel_pool_stats_t stats;
    KEEL_TRY(run(main_queue, keel_op_alloca(first)));
    KEEL_TRY(submit(other_queue, keel_op_alloca(second), &done));
    do {
        sched_yield();
        keel_pool_stats(pool, &stats);
    } while (!stats.waiting);
    KEEL_TRY(run(main_queue, keel_op_dealloca(first)));
    KEEL_TRY(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    return run(main_queue, keel_op_dealloca(second));
}

// The pool has room for one of the two buffers.
static keel_status_t pool_work(void)
{
    keel_pool_options_t options = {.limit = SIZE, .full = KEEL_POOL_WAITS, .name = "scratch"};
    keel_pool_t *pool = NULL;
    keel_buffer_t *first = NULL, *second = NULL;
    keel_status_t status = keel_pool_create(device, &options, &pool);
    keel_buffer_options_t of_pool = {.size = SIZE};
    if (!status) status = keel_buffer_reserve(pool, &of_pool, &first);
    if (!status) status = keel_buffer_reserve(pool, &of_pool, &second);
    if (!status) status = pool_steps(pool, first, second);
    keel_buffer_release(first);
    keel_buffer_release(second);
    keel_pool_release(pool);
    return status;
}

static keel_status_t file_work(const char *path, keel_buffer_t *buffer)
{
    keel_file_t *file;
    KEEL_TRY(
        keel_file_open(device, path, KEEL_FILE_READ | KEEL_FILE_WRITE | KEEL_FILE_CREATE, &file));
    keel_status_t status = run(main_queue, keel_op_write(keel_whole(buffer), file, 0));
    if (!status) status = run(main_queue, keel_op_read(file, 0, keel_whole(buffer)));
    keel_file_release(file);
    return status;
}

static keel_status_t ask(void *user, keel_host_call_t *call)
{
    keel_call_defer(call);
    atomic_store((keel_host_call_t * _Atomic *)user, call);
    return NULL;
}

// The one worker fills after the call has returned.
static keel_status_t call_work(keel_buffer_t *buffer)
{
    keel_host_call_t *_Atomic call = NULL;
    keel_point_t done;
    KEEL_TRY(submit(main_queue, keel_op_host_call(ask, &call), &done));
    KEEL_TRY(run(other_queue, keel_op_fill(keel_whole(buffer), 0, 4)));
    while (!atomic_load(&call)) sched_yield(); // of other devices the call may come later
    keel_trace_mark("completing");
    keel_call_complete(atomic_load(&call), NULL);
    return keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
}

static keel_status_t device_open(void)
{
    KEEL_TRY(keel_device_open(uri, NULL, &device));
    main_queue = keel_device_queue(device, 0);
    return keel_queue_create(device, NULL, &other_queue);
}

static void device_close(void)
{
    keel_queue_release(other_queue);
    keel_device_release(device);
}

// What a child of a fork does: the device of its parent is lost to it.
static keel_status_t child_work(void)
{
    keel_buffer_t *buffer = NULL;
    KEEL_TRY(device_open());
    keel_status_t status =
        keel_buffer_create(device, &(keel_buffer_options_t){.size = SIZE}, &buffer);
    if (!status) status = run(main_queue, keel_op_fill(keel_whole(buffer), 1, 4));
    keel_buffer_release(buffer);
    device_close();
    return status;
}

static int tell(keel_status_t status)
{
    if (!status) return 0;
    keel_status_print(status, stderr);
    keel_status_release(status);
    return 1;
}

static int fork_work(keel_buffer_t *buffer)
{
    int ended;
    pid_t pid = fork();
    if (pid == 0) exit(tell(child_work()));
    if (pid < 0 || waitpid(pid, &ended, 0) != pid || ended) return 1;
    return tell(run(main_queue, keel_op_fill(keel_whole(buffer), 2, 4)));
}

int main(int argc, char **argv)
{
    keel_buffer_t *buffer = NULL;
    if (argc != 2 && argc != 3) return 2;
    bool plain = argc == 2;
    if (!plain) uri = argv[2];
    keel_status_t status = device_open();
    if (!status)
        status = keel_buffer_create(device, &(keel_buffer_options_t){.size = SIZE}, &buffer);
    if (!status && plain) status = pool_work();
    if (!status) status = file_work(argv[1], buffer);
    if (!status) status = call_work(buffer);
    int failed = status || !plain ? tell(status) : fork_work(buffer);
    keel_buffer_release(buffer);
    device_close();
    return failed;
}
