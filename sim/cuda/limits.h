// SPDX-License-Identifier: Apache-2.0
// What the software GPU says that it can do.
#ifndef SIM_CUDA_LIMITS_H_
#define SIM_CUDA_LIMITS_H_

enum {
    SIM_VERSION = 13000,  // of CUDA
    LIMIT_THREADS = 1024, // per block
    LIMIT_BLOCK_X = 1024,
    LIMIT_BLOCK_Y = 1024,
    LIMIT_BLOCK_Z = 64,
    LIMIT_GRID_X = 0x7fffffff,
    LIMIT_GRID_Y = 65535,
    LIMIT_GRID_Z = 65535,
    LIMIT_SHARED = 48 * 1024,        // bytes per block
    LIMIT_SHARED_OPTIN = 227 * 1024, // for functions that ask for it
    LIMIT_PARAMS = 32764,            // bytes of parameters
    LIMIT_PROCESSORS = 4,
};

#endif
