// SPDX-License-Identifier: Apache-2.0
// `keel cc` as a program of its own, for the build: the kernels in `keel` are compiled before it.
#include "tools/commands.h"

int main(int argc, char **argv)
{
    return command_cc(argc, argv);
}
