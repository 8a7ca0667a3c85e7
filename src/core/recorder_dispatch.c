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
             d->local_memory | (unsigned)d->raw);
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
__attribute__((always_inline)) static inline bool
binding_write(const keel_device_t *device, const keel_ref_t *from, uint32_t access, keel_ref_t *to)
{
    keel_buffer_t *buffer = from->buffer;
    uint64_t rest, length = from->length;
    if (!buffer || buffer->device != device) return false;
    if (__builtin_sub_overflow(buffer->size, from->offset, &rest)) return false;
    if (length > rest) {
        if (length != KEEL_WHOLE) return false;
        length = rest;
    }
    if (!(buffer->usage & KEEL_USAGE_DISPATCH) || (access & ~buffer->access)) return false;
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

// The bindings from `i` on, of which one needs a closer look. After an error none is
// retained.
static keel_status_t bindings_write(recorder_t *recorder, const keel_dispatch_t *d, keel_ref_t *to,
                                    size_t i)
{
    const keel_binding_info_t *infos = d->entry.executable->bindings[d->entry.index];
    for (; i < d->bindings.count; i++) {
        to[i] = d->bindings.refs[i];
        keel_status_t status = binding_check(recorder, &to[i], i, d->raw ? 0 : infos[i].access);
        if (!status) continue;
        while (i--) keel_buffer_release(to[i].buffer);
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

// Constants are few as a rule.
static inline void constants_write(keel_cmd_dispatch_t *c, const void *constants)
{
    unsigned char *to = (unsigned char *)c + c->constants;
    if (c->constant_size == 16) {
        memcpy(to, constants, 16);
        return;
    }
    if (!c->constant_size) return;
    memset((unsigned char *)c + c->patches - 16, 0, 16); // what they leave of their last 16 bytes
    if (c->constant_size == 8)
        memcpy(to, constants, 8);
    else
        memcpy(to, constants, c->constant_size);
}

// One with nothing special: a copy of what its entry begins with, its bindings and its constants.
// What is read of `d` is read before the command is written, which the compiler must take for a
// possible change of it.
static keel_status_t record_plain(recorder_t *recorder, const keel_dispatch_t *d)
{
    keel_executable_t *executable = d->entry.executable;
    const keel_cmd_dispatch_t *plain = &executable->plain[d->entry.index];
    const keel_binding_info_t *info = executable->bindings[d->entry.index];
    const keel_ref_t *first = d->bindings.refs, *end = first + d->bindings.count;
    const keel_device_t *device = recorder->device;
    const void *constants = d->constants;
    uint32_t groups[3] = {d->groups.x, d->groups.y, d->groups.z};
    keel_cmd_dispatch_t *c =
        commands_append(recorder->commands, KEEL_CMD_DISPATCH, plain->head.size);
    if (!c) return status_no_memory();
    *c = *plain;
    memcpy(c->groups, groups, sizeof c->groups);
    if (constants) constants_write(c, constants);
    const keel_ref_t *from = first;
    for (keel_ref_t *to = c->bindings; from != end; from++, to++, info++)
        if (__builtin_expect(!binding_write(device, from, info->access, to), 0)) break;
    size_t done = (size_t)(from - first);
    keel_status_t status = from == end ? NULL : bindings_write(recorder, d, c->bindings, done);
    if (__builtin_expect(status != NULL, 0)) {
        commands_drop(recorder->commands, &c->head);
        return status;
    }
    object_retain(&executable->object);
    return NULL;
}

// One that has: counts in memory, a size of its own, raw arguments.
static keel_status_t record_special(recorder_t *recorder, const keel_dispatch_t *d)
{
    const keel_entry_info_t *info = &d->entry.executable->entries[d->entry.index];
    keel_cmd_dispatch_t fixed = d->entry.executable->plain[d->entry.index];
    KEEL_TRY(special_check(recorder, d, info, &fixed.counts));
    command_layout(&fixed, d->bindings.count, d->constant_size, d->patch_count);
    if (d->group_size.x) memcpy(fixed.group_size, &d->group_size, sizeof fixed.group_size);
    fixed.local_memory += d->local_memory;
    fixed.counts_kind = (uint8_t)d->counts_kind;
    fixed.raw = d->raw;

    keel_cmd_dispatch_t *c =
        commands_append(recorder->commands, KEEL_CMD_DISPATCH, fixed.head.size);
    if (!c) return status_no_memory();
    *c = fixed;
    memcpy(c->groups, &d->groups, sizeof c->groups);
    if (c->constant_size) constants_write(c, d->constants);
    // Refs are checked where they are written, which saves a copy of them.
    keel_patch_t *patches = (keel_patch_t *)(void *)((char *)c + c->patches);
    keel_status_t status = patches_write(recorder, d, patches);
    if (!status) status = bindings_write(recorder, d, c->bindings, 0);
    if (status) {
        commands_drop(recorder->commands, &c->head);
        return status;
    }
    for (size_t i = 0; i < d->patch_count; i++) ref_retain(&patches[i].ref);
    ref_retain(&c->counts);
    object_retain(&c->executable->object);
    return NULL;
}

keel_status_t record_dispatch(recorder_t *recorder, const keel_op_t *op)
{
    const keel_dispatch_t *d = &op->as.dispatch;
    const keel_caps_t *caps = &recorder->device->caps;
    KEEL_TRY(entry_check(recorder, d));
    KEEL_TRY(arguments_check(caps, d, &d->entry.executable->entries[d->entry.index]));
    if (d->counts_kind == KEEL_COUNTS_DIRECT) KEEL_TRY(grid_check(caps, d));
    return dispatch_is_plain(d) ? record_plain(recorder, d) : record_special(recorder, d);
}
