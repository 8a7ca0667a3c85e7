// SPDX-License-Identifier: Apache-2.0
// The fatbins are those of tests/data, made by nvcc from native.cu.
#include "executable/fatbin.h"

#include "base/memory.h"
#include "executable/unpack.h"
#include "tools.h"

enum { LIMIT = 1 << 20 };

static void member_check(const image_member_t *member, keel_image_kind_t kind, const char *target,
                         image_packing_t packing)
{
    assert_int_equal(member->kind, kind);
    assert_string_equal(member->target, target);
    assert_int_equal(member->packing, packing);
    void *bytes;
    read_well(image_unpack(member, LIMIT, &bytes));
    image_info_t info;
    read_well(image_read(bytes, (size_t)member->unpacked, &info));
    assert_int_equal(info.kind, kind);
    assert_string_equal(info.target, target);
    assert_int_equal(info.entry_count, 3);
    assert_int_equal(entry_named(&info, "saxpy")->param_size, 32);
    image_info_finish(&info);
    mem_free(bytes);
}

static void test_zstd(void **state)
{
    (void)state;
#if !KEEL_HAVE_ZSTD
    skip();
#endif
    size_t size;
    char *data = tools_read(TESTS_DATA "/native.zstd.fatbin", &size);
    image_info_t info;
    read_well(image_read(data, size, &info));
    assert_int_equal(info.kind, KEEL_IMAGE_FATBIN);
    assert_int_equal(info.member_count, 3);
    member_check(&info.members[0], KEEL_IMAGE_CUBIN, "nvptx:sm_80", IMAGE_ZSTD);
    member_check(&info.members[1], KEEL_IMAGE_CUBIN, "nvptx:sm_90", IMAGE_ZSTD);
    member_check(&info.members[2], KEEL_IMAGE_PTX, "nvptx:sm_90", IMAGE_ZSTD);
    image_info_finish(&info);
    free(data);
}

// By NVIDIA's own program, in each of its ways: members come back as they went in.
static void test_of_fatbinary(void **state)
{
    (void)state;
    static const char ptx[] =
        ".version 7.8\n.target sm_70\n.address_size 64\n"
        ".visible .entry k(.param .u64 p) { ret; } // and again and again and again\n";
    static const char *const modes[] = {"none", "size", "speed", "balance"};
    tools_need("fatbinary");
    tools_write("k.ptx", ptx, sizeof ptx - 1);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        size_t size, cubin_size;
        tools_run(
            "fatbinary --create=k.fatbin -64 --compress-mode=%s --image3=kind=elf,sm=70,file=%s "
            "--image3=kind=ptx,sm=70,file=k.ptx",
            modes[i], TESTS_DATA "/older.11.8.sm_70.cubin");
        char *data = tools_read("k.fatbin", &size);
        char *cubin = tools_read(TESTS_DATA "/older.11.8.sm_70.cubin", &cubin_size);
        image_info_t info;
        read_well(image_read(data, size, &info));
        assert_int_equal(info.member_count, 2);
        void *bytes;
        keel_status_t status = image_unpack(&info.members[0], LIMIT, &bytes);
        if (keel_status_code(status) == KEEL_UNSUPPORTED) {
            keel_status_release(status); // built without zstd
        } else {
            read_well(status);
            assert_int_equal(info.members[0].unpacked, cubin_size);
            assert_memory_equal(bytes, cubin, cubin_size);
            mem_free(bytes);
        }
        image_info_finish(&info);
        free(cubin);
        free(data);
    }
}

// Two fatbins end to end, as they lie in a program's section.
static void test_lz4_twice(void **state)
{
    (void)state;
#if !KEEL_HAVE_LZ4
    skip();
#endif
    size_t size;
    char *data = tools_read(TESTS_DATA "/native.lz4.fatbin", &size);
    char *twice = calloc(2, size + 8);
    assert_non_null(twice);
    memcpy(twice, data, size);
    memcpy(twice + size + 8, data, size);
    image_info_t info;
    read_well(image_read(twice, 2 * (size + 8), &info));
    assert_int_equal(info.member_count, 2);
    for (int i = 0; i < 2; i++)
        member_check(&info.members[i], KEEL_IMAGE_PTX, "nvptx:sm_90a", IMAGE_LZ4);
    image_info_finish(&info);
    free(twice);
    free(data);
}

static void test_unpacking_fails(void **state)
{
    (void)state;
#if !KEEL_HAVE_LZ4
    skip();
#endif
    size_t size;
    char *data = tools_read(TESTS_DATA "/native.lz4.fatbin", &size);
    image_info_t info;
    void *bytes;
    read_well(image_read(data, size, &info));
    image_member_t member = info.members[0];
    read_badly(image_unpack(&member, 100, &bytes), KEEL_RESOURCE_EXHAUSTED, "at most 100");
    member.unpacked++;
    read_badly(image_unpack(&member, LIMIT, &bytes), KEEL_CORRUPT, "lz4 data is damaged");
    member.unpacked -= 2;
    read_badly(image_unpack(&member, LIMIT, &bytes), KEEL_CORRUPT, "lz4 data is damaged");
    assert_null(bytes);
    image_info_finish(&info);
    free(data);
}

static void test_damaged(void **state)
{
    (void)state;
    size_t size;
    char *data = tools_read(TESTS_DATA "/native.lz4.fatbin", &size);
    image_info_t info;
    data[4] = 2;
    read_badly(fatbin_read(data, size, &info), KEEL_UNSUPPORTED, "version 2");
    data[4] = 1;
    data[16 + 17] = 127; // packed bytes
    read_badly(fatbin_read(data, size, &info), KEEL_CORRUPT, "goes beyond it");
    data[16 + 4] = 0; // bytes of the member's header
    read_badly(fatbin_read(data, size, &info), KEEL_CORRUPT, "header of member 0");
    memset(data + 8, 0xff, 8); // bytes in all
    read_badly(fatbin_read(data, size, &info), KEEL_CORRUPT, "cut off");
    free(data);
}

static void test_truncated(void **state)
{
    (void)state;
    size_t size;
    char *data = tools_read(TESTS_DATA "/native.zstd.fatbin", &size);
    for (size_t cut = 0; cut < size; cut++) {
        char *copy = malloc(cut ? cut : 1);
        assert_non_null(copy);
        memcpy(copy, data, cut);
        image_info_t info;
        read_badly(fatbin_read(copy, cut, &info), KEEL_CORRUPT, "");
        free(copy);
    }
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zstd),      cmocka_unit_test(test_of_fatbinary),
        cmocka_unit_test(test_lz4_twice), cmocka_unit_test(test_unpacking_fails),
        cmocka_unit_test(test_damaged),   cmocka_unit_test(test_truncated),
    };
    return cmocka_run_group_tests(tests, tools_begin, tools_end);
}
