// SPDX-License-Identifier: Apache-2.0
// Checks. One that does not hold says what was expected and what came, then leaves the test:
// control goes back to the runner, which releases what the test owns (fixture.h). So a test needs
// no clean-up of its own, and an unexpected error anywhere ends it in order.
//
// A test in which none was made has not passed: it fails, unless it said why it leaves (skip).
//
// May be used on the test's thread and on threads made by thread_start. On a thread of the library,
// in a host call, there is nowhere to leave to: use EXPECT there, or return an error.
#ifndef SUITE_CHECK_H_
#define SUITE_CHECK_H_

#include "suite/test.h"

#define HERE __FILE__, __LINE__

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        check_made(__FILE__);                                                                      \
        if (!(condition)) check_failed(HERE, #condition " does not hold");                         \
    } while (0)

// As CHECK, but carries on, wherever it is; the test fails in the end.
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        check_made(__FILE__);                                                                      \
        if (!(condition)) check_note(HERE, #condition " does not hold");                           \
    } while (0)

#define CHECK_EQ(actual, expected)                                                                 \
    check_number(HERE, #actual " == " #expected, (uint64_t)(actual), '=', (uint64_t)(expected))
#define CHECK_NE(actual, other)                                                                    \
    check_number(HERE, #actual " != " #other, (uint64_t)(actual), '!', (uint64_t)(other))
#define CHECK_LE(actual, bound)                                                                    \
    check_number(HERE, #actual " <= " #bound, (uint64_t)(actual), '<', (uint64_t)(bound))
#define CHECK_GE(actual, bound)                                                                    \
    check_number(HERE, #actual " >= " #bound, (uint64_t)(actual), '>', (uint64_t)(bound))
#define CHECK_STR(actual, expected)       check_text(HERE, #actual, (actual), (expected), true)
#define CHECK_HAS(actual, part)           check_text(HERE, #actual, (actual), (part), false)
#define CHECK_MEM(actual, expected, size) check_memory(HERE, #actual, (actual), (expected), (size))

// The call must succeed.
#define TRY(call) check_ok(HERE, #call, (call))

// The call must fail with this code; with FAILS_SAYING the text of the error, its path and its
// causes included, must also contain `part`.
#define FAILS(code, call)              check_error(HERE, #call, (call), (code), NULL)
#define FAILS_SAYING(code, part, call) check_error(HERE, #call, (call), (code), (part))

// Leaves the test as not applicable: the device lacks `need` (a name of test.h).
_Noreturn void skip(const char *need, const char *why);

// What the test is about to try, for tests that are tables: printed when a check fails, until the
// next call. Of the calling thread.
void row(const char *format, ...) KEEL_PRINTF(1, 2);

// True if an allocation, or a call of the vendor's, was made to fail by now: then messages may be
// missing.
bool starved(void);

// True if it was a call of the vendor's: then the device may be lost, and all may end at any time.
bool faulted(void);

// How often the library has asked for memory so far.
uint64_t allocations(void);

// True where allocations are made to fail or a sanitizer slows everything down: do less.
bool careful(void);
// `count`, or a sixteenth of it (at least 1) where one has to be careful.
size_t few(size_t count);

// A random number of the run's seed.
uint64_t random_next(void);
uint64_t random_below(uint64_t bound);

// Notes that the test checks something. Those of the suite itself, in what it makes for a test,
// are not the test's.
void check_made(const char *file);
_Noreturn void check_failed(const char *file, int line, const char *format, ...) KEEL_PRINTF(3, 4);
void check_note(const char *file, int line, const char *format, ...) KEEL_PRINTF(3, 4);
void check_number(const char *file, int line, const char *what, uint64_t actual, char relation,
                  uint64_t other);
void check_text(const char *file, int line, const char *what, const char *actual,
                const char *expected, bool whole);
void check_memory(const char *file, int line, const char *what, const void *actual,
                  const void *expected, size_t size);
void check_ok(const char *file, int line, const char *call, keel_status_t status);
void check_error(const char *file, int line, const char *call, keel_status_t status,
                 keel_code_t code, const char *part);

#endif
