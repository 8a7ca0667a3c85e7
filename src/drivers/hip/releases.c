// SPDX-License-Identifier: Apache-2.0
// What differs between the releases of HIP, as data.
#include "drivers/hip/releases.h"
#include "drivers/stream/api.h"

// Found out on the software GPU (docs/stream.md has the table), with HIP 5.2.3, 5.7.1 and 6.4.3. A
// stream is given a quarter of the launches that fit: four or more share a queue of the GPU.
static const hip_release_t releases[] = {
    {.from = 60000000,
     .properties = {"hipGetDevicePropertiesR0600", 1472, 1160},
     .pending = 2048,
     .transfer_room = 6,
     .event_room = 1},
    {.from = 50300000,
     .properties = {"hipGetDeviceProperties", 792, 396},
     .fill_word = 8,
     .pending = 2048,
     .transfer_room = 4,
     .event_room = 1,
     .broken = STREAM_GRAPHS | STREAM_UPLOAD},
    {.from = 50000000,
     .properties = {"hipGetDeviceProperties", 792, 396},
     .fill_word = 8,
     .pending = 1024,
     .transfer_room = 102,
     .event_room = 51},
};

const hip_release_t *hip_release_find(int version)
{
    for (size_t i = 0; i < sizeof releases / sizeof *releases; i++)
        if (version >= releases[i].from) return &releases[i];
    return NULL;
}
