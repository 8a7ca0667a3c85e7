// SPDX-License-Identifier: Apache-2.0
// The library's own host memory. All of it goes through here, so that an application can replace
// the allocator and tests can make any allocation fail. Every function that allocates returns NULL
// on failure. Any thread.
#ifndef KEEL_SRC_BASE_MEMORY_H_
#define KEEL_SRC_BASE_MEMORY_H_

#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t size);
void *mem_zalloc(size_t size);
void *mem_resize(void *old, size_t size); // on failure `old` is untouched
void mem_free(void *memory);              // NULL is fine

// Makes room in an array, which may be NULL, for an item at `index`, of `size` bytes. Returns where
// the array is then; on failure nothing has changed.
void *mem_reserve(void *items, uint32_t *capacity, uint32_t index, size_t size);

// Zeroed, at an address that is a multiple of `align`, a power of two; freed by mem_free_aligned
// only.
void *mem_zalloc_aligned(size_t size, size_t align);
void mem_free_aligned(void *memory);

// A copy of `text`; NULL gives NULL, so test the result only if `text` was not.
char *mem_copy_text(const char *text);

#endif
