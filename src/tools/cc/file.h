// SPDX-License-Identifier: Apache-2.0
// Files as a whole.
#ifndef TOOLS_CC_FILE_H_
#define TOOLS_CC_FILE_H_

#include <stdbool.h>
#include <stddef.h>

// All of a file and a 0 behind it, to be freed; NULL if that cannot be had.
char *file_read(const char *path, size_t *size);

// Writes a file in one step: who looks at it, or interrupts this, finds the old one or all of the
// new one. What is no plain file (a pipe, /dev/null) is written to as it is. Prints what is wrong
// and returns false.
bool file_write(const char *path, const void *bytes, size_t size);

// Removes a folder and the files in it.
void folder_remove(const char *path);

#endif
