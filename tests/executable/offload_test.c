// SPDX-License-Identifier: Apache-2.0
// Binaries that clang-offload-packager makes.
#include "executable/offload.h"

#include "tools.h"

static void test_from_packager(void **state)
{
    (void)state;
    tools_need("clang-offload-packager-19");
    static const char ptx[] = "// a\n.version 7.0\n.target sm_70\n.entry k() { ret; }\n";
    tools_write("a.ptx", ptx, sizeof ptx - 1);
    tools_write("b.bc", "BC\xc0\xde more", 9);
    tools_write("c.o", "nothing known", 13);
    tools_run("clang-offload-packager-19 -o o.bin "
              "--image=file=a.ptx,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=cuda "
              "--image=file=b.bc,triple=amdgcn-amd-amdhsa,arch=gfx90a:xnack+,kind=hip,extra=1 "
              "--image=file=b.bc,triple=amdgpu9.0a-amd-amdhsa,arch=gfx90a,kind=hip "
              "--image=file=c.o,triple=x86_64-unknown-linux-gnu,kind=openmp");
    static const struct {
        keel_image_kind_t kind;
        const char *name, *target;
        size_t size;
    } members[] = {
        {KEEL_IMAGE_PTX, "cuda-nvptx64-nvidia-cuda", "nvptx:sm_70", sizeof ptx - 1},
        {KEEL_IMAGE_BITCODE, "hip-amdgcn-amd-amdhsa", "gfx90a:xnack+", 9},
        {KEEL_IMAGE_BITCODE, "hip-amdgpu9.0a-amd-amdhsa", "gfx90a", 9},
        {KEEL_IMAGE_UNKNOWN, "openmp-x86_64-unknown-linux-gnu", "x86_64-linux", 13},
    };
    size_t size;
    char *data = tools_read("o.bin", &size);
    image_info_t info;
    read_well(image_read(data, size, &info));
    assert_int_equal(info.kind, KEEL_IMAGE_OFFLOAD);
    assert_int_equal(info.member_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(info.members[i].kind, members[i].kind);
        assert_string_equal(info.members[i].name, members[i].name);
        assert_string_equal(info.members[i].target, members[i].target);
        assert_int_equal(info.members[i].size, members[i].size);
        assert_int_equal(info.members[i].packing, IMAGE_PLAIN);
    }
    assert_memory_equal(info.members[0].data, ptx, sizeof ptx - 1);
    image_info_finish(&info);
    free(data);
}

// A binary with one text, made by hand: header, entry, string, texts and image.
typedef struct sample_t {
    uint32_t magic, version;
    uint64_t size, entry_offset, entry_size;
    uint16_t image_kind, offload_kind;
    uint32_t flags;
    uint64_t string_offset, string_count, image_offset, image_size;
    uint64_t key, value;
    char texts[16];
} sample_t;

static sample_t sample(void)
{
    return (sample_t){
        .magic = 0xad10ff10,
        .version = 1,
        .size = sizeof(sample_t),
        .entry_offset = 32,
        .entry_size = 40,
        .image_kind = 3,
        .offload_kind = 4,
        .string_offset = offsetof(sample_t, key),
        .string_count = 1,
        .image_offset = offsetof(sample_t, texts),
        .image_size = 4,
        .key = offsetof(sample_t, texts),
        .value = offsetof(sample_t, texts) + 7,
        .texts = "triple\0spirv64",
    };
}

static void test_by_hand(void **state)
{
    (void)state;
    sample_t good = sample();
    image_info_t info;
    read_well(offload_read(&good, sizeof good, &info));
    assert_int_equal(info.member_count, 1);
    assert_int_equal(info.members[0].kind, KEEL_IMAGE_CUBIN); // as the binary says, not its bytes
    assert_string_equal(info.members[0].name, "hip-spirv64");
    assert_string_equal(info.members[0].target, "spirv");
    image_info_finish(&info);
}

static void test_damaged(void **state)
{
    (void)state;
    image_info_t info;
#define DAMAGED(field, value_, code, words)                                                        \
    do {                                                                                           \
        sample_t bad = sample();                                                                   \
        bad.field = (value_);                                                                      \
        read_badly(offload_read(&bad, sizeof bad, &info), code, words);                            \
    } while (0)
    DAMAGED(magic, 0, KEEL_CORRUPT, "at byte 0");
    DAMAGED(version, 2, KEEL_UNSUPPORTED, "version 2");
    DAMAGED(size, 31, KEEL_CORRUPT, "cut off");
    DAMAGED(size, sizeof(sample_t) + 1, KEEL_CORRUPT, "cut off");
    DAMAGED(size, sizeof(sample_t) - 16, KEEL_CORRUPT, "the image");
    DAMAGED(entry_offset, UINT64_MAX, KEEL_CORRUPT, "the entry");
    DAMAGED(entry_size, 39, KEEL_CORRUPT, "the entry");
    DAMAGED(string_offset, UINT64_MAX - 8, KEEL_CORRUPT, "the table of texts");
    DAMAGED(string_count, UINT64_MAX / 16, KEEL_CORRUPT, "the table of texts");
    DAMAGED(image_size, UINT64_MAX, KEEL_CORRUPT, "the image");
    DAMAGED(key, UINT64_MAX, KEEL_CORRUPT, "a text");
#undef DAMAGED
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_packager),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, tools_begin, tools_end);
}
