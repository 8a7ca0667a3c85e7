// SPDX-License-Identifier: Apache-2.0
// MTLBuffer. What the GPU sees and what the host sees lie at different addresses, so a program that
// mixes them up is noticed. Of managed storage there are two copies.
#ifndef SIM_METAL_BUFFER_H_
#define SIM_METAL_BUFFER_H_

#include "metal/block.h"
#include "metal/classes.h"

// MTLStorageMode, as it stands in MTLResourceOptions from bit 4.
typedef enum storage_t { STORAGE_SHARED, STORAGE_MANAGED, STORAGE_PRIVATE } storage_t;

typedef struct range_t {
    unsigned long location, length;
} range_t;

typedef struct buffer_t {
    object_t object;
    const void *device; // which made it; devices stay
    unsigned long length;
    storage_t storage;
    char *host; // NULL if private
    char *gpu;  // what kernels and blits touch
    char *told; // with discrete=1, of managed storage: what the host had when both were made equal
    size_t mapped;                  // bytes of each mapping; 0: the memory is the program's
    block_t *free_host;             // owned; called when memory of the program's is used no more
    struct buffer_t *next_resident; // of resident.c, as the next
    unsigned shown;                 // how many works need it now
} buffer_t;

// Zeroed; NULL if there is no memory. `options` are checked, in the name of the message.
buffer_t *buffer_new(const void *self, sel_t cmd, unsigned long length, unsigned long options);
// The program's own memory; NULL unless it is whole pages.
buffer_t *buffer_wrap(const void *self, sel_t cmd, range_t memory, unsigned long options);
// Of all buffers, in bytes.
unsigned long buffers_size(void);
// Both copies of managed storage are equal there now.
void buffer_settled(buffer_t *buffer, range_t range);
// The first byte of the range that the host has written and not told of (didModifyRange:), with
// discrete=1; -1: there is none. What is the same on both sides needs no telling.
long buffer_unflushed(const buffer_t *buffer, range_t range);
// Ends the process unless the bytes lie in the buffer.
void buffer_check(const void *self, sel_t cmd, const buffer_t *buffer, range_t range);

#endif
