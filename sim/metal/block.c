// SPDX-License-Identifier: Apache-2.0
#include "metal/block.h"

#include <stdlib.h>
#include <string.h>

void *_NSConcreteStackBlock[32];
void *_NSConcreteGlobalBlock[32];

typedef void (*copy_fn)(void *to, const void *from);
typedef void (*dispose_fn)(const void *block);

static const char *signature_of(const block_t *block)
{
    unsigned at = block->flags & BLOCK_HAS_HELPERS ? 4 : 2;
    return (const char *)block->shape[at];
}

static void check(const void *self, sel_t cmd, const block_t *block, const char *signature)
{
    bool global = block->isa == _NSConcreteGlobalBlock;
    if (!global && block->isa != _NSConcreteStackBlock)
        misuse(self, cmd, "the block's isa is neither that of stack nor of global blocks");
    if (global != ((block->flags & BLOCK_IS_GLOBAL) != 0))
        misuse(self, cmd, "the block's isa and its flag 1 << 28 differ");
    if (!(block->flags & BLOCK_HAS_SIGNATURE))
        misuse(self, cmd, "the block has no signature (flag 1 << 30): Metal reads it");
    if (strcmp(signature_of(block), signature) != 0)
        misuse(self, cmd, "the block's signature is %s, not %s", signature_of(block), signature);
    if (block->shape[1] < sizeof *block)
        misuse(self, cmd, "the block says it has %lu bytes", block->shape[1]);
}

block_t *block_copy(const void *self, sel_t cmd, const block_t *given, const char *signature)
{
    check(self, cmd, given, signature);
    block_t *copy = make(given->shape[1]);
    memcpy(copy, given, given->shape[1]);
    if (copy->flags & BLOCK_HAS_HELPERS) ((copy_fn)copy->shape[2])(copy, given);
    return copy;
}

void block_free(block_t *copy)
{
    if (!copy) return;
    if (copy->flags & BLOCK_HAS_HELPERS) ((dispose_fn)copy->shape[3])(copy);
    free(copy);
}
