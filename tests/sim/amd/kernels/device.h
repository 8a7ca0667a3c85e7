// SPDX-License-Identifier: Apache-2.0
// What a kernel in freestanding C needs, and what lets the host compile the same code.
#ifndef TESTS_SIM_AMD_KERNELS_DEVICE_H_
#define TESTS_SIM_AMD_KERNELS_DEVICE_H_

#include <stdint.h>

#ifdef __AMDGCN__
#define KERNEL     __attribute__((amdgpu_kernel, visibility("protected")))
#define GROUP_SIZE 64
#define LOCAL      __attribute__((address_space(3), loader_uninitialized))
#define LOCAL_AT   __attribute__((address_space(3)))
#define GLOBAL_AT  __attribute__((address_space(1)))

static inline uint32_t lane_in_group(void)
{
    return __builtin_amdgcn_workitem_id_x();
}
static inline uint32_t group_id(void)
{
    return __builtin_amdgcn_workgroup_id_x();
}
static inline void group_barrier(void)
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#endif

#endif
