// SPDX-License-Identifier: Apache-2.0
// A relay over one semaphore, in all four directions. Everybody waits before anybody signals.
//
//     main -> queue a -> queue b -> another thread -> main
//          1          2          3                 4
#include <keel/keel.h>
#include <pthread.h>
#include <stdio.h>

#include "kernels.h"

enum { COUNT = 64 };

typedef struct app_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_queue_t *a, *b;
    keel_semaphore_t *baton;
    keel_buffer_t *x;
    keel_status_t thread_status;
} app_t;

// Submits x = x * by + plus, to run when the baton has come to `value`, and to pass it on.
static keel_status_t leg_submit(app_t *app, keel_queue_t *queue, uint64_t value,
                                const uint32_t k[2])
{
    keel_entry_t affine;
    KEEL_TRY(keel_executable_entry(app->kernels, "affine", &affine));
    keel_op_t op = keel_op_dispatch(affine, keel_groups(1, 1, 1), k, 8, KEEL_BIND(app->x));
    return keel_queue_submit(queue, KEEL_AFTER(keel_point(app->baton, value)), &op, 1,
                             KEEL_SIGNAL(keel_point(app->baton, value + 1)), NULL);
}

static void *thread_main(void *user)
{
    app_t *app = user;
    keel_point_t mine = keel_point(app->baton, 3);
    app->thread_status = keel_wait(KEEL_POINTS(mine), KEEL_ALL, KEEL_FOREVER);
    if (!app->thread_status) app->thread_status = keel_semaphore_signal(app->baton, 4);
    return NULL;
}

static keel_status_t app_open(app_t *app, const char *uri)
{
    KEEL_TRY(keel_device_open(uri, NULL, &app->device));
    KEEL_TRY(kernels_load(app->device, &app->kernels));
    KEEL_TRY(keel_queue_create(app->device, &(keel_queue_options_t){.name = "a"}, &app->a));
    KEEL_TRY(keel_queue_create(app->device, &(keel_queue_options_t){.name = "b"}, &app->b));
    KEEL_TRY(keel_semaphore_create(app->device, NULL, &app->baton));
    // In memory that the host reaches too: it writes what x begins with, and reads what comes out.
    keel_buffer_options_t options = {.size = COUNT * 4, .memory = KEEL_MEMORY_HOST_VISIBLE};
    const uint32_t zeros[COUNT] = {0};
    KEEL_TRY(keel_buffer_create(app->device, &options, &app->x));
    return keel_buffer_write(app->x, 0, zeros, sizeof zeros);
}

static keel_status_t app_run(app_t *app)
{
    const uint32_t first[2] = {1, 4}, second[2] = {10, 2};
    KEEL_TRY(leg_submit(app, app->b, 2, second)); // the later one first: only points order
    KEEL_TRY(leg_submit(app, app->a, 1, first));

    keel_point_t home = keel_point(app->baton, 4);
    keel_status_t early = keel_wait(KEEL_POINTS(home), KEEL_ALL, 0); // a timeout of 0 asks
    printf("before the start: %s\n", keel_code_name(keel_status_code(early)));
    keel_status_release(early);
    KEEL_TRY(keel_semaphore_signal(app->baton, 1));
    return keel_wait(KEEL_POINTS(home), KEEL_ALL, KEEL_FOREVER);
}

int main(int argc, char **argv)
{
    app_t app = {0};
    uint32_t x[COUNT] = {0};
    keel_status_t status = app_open(&app, argc > 1 ? argv[1] : "cpu://");
    pthread_t thread;
    bool started = !status && pthread_create(&thread, NULL, thread_main, &app) == 0;
    if (started) status = app_run(&app);
    if (status && app.baton)
        keel_status_release(keel_semaphore_fail(app.baton, keel_status_retain(status)));
    if (started) pthread_join(thread, NULL);
    if (!status) status = keel_buffer_read(app.x, 0, x, sizeof x);
    if (!status) printf("after the relay: x = (0 + 4) * 10 + 2 = %u\n", x[COUNT - 1]);
    if (status) keel_status_print(status, stderr);
    keel_status_release(status);
    keel_status_release(app.thread_status);
    keel_buffer_release(app.x);
    keel_semaphore_release(app.baton);
    keel_queue_release(app.a);
    keel_queue_release(app.b);
    keel_executable_release(app.kernels);
    keel_device_release(app.device);
    return x[0] == 42 && x[COUNT - 1] == 42 ? 0 : 1;
}
