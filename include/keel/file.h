// SPDX-License-Identifier: Apache-2.0
// Files that queues read into buffers (keel_op_read) and write from buffers (keel_op_write). No
// thread of the application waits for the disk. The device needs KEEL_CAP_FILES.
//
// A file is a regular file or a block device: something that can be read and written at any offset.
// Opening anything else fails and does not wait, for example for the other end of a pipe. Writing
// beyond the end makes a regular file longer.
//
// Any thread may call every function. The system's calls may block for the disk as usual.
#ifndef KEEL_FILE_H_
#define KEEL_FILE_H_

#include <keel/device.h>

typedef struct keel_file_t keel_file_t;

// How to open a file. At least one of READ and WRITE is needed.
typedef enum keel_file_flag_t {
    KEEL_FILE_READ = 1 << 0,   // for keel_op_read
    KEEL_FILE_WRITE = 1 << 1,  // for keel_op_write; the file keeps its contents (no truncation)
    KEEL_FILE_CREATE = 1 << 2, // with KEEL_FILE_WRITE: create the file (mode 0600) if it does not
                               // exist; does not follow a symbolic link
} keel_file_flag_t;

// What keel_file_info tells about a file.
typedef struct keel_file_info_t {
    keel_device_t *device; // whose it is
    const char *path;      // where it was opened; of an imported one, the words for it in messages
    uint32_t flags;        // keel_file_flag_t: what it was opened for, or the descriptor can
} keel_file_info_t;

KEEL_EXTERN_C_BEGIN

// Opens the file at `path` for queues of `device`. `flags` are keel_file_flag_t.
//
// An error names the path and the system's reason. KEEL_NOT_FOUND, KEEL_PERMISSION_DENIED,
// KEEL_RESOURCE_EXHAUSTED (descriptors, space) or KEEL_IO, by the system's error.
// KEEL_INVALID_ARGUMENT for something that is neither a regular file nor a block device, and for
// KEEL_FILE_CREATE without KEEL_FILE_WRITE. KEEL_UNSUPPORTED without KEEL_CAP_FILES.
KEEL_API keel_status_t keel_file_open(keel_device_t *device, const char *path, uint32_t flags,
                                      keel_file_t **file) KEEL_MUST_USE;

// Makes a file of an open descriptor. The descriptor is duplicated; the caller still closes its
// own. Its position is neither used nor moved. The file can be read and written as the descriptor
// can.
//
// KEEL_INVALID_ARGUMENT for a descriptor that is not open, or open for appending (O_APPEND), since
// the system would ignore the offsets of writes; else as keel_file_open.
KEEL_API keel_status_t keel_file_import(keel_device_t *device, int fd,
                                        keel_file_t **file) KEEL_MUST_USE;

// Adds a reference and returns `file`. NULL is fine.
KEEL_API keel_file_t *keel_file_retain(keel_file_t *file);

// Gives up a reference. The last one closes the descriptor. NULL is fine.
KEEL_API void keel_file_release(keel_file_t *file);

// Returns what the file is. This never changes, and is borrowed from the file. Never fails.
KEEL_API const keel_file_info_t *keel_file_info(const keel_file_t *file);

// Writes the present size in bytes to `size`. Reads and writes in flight may change it.
//
// KEEL_IO or another code by the system's error.
KEEL_API keel_status_t keel_file_size(keel_file_t *file, uint64_t *size) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
