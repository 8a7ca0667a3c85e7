// SPDX-License-Identifier: Apache-2.0
// What kernels take that is more than a block of a few bytes: argument buffers, and blocks or
// constants that are larger than an encoder takes them. All of these are cut from memory of the
// run.
//
// An argument buffer is a list of pointers. Where Metal lets the host write addresses into it (tier
// 2), it is the addresses of what is bound, and goes to the encoder as bytes. Elsewhere an encoder
// of Metal's writes it, into memory. Encoders belong to a kernel and serve one thread at a time, so
// those that are not in use are kept with its pipeline.
#include <string.h>

#include "base/status.h"
#include "drivers/metal/encode/encode.h"
#include "drivers/metal/executable/module.h"
#include "drivers/metal/memory/memory.h"

enum {
    ALIGNED = 256,    // what every GPU takes as the offset of constants
    ADDRESSES_AT = 16 // in the block, behind the grid
};

keel_status_t metal_bytes_set(metal_run_t *run, const void *bytes, uint32_t size,
                              unsigned long index)
{
    const metal_api_t *api = metal_run_device(run)->api;
    metal_place_t place;
    void *data;
    if (!size) return NULL;
    if (size <= METAL_BYTES) {
        mtl_set_bytes(api, run->encoder, bytes, size, index);
        return NULL;
    }
    KEEL_TRY(metal_stage_cut(run, size, &place, &data));
    memcpy(data, bytes, size);
    mtl_set_buffer(api, run->encoder, place.buffer, place.offset, index);
    return NULL;
}

// One of the kernel's, or a new one; the caller has it until it gives it back.
static id encoder_take(const metal_api_t *api, metal_pipeline_t *code)
{
    id encoder = NULL;
    lock_enter(&code->lock);
    if (code->encoder_count) encoder = code->encoders[--code->encoder_count];
    lock_leave(&code->lock);
    return encoder ? encoder : mtl_new_argument_encoder(api, code->function, METAL_AT_BLOCK);
}

static void encoder_give_back(const metal_api_t *api, metal_pipeline_t *code, id encoder)
{
    lock_enter(&code->lock);
    bool kept = code->encoder_count < METAL_SPARE;
    if (kept) code->encoders[code->encoder_count++] = encoder;
    lock_leave(&code->lock);
    if (!kept) mtl_release(api, encoder);
}

static keel_status_t arguments_encode(metal_run_t *run, id encoder, const keel_cmd_dispatch_t *c,
                                      const keel_cmd_execute_t *execute, const metal_place_t *sizes)
{
    const metal_api_t *api = metal_run_device(run)->api;
    metal_place_t place, bound;
    void *data;
    KEEL_TRY(metal_stage_cut(run, mtl_encoded_length(api, encoder), &place, &data));
    mtl_set_argument_buffer(api, encoder, place.buffer, place.offset);
    for (uint16_t i = 0; i < c->binding_count; i++) {
        KEEL_TRY(metal_place(&c->bindings[i], execute, &bound));
        mtl_set_argument(api, encoder, bound.buffer, bound.offset, i);
    }
    if (sizes->buffer)
        mtl_set_argument(api, encoder, sizes->buffer, sizes->offset, c->binding_count);
    mtl_set_buffer(api, run->encoder, place.buffer, place.offset, METAL_AT_BLOCK);
    return NULL;
}

// By an encoder of Metal's.
static keel_status_t encoded_set(metal_run_t *run, const keel_cmd_dispatch_t *c,
                                 const keel_cmd_execute_t *execute, const metal_place_t *sizes)
{
    metal_pipeline_t *code = ((const metal_kernel_t *)c->kernel)->code;
    const metal_api_t *api = metal_run_device(run)->api;
    id encoder = encoder_take(api, code);
    if (!encoder) return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "Metal has no argument encoder left");
    keel_status_t status = arguments_encode(run, encoder, c, execute, sizes);
    encoder_give_back(api, code, encoder);
    return status;
}

static void sizes_write(const keel_cmd_dispatch_t *c, const uint64_t *lengths, uint32_t *words)
{
    for (uint16_t i = 0; i < c->binding_count; i++)
        words[i] = lengths[i] < UINT32_MAX ? (uint32_t)lengths[i] : UINT32_MAX;
}

// Words with the lengths of what is bound, which are behind the addresses in the block.
static keel_status_t sizes_set(metal_run_t *run, const keel_cmd_dispatch_t *c,
                               const uint64_t *lengths, metal_place_t *place)
{
    void *data;
    KEEL_TRY(metal_stage_cut(run, c->binding_count * sizeof(uint32_t), place, &data));
    sizes_write(c, lengths, data);
    mtl_set_buffer(metal_run_device(run)->api, run->encoder, place->buffer, place->offset,
                   METAL_AT_SIZES);
    return NULL;
}

// Whether the encoder has these addresses, and the lengths if the kernel asks for them. What an
// encoder of Metal's has written is for one kernel.
static bool bound_has(const metal_run_t *run, const metal_pipeline_t *code,
                      const unsigned char *addresses, uint32_t size)
{
    if (!size || run->bound.size != size || memcmp(run->bound.block, addresses, size)) return false;
    if (metal_run_device(run)->encoded) return run->bound.code == code;
    return run->bound.sizes || !code->sizes;
}

static keel_status_t bound_set(metal_run_t *run, const keel_cmd_dispatch_t *c,
                               const keel_cmd_execute_t *execute, const unsigned char *block)
{
    const metal_pipeline_t *code = ((const metal_kernel_t *)c->kernel)->code;
    uint64_t addresses[METAL_BINDINGS + 1], lengths[METAL_BINDINGS];
    uint32_t size = c->binding_count * (uint32_t)sizeof *addresses;
    metal_place_t sizes = {0};
    memcpy(addresses, block, size);
    memcpy(lengths, block + size, size);
    if (code->sizes) KEEL_TRY(sizes_set(run, c, lengths, &sizes));
    if (metal_run_device(run)->encoded && c->binding_count)
        return encoded_set(run, c, execute, &sizes);
    addresses[c->binding_count] = code->sizes ? metal_memory_address(run->chunk) + sizes.offset : 0;
    uint32_t count = c->binding_count + (code->sizes ? 1u : 0u);
    return metal_bytes_set(run, addresses, count * (uint32_t)sizeof *addresses, METAL_AT_BLOCK);
}

keel_status_t metal_arguments_set(metal_run_t *run, const keel_cmd_dispatch_t *c,
                                  const keel_cmd_execute_t *execute, const unsigned char *block)
{
    const metal_pipeline_t *code = ((const metal_kernel_t *)c->kernel)->code;
    const unsigned char *addresses = block + ADDRESSES_AT; // and lengths
    uint32_t size = 2 * c->binding_count * (uint32_t)sizeof(uint64_t);
    if (!bound_has(run, code, addresses, size)) {
        run->bound.size = 0;
        KEEL_TRY(bound_set(run, c, execute, addresses));
        run->bound.code = code;
        run->bound.sizes = code->sizes;
        run->bound.size = size;
        memcpy(run->bound.block, addresses, size);
    }
    run->variables = NULL; // constants are in their place
    return metal_bytes_set(run, addresses + size, c->constant_size, METAL_AT_CONSTANTS);
}

metal_layout_t metal_arguments_layout(const keel_cmd_dispatch_t *c)
{
    metal_layout_t layout;
    uint32_t pointers = (c->binding_count + 1u) * (uint32_t)sizeof(uint64_t);
    uint32_t words = c->binding_count * (uint32_t)sizeof(uint32_t);
    layout.constants = (pointers + ALIGNED - 1) / ALIGNED * ALIGNED;
    layout.sizes = layout.constants + (c->constant_size + ALIGNED - 1u) / ALIGNED * ALIGNED;
    layout.bytes = layout.sizes + (words + ALIGNED - 1) / ALIGNED * ALIGNED;
    return layout;
}

void metal_arguments_write(const keel_cmd_dispatch_t *c, const unsigned char *block,
                           unsigned char *data, uint64_t address)
{
    const metal_layout_t layout = metal_arguments_layout(c);
    uint64_t lengths[METAL_BINDINGS], sizes = address + layout.sizes;
    uint32_t size = c->binding_count * (uint32_t)sizeof *lengths;
    memcpy(lengths, block + ADDRESSES_AT + size, size);
    memcpy(data, block + ADDRESSES_AT, size);
    memcpy(data + size, &sizes, sizeof sizes);
    memcpy(data + layout.constants, block + ADDRESSES_AT + 2 * size, c->constant_size);
    sizes_write(c, lengths, (uint32_t *)(void *)(data + layout.sizes));
}
