// SPDX-License-Identifier: Apache-2.0
// Queue-ordered memory: many tiles go through few scratch buffers, and no thread waits on the way.
// An alloca that finds no room in the pool waits, on the queue, until a dealloca has made some.
//
// One tile fails, since its input is lost. The pipeline survives: the dealloca behind each tile
// waits for the end of its work, however it came (keel_ended).
#include <keel/keel.h>
#include <stdio.h>

#include "kernels.h"

enum { TILE = 16384, TILES = 64, AT_ONCE = 3 }; // elements, tiles, scratch buffers
enum { BROKEN = 20 };                           // the tile that fails

typedef struct app_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_pool_t *pool;
    keel_semaphore_t *input; // of the broken tile: it fails
    keel_buffer_t *result;
    keel_point_t used[TILES]; // the work of each tile
    keel_entry_t affine;
} app_t;

// One tile: scratch = tile number, scratch = scratch * 10 + 7, result[tile] = scratch.
static keel_status_t tile_submit(app_t *app, uint32_t tile)
{
    keel_queue_t *queue = keel_device_queue(app->device, 0);
    keel_buffer_t *scratch;
    keel_point_t ready, *used = &app->used[tile];
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
    keel_point_t waits[] = {ready, keel_point(app->input, 1)};
    keel_status_t status = keel_queue_submit(queue, keel_points(waits, tile == BROKEN ? 2 : 1), ops,
                                             5, KEEL_NO_SIGNALS, used);
    if (!status) status = keel_queue_dealloca(queue, KEEL_AFTER(keel_ended(*used)), scratch, NULL);
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
    KEEL_TRY(keel_semaphore_create(app->device, NULL, &app->input));
    KEEL_TRY(keel_semaphore_fail(app->input, KEEL_ERROR(KEEL_IO, "its input is lost")));
    keel_buffer_options_t result = {
        .size = (uint64_t)TILES * TILE * 4,
        .memory = KEEL_MEMORY_HOST_VISIBLE, // to look at; the scratch buffers are the device's own
    };
    KEEL_TRY(keel_buffer_create(app->device, &result, &app->result));

    for (uint32_t tile = 0; tile < TILES; tile++) KEEL_TRY(tile_submit(app, tile));
    // All that the queue has been given, well or not.
    keel_point_t newest = keel_queue_newest(keel_device_queue(app->device, 0));
    return keel_wait(KEEL_POINTS(keel_ended(keel_up_to(newest))), KEEL_ALL, KEEL_FOREVER);
}

// The points tell which tiles failed.
static keel_status_t tiles_check(app_t *app)
{
    for (uint32_t tile = 0; tile < TILES; tile++) {
        keel_status_t status = keel_wait(KEEL_POINTS(app->used[tile]), KEEL_ALL, 0);
        keel_code_t code = keel_status_code(status);
        if (status) printf("tile %u failed: %s\n", tile, keel_status_message(status));
        keel_status_release(status);
        if (code != (tile == BROKEN ? KEEL_IO : KEEL_OK))
            return KEEL_ERROR(KEEL_INTERNAL, "tile %u ended with %s", tile, keel_code_name(code));
    }
    return NULL;
}

static keel_status_t app_check(app_t *app)
{
    const uint32_t *values;
    KEEL_TRY(keel_buffer_map(app->result, 0, KEEL_WHOLE, KEEL_ACCESS_READ, (void **)&values));
    keel_status_t status = NULL;
    for (uint32_t i = 0; i < TILES * TILE && !status; i++)
        if (i / TILE != BROKEN && values[i] != i / TILE * 10 + 7)
            status = KEEL_ERROR(KEEL_INTERNAL, "element %u is %u", i, values[i]);
    keel_buffer_unmap(app->result);

    keel_pool_stats_t stats;
    keel_pool_stats(app->pool, &stats);
    if (!status && (stats.peak > stats.limit || stats.used))
        status = KEEL_ERROR(KEEL_INTERNAL, "the pool used %llu bytes, and still does %llu",
                            (unsigned long long)stats.peak, (unsigned long long)stats.used);
    if (!status)
        printf("%d tiles of %d KiB went through a pool of %llu KiB, of which %llu were used\n",
               TILES - 1, TILE * 4 / 1024, (unsigned long long)stats.limit / 1024,
               (unsigned long long)stats.peak / 1024);
    return status;
}

int main(int argc, char **argv)
{
    app_t app = {0};
    keel_status_t status = app_run(&app, argc > 1 ? argv[1] : "cpu://");
    if (!status) status = tiles_check(&app);
    if (!status) status = app_check(&app);
    keel_buffer_release(app.result);
    keel_semaphore_release(app.input);
    keel_pool_release(app.pool);
    keel_executable_release(app.kernels);
    keel_device_release(app.device);
    if (status) keel_status_print(status, stderr);
    keel_status_release(status);
    return status ? 1 : 0;
}
