// SPDX-License-Identifier: Apache-2.0
// Copies by the GPU's engines.
#ifndef KEEL_SRC_CAPTURE_HSA_COPIES_H_
#define KEEL_SRC_CAPTURE_HSA_COPIES_H_

#include "capture/hsa/table.h"

// Has the runtime time copies, and puts what replaces its functions into `ours`.
void copies_replace(hsa_functions_t *ours);

#endif
