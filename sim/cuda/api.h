// SPDX-License-Identifier: Apache-2.0
// The functions this library exports, under the vendor's names; symbols.def has the list.
#ifndef SIM_CUDA_API_H_
#define SIM_CUDA_API_H_

#ifdef SIM_CUDA_VENDOR_HEADER
// A test compiles the library against the real header, which then judges every declaration. The
// older of two functions that share a name have no declaration there.
#include <cuda.h>
#undef cuGetProcAddress
#undef cuMemPrefetchAsync
#undef cuMemAdvise
#undef cuEventElapsedTime
#undef cuGraphGetEdges
#undef cuGraphNodeGetDependencies
#undef cuGraphNodeGetDependentNodes
#undef cuGraphAddDependencies
#undef cuGraphRemoveDependencies
#undef cuGraphAddNode
#else
#include "cuda/types.h"
#endif

#define SYMBOL(name, function, version, parameters)                                                \
    __attribute__((visibility("default"))) CUresult function parameters;
#include "cuda/symbols.def"
#undef SYMBOL

#endif
