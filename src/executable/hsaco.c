// SPDX-License-Identifier: Apache-2.0
// What is to be known of the kernels stands in a note, as MessagePack: maps of names to values, of
// which those that are not known here are passed over.
#include "executable/hsaco.h"

#include <stddef.h>
#include <string.h>

#include "executable/build.h"
#include "executable/bytes.h"
#include "executable/elf.h"
#include "executable/msgpack.h"
#include "executable/triple.h"

enum {
    SEGMENT_NOTE = 4,
    NOTE_METADATA = 32,
    ABI_VERSION_3 = 1, // of code objects, as the ELF header counts them
    XNACK_VERSION_3 = 0x100,
    SRAMECC_VERSION_3 = 0x200,
};

// Called for each pair of a map, its key being read; takes the value.
typedef keel_status_t (*pair_fn)(image_info_t *info, msgpack_t *reader, const msgpack_value_t *key,
                                 void *context);

static keel_status_t map_walk(image_info_t *info, msgpack_t *reader, pair_fn pair, void *context)
{
    msgpack_value_t map, key;
    KEEL_TRY(msgpack_expect(reader, MSGPACK_MAP, &map));
    for (uint64_t i = 0; i < map.size; i++) {
        KEEL_TRY(msgpack_expect(reader, MSGPACK_TEXT, &key));
        KEEL_TRY(pair(info, reader, &key, context));
    }
    return NULL;
}

static keel_status_t number_read(msgpack_t *reader, uint32_t *number)
{
    msgpack_value_t value;
    KEEL_TRY(msgpack_expect(reader, MSGPACK_UNSIGNED, &value));
    if (value.number >= KEEL_UNSAID)
        return KEEL_ERROR(KEEL_CORRUPT, "its metadata has a number of %llu",
                          (unsigned long long)value.number);
    *number = (uint32_t)value.number;
    return NULL;
}

static keel_status_t text_read(image_info_t *info, msgpack_t *reader, const char **text)
{
    msgpack_value_t value;
    KEEL_TRY(msgpack_expect(reader, MSGPACK_TEXT, &value));
    return image_text(info, value.data, (size_t)value.size, text);
}

// A field of a struct that a number goes to, by key.
typedef struct field_t {
    const char *key;
    size_t offset;
} field_t;

// Reads a number if `key` is one of the fields; *taken says whether.
static keel_status_t field_read(msgpack_t *reader, const msgpack_value_t *key, const field_t *field,
                                void *to, bool *taken)
{
    for (*taken = false; field->key; field++) {
        if (!msgpack_is(key, field->key)) continue;
        *taken = true;
        return number_read(reader, (uint32_t *)(void *)((char *)to + field->offset));
    }
    return NULL;
}

static keel_param_kind_t param_kind(const char *value_kind)
{
    if (!strcmp(value_kind, "by_value")) return KEEL_PARAM_VALUE;
    if (!strcmp(value_kind, "global_buffer")) return KEEL_PARAM_POINTER;
    if (!strcmp(value_kind, "dynamic_shared_pointer")) return KEEL_PARAM_LOCAL;
    return strncmp(value_kind, "hidden_", 7) ? KEEL_PARAM_OPAQUE : KEEL_PARAM_HIDDEN;
}

static keel_status_t access_read(msgpack_t *reader, uint32_t *access)
{
    msgpack_value_t value;
    KEEL_TRY(msgpack_expect(reader, MSGPACK_TEXT, &value));
    if (msgpack_is(&value, "read_only")) *access = KEEL_ACCESS_READ;
    if (msgpack_is(&value, "write_only")) *access = KEEL_ACCESS_WRITE;
    if (msgpack_is(&value, "read_write")) *access = KEEL_ACCESS_ALL;
    return NULL;
}

static keel_status_t param_pair(image_info_t *info, msgpack_t *reader, const msgpack_value_t *key,
                                void *context)
{
    static const field_t fields[] = {
        {".offset", offsetof(keel_image_param_t, offset)},
        {".size", offsetof(keel_image_param_t, size)},
        {NULL, 0},
    };
    keel_image_param_t *param = context;
    bool taken;
    KEEL_TRY(field_read(reader, key, fields, param, &taken));
    if (taken) return NULL;
    if (msgpack_is(key, ".name")) return text_read(info, reader, &param->name);
    if (msgpack_is(key, ".access") || msgpack_is(key, ".actual_access"))
        return access_read(reader, &param->access);
    if (!msgpack_is(key, ".value_kind")) return msgpack_skip(reader);
    KEEL_TRY(text_read(info, reader, &param->type));
    param->kind = param_kind(param->type);
    return NULL;
}

static keel_status_t params_read(image_info_t *info, msgpack_t *reader,
                                 keel_image_entry_info_t *entry)
{
    msgpack_value_t array;
    KEEL_TRY(msgpack_expect(reader, MSGPACK_ARRAY, &array));
    for (uint64_t i = 0; i < array.size; i++) {
        keel_image_param_t *param;
        KEEL_TRY(image_add_param(info, entry, &param));
        KEEL_TRY(map_walk(info, reader, param_pair, param));
        if (!param->type[0])
            return KEEL_ERROR(KEEL_CORRUPT, "its metadata has a parameter without .value_kind");
    }
    return NULL;
}

static keel_status_t group_size_read(msgpack_t *reader, keel_image_entry_info_t *entry)
{
    msgpack_value_t array;
    KEEL_TRY(msgpack_expect(reader, MSGPACK_ARRAY, &array));
    if (array.size != 3) return KEEL_ERROR(KEEL_CORRUPT, "its .reqd_workgroup_size is not three");
    for (int i = 0; i < 3; i++) KEEL_TRY(number_read(reader, &entry->group_size[i]));
    return NULL;
}

static keel_status_t entry_pair(image_info_t *info, msgpack_t *reader, const msgpack_value_t *key,
                                void *context)
{
    static const field_t fields[] = {
        {".kernarg_segment_size", offsetof(keel_image_entry_info_t, param_size)},
        {".group_segment_fixed_size", offsetof(keel_image_entry_info_t, local_memory)},
        {".private_segment_fixed_size", offsetof(keel_image_entry_info_t, private_memory)},
        {".wavefront_size", offsetof(keel_image_entry_info_t, wave_size)},
        {".sgpr_count", offsetof(keel_image_entry_info_t, scalar_registers)},
        {".vgpr_count", offsetof(keel_image_entry_info_t, vector_registers)},
        {".max_flat_workgroup_size", offsetof(keel_image_entry_info_t, max_group_size)},
        {NULL, 0},
    };
    keel_image_entry_info_t *entry = context;
    bool taken;
    KEEL_TRY(field_read(reader, key, fields, entry, &taken));
    if (taken) return NULL;
    if (msgpack_is(key, ".name")) return text_read(info, reader, &entry->name);
    if (msgpack_is(key, ".args")) return params_read(info, reader, entry);
    if (msgpack_is(key, ".reqd_workgroup_size")) return group_size_read(reader, entry);
    return msgpack_skip(reader);
}

static keel_status_t entries_read(image_info_t *info, msgpack_t *reader)
{
    msgpack_value_t array;
    KEEL_TRY(msgpack_expect(reader, MSGPACK_ARRAY, &array));
    for (uint64_t i = 0; i < array.size; i++) {
        keel_image_entry_info_t *entry;
        KEEL_TRY(image_add_entry(info, &entry));
        KEEL_TRY(map_walk(info, reader, entry_pair, entry));
        if (!entry->name[0])
            return KEEL_ERROR(KEEL_CORRUPT, "its metadata has a kernel without a name");
        KEEL_TRY(image_check_params(entry));
    }
    return NULL;
}

static keel_status_t target_read(image_info_t *info, msgpack_t *reader)
{
    const char *triple = "";
    KEEL_TRY(text_read(info, reader, &triple));
    info->target = triple_processor(triple);
    return NULL;
}

static keel_status_t metadata_pair(image_info_t *info, msgpack_t *reader,
                                   const msgpack_value_t *key, void *context)
{
    if (msgpack_is(key, "amdhsa.kernels")) return entries_read(info, reader);
    if (msgpack_is(key, "amdhsa.target")) return target_read(info, reader);
    return msgpack_skip(reader);
}

// Code objects of version 3 say their target by number alone.
static keel_status_t target_of_flags(image_info_t *info, uint32_t flags)
{
    static const char *const names[] = {
        [0x20] = "600",  [0x21] = "601",  [0x22] = "700",  [0x23] = "701",  [0x24] = "702",
        [0x25] = "703",  [0x26] = "704",  [0x28] = "801",  [0x29] = "802",  [0x2a] = "803",
        [0x2b] = "810",  [0x2c] = "900",  [0x2d] = "902",  [0x2e] = "904",  [0x2f] = "906",
        [0x30] = "908",  [0x31] = "909",  [0x32] = "90c",  [0x33] = "1010", [0x34] = "1011",
        [0x35] = "1012", [0x36] = "1030", [0x37] = "1031", [0x38] = "1032", [0x39] = "1033",
        [0x3a] = "602",  [0x3b] = "705",  [0x3c] = "805",  [0x3f] = "90a",
    };
    uint32_t machine = flags & 0xff;
    if (machine >= sizeof names / sizeof names[0] || !names[machine])
        return KEEL_ERROR(KEEL_UNSUPPORTED, "it is for an AMD GPU of unknown number 0x%x", machine);
    return image_format(info, &info->target, "gfx%s%s%s", names[machine],
                        flags & SRAMECC_VERSION_3 ? ":sramecc+" : "",
                        flags & XNACK_VERSION_3 ? ":xnack+" : "");
}

// Looks through notes for the metadata; *found if it was there.
static keel_status_t notes_read(image_info_t *info, const uint8_t *at, uint64_t size, bool *found)
{
    uint64_t offset = 0;
    while (size - offset >= 12) {
        uint64_t name = bytes_u32(at + offset), length = bytes_u32(at + offset + 4);
        uint32_t type = bytes_u32(at + offset + 8);
        uint64_t start = offset + 12 + ((name + 3) & ~UINT64_C(3));
        if (!bytes_fit(start, length, size)) return KEEL_ERROR(KEEL_CORRUPT, "a note is cut off");
        const uint8_t *owner = at + offset + 12;
        if (type == NOTE_METADATA && name == 7 && !memcmp(owner, "AMDGPU", 7)) {
            msgpack_t reader = {at + start, at + start + length};
            *found = true;
            return map_walk(info, &reader, metadata_pair, NULL);
        }
        offset = start + ((length + 3) & ~UINT64_C(3));
        if (offset > size) break;
    }
    return NULL;
}

static keel_status_t metadata_read(image_info_t *info, elf_t *elf, bool *found)
{
    for (uint32_t i = 0; i < elf->program_count && !*found; i++) {
        elf_segment_t segment;
        KEEL_TRY(elf_segment(elf, i, &segment));
        if (segment.type != SEGMENT_NOTE) continue;
        KEEL_TRY(elf_claim(elf, segment.file_size));
        KEEL_TRY(notes_read(info, segment.data, segment.file_size, found));
    }
    for (uint32_t i = 0; i < elf->section_count && !*found; i++) {
        elf_section_t section;
        KEEL_TRY(elf_section(elf, i, &section));
        if (section.type != ELF_SECTION_NOTE) continue;
        KEEL_TRY(elf_claim(elf, section.size));
        KEEL_TRY(notes_read(info, section.data, section.size, found));
    }
    return NULL;
}

static keel_status_t hsaco_describe(image_info_t *info, const void *data, size_t size)
{
    elf_t elf;
    KEEL_TRY(elf_open(data, size, &elf));
    if (elf.machine != ELF_AMDGPU)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "it is for ELF machine %u, and AMD GPUs are %d",
                          elf.machine, ELF_AMDGPU);
    if (elf.abi_version < ABI_VERSION_3)
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "it is a code object of version 2; 3 and later are read");
    KEEL_TRY(image_format(info, &info->version, "%u", elf.abi_version + 2u));
    bool found = false;
    KEEL_TRY(metadata_read(info, &elf, &found));
    if (!found) return KEEL_ERROR(KEEL_CORRUPT, "it has no note with metadata");
    return info->target[0] ? NULL : target_of_flags(info, elf.flags);
}

keel_status_t hsaco_read(const void *data, size_t size, image_info_t *info)
{
    KEEL_TRY(image_begin(info, KEEL_IMAGE_HSACO, size));
    return image_end(info, hsaco_describe(info, data, size));
}
