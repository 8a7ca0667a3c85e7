// SPDX-License-Identifier: Apache-2.0
// The image that is loaded, of those that a file or a piece of memory holds.
#ifndef KEEL_SRC_CORE_CHOICE_H_
#define KEEL_SRC_CORE_CHOICE_H_

#include <keel/driver/driver.h>

#include "executable/container.h"

typedef struct choice_t {
    keel_image_t image; // borrows from the rest, and from the options
    source_t source;
    container_t container; // zero if the image came alone
    void *bytes;           // owned: the image; NULL: it lies in the options' data
} choice_t;

// Whatever it returns, finish it.
keel_status_t choice_init(choice_t *choice, keel_device_t *device,
                          const keel_executable_options_t *options) KEEL_MUST_USE;
void choice_finish(choice_t *choice);

#endif
