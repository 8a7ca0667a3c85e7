// SPDX-License-Identifier: Apache-2.0
// Pools whose buffers have handles, in which the GPU finds and writes where their memory is.
#include <stddef.h>

#include "base/status.h"
#include "drivers/amdgpu/host/scheduler/scheduler.h"
#include "kit/pool.h"

_Static_assert(offsetof(handle_t, block) == offsetof(pool_word_t, block) &&
                   offsetof(handle_t, lent) == offsetof(pool_word_t, lent) &&
                   offsetof(handle_t, bin) == offsetof(pool_word_t, bin),
               "a handle begins with the pool's word");

static keel_status_t word_take(const keel_buffer_t *buffer, pool_word_t **word)
{
    handle_t *handle;
    KEEL_TRY(amdgpu_handle_take(amdgpu_device(buffer->device), &handle));
    handle->user = (uintptr_t)buffer;
    *word = (pool_word_t *)(void *)handle;
    return NULL;
}

static void word_give_back(keel_device_t *device, pool_word_t *word)
{
    amdgpu_handle_give_back(amdgpu_device(device), (handle_t *)(void *)word);
}

keel_status_t amdgpu_pool_create(keel_device_t *base, const keel_pool_options_t *options,
                                 keel_pool_t **pool)
{
    static const pool_words_t words = {word_take, word_give_back};
    amdgpu_device_t *device = amdgpu_device(base);
    KEEL_TRY(pool_create_words(&words, pool));
    pool_follow(*pool, amdgpu_behind_find);
    // With a threshold, slabs that are idle are to go when their last block comes back.
    if (!options->threshold) amdgpu_shelf_make(device, options, *pool);
    return NULL;
}
