// SPDX-License-Identifier: Apache-2.0
// Queue-ordered memory: many tiles go through few scratch buffers, and no thread waits on the way.
// An alloca that finds no room in the pool waits, on the queue, until a dealloca has made some.
#include <keel/keel.h>
#include <stdio.h>

#include "kernels.h"

enum { TILE = 16384, TILES = 64, AT_ONCE = 3 }; // elements, tiles, scratch buffers

typedef struct app_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_pool_t *pool;
    keel_buffer_t *result;
    keel_entry_t affine;
} app_t;

// One tile: scratch = tile number, scratch = scratch * 10 + 7, result[tile] = scratch.
static keel_status_t tile_submit(app_t *app, uint32_t tile, keel_point_t *done)
{
    keel_queue_t *queue = keel_device_queue(app->device, 0);
    keel_buffer_t *scratch;
    keel_point_t ready, used;
    KEEL_TRY(keel_queue_alloca(queue, app->pool, TILE * 4, &scratch, &ready));

    uint32_t k[2] = {10, 7};
    keel_op_t ops[] = {
        keel_op_fill(keel_whole(scratch), tile, 4),
        keel_op_barrier(),
        keel_op_dispatch(app->affine, keel_groups(TILE / 64, 1, 1), k, sizeof k,
                         KEEL_BIND(scratch)),
        keel_op_barrier(),
        keel_op_copy(keel_whole(scratch), keel_span(app->result, tile * TILE * 4, TILE * 4)),
    };
    keel_status_t status =
        keel_queue_submit(queue, KEEL_AFTER(ready), ops, 5, KEEL_NO_SIGNALS, &used);
    if (!status) status = keel_queue_dealloca(queue, KEEL_AFTER(used), scratch, done);
    keel_buffer_release(scratch); // what is in flight has references of its own
    return status;
}

static keel_status_t app_run(app_t *app, const char *uri)
{
    KEEL_TRY(keel_device_open(uri, NULL, &app->device));
    KEEL_TRY(kernels_load(app->device, &app->kernels));
    KEEL_TRY(keel_executable_entry(app->kernels, "affine", &app->affine));
    keel_pool_options_t pool = {.limit = AT_ONCE * TILE * 4, .name = "scratch"};
    KEEL_TRY(keel_pool_create(app->device, &pool, &app->pool));
    keel_buffer_options_t result = {
        .size = (uint64_t)TILES * TILE * 4,
        .memory = KEEL_MEMORY_HOST_VISIBLE, // to look at; the scratch buffers are the device's own
    };
    KEEL_TRY(keel_buffer_create(app->device, &result, &app->result));

    keel_point_t done[TILES];
    for (uint32_t tile = 0; tile < TILES; tile++) KEEL_TRY(tile_submit(app, tile, &done[tile]));
    return keel_wait(keel_points(done, TILES), KEEL_ALL, KEEL_FOREVER);
}

static keel_status_t app_check(app_t *app)
{
    const uint32_t *values;
    KEEL_TRY(keel_buffer_map(app->result, 0, KEEL_WHOLE, KEEL_ACCESS_READ, (void **)&values));
    keel_status_t status = NULL;
    for (uint32_t i = 0; i < TILES * TILE && !status; i++)
        if (values[i] != i / TILE * 10 + 7)
            status = KEEL_ERROR(KEEL_INTERNAL, "element %u is %u", i, values[i]);
    keel_buffer_unmap(app->result);

    keel_pool_stats_t stats;
    keel_pool_stats(app->pool, &stats);
    if (!status && (stats.peak > stats.limit || stats.used))
        status = KEEL_ERROR(KEEL_INTERNAL, "the pool used %llu bytes, and still does %llu",
                            (unsigned long long)stats.peak, (unsigned long long)stats.used);
    if (!status)
        printf("%d tiles of %d KiB went through a pool of %llu KiB, of which %llu were used\n",
               TILES, TILE * 4 / 1024, (unsigned long long)stats.limit / 1024,
               (unsigned long long)stats.peak / 1024);
    return status;
}

int main(int argc, char **argv)
{
    app_t app = {0};
    keel_status_t status = app_run(&app, argc > 1 ? argv[1] : "cpu://");
    if (!status) status = app_check(&app);
    keel_buffer_release(app.result);
    keel_pool_release(app.pool);
    keel_executable_release(app.kernels);
    keel_device_release(app.device);
    if (status) keel_status_print(status, stderr);
    keel_status_release(status);
    return status ? 1 : 0;
}
