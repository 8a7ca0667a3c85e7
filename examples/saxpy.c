// SPDX-License-Identifier: Apache-2.0
// y = a * x + y, from opening a device to checking the result. The README shows this file.
#include <keel/keel.h>
#include <stdio.h>

#include "kernels.h"

enum { COUNT = 1 << 16 };

typedef struct app_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_buffer_t *x, *y, *result;
} app_t;

static float x[COUNT], y[COUNT];

static keel_status_t app_run(app_t *app, const char *uri)
{
    KEEL_TRY(keel_device_open(uri, NULL, &app->device));
    keel_queue_t *queue = keel_device_queue(app->device, 0);

    keel_entry_t saxpy;
    KEEL_TRY(kernels_load(app->device, &app->kernels));
    KEEL_TRY(keel_executable_entry(app->kernels, "saxpy", &saxpy));

    // Two buffers that the queue allocates: usable at once, real when the queue gets there. The
    // memory is the device's own; the result is copied to some that the host can read.
    keel_point_t ready[2], done;
    KEEL_TRY(keel_queue_alloca(queue, NULL, sizeof x, &app->x, &ready[0]));
    KEEL_TRY(keel_queue_alloca(queue, NULL, sizeof y, &app->y, &ready[1]));
    keel_buffer_options_t readable = {.size = sizeof y, .memory = KEEL_MEMORY_HOST_VISIBLE};
    KEEL_TRY(keel_buffer_create(app->device, &readable, &app->result));

    // Operations are data. Those between two barriers may run at the same time.
    float a = 2;
    keel_op_t ops[] = {
        keel_op_update(keel_span(app->x, 0, sizeof x), x),
        keel_op_fill(keel_whole(app->y), 0x3f800000, 4), // 1.0f
        keel_op_barrier(),
        keel_op_dispatch(saxpy, keel_groups(COUNT / 64, 1, 1), &a, sizeof a,
                         KEEL_BIND(app->x, app->y)),
        keel_op_barrier(),
        keel_op_copy(keel_whole(app->y), keel_whole(app->result)),
    };
    KEEL_TRY(keel_queue_submit(queue, keel_points(ready, 2), ops, 6, KEEL_NO_SIGNALS, &done));
    // An error says what, where and why.
    KEEL_TRY(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    return keel_buffer_read(app->result, 0, y, sizeof y);
}

static void app_finish(app_t *app) // also after a failure half way: releasing NULL is fine
{
    keel_buffer_release(app->x);
    keel_buffer_release(app->y);
    keel_buffer_release(app->result);
    keel_executable_release(app->kernels);
    keel_device_release(app->device);
}

int main(int argc, char **argv)
{
    app_t app = {0};
    for (int i = 0; i < COUNT; i++) x[i] = (float)i;
    keel_status_t status = app_run(&app, argc > 1 ? argv[1] : "cpu://");
    app_finish(&app);
    if (status) {
        keel_status_print(status, stderr);
        keel_status_release(status);
        return 1;
    }
    for (int i = 0; i < COUNT; i++) {
        if (y[i] == 2 * x[i] + 1) continue;
        printf("y[%d] is %g and should be %g\n", i, (double)y[i], (double)(2 * x[i] + 1));
        return 1;
    }
    printf("y = 2 x + 1 for %d elements: y[%d] = %g\n", COUNT, COUNT - 1, (double)y[COUNT - 1]);
    return 0;
}
