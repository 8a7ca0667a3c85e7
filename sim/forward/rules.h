// SPDX-License-Identifier: Apache-2.0
// What the variable says, comma-separated:
//     counters=FD              a file that gets the numbers of calls
//     fail=[NAME:]N[+][:CODE]  the Nth call of a function, or of all, fails; with + all later ones
//     lose=[NAME:]N            that call fails, and every later one: the device is lost
//     library=PATH             where to forward to, instead of the machine's
// It is read whenever a program begins (forward_t.opens), and calls are counted from there on.
#ifndef SIM_FORWARD_RULES_H_
#define SIM_FORWARD_RULES_H_

#include "forward/forward.h"

// The path that it gives; NULL: none.
const char *rules_library(void);

// Reads the variable again, and forgets what was counted.
void rules_read(call_site_t *const *sites, int count);

// Counts a call. The error that it is to return; 0: none. *loses: the device is lost by it.
int rules_strike(call_site_t *site, bool *loses);

#endif
