// SPDX-License-Identifier: Apache-2.0
// HIP on the stream machine: a table of symbols (symbols.def), what differs between its releases
// (releases.c), the adaptor that speaks drivers/stream/api.h (adaptor.c for devices, streams and
// kernels, adaptor_graph.c for graphs, adaptor_memory.c), and the driver that finds and opens
// devices.
#ifndef KEEL_SRC_DRIVERS_HIP_HIP_H_
#define KEEL_SRC_DRIVERS_HIP_HIP_H_

#include "drivers/hip/symbols.h"
#include "drivers/stream/api.h"

struct stream_vendor_t {
    const hip_symbols_t *symbols; // borrowed: they stay
    int device;
    char target[64]; // "gfx90a:sramecc+:xnack-"
};

// The parts of the table: each fills in its functions.
void hip_fill_device(stream_api_t *api);
void hip_fill_memory(stream_api_t *api);
void hip_fill_graph(stream_api_t *api);

// Slots that are functions of the vendor's. A failure to give back is not reported: no caller is
// left.
#define HIP_PARAMETERS(...) (stream_vendor_t * v, __VA_ARGS__)
#define HIP_FORWARDS(slot, symbol, parameters, ...)                                                \
    static keel_status_t slot HIP_PARAMETERS parameters                                            \
    {                                                                                              \
        return HIP_CALL(v->symbols, symbol, __VA_ARGS__);                                          \
    }
#define HIP_RELEASES(slot, symbol)                                                                 \
    static void slot(stream_vendor_t *v, void *what)                                               \
    {                                                                                              \
        keel_status_release(HIP_CALL(v->symbols, symbol, what));                                   \
    }

// The arguments of a launch as the vendor takes them.
typedef struct hip_extra_t {
    size_t size;
    void *list[5];
} hip_extra_t;

static inline void hip_extra_init(hip_extra_t *extra, const stream_launch_t *l)
{
    void *list[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)l->arguments,
                    HIP_LAUNCH_PARAM_BUFFER_SIZE, &extra->size, HIP_LAUNCH_PARAM_END};
    extra->size = l->size;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) extra->list[i] = list[i];
}

// An address as the vendor takes it.
static inline void *hip_pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

#endif
