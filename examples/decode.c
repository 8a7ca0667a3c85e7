// SPDX-License-Identifier: Apache-2.0
// Parameters: the step of a decode loop, recorded once. Where it writes, what it writes and over
// how many workgroups it looks back come with each execution, and all steps are submitted at once.
#include <keel/keel.h>
#include <stddef.h>
#include <stdio.h>

#include "kernels.h"

enum { STEPS = 300, BYTES = STEPS * 4 };

// What a step needs to know.
typedef struct step_t {
    uint32_t position, token;
    uint32_t groups[3]; // workgroups that look at all positions so far
} step_t;

typedef struct app_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_recording_t *step;
    keel_buffer_t *cache, *sums;
} app_t;

static keel_status_t app_record(app_t *app)
{
    keel_entry_t remember, attend;
    KEEL_TRY(kernels_load(app->device, &app->kernels));
    KEEL_TRY(keel_executable_entry(app->kernels, "remember", &remember));
    KEEL_TRY(keel_executable_entry(app->kernels, "attend", &attend));
    keel_recording_options_t options = {.slots = 2, .name = "step"};
    KEEL_TRY(keel_recording_create(app->device, &options, &app->step));

    // Constants are left out, and patched with parameters when the step runs.
    keel_patch_t token = {0, keel_parameter(offsetof(step_t, position), 8)};
    keel_patch_t position = {0, keel_parameter(offsetof(step_t, position), 4)};
    keel_ref_t cache = keel_slot(0, 0, BYTES), sums = keel_slot(1, 0, BYTES);
    keel_op_t ops[] = {
        keel_op_patched(keel_op_dispatch(remember, keel_groups(1, 1, 1), NULL, 8, KEEL_BIND(cache)),
                        &token, 1),
        keel_op_barrier(),
        keel_op_patched(
            keel_op_dispatch(attend, keel_groups(0, 0, 0), NULL, 4, KEEL_BIND(cache, sums)),
            &position, 1),
    };
    ops[2] =
        keel_op_indirect(ops[2], KEEL_COUNTS_STATIC, keel_parameter(offsetof(step_t, groups), 12));
    KEEL_TRY(keel_recording_add(app->step, ops, 3));
    return keel_recording_end(app->step);
}

static uint32_t token_at(uint32_t position)
{
    return position * 7 % 31;
}

static keel_status_t app_run(app_t *app, const char *uri)
{
    KEEL_TRY(keel_device_open(uri, NULL, &app->device));
    keel_queue_t *queue = keel_device_queue(app->device, 0);
    KEEL_TRY(app_record(app));
    keel_buffer_options_t options = {.size = BYTES};
    KEEL_TRY(keel_buffer_create(app->device, &options, &app->cache));
    options.memory = KEEL_MEMORY_HOST_VISIBLE;
    KEEL_TRY(keel_buffer_create(app->device, &options, &app->sums));

    keel_point_t last;
    KEEL_TRY(keel_queue_fill(queue, KEEL_NO_WAITS, keel_whole(app->sums), 0, 4, &last));
    for (uint32_t i = 0; i < STEPS; i++) {
        step_t step = {i, token_at(i), {i / 64 + 1, 1, 1}}; // copied, so it may go
        keel_op_t op =
            keel_op_execute_with(app->step, KEEL_BIND(app->cache, app->sums), &step, sizeof step);
        KEEL_TRY(keel_queue_run(queue, KEEL_AFTER(last), op, &last));
    }
    return keel_wait(KEEL_POINTS(last), KEEL_ALL, KEEL_FOREVER);
}

static keel_status_t app_check(app_t *app)
{
    uint32_t sums[STEPS], plain = 0, expected = 0;
    KEEL_TRY(keel_buffer_read(app->sums, 0, sums, sizeof sums));
    for (uint32_t i = 0; i < STEPS; i++) {
        plain += token_at(i);
        expected += plain; // each token so far counts once more
        if (sums[i] != expected)
            return KEEL_ERROR(KEEL_INTERNAL, "step %u made %u, not %u", i, sums[i], expected);
    }
    printf("one recording, %d steps, the last one over %u positions: %u\n", STEPS, STEPS,
           sums[STEPS - 1]);
    return NULL;
}

int main(int argc, char **argv)
{
    app_t app = {0};
    keel_status_t status = app_run(&app, argc > 1 ? argv[1] : "cpu://");
    if (!status) status = app_check(&app);
    keel_buffer_release(app.sums);
    keel_buffer_release(app.cache);
    keel_recording_release(app.step);
    keel_executable_release(app.kernels);
    keel_device_release(app.device);
    if (status) keel_status_print(status, stderr);
    keel_status_release(status);
    return status ? 1 : 0;
}
