// SPDX-License-Identifier: Apache-2.0
// The other side of imported semaphores: an API that makes timeline semaphores and exports them. It
// is looked for in the library that the device's URI names (lib=), under the names below; a
// software driver has it, a real one does not.
#ifndef SUITE_OTHER_H_
#define SUITE_OTHER_H_

#include <stdint.h>

typedef struct other_side_t {
    int (*create)(uint64_t value);             // simSemaphoreCreate: a new descriptor, or -1
    int (*signal)(int fd, uint64_t value);     // simSemaphoreSignal: 0, or -1 unless it is larger
    int (*value)(int fd, uint64_t *out_value); // simSemaphoreValue: 0, or -1
} other_side_t;

// All NULL if there is none.
const other_side_t *other_side(const char *uri);

#endif
