// SPDX-License-Identifier: Apache-2.0
#include "tools/cc/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *file_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    if (file && fseek(file, 0, SEEK_END) == 0) {
        long length = ftell(file);
        rewind(file);
        bytes = length >= 0 ? malloc((size_t)length + 1) : NULL;
        if (bytes && fread(bytes, 1, (size_t)length, file) != (size_t)length) {
            free(bytes);
            bytes = NULL;
        }
        if (bytes) bytes[ *size = (size_t)length] = 0;
    }
    if (file) fclose(file);
    return bytes;
}

static bool bytes_write(const char *path, int flags, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0666);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!file) return false;
    bool written = fwrite(bytes, 1, size, file) == size;
    return fclose(file) == 0 && written;
}

// Beside the file, so that it is on the same disk; where a link leads, so that the link stays.
static bool plain_write(const char *path, const void *bytes, size_t size)
{
    char resolved[PATH_MAX], beside[PATH_MAX + 32];
    if (!realpath(path, resolved)) snprintf(resolved, sizeof resolved, "%s", path);
    snprintf(beside, sizeof beside, "%s.%ld.new", resolved, (long)getpid());
    if (bytes_write(beside, O_CREAT | O_TRUNC, bytes, size) && rename(beside, resolved) == 0)
        return true;
    int error = errno;
    unlink(beside);
    errno = error;
    return false;
}

bool file_write(const char *path, const void *bytes, size_t size)
{
    struct stat info;
    bool special = stat(path, &info) == 0 && !S_ISREG(info.st_mode);
    if (special ? bytes_write(path, 0, bytes, size) : plain_write(path, bytes, size)) return true;
    fprintf(stderr, "keel cc: cannot write %s: %s\n", path, strerror(errno));
    return false;
}

void folder_remove(const char *path)
{
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0); // . and .. stay as they are
    if (folder) closedir(folder);
    rmdir(path);
}
