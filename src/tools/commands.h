// SPDX-License-Identifier: Apache-2.0
// The sub-commands of `keel`. argv[0] is the sub-command's own name; each returns the exit status.
#ifndef TOOLS_COMMANDS_H_
#define TOOLS_COMMANDS_H_

int command_devices(int argc, char **argv);
int command_sim(int argc, char **argv);
int command_version(int argc, char **argv);

#endif
