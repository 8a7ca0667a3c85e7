// SPDX-License-Identifier: Apache-2.0
// The driver's files: which paths are its own, and what their descriptors are. A descriptor is
// known by the file behind it, so copies of it are known too.
#ifndef SIM_AMD_KFD_FILE_H_
#define SIM_AMD_KFD_FILE_H_

#include <stdbool.h>
#include <stdint.h>

// Opens one of the driver's files. A descriptor; -1 with errno; or FILE_FOREIGN when the path is
// none of the driver's.
enum { FILE_FOREIGN = -2 };
int file_open(const char *path, int flags);

typedef enum { FILE_OTHER, FILE_KFD, FILE_INHERITED } file_kind_t;

// Whether a descriptor is /dev/kfd, of this process or, FILE_INHERITED, of the one that it was
// forked off.
file_kind_t file_kind(int descriptor);

// The node of a descriptor of a render node; 0 when it is none.
unsigned file_render_node(int descriptor);

// Moves in one of the driver's files, whose positions say what they are, and so stay. As the kernel
// has it, a buffer that was exported tells its size as its end, and its begin is 0; a render node
// is at 0 always. The place, or -1 with errno; or FILE_FOREIGN when the file is none of these.
int64_t file_seek(int descriptor, int64_t offset, int whence);

#endif
