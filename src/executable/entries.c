// SPDX-License-Identifier: Apache-2.0
#include "executable/entries.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "executable/image.h"
#include "executable/unpack.h"

static keel_status_t tables_alloc(entries_t *e, uint32_t count, size_t bindings, size_t names)
{
    e->count = count;
    e->entries = mem_zalloc(count * sizeof *e->entries);
    e->abis = mem_zalloc(count * sizeof *e->abis);
    e->bindings = mem_zalloc(count * sizeof *e->bindings);
    e->infos = mem_zalloc(bindings * sizeof *e->infos);
    e->names = mem_alloc(names);
    bool all = e->entries && e->abis && e->bindings && e->infos && e->names;
    return all ? NULL : status_no_memory();
}

void entries_finish(entries_t *e)
{
    mem_free(e->entries);
    mem_free(e->abis);
    mem_free(e->bindings);
    mem_free(e->infos);
    mem_free(e->names);
}

static const char *name_copy(char **at, const char *name)
{
    size_t size = strlen(name) + 1;
    char *copy = memcpy(*at, name, size);
    *at += size;
    return copy;
}

static bool kind_is_bound(keel_image_kind_t kind)
{
    return kind == KEEL_IMAGE_SPIRV || kind == KEEL_IMAGE_MSL || kind == KEEL_IMAGE_METALLIB;
}

static keel_status_t abi_check(const keel_image_entry_t *entry, keel_image_kind_t kind)
{
    if (entry->abi == KEEL_ABI_RAW || entry->abi == KEEL_ABI_DIRECT) return NULL;
    if (entry->abi == KEEL_ABI_BOUND && kind_is_bound(kind)) return NULL;
    return KEEL_ERROR(KEEL_UNSUPPORTED,
                      "kernel '%s' takes its arguments by version %u of the kernel ABI, not by %d: "
                      "compile it again with this version's keel cc",
                      entry->info.name, entry->abi, KEEL_ABI_DIRECT);
}

// What the container says; its strings go away, so they are copied.
static keel_status_t entries_copy(entries_t *e, const keel_image_t *image)
{
    const keel_image_entry_t *entries = image->entries;
    uint32_t count = image->entry_count;
    size_t bindings = 0, names = 1;
    for (uint32_t i = 0; i < count; i++) {
        KEEL_TRY(abi_check(&entries[i], image->kind));
        names += strlen(entries[i].info.name) + 1;
        for (uint32_t j = 0; j < entries[i].info.bindings; j++, bindings++)
            names += strlen(entries[i].bindings[j].name) + 1;
    }
    KEEL_TRY(tables_alloc(e, count, bindings, names));
    keel_binding_info_t *info = e->infos;
    char *at = e->names;
    for (uint32_t i = 0; i < count; i++) {
        e->entries[i] = entries[i].info;
        e->entries[i].name = name_copy(&at, entries[i].info.name);
        e->bindings[i] = info;
        for (uint32_t j = 0; j < entries[i].info.bindings; j++, info++) {
            *info = entries[i].bindings[j];
            info->name = name_copy(&at, info->name);
        }
        e->abis[i] = entries[i].abi;
        e->entries[i].raw = entries[i].abi == KEEL_ABI_RAW;
        e->entries[i].fixed_size |= !e->entries[i].raw; // it is in the code
    }
    return NULL;
}

static bool is_said(uint32_t number)
{
    return number != KEEL_UNSAID;
}

static uint32_t group_limit(const keel_image_entry_info_t *entry)
{
    return is_said(entry->max_group_size) ? entry->max_group_size : 0;
}

static void entry_complete(keel_entry_info_t *entry, const keel_image_entry_info_t *said)
{
    entry->max_group_size = group_limit(said);
    if (!entry->constants) entry->constants = image_given_size(said);
}

// How large groups of kernels made elsewhere may be, and their blocks of arguments where the
// container does not tell, only their image says. One that cannot be read says nothing: its vendor
// may know it.
static void entries_complete(entries_t *e, const keel_image_t *image)
{
    image_info_t info;
    bool raw = false;
    for (uint32_t i = 0; i < e->count; i++) raw |= e->entries[i].raw;
    if (!raw || image_recognise(image->data, image->size) == KEEL_IMAGE_UNKNOWN) return;
    keel_status_t status = image_read(image->data, image->size, &info);
    for (uint32_t i = 0; i < e->count && !status; i++)
        for (uint32_t k = 0; k < info.entry_count && e->entries[i].raw; k++)
            if (!strcmp(e->entries[i].name, info.entries[k].name))
                entry_complete(&e->entries[i], &info.entries[k]);
    image_info_finish(&info);
    keel_status_release(status);
}

// That nothing but buffers is bound, and each alone.
static keel_status_t bindings_check(const keel_image_entry_info_t *entry)
{
    for (uint32_t i = 0; i < entry->binding_count; i++) {
        const keel_image_binding_t *b = &entry->bindings[i];
        bool buffer = !strcmp(b->type, "storage buffer") || !strcmp(b->type, "uniform buffer");
        if (!buffer || b->count != 1)
            return KEEL_ERROR(KEEL_UNSUPPORTED,
                              "'%s' binds %s%s at %u of set %u; buffers are bound, one by one",
                              entry->name, b->count == 1 ? "a " : "an array of type ", b->type,
                              b->binding, b->set);
    }
    return NULL;
}

// A shader says what it binds; its sets are put one behind the other.
static void shader_take(entries_t *e, uint32_t index, const keel_image_entry_info_t *entry,
                        keel_binding_info_t *infos, char **at)
{
    keel_entry_info_t *made = &e->entries[index];
    made->raw = false;
    made->fixed_size = true;
    made->bindings = entry->binding_count;
    made->constants = is_said(entry->constants) ? entry->constants : 0;
    made->local_memory = is_said(entry->local_memory) ? entry->local_memory : 0;
    e->abis[index] = KEEL_ABI_BOUND;
    e->bindings[index] = infos;
    for (uint32_t i = 0; i < entry->binding_count; i++) {
        const keel_image_binding_t *b = &entry->bindings[i];
        uint32_t access = b->access ? b->access : KEEL_ACCESS_READ | KEEL_ACCESS_WRITE;
        infos[i] = (keel_binding_info_t){name_copy(at, b->name), access};
    }
}

static bool is_shader(const image_info_t *info, const keel_image_entry_info_t *entry)
{
    return info->kind == KEEL_IMAGE_SPIRV && !entry->param_count;
}

// An image that came alone: its kernels were made elsewhere and take blocks of their own, but for
// shaders.
static keel_status_t entries_take(entries_t *e, const image_info_t *info)
{
    size_t names = 1, bindings = 0;
    for (uint32_t i = 0; i < info->entry_count; i++) {
        const keel_image_entry_info_t *entry = &info->entries[i];
        names += strlen(entry->name) + 1;
        for (uint32_t k = 0; is_shader(info, entry) && k < entry->binding_count; k++, bindings++)
            names += strlen(entry->bindings[k].name) + 1;
        if (is_shader(info, entry)) KEEL_TRY(bindings_check(entry));
    }
    KEEL_TRY(tables_alloc(e, info->entry_count, bindings, names));
    keel_binding_info_t *infos = e->infos;
    char *at = e->names;
    for (uint32_t i = 0; i < info->entry_count; i++) {
        const keel_image_entry_info_t *entry = &info->entries[i];
        const uint32_t *size = entry->group_size;
        e->entries[i] = (keel_entry_info_t){.name = name_copy(&at, entry->name), .raw = true};
        e->entries[i].constants = image_given_size(entry);
        for (int d = 0; d < 3; d++)
            e->entries[i].group_size[d] = is_said(size[d]) && size[d] ? size[d] : 1;
        e->entries[i].fixed_size = is_said(size[0]);
        e->entries[i].max_group_size = group_limit(entry);
        e->abis[i] = KEEL_ABI_RAW;
        if (!is_shader(info, entry)) continue;
        shader_take(e, i, entry, infos, &at);
        infos += entry->binding_count;
    }
    return NULL;
}

keel_status_t entries_name(entries_t *e, const char *const *names, uint32_t count)
{
    size_t bytes = 1;
    for (uint32_t i = 0; i < count; i++) bytes += strlen(names[i]) + 1;
    KEEL_TRY(tables_alloc(e, count, 0, bytes));
    char *at = e->names;
    for (uint32_t i = 0; i < count; i++) {
        e->entries[i] = (keel_entry_info_t){
            .name = name_copy(&at, names[i]), .group_size = {1, 1, 1}, .raw = true};
        e->abis[i] = KEEL_ABI_RAW;
    }
    return NULL;
}

// The member of a collection that the vendor will choose, or one as good to read names from.
static const image_member_t *member_choose(keel_device_t *device, const image_info_t *info)
{
    const image_member_t *best = NULL;
    uint32_t highest = 0;
    for (uint32_t i = 0; i < info->member_count; i++) {
        const image_member_t *member = &info->members[i];
        uint32_t rank = device->ops->executable_rank(device, member->kind, member->target);
        if (rank <= highest) continue;
        highest = rank;
        best = member;
    }
    return best;
}

static keel_status_t entries_of_member(entries_t *e, keel_device_t *device,
                                       const image_info_t *info)
{
    const image_member_t *member = member_choose(device, info);
    if (!member)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "none of its %u images is for %s", info->member_count,
                          device->info.target);
    enum { MOST = 1 << 30 };
    void *bytes = NULL;
    image_info_t inner = {0};
    KEEL_TRY(image_unpack(member, MOST, &bytes));
    keel_status_t status = image_read(bytes, member->unpacked, &inner);
    if (!status) status = entries_take(e, &inner);
    image_info_finish(&inner);
    mem_free(bytes);
    return status;
}

keel_status_t entries_read(entries_t *e, keel_device_t *device, const keel_image_t *image)
{
    if (image->entries) {
        KEEL_TRY(entries_copy(e, image));
        entries_complete(e, image);
        return NULL;
    }
    image_info_t info;
    if (image_recognise(image->data, image->size) == KEEL_IMAGE_UNKNOWN)
        return KEEL_ERROR(KEEL_CORRUPT, "it is no image of a kind that is known");
    KEEL_TRY(image_read(image->data, image->size, &info));
    keel_status_t status;
    if (info.member_count)
        status = entries_of_member(e, device, &info);
    else if (device->ops->executable_rank(device, info.kind, info.target))
        status = entries_take(e, &info);
    else
        status = KEEL_ERROR(KEEL_UNSUPPORTED, "it is %s for %s; the device needs one for %s",
                            image_kind_name(info.kind), info.target, device->info.target);
    image_info_finish(&info);
    return status;
}
