// SPDX-License-Identifier: Apache-2.0
// What memory of the application is, as the system has it.
#ifndef KEEL_SRC_KIT_MAPPING_H_
#define KEEL_SRC_KIT_MAPPING_H_

#include <keel/status.h>
#include <stdbool.h>

typedef enum mapping_t {
    MAPPING_NONE,         // some of it is not mapped, or may not be read
    MAPPING_PRIVATE_FILE, // some of it is of a file, a memfd's too, and changes to it are not
    MAPPING_PLAIN,        // neither: it is anonymous, or shared
} mapping_t;

// The first of these, from `data` on, that is not plain decides. Reads what the system says of all
// memory of the process up to there, so it is nothing for hot paths. KEEL_IO where that cannot be
// read, as on systems that have no /proc.
keel_status_t mapping_of(const void *data, uint64_t size, mapping_t *mapping);

// Whether the process has memory there that it may write all of. True where that cannot be read.
bool mapping_is_writable(const void *data, uint64_t size);

#endif
