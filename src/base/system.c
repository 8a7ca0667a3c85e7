// SPDX-License-Identifier: Apache-2.0
#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <keel/base.h>

static uint64_t meminfo_read(const char *key)
{
    FILE *file = fopen("/proc/meminfo", "re");
    if (!file) return 0;
    char line[128];
    unsigned long long kib = 0;
    size_t length = strlen(key);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, key, length) == 0 && sscanf(line + length, ": %llu", &kib) == 1) break;
    fclose(file);
    return kib * 1024;
}

void system_memory(uint64_t *total, uint64_t *available)
{
    *total = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    *available = meminfo_read("MemAvailable");
    if (!*available) *available = *total;
}

void system_cpu_name(char *name, size_t size)
{
    snprintf(name, size, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file) return;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "model name", 10) != 0) continue;
        char *value = strchr(line, ':');
        if (!value) continue;
        value += strspn(value, ": \t");
        value[strcspn(value, "\n")] = 0;
        snprintf(name, size, "%s", value);
        break;
    }
    fclose(file);
}

void system_command(char *text, size_t size)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, text, size - 1);
    if (fd >= 0) close(fd);
    if (length < 0) length = 0;
    while (length && !text[length - 1]) length--;
    text[length] = 0;
    for (ssize_t i = 0; i < length; i++)
        if (!text[i]) text[i] = ' ';
}

const char *system_variable(const char *name)
{
    bool trusted = getuid() == geteuid() && getgid() == getegid();
    return trusted ? getenv(name) : NULL;
}

void system_boot_name(char *name, size_t size)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, name, size - 1);
    if (fd >= 0) close(fd);
    name[length > 0 ? length : 0] = 0;
    name[strcspn(name, "\n")] = 0;
}

static bool file_may_have(uint64_t size)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
           size <= limit.rlim_cur;
}

// Writing zeros is cheaper than posix_fallocate: pages that are in the cache already are quicker to
// map (docs/trace.md has the figures).
int system_file_extend(int fd, uint64_t offset, uint64_t size)
{
    static char zeros[256 << 10]; // never written, so that it takes no memory
    if (!file_may_have(offset + size)) return EFBIG;
    while (size) {
        size_t part = size < sizeof zeros ? (size_t)size : sizeof zeros;
        ssize_t written = pwrite(fd, zeros, part, (off_t)offset);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return written ? errno : ENOSPC;
        offset += (uint64_t)written;
        size -= (uint64_t)written;
    }
    return 0;
}

#if defined(__linux__) && !KEEL_PORTABLE
uint64_t system_boot_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
#else
uint64_t system_boot_ns(void)
{
    return keel_now_ns();
}
#endif

bool system_ticks_are_steady(void)
{
#if defined(__x86_64__)
    // Linux uses the counter for its own clock where it has found it steady.
    char name[8] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (!file) return false;
    bool read = fgets(name, sizeof name, file) != NULL;
    fclose(file);
    return read && strcmp(name, "tsc\n") == 0;
#else
    return true; // by the architecture, or clock_ticks is a clock of the system
#endif
}
