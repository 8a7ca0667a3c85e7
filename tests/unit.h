// SPDX-License-Identifier: Apache-2.0
// cmocka, after the headers it expects its user to have included.
#ifndef TESTS_UNIT_H_
#define TESTS_UNIT_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
