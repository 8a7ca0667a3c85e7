// SPDX-License-Identifier: Apache-2.0
#include "facts.h"

const fact_vendor_t *const fact_vendors[] = {&fact_cuda, NULL};
