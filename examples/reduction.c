// SPDX-License-Identifier: Apache-2.0
// A sum over a million numbers by workgroups, on any device: the kernel is "sum" of
// kernels/kernels.c, compiled by keel cc for all of them.
#include <keel/keel.h>
#include <math.h>
#include <stdio.h>

#include "kernels.h"

enum { COUNT = 1000000, GROUP = 256 };

typedef struct app_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_buffer_t *x, *sums, *more, *total;
} app_t;

static float numbers[COUNT];

// Sums of groups, then sums of those, until one is left.
static keel_status_t app_run(app_t *app, const char *uri, float *total)
{
    KEEL_TRY(keel_device_open(uri, NULL, &app->device));
    keel_queue_t *queue = keel_device_queue(app->device, 0);
    keel_entry_t sum;
    KEEL_TRY(kernels_load(app->device, &app->kernels));
    KEEL_TRY(keel_executable_entry(app->kernels, "sum", &sum));
    keel_buffer_options_t options = {.size = sizeof numbers};
    KEEL_TRY(keel_buffer_create(app->device, &options, &app->x));
    KEEL_TRY(keel_buffer_create(app->device, &options, &app->sums));
    KEEL_TRY(keel_buffer_create(app->device, &options, &app->more));
    keel_buffer_options_t readable = {.size = sizeof *total, .memory = KEEL_MEMORY_HOST_VISIBLE};
    KEEL_TRY(keel_buffer_create(app->device, &readable, &app->total));

    keel_point_t done; // of the last step, for which the next one waits
    keel_op_t update = keel_op_update(keel_span(app->x, 0, sizeof numbers), numbers);
    KEEL_TRY(keel_queue_run(queue, KEEL_NO_WAITS, update, &done));
    keel_buffer_t *from = app->x, *to = app->sums;
    for (uint32_t count = COUNT; count > 1;) {
        uint32_t groups = (count + GROUP - 1) / GROUP;
        keel_ref_t bindings[] = {keel_span(from, 0, count * 4), keel_span(to, 0, groups * 4)};
        keel_op_t op =
            keel_op_dispatch(sum, keel_groups(groups, 1, 1), NULL, 0, keel_refs(bindings, 2));
        KEEL_TRY(keel_queue_run(queue, KEEL_AFTER(done), op, &done));
        from = to;
        to = to == app->sums ? app->more : app->sums;
        count = groups;
    }
    KEEL_TRY(keel_queue_copy(queue, KEEL_AFTER(done), keel_span(from, 0, sizeof *total),
                             keel_whole(app->total), &done));
    KEEL_TRY(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    return keel_buffer_read(app->total, 0, total, sizeof *total);
}

static void app_finish(app_t *app)
{
    keel_buffer_release(app->x);
    keel_buffer_release(app->sums);
    keel_buffer_release(app->more);
    keel_buffer_release(app->total);
    keel_executable_release(app->kernels);
    keel_device_release(app->device);
}

int main(int argc, char **argv)
{
    app_t app = {0};
    double exact = 0;
    float total = 0;
    for (int i = 0; i < COUNT; i++) exact += numbers[i] = (float)(i % 1000) / 1000;
    keel_status_t status = app_run(&app, argc > 1 ? argv[1] : "cpu://", &total);
    app_finish(&app);
    if (status) {
        keel_status_print(status, stderr);
        keel_status_release(status);
        return 1;
    }
    printf("the sum of %d numbers is %.2f, in double precision %.2f\n", COUNT, (double)total,
           exact);
    return fabs(total - exact) > exact * 1e-6;
}
