// SPDX-License-Identifier: Apache-2.0
#include "kit/bind.h"

#include <string.h>

#include <keel/driver/driver.h>

#include "base/status.h"

// In place of what is not known yet.
static void bound_guess(const binder_t *binder, const keel_ref_t *ref, bound_t *bound)
{
    bound->address = binder->anywhere;
    bound->length = ref->length < BIND_ANYWHERE ? ref->length : BIND_ANYWHERE;
}

keel_status_t bind_ref(const binder_t *binder, const keel_ref_t *ref, bound_t *bound)
{
    const keel_buffer_t *buffer = ref->buffer;
    uint64_t offset = ref->offset;
    bound->length = ref->length;
    if (!buffer) {
        if (!binder->table) {
            bound_guess(binder, ref, bound);
            return NULL;
        }
        const keel_ref_t *entry = &binder->table[ref->slot];
        if (ref->length == KEEL_WHOLE) bound->length = entry->length - ref->offset;
        buffer = entry->buffer;
        offset += entry->offset;
    }
    // relaxed: the alloca that wrote it was issued before us.
    uint64_t address = atomic_load_explicit(&buffer->root->address, memory_order_relaxed);
    bound->address = address + buffer->offset + offset;
    if (__builtin_expect(address != 0, 1)) return NULL;
    if (binder->anywhere) {
        bound_guess(binder, ref, bound);
        return NULL;
    }
    return KEEL_ERROR(KEEL_FAILED_PRECONDITION,
                      "buffer '%s' has no memory: its alloca has not run, or its dealloca has",
                      buffer->name ? buffer->name : "");
}

bool bind_is_local(const binder_t *binder, const keel_ref_t *ref)
{
    const keel_buffer_t *buffer = ref->buffer;
    if (!buffer && binder->table) buffer = binder->table[ref->slot].buffer;
    if (!buffer || buffer->root->memory & KEEL_MEMORY_HOST_VISIBLE) return false;
    const keel_external_t *external = &buffer->root->external;
    return !external->size && !external->release; // else it is somebody's, who may be elsewhere
}

keel_status_t bind_raw(const binder_t *binder, const keel_cmd_dispatch_t *c, unsigned char *bytes)
{
    const keel_patch_t *patches =
        (const keel_patch_t *)(const void *)((const char *)c + c->patches);
    memcpy(bytes, (const char *)c + c->constants, c->constant_size);
    for (uint16_t i = 0; i < c->patch_count; i++) {
        bound_t bound;
        KEEL_TRY(bind_ref(binder, &patches[i].ref, &bound));
        memcpy(bytes + patches[i].offset, &bound.address, sizeof bound.address);
    }
    return NULL;
}

// A block whose head takes so many bytes, of which the grid is the first part: behind it addresses,
// lengths, constants.
static keel_status_t block_fill(const binder_t *binder, const keel_cmd_dispatch_t *c,
                                unsigned char *bytes, uint32_t head, uint32_t *size)
{
    uint32_t grid[4] = {c->groups[0], c->groups[1], c->groups[2], 0};
    uint64_t *addresses = (uint64_t *)(void *)(bytes + head);
    uint64_t *lengths = addresses + c->binding_count;
    memcpy(bytes, grid, sizeof grid);
    for (uint16_t i = 0; i < c->binding_count; i++) {
        bound_t bound;
        KEEL_TRY(bind_ref(binder, &c->bindings[i], &bound));
        addresses[i] = bound.address;
        lengths[i] = bound.length;
    }
    unsigned char *constants = (unsigned char *)(lengths + c->binding_count);
    uint32_t rest = (c->constant_size + 7) & ~7u;
    if (rest) {
        memset(constants + rest - 8, 0, 8);
        memcpy(constants, (const char *)c + c->constants, c->constant_size);
    }
    *size = (uint32_t)(constants - bytes) + rest;
    return NULL;
}

keel_status_t bind_block(const binder_t *binder, const keel_cmd_dispatch_t *c, unsigned char *bytes,
                         uint32_t *size)
{
    return block_fill(binder, c, bytes, 16, size);
}

keel_status_t bind_walk(const binder_t *binder, const keel_cmd_dispatch_t *c, unsigned char *bytes,
                        uint32_t *size)
{
    uint64_t more[2] = {0, 0}; // where the counts are; a table, which is not used
    bound_t counts;
    if (c->counts_kind != KEEL_COUNTS_DIRECT) {
        KEEL_TRY(bind_ref(binder, &c->counts, &counts));
        more[0] = counts.address;
    }
    memcpy(bytes + 16, more, sizeof more);
    return block_fill(binder, c, bytes, 32, size);
}

keel_status_t bind_copy(const binder_t *binder, const keel_cmd_copy_t *c, bound_copy_t *copy)
{
    bound_t source, target;
    KEEL_TRY(bind_ref(binder, &c->source, &source));
    KEEL_TRY(bind_ref(binder, &c->target, &target));
    if (binder->anywhere) { // what is guessed may be the shorter
        if (target.length < source.length) source.length = target.length;
    } else if (source.length != target.length) {
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "source has %llu bytes and target %llu",
                          (unsigned long long)source.length, (unsigned long long)target.length);
    } else if (source.address < target.address + target.length &&
               target.address < source.address + source.length) {
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "source and target overlap");
    }
    *copy = (bound_copy_t){target.address, source.address, source.length};
    return NULL;
}

keel_status_t bind_fill(const binder_t *binder, const keel_cmd_fill_t *c, bound_fill_t *fill,
                        bool *plain)
{
    bound_t target;
    KEEL_TRY(bind_ref(binder, &c->target, &target));
    if (target.length % c->pattern_size && !binder->anywhere)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "%llu bytes are filled with a pattern of %u",
                          (unsigned long long)target.length, c->pattern_size);
    // The widest word that fits: wider is faster, and a pattern of equal bytes fits anywhere.
    bool even = (c->pattern & 0xff) * 0x01010101u == c->pattern;
    uint64_t both = target.address | target.length;
    uint32_t size = both % 4 == 0 ? 4 : both % 2 == 0 ? 2 : 1;
    *plain = size == 4 || even || (size == 2 && c->pattern_size <= 2);
    if (!*plain) size = 1;
    *fill = (bound_fill_t){target.address, target.length / size, c->pattern, size};
    return NULL;
}
