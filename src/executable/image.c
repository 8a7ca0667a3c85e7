// SPDX-License-Identifier: Apache-2.0
#include "executable/image.h"

#include "executable/bundle.h"
#include "executable/contents.h"
#include "executable/cubin.h"
#include "executable/fatbin.h"
#include "executable/host.h"
#include "executable/hsaco.h"
#include "executable/offload.h"
#include "executable/ptx.h"
#include "executable/spirv.h"

static const char *const packing_names[IMAGE_PACKINGS] = {
    [IMAGE_PLAIN] = "plain", [IMAGE_LZ4] = "lz4", [IMAGE_ZSTD] = "zstd", [IMAGE_ZLIB] = "zlib"};

static const char *const param_kind_names[IMAGE_PARAM_KINDS] = {
    [IMAGE_PARAM_UNSAID] = "",         [IMAGE_PARAM_VALUE] = "value",
    [IMAGE_PARAM_POINTER] = "pointer", [IMAGE_PARAM_LOCAL] = "local",
    [IMAGE_PARAM_OPAQUE] = "opaque",   [IMAGE_PARAM_HIDDEN] = "hidden",
};

const char *image_packing_name(image_packing_t packing)
{
    return packing_names[packing];
}

const char *image_param_kind_name(image_param_kind_t kind)
{
    return param_kind_names[kind];
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
