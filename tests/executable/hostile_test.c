// SPDX-License-Identifier: Apache-2.0
// Large images made so that a careless reader would go through the same bytes again and again.
// Fuzzers do not find these: their inputs are small.
#include <time.h>

#include "tools.h"

enum { SIZE = 4 << 20, SECONDS_MAX = 20 };

typedef struct bytes_t {
    uint8_t *data;
    size_t used;
} bytes_t;

static bytes_t bytes_make(void)
{
    bytes_t bytes = {calloc(1, SIZE + 4096), 0};
    assert_non_null(bytes.data);
    return bytes;
}

static void add(bytes_t *bytes, const void *data, size_t size)
{
    assert_true(bytes->used + size <= SIZE + 4096);
    memcpy(bytes->data + bytes->used, data, size);
    bytes->used += size;
}

static void add_text(bytes_t *bytes, const char *text)
{
    add(bytes, text, strlen(text));
}

static double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

// Reads it, well or not, in time; quadratic work would take minutes.
static void read_quickly(bytes_t *bytes, keel_code_t code)
{
    image_info_t info;
    double began = seconds();
    keel_status_t status = image_read(bytes->data, bytes->used, &info);
    double took = seconds() - began;
    assert_int_equal(keel_status_code(status), code);
    keel_status_release(status);
    image_info_finish(&info);
    free(bytes->data);
    if (took > SECONDS_MAX) fail_msg("it took %.1f s", took);
}

// Members that are all the same half of the bundle, which might be a comment in PTX.
static void test_bundle_of_overlaps(void **state)
{
    (void)state;
    bytes_t bytes = bytes_make();
    uint64_t count = SIZE / 2 / 25 - 8, member[3] = {SIZE / 2, SIZE / 2, 1};
    add_text(&bytes, "__CLANG_OFFLOAD_BUNDLE__");
    add(&bytes, &count, 8);
    for (uint64_t i = 0; i < count; i++) {
        add(&bytes, member, sizeof member);
        add(&bytes, "x", 1);
    }
    memset(bytes.data + SIZE / 2, ' ', SIZE / 2);
    memcpy(bytes.data + SIZE / 2, "/*", 2);
    bytes.used = SIZE;
    read_quickly(&bytes, KEEL_OK);
}

static void test_ptx_of_variables(void **state)
{
    (void)state;
    bytes_t bytes = bytes_make();
    char text[64];
    add_text(&bytes, ".version 8.0 .target sm_70 ");
    for (int i = 0; i < 100000; i++) {
        snprintf(text, sizeof text, ".shared .u32 v%d;", i);
        add_text(&bytes, text);
    }
    add_text(&bytes, ".entry k() {");
    for (int i = 0; i < 100000; i++) {
        snprintf(text, sizeof text, "v%d;", i);
        add_text(&bytes, text);
    }
    add_text(&bytes, "}");
    read_quickly(&bytes, KEEL_OK);
}

static void test_ptx_of_braces(void **state)
{
    (void)state;
    bytes_t bytes = bytes_make();
    add_text(&bytes, ".version 8.0 .target sm_70 .entry k() ");
    memset(bytes.data + bytes.used, '{', SIZE - bytes.used);
    bytes.used = SIZE;
    read_quickly(&bytes, KEEL_CORRUPT);
}

// An ELF file with as many sections as there can be, all of the same bytes.
static void elf_of_overlaps(uint16_t machine, uint32_t type, const char *fill)
{
    enum { SECTIONS = 32000, NAMES = 64, BODY = 128 };
    bytes_t bytes = bytes_make();
    uint64_t table = SIZE - SECTIONS * 64, body = table - BODY;
    uint8_t *header = bytes.data;
    memcpy(header, "\177ELF\2\1", 6);
    header[8] = 3;
    memcpy(header + 18, &machine, 2);
    memcpy(header + 40, &table, 8);
    memcpy(header + 58, &(uint16_t[3]){64, SECTIONS, 1}, 6);
    memcpy(header + NAMES + 1, ".nv.info", 8);
    for (uint64_t i = 0; i + 4 <= body; i += 4) memcpy(bytes.data + BODY + i, fill, 4);
    for (uint32_t i = 1; i < SECTIONS; i++) {
        uint8_t *section = bytes.data + table + (uint64_t)i * 64;
        uint32_t name = i > 1, kind = i > 1 ? type : 3;
        uint64_t offset = i > 1 ? BODY : NAMES, size = i > 1 ? body : 16;
        memcpy(section, &name, 4);
        memcpy(section + 4, &kind, 4);
        memcpy(section + 24, &offset, 8);
        memcpy(section + 32, &size, 8);
    }
    bytes.used = SIZE;
    read_quickly(&bytes, KEEL_CORRUPT);
}

static void test_elf_of_overlaps(void **state)
{
    (void)state;
    elf_of_overlaps(190, 0x70000000, "\1\1\0\0"); // attributes of a cubin that say nothing
    elf_of_overlaps(224, 7, "\0\0\0\0");          // notes of a code object, all empty
}

// Entry points that all reach the same long function.
static void test_spirv_of_entries(void **state)
{
    (void)state;
    static const uint32_t head[] = {0x07230203, 0x10300, 0, 9, 0},
                          entry[] = {4 << 16 | 15, 5, 1, 0};
    static const uint32_t function[] = {5 << 16 | 54, 1, 1, 0, 1}, label[] = {2 << 16 | 248, 1};
    static const uint32_t end[] = {1 << 16 | 56};
    bytes_t bytes = bytes_make();
    add(&bytes, head, sizeof head);
    for (int i = 0; i < 100000; i++) add(&bytes, entry, sizeof entry);
    add(&bytes, function, sizeof function);
    while (bytes.used < SIZE) add(&bytes, label, sizeof label);
    add(&bytes, end, sizeof end);
    read_quickly(&bytes, KEEL_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bundle_of_overlaps), cmocka_unit_test(test_ptx_of_variables),
        cmocka_unit_test(test_ptx_of_braces),      cmocka_unit_test(test_elf_of_overlaps),
        cmocka_unit_test(test_spirv_of_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
