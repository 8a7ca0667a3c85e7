// SPDX-License-Identifier: Apache-2.0
// CUDA on the stream machine: a table of symbols (symbols.def), the adaptor that speaks
// drivers/stream/api.h (adaptor.c for devices, streams and kernels, adaptor_graph.c for graphs,
// adaptor_memory.c), and the driver that finds and opens devices.
#ifndef KEEL_SRC_DRIVERS_CUDA_CUDA_H_
#define KEEL_SRC_DRIVERS_CUDA_CUDA_H_

#include "drivers/cuda/symbols.h"
#include "drivers/stream/adaptor.h"

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

#define CUDA_FORWARDS(...) STREAM_FORWARDS(CUDA_CALL, __VA_ARGS__)
#define CUDA_DISCARDS(...) STREAM_DISCARDS(CUDA_CALL, __VA_ARGS__)
#define CUDA_RELEASES(...) STREAM_RELEASES(CUDA_CALL, __VA_ARGS__)

static const stream_marks_t cuda_marks = {CU_LAUNCH_PARAM_BUFFER_POINTER,
                                          CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END};

#endif
