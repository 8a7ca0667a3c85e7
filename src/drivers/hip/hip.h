// SPDX-License-Identifier: Apache-2.0
// HIP on the stream machine: a table of symbols (symbols.def), what differs between its releases
// (releases.c), the adaptor that speaks drivers/stream/api.h (adaptor.c for devices, streams and
// kernels, adaptor_graph.c for graphs, adaptor_memory.c), and the driver that finds and opens
// devices.
#ifndef KEEL_SRC_DRIVERS_HIP_HIP_H_
#define KEEL_SRC_DRIVERS_HIP_HIP_H_

#include "drivers/hip/symbols.h"
#include "drivers/stream/adaptor.h"

enum { HIP_PEERS = 64 }; // no device from that number on is a peer

struct stream_vendor_t {
    const hip_symbols_t *symbols; // borrowed: they stay
    int device, devices;          // of so many
    uint64_t peers;               // bit n: this one and device n reach each other's memory
    char target[64];              // "gfx90a:sramecc+:xnack-"
};

// The parts of the table: each fills in its functions.
void hip_fill_device(stream_api_t *api);
void hip_fill_memory(stream_api_t *api);
void hip_fill_graph(stream_api_t *api);

// Around calls that bring arguments of kernels, where those of threads get mixed up
// (hip_release_t.launches_alone); else nothing.
void hip_alone_enter(const stream_vendor_t *v);
void hip_alone_leave(const stream_vendor_t *v);

#define HIP_FORWARDS(...) STREAM_FORWARDS(HIP_CALL, __VA_ARGS__)
#define HIP_DISCARDS(...) STREAM_DISCARDS(HIP_CALL_ANYWHERE, __VA_ARGS__)
#define HIP_RELEASES(...) STREAM_RELEASES(HIP_CALL_ANYWHERE, __VA_ARGS__)

static const stream_marks_t hip_marks = {HIP_LAUNCH_PARAM_BUFFER_POINTER,
                                         HIP_LAUNCH_PARAM_BUFFER_SIZE, HIP_LAUNCH_PARAM_END};

// An address as the vendor takes it.
static inline void *hip_pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

#endif
