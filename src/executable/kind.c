// SPDX-License-Identifier: Apache-2.0
#include "executable/kind.h"

#include <string.h>

#include "executable/bundle_text.h"
#include "executable/container.h"
#include "executable/ptx.h"

static const char *const kind_names[IMAGE_KINDS] = {
    [IMAGE_UNKNOWN] = "unknown", [IMAGE_HOST] = "host",         [IMAGE_PTX] = "ptx",
    [IMAGE_CUBIN] = "cubin",     [IMAGE_FATBIN] = "fatbin",     [IMAGE_HSACO] = "hsaco",
    [IMAGE_SPIRV] = "spirv",     [IMAGE_OFFLOAD] = "offload",   [IMAGE_BUNDLE] = "bundle",
    [IMAGE_MSL] = "msl",         [IMAGE_METALLIB] = "metallib", [IMAGE_CONTAINER] = "container",
    [IMAGE_BITCODE] = "bitcode",
};

const char *image_kind_name(image_kind_t kind)
{
    return kind_names[kind];
}

// An ELF file's machine says whose it is.
static image_kind_t elf_recognise(const uint8_t *bytes, size_t size)
{
    if (size < 20) return IMAGE_UNKNOWN;
    switch (bytes[18] | bytes[19] << 8) {
    case 62:
    case 183: return IMAGE_HOST;
    case 190: return IMAGE_CUBIN;
    case 224: return IMAGE_HSACO;
    default: return IMAGE_UNKNOWN;
    }
}

image_kind_t image_recognise(const void *data, size_t size)
{
    static const struct {
        const char *magic;
        size_t length;
        image_kind_t kind;
    } magics[] = {
        {"\x50\xed\x55\xba", 4, IMAGE_FATBIN},
        {"\x03\x02\x23\x07", 4, IMAGE_SPIRV},
        {"\x07\x23\x02\x03", 4, IMAGE_SPIRV},
        {"\x10\xff\x10\xad", 4, IMAGE_OFFLOAD},
        {"__CLANG_OFFLOAD_BUNDLE__", 24, IMAGE_BUNDLE},
        {"CCOB", 4, IMAGE_BUNDLE},
        {"BC\xc0\xde", 4, IMAGE_BITCODE},
    };
    if (size >= 4 && !memcmp(data, "\177ELF", 4)) return elf_recognise(data, size);
    if (container_is(data, size)) return IMAGE_CONTAINER;
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++)
        if (size >= magics[i].length && !memcmp(data, magics[i].magic, magics[i].length))
            return magics[i].kind;
    if (bundle_is_text(data, size)) return IMAGE_BUNDLE;
    return ptx_recognise(data, size) ? IMAGE_PTX : IMAGE_UNKNOWN;
}
