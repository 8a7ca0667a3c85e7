// SPDX-License-Identifier: Apache-2.0
// The folder of a Debian suite's ROCm, which the script sim/rocm fetches: its usr, and beside it
// `versions` (it is whole), `loader` and `libraries` (links to those of its C library).
#ifndef TOOLS_ROOT_H_
#define TOOLS_ROOT_H_

#include <stdbool.h>
#include <stddef.h>

// Where root_enter puts the software GPU.
#define ROOT_SIM "/usr/lib/keel-sim"

// Finds the folder: `name` itself if it has a slash, else rocm/NAME in `build`. False after a
// message.
bool root_find(char *root, size_t size, const char *name, const char *build);

// Replaces /usr, for this process, by the folder's, with the folder `sim` at ROOT_SIM; all else
// stays the machine's. It needs user namespaces, or the rights of root. False after a message: /usr
// is the machine's still.
bool root_enter(const char *root, const char *sim);

// Runs a program of the machine or of the folder by the folder's C library and libraries, for
// machines where root_enter fails. Processes that the program starts are the machine's again.
// Returns only after a message.
void root_run(const char *root, char **argv);

#endif
