// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "executable/unpack.h"
#include "tools/inspect/inspect.h"

enum {
    DEPTH_MAX = 4,      // an object in a bundle in a compressed bundle in a container
    MEMBERS_MAX = 4096, // of one image that are looked into
};

static const uint64_t UNPACKED_MAX = UINT64_C(256) << 20;

static void tree_read(node_t *node, const void *data, uint64_t size, int depth);

static void member_read(node_t *node, const image_member_t *member, int depth)
{
    node->member = member;
    node->size = member->unpacked;
    node->info = (image_info_t){.target = "", .version = "", .producer = ""};
    if (member->kind == IMAGE_UNKNOWN || member->kind == IMAGE_BITCODE ||
        member->kind == IMAGE_MSL || member->kind == IMAGE_METALLIB)
        return;
    if (member->packing == IMAGE_PLAIN) {
        tree_read(node, member->data, member->size, depth);
        return;
    }
    node->failure = image_unpack(member, UNPACKED_MAX, &node->unpacked);
    if (!node->failure) tree_read(node, node->unpacked, member->unpacked, depth);
}

static void tree_read(node_t *node, const void *data, uint64_t size, int depth)
{
    node->size = size;
    node->failure = image_read(data, (size_t)size, &node->info);
    uint32_t count = node->info.member_count;
    if (!count || depth == DEPTH_MAX || count > MEMBERS_MAX) return;
    node->children = mem_zalloc(count * sizeof *node->children);
    for (uint32_t i = 0; node->children && i < count; i++)
        member_read(&node->children[i], &node->info.members[i], depth + 1);
}

void node_read(node_t *node, const void *data, uint64_t size)
{
    *node = (node_t){0};
    tree_read(node, data, size, 0);
}

void node_finish(node_t *node)
{
    for (uint32_t i = 0; node->children && i < node->info.member_count; i++)
        node_finish(&node->children[i]);
    mem_free(node->children);
    mem_free(node->unpacked);
    keel_status_release(node->failure);
    image_info_finish(&node->info);
}

image_kind_t node_kind(const node_t *node)
{
    return node->info.kind || !node->member ? node->info.kind : node->member->kind;
}

const char *node_target(const node_t *node)
{
    return node->member && node->member->target[0] ? node->member->target : node->info.target;
}

// The number in "nvptx:sm_90a"; 0 if there is none.
static unsigned compute_of(const char *target)
{
    return strncmp(target, "nvptx:sm_", 9) ? 0 : (unsigned)strtoul(target + 9, NULL, 10);
}

// Compute capabilities: translated code runs on that GPU and later ones, machine code on that one
// and later ones of its generation; "a" binds either to that very one, "f" to its family.
static void cuda_devices(const char *target, bool translated, char *text, size_t size)
{
    unsigned number = compute_of(target), major = number / 10, minor = number % 10;
    char letter = target[0] ? target[strlen(target) - 1] : 0;
    if (!number)
        snprintf(text, size, "CUDA in software");
    else if (letter == 'a')
        snprintf(text, size, "NVIDIA %u.%u only", major, minor);
    else if (translated && letter != 'f')
        snprintf(text, size, "NVIDIA %u.%u and later", major, minor);
    else
        snprintf(text, size, "NVIDIA %u.%u to %u.x", major, minor, major);
}

// Of "aarch64-linux:sve".
static void host_devices(const char *target, char *text, size_t size)
{
    const char *level = strchr(target, ':');
    snprintf(text, size, "%.*s processors%s%s", (int)strcspn(target, "-"), target,
             level ? " with " : "", level ? level + 1 : "");
}

void node_devices(const node_t *node, char *text, size_t size)
{
    const char *target = node_target(node);
    text[0] = 0;
    switch (node_kind(node)) {
    case IMAGE_HOST:
        if (!strncmp(target, "nvptx:", 6))
            cuda_devices(target, true, text, size);
        else
            host_devices(target, text, size);
        break;
    case IMAGE_PTX: cuda_devices(target, true, text, size); break;
    case IMAGE_CUBIN: cuda_devices(target, false, text, size); break;
    case IMAGE_HSACO: snprintf(text, size, "AMD %s", target); break;
    case IMAGE_SPIRV: // kernels of OpenCL take parameters, and no device of Keel's takes those
        if (!node->info.entry_count || !node->info.entries[0].param_count)
            snprintf(text, size, "Vulkan devices");
        break;
    case IMAGE_MSL:
    case IMAGE_METALLIB: snprintf(text, size, "Metal devices"); break;
    default: break;
    }
}
