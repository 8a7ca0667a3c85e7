// SPDX-License-Identifier: Apache-2.0
// Two devices work on the same memory in turns. Any queue of any device may wait for any semaphore,
// so the whole dance is submitted before its first step runs.
#include <keel/keel.h>
#include <stdio.h>

#include "kernels.h"

enum { COUNT = 256, ROUNDS = 3, DEVICES = 2 };

typedef struct partner_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_buffer_t *memory;
} partner_t;

typedef struct app_t {
    partner_t partners[DEVICES];
    keel_semaphore_t *turn; // of the first device
    uint32_t memory[COUNT];
} app_t;

static keel_status_t partner_open(partner_t *partner, const char *uri, uint32_t *memory)
{
    KEEL_TRY(keel_device_open(uri, NULL, &partner->device));
    KEEL_TRY(kernels_load(partner->device, &partner->kernels));
    // Each device sees the application's array as a buffer of its own. Nothing is copied.
    keel_external_buffer_t array = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = memory, .size = COUNT * sizeof *memory};
    return keel_buffer_import(partner->device, &array, NULL, &partner->memory);
}

// When it is turn `value`: memory = memory * by + 1. Then it is the next one's.
static keel_status_t step_submit(app_t *app, partner_t *partner, uint64_t value, uint32_t by)
{
    keel_entry_t affine;
    uint32_t k[2] = {by, 1};
    KEEL_TRY(keel_executable_entry(partner->kernels, "affine", &affine));
    keel_op_t op = keel_op_dispatch(affine, keel_groups(COUNT / 64, 1, 1), k, sizeof k,
                                    KEEL_BIND(partner->memory));
    return keel_queue_submit(keel_device_queue(partner->device, 0),
                             KEEL_AFTER(keel_point(app->turn, value)), &op, 1,
                             KEEL_SIGNAL(keel_point(app->turn, value + 1)), NULL);
}

static keel_status_t app_run(app_t *app, const char *uri)
{
    KEEL_TRY(partner_open(&app->partners[0], uri, app->memory));
    KEEL_TRY(partner_open(&app->partners[1], "cpu://inline", app->memory));
    KEEL_TRY(keel_semaphore_create(app->partners[0].device, NULL, &app->turn));

    for (uint64_t turn = 2 * ROUNDS; turn > 0; turn--) { // the last step first, to show that it can
        unsigned who = turn % 2 ? 0 : 1;
        KEEL_TRY(step_submit(app, &app->partners[who], turn, who ? 3 : 2));
    }
    KEEL_TRY(keel_semaphore_signal(app->turn, 1)); // go
    keel_point_t end = keel_point(app->turn, 2 * ROUNDS + 1);
    return keel_wait(KEEL_POINTS(end), KEEL_ALL, KEEL_FOREVER);
}

static keel_status_t app_check(const app_t *app)
{
    uint32_t expected = 0;
    for (int round = 0; round < ROUNDS; round++) expected = (expected * 2 + 1) * 3 + 1;
    for (int i = 0; i < COUNT; i++)
        if (app->memory[i] != expected)
            return KEEL_ERROR(KEEL_INTERNAL, "memory[%d] is %u, not %u", i, app->memory[i],
                              expected);
    printf("%d rounds of (x * 2 + 1) on %s and (x * 3 + 1) on %s: %u\n", ROUNDS,
           keel_device_info(app->partners[0].device)->name,
           keel_device_info(app->partners[1].device)->name, expected);
    return NULL;
}

int main(int argc, char **argv)
{
    app_t app = {0};
    keel_status_t status = app_run(&app, argc > 1 ? argv[1] : "cpu://");
    if (!status) status = app_check(&app);
    keel_semaphore_release(app.turn);
    for (int i = 0; i < DEVICES; i++) {
        keel_buffer_release(app.partners[i].memory);
        keel_executable_release(app.partners[i].kernels);
        keel_device_release(app.partners[i].device);
    }
    if (status) keel_status_print(status, stderr);
    keel_status_release(status);
    return status ? 1 : 0;
}
