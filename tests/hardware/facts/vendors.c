// SPDX-License-Identifier: Apache-2.0
#include "facts.h"

// HIP stands before HSA, which it loads and which would be found in it.
const fact_vendor_t *const fact_vendors[] = {&fact_cuda, &fact_hip, &fact_hsa, NULL};
