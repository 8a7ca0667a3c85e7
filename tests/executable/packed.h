// SPDX-License-Identifier: Apache-2.0
// A container to test with.
#ifndef TESTS_EXECUTABLE_PACKED_H_
#define TESTS_EXECUTABLE_PACKED_H_

#include <string.h>

#include "base/memory.h"
#include "executable/format.h"

#include "ok.h"
#include "unit.h"

static inline void expect_failure(keel_status_t status, keel_code_t code, const char *words)
{
    char text[2048];
    keel_status_format(status, text, sizeof text);
    if (keel_status_code(status) != code || !strstr(text, words))
        fail_msg("expected %s and '%s', got %s", keel_code_name(code), words, text);
    keel_status_release(status);
}

// One word over and over, so that it compresses.
static inline const unsigned char *sample_bytes(void)
{
    static unsigned char bytes[5000];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)("saxpy"[i % 5] + i / 1000);
    return bytes;
}

static const keel_binding_info_t sample_bindings[] = {
    {.name = "x", .access = KEEL_ACCESS_READ},
    {.name = "", .access = KEEL_ACCESS_READ | KEEL_ACCESS_WRITE},
};

static const keel_image_entry_t sample_entries[] = {
    {.info = {.name = "saxpy",
              .group_size = {64, 2, 1},
              .constants = 8,
              .bindings = 2,
              .local_memory = 1024},
     .bindings = sample_bindings,
     .abi = KEEL_ABI_DIRECT},
    {.info = {.name = "größe", .group_size = {1, 1, 1}}, .abi = KEEL_ABI_RAW, .arguments = 40},
};

typedef struct packed_t {
    unsigned char *bytes;
    size_t size;
} packed_t;

// Two images: 5000 bytes with two entry points for gfx90a, and 7 bytes with none for nvptx:sm_70.
static inline packed_t packed_make(bool compress)
{
    const container_input_t images[] = {
        {KEEL_IMAGE_HSACO, "gfx90a", sample_bytes(), 5000, sample_entries, 2},
        {KEEL_IMAGE_PTX, "nvptx:sm_70", "// ptx\n", 7, NULL, 0},
    };
    const container_options_t options = {.producer = "a test", .compress = compress};
    packed_t packed;
    void *bytes;
    OK(container_write(&options, images, 2, &bytes, &packed.size));
    packed.bytes = bytes;
    return packed;
}

static inline prefix_t packed_prefix(const packed_t *packed)
{
    prefix_t prefix;
    memcpy(&prefix, packed->bytes, sizeof prefix);
    return prefix;
}

// After a change of the contents.
static inline void packed_rehash(packed_t *packed)
{
    prefix_t prefix = packed_prefix(packed);
    prefix.hash = hash_of(packed->bytes + sizeof prefix, prefix.contents);
    memcpy(packed->bytes, &prefix, sizeof prefix);
}

static inline keel_status_t packed_read(const packed_t *packed, container_t *container)
{
    source_t source = source_of_memory(packed->bytes, packed->size);
    return container_read(&source, container);
}

#endif
