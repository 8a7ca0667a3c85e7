// SPDX-License-Identifier: Apache-2.0
// How often a graph is made for a recording whose slots change, on the CUDA driver in software,
// which refuses to make more than three.
#include <keel/keel.h>

#include <stdlib.h>
#include <string.h>

#include "unit.h"

enum { SIZE = 4096, ROUNDS = 12 };

static keel_device_t *device;

static int setup(void **state)
{
    (void)state;
    setenv("KEEL_SIM_CUDA", "fail=cuGraphInstantiateWithFlags:4", 1);
    return keel_device_open("cuda://0?lib=" CUDA_LIBRARY, NULL, &device) != NULL;
}

static int teardown(void **state)
{
    (void)state;
    keel_device_release(device);
    return 0;
}

static keel_buffer_t *buffer_of(uint32_t memory)
{
    keel_buffer_options_t options = {.size = SIZE, .memory = memory};
    keel_buffer_t *buffer = NULL;
    assert_null(keel_buffer_create(device, &options, &buffer));
    return buffer;
}

// Memory of the device and of the host in turns: made for each, and once more with kernels.
static void test_copies_in_turns(void **state)
{
    (void)state;
    keel_recording_options_t options = {.slots = 2};
    keel_recording_t *recording = NULL;
    keel_op_t ops[] = {keel_op_fill(keel_slot(0, 0, KEEL_WHOLE), 0x01010101, 1), keel_op_barrier(),
                       keel_op_copy(keel_slot(0, 0, KEEL_WHOLE), keel_slot(1, 0, KEEL_WHOLE))};
    assert_null(keel_recording_create(device, &options, &recording));
    assert_null(keel_recording_add(recording, ops, 3));
    assert_null(keel_recording_end(recording));
    keel_buffer_t *buffers[] = {buffer_of(KEEL_MEMORY_DEVICE_LOCAL),
                                buffer_of(KEEL_MEMORY_HOST_VISIBLE),
                                buffer_of(KEEL_MEMORY_HOST_VISIBLE)};
    for (int i = 0; i < ROUNDS; i++) {
        unsigned char bytes[SIZE];
        keel_point_t done;
        memset(bytes, 0, SIZE);
        assert_null(keel_buffer_write(buffers[2], 0, bytes, SIZE));
        keel_ref_t table[] = {keel_whole(buffers[i % 2]), keel_whole(buffers[2])};
        assert_null(keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS,
                                   keel_op_execute(recording, keel_refs(table, 2)), &done));
        keel_status_t status = keel_wait(&done, 1, KEEL_ALL, KEEL_FOREVER);
        if (status) fail_msg("round %d: %s", i, keel_status_message(status));
        assert_null(keel_buffer_read(buffers[2], 0, bytes, SIZE));
        for (int b = 0; b < SIZE; b++) assert_int_equal(bytes[b], 1);
    }
    for (int i = 0; i < 3; i++) keel_buffer_release(buffers[i]);
    keel_recording_release(recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies_in_turns)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
