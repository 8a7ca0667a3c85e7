// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_SIM_CUDA_ABI_H_
#define TESTS_SIM_CUDA_ABI_H_

typedef struct abi_number_t {
    const char *name;
    long long value;
} abi_number_t;

extern const abi_number_t abi_ours[], abi_vendors[]; // each ends with a name of NULL

#endif
