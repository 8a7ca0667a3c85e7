// SPDX-License-Identifier: Apache-2.0
#ifndef KEEL_SRC_BASE_EXTENT_H_
#define KEEL_SRC_BASE_EXTENT_H_

#include <stdint.h>

// How many bytes an open regular file or block device holds. Returns 0 or an errno: ENOTSUP for
// other kinds, and for block devices where the system has no common way to ask.
int extent_of_file(int fd, uint64_t *size);

#endif
