// SPDX-License-Identifier: Apache-2.0
// keel inspect: a file of kernels taken apart, then printed as text or JSON.
#ifndef TOOLS_INSPECT_INSPECT_H_
#define TOOLS_INSPECT_INSPECT_H_

#include <stdio.h>

#include "executable/image.h"

// An image and the images in it.
typedef struct node_t {
    const image_member_t *member; // what its owner says of it; NULL for the file itself
    uint64_t size;                // bytes of the image, unpacked
    image_info_t info;            // empty if it could not be read
    keel_status_t failure;        // owned: why not, or NULL
    void *unpacked;               // owned: its bytes, if its owner has them packed
    struct node_t *children;      // owned: [info.member_count], or NULL if they were left out
} node_t;

// Takes bytes apart, which must live as long as the tree. Failures are kept where they happened.
void node_read(node_t *node, const void *data, uint64_t size);
void node_finish(node_t *node);

// The kind as its bytes or its owner say.
image_kind_t node_kind(const node_t *node);
// Its target as its owner says, who may know it better, or its bytes; "" if neither does.
const char *node_target(const node_t *node);

// Which devices can load an image, in words; "" where its members say, or it is not known.
void node_devices(const node_t *node, char *text, size_t size);

void text_print(FILE *file, const char *name, const node_t *root);
void json_print(FILE *file, const char *name, const node_t *root);

#endif
