// SPDX-License-Identifier: Apache-2.0
// The system's clock of ROCR, which is CLOCK_BOOTTIME on Linux.
#ifndef KEEL_SRC_CAPTURE_HSA_CLOCK_H_
#define KEEL_SRC_CAPTURE_HSA_CLOCK_H_

#include "capture/hsa/table.h"

// Asks the runtime how fast its clock ticks.
void hsa_clock_read(void);

// Ticks as ns.
hsa_time_t hsa_clock_ns(hsa_time_t ticks);

#endif
