// SPDX-License-Identifier: Apache-2.0
// Counts the objects alive, by type, for keel_live_objects.
#ifndef KEEL_SRC_BASE_LIVE_H_
#define KEEL_SRC_BASE_LIVE_H_

typedef enum live_type_t {
    LIVE_DEVICE,
    LIVE_QUEUE,
    LIVE_SEMAPHORE,
    LIVE_BUFFER,
    LIVE_POOL,
    LIVE_EXECUTABLE,
    LIVE_RECORDING,
    LIVE_FILE,
    LIVE_COMPLETION,
    LIVE_SUBMISSION,
    LIVE_STATUS,
    LIVE_TYPES,
} live_type_t;

void live_add(live_type_t type, int change);

#endif
