// SPDX-License-Identifier: Apache-2.0
// Bundles that clang-offload-bundler makes.
#include "executable/bundle.h"

#include "base/memory.h"
#include "executable/unpack.h"
#include "tools.h"

static const char ptx[] = ".version 7.0\n.target sm_70\n.entry k() { ret; }\n";

static void bundle_make(const char *options)
{
    tools_need("clang-offload-bundler-19");
    tools_write("a.ptx", ptx, sizeof ptx - 1);
    tools_write("b.bc", "BC\xc0\xde more", 9);
    tools_run("clang-offload-bundler-19 --type=o %s --targets=host-aarch64-unknown-linux-gnu,"
              "openmp-nvptx64-nvidia-cuda--sm_70,hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-,"
              "hip-amdgcn-amd-amdhsa--gfx9-generic --input=/dev/null --input=a.ptx --input=b.bc "
              "--input=b.bc --output=b.bin",
              options);
}

static void members_check(const image_info_t *info)
{
    static const struct {
        keel_image_kind_t kind;
        const char *name, *target;
        size_t size;
    } members[] = {
        {KEEL_IMAGE_UNKNOWN, "host-aarch64-unknown-linux-gnu-", "aarch64-linux", 0},
        {KEEL_IMAGE_PTX, "openmp-nvptx64-nvidia-cuda--sm_70", "nvptx:sm_70", sizeof ptx - 1},
        {KEEL_IMAGE_BITCODE, "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
         "gfx90a:sramecc+:xnack-", 9},
        {KEEL_IMAGE_BITCODE, "hip-amdgcn-amd-amdhsa--gfx9-generic", "gfx9-generic", 9},
    };
    assert_int_equal(info->kind, KEEL_IMAGE_BUNDLE);
    assert_int_equal(info->member_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(info->members[i].kind, members[i].kind);
        assert_string_equal(info->members[i].name, members[i].name);
        assert_string_equal(info->members[i].target, members[i].target);
        assert_int_equal(info->members[i].size, members[i].size);
    }
    assert_memory_equal(info->members[1].data, ptx, sizeof ptx - 1);
}

static void test_plain(void **state)
{
    (void)state;
    bundle_make("");
    size_t size;
    char *data = tools_read("b.bin", &size);
    image_info_t info;
    read_well(image_read(data, size, &info));
    members_check(&info);
    image_info_finish(&info);
    free(data);
}

// Unpacks what a compressed bundle holds, and looks at that.
static void packed_check(const void *data, size_t size, image_packing_t packing)
{
    image_info_t info, inner;
    read_well(image_read(data, size, &info));
    assert_int_equal(info.kind, KEEL_IMAGE_BUNDLE);
    assert_int_equal(info.member_count, 1);
    assert_int_equal(info.members[0].kind, KEEL_IMAGE_BUNDLE);
    assert_int_equal(info.members[0].packing, packing);
    void *bytes;
    read_well(image_unpack(&info.members[0], 1 << 20, &bytes));
    read_well(image_read(bytes, (size_t)info.members[0].unpacked, &inner));
    members_check(&inner);
    image_info_finish(&inner);
    image_info_finish(&info);
    mem_free(bytes);
}

static void test_compressed(void **state)
{
    (void)state;
#if !KEEL_HAVE_ZSTD
    skip();
#endif
    bundle_make("--compress");
    size_t size;
    char *data = tools_read("b.bin", &size);
    packed_check(data, size, IMAGE_ZSTD);

    // What clang 19 writes is version 2; the same in the others' headers.
    uint64_t unpacked = 0;
    memcpy(&unpacked, data + 12, 4);
    char *other = calloc(1, size + 8);
    assert_non_null(other);
    memcpy(other, data, 8);
    other[4] = 1;
    memcpy(other + 8, &unpacked, 4);
    memcpy(other + 20, data + 24, size - 24);
    packed_check(other, size - 4, IMAGE_ZSTD);
    other[4] = 3;
    uint64_t total = size + 8;
    memcpy(other + 8, &total, 8);
    memcpy(other + 16, &unpacked, 8);
    memcpy(other + 32, data + 24, size - 24);
    packed_check(other, size + 8, IMAGE_ZSTD);
    free(other);
    free(data);
}

static void test_zlib(void **state)
{
    (void)state;
#if !KEEL_HAVE_ZLIB
    skip();
#endif
    tools_need("python3");
    bundle_make("");
    tools_run(
        "python3 -c 'import struct, zlib; plain = open(\"b.bin\", \"rb\").read(); "
        "packed = zlib.compress(plain); open(\"z.bin\", \"wb\").write("
        "b\"CCOB\" + struct.pack(\"<HHIIQ\", 2, 0, 24 + len(packed), len(plain), 0) + packed)'");
    size_t size;
    char *data = tools_read("z.bin", &size);
    packed_check(data, size, IMAGE_ZLIB);
    free(data);
}

static void test_texts(void **state)
{
    (void)state;
    tools_need("clang-offload-bundler-19");
    tools_write("a.ptx", ptx, sizeof ptx - 1);
    static const char *const types[] = {"s", "ll", "i"}; // by the comments of their languages
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        tools_run(
            "clang-offload-bundler-19 --type=%s --targets=host-x86_64-unknown-linux-gnu,"
            "openmp-nvptx64-nvidia-cuda--sm_70 --input=/dev/null --input=a.ptx --output=b.txt",
            types[i]);
        size_t size;
        char *data = tools_read("b.txt", &size);
        image_info_t info;
        read_well(image_read(data, size, &info));
        assert_int_equal(info.kind, KEEL_IMAGE_BUNDLE);
        assert_int_equal(info.member_count, 2);
        assert_string_equal(info.members[0].target, "x86_64-linux");
        assert_int_equal(info.members[0].size, 0);
        assert_string_equal(info.members[1].name, "openmp-nvptx64-nvidia-cuda--sm_70");
        assert_string_equal(info.members[1].target, "nvptx:sm_70");
        assert_int_equal(info.members[1].kind, KEEL_IMAGE_PTX);
        assert_int_equal(info.members[1].size, sizeof ptx - 1);
        assert_memory_equal(info.members[1].data, ptx, sizeof ptx - 1);
        image_info_finish(&info);
        *strstr(data + size / 2, "__END__") = 'x';
        read_badly(image_read(data, size, &info), KEEL_CORRUPT, "has no end");
        free(data);
    }
}

static void test_damaged(void **state)
{
    (void)state;
    image_info_t info;
    char plain[96] = "__CLANG_OFFLOAD_BUNDLE__\2";
    plain[32] = 80;    // offset of the first
    plain[40] = 4;     // its size
    plain[48] = 3;     // bytes of its name
    plain[56 + 3] = 1; // the second's begins behind that name
    read_well(bundle_read(plain, sizeof plain, &info));
    assert_int_equal(info.member_count, 2);
    image_info_finish(&info);
    read_badly(bundle_read(plain, 31, &info), KEEL_CORRUPT, "does not begin");
    read_badly(bundle_read(plain, 70, &info), KEEL_CORRUPT, "member 0");
    plain[32] = 60;
    read_badly(bundle_read(plain, 70, &info), KEEL_CORRUPT, "its list of members");
    memset(plain + 40, 0xff, 8);
    read_badly(bundle_read(plain, sizeof plain, &info), KEEL_CORRUPT, "member 0");
    memset(plain + 24, 0xff, 8);
    read_badly(bundle_read(plain, sizeof plain, &info), KEEL_CORRUPT, "claims");

    char packed[40] = "CCOB\2\0\1\0\x28";
    read_well(bundle_read(packed, sizeof packed, &info));
    image_info_finish(&info);
    packed[8] = 41;
    read_badly(bundle_read(packed, sizeof packed, &info), KEEL_CORRUPT, "cut off");
    packed[8] = 23;
    read_badly(bundle_read(packed, sizeof packed, &info), KEEL_CORRUPT, "cut off");
    packed[8] = 39;
    packed[39] = 1;
    read_badly(bundle_read(packed, sizeof packed, &info), KEEL_CORRUPT, "at byte 39");
    packed[6] = 2;
    read_badly(bundle_read(packed, sizeof packed, &info), KEEL_UNSUPPORTED, "number 2");
    packed[4] = 4;
    read_badly(bundle_read(packed, sizeof packed, &info), KEEL_UNSUPPORTED, "version 4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),   cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_zlib),    cmocka_unit_test(test_texts),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, tools_begin, tools_end);
}
