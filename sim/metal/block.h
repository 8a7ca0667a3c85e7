// SPDX-License-Identifier: Apache-2.0
// Blocks, by their published layout. Programs in C build them by hand, so their shape is checked.
#ifndef SIM_METAL_BLOCK_H_
#define SIM_METAL_BLOCK_H_

#include "metal/runtime.h"

enum {
    BLOCK_HAS_HELPERS = 1 << 25, // copy and dispose stand before the signature
    BLOCK_IS_GLOBAL = 1 << 28,
    BLOCK_HAS_SIGNATURE = 1 << 30,
};

typedef struct block_t {
    void *isa;
    int flags;
    int reserved;
    void (*invoke)(void);       // takes the block, and then what the signature says
    const unsigned long *shape; // 0, size of the block; helpers; signature
} block_t;

// Signatures as the compiler spells them: the block, then an object; then an object and a number.
#define BLOCK_OBJECT        "v16@?0@8"
#define BLOCK_OBJECT_NUMBER "v24@?0@8Q16"
#define BLOCK_MEMORY        "v24@?0^v8Q16"

// The copy that the receiver of a message keeps. Ends the process if the block is not of this
// signature, or has none: Metal reads it, and would crash. `given` is not NULL.
block_t *block_copy(const void *self, sel_t cmd, const block_t *given, const char *signature);
void block_free(block_t *copy); // NULL is fine

// Their addresses say where a block lies.
EXPORT extern void *_NSConcreteStackBlock[32];
EXPORT extern void *_NSConcreteGlobalBlock[32];

#endif
