// SPDX-License-Identifier: Apache-2.0
// What abi.h compares with the vendor's header, as the driver declares it. ABI_DEF as there.
extern const unsigned long long abi_ours[];
const unsigned long long abi_ours[] = {
#define SIZE(type)          sizeof(type),
#define OFFSET(type, field) offsetof(type, field),
#define VALUE(name)         (unsigned long long)(name),
#include ABI_DEF
};
