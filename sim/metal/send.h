// SPDX-License-Identifier: Apache-2.0
// Behind objc_msgSend, which is written for each architecture: it keeps all registers that may hold
// arguments, asks for the method, and jumps to it.
#ifndef SIM_METAL_SEND_H_
#define SIM_METAL_SEND_H_

#include "metal/runtime.h"

// The function for a message. Ends the process if there is none, or if the receiver is dead.
imp_t runtime_find(object_t *self, sel_t selector, bool by_struct);

// What a message to nil calls: all registers of results are zero.
void send_nil(void);

#endif
