// SPDX-License-Identifier: Apache-2.0
// Dispatches: the operation that is recorded most, so what most of them do not use is looked at
// together and apart.
#include <string.h>

#include "core/recorder_internal.h"

static keel_status_t entry_check(const recorder_t *recorder, const keel_dispatch_t *d)
{
    const keel_executable_t *executable = d->entry.executable;
    CHECK(!recorder->transfers_only, KEEL_UNSUPPORTED, "a transfer queue takes no dispatches");
    CHECK(executable, KEEL_INVALID_ARGUMENT, "entry.executable is NULL");
    CHECK(executable->device == recorder->device, KEEL_INVALID_ARGUMENT,
          "entry: '%s' was loaded for another device", executable->name);
    CHECK(d->entry.index < executable->entry_count, KEEL_OUT_OF_RANGE,
          "entry.index is %u; '%s' has %u entry points", d->entry.index, executable->name,
          executable->entry_count);
    return NULL;
}

static keel_status_t raw_check(const keel_caps_t *caps, const keel_dispatch_t *d)
{
    CHECK(caps->bits & KEEL_CAP_RAW_ARGUMENTS, KEEL_UNSUPPORTED,
          "raw: the device has no KEEL_CAP_RAW_ARGUMENTS");
    CHECK(d->constant_size <= caps->max_arguments, KEEL_OUT_OF_RANGE,
          "constant_size is %u; the device takes at most %u bytes of raw arguments",
          d->constant_size, caps->max_arguments);
    CHECK(d->bindings.count <= caps->max_bindings, KEEL_OUT_OF_RANGE,
          "bindings: %zu of them; the device takes at most %u", d->bindings.count,
          caps->max_bindings);
    CHECK(d->patches || !d->patch_count, KEEL_INVALID_ARGUMENT,
          "patches is NULL, but patch_count is %zu", d->patch_count);
    CHECK(d->patch_count <= caps->max_bindings, KEEL_OUT_OF_RANGE,
          "patch_count is %zu; the device takes at most %u", d->patch_count, caps->max_bindings);
    return NULL;
}

static keel_status_t arguments_check(const keel_caps_t *caps, const keel_dispatch_t *d,
                                     const keel_entry_info_t *info)
{
    CHECK(d->constants || !d->constant_size, KEEL_INVALID_ARGUMENT,
          "constants is NULL, but constant_size is %u", d->constant_size);
    CHECK(d->bindings.refs || !d->bindings.count, KEEL_INVALID_ARGUMENT,
          "bindings.refs is NULL, but bindings.count is %zu", d->bindings.count);
    if (d->raw) return raw_check(caps, d);
    CHECK(!d->patch_count, KEEL_INVALID_ARGUMENT, "patches are for raw arguments");
    CHECK(d->constant_size == info->constants, KEEL_INVALID_ARGUMENT,
          "constant_size is %u; entry point '%s' takes %u bytes", d->constant_size, info->name,
          info->constants);
    CHECK(d->bindings.count == info->bindings, KEEL_INVALID_ARGUMENT,
          "bindings: %zu of them; entry point '%s' takes %u", d->bindings.count, info->name,
          info->bindings);
    return NULL;
}

static keel_status_t grid_check(const keel_caps_t *caps, const keel_dispatch_t *d)
{
    // 32 bits each: two of them cannot overflow 64, so the third is compared by division.
    uint64_t xy = (uint64_t)d->groups.x * d->groups.y, max = caps->max_groups;
    CHECK(!xy || !d->groups.z || xy <= max / d->groups.z, KEEL_OUT_OF_RANGE,
          "groups: %u x %u x %u; the device takes at most %llu together", d->groups.x, d->groups.y,
          d->groups.z, (unsigned long long)max);
    return NULL;
}

static keel_status_t group_size_check(const keel_caps_t *caps, const keel_dispatch_t *d)
{
    keel_groups_t size = d->group_size;
    if (!size.x && !size.y && !size.z) return NULL;
    CHECK(caps->bits & KEEL_CAP_GROUP_SIZE, KEEL_UNSUPPORTED,
          "group_size: the device has no KEEL_CAP_GROUP_SIZE");
    uint64_t max = caps->max_group_size;
    CHECK(size.x && size.y && size.z && size.x <= max && size.y <= max / size.x &&
              size.z <= max / ((uint64_t)size.x * size.y),
          KEEL_OUT_OF_RANGE, "group_size: %u x %u x %u; it must be 1 to %llu work-items together",
          size.x, size.y, size.z, (unsigned long long)max);
    return NULL;
}

// `counts` is the dispatch's, to be changed into what the command holds.
static keel_status_t counts_check(recorder_t *recorder, const keel_dispatch_t *d,
                                  keel_ref_t *counts)
{
    static const ref_use_t use = {"counts", KEEL_USAGE_COUNTS, KEEL_ACCESS_READ};
    CHECK((unsigned)d->counts_kind <= KEEL_COUNTS_DYNAMIC, KEEL_INVALID_ARGUMENT,
          "counts_kind is %d, which is none of keel_counts_t", (int)d->counts_kind);
    if (d->counts_kind == KEEL_COUNTS_DIRECT) return NULL;
    CHECK(d->counts_kind == KEEL_COUNTS_STATIC ||
              (recorder->device->caps.bits & KEEL_CAP_DYNAMIC_COUNTS),
          KEEL_UNSUPPORTED, "counts_kind: the device has no KEEL_CAP_DYNAMIC_COUNTS");
    *counts = d->counts;
    KEEL_TRY(ref_check(recorder, counts, &use));
    CHECK(counts->length >= 12, KEEL_OUT_OF_RANGE, "counts: %llu bytes; three uint32_t are read",
          (unsigned long long)counts->length);
    CHECK(counts->offset % 4 == 0, KEEL_INVALID_ARGUMENT, "counts: offset %llu is no multiple of 4",
          (unsigned long long)counts->offset);
    counts->length = 12;
    return ref_check(recorder, counts, &use);
}

// What a plain dispatch has not.
static bool dispatch_is_plain(const keel_dispatch_t *d)
{
    return !((unsigned)d->counts_kind | d->group_size.x | d->group_size.y | d->group_size.z |
             d->local_memory);
}

static keel_status_t special_check(recorder_t *recorder, const keel_dispatch_t *d,
                                   const keel_entry_info_t *info, keel_ref_t *counts)
{
    const keel_caps_t *caps = &recorder->device->caps;
    KEEL_TRY(group_size_check(caps, d));
    KEEL_TRY(counts_check(recorder, d, counts));
    CHECK(info->local_memory <= caps->max_local_memory &&
              d->local_memory <= caps->max_local_memory - info->local_memory,
          KEEL_OUT_OF_RANGE, "local_memory: %u bytes and %u of the entry point; the device has %u",
          d->local_memory, info->local_memory, caps->max_local_memory);
    return NULL;
}

// Copies a binding whose buffer is given and suits, and retains it. False: ask binding_check.
static inline bool binding_write(const keel_device_t *device, const keel_ref_t *from,
                                 uint32_t access, keel_ref_t *to)
{
    keel_buffer_t *buffer = from->buffer;
    uint64_t rest, length = from->length;
    if (!buffer || buffer->device != device) return false;
    if (__builtin_sub_overflow(buffer->size, from->offset, &rest)) return false;
    if (length == KEEL_WHOLE) length = rest;
    if (length > rest || !(buffer->usage & KEEL_USAGE_DISPATCH) || (access & ~buffer->access))
        return false;
    *to = (keel_ref_t){buffer, from->offset, length, 0};
    object_retain(&buffer->object);
    return true;
}

static keel_status_t binding_check(recorder_t *recorder, keel_ref_t *ref, size_t i, uint32_t access)
{
    static const char *const names[] = {"bindings[0]", "bindings[1]", "bindings[2]", "bindings[3]",
                                        "bindings[4]", "bindings[5]", "bindings[6]", "bindings[7]"};
    ref_use_t use = {i < 8 ? names[i] : "a binding", KEEL_USAGE_DISPATCH, access};
    KEEL_TRY(ref_check(recorder, ref, &use));
    ref_retain(ref);
    return NULL;
}

// Copies the bindings into the command, checked and retained. After an error none is retained.
static keel_status_t bindings_write(recorder_t *recorder, const keel_dispatch_t *d, keel_ref_t *to)
{
    static const keel_binding_info_t any = {.access = 0};
    const keel_binding_info_t *info = d->raw ? &any : d->entry.executable->bindings[d->entry.index];
    const keel_device_t *device = recorder->device;
    const keel_ref_t *first = d->bindings.refs, *end = first + d->bindings.count;
    size_t step = !d->raw;
    for (const keel_ref_t *from = first; from != end; from++, to++, info += step) {
        if (__builtin_expect(binding_write(device, from, info->access, to), 1)) continue;
        *to = *from;
        keel_status_t status = binding_check(recorder, to, (size_t)(from - first), info->access);
        if (!status) continue;
        while (from-- != first) keel_buffer_release((--to)->buffer);
        return status;
    }
    return NULL;
}

// The same for patches, which the caller retains.
static keel_status_t patches_write(recorder_t *recorder, const keel_dispatch_t *d, keel_patch_t *to)
{
    static const ref_use_t use = {"ref", KEEL_USAGE_DISPATCH, 0};
    for (size_t i = 0; i < d->patch_count; i++) {
        to[i] = d->patches[i];
        CHECK(d->constant_size >= 8 && to[i].offset <= d->constant_size - 8, KEEL_OUT_OF_RANGE,
              "patches[%zu].offset is %u; an address does not fit there into %u bytes of arguments",
              i, to[i].offset, d->constant_size);
        keel_status_t status = ref_check(recorder, &to[i].ref, &use);
        if (status) return keel_status_wrap(status, "patches[%zu] is refused", i);
    }
    return NULL;
}

// All of the command but what follows its fixed part.
static void command_fill(keel_cmd_dispatch_t *c, const keel_dispatch_t *d,
                         const keel_entry_info_t *info, const keel_ref_t *counts)
{
    bool own_size = d->group_size.x != 0;
    c->executable = d->entry.executable;
    c->kernel = d->entry.executable->kernels[d->entry.index];
    c->entry = d->entry.index;
    memcpy(c->groups, &d->groups, sizeof c->groups);
    memcpy(c->group_size, own_size ? &d->group_size.x : info->group_size, sizeof c->group_size);
    c->local_memory = info->local_memory + d->local_memory;
    c->constant_size = d->constant_size;
    c->binding_count = (uint16_t)d->bindings.count;
    c->patch_count = (uint16_t)d->patch_count;
    c->counts_kind = (uint8_t)d->counts_kind;
    c->raw = d->raw;
    c->counts = *counts;
}

static size_t round_to_16(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

keel_status_t record_dispatch(recorder_t *recorder, const keel_op_t *op)
{
    const keel_dispatch_t *d = &op->as.dispatch;
    const keel_caps_t *caps = &recorder->device->caps;
    keel_ref_t counts = {0};
    KEEL_TRY(entry_check(recorder, d));
    const keel_entry_info_t *info = &d->entry.executable->entries[d->entry.index];
    KEEL_TRY(arguments_check(caps, d, info));
    if (d->counts_kind == KEEL_COUNTS_DIRECT) KEEL_TRY(grid_check(caps, d));
    if (!dispatch_is_plain(d)) KEEL_TRY(special_check(recorder, d, info, &counts));

    size_t constants =
        round_to_16(sizeof(keel_cmd_dispatch_t) + d->bindings.count * sizeof(keel_ref_t));
    size_t patches = round_to_16(constants + d->constant_size);
    size_t size = patches + d->patch_count * sizeof(keel_patch_t);
    keel_cmd_dispatch_t *c = commands_append(recorder->commands, KEEL_CMD_DISPATCH, size);
    if (!c) return status_no_memory();
    command_fill(c, d, info, &counts);
    c->constants = (uint32_t)constants;
    c->patches = (uint32_t)patches;
    char *bytes = (char *)c;
    if (d->constant_size) {
        memset(bytes + patches - 16, 0, 16); // what the constants leave of it
        memcpy(bytes + constants, d->constants, d->constant_size);
    }
    // Refs are checked where they are written, which saves a copy of them.
    keel_patch_t *patched = (keel_patch_t *)(void *)(bytes + patches);
    keel_status_t status = d->patch_count ? patches_write(recorder, d, patched) : NULL;
    if (!status) status = bindings_write(recorder, d, c->bindings);
    if (__builtin_expect(status != NULL, 0)) {
        commands_drop(recorder->commands, &c->head);
        return status;
    }
    for (size_t i = 0; i < d->patch_count; i++) ref_retain(&patched[i].ref);
    ref_retain(&counts);
    object_retain(&c->executable->object);
    return NULL;
}
