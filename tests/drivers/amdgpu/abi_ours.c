// SPDX-License-Identifier: Apache-2.0
// What abi_test.c compares with the vendor's headers, as our own has it.
#include "drivers/amdgpu/host/symbols.h"

extern const unsigned long long abi_ours[];
const unsigned long long abi_ours[] = {
#define SIZE(type)          sizeof(type),
#define OFFSET(type, field) offsetof(type, field),
#define VALUE(name)         (unsigned long long)(name),
#include "drivers/amdgpu/abi.def"
};
