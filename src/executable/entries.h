// SPDX-License-Identifier: Apache-2.0
// What a driver of a GPU keeps of the entry points of an image.
#ifndef KEEL_SRC_EXECUTABLE_ENTRIES_H_
#define KEEL_SRC_EXECUTABLE_ENTRIES_H_

#include <keel/driver/driver.h>

typedef struct entries_t {
    uint32_t count;
    keel_entry_info_t *entries;           // [count]; owned, as the rest
    uint32_t *abis;                       // [count] keel_abi_t: raw, direct or bound
    const keel_binding_info_t **bindings; // [count], in the next
    keel_binding_info_t *infos;
    char *names;
} entries_t;

// Copies what the container says; an image that came alone is read, of a collection the member that
// the device likes best, and its kernels take blocks of their own, but for SPIR-V, which says what
// they bind. `entries` is zero before, and finished by the caller, also when this fails.
keel_status_t entries_read(entries_t *entries, keel_device_t *device, const keel_image_t *image);
// Entry points of which nothing but their names is known: they take blocks of their own.
keel_status_t entries_name(entries_t *entries, const char *const *names, uint32_t count);
void entries_finish(entries_t *entries);

#endif
