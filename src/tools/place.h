// SPDX-License-Identifier: Apache-2.0
// Where this program is, and what of Keel lies beside it.
#ifndef TOOLS_PLACE_H_
#define TOOLS_PLACE_H_

#include <stdbool.h>
#include <stddef.h>

// The folder of this program.
bool place_own(char *folder, size_t size);

// The folder of a file: `built`, as seen from this program in its build, or `installed`, as seen
// from where it is installed. False: it is in neither.
bool place_find(char *folder, size_t size, const char *file, const char *built,
                const char *installed);

// Puts the path FOLDER + REST before those that a variable of the environment has. False: memory is
// short.
bool place_prepend(const char *name, const char *separator, const char *folder, const char *rest);

#endif
