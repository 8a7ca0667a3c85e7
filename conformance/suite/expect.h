// SPDX-License-Identifier: Apache-2.0
// What a device is known not to do: expect/<driver>.txt, lines `unsupported GLOB NEED reason`. Such
// a line says that the tests called GLOB that need NEED are skipped; one that is not is as wrong as
// a skip that no line speaks of. `with OPTION unsupported ...` says so only of devices whose URI
// has that option, `without OPTION ...` of the others; a capability in place of an option
// (`without EVENTS`) is one that the device has, or has not, natively, and another NEED
// (`without MANAGED`) is met or not, as is known before a test runs. `include FILE` adds the
// lines of another file of the same folder. A # begins a comment.
#ifndef SUITE_EXPECT_H_
#define SUITE_EXPECT_H_

#include "suite/test.h"

typedef struct expectation_t {
    char option[64];     // "": whatever the device is
    uint32_t capability; // KEEL_CAP_: what `option` names; 0: something else
    uint32_t also;       // NEED_: likewise
    bool without;        // of devices that do not have it
    char glob[64];
    char need[32];
    char reason[200];
    char path[256]; // where it stands
    int line;
} expectation_t;

typedef struct expectations_t {
    const char *path; // NULL: none are known, and every skip is as good as another
    const char *uri;
    uint32_t native; // KEEL_CAP_: what the device does by itself; the caller fills it in
    uint32_t others; // NEED_: what is met; likewise
    expectation_t *list;
    size_t count;
} expectations_t;

// Reads a file for this device; says what is wrong with it on stderr and returns false.
bool expect_read(expectations_t *all, const char *path, const char *uri);
void expect_finish(expectations_t *all);

// What says that `test` is skipped, for lack of `need` (NULL: of whatever the test says it needs,
// which kernels are not); NULL: nothing.
const expectation_t *expect_find(const expectations_t *all, const test_t *test, const char *need);

// Whether each line speaks of some test; says which do not.
bool expect_all_used(const expectations_t *all);

#endif
