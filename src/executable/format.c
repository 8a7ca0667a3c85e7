// SPDX-License-Identifier: Apache-2.0
#include "executable/format.h"

static const flat_field_t binding_fields[BINDING_FIELDS] = {
    [BINDING_NAME] = {"name", FLAT_TEXT},
    [BINDING_ACCESS] = {"access", FLAT_U8},
};
static const flat_table_t binding = {"Binding", BINDING_FIELDS, binding_fields};

static const flat_field_t entry_fields[ENTRY_FIELDS] = {
    [ENTRY_NAME] = {"name", FLAT_TEXT, .required = true},
    [ENTRY_GROUP_SIZE] = {"group_size", FLAT_STRUCT, .required = true, .size = 12, .align = 4},
    [ENTRY_CONSTANTS] = {"constants", FLAT_U32},
    [ENTRY_LOCAL_MEMORY] = {"local_memory", FLAT_U32},
    [ENTRY_ABI] = {"abi", FLAT_U8},
    [ENTRY_ARGUMENTS] = {"arguments", FLAT_U32},
    [ENTRY_BINDINGS] = {"bindings", FLAT_TABLES, .table = &binding},
};
static const flat_table_t entry = {"Entry", ENTRY_FIELDS, entry_fields};

static const flat_field_t image_fields[ITEM_FIELDS] = {
    [ITEM_TARGET] = {"target", FLAT_TEXT, .required = true},
    [ITEM_KIND] = {"kind", FLAT_U8},
    [ITEM_COMPRESSION] = {"compression", FLAT_U8},
    [ITEM_OFFSET] = {"offset", FLAT_U64},
    [ITEM_STORED] = {"stored", FLAT_U64},
    [ITEM_SIZE] = {"size", FLAT_U64},
    [ITEM_HASH] = {"hash", FLAT_STRUCT, .required = true, .size = HASH_SIZE, .align = 1},
    [ITEM_ENTRIES] = {"entries", FLAT_TABLES, .table = &entry},
};
static const flat_table_t image = {"Image", ITEM_FIELDS, image_fields};

static const flat_field_t contents_fields[CONTENTS_FIELDS] = {
    [CONTENTS_PRODUCER] = {"producer", FLAT_TEXT},
    [CONTENTS_IMAGES] = {"images", FLAT_TABLES, .required = true, .table = &image},
};
const flat_table_t format_contents = {"Contents", CONTENTS_FIELDS, contents_fields};
