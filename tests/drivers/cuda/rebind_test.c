// SPDX-License-Identifier: Apache-2.0
// How often a graph is made for a recording whose slots change, on the CUDA driver in software,
// which cannot make the fourth and the sixth.
#include <stdlib.h>
#include <string.h>

#include "drivers/cuda/device.h"
#include "drivers/stream/run/launch.h"

enum { SIZE = 4096, ROUNDS = 12 };

static keel_device_t *device;

static int setup(void **state)
{
    (void)state;
    char faults[128];
    // Of each kind some are made with the device, for launches.
    const int own = LAUNCH_GRAPHS + LAUNCH_ROOM;
    snprintf(faults, sizeof faults,
             "leaks=2,fail=cuGraphInstantiateWithFlags:%d:2,fail=cuGraphCreate:%d:2", own + 4,
             own + 6);
    setenv("KEEL_SIM_CUDA", faults, 1);
    device = device_open("");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    keel_device_release(device);
    return 0;
}

typedef struct work_t {
    keel_recording_t *recording;
    keel_buffer_t *buffers[3]; // memory of the device, of the host, and the host's for results
} work_t;

static void work_init(work_t *work)
{
    keel_recording_options_t options = {.slots = 2};
    keel_op_t ops[] = {keel_op_fill(keel_slot(0, 0, KEEL_WHOLE), 0x01010101, 1), keel_op_barrier(),
                       keel_op_copy(keel_slot(0, 0, KEEL_WHOLE), keel_slot(1, 0, KEEL_WHOLE))};
    assert_null(keel_recording_create(device, &options, &work->recording));
    assert_null(keel_recording_add(work->recording, ops, 3));
    assert_null(keel_recording_end(work->recording));
    work->buffers[0] = buffer_create(device, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    work->buffers[1] = buffer_create(device, SIZE, KEEL_MEMORY_HOST_VISIBLE);
    work->buffers[2] = buffer_create(device, SIZE, KEEL_MEMORY_HOST_VISIBLE);
}

static void work_finish(work_t *work)
{
    for (int i = 0; i < 3; i++) keel_buffer_release(work->buffers[i]);
    keel_recording_release(work->recording);
}

// Executes with one of the first two, and looks at the results if it worked.
static bool work_run(work_t *work, int which)
{
    unsigned char bytes[SIZE];
    keel_point_t done;
    memset(bytes, 0, SIZE);
    assert_null(keel_buffer_write(work->buffers[2], 0, bytes, SIZE));
    keel_ref_t table[] = {keel_whole(work->buffers[which]), keel_whole(work->buffers[2])};
    assert_null(keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS,
                               keel_op_execute(work->recording, keel_refs(table, 2)), &done));
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
    if (status) {
        assert_non_null(strstr(keel_status_message(status), "cuGraph"));
        keel_status_release(status);
        return false;
    }
    assert_null(keel_buffer_read(work->buffers[2], 0, bytes, SIZE));
    for (int b = 0; b < SIZE; b++) assert_int_equal(bytes[b], 1);
    return true;
}

// Memory of the device and of the host in turns: made for each, and once more with kernels.
static void test_copies_in_turns(void **state)
{
    (void)state;
    work_t work;
    work_init(&work);
    for (int i = 0; i < ROUNDS; i++) assert_true(work_run(&work, i % 2));
    work_finish(&work);
}

// A graph that could not be made for want of memory is made at once at first, and the next time
// anew.
static void test_made_at_last(void **state)
{
    (void)state;
    work_t work;
    work_init(&work);
    assert_true(work_run(&work, 0)); // the fourth fails, and the fifth does not
    assert_true(work_run(&work, 0));
    assert_false(work_run(&work, 1)); // the sixth
    assert_true(work_run(&work, 1));
    assert_true(work_run(&work, 1));
    work_finish(&work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_in_turns),
        cmocka_unit_test(test_made_at_last),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
