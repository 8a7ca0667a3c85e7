// SPDX-License-Identifier: Apache-2.0
#include "base/extent.h"

#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>

#if defined(__linux__) && !KEEL_PORTABLE

#include <linux/fs.h>
#include <sys/ioctl.h>

static int extent_of_disk(int fd, uint64_t *size)
{
    return ioctl(fd, BLKGETSIZE64, size) == 0 ? 0 : errno;
}

#else

static int extent_of_disk(int fd, uint64_t *size)
{
    return ENOTSUP;
}

#endif

int extent_of_file(int fd, uint64_t *size)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return errno;
    if (S_ISBLK(info.st_mode)) return extent_of_disk(fd, size);
    if (!S_ISREG(info.st_mode)) return ENOTSUP;
    *size = (uint64_t)info.st_size;
    return 0;
}
