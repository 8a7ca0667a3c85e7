// SPDX-License-Identifier: Apache-2.0
// What differs between the releases of HIP, as data.
#include <string.h>

#include "drivers/hip/releases.h"

// What all releases share: streams share a few queues of the GPU, a graph is launched node by node,
// hipFree and hipHostFree wait for all streams, and copies and fills of the host's memory for their
// own.
#define QUIRKS                                                                                     \
    .full_shared = true, .waits_shared = true, .graph_unrolls = true, .free_waits = true,          \
    .host_copies_wait = true, .host_fills_wait = true

// Found out on the software GPU (docs/stream.md has the table), with HIP 5.2.3, 5.7.1 and 6.4.3. A
// stream is given a quarter of the launches that fit: four or more share a queue of the GPU. HIP
// 7.2.4 has run, and its graphs have not passed; how much fits there is taken to be as in HIP 6.
static const hip_release_t releases[] = {
    {.from = 70100000,
     .properties = {"hipGetDevicePropertiesR0600", 1472, 1160},
     .quirks = {QUIRKS, .pending = 2048, .transfer_room = 6, .event_room = 1},
     .broken = STREAM_GRAPHS | STREAM_UPLOAD,
     .descriptors_by_value = true},
    {.from = 70000000,
     .properties = {"hipGetDevicePropertiesR0600", 1472, 1160},
     .quirks = {QUIRKS, .pending = 2048, .transfer_room = 6, .event_room = 1},
     .broken = STREAM_GRAPHS | STREAM_UPLOAD},
    {.from = 60000000,
     .properties = {"hipGetDevicePropertiesR0600", 1472, 1160},
     .quirks = {QUIRKS, .pending = 2048, .transfer_room = 6, .event_room = 1,
                .graph_kernels = true},
     .refused_stays = true},
    {.from = 50300000,
     .properties = {"hipGetDeviceProperties", 792, 396},
     .quirks = {QUIRKS, .fill_word = 8, .pending = 2048, .transfer_room = 4, .event_room = 1,
                .host_stays = true},
     .broken = STREAM_GRAPHS | STREAM_UPLOAD | STREAM_SHARED}, // it refuses to export by descriptor
    {.from = 50200000,
     .properties = {"hipGetDeviceProperties", 792, 396},
     .quirks = {QUIRKS, .fill_word = 8, .pending = 1024, .transfer_room = 102, .event_room = 51,
                .graph_branches = 64, .graph_kernels = true, .host_stays = true},
     .broken = STREAM_SHARED, // its properties of memory are laid out otherwise
     .launches_alone = true},
};

// A HIP that forwards to another vendor's library behaves as that one. NVIDIA's values are those of
// the CUDA driver.
static const struct {
    const char *target; // how it begins
    stream_quirks_t quirks;
} others[] = {
    {"nvptx:",
     {.pending = 896,
      .launch_graphs = 32,
      .graph_room = 32,
      .small_transfer = 1 << 16,
      .graph_waits = true,
      .locks_pages = true,
      .free_waits = true,
      .host_copies_wait = true}},
};

const hip_release_t *hip_release_find(int version)
{
    for (size_t i = 0; i < sizeof releases / sizeof *releases; i++)
        if (version >= releases[i].from) return &releases[i];
    return NULL;
}

const stream_quirks_t *hip_quirks_find(const hip_release_t *release, const char *target)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strncmp(target, others[i].target, strlen(others[i].target))) return &others[i].quirks;
    return &release->quirks;
}
