// SPDX-License-Identifier: Apache-2.0
// The begin of a kernel: its descriptor, and the registers of its waves.
#include <stdio.h>

#include "amd/base.h"
#include "amd/isa/state.h"

enum { DESCRIPTOR_SIZE = 64 };

bool dispatch_fail(isa_t *isa, fault_kind_t kind, const char *text)
{
    char kernel[96];
    kernel_name(isa->dispatch->kernel, kernel, sizeof kernel);
    isa->fault.kind = kind;
    snprintf(isa->fault.text, sizeof isa->fault.text, "kernel %s: %s", kernel, text);
    log_line(LOG_ERROR, "%s", isa->fault.text);
    return false;
}

// Reads the arguments that the descriptor wants in registers. Code for GPUs that can do this begins
// behind code for those that cannot.
static bool preload_read(isa_t *isa, uint16_t preload, descriptor_t *out)
{
    enum { CODE_WITHOUT = 256 };
    unsigned count = preload & 127, first = preload >> 7;
    if (!count) return true;
    if (count > PRELOAD_MAX)
        return dispatch_fail(isa, FAULT_MEMORY, "more arguments than registers");
    uint64_t address = isa->dispatch->kernarg + 4ull * first;
    const uint8_t *bytes = map_bytes(address, 4 * count, isa->node);
    if (!bytes) {
        isa->fault.address = address;
        return dispatch_fail(isa, FAULT_MEMORY, "its arguments are in no memory of this node");
    }
    code_fetch(isa, address, bytes, out->preload, 4ull * count);
    out->preload_count = count;
    out->entry += CODE_WITHOUT;
    return true;
}

bool descriptor_read(isa_t *isa, uint64_t address, descriptor_t *out)
{
    const uint8_t *bytes = map_bytes(address, DESCRIPTOR_SIZE, isa->node);
    if (!bytes) {
        isa->fault.address = address;
        return dispatch_fail(isa, FAULT_MEMORY, "its descriptor is in no memory of this node");
    }
    uint8_t words[DESCRIPTOR_SIZE];
    code_fetch(isa, address, bytes, words, sizeof words);
    memcpy(&out->entry, words + 16, sizeof out->entry);
    memcpy(&out->resource1, words + 48, sizeof out->resource1);
    memcpy(&out->resource2, words + 52, sizeof out->resource2);
    memcpy(&out->properties, words + 56, sizeof out->properties);
    uint16_t preload;
    memcpy(&preload, words + 58, sizeof preload);
    return preload_read(isa, preload, out);
}

static uint32_t mode_of(uint32_t resource1)
{
    uint32_t mode = resource1 >> 12 & 0xff; // rounding and denormals
    return mode | (resource1 >> 21 & 1) << 8 | (resource1 >> 23 & 1) << 9 |
           (resource1 >> 26 & 1) << 23; // FP16_OVFL
}

// User registers, then those of the system, as the descriptor asks for them.
static void fill_scalars(wave_t *w, const descriptor_t *kernel, const group_t *group,
                         unsigned index)
{
    const dispatch_t *dispatch = w->isa->dispatch;
    uint32_t per_wave = w->scratch_size * LANES;
    uint64_t scratch = w->scratch_base - (uint64_t)index * per_wave;
    unsigned s = 0;
    if (kernel->properties & 1) {
        wave_set_s64(w, 0, scratch | 1ull << 63); // interleaved
        w->s[2] = ~0u;
        w->s[3] = 0x00e00000;
        s = 4;
    }
    const uint64_t pointers[] = {dispatch->packet, dispatch->queue, dispatch->kernarg, dispatch->id,
                                 scratch};
    for (unsigned k = 0; k < sizeof pointers / sizeof *pointers; k++) {
        if (!(kernel->properties >> (k + 1) & 1)) continue;
        wave_set_s64(w, s, pointers[k]);
        s += 2;
    }
    if (kernel->properties & 1 << 6) w->s[s++] = dispatch->scratch_size;
    memcpy(&w->s[s], kernel->preload, sizeof *w->s * kernel->preload_count);

    s = kernel->resource2 >> 1 & 31;
    for (unsigned k = 0; k < 3; k++) {
        if (kernel->resource2 >> (7 + k) & 1) w->s[s++] = group->id[k];
    }
    if (kernel->resource2 >> 10 & 1) w->s[s++] = group->waves;
    if (kernel->resource2 & 1 && !w->isa->target->own_scratch) w->s[s] = index * per_wave;
}

// Work-item numbers: in three registers, or packed into one.
static void fill_vectors(wave_t *w, const descriptor_t *kernel, const group_t *group,
                         unsigned index)
{
    unsigned registers = (kernel->resource2 >> 11 & 3) + 1;
    uint32_t item = index * LANES, row = item / group->size[0];
    uint32_t id[3] = {item % group->size[0], row % group->size[1], row / group->size[1]};
    for (unsigned l = 0; l < LANES; l++) {
        if (w->isa->target->packed_ids) {
            w->v[0][l] = id[0] | id[1] << 10 | id[2] << 20;
        } else {
            for (unsigned k = 0; k < registers; k++) w->v[k][l] = id[k];
        }
        if (++id[0] < group->size[0]) continue;
        id[0] = 0;
        if (++id[1] < group->size[1]) continue;
        id[1] = 0;
        id[2]++;
    }
}

void wave_start(isa_t *isa, const room_t *room, const descriptor_t *kernel, const group_t *group,
                unsigned index)
{
    wave_t *w = &room->waves[index];
    const dispatch_t *dispatch = isa->dispatch;
    // No code should rely on registers that the kernel has not written.
    memset(w->s, 0xcd, sizeof w->s);
    memset(w->v, 0xcd, sizeof w->v[0] * isa->target->granule * ((kernel->resource1 & 63) + 1));
    w->isa = isa;
    w->number = index;
    w->group = group->number;
    w->unit = (unsigned)room->unit;
    w->scc = 0;
    wave_set_mode(w, mode_of(kernel->resource1));
    w->lds = room->lds;
    w->lds_size = dispatch->lds_size;
    w->scratch_size = (dispatch->scratch_size + 15) & ~15u;
    uint64_t offset = (uint64_t)index * w->scratch_size * LANES;
    w->scratch = room->scratch ? room->scratch + offset : NULL;
    w->scratch_base = (uint64_t)(uintptr_t)room->scratch + offset;
    w->stores_pending = w->gws_waits = false;
    fill_scalars(w, kernel, group, index);
    fill_vectors(w, kernel, group, index);
    uint32_t items = group->items - index * LANES;
    wave_set_s64(w, SGPR_EXEC, items >= LANES ? ~0ull : (1ull << items) - 1);
    w->mask_for = wave_exec(w);
    lanes_expand(w->lane_mask, w->mask_for);
    w->pc = code_at(isa, dispatch->kernel + (uint64_t)kernel->entry);
    w->state = w->pc ? WAVE_RUNNING : WAVE_FAULTED;
}
