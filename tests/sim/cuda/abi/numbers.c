// SPDX-License-Identifier: Apache-2.0
// The numbers behind the declarations, as one of two headers has them; compiled once with each.
#include "sim/cuda/api.h"

#include "numbers.h"

#include <stddef.h>

#define SIZE(type)           {"sizeof " #type, (long long)sizeof(type)},
#define OFFSET(type, member) {#type "." #member, (long long)offsetof(type, member)},
#define VALUE(name)          {#name, (long long)(name)},

const abi_number_t ABI_NUMBERS[] = {
#include "numbers.def"
    {NULL, 0},
};
