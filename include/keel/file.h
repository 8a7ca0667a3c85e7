// SPDX-License-Identifier: Apache-2.0
// Files that queues read into buffers and write from them (keel_op_read, keel_op_write), without
// holding up a thread of the application. A device that can has KEEL_CAP_FILES.
//
// A file here is a regular file or a block device: what can be read and written at any offset.
// Opening anything else fails, and never waits (for the other end of a pipe, say). Writing beyond
// the end makes the file longer. All functions may be called from any thread.
#ifndef KEEL_FILE_H_
#define KEEL_FILE_H_

#include <keel/device.h>

typedef struct keel_file_t keel_file_t;

typedef enum keel_file_flag_t {
    KEEL_FILE_READ = 1 << 0,
    KEEL_FILE_WRITE = 1 << 1,  // what is in there stays until it is written over
    KEEL_FILE_CREATE = 1 << 2, // with KEEL_FILE_WRITE: make it (mode 0600) if it is not there;
                               // does not follow a symbolic link
} keel_file_flag_t;

KEEL_EXTERN_C_BEGIN

// An error names the path and the system's reason: KEEL_NOT_FOUND, KEEL_PERMISSION_DENIED ...
KEEL_API keel_status_t keel_file_open(keel_device_t *device, const char *path, uint32_t flags,
                                      keel_file_t **file) KEEL_MUST_USE;
// Over an open descriptor, which is duplicated: the caller's stays the caller's, and its position
// is neither used nor moved. It can be read and written as the descriptor can. A descriptor for
// appending is refused, since its writes go to the end whatever their offset.
KEEL_API keel_status_t keel_file_import(keel_device_t *device, int fd,
                                        keel_file_t **file) KEEL_MUST_USE;
KEEL_API keel_file_t *keel_file_retain(keel_file_t *file);
KEEL_API void keel_file_release(keel_file_t *file);

// The size at this moment, in bytes.
KEEL_API keel_status_t keel_file_size(keel_file_t *file, uint64_t *size) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
