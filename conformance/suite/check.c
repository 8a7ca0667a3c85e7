// SPDX-License-Identifier: Apache-2.0
#include "suite/check.h"

#include "suite/run.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char row_text[200];

void row(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(row_text, sizeof row_text, format, arguments);
    va_end(arguments);
}

// Paths begin where this tree does, wherever it was built.
static const char *place(const char *file)
{
    const char *here = strstr(__FILE__, "conformance/suite/check.c");
    size_t prefix = here ? (size_t)(here - __FILE__) : 0;
    return strncmp(file, __FILE__, prefix) == 0 ? file + prefix : file;
}

static void note(const char *file, int line, const char *text)
{
    file = place(file);
    fprintf(stderr, "%s:%d: %s%s%s%s\n", file, line, text, row_text[0] ? " [" : "", row_text,
            row_text[0] ? "]" : "");
    run_outcome(OUTCOME_FAILED, "%s:%d: %s", file, line, text);
}

void check_made(const char *file)
{
    bool *checked = &run_result()->checked;
    if (__atomic_load_n(checked, __ATOMIC_RELAXED)) return;
    if (strncmp(place(file), "conformance/suite/", 18) == 0) return;
    __atomic_store_n(checked, true, __ATOMIC_RELAXED);
}

void check_note(const char *file, int line, const char *format, ...)
{
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    note(file, line, text);
}

// After one thread of a test has run out of memory, what the others miss follows from that.
void check_failed(const char *file, int line, const char *format, ...)
{
    if (run_outcome_now() != OUTCOME_STARVED) {
        char text[600];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        note(file, line, text);
    }
    run_leave();
}

void skip(const char *need, const char *why)
{
    snprintf(run_result()->need, sizeof run_result()->need, "%s", need);
    run_outcome(OUTCOME_SKIPPED, "%s", why);
    run_leave();
}

void check_number(const char *file, int line, const char *what, uint64_t actual, char relation,
                  uint64_t other)
{
    check_made(file);
    bool good = relation == '='   ? actual == other
                : relation == '!' ? actual != other
                : relation == '<' ? actual <= other
                                  : actual >= other;
    if (good) return;
    check_failed(file, line, "%s does not hold: %llu (0x%llx) against %llu (0x%llx)", what,
                 (unsigned long long)actual, (unsigned long long)actual, (unsigned long long)other,
                 (unsigned long long)other);
}

static bool contains(const char *text, const char *part)
{
    size_t length = strlen(part);
    for (; *text; text++) {
        size_t i = 0;
        while (i < length && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (i == length) return true;
    }
    return length == 0;
}

void check_text(const char *file, int line, const char *what, const char *actual,
                const char *expected, bool whole)
{
    check_made(file);
    if (!actual) check_failed(file, line, "%s is NULL", what);
    if (whole ? strcmp(actual, expected) == 0 : contains(actual, expected)) return;
    check_failed(file, line, "%s is \"%s\", which %s \"%s\"", what, actual,
                 whole ? "is not" : "does not contain", expected);
}

void check_memory(const char *file, int line, const char *what, const void *actual,
                  const void *expected, size_t size)
{
    const unsigned char *a = actual, *e = expected;
    check_made(file);
    for (size_t i = 0; i < size; i++) {
        if (a[i] == e[i]) continue;
        check_failed(file, line, "%s differs at byte %zu of %zu: 0x%02x, expected 0x%02x", what, i,
                     size, a[i], e[i]);
    }
}

// An allocation that was made to fail may end the test, and so may a call of the vendor's, which
// shows as whatever it was for; but not as a point that neither comes nor fails.
static void leave_if_starved(const char *call, keel_status_t status)
{
    keel_code_t code = keel_status_code(status);
    bool starving = starve_hit() && code == KEEL_OUT_OF_MEMORY;
    bool faulting = fault_hit() && code != KEEL_DEADLINE_EXCEEDED;
    if (!starving && !faulting) return;
    run_outcome(OUTCOME_STARVED, "%s", call);
    keel_status_release(status);
    run_leave();
}

void check_ok(const char *file, int line, const char *call, keel_status_t status)
{
    check_made(file);
    if (!status) return;
    leave_if_starved(call, status);
    char text[400];
    keel_status_format(status, text, sizeof text);
    keel_status_release(status);
    check_failed(file, line, "%s failed: %s", call, text);
}

void check_error(const char *file, int line, const char *call, keel_status_t status,
                 keel_code_t code, const char *part)
{
    check_made(file);
    if (!status) check_failed(file, line, "%s succeeded, expected %s", call, keel_code_name(code));
    keel_code_t actual = keel_status_code(status);
    if (actual != code) leave_if_starved(call, status);
    char text[4096];
    keel_status_format(status, text, sizeof text);
    keel_status_release(status);
    if (actual != code) {
        check_failed(file, line, "%s failed, not with %s: %.400s", call, keel_code_name(code),
                     text);
    }
    // A status made without memory has its code and nothing more.
    if (!part || starved() || contains(text, part)) return;
    check_failed(file, line, "%s failed, as it should, but does not say '%s': %.400s", call, part,
                 text);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SLOW 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOW 1
#endif
#ifndef SLOW
#define SLOW 0
#endif

bool careful(void)
{
    return SLOW || run_settings()->under_tool || run_settings()->mode == MODE_TORTURE;
}

size_t few(size_t count)
{
    if (!careful()) return count;
    return count / 16 ? count / 16 : 1;
}

// splitmix64: any seed will do, and threads may share it.
uint64_t random_next(void)
{
    static atomic_uint_fast64_t steps;
    uint64_t x = run_settings()->seed + 0x9e3779b97f4a7c15u * (1 + atomic_fetch_add(&steps, 1));
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t random_below(uint64_t bound)
{
    return random_next() % bound;
}
