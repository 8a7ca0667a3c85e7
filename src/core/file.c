// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/extent.h"
#include "base/live.h"
#include "base/memory.h"
#include "core/check.h"
#include "core/device_ref.h"

enum { PATH_ROOM = 4096 + 64 }; // for a path of any length the system takes, and a few words

static keel_status_t file_error(const keel_file_t *file, int error, const char *verb)
{
    char what[PATH_ROOM];
    bool link = error == ELOOP && (file->flags & KEEL_FILE_CREATE);
    snprintf(what, sizeof what, "cannot %s '%s'%s", verb, file->path,
             link ? ", which KEEL_FILE_CREATE does not follow if it is a symbolic link" : "");
    return status_from_errno(status_errno_code(error), error, what);
}

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "a directory"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISCHR(mode)  ? "a character device"
                            : "something else";
}

static keel_status_t kind_check(const keel_file_t *file)
{
    struct stat info;
    if (fstat(file->fd, &info) != 0) return file_error(file, errno, "open");
    CHECK(S_ISREG(info.st_mode) || S_ISBLK(info.st_mode), KEEL_INVALID_ARGUMENT,
          "cannot open '%s': it is %s, not a regular file or a block device", file->path,
          kind_of(info.st_mode));
    return NULL;
}

static void file_destroy(keel_file_t *file)
{
    if (file->fd >= 0) close(file->fd);
    device_drop(file->device);
    mem_free(file->path);
    mem_free(file);
    live_add(LIVE_FILE, -1);
}

// A file without a descriptor, which is complete in all else: so that when memory runs out nothing
// has been made in the file system.
static keel_status_t file_make(keel_device_t *device, const char *path, uint32_t flags,
                               keel_file_t **file)
{
    KEEL_TRY(device_check(device));
    CHECK(device->caps.bits & KEEL_CAP_FILES, KEEL_UNSUPPORTED, "the device has no KEEL_CAP_FILES");
    keel_file_t *f = mem_zalloc(sizeof *f);
    if (!f) return status_no_memory();
    keel_status_t status = copy_name(path, &f->path);
    if (status) {
        mem_free(f);
        return status;
    }
    object_init(&f->object);
    f->device = device;
    device_hold(device);
    f->flags = flags;
    f->fd = -1;
    live_add(LIVE_FILE, 1);
    *file = f;
    return NULL;
}

// Hands the file out, or destroys it if there is an error.
static keel_status_t file_finish(keel_status_t status, keel_file_t *made, keel_file_t **file)
{
    made->info = (keel_file_info_t){made->device, made->path, made->flags};
    if (status)
        file_destroy(made);
    else
        *file = made;
    return status;
}

static keel_status_t path_open(keel_file_t *file)
{
    static const int modes[] = {0, O_RDONLY, O_WRONLY, O_RDWR}; // by KEEL_FILE_READ and _WRITE
    // Without O_NONBLOCK the opening of a pipe would wait for its other end.
    int mode = modes[file->flags & (KEEL_FILE_READ | KEEL_FILE_WRITE)] | O_CLOEXEC | O_NONBLOCK;
    if (file->flags & KEEL_FILE_CREATE) mode |= O_CREAT | O_NOFOLLOW;
    do file->fd = open(file->path, mode | O_NOCTTY, 0600);
    while (file->fd < 0 && errno == EINTR);
    if (file->fd < 0) return file_error(file, errno, "open");
    KEEL_TRY(kind_check(file));
    int flags = fcntl(file->fd, F_GETFL);
    if (flags < 0 || fcntl(file->fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
        return file_error(file, errno, "open");
    return NULL;
}

keel_status_t keel_file_open(keel_device_t *device, const char *path, uint32_t flags,
                             keel_file_t **file)
{
    CHECK_NOT_NULL(file);
    *file = NULL;
    CHECK_NOT_NULL(device);
    CHECK_NOT_NULL(path);
    KEEL_TRY(check_flags("flags", flags, KEEL_FILE_READ | KEEL_FILE_WRITE | KEEL_FILE_CREATE));
    CHECK(flags & (KEEL_FILE_READ | KEEL_FILE_WRITE), KEEL_INVALID_ARGUMENT,
          "flags has neither KEEL_FILE_READ nor KEEL_FILE_WRITE");
    CHECK(!(flags & KEEL_FILE_CREATE) || (flags & KEEL_FILE_WRITE), KEEL_INVALID_ARGUMENT,
          "flags has KEEL_FILE_CREATE without KEEL_FILE_WRITE");
    keel_file_t *f;
    KEEL_TRY(file_make(device, path, flags, &f));
    return file_finish(path_open(f), f, file);
}

static keel_status_t descriptor_duplicate(keel_file_t *file, int fd)
{
    file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (file->fd < 0) return file_error(file, errno, "duplicate");
    KEEL_TRY(kind_check(file));
    int flags = fcntl(file->fd, F_GETFL);
    if (flags < 0) return file_error(file, errno, "import");
    int mode = flags & O_ACCMODE;
    if (mode != O_WRONLY) file->flags |= KEEL_FILE_READ;
    if (mode != O_RDONLY) file->flags |= KEEL_FILE_WRITE;
    CHECK(!(flags & O_APPEND) || mode == O_RDONLY, KEEL_INVALID_ARGUMENT,
          "cannot import '%s': it is open for appending (O_APPEND), so writes would ignore their "
          "offset",
          file->path);
    // Some descriptors only name a file (O_PATH); they look as if they could be read.
    if (mode != O_WRONLY && pread(file->fd, &(char){0}, 0, 0) != 0)
        return file_error(file, errno, "read");
    return NULL;
}

keel_status_t keel_file_import(keel_device_t *device, int fd, keel_file_t **file)
{
    CHECK_NOT_NULL(file);
    *file = NULL;
    CHECK_NOT_NULL(device);
    CHECK(fd >= 0, KEEL_INVALID_ARGUMENT, "fd is %d", fd);
    char path[32];
    snprintf(path, sizeof path, "descriptor %d", fd);
    keel_file_t *f;
    KEEL_TRY(file_make(device, path, 0, &f));
    return file_finish(descriptor_duplicate(f, fd), f, file);
}

keel_file_t *keel_file_retain(keel_file_t *file)
{
    if (file) object_retain(&file->object);
    return file;
}

void keel_file_release(keel_file_t *file)
{
    if (file && object_release(&file->object)) file_destroy(file);
}

const keel_file_info_t *keel_file_info(const keel_file_t *file)
{
    return &file->info;
}

keel_status_t keel_file_size(keel_file_t *file, uint64_t *size)
{
    CHECK_NOT_NULL(file);
    CHECK_NOT_NULL(size);
    CHECK(object_is_ours(&file->object), KEEL_DEVICE_LOST,
          "file '%s' was opened before fork and stayed with the parent process", file->path);
    int error = extent_of_file(file->fd, size);
    return error ? file_error(file, error, "find the size of") : NULL;
}
