// SPDX-License-Identifier: Apache-2.0
// What a driver has loaded of images, by their contents: an image without variables (variables.h)
// is loaded once for a device, however many executables are made of it, and unloaded with the last
// of them. One with variables is loaded each time, since no two executables share these, unless the
// driver keeps variables apart from what it loads. One cache per device; any thread.
#ifndef KEEL_SRC_EXECUTABLE_CACHE_H_
#define KEEL_SRC_EXECUTABLE_CACHE_H_

#include <keel/driver/image.h>

#include "base/lock.h"
#include "executable/hash.h"

typedef struct cache_t cache_t;

// What was loaded: the beginning of a driver's own struct.
typedef struct cache_item_t {
    cache_t *cache;            // borrowed
    struct cache_item_t *next; // in the cache, while others may find it
    hash_t hash;               // of the image
    uint32_t generation;       // of fork
    _Atomic uint32_t users;    // grows under the lock; who waits for it counts
    _Atomic uint32_t state;    // written under the lock, slept on outside
} cache_item_t;

// How a driver loads. Both are called without locks and may take their time.
typedef struct cache_class_t {
    size_t size; // of the driver's struct, which is zero before `load`
    keel_status_t (*load)(cache_item_t *item, const keel_image_t *image);
    void (*unload)(cache_item_t *item); // also what `load` left half done
    bool apart;                         // variables lie elsewhere: every image is shared
} cache_class_t;

// Nothing to finish: an item goes with its last user.
struct cache_t {
    const cache_class_t *class;
    void *owner; // the driver's: its device
    lock_t lock;
    cache_item_t *first;
};

// Of several calls with one image at the same time, one loads it and the others wait. When that
// fails, each of them tries for itself and returns what it met.
keel_status_t cache_load(cache_t *cache, const keel_image_t *image,
                         cache_item_t **item) KEEL_MUST_USE;
void cache_unload(cache_item_t *item); // NULL is fine

#endif
