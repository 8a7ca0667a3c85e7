// SPDX-License-Identifier: Apache-2.0
#include "executable/image.h"

#include "executable/bundle.h"
#include "executable/contents.h"
#include "executable/cubin.h"
#include "executable/elf.h"
#include "executable/fatbin.h"
#include "executable/host.h"
#include "executable/hsaco.h"
#include "executable/offload.h"
#include "executable/ptx.h"
#include "executable/spirv.h"

static const char *const packing_names[IMAGE_PACKINGS] = {
    [IMAGE_PLAIN] = "plain", [IMAGE_LZ4] = "lz4", [IMAGE_ZSTD] = "zstd", [IMAGE_ZLIB] = "zlib"};

const char *image_packing_name(image_packing_t packing)
{
    return packing_names[packing];
}

keel_status_t image_read(const void *data, size_t size, image_info_t *info)
{
    static keel_status_t (*const readers[KEEL_IMAGE_KINDS])(const void *, size_t,
                                                            image_info_t *) = {
        [KEEL_IMAGE_HOST] = host_read,          [KEEL_IMAGE_PTX] = ptx_read,
        [KEEL_IMAGE_CUBIN] = cubin_read,        [KEEL_IMAGE_FATBIN] = fatbin_read,
        [KEEL_IMAGE_HSACO] = hsaco_read,        [KEEL_IMAGE_SPIRV] = spirv_read,
        [KEEL_IMAGE_OFFLOAD] = offload_read,    [KEEL_IMAGE_BUNDLE] = bundle_read,
        [KEEL_IMAGE_CONTAINER] = contents_read,
    };
    *info = (image_info_t){.target = "", .version = "", .producer = ""};
    keel_image_kind_t kind = image_recognise(data, size);
    if (readers[kind]) return readers[kind](data, size, info);
    return KEEL_ERROR(KEEL_UNSUPPORTED, "it is no image of a kind that is known");
}

uint32_t image_given_size(const keel_image_entry_info_t *entry)
{
    uint32_t end = 0, hidden = 0;
    for (uint32_t i = 0; i < entry->param_count; i++) {
        const keel_image_param_t *param = &entry->params[i]; // by offset, within param_size
        if (param->kind == KEEL_PARAM_HIDDEN)
            hidden++;
        else
            end = param->offset + param->size;
    }
    return hidden ? end : entry->param_size;
}

static keel_status_t segments_add(const void *data, size_t size, uint64_t *sum)
{
    elf_t elf;
    KEEL_TRY(elf_open(data, size, &elf));
    for (uint32_t i = 0; i < elf.program_count; i++) {
        elf_segment_t segment;
        KEEL_TRY(elf_segment(&elf, i, &segment));
        if (segment.type != ELF_LOAD) continue;
        if (__builtin_add_overflow(*sum, segment.memory_size, sum))
            return KEEL_ERROR(KEEL_CORRUPT, "its segments have more bytes than there are");
    }
    return NULL;
}

uint64_t image_memory_size(const void *data, size_t size)
{
    uint64_t sum = 0;
    keel_status_t status = segments_add(data, size, &sum);
    bool known = !status;
    keel_status_release(status);
    return known ? sum : size;
}
