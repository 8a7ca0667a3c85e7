// SPDX-License-Identifier: Apache-2.0
#include "executable/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

keel_status_t source_open(const char *path, source_t *source)
{
    *source = (source_t){.fd = -1};
    // A pipe without a writer must not hold up the open; for regular files the flag means nothing.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return status_from_errno(errno == ENOENT ? KEEL_NOT_FOUND : KEEL_IO, errno, path);
    struct stat info;
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode)) {
        close(fd);
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "%s is no regular file", path);
    }
    *source = (source_t){.fd = fd, .size = (uint64_t)info.st_size};
    return NULL;
}

void source_finish(source_t *source)
{
    if (source->fd >= 0) close(source->fd);
    source->fd = -1;
}

static keel_status_t file_read(int fd, char *to, uint64_t size, uint64_t offset)
{
    const size_t most = 1 << 30; // one call moves less than 2 GiB
    while (size) {
        ssize_t got = pread(fd, to, size < most ? (size_t)size : most, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return status_from_errno(KEEL_IO, errno, "cannot read the file");
        if (got == 0)
            return KEEL_ERROR(KEEL_CORRUPT, "it is truncated at %llu bytes",
                              (unsigned long long)offset);
        to += got;
        offset += (uint64_t)got;
        size -= (uint64_t)got;
    }
    return NULL;
}

keel_status_t source_read(const source_t *source, void *to, uint64_t size, uint64_t offset)
{
    if (offset > source->size || size > source->size - offset)
        return KEEL_ERROR(KEEL_CORRUPT,
                          "it is truncated: it has %llu bytes, and %llu from %llu on "
                          "are asked for",
                          (unsigned long long)source->size, (unsigned long long)size,
                          (unsigned long long)offset);
    if (!source->data) return file_read(source->fd, to, size, offset);
    memcpy(to, source->data + offset, size);
    return NULL;
}
