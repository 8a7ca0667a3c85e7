// SPDX-License-Identifier: Apache-2.0
#include "tracer/replace.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

keel_status_t replace_begin(const char *path, char making[REPLACE_NAME])
{
    struct stat about;
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "%s is no file that could be replaced", path);
    if ((size_t)snprintf(making, REPLACE_NAME, "%s.new", path) >= REPLACE_NAME)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "the name is too long: %s", path);
    unlink(making); // of a tool that was killed
    return NULL;
}

keel_status_t replace_end(keel_status_t status, const char *making, const char *path)
{
    if (!status && rename(making, path) != 0)
        status = status_from_errno(status_errno_code(errno), errno, path);
    if (status) unlink(making);
    return status;
}
