// SPDX-License-Identifier: Apache-2.0
#include <keel/base.h>

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const char *keel_version(void)
{
    return TEXT(KEEL_VERSION_MAJOR) "." TEXT(KEEL_VERSION_MINOR) "." TEXT(KEEL_VERSION_PATCH);
}
