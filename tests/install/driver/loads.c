// SPDX-License-Identifier: Apache-2.0
// loads PATH URI: a program that loads a driver, twice, and opens a device of it.
#include "try.h"

static keel_status_t run(char **argv)
{
    KEEL_TRY(keel_driver_load(argv[1]));
    KEEL_TRY(keel_driver_load(argv[1]));
    return try_device(argv[2]);
}

int main(int argc, char **argv)
{
    return argc == 3 ? try_end(run(argv)) : 2;
}
