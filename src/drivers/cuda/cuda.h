// SPDX-License-Identifier: Apache-2.0
// CUDA on the stream machine: a table of symbols (symbols.def), the adaptor that speaks
// drivers/stream/api.h (adaptor.c for devices, streams and kernels, adaptor_graph.c for graphs,
// adaptor_memory.c), and the driver that finds and opens devices.
#ifndef KEEL_SRC_DRIVERS_CUDA_CUDA_H_
#define KEEL_SRC_DRIVERS_CUDA_CUDA_H_

#include "drivers/cuda/symbols.h"
#include "drivers/stream/api.h"

struct stream_vendor_t {
    const cuda_symbols_t *symbols; // borrowed: they stay
    CUdevice device;
    CUcontext context;      // retained, unless it is the caller's
    bool adopted;           // it is
    bool owned;             // made for this struct alone
    bool implicit;          // the caller's stream belongs to whatever context is current
    int architecture;       // compute capability: 90 is 9.0
    _Atomic(CUcontext) met; // of the last peer; it goes by no other name
};

// The parts of the table: each fills in its functions.
void cuda_fill_device(stream_api_t *api);
void cuda_fill_memory(stream_api_t *api);
void cuda_fill_graph(stream_api_t *api);

// Slots that are functions of the vendor's. A failure to give back is not reported: no caller is
// left.
#define CUDA_PARAMETERS(...) (stream_vendor_t * v, __VA_ARGS__)
#define CUDA_FORWARDS(slot, symbol, parameters, ...)                                               \
    static keel_status_t slot CUDA_PARAMETERS parameters                                           \
    {                                                                                              \
        return CUDA_CALL(v->symbols, symbol, __VA_ARGS__);                                         \
    }
#define CUDA_RELEASES(slot, symbol, handle)                                                        \
    static void slot(stream_vendor_t *v, void *what)                                               \
    {                                                                                              \
        keel_status_release(CUDA_CALL(v->symbols, symbol, handle));                                \
    }

// A launch as the vendor takes it.
typedef struct cuda_extra_t {
    size_t size;
    void *list[5];
} cuda_extra_t;

static inline void cuda_extra_init(cuda_extra_t *extra, const stream_launch_t *launch)
{
    extra->size = launch->size;
    extra->list[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    extra->list[1] = (void *)(uintptr_t)launch->arguments;
    extra->list[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    extra->list[3] = &extra->size;
    extra->list[4] = CU_LAUNCH_PARAM_END;
}

#endif
