// SPDX-License-Identifier: Apache-2.0
// loses PATH: loads the toy, which loses its device with the second command, and looks at all that
// has to end then.
#include <string.h>

#include "try.h"

static keel_status_t expect_lost(const char *what, keel_status_t status)
{
    keel_code_t code = keel_status_code(status);
    keel_status_release(status);
    return code == KEEL_DEVICE_LOST
               ? NULL
               : KEEL_ERROR(KEEL_INTERNAL, "%s: %s", what, keel_code_name(code));
}

static keel_status_t wait_for(keel_point_t point)
{
    return keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER);
}

// One buffer has the whole pool, and its dealloca waits; another's alloca waits for that.
static keel_status_t starve(keel_device_t *device, keel_semaphore_t *gate, keel_point_t *starved)
{
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_pool_t *pool;
    keel_buffer_t *has, *wants;
    keel_point_t ready;
    keel_buffer_options_t options = {.size = 4096};
    KEEL_TRY(keel_pool_create(device, &(keel_pool_options_t){.limit = 4096}, &pool));
    KEEL_TRY(keel_buffer_reserve(pool, &options, &has));
    KEEL_TRY(keel_buffer_reserve(pool, &options, &wants));
    KEEL_TRY(keel_queue_run(queue, KEEL_NO_WAITS, keel_op_alloca(has), &ready));
    KEEL_TRY(wait_for(ready));
    KEEL_TRY(keel_queue_dealloca(queue, KEEL_AFTER(keel_point(gate, 1)), has, NULL));
    KEEL_TRY(keel_queue_run(queue, KEEL_NO_WAITS, keel_op_alloca(wants), starved));
    keel_buffer_release(has);
    keel_buffer_release(wants);
    keel_pool_release(pool);
    return NULL;
}

static keel_status_t lose(keel_device_t *device)
{
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_semaphore_t *gate;
    keel_buffer_t *x;
    keel_point_t first, second, behind, later, starved;
    KEEL_TRY(keel_semaphore_create(device, NULL, &gate));
    KEEL_TRY(keel_buffer_create(device, &(keel_buffer_options_t){.size = 64}, &x));
    KEEL_TRY(starve(device, gate, &starved));
    keel_op_t fill = keel_op_fill(keel_whole(x), 7, 1);
    KEEL_TRY(keel_queue_run(queue, KEEL_NO_WAITS, fill, &first));
    KEEL_TRY(wait_for(first));
    KEEL_TRY(keel_queue_run(queue, KEEL_AFTER(keel_point(gate, 1)), fill, &behind));
    KEEL_TRY(keel_queue_run(queue, KEEL_NO_WAITS, fill, &second));
    KEEL_TRY(expect_lost("the command that loses it", wait_for(second)));
    KEEL_TRY(expect_lost("what waits", wait_for(behind)));
    KEEL_TRY(expect_lost("a semaphore of the device", wait_for(keel_point(gate, 1))));
    keel_status_t status = wait_for(starved);
    if (!status) return KEEL_ERROR(KEEL_INTERNAL, "an alloca got memory that was never given back");
    keel_status_release(status);
    KEEL_TRY(keel_queue_run(queue, KEEL_NO_WAITS, fill, &later));
    KEEL_TRY(expect_lost("what comes later", wait_for(later)));
    keel_buffer_release(x);
    keel_semaphore_release(gate);
    return NULL;
}

static keel_status_t run(const char *path)
{
    keel_device_t *device;
    KEEL_TRY(keel_driver_load(path));
    KEEL_TRY(keel_device_open("toy://?lose=2", NULL, &device));
    keel_status_t status = lose(device);
    keel_device_release(device);
    return status;
}

int main(int argc, char **argv)
{
    keel_live_t live, none = {0};
    int failed = argc == 2 ? try_end(run(argv[1])) : 2;
    keel_live_objects(&live);
    return failed ? failed : memcmp(&live, &none, sizeof live) ? 3 : 0;
}
