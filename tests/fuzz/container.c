// SPDX-License-Identifier: Apache-2.0
#include "executable/container.h"

#include <stdlib.h>
#include <string.h>

#include "executable/format.h"
#include "fuzz/fuzz.h"

enum { IMAGE_MOST = 1 << 20 };

// The hash of the table of contents is made right, or little would come past it.
static uint8_t *hash_mend(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    FUZZ_CHECK(copy);
    if (size) memcpy(copy, data, size);
    prefix_t prefix;
    if (size < sizeof prefix) return copy;
    memcpy(&prefix, copy, sizeof prefix);
    if (prefix.contents <= size - sizeof prefix)
        prefix.hash = hash_of(copy + sizeof prefix, prefix.contents);
    memcpy(copy, &prefix, sizeof prefix);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = hash_mend(data, size);
    source_t source = source_of_memory(copy, size);
    container_t container = {0};
    fuzz_begin((1 << 17) + size * 65);
    keel_status_t status = container_read(&source, &container);
    for (uint32_t i = 0; !status && i < container.image_count; i++) {
        const container_image_t *image = &container.images[i];
        FUZZ_CHECK(image->target);
        for (uint32_t e = 0; e < image->entry_count; e++) FUZZ_CHECK(image->entries[e].info.name);
        if (image->size > IMAGE_MOST) continue;
        void *bytes = malloc((size_t)image->size);
        FUZZ_CHECK(bytes);
        keel_status_release(container_image_read(&container, &source, i, bytes));
        free(bytes);
    }
    keel_status_release(status);
    container_finish(&container);
    fuzz_end();
    free(copy);
    return 0;
}
