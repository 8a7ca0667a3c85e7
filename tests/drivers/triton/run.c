// SPDX-License-Identifier: Apache-2.0
// run DEVICE FOLDER: loads what kernels.py has compiled into the folder, as it is, on a device with
// an AMD GPU, dispatches each kernel, and compares with the host's results. Each runs twice: once
// by itself, and once in a recording. Ends with 77 where there is no such device, or a HIP that is
// too old for the code.
#include <keel/keel.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executable/tools.h"
#include "ok.h"

enum { ADDED = 1000, ROWS = 5, COLUMNS = 100, SIDE = 64, SQUARE = 32, MOST = SIDE * SIDE };

static const char *folder;
static keel_device_t *device;

// A kernel of the folder, with the buffers that a dispatch has. Its parameters are their addresses,
// one number, and two addresses of Triton's own, which may be 0. Hidden ones may follow.
typedef struct kernel_t {
    keel_executable_t *executable;
    keel_op_t op;
    keel_buffer_t *buffers[3]; // the last of them is the result
    keel_patch_t patches[3];
    uint8_t block[512];
} kernel_t;

// What a dispatch of Triton's kernel needs to know, as kernels.py has written it.
static void list_find(const char *name, uint32_t *items, uint32_t *local_memory)
{
    char path[768], found[64];
    snprintf(path, sizeof path, "%s/list", folder);
    FILE *list = fopen(path, "r");
    assert_non_null(list);
    do {
        assert_int_equal(fscanf(list, "%63s %u %u", found, items, local_memory), 3);
    } while (strcmp(found, name));
    fclose(list);
}

static void load(kernel_t *k, const char *name)
{
    char path[768];
    keel_executable_options_t options = {.name = name};
    snprintf(path, sizeof path, "%s/%s.hsaco", folder, name);
    void *data = tools_read(path, &options.size);
    options.data = data;
    OK(keel_executable_load(device, &options, &k->executable));
    free(data);
}

// The block of arguments, full of ones where hidden ones are: those are not the caller's.
static void block_make(kernel_t *k, int count, int32_t number)
{
    memset(k->block, 0xff, sizeof k->block);
    memset(k->block, 0, (size_t)(8 * count + 8 + 16));
    memcpy(k->block + 8 * count, &number, sizeof number);
    for (int i = 0; i < count; i++)
        k->patches[i] = (keel_patch_t){(uint32_t)(8 * i), keel_whole(k->buffers[i])};
}

static void buffer_make(kernel_t *k, int index, const void *data, size_t size)
{
    const keel_buffer_options_t options = {.size = size, .memory = KEEL_MEMORY_HOST_VISIBLE};
    OK(keel_buffer_create(device, &options, &k->buffers[index]));
    OK(keel_buffer_write(k->buffers[index], 0, data, size));
}

// Loads it, for `count` buffers that buffer_make has made and then `number`.
static void begin(kernel_t *k, const char *name, int count, int32_t number, keel_groups_t groups)
{
    uint32_t items = 0, local_memory = 0;
    keel_entry_t entry;
    keel_entry_info_t info;
    load(k, name);
    OK(keel_executable_entry(k->executable, name, &entry));
    OK(keel_entry_info(entry, &info));
    assert_true(info.raw);
    assert_in_range(info.constants, 8 * count + 8 + 16, sizeof k->block);
    list_find(name, &items, &local_memory);
    block_make(k, count, number);
    k->op = keel_op_dispatch(entry, groups, k->block, info.constants, KEEL_NO_BINDINGS);
    k->op = keel_op_patched(k->op, k->patches, (size_t)count);
    k->op.as.dispatch.raw = true;
    k->op.as.dispatch.group_size = keel_groups(items, 1, 1);
    k->op.as.dispatch.local_memory = local_memory;
}

static void end(kernel_t *k)
{
    for (int i = 0; i < 3; i++) keel_buffer_release(k->buffers[i]);
    keel_executable_release(k->executable);
}

static void op_run(keel_op_t op)
{
    keel_point_t done;
    OK(keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS, op, &done));
    OK(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
}

// The last buffer holds `expected`, up to rounding, and what was there before behind `count`.
static void compare(const kernel_t *k, int result, const float *expected, uint32_t count)
{
    static float got[MOST];
    OK(keel_buffer_read(k->buffers[result], 0, got, sizeof got));
    for (uint32_t i = 0; i < MOST; i++) {
        float wanted = i < count ? expected[i] : -1;
        if (!(fabsf(got[i] - wanted) <= 1e-5f * (1 + fabsf(wanted))))
            fail_msg("element %u is %g instead of %g", i, (double)got[i], (double)wanted);
    }
}

static void clear(const kernel_t *k, int result)
{
    static float none[MOST];
    for (int i = 0; i < MOST; i++) none[i] = -1;
    OK(keel_buffer_write(k->buffers[result], 0, none, sizeof none));
}

static void both_ways(kernel_t *k, int result, const float *expected, uint32_t count)
{
    keel_recording_t *recording = NULL;
    clear(k, result);
    op_run(k->op);
    compare(k, result, expected, count);
    clear(k, result);
    OK(keel_recording_create(device, NULL, &recording));
    OK(keel_recording_add(recording, &k->op, 1));
    OK(keel_recording_end(recording));
    op_run(keel_op_execute(recording, KEEL_NO_BINDINGS));
    compare(k, result, expected, count);
    keel_recording_release(recording);
    end(k);
}

static float x[MOST], y[MOST], expected[MOST];

// Two groups for four blocks: each learns from a hidden argument how many groups there are.
static void test_add(void **state)
{
    (void)state;
    kernel_t k = {0};
    for (int i = 0; i < ADDED; i++) {
        x[i] = (float)i;
        y[i] = (float)(3 * i) + 0.5f;
        expected[i] = x[i] + y[i];
    }
    buffer_make(&k, 0, x, sizeof x);
    buffer_make(&k, 1, y, sizeof y);
    buffer_make(&k, 2, x, sizeof x);
    begin(&k, "add", 3, ADDED, keel_groups(2, 1, 1));
    both_ways(&k, 2, expected, ADDED);
}

static void test_softmax(void **state)
{
    (void)state;
    kernel_t k = {0};
    for (int row = 0; row < ROWS; row++) {
        double sum = 0;
        for (int i = row * COLUMNS; i < (row + 1) * COLUMNS; i++) {
            x[i] = (float)(i * 37 % 101) / 10;
            sum += exp((double)x[i]);
        }
        for (int i = row * COLUMNS; i < (row + 1) * COLUMNS; i++)
            expected[i] = (float)(exp((double)x[i]) / sum);
    }
    buffer_make(&k, 0, x, sizeof x);
    buffer_make(&k, 1, x, sizeof x);
    begin(&k, "softmax", 2, COLUMNS, keel_groups(ROWS, 1, 1));
    both_ways(&k, 1, expected, ROWS * COLUMNS);
}

// A small whole number as a half.
static uint16_t half_of(int number)
{
    static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400};
    return number < 0 ? halves[-number] | 0x8000 : halves[number];
}

static void test_matmul(void **state)
{
    (void)state;
    kernel_t k = {0};
    static uint16_t a[MOST], b[MOST];
    for (int i = 0; i < MOST; i++) {
        x[i] = (float)(i * 7 % 9 - 4);
        y[i] = (float)(i * 5 % 7 - 3);
        a[i] = half_of((int)x[i]);
        b[i] = half_of((int)y[i]);
    }
    for (int i = 0; i < MOST; i++) {
        expected[i] = 0;
        for (int j = 0; j < SIDE; j++)
            expected[i] += x[i / SIDE * SIDE + j] * y[j * SIDE + i % SIDE];
    }
    buffer_make(&k, 0, a, sizeof a);
    buffer_make(&k, 1, b, sizeof b);
    buffer_make(&k, 2, x, sizeof x);
    begin(&k, "matmul", 3, SIDE, keel_groups(SIDE / SQUARE, SIDE / SQUARE, 1));
    both_ways(&k, 2, expected, MOST);
}

// False: there is no such device here, or it is one of HIP 5.2, which takes code objects up to
// version 4. Triton's are of version 5.
static bool can_run(const char *uri)
{
    keel_status_t status = keel_device_open(uri, NULL, &device);
    if (status) printf("%s\n", keel_status_message(status));
    keel_status_release(status);
    if (!device) return false;
    const char *api = keel_device_info(device)->api;
    if (!strstr(api, "HIP 5.2")) return true;
    printf("%s takes no code of Triton's\n", api);
    return false;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_matmul),
    };
    if (argc != 3) return 2;
    folder = argv[2];
    int failed = can_run(argv[1]) ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
    keel_device_release(device);
    return failed;
}
