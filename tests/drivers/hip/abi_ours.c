// SPDX-License-Identifier: Apache-2.0
// What abi_test.c compares with the vendor's header, as our own has it.
#include "drivers/hip/symbols.h"

#define ABI_DEF "drivers/hip/abi.def"
#include "drivers/abi_ours.h"

extern const unsigned long long abi_wall_clock;
const unsigned long long abi_wall_clock = hipDeviceAttributeWallClockRate;
