// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/live.h"
#include "base/memory.h"
#include "core/check.h"
#include "core/choice.h"
#include "core/device_ref.h"
#include "kit/command.h"
#include "kit/executable.h"

// What a dispatch of each entry begins with, if it has nothing special: recording it is then a
// copy. Those whose grids have limits of their own are marked as raw, so that none is plain.
static keel_cmd_dispatch_t *dispatches_prepare(keel_executable_t *executable,
                                               const keel_caps_t *caps)
{
    uint32_t count = executable->entry_count;
    const uint32_t *most = caps->max_group_counts;
    bool limited = (most[0] & most[1] & most[2]) != UINT32_MAX;
    keel_cmd_dispatch_t *plain = mem_zalloc_aligned(count * sizeof *plain, 16);
    for (uint32_t i = 0; plain && i < count; i++) {
        const keel_entry_info_t *info = &executable->entries[i];
        command_layout(&plain[i], info->bindings, info->constants, 0);
        plain[i].head.kind = KEEL_CMD_DISPATCH;
        plain[i].executable = executable;
        plain[i].kernel = executable->kernels[i];
        plain[i].entry = i;
        memcpy(plain[i].group_size, info->group_size, sizeof plain[i].group_size);
        plain[i].local_memory = info->local_memory;
        plain[i].raw = limited && info->raw;
    }
    return plain;
}

// That the device has what an entry point needs, as
// the driver read it from the image or a container says.
static keel_status_t entry_check(const keel_entry_info_t *entry, const keel_caps_t *caps)
{
    CHECK(entry->bindings <= caps->max_bindings, KEEL_UNSUPPORTED,
          "entry point '%s' has %u bindings; at most %u are taken", entry->name, entry->bindings,
          caps->max_bindings);
    uint32_t most = entry->raw && caps->max_arguments > caps->max_constants ? caps->max_arguments
                                                                            : caps->max_constants;
    CHECK(entry->constants <= most, KEEL_UNSUPPORTED,
          "entry point '%s' takes %u bytes of constants; at most %u are given", entry->name,
          entry->constants, most);
    CHECK(entry->local_memory <= caps->max_local_memory, KEEL_UNSUPPORTED,
          "entry point '%s' takes %u bytes of workgroup memory; there are %u", entry->name,
          entry->local_memory, caps->max_local_memory);
    const uint32_t *size = entry->group_size, *most_of = caps->max_group_sizes;
    CHECK(group_size_fits(caps, keel_groups(size[0], size[1], size[2])), KEEL_UNSUPPORTED,
          "entry point '%s' has workgroups of %u x %u x %u; 1 to %u work-items are taken, at most "
          "%u x %u x %u",
          entry->name, size[0], size[1], size[2], caps->max_group_size, most_of[0], most_of[1],
          most_of[2]);
    return NULL;
}

static keel_status_t constants_check(const keel_executable_options_t *options)
{
    const keel_executable_constant_t *constants = options->constants;
    CHECK(constants || !options->constant_count, KEEL_INVALID_ARGUMENT,
          "options->constants is NULL, but constant_count is %zu", options->constant_count);
    for (size_t i = 0; i < options->constant_count; i++) {
        CHECK(constants[i].name, KEEL_INVALID_ARGUMENT, "options->constants[%zu].name is NULL", i);
        CHECK(constants[i].data, KEEL_INVALID_ARGUMENT,
              "options->constants[%zu].data is NULL, for '%s'", i, constants[i].name);
    }
    return NULL;
}

static keel_status_t constant_set(keel_executable_t *executable,
                                  const keel_executable_constant_t *constant)
{
    const keel_device_ops_t *ops = executable->device->ops;
    keel_external_buffer_t where = {0};
    CHECK(ops->executable_global, KEEL_UNSUPPORTED, "the device cannot look up constant '%s'",
          constant->name);
    keel_status_t status = ops->executable_global(executable, constant->name, &where);
    if (status) return keel_status_wrap(status, "constant '%s' cannot be set", constant->name);
    CHECK(where.size == constant->size, KEEL_INVALID_ARGUMENT,
          "constant '%s' has %llu bytes; %zu are given", constant->name,
          (unsigned long long)where.size, constant->size);
    if (ops->executable_write) return ops->executable_write(executable, &where, constant->data);
    CHECK(where.kind == KEEL_EXTERNAL_HOST, KEEL_UNSUPPORTED,
          "the device cannot write constant '%s'", constant->name);
    memcpy(where.handle.host, constant->data, constant->size);
    return NULL;
}

static keel_status_t constants_set(keel_executable_t *executable,
                                   const keel_executable_options_t *options)
{
    if (!(executable->device->caps.bits & KEEL_CAP_EXECUTES)) return NULL; // nothing reads them
    for (size_t i = 0; i < options->constant_count; i++)
        KEEL_TRY(constant_set(executable, &options->constants[i]));
    return NULL;
}

// Makes an executable of the image that suits the device best.
static keel_status_t image_load(keel_device_t *device, const keel_executable_options_t *options,
                                keel_executable_t **executable)
{
    choice_t choice;
    keel_executable_t *e = NULL;
    keel_status_t status = choice_init(&choice, device, options);
    if (!status) status = device->ops->executable_load(device, &choice.image, &e);
    choice_finish(&choice);
    KEEL_TRY(status);
    object_init(&e->object); // what unloads it looks at both
    e->device = device;
    for (uint32_t i = 0; i < e->entry_count && !status; i++)
        status = entry_check(&e->entries[i], &device->caps);
    if (!status && !(e->plain = dispatches_prepare(e, &device->caps))) status = status_no_memory();
    if (status)
        device->ops->executable_unload(e);
    else
        *executable = e;
    return status;
}

static void executable_destroy(keel_executable_t *executable)
{
    keel_device_t *device = executable->device;
    mem_free(executable->name);
    mem_free_aligned(executable->plain);
    device->ops->executable_unload(executable);
    live_add(LIVE_EXECUTABLE, -1);
    device_drop(device);
}

keel_status_t keel_executable_load(keel_device_t *device, const keel_executable_options_t *options,
                                   keel_executable_t **executable)
{
    CHECK_NOT_NULL(executable);
    *executable = NULL;
    CHECK_NOT_NULL(device);
    CHECK_NOT_NULL(options);
    KEEL_TRY(device_check(device));
    CHECK(!options->data != !options->path, KEEL_INVALID_ARGUMENT,
          "options must give either data or path, and give %s", options->data ? "both" : "neither");
    KEEL_TRY(constants_check(options));
    const char *given = options->name ? options->name : options->path;
    char *name = NULL;
    KEEL_TRY(copy_name(given ? given : "executable", &name));
    keel_executable_t *e = NULL;
    keel_status_t status = image_load(device, options, &e);
    if (status) {
        status = keel_status_wrap(status, "'%s' cannot be loaded", name);
        mem_free(name);
        return status;
    }
    e->destroy = executable_destroy;
    e->name = name;
    e->info = (keel_executable_info_t){device, name};
    device_hold(device);
    live_add(LIVE_EXECUTABLE, 1);
    status = constants_set(e, options);
    if (status)
        keel_executable_release(e);
    else
        *executable = e;
    return status;
}

keel_executable_t *keel_executable_retain(keel_executable_t *executable)
{
    if (executable) object_retain(&executable->object);
    return executable;
}

void keel_executable_release(keel_executable_t *executable)
{
    if (!executable || !object_release(&executable->object)) return;
    // No thread can begin a use any more; acq_rel: all uses come before the end.
    uint64_t begun = atomic_load_explicit(&executable->uses_begun, memory_order_relaxed);
    if (atomic_fetch_sub_explicit(&executable->uses_ended, begun, memory_order_acq_rel) == begun)
        executable_destroy(executable);
}

const keel_executable_info_t *keel_executable_info(const keel_executable_t *executable)
{
    return &executable->info;
}

size_t keel_executable_entry_count(const keel_executable_t *executable)
{
    return executable->entry_count;
}

static keel_status_t entry_not_found(const keel_executable_t *executable, const char *name)
{
    char names[512] = "";
    for (uint32_t i = 0; i < executable->entry_count; i++) {
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "",
                 executable->entries[i].name);
    }
    return KEEL_ERROR(KEEL_NOT_FOUND, "'%s' has no entry point '%s'; it has: %s", executable->name,
                      name, names);
}

keel_status_t keel_executable_entry(keel_executable_t *executable, const char *name,
                                    keel_entry_t *entry)
{
    CHECK_NOT_NULL(executable);
    CHECK_NOT_NULL(name);
    CHECK_NOT_NULL(entry);
    *entry = (keel_entry_t){0};
    for (uint32_t i = 0; i < executable->entry_count; i++) {
        if (strcmp(executable->entries[i].name, name) != 0) continue;
        *entry = (keel_entry_t){executable, i};
        return NULL;
    }
    return entry_not_found(executable, name);
}

static keel_status_t index_check(keel_entry_t entry)
{
    const keel_executable_t *executable = entry.executable;
    CHECK(executable, KEEL_INVALID_ARGUMENT, "entry.executable is NULL");
    CHECK(entry.index < executable->entry_count, KEEL_OUT_OF_RANGE,
          "entry.index is %u; '%s' has %u entry points", entry.index, executable->name,
          executable->entry_count);
    return NULL;
}

keel_status_t keel_entry_info(keel_entry_t entry, keel_entry_info_t *info)
{
    KEEL_TRY(index_check(entry));
    CHECK_NOT_NULL(info);
    *info = entry.executable->entries[entry.index];
    return NULL;
}

keel_status_t keel_entry_bindings(keel_entry_t entry, size_t capacity,
                                  keel_binding_info_t *bindings)
{
    KEEL_TRY(index_check(entry));
    CHECK(bindings || !capacity, KEEL_INVALID_ARGUMENT, "bindings is NULL, but capacity is %zu",
          capacity);
    const keel_executable_t *executable = entry.executable;
    size_t count = executable->entries[entry.index].bindings;
    for (size_t i = 0; i < count && i < capacity; i++)
        bindings[i] = executable->bindings[entry.index][i];
    return NULL;
}

keel_status_t keel_executable_global(keel_executable_t *executable, const char *name,
                                     keel_buffer_t **buffer)
{
    CHECK_NOT_NULL(buffer);
    *buffer = NULL;
    CHECK_NOT_NULL(executable);
    CHECK_NOT_NULL(name);
    keel_device_t *device = executable->device;
    CHECK(device->ops->executable_global, KEEL_UNSUPPORTED,
          "the device cannot look up global variables");
    keel_external_buffer_t where = {0};
    KEEL_TRY(device->ops->executable_global(executable, name, &where));
    keel_buffer_options_t options = {.name = name};
    KEEL_TRY(keel_buffer_import(device, &where, &options, buffer));
    executable_use(executable);
    (*buffer)->executable = executable;
    return NULL;
}
