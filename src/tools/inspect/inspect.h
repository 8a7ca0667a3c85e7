// SPDX-License-Identifier: Apache-2.0
// keel inspect: a file of kernels taken apart, then printed as text or JSON.
#ifndef TOOLS_INSPECT_INSPECT_H_
#define TOOLS_INSPECT_INSPECT_H_

#include <keel/keel.h>

// Which devices can load an image, in words; "" where its members say, or it is not known.
void image_devices(const keel_image_info_t *image, char *text, size_t size);

// "pointer"; "" if the image does not say.
const char *param_kind_word(keel_param_kind_t kind);

void text_print(FILE *file, const char *name, const keel_image_info_t *root);
void json_print(FILE *file, const char *name, const keel_image_info_t *root);
// Of a file that cannot be read: the same keys, and the error.
void json_print_failure(FILE *file, const char *name, uint64_t size, keel_status_t failure);

#endif
