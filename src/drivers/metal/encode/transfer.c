// SPDX-License-Identifier: Apache-2.0
// Fills, updates and copies: by blits, or by kernels of the driver's own (builtin.c) for what blits
// refuse, behind guards, and for small ones while a compute encoder is open.
#include <string.h>

#include "base/status.h"
#include "drivers/metal/encode/encode.h"
#include "drivers/metal/memory/memory.h"

enum {
    GROUP = 256,          // threads of a group of the driver's own kernels, at most
    STEP = 32,            // and a multiple of this
    GROUPS = 1024,        // at most; each thread then takes several units
    MANY_BYTES = 1 << 18, // from so many on, bytes are staged and copied
    SMALL_COPY = 1 << 16  // up to so many bytes a kernel copies where a compute encoder is open
};

// What the kernels of builtin.c take at index 1.
typedef struct range_t {
    uint64_t count;
    uint32_t pattern, unused;
} range_t;

// A kernel of the driver's own; what it reads is bound at index 2.
static void builtin_dispatch(metal_run_t *run, metal_builtin_t kernel, const metal_place_t *target,
                             range_t range)
{
    metal_device_t *device = metal_run_device(run);
    const metal_api_t *api = device->api;
    uint64_t groups = (range.count + GROUP - 1) / GROUP;
    uint64_t threads = groups > 1 ? GROUP : (range.count + STEP - 1) / STEP * STEP;
    metal_pipeline_set(run, device->builtins[kernel]);
    mtl_set_buffer(api, run->encoder, target->buffer, target->offset, 0);
    mtl_set_bytes(api, run->encoder, &range, sizeof range, 1);
    metal_indices_taken(run);
    metal_launch(run, (metal_size_t){groups < GROUPS ? groups : GROUPS, 1, 1},
                 (metal_size_t){threads, 1, 1});
}

static bool is_words(const metal_place_t *place)
{
    return (place->offset | place->length) % 4 == 0;
}

static keel_status_t fill_encode(metal_run_t *run, const keel_cmd_fill_t *c,
                                 const keel_cmd_execute_t *execute)
{
    const metal_api_t *api = metal_run_device(run)->api;
    keel_bound_t bound;
    uint32_t pattern;
    metal_place_t target;
    KEEL_TRY(keel_bind_fill(c, execute, &bound, &pattern));
    KEEL_TRY(metal_place(&c->target, execute, &target));
    if (!target.length) return NULL;
    bool words = is_words(&target), bytes = pattern == (pattern & 255) * 0x01010101u;
    if (words && bytes && run->kind != METAL_COMPUTE && !run->guarded) {
        KEEL_TRY(metal_encoder_need(run, METAL_BLIT));
        mtl_fill_buffer(api, run->encoder, target.buffer,
                        (metal_range_t){target.offset, target.length}, (uint8_t)pattern);
        return NULL;
    }
    KEEL_TRY(metal_encoder_need(run, METAL_COMPUTE));
    range_t range = {words ? target.length / 4 : target.length, pattern, 0};
    builtin_dispatch(run, words ? METAL_FILL_WORDS : METAL_FILL, &target, range);
    return NULL;
}

// By memory that both see, which the run keeps.
static keel_status_t bytes_stage(metal_run_t *run, const void *bytes, const metal_place_t *target)
{
    struct metal_memory_t *memory;
    KEEL_TRY(metal_stage(run, target->length, &memory));
    metal_place_t source = {metal_memory_buffer(memory), 0, target->length, NULL};
    memcpy(mtl_contents(metal_run_device(run)->api, source.buffer), bytes, target->length);
    return metal_transfer_copy(run, &source, target);
}

// By constants, as many at a time as an encoder takes.
keel_status_t metal_transfer_bytes(metal_run_t *run, const void *bytes, const metal_place_t *target)
{
    const metal_api_t *api = metal_run_device(run)->api;
    const unsigned char *data = bytes;
    if (!target->length) return NULL;
    if (target->length >= MANY_BYTES) return bytes_stage(run, bytes, target);
    for (unsigned long done = 0; done < target->length;) {
        KEEL_TRY(metal_encoder_need(run, METAL_COMPUTE));
        unsigned long size = target->length - done;
        if (size > METAL_BYTES) size = METAL_BYTES;
        metal_place_t part = {target->buffer, target->offset + done, size, NULL};
        mtl_set_bytes(api, run->encoder, data + done, size, 2);
        builtin_dispatch(run, METAL_UPDATE, &part, (range_t){size, 0, 0});
        done += size;
    }
    return NULL;
}

static keel_status_t update_encode(metal_run_t *run, const keel_cmd_update_t *c,
                                   const keel_cmd_execute_t *execute)
{
    metal_place_t target;
    KEEL_TRY(metal_place(&c->target, execute, &target));
    return metal_transfer_bytes(run, keel_update_data(c, execute), &target);
}

keel_status_t metal_transfer_copy(metal_run_t *run, const metal_place_t *source,
                                  const metal_place_t *target)
{
    const metal_api_t *api = metal_run_device(run)->api;
    if (!target->length) return NULL;
    bool words = is_words(source) && is_words(target);
    bool stays = run->guarded || (run->kind == METAL_COMPUTE && target->length <= SMALL_COPY);
    if (words && !stays) {
        KEEL_TRY(metal_encoder_need(run, METAL_BLIT));
        mtl_copy_buffer(api, run->encoder, source->buffer, source->offset, target->buffer,
                        target->offset, target->length);
        return NULL;
    }
    KEEL_TRY(metal_encoder_need(run, METAL_COMPUTE));
    mtl_set_buffer(api, run->encoder, source->buffer, source->offset, 2);
    builtin_dispatch(run, words ? METAL_COPY_WORDS : METAL_COPY, target,
                     (range_t){words ? target->length / 4 : target->length, 0, 0});
    return NULL;
}

keel_status_t metal_transfer_counts(metal_run_t *run, const metal_place_t *source,
                                    const metal_place_t *target)
{
    metal_device_t *device = metal_run_device(run);
    const metal_api_t *api = device->api;
    range_t range = {device->base.caps.max_groups, 0, 0};
    KEEL_TRY(metal_encoder_need(run, METAL_COMPUTE));
    metal_pipeline_set(run, device->builtins[METAL_COUNTS]);
    mtl_set_buffer(api, run->encoder, target->buffer, target->offset, 0);
    mtl_set_bytes(api, run->encoder, &range, sizeof range, 1);
    mtl_set_buffer(api, run->encoder, source->buffer, source->offset, 2);
    metal_indices_taken(run);
    metal_launch(run, (metal_size_t){1, 1, 1}, (metal_size_t){STEP, 1, 1});
    mtl_memory_barrier(api, run->encoder, METAL_SCOPE_BUFFERS);
    return NULL;
}

static keel_status_t copy_encode(metal_run_t *run, const keel_cmd_copy_t *c,
                                 const keel_cmd_execute_t *execute)
{
    keel_bound_t ignored[2];
    metal_place_t source, target;
    KEEL_TRY(keel_bind_copy(c, execute, &ignored[0], &ignored[1]));
    KEEL_TRY(metal_place(&c->source, execute, &source));
    KEEL_TRY(metal_place(&c->target, execute, &target));
    return metal_transfer_copy(run, &source, &target);
}

keel_status_t metal_transfer(metal_run_t *run, const keel_command_t *command,
                             const keel_cmd_execute_t *execute)
{
    const void *c = command;
    switch (command->kind) {
    case KEEL_CMD_FILL: return fill_encode(run, c, execute);
    case KEEL_CMD_UPDATE: return update_encode(run, c, execute);
    default: return copy_encode(run, c, execute);
    }
}
