// SPDX-License-Identifier: Apache-2.0
// The sub-commands of `keel`. argv[0] are the words that repeat it, such as `keel inspect`; each
// returns the exit status.
// They stay visible where the rest of the library and of the tool becomes local.
#ifndef TOOLS_COMMANDS_H_
#define TOOLS_COMMANDS_H_

#include <keel/base.h>

KEEL_API int command_cc(int argc, char **argv);
KEEL_API int command_devices(int argc, char **argv);
KEEL_API int command_inspect(int argc, char **argv);
KEEL_API int command_sim(int argc, char **argv);
KEEL_API int command_sim_bench(int argc, char **argv);
KEEL_API int command_trace(int argc, char **argv);
KEEL_API int command_version(int argc, char **argv);

#endif
