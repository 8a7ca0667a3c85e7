// SPDX-License-Identifier: Apache-2.0
// What abi_test.c compares with the vendor's header, as our own has it.
#include "drivers/amdgpu/host/base/symbols.h"

#define ABI_DEF "drivers/amdgpu/abi.def"
#include "drivers/abi_ours.h"
