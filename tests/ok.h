// SPDX-License-Identifier: Apache-2.0
// OK(call): it succeeds, or the test fails and says why.
#ifndef TESTS_OK_H_
#define TESTS_OK_H_

#include <keel/status.h>
#include <stdio.h>

#include "unit.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        keel_status_t ok_status = (call);                                                          \
        if (ok_status) {                                                                           \
            keel_status_print(ok_status, stderr);                                                  \
            keel_status_release(ok_status);                                                        \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

#endif
