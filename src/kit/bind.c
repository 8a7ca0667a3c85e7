// SPDX-License-Identifier: Apache-2.0
#include "kit/bind.h"

#include <string.h>

#include <keel/driver/driver.h>

#include "base/status.h"
#include "kit/label.h"

// In place of what is not known yet.
static void bound_guess(const binder_t *binder, const keel_ref_t *ref, bound_t *bound)
{
    bound->address = binder->anywhere;
    bound->length = ref->length < BIND_ANYWHERE ? ref->length : BIND_ANYWHERE;
}

keel_status_t bind_missing(const keel_ref_t *table, const keel_ref_t *ref)
{
    const keel_buffer_t *buffer = ref->buffer ? ref->buffer : table[ref->slot].buffer;
    return KEEL_ERROR(KEEL_FAILED_PRECONDITION,
                      "%s has no memory: its alloca has not run, or its dealloca has",
                      BUFFER_LABEL(buffer));
}

keel_status_t bind_ref(const binder_t *binder, const keel_ref_t *ref, bound_t *bound)
{
    bool known = ref->buffer || binder->table;
    if (known && bind_find(binder->table, ref, bound)) return NULL;
    if (known && !binder->anywhere) return bind_missing(binder->table, ref);
    bound_guess(binder, ref, bound);
    return NULL;
}

keel_status_t bind_value(const binder_t *binder, const keel_ref_t *ref, bound_t *bound)
{
    if (!keel_ref_is_parameter(ref)) return bind_ref(binder, ref, bound);
    *bound = (bound_t){binder->parameters_at + ref->offset, ref->length};
    return NULL;
}

const keel_buffer_t *bind_owner(const binder_t *binder, const keel_ref_t *ref)
{
    const keel_buffer_t *buffer = ref->buffer;
    if (!buffer && binder->table) buffer = binder->table[ref->slot].buffer;
    if (!buffer) return NULL;
    const keel_buffer_t *root = buffer->root;
    while (root->lender) root = root->lender;
    return root;
}

bool bind_is_local(const binder_t *binder, const keel_ref_t *ref)
{
    const keel_buffer_t *root = bind_owner(binder, ref);
    if (!root) return false;
    if (root->memory & KEEL_MEMORY_HOST_VISIBLE) return false;
    const keel_external_buffer_t *external = &root->external;
    return !external->size && !external->release; // else another owner has it, maybe elsewhere
}

static keel_status_t patch_write(const binder_t *binder, const keel_patch_t *patch,
                                 unsigned char *bytes)
{
    const keel_ref_t *ref = &patch->ref;
    bound_t bound;
    if (!keel_ref_is_parameter(ref)) {
        KEEL_TRY(bind_ref(binder, ref, &bound));
        memcpy(bytes + patch->offset, &bound.address, sizeof bound.address);
    } else if (binder->parameters) {
        memcpy(bytes + patch->offset, binder->parameters + ref->offset, ref->length);
    }
    return NULL;
}

keel_status_t bind_constants(const binder_t *binder, const keel_cmd_dispatch_t *c,
                             unsigned char *bytes)
{
    const keel_patch_t *patches = command_patches(c);
    memcpy(bytes, (const char *)c + c->constants, c->constant_size);
    for (uint16_t i = 0; i < c->patch_count; i++) KEEL_TRY(patch_write(binder, &patches[i], bytes));
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
        KEEL_TRY(bind_constants(binder, c, constants));
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
        KEEL_TRY(bind_value(binder, &c->counts, &counts));
        more[0] = counts.address;
    }
    memcpy(bytes + 16, more, sizeof more);
    return block_fill(binder, c, bytes, 32, size);
}

keel_status_t bind_copy_refuse(bound_t source, bound_t target)
{
    if (source.length != target.length)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "source has %llu bytes and target %llu",
                          (unsigned long long)source.length, (unsigned long long)target.length);
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "source and target overlap");
}

keel_status_t bind_fill_refuse(bound_t target, uint32_t pattern_size)
{
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "%llu bytes are filled with a pattern of %u",
                      (unsigned long long)target.length, pattern_size);
}

keel_status_t bind_counts_check(const keel_cmd_dispatch_t *c, const uint32_t counts[3])
{
    uint64_t xy = (uint64_t)counts[0] * counts[1], max = c->executable->device->caps.max_groups;
    if (xy && counts[2] && xy > max / counts[2])
        return KEEL_ERROR(KEEL_OUT_OF_RANGE,
                          "the counts read are %u x %u x %u; at most %llu groups are run",
                          counts[0], counts[1], counts[2], (unsigned long long)max);
    return NULL;
}

keel_status_t bind_copy(const binder_t *binder, const keel_cmd_copy_t *c, bound_copy_t *copy)
{
    bound_t source, target;
    KEEL_TRY(bind_ref(binder, &c->source, &source));
    KEEL_TRY(bind_ref(binder, &c->target, &target));
    if (!binder->anywhere)
        KEEL_TRY(bind_copy_check(source, target));
    else if (target.length < source.length) // what is guessed may be the shorter
        source.length = target.length;
    *copy = (bound_copy_t){target.address, source.address, source.length};
    return NULL;
}

keel_status_t bind_fill(const binder_t *binder, const keel_cmd_fill_t *c, bound_fill_t *fill,
                        bool *plain)
{
    bound_t target;
    KEEL_TRY(bind_ref(binder, &c->target, &target));
    if (!binder->anywhere) KEEL_TRY(bind_fill_check(target, c->pattern_size));
    // The widest word that fits: wider is faster, and a pattern of equal bytes fits anywhere. One
    // that comes with the execution is another each time, and what writes it is not.
    uint32_t pattern = c->given ? command_pattern(c, binder->parameters) : c->pattern;
    bool even = c->given ? c->pattern_size == 1 : (pattern & 0xff) * 0x01010101u == pattern;
    uint64_t both = target.address | target.length;
    uint32_t size = both % 4 == 0 ? 4 : both % 2 == 0 ? 2 : 1;
    *plain = size == 4 || even || (size == 2 && c->pattern_size <= 2);
    if (!*plain) size = 1;
    *fill = (bound_fill_t){target.address, target.length / size, pattern, size};
    return NULL;
}
