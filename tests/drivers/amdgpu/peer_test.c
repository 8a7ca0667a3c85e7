// SPDX-License-Identifier: Apache-2.0
// Two GPUs: one copies from and to the memory of the other, which it may not use before that. Run
// on two software GPUs (keel sim), which refuse memory that was not allowed.
#include <keel/keel.h>
#include <stdlib.h>
#include <string.h>

#include "ok.h"
#include "unit.h"

enum { BYTES = 1 << 16 };

static keel_device_t *gpu_open(const char *uri)
{
    keel_device_t *device = NULL;
    OK(keel_device_open(uri, NULL, &device));
    return device;
}

static keel_buffer_t *buffer_new(keel_device_t *device, uint32_t memory)
{
    const keel_buffer_options_t options = {.size = BYTES, .memory = memory};
    keel_buffer_t *buffer = NULL;
    OK(keel_buffer_create(device, &options, &buffer));
    return buffer;
}

static void run(keel_device_t *device, keel_op_t op)
{
    keel_point_t done;
    OK(keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS, op, &done));
    OK(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
}

// What lies in a buffer of the GPU's own memory.
static uint32_t word_of(keel_device_t *device, keel_buffer_t *buffer, uint64_t offset)
{
    keel_buffer_t *seen = buffer_new(device, KEEL_MEMORY_HOST_VISIBLE);
    uint32_t word = 0;
    run(device, keel_op_copy(keel_whole(buffer), keel_whole(seen)));
    OK(keel_buffer_read(seen, offset, &word, sizeof word));
    keel_buffer_release(seen);
    return word;
}

static void test_each_copies_from_the_other(void **state)
{
    (void)state;
    keel_device_t *a = gpu_open("amdgpu://0"), *b = gpu_open("amdgpu://1");
    keel_reach_t reach;
    OK(keel_device_reach(a, b, &reach));
    assert_int_equal(reach.how, KEEL_REACH_PEER);
    keel_buffer_t *x = buffer_new(a, KEEL_MEMORY_DEVICE_LOCAL);
    keel_buffer_t *y = buffer_new(b, KEEL_MEMORY_DEVICE_LOCAL);
    for (uint32_t turn = 1; turn <= 4; turn++) {
        run(a, keel_op_fill(keel_whole(x), 0x01010101 * turn, 4));
        run(turn % 2 ? a : b, keel_op_copy(keel_whole(x), keel_whole(y)));
        assert_int_equal(word_of(b, y, BYTES - 4), 0x01010101 * turn);
    }
    keel_buffer_release(x);
    keel_buffer_release(y);
    keel_device_release(a);
    keel_device_release(b);
}

// Memory of the host that one of them asked for is used by the other, too.
static void test_memory_of_the_host(void **state)
{
    (void)state;
    keel_device_t *a = gpu_open("amdgpu://0"), *b = gpu_open("amdgpu://1");
    keel_buffer_t *x = buffer_new(a, KEEL_MEMORY_HOST_VISIBLE);
    keel_buffer_t *y = buffer_new(b, KEEL_MEMORY_DEVICE_LOCAL);
    const uint32_t word = 0xfeedbeef;
    OK(keel_buffer_write(x, 400, &word, sizeof word));
    run(b, keel_op_copy(keel_whole(x), keel_whole(y)));
    assert_int_equal(word_of(b, y, 400), word);
    keel_buffer_release(x);
    keel_buffer_release(y);
    keel_device_release(a);
    keel_device_release(b);
}

// The memory of pools comes from slabs, of which a piece is allowed with all the rest.
static void test_memory_of_a_pool(void **state)
{
    (void)state;
    keel_device_t *a = gpu_open("amdgpu://0"), *b = gpu_open("amdgpu://1");
    keel_buffer_t *x = NULL, *y = buffer_new(b, KEEL_MEMORY_DEVICE_LOCAL);
    keel_point_t ready;
    OK(keel_queue_alloca(keel_device_queue(a, 0), NULL, BYTES, &x, &ready));
    OK(keel_wait(KEEL_POINTS(ready), KEEL_ALL, KEEL_FOREVER));
    run(a, keel_op_fill(keel_whole(x), 9, 1));
    run(b, keel_op_copy(keel_whole(x), keel_whole(y)));
    assert_int_equal(word_of(b, y, 0), 0x09090909);
    run(a, keel_op_dealloca(x));
    keel_buffer_release(x);
    keel_buffer_release(y);
    keel_device_release(a);
    keel_device_release(b);
}

int main(void)
{
    const char *gpus = getenv("KEEL_SIM_GPUS");
    if (!gpus || !strchr(gpus, ',')) return 77; // to be run by keel sim
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_copies_from_the_other),
        cmocka_unit_test(test_memory_of_the_host),
        cmocka_unit_test(test_memory_of_a_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
