// SPDX-License-Identifier: Apache-2.0
// The GPUs that a vendor's library knows: telling which there are, and finding the one that a URI
// names, by its number, its UUID or its address on PCI.
#ifndef KEEL_SRC_KIT_GPUS_H_
#define KEEL_SRC_KIT_GPUS_H_

#include <keel/driver/driver.h>

enum { GPU_TEXT = 80 };

typedef struct gpu_names_t {
    char uuid[GPU_TEXT];    // without the "GPU-" before it
    char address[GPU_TEXT]; // domain:bus:device.function
} gpu_names_t;

// Of a driver. `library` is its own, whatever it asks.
typedef struct gpus_t {
    const char *scheme; // of its URIs
    keel_status_t (*count)(const void *library, int *count);
    // What people call the model, and its bytes of memory.
    keel_status_t (*describe)(const void *library, int ordinal, char name[GPU_TEXT],
                              uint64_t *memory);
    keel_status_t (*names)(const void *library, int ordinal, gpu_names_t *names);
} gpus_t;

// As keel_driver_t.list. `opened` says how opening the library has ended, and is taken over. If it
// failed, or the library fails to describe its GPUs, the list is empty and the log says why; so
// does opening a device.
keel_status_t gpus_list(const gpus_t *gpus, keel_status_t opened, const void *library,
                        keel_device_listing_t *devices, size_t capacity, size_t *count);

// Finds the one that `which` of a URI names; nothing at all is 0. A UUID has GPU- or MIG- before
// it, an address any number of zeros; capitals and small letters are the same. KEEL_NOT_FOUND tells
// what there is.
keel_status_t gpus_find(const gpus_t *gpus, const void *library, const char *which, int *ordinal);

// Sixteen bytes as people write them: 8-4-4-4-12 digits; or, where all of them are characters of
// digits, as AMD's are, these.
void gpu_uuid_print(const void *bytes, char text[GPU_TEXT]);

#endif
