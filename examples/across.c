// SPDX-License-Identifier: Apache-2.0
// Copies between two devices: the processor makes numbers, another device works on them, and the
// processor gets them back. Neither copy needs a buffer in between, and the whole way is submitted
// before its first step runs.
#include <keel/keel.h>
#include <stdio.h>

#include "kernels.h"

enum { COUNT = 1 << 16, SIZE = COUNT * 4 };

typedef struct app_t {
    keel_device_t *cpu, *device;
    keel_executable_t *kernels;
    keel_buffer_t *here, *there; // of the processor, and of the other device
} app_t;

static keel_status_t app_open(app_t *app, const char *uri)
{
    keel_buffer_options_t options = {.size = SIZE};
    KEEL_TRY(keel_device_open("cpu://", NULL, &app->cpu));
    KEEL_TRY(keel_device_open(uri, NULL, &app->device));
    KEEL_TRY(kernels_load(app->device, &app->kernels));
    KEEL_TRY(keel_buffer_create(app->cpu, &options, &app->here));
    return keel_buffer_create(app->device, &options, &app->there);
}

static keel_status_t app_run(app_t *app)
{
    keel_entry_t affine;
    uint32_t k[2] = {2, 1};
    keel_point_t ready, done;
    KEEL_TRY(keel_executable_entry(app->kernels, "affine", &affine));
    KEEL_TRY(keel_queue_run(keel_device_queue(app->cpu, 0), KEEL_NO_WAITS,
                            keel_op_fill(keel_whole(app->here), 20, 4), &ready));
    keel_op_t ops[] = {
        keel_op_copy(keel_whole(app->here), keel_whole(app->there)), // to the other device
        keel_op_barrier(),
        keel_op_dispatch(affine, keel_groups(COUNT / 64, 1, 1), k, sizeof k, KEEL_BIND(app->there)),
        keel_op_barrier(),
        keel_op_copy(keel_whole(app->there), keel_whole(app->here)), // and back
    };
    KEEL_TRY(keel_queue_submit(keel_device_queue(app->device, 0), KEEL_AFTER(ready), ops, 5,
                               KEEL_NO_SIGNALS, &done));
    return keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
}

static keel_status_t app_show(const app_t *app)
{
    uint32_t numbers[2];
    KEEL_TRY(keel_buffer_read(app->here, 0, &numbers[0], 4));
    KEEL_TRY(keel_buffer_read(app->here, SIZE - 4, &numbers[1], 4));
    printf("20 * 2 + 1 = %u ... %u\n", numbers[0], numbers[1]);
    return numbers[0] == 41 && numbers[1] == 41 ? NULL : KEEL_ERROR(KEEL_INTERNAL, "wrong result");
}

static void app_close(app_t *app)
{
    keel_buffer_release(app->here);
    keel_buffer_release(app->there);
    keel_executable_release(app->kernels);
    keel_device_release(app->device);
    keel_device_release(app->cpu);
}

int main(int argc, char **argv)
{
    app_t app = {0};
    keel_status_t status = app_open(&app, argc > 1 ? argv[1] : "cpu://");
    if (!status) status = app_run(&app);
    if (!status) status = app_show(&app);
    app_close(&app);
    if (!status) return 0;
    keel_status_print(status, stderr);
    keel_status_release(status);
    return 1;
}
