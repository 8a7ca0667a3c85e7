// SPDX-License-Identifier: Apache-2.0
// What abi_test.c compares with the vendor's header, as our own has it.
#include "drivers/hip/symbols.h"

#define ABI_DEF "drivers/hip/abi.def"
#include "drivers/abi_ours.h"

// What older releases do not have, or lay out otherwise.
extern const unsigned long long abi_later[6];
const unsigned long long abi_later[] = {
    hipDeviceAttributeWallClockRate,
    hipDeviceAttributeVirtualMemoryManagementSupported,
    sizeof(hipMemAllocationProp),
    offsetof(hipMemAllocationProp, type),
    offsetof(hipMemAllocationProp, requestedHandleType),
    offsetof(hipMemAllocationProp, location),
};

// Of HSA.
extern const unsigned long long abi_hsa[6];
const unsigned long long abi_hsa[] = {
    sizeof(hsa_amd_pointer_info_t),
    offsetof(hsa_amd_pointer_info_t, type),
    offsetof(hsa_amd_pointer_info_t, agentOwner),
    offsetof(hsa_amd_pointer_info_t, global_flags),
    HSA_EXT_POINTER_TYPE_UNKNOWN,
    HSA_EXT_POINTER_TYPE_LOCKED,
};
