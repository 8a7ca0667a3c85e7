// SPDX-License-Identifier: Apache-2.0
// What differs between the releases of HIP.
#ifndef KEEL_SRC_DRIVERS_HIP_RELEASES_H_
#define KEEL_SRC_DRIVERS_HIP_RELEASES_H_

#include "drivers/stream/api.h"

// The function that describes a device, and what of its struct is read: the name of the target,
// with the features of which code depends ("gfx90a:sramecc+:xnack-").
typedef struct hip_properties_t {
    const char *function;
    size_t size;   // of the struct
    size_t target; // offset of a text of 256 bytes
} hip_properties_t;

typedef struct hip_release_t {
    int from; // the first release, as hip_symbols_t.version
    hip_properties_t properties;
    stream_quirks_t quirks;    // on AMD's GPUs
    uint32_t broken;           // features that it has, and that do not work: STREAM_*
    bool descriptors_by_value; // imports take a file descriptor, else a pointer to it
    bool refused_stays;        // what more was mapped of memory than there is cannot be unmapped
    bool launches_alone;       // graphs and what other threads launch mix up their arguments
} hip_release_t;

// The row of a release; NULL if it is too old.
const hip_release_t *hip_release_find(int version);

// The quirks of a release on a device with that target.
const stream_quirks_t *hip_quirks_find(const hip_release_t *release, const char *target);

#endif
