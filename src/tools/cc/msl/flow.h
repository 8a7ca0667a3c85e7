// SPDX-License-Identifier: Apache-2.0
// How the blocks of a function hang together, so that they can be written as loops and conditions:
// MSL has no goto, and barriers want all threads of a group to come together again.
//
// Each block is written inside another one: inside of that which dominates it, or, if that is in a
// loop which the block is not in, behind that loop.
#ifndef TOOLS_CC_MSL_FLOW_H_
#define TOOLS_CC_MSL_FLOW_H_

#include "tools/cc/msl/ir.h"

// Fills what ir_block_t has for it. Fails for loops with two entries, which C without goto does not
// make.
keel_status_t flow_find(ir_module_t *module, ir_function_t *function) KEEL_MUST_USE;

// Whether an edge closes a loop.
bool flow_is_back(const ir_block_t *from, const ir_block_t *to);

#endif
