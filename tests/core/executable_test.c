// SPDX-License-Identifier: Apache-2.0
// Executables from containers, on a real device.
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <keel/keel.h>

#include "executable/packed.h"

static keel_device_t *device;
static void *kernels; // an image for this machine
static size_t kernels_size;
static char base[64]; // the target of this machine that all of its kind can run

static int prepare(void **state)
{
    (void)state;
    OK(keel_device_open("cpu://inline", NULL, &device));
    snprintf(base, sizeof base, "%s", keel_device_info(device)->target);
    base[strcspn(base, ":")] = 0;
    source_t source;
    OK(source_open(KERNELS, &source));
    kernels_size = source.size;
    kernels = malloc(kernels_size);
    OK(source_read(&source, kernels, kernels_size, 0));
    source_finish(&source);
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    keel_device_release(device);
    free(kernels);
    return 0;
}

// Kernels of this machine, said to be for `target`.
static container_input_t good_for(const char *target)
{
    return (container_input_t){KEEL_IMAGE_HOST, target, kernels, kernels_size, NULL, 0};
}

// Something that would not load.
static container_input_t bad_for(const char *target)
{
    return (container_input_t){KEEL_IMAGE_HOST, target, "not code", 8, NULL, 0};
}

static packed_t pack(const container_input_t *images, uint32_t count, bool compress)
{
    void *bytes;
    packed_t packed;
    OK(container_write(&(container_options_t){.compress = compress}, images, count, &bytes,
                       &packed.size));
    packed.bytes = bytes;
    return packed;
}

static keel_status_t load(const keel_executable_options_t *options)
{
    keel_executable_t *executable = NULL;
    KEEL_TRY(keel_executable_load(device, options, &executable));
    keel_entry_t entry;
    keel_buffer_t *word = NULL;
    keel_point_t done;
    uint32_t value = 0;
    OK(keel_executable_entry(executable, "tally", &entry));
    OK(keel_buffer_create(device, &(keel_buffer_options_t){.size = 4}, &word));
    keel_op_t ops[] = {
        keel_op_fill(keel_whole(word), 0, 4),
        keel_op_barrier(),
        keel_op_dispatch(entry, keel_groups(3, 1, 1), NULL, 0, KEEL_BIND(word)),
    };
    OK(keel_queue_submit(keel_device_queue(device, 0), KEEL_NO_WAITS, ops, 3, KEEL_NO_SIGNALS,
                         &done));
    OK(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    OK(keel_buffer_read(word, 0, &value, 4));
    assert_int_equal(value, 3);
    keel_buffer_release(word);
    keel_executable_release(executable);
    return NULL;
}

static keel_status_t load_bytes(const packed_t *packed)
{
    return load(&(keel_executable_options_t){.data = packed->bytes, .size = packed->size});
}

static keel_status_t load_file(const packed_t *packed)
{
    char path[] = "/tmp/keel-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, packed->bytes, packed->size) == (ssize_t)packed->size);
    close(fd);
    keel_status_t status = load(&(keel_executable_options_t){.path = path});
    unlink(path);
    return status;
}

static void test_load(void **state)
{
    (void)state;
    const container_input_t images[] = {bad_for("gfx90a"), good_for(base), bad_for("nvptx:sm_70")};
    for (int compress = 0; compress < 2; compress++) {
        packed_t packed = pack(images, 3, compress);
        OK(load_bytes(&packed));
        OK(load_file(&packed));
        mem_free(packed.bytes);
    }
}

// An image for a better machine than any, one for exactly this, one for all of its kind.
static void test_best(void **state)
{
    (void)state;
    char beyond[80];
    snprintf(beyond, sizeof beyond, "%s:v99", base);
    const container_input_t fallback[] = {bad_for(beyond), good_for(base)};
    packed_t packed = pack(fallback, 2, false);
    OK(load_bytes(&packed));
    mem_free(packed.bytes);
    if (strcmp(base, keel_device_info(device)->target) == 0) return;
    const container_input_t exact[] = {bad_for(base), good_for(keel_device_info(device)->target)};
    packed = pack(exact, 2, false);
    OK(load_bytes(&packed));
    mem_free(packed.bytes);
}

// The kind counts, too.
static void test_kind(void **state)
{
    (void)state;
    container_input_t image = good_for(base);
    image.kind = KEEL_IMAGE_SPIRV;
    packed_t packed = pack(&image, 1, false);
    expect_failure(load_bytes(&packed), KEEL_UNSUPPORTED, base);
    mem_free(packed.bytes);
}

static void test_none_fits(void **state)
{
    (void)state;
    const container_input_t images[] = {bad_for("gfx90a"), bad_for("nvptx:sm_70")};
    packed_t packed = pack(images, 2, false);
    char words[128];
    snprintf(words, sizeof words, "images for gfx90a, nvptx:sm_70; the device needs one for %s",
             keel_device_info(device)->target);
    expect_failure(load_bytes(&packed), KEEL_UNSUPPORTED, words);
    expect_failure(load_file(&packed), KEEL_UNSUPPORTED, words);
    mem_free(packed.bytes);
    packed = pack(NULL, 0, false);
    expect_failure(load_bytes(&packed), KEEL_UNSUPPORTED, "images for nothing");
    mem_free(packed.bytes);
}

// So many that the message cannot name them all.
static void test_none_of_many_fits(void **state)
{
    (void)state;
    container_input_t images[200];
    for (int i = 0; i < 200; i++) images[i] = bad_for("nvptx:sm_70");
    packed_t packed = pack(images, 200, false);
    expect_failure(load_bytes(&packed), KEEL_UNSUPPORTED, "...; the device needs one");
    mem_free(packed.bytes);
}

static void test_damaged(void **state)
{
    (void)state;
    const container_input_t images[] = {good_for(base)};
    for (int compress = 0; compress < 2; compress++) {
        packed_t packed = pack(images, 1, compress);
        packed_t part = {packed.bytes, packed.size - 1};
        expect_failure(load_bytes(&part), KEEL_CORRUPT, "truncated");
        expect_failure(load_file(&part), KEEL_CORRUPT, "truncated");
        packed.bytes[packed.size / 2] ^= 1;
        expect_failure(load_bytes(&packed), KEEL_CORRUPT, "the image for");
        expect_failure(load_file(&packed), KEEL_CORRUPT, "the image for");
        mem_free(packed.bytes);
    }
}

// An image whose entry point wants more than there is. The numbers lie in the order of
// keel_host_entry_t.
static void test_limits(void **state)
{
    (void)state;
    static const uint32_t good[6] = {4, 3, 2, 0, 1, 128};
    static const struct {
        uint32_t numbers[6];
        const char *words;
    } cases[] = {
        {{0, 3, 2, 0, 1, 128}, "workgroups of 0 x 3 x 2"},
        {{4, 3, 0, 0, 1, 128}, "workgroups of 4 x 3 x 0"},
        {{UINT32_MAX, UINT32_MAX, UINT32_MAX, 0, 1, 128}, "workgroups of 4294967295 x"},
        {{4, 3, 2, UINT32_MAX, 1, 128}, "4294967295 bytes of constants"},
        {{4, 3, 2, 0, 1, UINT32_MAX}, "4294967295 bytes of workgroup memory"},
    };
    unsigned char *numbers = kernels;
    while (memcmp(numbers, good, sizeof good) != 0) numbers += 4;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memcpy(numbers, cases[i].numbers, sizeof good);
        packed_t alone = {kernels, kernels_size};
        expect_failure(load_bytes(&alone), KEEL_UNSUPPORTED, cases[i].words);
    }
    memcpy(numbers, good, sizeof good);
    OK(load_bytes(&(packed_t){kernels, kernels_size}));
}

enum { MANY = 100, NEEDED = 61 };

// A hundred images of which one fits.
static packed_t pack_many(container_t *contents)
{
    static char targets[MANY][16];
    container_input_t images[MANY];
    for (int i = 0; i < MANY; i++) {
        snprintf(targets[i], sizeof targets[i], "gfx%d", 1000 + i);
        images[i] = good_for(i == NEEDED ? base : targets[i]);
    }
    packed_t packed = pack(images, MANY, false);
    OK(packed_read(&packed, contents));
    return packed;
}

// All but the table of contents and the one image lie in pages that cannot be touched.
static void test_touches_only_what_it_needs(void **state)
{
    (void)state;
    container_t contents;
    packed_t packed = pack_many(&contents);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *copy =
        mmap(NULL, packed.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(copy != MAP_FAILED);
    memcpy(copy, packed.bytes, packed.size);
    const container_image_t *needed = &contents.images[NEEDED];
    size_t before = contents.images[0].offset, after = needed->offset + needed->size;
    size_t first = (before + page - 1) / page * page, last = needed->offset / page * page;
    size_t rest = (after + page - 1) / page * page;
    assert_true(last > first && packed.size > rest);
    assert_int_equal(mprotect(copy + first, last - first, PROT_NONE), 0);
    assert_int_equal(mprotect(copy + rest, packed.size - rest, PROT_NONE), 0);
    packed_t guarded = {copy, packed.size};
    OK(load_bytes(&guarded));
    munmap(copy, packed.size);
    container_finish(&contents);
    mem_free(packed.bytes);
}

// Bytes that this process has read by system calls, where the system counts them.
static bool bytes_read(unsigned long long *count)
{
    FILE *file = fopen("/proc/self/io", "r");
    bool got = file && fscanf(file, "rchar: %llu", count) == 1;
    if (file) fclose(file);
    return got;
}

static void test_reads_only_what_it_needs(void **state)
{
    (void)state;
    container_t contents;
    packed_t packed = pack_many(&contents);
    char path[] = "/tmp/keel-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, packed.bytes, packed.size) == (ssize_t)packed.size);
    close(fd);
    unsigned long long before = 0, after = 0;
    bool counted = bytes_read(&before);
    OK(load(&(keel_executable_options_t){.path = path}));
    counted = counted && bytes_read(&after);
    unlink(path);
    size_t most = kernels_size + packed_prefix(&packed).contents + 64 * 1024;
    container_finish(&contents);
    mem_free(packed.bytes);
    if (!counted) skip();
    print_message("%llu of %zu bytes were read\n", after - before, packed.size);
    assert_true(most < packed.size / 10);
    assert_in_range(after - before, kernels_size, most);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load),
        cmocka_unit_test(test_best),
        cmocka_unit_test(test_kind),
        cmocka_unit_test(test_none_fits),
        cmocka_unit_test(test_none_of_many_fits),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_touches_only_what_it_needs),
        cmocka_unit_test(test_reads_only_what_it_needs),
    };
    return cmocka_run_group_tests(tests, prepare, tidy);
}
