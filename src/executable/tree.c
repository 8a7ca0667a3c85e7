// SPDX-License-Identifier: Apache-2.0
// Reads an image, then its members, and theirs. A member may claim to be the whole of its owner, or
// thousand times as long once unpacked: what is read in all has a bound, and so has the depth.
#include "executable/tree.h"

#include "base/memory.h"
#include "base/status.h"
#include "executable/image.h"
#include "executable/unpack.h"

enum {
    DEPTH_MAX = 4,        // an object in a bundle in a compressed bundle in a container
    MEMBERS_MAX = 4096,   // that are read in all
    BYTES_FREE = 4 << 20, // of members that may be read in all, and
    BYTES_FACTOR = 32,    // so many more for each byte of the image
};

// What may still be read.
typedef struct budget_t {
    uint64_t bytes;
    uint32_t members;
} budget_t;

static const keel_image_info_t nothing = {
    .kind_name = "unknown",
    .target = "",
    .version = "",
    .producer = "",
    .name = "",
    .packing = "plain",
};

static keel_status_t node_read(keel_image_info_t *node, const void *data, size_t size, int depth,
                               budget_t *budget);

static keel_status_t member_read(keel_image_info_t *node, const image_member_t *member, int depth,
                                 budget_t *budget)
{
    if (depth > DEPTH_MAX || !budget->members || member->unpacked > budget->bytes)
        return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED,
                          "it is not read: it lies too deep, or too much was read before it");
    budget->members--;
    budget->bytes -= member->unpacked;
    if (member->packing == IMAGE_PLAIN)
        return node_read(node, member->data, (size_t)member->size, depth, budget);
    void *bytes = NULL;
    KEEL_TRY(image_unpack(member, member->unpacked, &bytes));
    keel_status_t status = node_read(node, bytes, (size_t)member->unpacked, depth, budget);
    mem_free(bytes);
    return status;
}

// Of kinds that are only told apart there is nothing to read.
static bool kind_is_read(keel_image_kind_t kind)
{
    return kind != KEEL_IMAGE_UNKNOWN && kind != KEEL_IMAGE_BITCODE && kind != KEEL_IMAGE_MSL &&
           kind != KEEL_IMAGE_METALLIB;
}

// Its owner may know better what it is for, and what its entry points are.
static void member_describe(keel_image_info_t *node, const image_member_t *member, int depth,
                            budget_t *budget)
{
    *node = nothing;
    if (kind_is_read(member->kind)) node->failure = member_read(node, member, depth, budget);
    if (!node->kind) node->kind = member->kind;
    node->kind_name = image_kind_name(node->kind);
    node->name = member->name;
    node->size = member->unpacked;
    node->stored = member->size;
    node->packing = image_packing_name(member->packing);
    if (member->target[0]) node->target = member->target;
    if (!member->entry_count) return;
    node->entries = member->entries;
    node->entry_count = member->entry_count;
}

static keel_status_t members_read(keel_image_info_t *node, const image_info_t *info, int depth,
                                  budget_t *budget)
{
    if (!info->member_count) return NULL;
    keel_image_info_t *members = mem_zalloc(info->member_count * sizeof *members);
    if (!members) return status_no_memory();
    node->members = members;
    for (uint32_t i = 0; i < info->member_count; i++) {
        member_describe(&members[i], &info->members[i], depth + 1, budget);
        node->member_count++;
        // That says nothing about the member.
        if (keel_status_code(members[i].failure) == KEEL_OUT_OF_MEMORY) return status_no_memory();
    }
    return NULL;
}

// On failure the node is empty.
static keel_status_t node_read(keel_image_info_t *node, const void *data, size_t size, int depth,
                               budget_t *budget)
{
    image_info_t info;
    KEEL_TRY(image_read(data, size, &info));
    keel_status_t status = members_read(node, &info, depth, budget);
    if (status) {
        tree_finish(node);
        image_info_finish(&info);
        return status;
    }
    node->kind = info.kind;
    node->kind_name = image_kind_name(info.kind);
    node->target = info.target;
    node->version = info.version;
    node->producer = info.producer;
    node->size = node->stored = size;
    node->entry_count = info.entry_count;
    node->entries = info.entries;
    node->memory = info.memory;
    return NULL;
}

keel_status_t tree_read(const void *data, size_t size, keel_image_info_t *root)
{
    budget_t budget = {.bytes = BYTES_FREE, .members = MEMBERS_MAX};
    budget.bytes += size < UINT64_MAX / 64 ? (uint64_t)size * BYTES_FACTOR : 0;
    *root = nothing;
    return node_read(root, data, size, 0, &budget);
}

void tree_finish(keel_image_info_t *node)
{
    for (uint32_t i = 0; i < node->member_count; i++)
        tree_finish((keel_image_info_t *)(uintptr_t)&node->members[i]);
    mem_free((void *)(uintptr_t)node->members);
    keel_status_release(node->failure);
    image_info_t info = {.memory = node->memory};
    image_info_finish(&info);
    *node = nothing;
}
