// SPDX-License-Identifier: Apache-2.0
// Part of <keel/kernel.h>: regions as the work-items of a GPU.
#ifndef KEEL_KERNEL_GPU_H_
#define KEEL_KERNEL_GPU_H_

#define KEEL_AT_LOCAL_  __attribute__((address_space(3)))
#define KEEL_AT_MEMORY_ __attribute__((address_space(1)))

#if KEEL_NVPTX

#define KEEL_ITEM_0_          __nvvm_read_ptx_sreg_tid_x()
#define KEEL_ITEM_1_          __nvvm_read_ptx_sreg_tid_y()
#define KEEL_ITEM_2_          __nvvm_read_ptx_sreg_tid_z()
#define KEEL_BLOCK_0_         __nvvm_read_ptx_sreg_ctaid_x()
#define KEEL_BLOCK_1_         __nvvm_read_ptx_sreg_ctaid_y()
#define KEEL_BLOCK_2_         __nvvm_read_ptx_sreg_ctaid_z()
#define KEEL_BLOCKS_LAUNCHED_ __nvvm_read_ptx_sreg_nctaid_x()
#define KEEL_ENTRY_           [[clang::nvptx_kernel]]

KEEL_INLINE_ void keel_barrier_here(void)
{
    __syncthreads();
}

#elif KEEL_MSL

// What keel cc writes as MSL.
__attribute__((const)) uint32_t keel_msl_item(uint32_t axis);
__attribute__((const)) uint32_t keel_msl_group(uint32_t axis);
__attribute__((const)) uint32_t keel_msl_groups(uint32_t axis);
__attribute__((convergent)) void keel_msl_barrier(void);

#define KEEL_ITEM_0_  keel_msl_item(0)
#define KEEL_ITEM_1_  keel_msl_item(1)
#define KEEL_ITEM_2_  keel_msl_item(2)
#define KEEL_BLOCK_0_ keel_msl_group(0)
#define KEEL_BLOCK_1_ keel_msl_group(1)
#define KEEL_BLOCK_2_ keel_msl_group(2)
#define KEEL_ENTRY_   __attribute__((visibility("default")))

KEEL_INLINE_ void keel_barrier_here(void)
{
    keel_msl_barrier();
}

#else

// From the packet of the dispatch: its grid and its groups, in items.
KEEL_INLINE_ uint32_t keel_blocks_launched(void)
{
    const __attribute__((address_space(4))) char *packet = __builtin_amdgcn_dispatch_ptr();
    return *(const __attribute__((address_space(4))) uint32_t *)(packet + 12) /
           *(const __attribute__((address_space(4))) uint16_t *)(packet + 4);
}

#define KEEL_ITEM_0_          __builtin_amdgcn_workitem_id_x()
#define KEEL_ITEM_1_          __builtin_amdgcn_workitem_id_y()
#define KEEL_ITEM_2_          __builtin_amdgcn_workitem_id_z()
#define KEEL_BLOCK_0_         __builtin_amdgcn_workgroup_id_x()
#define KEEL_BLOCK_1_         __builtin_amdgcn_workgroup_id_y()
#define KEEL_BLOCK_2_         __builtin_amdgcn_workgroup_id_z()
#define KEEL_BLOCKS_LAUNCHED_ keel_blocks_launched()
#define KEEL_ENTRY_           __attribute__((amdgpu_kernel, visibility("protected")))

KEEL_INLINE_ void keel_barrier_here(void)
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

#endif

// Inside a region keel_barrier_here is no function, so that a barrier there does not compile.
#define KEEL_ITEMS_ KEEL_UNLESS_(0)
#define KEEL_ITEMS_BELOW_(limit)                                                                   \
    KEEL_UNLESS_((uint64_t)keel_group_id(0) * keel_group_size(0) + KEEL_ITEM_0_ >=                 \
                 (uint64_t)(limit))
#define KEEL_UNLESS_(condition)                                                                    \
    for (uint32_t keel_local_0 __attribute__((unused)) = KEEL_ITEM_0_,                             \
                               keel_local_1 __attribute__((unused)) = KEEL_ITEM_1_,                \
                               keel_local_2 __attribute__((unused)) = KEEL_ITEM_2_,                \
                               keel_barrier_here = (condition);                                    \
         !keel_barrier_here; keel_barrier_here = 1)
#define KEEL_ONCE_                                                                                 \
    for (uint32_t keel_local_0 __attribute__((unused)) = 0,                                        \
                               keel_local_1 __attribute__((unused)) = 0,                           \
                               keel_local_2 __attribute__((unused)) = 0,                           \
                               keel_barrier_here = KEEL_ITEM_0_ | KEEL_ITEM_1_ | KEEL_ITEM_2_;     \
         !keel_barrier_here; keel_barrier_here = 1)

#define KEEL_PRIVATE_(type, name) type name[1]
#define KEEL_MINE_(name)          ((name)[0])

#define KEEL_GLOBAL_(type, name, n) __attribute__((visibility("default"))) type name[n]
// No const: the compiler would take the value for granted.
#define KEEL_EXECUTABLE_CONSTANT_(type, name)                                                      \
    __attribute__((address_space(4), visibility("default"))) type name

#endif
