// SPDX-License-Identifier: Apache-2.0
// A recording with slots: recorded and checked once, executed with other buffers each time.
#include <keel/keel.h>
#include <stdio.h>

#include "kernels.h"

enum { COUNT = 4096, BUFFERS = 4 };

typedef struct app_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_recording_t *recording;
    keel_buffer_t *buffers[BUFFERS];
} app_t;

// slot 1 = (slot 0) * 3 + 1
static keel_status_t app_record(app_t *app)
{
    keel_entry_t affine;
    KEEL_TRY(kernels_load(app->device, &app->kernels));
    KEEL_TRY(keel_executable_entry(app->kernels, "affine", &affine));
    keel_recording_options_t options = {.slots = 2, .name = "triple and one"};
    KEEL_TRY(keel_recording_create(app->device, &options, &app->recording));

    keel_ref_t in = keel_slot(0, 0, COUNT * 4), out = keel_slot(1, 0, COUNT * 4);
    uint32_t k[2] = {3, 1}; // constants are copied, so these may go
    keel_op_t ops[] = {
        keel_op_copy(in, out),
        keel_op_barrier(),
        keel_op_dispatch(affine, keel_groups(COUNT / 64, 1, 1), k, sizeof k, KEEL_BIND(out)),
    };
    KEEL_TRY(keel_recording_add(app->recording, ops, 3));
    KEEL_TRY(keel_recording_end(app->recording));
    // Not needed, but it moves the device's translation out of the first execution.
    return keel_recording_prepare(app->recording, keel_device_queue(app->device, 0));
}

static keel_status_t app_run(app_t *app, const char *uri)
{
    KEEL_TRY(keel_device_open(uri, NULL, &app->device));
    keel_queue_t *queue = keel_device_queue(app->device, 0);
    KEEL_TRY(app_record(app));
    // The host is to read them all; memory of the device's own is faster for the device.
    keel_buffer_options_t options = {.size = COUNT * 4, .memory = KEEL_MEMORY_HOST_VISIBLE};
    for (int i = 0; i < BUFFERS; i++)
        KEEL_TRY(keel_buffer_create(app->device, &options, &app->buffers[i]));
    keel_buffer_t **b = app->buffers;

    // From 0 to 1 and from there to 2, in order; and beside that from 0 to 3.
    keel_point_t filled, done[3];
    KEEL_TRY(keel_queue_fill(queue, KEEL_NO_WAITS, keel_whole(b[0]), 5, 4, &filled));
    KEEL_TRY(keel_queue_execute(queue, KEEL_AFTER(filled), app->recording, KEEL_BIND(b[0], b[1]),
                                &done[0]));
    KEEL_TRY(keel_queue_execute(queue, KEEL_AFTER(done[0]), app->recording, KEEL_BIND(b[1], b[2]),
                                &done[1]));
    KEEL_TRY(keel_queue_execute(queue, KEEL_AFTER(filled), app->recording, KEEL_BIND(b[0], b[3]),
                                &done[2]));
    return keel_wait(keel_points(done, 3), KEEL_ALL, KEEL_FOREVER);
}

static keel_status_t app_check(app_t *app)
{
    static const uint32_t expected[BUFFERS] = {5, 16, 49, 16};
    for (int i = 0; i < BUFFERS; i++) {
        uint32_t values[COUNT];
        KEEL_TRY(keel_buffer_read(app->buffers[i], 0, values, sizeof values));
        for (int j = 0; j < COUNT; j++)
            if (values[j] != expected[i])
                return KEEL_ERROR(KEEL_INTERNAL, "buffer %d holds %u at %d, not %u", i, values[j],
                                  j, expected[i]);
        printf("buffer %d: %u throughout\n", i, expected[i]);
    }
    printf("one recording of %zu commands, executed 3 times with 3 binding tables\n",
           keel_recording_count(app->recording));
    return NULL;
}

int main(int argc, char **argv)
{
    app_t app = {0};
    keel_status_t status = app_run(&app, argc > 1 ? argv[1] : "cpu://");
    if (!status) status = app_check(&app);
    for (int i = 0; i < BUFFERS; i++) keel_buffer_release(app.buffers[i]);
    keel_recording_release(app.recording);
    keel_executable_release(app.kernels);
    keel_device_release(app.device);
    if (status) keel_status_print(status, stderr);
    keel_status_release(status);
    return status ? 1 : 0;
}
