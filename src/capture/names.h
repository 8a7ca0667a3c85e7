// SPDX-License-Identifier: Apache-2.0
// Names of kernels by the address that a launch or a packet has: of a function of the host, of a
// runtime's object, or of the kernel on the device.
#ifndef KEEL_SRC_CAPTURE_NAMES_H_
#define KEEL_SRC_CAPTURE_NAMES_H_

#include <stdatomic.h>
#include <stdint.h>

// Zeroed, it is empty.
typedef struct names_t {
    _Atomic(struct names_table_t *) table; // NULL: empty; owned, and kept when a larger one is made
} names_t;

// Names an address, also anew. The text is borrowed for ever and becomes a name of the trace with
// its first use; or it is NULL and `number` is that of the name. Without memory there is no name
// then. Any thread.
void names_put(names_t *names, const void *address, const char *text, uint32_t number);

// The number of an address's name in the trace; 0: none. Takes no lock. Any thread.
uint32_t names_get(names_t *names, const void *address);

#endif
