// SPDX-License-Identifier: Apache-2.0
#include "tools/commands.h"

#include <keel/base.h>
#include <stdio.h>

int command_version(int argc, char **argv)
{
    if (argc > 1) {
        fprintf(stderr, "usage: keel version\n");
        return 2;
    }
    printf("keel %s\n", keel_version());
    return 0;
}
