// SPDX-License-Identifier: Apache-2.0
// Dispatches: the operation that is recorded most, so what most of them do not use is looked at
// together and apart.
#include <string.h>

#include "core/recorder_internal.h"

static keel_status_t entry_check(const recorder_t *recorder, const keel_dispatch_t *d)
{
    const keel_executable_t *executable = d->entry.executable;
    CHECK(executable, KEEL_INVALID_ARGUMENT, "entry.executable is NULL");
    CHECK(executable->device == recorder->device, KEEL_INVALID_ARGUMENT,
          "entry: '%s' was loaded for another device", executable->name);
    CHECK(d->entry.index < executable->entry_count, KEEL_OUT_OF_RANGE,
          "entry.index is %u; '%s' has %u entry points", d->entry.index, executable->name,
          executable->entry_count);
    return NULL;
}

static keel_status_t raw_check(const keel_caps_t *caps, const keel_dispatch_t *d,
                               const keel_entry_info_t *info)
{
    CHECK(caps->bits & KEEL_CAP_RAW_ARGUMENTS, KEEL_UNSUPPORTED,
          "raw: the device has no KEEL_CAP_RAW_ARGUMENTS");
    CHECK(d->constant_size <= caps->max_arguments, KEEL_OUT_OF_RANGE,
          "constant_size is %u; the device takes at most %u bytes of raw arguments",
          d->constant_size, caps->max_arguments);
    CHECK(
        info->raw, KEEL_INVALID_ARGUMENT,
        "raw: entry point '%s' takes %u bindings and %u bytes of constants, not a block of its own",
        info->name, info->bindings, info->constants);
    CHECK(d->constant_size >= info->constants, KEEL_INVALID_ARGUMENT,
          "constant_size is %u; entry point '%s' takes a block of %u bytes", d->constant_size,
          info->name, info->constants);
    CHECK(!d->bindings.count, KEEL_INVALID_ARGUMENT,
          "bindings: %zu of them; raw arguments have `patches` instead", d->bindings.count);
    return NULL;
}

static keel_status_t arguments_check(const keel_caps_t *caps, const keel_dispatch_t *d,
                                     const keel_entry_info_t *info)
{
    CHECK(d->constants || !d->constant_size || d->patch_count, KEEL_INVALID_ARGUMENT,
          "constants is NULL, but constant_size is %u", d->constant_size);
    CHECK(d->bindings.refs || !d->bindings.count, KEEL_INVALID_ARGUMENT,
          "bindings.refs is NULL, but bindings.count is %zu", d->bindings.count);
    CHECK(d->patches || !d->patch_count, KEEL_INVALID_ARGUMENT,
          "patches is NULL, but patch_count is %zu", d->patch_count);
    CHECK(d->patch_count <= caps->max_bindings, KEEL_OUT_OF_RANGE,
          "patch_count is %zu; the device takes at most %u", d->patch_count, caps->max_bindings);
    if (d->raw) return raw_check(caps, d, info);
    CHECK(d->constant_size == info->constants, KEEL_INVALID_ARGUMENT,
          "constant_size is %u; entry point '%s' takes %u bytes", d->constant_size, info->name,
          info->constants);
    CHECK(d->bindings.count == info->bindings, KEEL_INVALID_ARGUMENT,
          "bindings: %zu of them; entry point '%s' takes %u", d->bindings.count, info->name,
          info->bindings);
    return NULL;
}

static inline bool grid_fits(keel_groups_t groups, uint64_t max)
{
    __extension__ typedef unsigned __int128 wide_t; // which the product cannot overflow
    return (wide_t)((uint64_t)groups.x * groups.y) * groups.z <= max;
}

static keel_status_t dimension_check(char name, uint32_t count, uint32_t most)
{
    CHECK(count <= most, KEEL_OUT_OF_RANGE,
          "groups.%c is %u; the device takes at most %u there, of a kernel made elsewhere", name,
          count, most);
    return NULL;
}

keel_status_t groups_check(const keel_caps_t *caps, keel_groups_t groups,
                           const keel_entry_info_t *info)
{
    if (!groups.x || !groups.y || !groups.z) return NULL; // does nothing
    if (info->raw) {
        KEEL_TRY(dimension_check('x', groups.x, caps->max_group_counts[0]));
        KEEL_TRY(dimension_check('y', groups.y, caps->max_group_counts[1]));
        KEEL_TRY(dimension_check('z', groups.z, caps->max_group_counts[2]));
    }
    CHECK(grid_fits(groups, caps->max_groups), KEEL_OUT_OF_RANGE,
          "groups: %u x %u x %u; the device takes at most %llu together", groups.x, groups.y,
          groups.z, (unsigned long long)caps->max_groups);
    return NULL;
}

static keel_status_t group_size_check(const keel_caps_t *caps, const keel_dispatch_t *d,
                                      const keel_entry_info_t *info)
{
    keel_groups_t size = d->group_size;
    if (!size.x && !size.y && !size.z) return NULL;
    CHECK(caps->bits & KEEL_CAP_GROUP_SIZE, KEEL_UNSUPPORTED,
          "group_size: the device has no KEEL_CAP_GROUP_SIZE");
    const uint32_t *most = caps->max_group_sizes;
    CHECK(group_size_fits(caps, size), KEEL_OUT_OF_RANGE,
          "group_size: %u x %u x %u; it must be 1 to %u work-items together, at most %u x %u x %u",
          size.x, size.y, size.z, caps->max_group_size, most[0], most[1], most[2]);
    const uint32_t *own = info->group_size;
    CHECK(!info->fixed_size || (size.x == own[0] && size.y == own[1] && size.z == own[2]),
          KEEL_UNSUPPORTED, "group_size: entry point '%s' is compiled for %u x %u x %u", info->name,
          own[0], own[1], own[2]);
    CHECK(!info->max_group_size || size.x * size.y * size.z <= info->max_group_size,
          KEEL_OUT_OF_RANGE,
          "group_size: %u x %u x %u; entry point '%s' is compiled for at most %u work-items",
          size.x, size.y, size.z, info->name, info->max_group_size);
    return NULL;
}

static keel_status_t counts_place_check(const keel_ref_t *counts)
{
    CHECK(counts->length >= 12, KEEL_OUT_OF_RANGE, "counts: %llu bytes; three uint32_t are read",
          (unsigned long long)counts->length);
    CHECK(counts->offset % 4 == 0, KEEL_INVALID_ARGUMENT, "counts: offset %llu is no multiple of 4",
          (unsigned long long)counts->offset);
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
    if (keel_ref_is_parameter(&d->counts)) {
        *counts = keel_parameter(d->counts.offset, 12);
        KEEL_TRY(counts_place_check(&d->counts));
        return parameter_check(recorder, counts, "counts");
    }
    CHECK(d->counts_kind == KEEL_COUNTS_STATIC ||
              (recorder->device->caps.bits & KEEL_CAP_DYNAMIC_COUNTS),
          KEEL_UNSUPPORTED, "counts_kind: the device has no KEEL_CAP_DYNAMIC_COUNTS");
    *counts = d->counts;
    KEEL_TRY(ref_check(recorder, counts, &use));
    KEEL_TRY(counts_place_check(counts));
    counts->length = 12;
    return ref_check(recorder, counts, &use);
}

static keel_status_t special_check(recorder_t *recorder, const keel_dispatch_t *d,
                                   const keel_entry_info_t *info, keel_ref_t *counts)
{
    const keel_caps_t *caps = &recorder->device->caps;
    KEEL_TRY(group_size_check(caps, d, info));
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

// The bindings of the newest command from `i` on, of which one needs a closer look. After an error
// none is retained, and the command is taken back.
__attribute__((noinline)) static keel_status_t
bindings_write(recorder_t *recorder, const keel_dispatch_t *d, keel_cmd_dispatch_t *c, size_t i)
{
    const keel_binding_info_t *infos = d->entry.executable->bindings[d->entry.index];
    keel_ref_t *to = c->bindings;
    for (; i < d->bindings.count; i++) {
        to[i] = d->bindings.refs[i];
        keel_status_t status = binding_check(recorder, &to[i], i, infos[i].access);
        if (!status) continue;
        while (i--) keel_buffer_release(to[i].buffer);
        commands_drop(recorder->commands, &c->head);
        return status;
    }
    return NULL;
}

static keel_status_t patch_check(recorder_t *recorder, const keel_dispatch_t *d,
                                 keel_patch_t *patch)
{
    static const ref_use_t use = {"ref", KEEL_USAGE_DISPATCH, 0};
    bool parameter = keel_ref_is_parameter(&patch->ref);
    CHECK(parameter || d->raw, KEEL_INVALID_ARGUMENT,
          "ref: addresses are for raw arguments, others have bindings");
    uint64_t size = parameter ? patch->ref.length : 8;
    CHECK(size <= d->constant_size && patch->offset <= d->constant_size - size, KEEL_OUT_OF_RANGE,
          "offset is %u; %llu bytes do not fit there into %u bytes of constants", patch->offset,
          (unsigned long long)size, d->constant_size);
    return parameter ? parameter_check(recorder, &patch->ref, "ref")
                     : ref_check(recorder, &patch->ref, &use);
}

// Its patches, which the caller retains.
static keel_status_t patches_write(recorder_t *recorder, const keel_dispatch_t *d, keel_patch_t *to)
{
    for (size_t i = 0; i < d->patch_count; i++) {
        to[i] = d->patches[i];
        keel_status_t status = patch_check(recorder, d, &to[i]);
        if (status) return keel_status_wrap(status, "patches[%zu] is refused", i);
    }
    return NULL;
}

// Constants are few as a rule.
static inline void constants_write(keel_cmd_dispatch_t *c, const void *constants, uint32_t size)
{
    unsigned char *to = (unsigned char *)c + c->constants;
    if (__builtin_expect(size == 16, 1)) {
        memcpy(to, constants, 16);
        return;
    }
    if (!size) return;
    memset((unsigned char *)c + c->patches - 16, 0, 16); // what they leave of their last 16 bytes
    if (size == 8)
        memcpy(to, constants, 8);
    else
        memcpy(to, constants, size);
}

// Whether a dispatch of this device's executable is right and has nothing special, but for its
// bindings. If not, the checks say what it is.
__attribute__((always_inline)) static inline bool
dispatch_is_plain(const recorder_t *recorder, const keel_dispatch_t *d,
                  const keel_cmd_dispatch_t *plain)
{
    bool special = (unsigned)d->counts_kind | d->group_size.x | d->group_size.y | d->group_size.z |
                   d->local_memory | (unsigned)d->raw | (unsigned)plain->raw | d->patch_count;
    return !special && d->constant_size == plain->constant_size &&
           d->bindings.count == plain->binding_count && (d->constants || !plain->constant_size) &&
           (d->bindings.refs || !plain->binding_count) &&
           grid_fits(d->groups, recorder->device->caps.max_groups);
}

// One with nothing special: a copy of what its entry begins with, its bindings and its constants.
// What is read of `d` is read before the command is written, which the compiler must take for a
// possible change of it.
__attribute__((always_inline)) static inline keel_status_t
record_plain(recorder_t *recorder, const keel_dispatch_t *d, const keel_cmd_dispatch_t *plain)
{
    keel_executable_t *executable = d->entry.executable;
    const keel_binding_info_t *info = executable->bindings[d->entry.index];
    const keel_ref_t *from = d->bindings.refs; // NULL where there are none
    const keel_ref_t *end =
        (const keel_ref_t *)((uintptr_t)from + plain->binding_count * sizeof *from);
    const keel_device_t *device = recorder->device;
    const void *constants = d->constants;
    uint32_t constant_size = plain->constant_size;
    keel_groups_t groups = d->groups;
    keel_cmd_dispatch_t *c =
        commands_append(recorder->commands, KEEL_CMD_DISPATCH, plain->head.size);
    if (!c) return status_no_memory();
    *c = *plain;
    c->groups[0] = groups.x;
    c->groups[1] = groups.y;
    c->groups[2] = groups.z;
    constants_write(c, constants, constant_size);
    for (keel_ref_t *to = c->bindings; from != end; from++, to++, info++) {
        if (__builtin_expect(binding_write(device, from, info->access, to), 1)) continue;
        KEEL_TRY(bindings_write(recorder, d, c, (size_t)(to - c->bindings)));
        break;
    }
    command_keep(recorder->commands, c);
    return NULL;
}

// One that has: counts in memory, a size of its own, raw arguments, parameters.
static keel_status_t record_special(recorder_t *recorder, const keel_dispatch_t *d)
{
    const keel_entry_info_t *info = &d->entry.executable->entries[d->entry.index];
    keel_cmd_dispatch_t fixed = d->entry.executable->plain[d->entry.index];
    KEEL_TRY(special_check(recorder, d, info, &fixed.counts));
    command_layout(&fixed, d->bindings.count, d->constant_size, d->patch_count);
    if (d->group_size.x) memcpy(fixed.group_size, &d->group_size, sizeof fixed.group_size);
    fixed.local_memory += d->local_memory;
    fixed.counts_kind = (uint8_t)d->counts_kind; // of parameters either means the same
    fixed.raw = d->raw;

    keel_cmd_dispatch_t *c =
        commands_append(recorder->commands, KEEL_CMD_DISPATCH, fixed.head.size);
    if (!c) return status_no_memory();
    *c = fixed;
    memcpy(c->groups, &d->groups, sizeof c->groups);
    if (d->constants)
        constants_write(c, d->constants, c->constant_size);
    else
        memset((char *)c + c->constants, 0, c->patches - c->constants);
    // Refs are checked where they are written, which saves a copy of them.
    keel_patch_t *patches = (keel_patch_t *)(void *)((char *)c + c->patches);
    keel_status_t status = patches_write(recorder, d, patches);
    if (status) {
        commands_drop(recorder->commands, &c->head);
        return status;
    }
    KEEL_TRY(bindings_write(recorder, d, c, 0));
    for (size_t i = 0; i < d->patch_count; i++) ref_retain(&patches[i].ref);
    ref_retain(&c->counts);
    command_keep(recorder->commands, c);
    return NULL;
}

__attribute__((noinline)) static keel_status_t record_checked(recorder_t *recorder,
                                                              const keel_dispatch_t *d)
{
    const keel_caps_t *caps = &recorder->device->caps;
    KEEL_TRY(entry_check(recorder, d));
    const keel_entry_info_t *info = &d->entry.executable->entries[d->entry.index];
    KEEL_TRY(arguments_check(caps, d, info));
    if (d->counts_kind == KEEL_COUNTS_DIRECT) KEEL_TRY(groups_check(caps, d->groups, info));
    return record_special(recorder, d);
}

keel_status_t record_dispatch(recorder_t *recorder, const keel_op_t *op)
{
    const keel_dispatch_t *d = &op->as.dispatch;
    const keel_executable_t *executable = d->entry.executable;
    if (executable && executable->device == recorder->device &&
        d->entry.index < executable->entry_count) {
        const keel_cmd_dispatch_t *plain = &executable->plain[d->entry.index];
        if (dispatch_is_plain(recorder, d, plain)) return record_plain(recorder, d, plain);
    }
    return record_checked(recorder, d);
}
