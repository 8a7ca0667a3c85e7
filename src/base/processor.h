// SPDX-License-Identifier: Apache-2.0
#ifndef KEEL_SRC_BASE_PROCESSOR_H_
#define KEEL_SRC_BASE_PROCESSOR_H_

#include <stdint.h>

// How much of its instruction set the processor has and the system lets programs use. x86-64: the
// level of the psABI, 1 to 4. aarch64: 1, 2 with SVE, 3 with SVE2. Any thread.
uint32_t processor_level(void);

// Who makes it, for people: "Intel", "AMD"; or as the processor spells it. "" if the processor does
// not tell programs. Any thread.
void processor_vendor(char text[16]);

#endif
