// SPDX-License-Identifier: Apache-2.0
#include "executable/image.h"

#include <string.h>

#include "executable/bundle.h"
#include "executable/container.h"
#include "executable/contents.h"
#include "executable/cubin.h"
#include "executable/fatbin.h"
#include "executable/host.h"
#include "executable/hsaco.h"
#include "executable/offload.h"
#include "executable/ptx.h"
#include "executable/spirv.h"

static const char *const kind_names[IMAGE_KINDS] = {
    [IMAGE_UNKNOWN] = "unknown", [IMAGE_HOST] = "host",         [IMAGE_PTX] = "ptx",
    [IMAGE_CUBIN] = "cubin",     [IMAGE_FATBIN] = "fatbin",     [IMAGE_HSACO] = "hsaco",
    [IMAGE_SPIRV] = "spirv",     [IMAGE_OFFLOAD] = "offload",   [IMAGE_BUNDLE] = "bundle",
    [IMAGE_MSL] = "msl",         [IMAGE_METALLIB] = "metallib", [IMAGE_CONTAINER] = "container",
    [IMAGE_BITCODE] = "bitcode",
};

static const char *const packing_names[IMAGE_PACKINGS] = {
    [IMAGE_PLAIN] = "plain", [IMAGE_LZ4] = "lz4", [IMAGE_ZSTD] = "zstd", [IMAGE_ZLIB] = "zlib"};

static const char *const param_kind_names[IMAGE_PARAM_KINDS] = {
    [IMAGE_PARAM_UNSAID] = "",         [IMAGE_PARAM_VALUE] = "value",
    [IMAGE_PARAM_POINTER] = "pointer", [IMAGE_PARAM_LOCAL] = "local",
    [IMAGE_PARAM_OPAQUE] = "opaque",   [IMAGE_PARAM_HIDDEN] = "hidden",
};

const char *image_kind_name(image_kind_t kind)
{
    return kind_names[kind];
}

const char *image_packing_name(image_packing_t packing)
{
    return packing_names[packing];
}

const char *image_param_kind_name(image_param_kind_t kind)
{
    return param_kind_names[kind];
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

keel_status_t image_read(const void *data, size_t size, image_info_t *info)
{
    static keel_status_t (*const readers[IMAGE_KINDS])(const void *, size_t, image_info_t *) = {
        [IMAGE_HOST] = host_read,          [IMAGE_PTX] = ptx_read,
        [IMAGE_CUBIN] = cubin_read,        [IMAGE_FATBIN] = fatbin_read,
        [IMAGE_HSACO] = hsaco_read,        [IMAGE_SPIRV] = spirv_read,
        [IMAGE_OFFLOAD] = offload_read,    [IMAGE_BUNDLE] = bundle_read,
        [IMAGE_CONTAINER] = contents_read,
    };
    *info = (image_info_t){.target = "", .version = "", .producer = ""};
    image_kind_t kind = image_recognise(data, size);
    if (readers[kind]) return readers[kind](data, size, info);
    return KEEL_ERROR(KEEL_UNSUPPORTED, "it is no image of a kind that is known");
}
