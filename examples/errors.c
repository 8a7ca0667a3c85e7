// SPDX-License-Identifier: Apache-2.0
// Errors: at the call for what is wrong at once, on the points for what goes wrong later.
#include <keel/keel.h>
#include <stdio.h>
#include <string.h>

#include "kernels.h"

typedef struct app_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_queue_t *front, *back;
    keel_semaphore_t *ready;
    keel_recording_t *step;
    keel_buffer_t *x, *empty;
    int wrong;
} app_t;

// Shows an error (consumed) that is to have this code and to say this somewhere.
static void expect(app_t *app, const char *when, keel_status_t status, keel_code_t code,
                   const char *words)
{
    char text[1024];
    keel_status_format(status, text, sizeof text);
    printf("%s\n  %s\n", when, text);
    if (keel_status_code(status) != code || !strstr(text, words)) {
        printf("  but %s with '%s' was to be expected\n", keel_code_name(code), words);
        app->wrong = 1;
    }
    keel_status_release(status);
}

static keel_status_t app_open(app_t *app, const char *uri)
{
    KEEL_TRY(keel_device_open(uri, NULL, &app->device));
    KEEL_TRY(keel_queue_create(app->device, &(keel_queue_options_t){.name = "front"}, &app->front));
    KEEL_TRY(keel_queue_create(app->device, &(keel_queue_options_t){.name = "back"}, &app->back));
    KEEL_TRY(keel_semaphore_create(app->device, NULL, &app->ready));
    KEEL_TRY(keel_buffer_create(app->device, &(keel_buffer_options_t){.size = 64}, &app->x));

    // A buffer that would get its memory on a queue, by an alloca, which this program forgets.
    keel_buffer_options_t empty = {.size = 64, .name = "empty"};
    KEEL_TRY(keel_buffer_reserve(keel_device_pool(app->device, 0), &empty, &app->empty));
    keel_recording_options_t options = {.name = "step"};
    keel_op_t ops[] = {
        keel_op_group_begin("decode"),
        keel_op_fill(keel_whole(app->empty), 0, 1),
        keel_op_group_end(),
    };
    KEEL_TRY(keel_recording_create(app->device, &options, &app->step));
    KEEL_TRY(keel_recording_add(app->step, ops, 3));
    return keel_recording_end(app->step);
}

static keel_status_t app_run(app_t *app)
{
    expect(app, "a pattern of 3 bytes is refused by the call:",
           keel_queue_fill(app->front, KEEL_NO_WAITS, keel_whole(app->x), 0, 3, NULL),
           KEEL_INVALID_ARGUMENT, "pattern_size is 3; it must be 1, 2 or 4");

    // `back` waits for what `front` is going to signal, and `front` fails.
    keel_point_t ready = keel_point(app->ready, 1), after, beside;
    keel_op_t step = keel_op_execute(app->step, KEEL_NO_BINDINGS);
    KEEL_TRY(keel_queue_fill(app->back, KEEL_AFTER(ready), keel_whole(app->x), 1, 1, &after));
    KEEL_TRY(keel_queue_submit(app->front, KEEL_NO_WAITS, &step, 1, KEEL_SIGNAL(ready), NULL));
    KEEL_TRY(keel_queue_fill(app->back, KEEL_NO_WAITS, keel_whole(app->x), 2, 1, &beside));
    expect(app, "work fails, and with it what waits for it, naming the cause:",
           keel_wait(KEEL_POINTS(after), KEEL_ALL, KEEL_FOREVER), KEEL_FAILED_PRECONDITION,
           "(execute 'step') > group 'decode'");
    expect(app, "the semaphore stays failed:", keel_semaphore_signal(app->ready, 2),
           KEEL_FAILED_PRECONDITION, "buffer 'empty' has no memory");
    return keel_wait(KEEL_POINTS(beside), KEEL_ALL, KEEL_FOREVER); // nothing to do with it: reached
}

// Where kernels may be functions of the host's, they can say themselves that something is wrong.
static keel_status_t kernel_run(app_t *app)
{
    if (!(keel_device_caps(app->device)->bits & KEEL_CAP_KERNEL_STATUS)) return NULL;
    keel_entry_t picky;
    uint32_t which = 3;
    keel_point_t done;
    KEEL_TRY(host_kernels_load(app->device, &app->kernels));
    KEEL_TRY(keel_executable_entry(app->kernels, "picky", &picky));
    keel_op_t op = keel_op_dispatch(picky, keel_groups(8, 1, 1), &which, 4, KEEL_NO_BINDINGS);
    KEEL_TRY(keel_queue_run(app->front, KEEL_NO_WAITS, op, &done));
    expect(app, "a kernel fails:", keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER),
           KEEL_ABORTED, "returned 42 in workgroup (3, 0, 0)");
    return NULL;
}

int main(int argc, char **argv)
{
    app_t app = {0};
    keel_status_t status = app_open(&app, argc > 1 ? argv[1] : "cpu://");
    if (!status) status = app_run(&app);
    if (!status) status = kernel_run(&app);
    if (status) keel_status_print(status, stderr);
    keel_buffer_release(app.x);
    keel_buffer_release(app.empty);
    keel_recording_release(app.step);
    keel_semaphore_release(app.ready);
    keel_queue_release(app.front);
    keel_queue_release(app.back);
    keel_executable_release(app.kernels);
    keel_device_release(app.device);
    keel_status_release(status);
    return status || app.wrong;
}
