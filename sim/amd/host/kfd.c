// SPDX-License-Identifier: Apache-2.0
// Loaded before programs that look for the kernel driver themselves (rocminfo does): /dev/kfd can
// be opened, and is empty.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/types.h>

__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, ...);
    mode_t mode = 0;
    if (flags & (O_CREAT | O_TMPFILE)) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    if (!real) {
        void *found = dlsym(RTLD_NEXT, "open");
        memcpy(&real, &found, sizeof real);
    }
    return real(strcmp(path, "/dev/kfd") ? path : "/dev/null", flags, mode);
}
