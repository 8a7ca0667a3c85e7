// SPDX-License-Identifier: Apache-2.0
// With residency=1 the GPU sees a buffer only while work runs that has it bound, or that an encoder
// has been told of (useResource:usage:). A kernel that reaches another one by an address ends the
// process, with the name of the kernel and the place. Without it all of this does nothing.
#ifndef SIM_METAL_RESIDENT_H_
#define SIM_METAL_RESIDENT_H_

#include "metal/buffer.h"

void resident_add(buffer_t *buffer);    // hides its memory from the GPU
void resident_remove(buffer_t *buffer); // before the memory goes
// Shows the buffers among some objects to the GPU, and hides those again that no other work shows.
void resident_open(object_t *const *objects, unsigned count);
void resident_close(object_t *const *objects, unsigned count);
// What runs on this thread, for the message; NULL: nothing.
void resident_name(const char *kernel);

#endif
