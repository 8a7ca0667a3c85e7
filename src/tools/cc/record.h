// SPDX-License-Identifier: Apache-2.0
// What an image says of its kernels: the records that <keel/kernel.h> puts into it.
#ifndef TOOLS_CC_RECORD_H_
#define TOOLS_CC_RECORD_H_

#include <keel/driver/image.h>

// An image read from a file of the compiler, and its entry points, in the order of the source.
typedef struct made_t {
    char *bytes; // owned, as all is
    size_t size;
    keel_image_entry_t *entries;
    uint32_t entry_count;
} made_t;

// Reads records from section keel_kernels of an ELF image, or, for KEEL_IMAGE_PTX, from the
// initialisers of keel_record_NAME. These are taken out of PTX, and the sizes of groups are put in.
// Fails if there are none.
keel_status_t made_describe(made_t *made, keel_image_kind_t kind) KEEL_MUST_USE;
// Adds the entry point that a record describes, as images have it.
keel_status_t made_record(made_t *made, const void *bytes, size_t size) KEEL_MUST_USE;
keel_status_t made_has_kernels(const made_t *made) KEEL_MUST_USE;
void made_finish(made_t *made);

#endif
