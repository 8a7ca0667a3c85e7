// SPDX-License-Identifier: Apache-2.0
// What KEEL_SIM_HIP says, comma-separated:
//     counters=FD              a file that gets the numbers of calls
//     fail=[NAME:]N[+][:CODE]  the Nth call of a function, or of all, fails; with + all later ones
//     lose=[NAME:]N            that call fails, and every later one: the device is lost
//     library=PATH             where to forward to, instead of the machine's libamdhip64
// It is read whenever a program asks for the number of devices, and calls are counted from there
// on.
#ifndef SIM_HIP_RULES_H_
#define SIM_HIP_RULES_H_

#include <stdbool.h>
#include <stdint.h>

// How a function takes part.
typedef enum call_flags_t {
    CALL_WORKS, // on a device
    CALL_PLAIN, // needs none: works after a loss, too
    CALL_POLLS, // as often as the program likes: a rule that names no function does not mean it
    CALL_QUIET, // never fails and is not counted
} call_flags_t;

typedef struct call_site_t {
    const char *name;
    call_flags_t flags;
    uint64_t count;
    struct tally_t *tally; // in the file; NULL: not called before, or no room
    void *real;            // NULL: this release has none
} call_site_t;

// The path that it gives; NULL: none.
const char *rules_library(void);

// Reads the variable again, and forgets what was counted.
void rules_read(call_site_t *const *sites, int count);

// Counts a call. The error that it is to return; 0: none. *loses: the device is lost by it.
int rules_strike(call_site_t *site, bool *loses);

#endif
