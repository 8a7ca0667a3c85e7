// SPDX-License-Identifier: Apache-2.0
// What holds for images of every kind, on the seeds of the fuzzers.
#include "executable/image.h"

#include "executable/build.h"
#include "refusing.h"
#include "tools.h"

static const struct {
    const char *file;
    keel_image_kind_t kind;
} samples[] = {
    {TESTS_DATA "/../fuzz/corpus/ptx/seed-hand", KEEL_IMAGE_PTX},
    {TESTS_DATA "/native.sm_120.cubin", KEEL_IMAGE_CUBIN},
    {TESTS_DATA "/native.zstd.fatbin", KEEL_IMAGE_FATBIN},
    {TESTS_DATA "/../fuzz/corpus/hsaco/seed-gfx900", KEEL_IMAGE_HSACO},
    {TESTS_DATA "/../fuzz/corpus/spirv/seed-vulkan1.0", KEEL_IMAGE_SPIRV},
    {TESTS_DATA "/../fuzz/corpus/spirv/seed-swapped", KEEL_IMAGE_SPIRV},
    {TESTS_DATA "/../fuzz/corpus/offload/seed-two", KEEL_IMAGE_OFFLOAD},
    {TESTS_DATA "/../fuzz/corpus/bundle/seed-three", KEEL_IMAGE_BUNDLE},
    {TESTS_DATA "/../fuzz/corpus/bundle/seed-three--compress", KEEL_IMAGE_BUNDLE},
    {TESTS_DATA "/../fuzz/corpus/host/seed-x86_64", KEEL_IMAGE_HOST},
    {TESTS_DATA "/../fuzz/corpus/host/seed-aarch64", KEEL_IMAGE_HOST},
    {TESTS_DATA "/../fuzz/corpus/container/seed-cc--compress", KEEL_IMAGE_CONTAINER},
};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

static void test_recognised(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        size_t size;
        char *data = tools_read(samples[i].file, &size);
        assert_int_equal(image_recognise(data, size), samples[i].kind);
        image_info_t info;
        read_well(image_read(data, size, &info));
        assert_int_equal(info.kind, samples[i].kind);
        assert_true(info.entry_count || info.member_count);
        image_info_finish(&info);
        free(data);
    }
    image_info_t info;
    read_badly(image_read("text", 4, &info), KEEL_UNSUPPORTED, "of a kind that is known");
    read_badly(image_read("", 0, &info), KEEL_UNSUPPORTED, "of a kind that is known");
    image_info_finish(&info);
    assert_int_equal(image_recognise("\177ELF", 4), KEEL_IMAGE_UNKNOWN);
}

// Whichever allocation fails, the reader says so, or does without it, and leaves nothing behind.
static void test_without_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        size_t size;
        char *data = tools_read(samples[i].file, &size);
        keel_allocator_set(&refusing);
        bool done = false;
        for (refused_at = 1; !done; refused_at++) {
            image_info_t info;
            made = live = 0;
            keel_status_t status = image_read(data, size, &info);
            done = !status && made < refused_at;
            if (!done) assert_int_equal(keel_status_code(status), KEEL_OUT_OF_MEMORY);
            keel_status_release(status);
            image_info_finish(&info);
            assert_int_equal(live, 0);
        }
        assert_true(refused_at > 2);
        keel_allocator_set(NULL);
        free(data);
    }
}

static void test_memory_has_a_bound(void **state)
{
    (void)state;
    image_info_t info;
    read_well(image_begin(&info, KEEL_IMAGE_PTX, 0));
    void *block;
    keel_status_t status = NULL;
    size_t total = 0;
    for (; !status; total += 1000) status = image_alloc(&info, 1000, &block);
    assert_true(total < 100000);
    read_badly(status, KEEL_CORRUPT, "more than 65536 bytes");
    read_badly(image_alloc(&info, UINT64_MAX, &block), KEEL_CORRUPT, "more than");
    image_info_finish(&info);
}

static void test_arrays_grow(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    image_info_t info;
    read_well(image_begin(&info, KEEL_IMAGE_PTX, 1 << 20));
    for (uint32_t i = 0; i < COUNT; i++) {
        keel_image_entry_info_t *entry;
        char name[16];
        snprintf(name, sizeof name, "k%u", i);
        read_well(image_add_entry(&info, &entry));
        read_well(image_text(&info, name, sizeof name, &entry->name));
    }
    assert_int_equal(info.entry_count, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%u", i);
        assert_string_equal(info.entries[i].name, name);
        assert_int_equal(info.entries[i].wave_size, KEEL_UNSAID);
    }
    image_info_finish(&info);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recognised),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_memory_has_a_bound),
        cmocka_unit_test(test_arrays_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
