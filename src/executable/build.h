// SPDX-License-Identifier: Apache-2.0
// How readers fill in an image_info_t: memory that belongs to it, bounded by the size of the image,
// and arrays that grow. Every failure is KEEL_OUT_OF_MEMORY, or KEEL_CORRUPT where an image asks
// for more memory than one of its size can have use for.
#ifndef KEEL_SRC_EXECUTABLE_BUILD_H_
#define KEEL_SRC_EXECUTABLE_BUILD_H_

#include "executable/image.h"

// An empty description of an image of `size` bytes; first call of every reader.
keel_status_t image_begin(image_info_t *info, keel_image_kind_t kind, size_t size) KEEL_MUST_USE;

// What a reader returns: `status`, having finished `info` if that is a failure.
keel_status_t image_end(image_info_t *info, keel_status_t status) KEEL_MUST_USE;

// A terminated copy of `length` bytes, up to the first that is 0.
keel_status_t image_text(image_info_t *info, const void *bytes, size_t length,
                         const char **text) KEEL_MUST_USE;
keel_status_t image_format(image_info_t *info, const char **text, const char *format, ...)
    KEEL_PRINTF(3, 4) KEEL_MUST_USE;

// Zeroed, aligned for any type.
keel_status_t image_alloc(image_info_t *info, uint64_t size, void **out) KEEL_MUST_USE;

// Makes room for one element more behind `count` of an array that grows by this alone.
keel_status_t image_grow(image_info_t *info, void **array, uint32_t count,
                         size_t element) KEEL_MUST_USE;

// Append a zeroed element; what a count asks for is KEEL_UNSAID in a new entry where it may be.
// The pointer is good until the next one is appended to the same array.
keel_status_t image_add_entry(image_info_t *info, keel_image_entry_info_t **entry) KEEL_MUST_USE;
keel_status_t image_add_member(image_info_t *info, image_member_t **member) KEEL_MUST_USE;
keel_status_t image_add_member_entry(image_info_t *info, image_member_t *member,
                                     keel_image_entry_info_t **entry) KEEL_MUST_USE;
keel_status_t image_add_param(image_info_t *info, keel_image_entry_info_t *entry,
                              keel_image_param_t **param) KEEL_MUST_USE;
keel_status_t image_add_binding(image_info_t *info, keel_image_entry_info_t *entry,
                                keel_image_binding_t **binding) KEEL_MUST_USE;

// Sorts the parameters of an entry by offset; KEEL_CORRUPT if two overlap or one goes beyond
// param_size.
keel_status_t image_check_params(keel_image_entry_info_t *entry) KEEL_MUST_USE;

#endif
