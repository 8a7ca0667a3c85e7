// SPDX-License-Identifier: Apache-2.0
// Containers: which image is loaded, and that damage is noticed where it matters.
#include "suite/suite.h"

#include <unistd.h>

#define RUNS .needs = KEEL_CAP_EXECUTES

// One for the host alone, not compressed, and one for a GPU.
extern const unsigned char keel_embed_conformance_for_host[], keel_embed_conformance_for_cuda[];
extern const uint64_t keel_embed_conformance_for_host_size, keel_embed_conformance_for_cuda_size;

typedef struct bytes_t {
    const unsigned char *data;
    size_t size;
} bytes_t;

static keel_status_t load(bytes_t bytes)
{
    keel_executable_options_t options = {.data = bytes.data, .size = bytes.size};
    keel_executable_t *executable = NULL;
    keel_status_t status = keel_executable_load(the_device(), &options, &executable);
    keel_executable_release(executable);
    return status;
}

static void remove_file(void *user)
{
    unlink(user);
}

static const char *file_of(bytes_t bytes)
{
    char *path = scratch(64);
    strcpy(path, "/tmp/keel-conformance-XXXXXX");
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    own_cleanup(remove_file, path);
    ssize_t written = write(fd, bytes.data, bytes.size);
    close(fd);
    CHECK(written == (ssize_t)bytes.size);
    return path;
}

static keel_status_t load_file(bytes_t bytes)
{
    keel_executable_options_t options = {.path = file_of(bytes)};
    keel_executable_t *executable = NULL;
    keel_status_t status = keel_executable_load(the_device(), &options, &executable);
    keel_executable_release(executable);
    return status;
}

// The suite's own container, to be changed.
static bytes_t changeable(size_t more)
{
    bytes_t bytes;
    const void *data;
    kernels(); // where the device does not take them, the test ends here
    kernels_image(&data, &bytes.size);
    unsigned char *copy = scratch(bytes.size + more);
    memcpy(copy, data, bytes.size);
    memset(copy + bytes.size, 0, more);
    bytes.data = copy;
    return bytes;
}

static void flip(bytes_t bytes, size_t at)
{
    ((unsigned char *)(uintptr_t)bytes.data)[at] ^= 0x55;
}

TEST(container, from_memory_and_file, RUNS)
{
    bytes_t bytes = changeable(0);
    TRY(load(bytes));
    TRY(load_file(bytes));
}

TEST(container, not_compressed, RUNS, .driver = "cpu")
{
    keel_executable_options_t options = {.data = keel_embed_conformance_for_host,
                                         .size = keel_embed_conformance_for_host_size};
    keel_executable_t *executable = NULL;
    keel_entry_t entry;
    keel_buffer_t *out = new_buffer(8);
    TRY(keel_executable_load(the_device(), &options, &executable));
    OWN(executable);
    TRY(keel_executable_entry(executable, "seven", &entry));
    reach(submit(keel_op_dispatch(entry, keel_groups(2, 1, 1), NULL, 0, KEEL_BIND(out))));
    CHECK_EQ(buffer_u32(out, 0), 7);
    CHECK_EQ(buffer_u32(out, 1), 7);
}

// The message has what there is and what there should be.
TEST(container, nothing_fits, RUNS)
{
    const char *target = keel_device_info(the_device())->target;
    bool cuda = strncmp(target, "nvptx", 5) == 0;
    bytes_t host = {keel_embed_conformance_for_host, keel_embed_conformance_for_host_size};
    bytes_t other = {keel_embed_conformance_for_cuda, keel_embed_conformance_for_cuda_size};
    FAILS_SAYING(KEEL_UNSUPPORTED, target, load(cuda ? host : other));
    FAILS_SAYING(KEEL_UNSUPPORTED, cuda ? "-linux" : "nvptx:sm_0", load(cuda ? host : other));
    FAILS_SAYING(KEEL_UNSUPPORTED, target, load_file(cuda ? host : other));
}

// A change in the table of contents is always noticed; one behind it if it hits the image that is
// loaded, and no other is looked at.
TEST(container, changed_bytes, RUNS, .heavy = true)
{
    bytes_t bytes = changeable(0);
    uint32_t contents;
    memcpy(&contents, bytes.data + 12, sizeof contents);
    size_t end = 64 + contents, noticed = 0, unnoticed = 0;
    for (size_t i = 0; i < 16; i++) {
        size_t at = 64 + (size_t)contents * i / 16;
        row("byte %zu of %zu", at, bytes.size);
        flip(bytes, at);
        FAILS(KEEL_CORRUPT, load(bytes));
        flip(bytes, at);
    }
    for (size_t i = 0; i < 64; i++) {
        size_t at = end + (bytes.size - end) * i / 64;
        row("byte %zu of %zu", at, bytes.size);
        flip(bytes, at);
        keel_status_t status = load(bytes);
        if (status)
            noticed++;
        else
            unnoticed++;
        if (keel_status_code(status) != KEEL_CORRUPT) TRY(status);
        keel_status_release(status);
        flip(bytes, at);
    }
    CHECK_GE(noticed, 1);
    CHECK_GE(unnoticed, 1);
}

TEST(container, cut_short_in_a_file, RUNS)
{
    bytes_t bytes = changeable(0);
    const size_t sizes[] = {8, 63, 64, 65, bytes.size / 2, bytes.size - 1};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        row("%zu of %zu bytes", sizes[i], bytes.size);
        FAILS(KEEL_CORRUPT, load_file((bytes_t){bytes.data, sizes[i]}));
    }
}

TEST(container, too_long, RUNS)
{
    bytes_t bytes = changeable(1);
    bytes.size++;
    FAILS_SAYING(KEEL_CORRUPT, "too long", load(bytes));
}

TEST(container, another_version, RUNS)
{
    bytes_t bytes = changeable(0);
    ((unsigned char *)(uintptr_t)bytes.data)[8] = 2;
    FAILS_SAYING(KEEL_UNSUPPORTED, "version 2", load(bytes));
}

// At an address that is not aligned to anything.
TEST(container, anywhere_in_memory, RUNS)
{
    bytes_t bytes = changeable(1);
    unsigned char *data = (unsigned char *)(uintptr_t)bytes.data;
    memmove(data + 1, data, bytes.size);
    bytes.data++;
    TRY(load(bytes));
}
