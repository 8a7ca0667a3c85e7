// SPDX-License-Identifier: Apache-2.0
// Keel's container: images of the same kernels for different targets in one file, with a table of
// contents in front. docs/container.md describes the format, container.fbs is its schema.
//
// Nothing in a container is believed. Reading one takes the table of contents alone; an image is
// read when it is asked for. Memory is bounded by the size of the container and the limits below,
// time by its size.
#ifndef KEEL_SRC_EXECUTABLE_CONTAINER_H_
#define KEEL_SRC_EXECUTABLE_CONTAINER_H_

#include <keel/driver/image.h>

#include "executable/hash.h"
#include "executable/source.h"

enum {
    CONTAINER_VERSION = 1,
    CONTAINER_PREFIX = 64,             // bytes before the table of contents
    CONTAINER_MAX_CONTENTS = 16 << 20, // bytes of a table of contents
    CONTAINER_MAX_IMAGE = 1 << 30,     // bytes of an image
    CONTAINER_MAX_RATIO = 1024,        // of an image's size to its compressed size
    CONTAINER_ALIGNMENT = 64,          // of every image
    CONTAINER_PAGE = 4096,             // of an image that is not compressed
};

// The numbers are those in containers and do not change.
typedef enum container_compression_t {
    CONTAINER_PLAIN = 0,
    CONTAINER_ZSTD = 1,
} container_compression_t;

typedef struct container_image_t {
    const char *target;
    uint32_t kind;        // keel_image_kind_t; a later one may be unknown to this library
    uint32_t compression; // container_compression_t; the same
    uint64_t offset;      // of its bytes in the container
    uint64_t stored;      // bytes there
    uint64_t size;        // bytes of the image itself
    hash_t hash;          // of the image itself
    uint32_t entry_count;
    const keel_image_entry_t *entries;
} container_image_t;

typedef struct container_t {
    uint32_t version;
    const char *producer; // what wrote it
    uint32_t image_count;
    const container_image_t *images;
    void *contents; // owned: the table of contents, which all texts lie in
    void *memory;   // owned: the arrays
} container_t;

// Whether bytes that begin like this claim to be a container.
bool container_is(const void *start, size_t size);

// Reads and checks the table of contents, and nothing behind it. KEEL_CORRUPT says what is wrong
// with it; KEEL_UNSUPPORTED for a later version of the format.
keel_status_t container_read(const source_t *source, container_t *container) KEEL_MUST_USE;
void container_finish(container_t *container); // one that is zero, or was not read, is fine

// Reads image `index` into `bytes`, which has room for images[index].size, and checks it against
// its hash. KEEL_UNSUPPORTED if it is compressed in a way that this library was built without.
keel_status_t container_image_read(const container_t *container, const source_t *source,
                                   uint32_t index, void *bytes) KEEL_MUST_USE;

// Where an image lies that is not compressed, in a source in memory, checked against its hash.
// NULL in *bytes: it cannot be used in place.
keel_status_t container_image_view(const container_t *container, const source_t *source,
                                   uint32_t index, const void **bytes) KEEL_MUST_USE;

// An image to be packed. Everything is borrowed.
typedef struct container_input_t {
    keel_image_kind_t kind;
    const char *target;
    const void *data;
    size_t size;
    const keel_image_entry_t *entries;
    uint32_t entry_count;
} container_input_t;

typedef struct container_options_t {
    const char *producer; // NULL: "keel" and the library's version
    bool compress;        // each image that gets smaller by it
} container_options_t;

// Packs images, in this order. The same input gives the same bytes, to be freed by mem_free.
// KEEL_INVALID_ARGUMENT names what no container can hold: empty images, texts that are long
// (FLAT_MAX_TEXT) or not printable UTF-8.
keel_status_t container_write(const container_options_t *options, const container_input_t *images,
                              uint32_t count, void **bytes, size_t *size) KEEL_MUST_USE;

#endif
