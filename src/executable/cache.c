// SPDX-License-Identifier: Apache-2.0
#include "executable/cache.h"

#include <string.h>

#include "base/fork.h"
#include "base/memory.h"
#include "base/status.h"
#include "executable/variables.h"

enum { LOADING, LOADED, FAILED };

static void item_remove(cache_t *cache, const cache_item_t *item)
{
    cache_item_t **link = &cache->first;
    while (*link && *link != item) link = &(*link)->next;
    if (*link) *link = item->next;
}

void cache_unload(cache_item_t *item)
{
    if (!item) return;
    cache_t *cache = item->cache;
    // In the child of a fork no thread loads any more, and the lock may be held for ever.
    bool ours = fork_is_ours(item->generation);
    if (ours) lock_enter(&cache->lock);
    bool last = atomic_fetch_sub(&item->users, 1) == 1;
    if (last && ours) item_remove(cache, item);
    if (ours) lock_leave(&cache->lock);
    if (!last) return;
    cache->class->unload(item);
    mem_free(item);
}

// Finds the item of this image, loaded or being loaded, and counts the
// caller among its users. If there is none, adds `item` for others to find.
static cache_item_t *item_join(cache_t *cache, cache_item_t *item)
{
    lock_enter(&cache->lock);
    cache_item_t *found = cache->first;
    while (found && memcmp(&found->hash, &item->hash, sizeof item->hash) != 0) found = found->next;
    if (!found) {
        item->next = cache->first;
        cache->first = found = item;
    }
    found->users++;
    lock_leave(&cache->lock);
    return found;
}

static keel_status_t item_load(cache_item_t *item, const keel_image_t *image)
{
    cache_t *cache = item->cache;
    keel_status_t status = cache->class->load(item, image);
    lock_enter(&cache->lock);
    if (status) item_remove(cache, item); // no thread finds it any more
    // release: who sees it loaded sees all of it.
    atomic_store_explicit(&item->state, status ? FAILED : LOADED, memory_order_release);
    lock_leave(&cache->lock);
    futex_wake(&item->state, INT32_MAX);
    return status;
}

static bool item_wait(cache_item_t *item)
{
    uint32_t state;
    // acquire: pairs with the release in item_load.
    while ((state = atomic_load_explicit(&item->state, memory_order_acquire)) == LOADING)
        futex_wait(&item->state, LOADING, KEEL_FOREVER);
    return state == LOADED;
}

static keel_status_t item_share(cache_t *cache, const keel_image_t *image, cache_item_t *item,
                                cache_item_t **shared)
{
    item->hash = image->hash ? *(const hash_t *)image->hash : hash_of(image->data, image->size);
    for (;;) {
        cache_item_t *found = item_join(cache, item);
        *shared = found;
        if (found == item) return item_load(item, image);
        if (item_wait(found)) break;
        cache_unload(found);
    }
    mem_free(item);
    return NULL;
}

keel_status_t cache_load(cache_t *cache, const keel_image_t *image, cache_item_t **item)
{
    *item = NULL;
    cache_item_t *i = mem_zalloc(cache->class->size);
    if (!i) return status_no_memory();
    i->cache = cache;
    i->generation = fork_generation();
    keel_status_t status;
    if (!cache->class->apart && image_has_variables(image->data, image->size)) {
        i->users = 1;
        status = item_load(i, image);
    } else {
        status = item_share(cache, image, i, &i);
    }
    if (status)
        cache_unload(i);
    else
        *item = i;
    return status;
}
