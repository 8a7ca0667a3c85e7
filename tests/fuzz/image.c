// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "executable/tree.h"
#include "executable/unpack.h"
#include "executable/variables.h"
#include "fuzz/fuzz.h"

enum { UNPACKED_MOST = 1 << 20, DEPTH_MOST = 3 };

// Whatever it is, and whatever is in it, unpacked where it is packed.
static void image_look(const void *data, size_t size, int depth)
{
    image_info_t info;
    keel_status_t status = image_read(data, size, &info);
    keel_status_release(status);
    if (!status) fuzz_look(&info);
    image_has_variables(data, size);
    for (uint32_t i = 0; !status && i < info.member_count && i < 16 && depth < DEPTH_MOST; i++) {
        const image_member_t *member = &info.members[i];
        const uint8_t *first = member->data, *start = data;
        FUZZ_CHECK(first >= start && member->size <= size - (size_t)(first - start));
        void *bytes = NULL;
        keel_status_t failure = image_unpack(member, UNPACKED_MOST, &bytes);
        FUZZ_CHECK(!failure == (bytes != NULL));
        if (bytes) image_look(bytes, (size_t)member->unpacked, depth + 1);
        mem_free(bytes);
        keel_status_release(failure);
    }
    image_info_finish(&info);
}

// What the public call says of it all.
static void info_look(const keel_image_info_t *image, int depth)
{
    FUZZ_CHECK(depth <= 5 && image->kind < KEEL_IMAGE_KINDS);
    FUZZ_CHECK(image->kind_name && image->target && image->version && image->producer);
    FUZZ_CHECK(image->name && image->packing);
    for (uint32_t i = 0; i < image->entry_count; i++) fuzz_look_entry(&image->entries[i]);
    for (uint32_t i = 0; i < image->member_count; i++) info_look(&image->members[i], depth + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_begin((size_t)1 << 29);
    image_look(data, size, 0);
    fuzz_end();

    keel_image_info_t image;
    fuzz_begin((size_t)1 << 29);
    keel_status_release(tree_read(data, size, &image));
    info_look(&image, 0);
    tree_finish(&image);
    fuzz_end();
    return 0;
}
