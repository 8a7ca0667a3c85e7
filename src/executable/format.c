// SPDX-License-Identifier: Apache-2.0
#include "executable/format.h"

static const flat_field_t binding_fields[BINDING_FIELDS] = {
    [BINDING_NAME] = {.name = "name", .kind = FLAT_TEXT},
    [BINDING_ACCESS] = {.name = "access", .kind = FLAT_U8},
};
static const flat_table_t binding = {"Binding", BINDING_FIELDS, binding_fields};

static const flat_field_t entry_fields[ENTRY_FIELDS] = {
    [ENTRY_NAME] = {.name = "name", .kind = FLAT_TEXT, .required = true},
    [ENTRY_GROUP_SIZE] =
        {.name = "group_size", .kind = FLAT_STRUCT, .required = true, .size = 12, .align = 4},
    [ENTRY_CONSTANTS] = {.name = "constants", .kind = FLAT_U32},
    [ENTRY_LOCAL_MEMORY] = {.name = "local_memory", .kind = FLAT_U32},
    [ENTRY_ABI] = {.name = "abi", .kind = FLAT_U8},
    [ENTRY_ARGUMENTS] = {.name = "arguments", .kind = FLAT_U32},
    [ENTRY_BINDINGS] = {.name = "bindings", .kind = FLAT_TABLES, .table = &binding},
};
static const flat_table_t entry = {"Entry", ENTRY_FIELDS, entry_fields};

static const flat_field_t image_fields[ITEM_FIELDS] = {
    [ITEM_TARGET] = {.name = "target", .kind = FLAT_TEXT, .required = true},
    [ITEM_KIND] = {.name = "kind", .kind = FLAT_U8},
    [ITEM_COMPRESSION] = {.name = "compression", .kind = FLAT_U8},
    [ITEM_OFFSET] = {.name = "offset", .kind = FLAT_U64},
    [ITEM_STORED] = {.name = "stored", .kind = FLAT_U64},
    [ITEM_SIZE] = {.name = "size", .kind = FLAT_U64},
    [ITEM_HASH] =
        {.name = "hash", .kind = FLAT_STRUCT, .required = true, .size = HASH_SIZE, .align = 1},
    [ITEM_ENTRIES] = {.name = "entries", .kind = FLAT_TABLES, .table = &entry},
};
static const flat_table_t image = {"Image", ITEM_FIELDS, image_fields};

static const flat_field_t contents_fields[CONTENTS_FIELDS] = {
    [CONTENTS_PRODUCER] = {.name = "producer", .kind = FLAT_TEXT},
    [CONTENTS_IMAGES] = {.name = "images", .kind = FLAT_TABLES, .required = true, .table = &image},
};
const flat_table_t format_contents = {"Contents", CONTENTS_FIELDS, contents_fields};
