// SPDX-License-Identifier: Apache-2.0
// The format of containers, shared by who reads and who writes them: what stands before the table
// of contents, and container.fbs in C.
#ifndef KEEL_SRC_EXECUTABLE_FORMAT_H_
#define KEEL_SRC_EXECUTABLE_FORMAT_H_

#include "executable/container.h"
#include "executable/flatbuffer.h"

// Ends like PNG's: a transfer as text damages it.
#define FORMAT_MAGIC {'K', 'E', 'E', 'L', '\r', '\n', '\x1a', '\n'}

typedef struct prefix_t {
    char magic[8];
    uint32_t version;
    uint32_t contents; // bytes of the table of contents
    uint64_t size;     // bytes of the container
    uint64_t reserved; // 0
    hash_t hash;       // of the table of contents
} prefix_t;

_Static_assert(sizeof(prefix_t) == CONTAINER_PREFIX, "written and read as it lies");

#define FORMAT_IDENTIFIER "KEEL"

enum { BINDING_NAME, BINDING_ACCESS, BINDING_FIELDS };

enum {
    ENTRY_NAME,
    ENTRY_GROUP_SIZE,
    ENTRY_CONSTANTS,
    ENTRY_LOCAL_MEMORY,
    ENTRY_ABI,
    ENTRY_ARGUMENTS,
    ENTRY_BINDINGS,
    ENTRY_FIELDS,
};

enum {
    ITEM_TARGET,
    ITEM_KIND,
    ITEM_COMPRESSION,
    ITEM_OFFSET,
    ITEM_STORED,
    ITEM_SIZE,
    ITEM_HASH,
    ITEM_ENTRIES,
    ITEM_FIELDS,
};

enum { CONTENTS_PRODUCER, CONTENTS_IMAGES, CONTENTS_FIELDS };

extern const flat_table_t format_contents;

#endif
