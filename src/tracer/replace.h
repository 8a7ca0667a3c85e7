// SPDX-License-Identifier: Apache-2.0
// A file that is made beside the one whose place it takes once it is whole.
#ifndef TRACER_REPLACE_H_
#define TRACER_REPLACE_H_

#include <keel/status.h>

enum { REPLACE_NAME = 4096 };

// Gives the name of the file to make for `path`, which is not there. Fails if what is at `path` may
// not be replaced: only a file may, and no device, pipe or folder.
keel_status_t replace_begin(const char *path, char making[REPLACE_NAME]) KEEL_MUST_USE;

// Puts what was made into its place if `status` is success; removes it if not. Returns `status`, or
// why that failed.
keel_status_t replace_end(keel_status_t status, const char *making, const char *path) KEEL_MUST_USE;

#endif
