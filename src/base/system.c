// SPDX-License-Identifier: Apache-2.0
#include "base/system.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
