// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <keel/base.h>

static void *system_resize(void *user, void *old, size_t size)
{
    (void)user;
    return realloc(old, size);
}

static void system_free(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static const keel_allocator_t system_allocator = {system_resize, system_free, NULL};
static keel_allocator_t current = {system_resize, system_free, NULL};

void keel_allocator_set(const keel_allocator_t *allocator)
{
    current = allocator ? *allocator : system_allocator;
}

void *mem_resize(void *old, size_t size)
{
    return current.resize(current.user, old, size ? size : 1);
}

void *mem_reserve(void *items, uint32_t *capacity, uint32_t index, size_t size)
{
    enum { LEAST = 8 };
    if (index < *capacity) return items;
    size_t more = *capacity ? *capacity : LEAST;
    while (more <= index) more *= 2;
    if (more > UINT32_MAX) return NULL;
    void *moved = mem_resize(items, more * size);
    if (moved) *capacity = (uint32_t)more;
    return moved;
}

void *mem_alloc(size_t size)
{
    return mem_resize(NULL, size);
}

void *mem_zalloc(size_t size)
{
    void *memory = mem_alloc(size);
    if (memory) memset(memory, 0, size);
    return memory;
}

void mem_free(void *memory)
{
    if (memory) current.free(current.user, memory);
}

void *mem_zalloc_aligned(size_t size, size_t align)
{
    char *raw = mem_zalloc(size + align + sizeof(void *));
    if (!raw) return NULL;
    uintptr_t start = (uintptr_t)raw + sizeof(void *);
    char *aligned = raw + (((start + align - 1) & ~(uintptr_t)(align - 1)) - (uintptr_t)raw);
    ((void **)aligned)[-1] = raw;
    return aligned;
}

void mem_free_aligned(void *memory)
{
    if (memory) mem_free(((void **)memory)[-1]);
}

char *mem_copy_text(const char *text)
{
    if (!text) return NULL;
    size_t size = strlen(text) + 1;
    char *copy = mem_alloc(size);
    if (copy) memcpy(copy, text, size);
    return copy;
}
