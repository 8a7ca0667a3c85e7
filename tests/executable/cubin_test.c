// SPDX-License-Identifier: Apache-2.0
// The cubins are those of tests/data, made by nvcc from native.cu; registers and memory are what
// ptxas says of them.
#include "executable/cubin.h"

#include "tools.h"

typedef struct expected_t {
    const char *file, *target;
    uint32_t registers[3]; // saxpy, grouped, bare
} expected_t;

static void entry_check(const keel_image_entry_info_t *entry, uint32_t registers, uint32_t shared)
{
    assert_int_equal(entry->vector_registers, registers);
    assert_int_equal(entry->local_memory, shared);
    assert_int_equal(entry->private_memory, 0);
    assert_int_equal(entry->wave_size, 32);
    assert_int_equal(entry->group_size[0], KEEL_UNSAID);
}

static void params_check(const keel_image_entry_info_t *entry, uint32_t count,
                         const uint32_t *offsets, const uint32_t *sizes)
{
    assert_int_equal(entry->param_count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(entry->params[i].offset, offsets[i]);
        assert_int_equal(entry->params[i].size, sizes[i]);
    }
    uint32_t end = count ? offsets[count - 1] + sizes[count - 1] : 0;
    assert_int_equal(entry->param_size, end);
}

static void test_from_nvcc(void **state)
{
    (void)state;
    static const expected_t files[] = {
        {TESTS_DATA "/native.sm_75.cubin", "nvptx:sm_75", {8, 10, 6}},
        {TESTS_DATA "/native.sm_90a.cubin", "nvptx:sm_90a", {10, 12, 10}},
        {TESTS_DATA "/native.sm_120.cubin", "nvptx:sm_120", {12, 12, 10}},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        size_t size;
        char *data = tools_read(files[i].file, &size);
        image_info_t info;
        read_well(image_read(data, size, &info));
        assert_int_equal(info.kind, KEEL_IMAGE_CUBIN);
        assert_string_equal(info.target, files[i].target);
        assert_int_equal(info.entry_count, 3);
        const keel_image_entry_info_t *saxpy = entry_named(&info, "saxpy");
        const keel_image_entry_info_t *grouped = entry_named(&info, "grouped");
        const keel_image_entry_info_t *bare = entry_named(&info, "bare");
        entry_check(saxpy, files[i].registers[0], 0);
        entry_check(grouped, files[i].registers[1], 1024);
        entry_check(bare, files[i].registers[2], 0);
        params_check(saxpy, 5, (uint32_t[]){0, 8, 16, 20, 24}, (uint32_t[]){8, 8, 4, 1, 8});
        params_check(grouped, 3, (uint32_t[]){0, 16, 32}, (uint32_t[]){16, 10, 8});
        params_check(bare, 0, NULL, NULL);
        assert_int_equal(saxpy->max_group_size, KEEL_UNSAID);
        assert_int_equal(grouped->max_group_size, 64);
        image_info_finish(&info);
        free(data);
    }
}

static void test_large_parameters(void **state)
{
    (void)state;
    size_t size;
    char *data = tools_read(TESTS_DATA "/large.sm_90.cubin", &size);
    image_info_t info;
    read_well(image_read(data, size, &info));
    params_check(entry_named(&info, "large"), 2, (uint32_t[]){0, 5000}, (uint32_t[]){5000, 8});
    image_info_finish(&info);
    free(data);
}

// Before CUDA 13 the number stood in the lowest byte of the flags, and nothing said that a group
// of sm_90 has 1 KiB that is the system's. What is expected is what ptxas printed.
static void test_of_older_tools(void **state)
{
    (void)state;
    static const struct {
        const char *file, *target;
        uint32_t registers, saxpy_registers;
    } rows[] = {
        {TESTS_DATA "/older.11.8.sm_70.cubin", "nvptx:sm_70", 10, 10},
        {TESTS_DATA "/older.11.8.sm_90.cubin", "nvptx:sm_90", 13, 10},
        {TESTS_DATA "/older.12.4.sm_90a.cubin", "nvptx:sm_90a", 10, 10},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t size;
        char *data = tools_read(rows[i].file, &size);
        image_info_t info;
        read_well(image_read(data, size, &info));
        assert_int_equal(info.kind, KEEL_IMAGE_CUBIN);
        assert_string_equal(info.target, rows[i].target);
        assert_string_equal(info.version, "7");
        assert_int_equal(info.entry_count, 2);
        const keel_image_entry_info_t *grouped = entry_named(&info, "grouped");
        assert_int_equal(grouped->local_memory, 1024);
        assert_int_equal(grouped->vector_registers, rows[i].registers);
        assert_int_equal(grouped->param_size, 24);
        assert_int_equal(grouped->param_count, 2);
        assert_int_equal(grouped->params[1].offset, 16);
        const keel_image_entry_info_t *saxpy = entry_named(&info, "saxpy");
        assert_int_equal(saxpy->local_memory, 0);
        assert_int_equal(saxpy->vector_registers, rows[i].saxpy_registers);
        assert_int_equal(saxpy->param_size, 32);
        assert_int_equal(saxpy->param_count, 5);
        assert_int_equal(saxpy->params[3].size, 1);
        image_info_finish(&info);
        free(data);
    }
}

// Where attributes of `saxpy` lie: its last parameter's.
static size_t param_find(const char *data, size_t size)
{
    static const char param[] = {4, 0x17, 12, 0, 0, 0, 0, 0, 4, 0, 24, 0};
    for (size_t i = 0; i + sizeof param < size; i++)
        if (!memcmp(data + i, param, sizeof param)) return i;
    fail();
    return 0;
}

static void test_damaged(void **state)
{
    (void)state;
    size_t size;
    char *data = tools_read(TESTS_DATA "/native.sm_75.cubin", &size);
    image_info_t info;
    size_t at = param_find(data, size);
    data[at + 10] = 30; // beyond the 32 bytes of parameters
    read_badly(cubin_read(data, size, &info), KEEL_CORRUPT, "parameters of 'saxpy' overlap");
    data[at + 10] = 8; // where another one lies
    read_badly(cubin_read(data, size, &info), KEEL_CORRUPT, "parameters of 'saxpy' overlap");
    data[at] = 9;
    read_badly(cubin_read(data, size, &info), KEEL_CORRUPT, "the format 9");
    data[at] = 4;
    data[at + 3] = 127;
    read_badly(cubin_read(data, size, &info), KEEL_CORRUPT, "cut off");
    data[18] = 62;
    read_badly(cubin_read(data, size, &info), KEEL_UNSUPPORTED, "ELF machine 62");
    data[4] = 1;
    read_badly(cubin_read(data, size, &info), KEEL_UNSUPPORTED, "64-bit");
    data[0] = 0;
    read_badly(cubin_read(data, size, &info), KEEL_CORRUPT, "no ELF file");
    free(data);
}

static void test_truncated(void **state)
{
    (void)state;
    size_t size;
    char *data = tools_read(TESTS_DATA "/native.sm_75.cubin", &size);
    for (size_t cut = 0; cut < size; cut += 7) {
        char *copy = malloc(cut ? cut : 1);
        assert_non_null(copy);
        memcpy(copy, data, cut);
        image_info_t info;
        keel_status_t status = cubin_read(copy, cut, &info);
        assert_int_equal(keel_status_code(status), KEEL_CORRUPT);
        keel_status_release(status);
        free(copy);
    }
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_nvcc),      cmocka_unit_test(test_large_parameters),
        cmocka_unit_test(test_of_older_tools), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_truncated),
    };
    return cmocka_run_group_tests(tests, tools_begin, tools_end);
}
