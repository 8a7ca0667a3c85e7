// SPDX-License-Identifier: Apache-2.0
// All that a test includes.
#ifndef SUITE_SUITE_H_
#define SUITE_SUITE_H_

#include "suite/check.h"
#include "suite/fixture.h"
#include "suite/test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
