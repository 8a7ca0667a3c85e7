// SPDX-License-Identifier: Apache-2.0
// A fact is one thing about a vendor's library that Keel relies on: a small function that uses that
// library alone, what is expected of it, and where the expectation comes from. The same facts run
// on a card and on the software library of sim/, so that the two cannot drift apart unseen.
//
// Each fact runs in a process of its own, with a time limit. It waits for what it can observe,
// never for time to pass; where a call is said to wait for the device, it must still be in the call
// when another thread lets the device go on.
#ifndef TESTS_HARDWARE_FACTS_FACTS_H_
#define TESTS_HARDWARE_FACTS_FACTS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fact_expect_t {
    HOLDS = 0,
    DIFFERS, // a check of it fails; if none does, the run fails: the mark is out of date
    NOT_RUN, // it would hang, crash or mean nothing there
} fact_expect_t;

typedef struct fact_t {
    const char *name;   // area.what
    const char *what;   // a sentence, which is true
    const char *source; // the document or the run that says so
    void (*run)(void);  // returns if it is true
    fact_expect_t sim, card;
    const char *why; // one of them is not HOLDS
} fact_t;

// A library that has facts: it is known by a symbol that it exports.
typedef struct fact_vendor_t {
    const char *symbol;
    bool (*is_sim)(void);       // after `open`
    void (*open)(void);         // finds the functions in fact_library
    const fact_t *const *areas; // lists, each ends with an empty fact; ends with NULL
} fact_vendor_t;

extern const fact_vendor_t *const fact_vendors[]; // ends with NULL
extern const fact_vendor_t fact_cuda, fact_hsa, fact_hip;

// The library (dlopen) and the folder or file of kernels that the command line names, or NULL.
extern void *fact_library;
extern const char *fact_kernels;

// These end the process: the fact is not true; it could not be tried; it does not apply here.
_Noreturn void fact_untrue(int line, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void fact_broken(int line, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void fact_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
// A figure for the line that is printed.
void fact_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) fact_untrue(__LINE__, "not true: %s", #condition);                       \
    } while (0)
// What must be so for the fact to be tried at all.
#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) fact_broken(__LINE__, "not true: %s", #condition);                       \
    } while (0)

// Polls until a word is at least this; false after 20 s.
bool fact_await(const uint32_t *word, uint32_t value);
void fact_nap(unsigned ms);

// Whether a call waits for what `release` lets go: it is let go when the call has returned, or
// after `patience_ms`, and the call waits if it had not returned by then. Patience is short where a
// call is expected to wait, which then takes as long, and long where it is not.
typedef struct fact_try_t {
    void (*call)(void *user);
    void *user;
    void (*release)(void *what);
    void *what;
} fact_try_t;
enum { FACT_SHORT_MS = 200, FACT_LONG_MS = 10000 };
bool fact_waits(const fact_try_t *attempt, unsigned patience_ms);

#endif
