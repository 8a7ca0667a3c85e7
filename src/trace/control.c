// SPDX-License-Identifier: Apache-2.0
#include "trace/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/system.h"

trace_control_t *trace_control_open(const char *folder)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/control", folder);
    if (length < 0 || (size_t)length >= sizeof path) return errno = ENAMETOOLONG, NULL;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666), error = 0;
    if (fd < 0) return NULL;
    // Of two processes that make it at once, both write zeros before either lets others in.
    if (lseek(fd, 0, SEEK_END) < TRACE_CONTROL_SIZE)
        error = system_file_extend(fd, 0, TRACE_CONTROL_SIZE);
    void *memory = MAP_FAILED;
    if (!error) memory = mmap(NULL, TRACE_CONTROL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (!error && memory == MAP_FAILED) error = errno;
    close(fd);
    if (!error) return memory;
    errno = error;
    return NULL;
}
