// SPDX-License-Identifier: Apache-2.0
// The other side of imported semaphores: an API that makes timeline semaphores and exports them.
// For CUDA it is looked for in the library that the device's URI names (lib=), under the names
// below; a software driver has it, a real one does not. Metal's is Metal itself (other_metal.c).
#ifndef SUITE_OTHER_H_
#define SUITE_OTHER_H_

#include <keel/semaphore.h>

// A handle is a descriptor, or a number for an object.
typedef struct other_side_t {
    int (*create)(uint64_t value);                 // simSemaphoreCreate: a new one, or -1
    int (*signal)(int handle, uint64_t value);     // simSemaphoreSignal: 0, or -1 unless larger
    int (*value)(int handle, uint64_t *out_value); // simSemaphoreValue: 0, or -1
    int (*close)(int handle);
    keel_external_semaphore_t (*external)(int handle); // to import it by
} other_side_t;

// All NULL if there is none.
const other_side_t *other_side(const char *uri);

// Fills in Metal's, of the library at `path`, or of the system (NULL), if it is there.
void other_metal(const char *path, other_side_t *side);

#endif
