// SPDX-License-Identifier: Apache-2.0
#include <keel/image.h>

#include "base/memory.h"
#include "core/check.h"
#include "executable/tree.h"

keel_status_t keel_image_info(const void *data, size_t size, keel_image_info_t **image)
{
    CHECK_NOT_NULL(image);
    *image = NULL;
    CHECK_NOT_NULL(data);
    keel_image_info_t *root = mem_alloc(sizeof *root);
    if (!root) return status_no_memory();
    keel_status_t status = tree_read(data, size, root);
    if (status) {
        mem_free(root);
        return status;
    }
    *image = root;
    return NULL;
}

void keel_image_info_release(keel_image_info_t *image)
{
    if (!image) return;
    tree_finish(image);
    mem_free(image);
}
