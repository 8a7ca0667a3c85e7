// SPDX-License-Identifier: Apache-2.0
// What abi_test.c compares with the vendor's header, as our own has it.
#include "drivers/cuda/symbols.h"

#define ABI_DEF "drivers/cuda/abi.def"
#include "drivers/abi_ours.h"
