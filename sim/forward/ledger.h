// SPDX-License-Identifier: Apache-2.0
// What the program has made by calls of the library, and not given back. When the process ends, and
// something is left, a line on standard error says what, and the process ends with status 1. A
// child of fork answers for nothing that its parent has made.
#ifndef SIM_FORWARD_LEDGER_H_
#define SIM_FORWARD_LEDGER_H_

#include "forward/forward.h"

// A call has made `what`, of a kind: "signals". It may be made several times.
void ledger_add(const call_site_t *site, const char *kind, uint64_t what);

// It was given back, once. Nothing is done if `kind` is NULL, or nothing is known of it.
void ledger_remove(const char *kind, uint64_t what);

// What a parameter points to, for MAKE.
static inline uint64_t word_at(uint64_t address)
{
    return *(const uint64_t *)(uintptr_t)address;
}

// Exported, for a test that looks before the process ends: writes "signals 2 (since
// hsa_signal_create:7), ...", which is the first call of which something is left, as a rule names
// it. Returns how many things are left.
size_t keel_sim_left(char *text, size_t size);

#endif
