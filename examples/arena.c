// SPDX-License-Identifier: Apache-2.0
// An arena that the program plans itself: the tensors of a small network lie where the program
// says, in one buffer. Which tensors live at the same time is known before anything runs, so those
// that do not share memory. The network is recorded once, before any tensor has memory.
#include <keel/keel.h>
#include <stdio.h>

#include "kernels.h"

enum { COUNT = 16384, BYTES = COUNT * 4, LAYERS = 6 };

typedef struct app_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_recording_t *network;
    keel_buffer_t *arena, *result;
    keel_buffer_t *tensors[LAYERS + 1];
} app_t;

// Layer i makes tensor i + 1 of tensor i, so two neighbours live at the same time, and no more:
// even ones lie in the first half of the arena, odd ones in the second.
static keel_ref_t place_of(const app_t *app, int tensor)
{
    return keel_span(app->arena, (uint64_t)(tensor % 2) * BYTES, BYTES);
}

// Tensors belong to a pool for what its buffers are like: usage, memory, node. They take none of
// its memory.
static keel_status_t tensors_reserve(app_t *app)
{
    keel_buffer_options_t options = {.size = BYTES, .name = "tensor"};
    keel_pool_t *pool = keel_device_pool(app->device, 0);
    for (int i = 0; i <= LAYERS; i++)
        KEEL_TRY(keel_buffer_reserve(pool, &options, &app->tensors[i]));
    return NULL;
}

// A layer: copies its input, and computes x * 3 + 1.
static keel_status_t network_record(app_t *app)
{
    keel_entry_t affine;
    KEEL_TRY(keel_executable_entry(app->kernels, "affine", &affine));
    KEEL_TRY(keel_recording_create(app->device, NULL, &app->network));
    for (int i = 0; i < LAYERS; i++) {
        keel_buffer_t *from = app->tensors[i], *to = app->tensors[i + 1];
        uint32_t k[2] = {3, 1};
        keel_op_t layer[] = {
            keel_op_copy(keel_whole(from), keel_whole(to)),
            keel_op_barrier(),
            keel_op_dispatch(affine, keel_groups(COUNT / 64, 1, 1), k, sizeof k, KEEL_BIND(to)),
            keel_op_barrier(),
        };
        KEEL_TRY(keel_recording_add(app->network, layer, 4));
    }
    return keel_recording_end(app->network);
}

// All of a run is one submission: the tensors get their places, the network runs, and they lose
// them.
static keel_status_t network_run(app_t *app, uint32_t input, keel_point_t *done)
{
    keel_op_t ops[2 * (LAYERS + 1) + 7];
    size_t count = 0;
    for (int i = 0; i <= LAYERS; i++)
        ops[count++] = keel_op_alloca_at(app->tensors[i], place_of(app, i));
    ops[count++] = keel_op_barrier();
    ops[count++] = keel_op_fill(keel_whole(app->tensors[0]), input, 4);
    ops[count++] = keel_op_barrier();
    ops[count++] = keel_op_execute(app->network, KEEL_NO_BINDINGS);
    ops[count++] = keel_op_barrier();
    ops[count++] = keel_op_copy(keel_whole(app->tensors[LAYERS]), keel_whole(app->result));
    ops[count++] = keel_op_barrier();
    for (int i = 0; i <= LAYERS; i++) ops[count++] = keel_op_dealloca(app->tensors[i]);
    return keel_queue_submit(keel_device_queue(app->device, 0), KEEL_NO_WAITS, ops, count,
                             KEEL_NO_SIGNALS, done);
}

static keel_status_t app_open(app_t *app, const char *uri)
{
    KEEL_TRY(keel_device_open(uri, NULL, &app->device));
    KEEL_TRY(kernels_load(app->device, &app->kernels));
    keel_buffer_options_t arena = {.size = 2 * BYTES, .name = "arena"};
    KEEL_TRY(keel_buffer_create(app->device, &arena, &app->arena));
    keel_buffer_options_t result = {.size = BYTES, .memory = KEEL_MEMORY_HOST_VISIBLE};
    KEEL_TRY(keel_buffer_create(app->device, &result, &app->result));
    KEEL_TRY(tensors_reserve(app));
    return network_record(app);
}

static keel_status_t app_check(app_t *app, uint32_t input)
{
    uint32_t expected = input, values[COUNT];
    for (int i = 0; i < LAYERS; i++) expected = expected * 3 + 1;
    KEEL_TRY(keel_buffer_read(app->result, 0, values, sizeof values));
    for (uint32_t i = 0; i < COUNT; i++)
        if (values[i] != expected)
            return KEEL_ERROR(KEEL_INTERNAL, "element %u is %u, not %u", i, values[i], expected);
    return NULL;
}

static keel_status_t app_run(app_t *app)
{
    for (uint32_t input = 0; input < 3; input++) {
        keel_point_t done;
        KEEL_TRY(network_run(app, input, &done));
        KEEL_TRY(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
        KEEL_TRY(app_check(app, input));
    }
    printf("%d tensors of %d KiB lay in an arena of %d KiB\n", LAYERS + 1, BYTES / 1024,
           2 * BYTES / 1024);
    return NULL;
}

int main(int argc, char **argv)
{
    app_t app = {0};
    keel_status_t status = app_open(&app, argc > 1 ? argv[1] : "cpu://");
    if (!status) status = app_run(&app);
    for (int i = 0; i <= LAYERS; i++) keel_buffer_release(app.tensors[i]);
    keel_recording_release(app.network);
    keel_buffer_release(app.result);
    keel_buffer_release(app.arena);
    keel_executable_release(app.kernels);
    keel_device_release(app.device);
    if (status) keel_status_print(status, stderr);
    keel_status_release(status);
    return status ? 1 : 0;
}
