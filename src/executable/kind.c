// SPDX-License-Identifier: Apache-2.0
#include "executable/kind.h"

#include <string.h>

#include "executable/bundle_text.h"
#include "executable/container.h"
#include "executable/ptx.h"

static const char *const kind_names[KEEL_IMAGE_KINDS] = {
    [KEEL_IMAGE_UNKNOWN] = "unknown",   [KEEL_IMAGE_HOST] = "host",
    [KEEL_IMAGE_PTX] = "ptx",           [KEEL_IMAGE_CUBIN] = "cubin",
    [KEEL_IMAGE_FATBIN] = "fatbin",     [KEEL_IMAGE_HSACO] = "hsaco",
    [KEEL_IMAGE_SPIRV] = "spirv",       [KEEL_IMAGE_OFFLOAD] = "offload",
    [KEEL_IMAGE_BUNDLE] = "bundle",     [KEEL_IMAGE_MSL] = "msl",
    [KEEL_IMAGE_METALLIB] = "metallib", [KEEL_IMAGE_CONTAINER] = "container",
    [KEEL_IMAGE_BITCODE] = "bitcode",
};

const char *image_kind_name(keel_image_kind_t kind)
{
    return kind_names[kind];
}

// An ELF file's machine says whose it is.
static keel_image_kind_t elf_recognise(const uint8_t *bytes, size_t size)
{
    if (size < 20) return KEEL_IMAGE_UNKNOWN;
    switch (bytes[18] | bytes[19] << 8) {
    case 62:
    case 183: return KEEL_IMAGE_HOST;
    case 190: return KEEL_IMAGE_CUBIN;
    case 224: return KEEL_IMAGE_HSACO;
    default: return KEEL_IMAGE_UNKNOWN;
    }
}

keel_image_kind_t image_recognise(const void *data, size_t size)
{
    static const struct {
        const char *magic;
        size_t length;
        keel_image_kind_t kind;
    } magics[] = {
        {"\x50\xed\x55\xba", 4, KEEL_IMAGE_FATBIN},
        {"\x03\x02\x23\x07", 4, KEEL_IMAGE_SPIRV},
        {"\x07\x23\x02\x03", 4, KEEL_IMAGE_SPIRV},
        {"\x10\xff\x10\xad", 4, KEEL_IMAGE_OFFLOAD},
        {"__CLANG_OFFLOAD_BUNDLE__", 24, KEEL_IMAGE_BUNDLE},
        {"CCOB", 4, KEEL_IMAGE_BUNDLE},
        {"BC\xc0\xde", 4, KEEL_IMAGE_BITCODE},
    };
    if (size >= 4 && !memcmp(data, "\177ELF", 4)) return elf_recognise(data, size);
    if (container_is(data, size)) return KEEL_IMAGE_CONTAINER;
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++)
        if (size >= magics[i].length && !memcmp(data, magics[i].magic, magics[i].length))
            return magics[i].kind;
    if (bundle_is_text(data, size)) return KEEL_IMAGE_BUNDLE;
    return ptx_recognise(data, size) ? KEEL_IMAGE_PTX : KEEL_IMAGE_UNKNOWN;
}
