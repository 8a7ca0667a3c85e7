// SPDX-License-Identifier: Apache-2.0
// A library in front of a vendor's own, which it opens by its usual names, and lets calls fail on
// demand (rules.h). Compiled with what the folder of a library has:
//
//     names.def     NAME(name, flag of call_flags_t): functions without parameters in floating
//                   point. OWN(name, flag): the folder itself has int own_NAME(uint64_t words[8]),
//                   which gets the first eight parameters, and calls forward_enter.
//                   MAKE(name, flag, kind, made): makes something of a kind, "signals" (ledger.h);
//                   `made` says what by its parameters: words[0], word_at(words[3])
//     releases.def  RELEASE(name, kind): functions that give something back, by one word or two.
//                   They do so even where they are to fail: the caller has no second way
//     a source with `forward`
#ifndef SIM_FORWARD_FORWARD_H_
#define SIM_FORWARD_FORWARD_H_

#include <stdbool.h>
#include <stddef.h>
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

// What is particular to a vendor's library.
typedef struct forward_t {
    const char *variable; // of the environment: the rules
    const char *prefix;   // of the names of all functions
    const char *files[4]; // of the library; the first one that is there
    call_site_t *opens;   // with which a program begins: the variable is read again
    int unknown;          // the error of a call, if the rule says none
    bool fatal;           // after that one a device is lost
    int missing;          // the error of a function that the release has not
    void (*lose)(void);   // a device is lost: nothing of its work is to go on; may be NULL
} forward_t;
extern const forward_t forward;

// Where to go on; NULL: nowhere, and the error is returned.
typedef struct next_t {
    void *real;
    long error;
} next_t;

// Counts a call.
next_t forward_enter(call_site_t *site);

// Counts a call and makes it, with up to eight parameters.
int forward_make(call_site_t *site, const uint64_t words[8]);

// A function of the vendor's library; NULL: it has none.
void *forward_find(const char *name);

#endif
