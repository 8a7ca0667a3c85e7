// SPDX-License-Identifier: Apache-2.0
#include "base/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

#if defined(__linux__) && !KEEL_PORTABLE

static int memory_file(void)
{
    return memfd_create("keel", MFD_CLOEXEC);
}

#else

// A file in the temporary folder that is removed before anybody could open it: its name is random,
// its mode 0600. Programs on iOS, and some on macOS, may write to a folder of their own alone.
static int memory_file(void)
{
    char path[512];
    const char *folder = getenv("TMPDIR");
    if (!folder || !*folder || strlen(folder) > sizeof path - 16) folder = "/tmp";
    snprintf(path, sizeof path, "%s/keel-XXXXXX", folder);
    int fd = mkstemp(path);
    if (fd < 0) return fd;
    unlink(path);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

#endif

keel_status_t shared_memory_create(uint64_t size, int *fd)
{
    *fd = memory_file();
    if (*fd < 0)
        return status_from_errno(KEEL_RESOURCE_EXHAUSTED, errno, "cannot make a memory file");
    if (ftruncate(*fd, (off_t)size) == 0) return NULL;
    keel_status_t status =
        status_from_errno(KEEL_RESOURCE_EXHAUSTED, errno, "cannot size a memory file");
    close(*fd);
    *fd = -1;
    return status;
}

keel_status_t shared_memory_duplicate(int fd, int *copy)
{
    *copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return *copy >= 0
               ? NULL
               : status_from_errno(KEEL_RESOURCE_EXHAUSTED, errno, "cannot duplicate a descriptor");
}

keel_status_t shared_memory_check(int fd, uint64_t offset, uint64_t size)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return status_from_errno(KEEL_INVALID_ARGUMENT, errno, "external->handle.fd");
    uint64_t all = (uint64_t)info.st_size;
    if (offset <= all && size <= all - offset) return NULL;
    return KEEL_ERROR(KEEL_OUT_OF_RANGE, "external: %llu bytes at %llu; the file has %llu",
                      (unsigned long long)size, (unsigned long long)offset,
                      (unsigned long long)all);
}
