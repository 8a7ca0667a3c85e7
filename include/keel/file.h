// SPDX-License-Identifier: Apache-2.0
// Files that queues read into buffers and write from them (keel_op_read, keel_op_write), without
// holding up a thread of the application.
#ifndef KEEL_FILE_H_
#define KEEL_FILE_H_

#include <keel/device.h>

typedef struct keel_file_t keel_file_t;

typedef enum keel_file_flag_t {
    KEEL_FILE_READ = 1 << 0,
    KEEL_FILE_WRITE = 1 << 1,
    KEEL_FILE_CREATE =
        1 << 2, // make it (mode 0600) if it is not there; never follows a symbolic link
} keel_file_flag_t;

KEEL_EXTERN_C_BEGIN

KEEL_API keel_status_t keel_file_open(keel_device_t *device, const char *path, uint32_t flags,
                                      keel_file_t **file) KEEL_MUST_USE;
// Over an open descriptor, which is duplicated.
KEEL_API keel_status_t keel_file_import(keel_device_t *device, int fd,
                                        keel_file_t **file) KEEL_MUST_USE;
KEEL_API keel_file_t *keel_file_retain(keel_file_t *file);
KEEL_API void keel_file_release(keel_file_t *file);

KEEL_API keel_status_t keel_file_size(keel_file_t *file, uint64_t *size) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
