// SPDX-License-Identifier: Apache-2.0
// A kernel that was made elsewhere, by nvcc say, which knows nothing of Keel:
//     nvcc -ptx tests/hardware/card.cu -o card.ptx
//     foreign cuda://0 card.ptx
// Without an image it runs one of the same arguments, from kernels/kernels.c, on any device.
#include <keel/keel.h>
#include <stddef.h>
#include <stdio.h>

#include "kernels.h"

enum { COUNT = 5000, GROUP = 128 };

// The parameters of axpy(float a, const float *x, float *y, int n), laid out as C does.
typedef struct axpy_t {
    float a;
    uint64_t x, y; // addresses: patched in when it runs
    int32_t n;
} axpy_t;

typedef struct app_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_buffer_t *x, *y;
} app_t;

static float x[COUNT], y[COUNT];

static keel_status_t image_load(app_t *app, const char *path)
{
    if (!path) return kernels_load(app->device, &app->kernels);
    keel_executable_options_t options = {.path = path};
    return keel_executable_load(app->device, &options, &app->kernels);
}

static keel_status_t axpy_run(const app_t *app, keel_queue_t *queue, float a, keel_point_t *done)
{
    axpy_t block = {.a = a, .n = COUNT};
    keel_patch_t patches[] = {
        {offsetof(axpy_t, x), keel_whole(app->x)},
        {offsetof(axpy_t, y), keel_whole(app->y)},
    };
    keel_entry_t axpy;
    keel_entry_info_t info;
    KEEL_TRY(keel_executable_entry(app->kernels, "axpy", &axpy));
    KEEL_TRY(keel_entry_info(axpy, &info));
    keel_op_t op = {.kind = KEEL_OP_DISPATCH};
    op.as.dispatch = (keel_dispatch_t){
        .entry = axpy,
        .groups = keel_groups((COUNT + GROUP - 1) / GROUP, 1, 1),
        .group_size = keel_groups(GROUP, 1, 1), // <<<groups, GROUP>>>
        .raw = true,
        .constants = &block,
        .constant_size = info.constants, // nvcc counts no padding at the end
        .patches = patches,
        .patch_count = 2,
    };
    return keel_queue_run(queue, KEEL_NO_WAITS, op, done);
}

static keel_status_t app_run(app_t *app, const char *uri, const char *path)
{
    keel_point_t done;
    KEEL_TRY(keel_device_open(uri, NULL, &app->device));
    KEEL_TRY(image_load(app, path));
    keel_buffer_options_t options = {.size = sizeof x, .memory = KEEL_MEMORY_HOST_VISIBLE};
    KEEL_TRY(keel_buffer_create(app->device, &options, &app->x));
    KEEL_TRY(keel_buffer_create(app->device, &options, &app->y));
    KEEL_TRY(keel_buffer_write(app->x, 0, x, sizeof x));
    KEEL_TRY(keel_buffer_write(app->y, 0, y, sizeof y));
    KEEL_TRY(axpy_run(app, keel_device_queue(app->device, 0), 2, &done));
    KEEL_TRY(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    return keel_buffer_read(app->y, 0, y, sizeof y);
}

int main(int argc, char **argv)
{
    app_t app = {0};
    for (int i = 0; i < COUNT; i++) x[i] = (float)i, y[i] = 1;
    keel_status_t status = app_run(&app, argc > 1 ? argv[1] : "cpu://", argc > 2 ? argv[2] : NULL);
    keel_buffer_release(app.x);
    keel_buffer_release(app.y);
    keel_executable_release(app.kernels);
    keel_device_release(app.device);
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
    printf("axpy over %d elements: y[%d] = %g\n", COUNT, COUNT - 1, (double)y[COUNT - 1]);
    return 0;
}
