// SPDX-License-Identifier: Apache-2.0
#include "base/pci.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The first line of a file; false: there is none.
static bool line_read(const char *folder, const char *address, const char *name, char *line,
                      size_t size)
{
    char path[512];
    int length = snprintf(path, sizeof path, "%s/%s/%s", folder, address, name);
    FILE *file = length < (int)sizeof path ? fopen(path, "re") : NULL;
    bool read = file && fgets(line, (int)size, file);
    if (file) fclose(file);
    line[read ? strcspn(line, "\n") : 0] = 0;
    return read;
}

// Of one end: what it can do at most. A link is slower while nothing uses it, to save power, so the
// present rate says little. 0: not known.
static double end_rate(const char *folder, const char *address, const char *end)
{
    char name[32], line[64];
    snprintf(name, sizeof name, "%smax_link_speed", end);
    if (!line_read(folder, address, name, line, sizeof line)) return 0;
    double transfers = strtod(line, NULL); // "32.0 GT/s PCIe"
    snprintf(name, sizeof name, "%smax_link_width", end);
    if (!line_read(folder, address, name, line, sizeof line)) return 0;
    double lanes = strtod(line, NULL);
    double coding = transfers < 8 ? 8.0 / 10 : 128.0 / 130;
    bool sane = transfers > 0 && transfers < 1000 && lanes > 0 && lanes <= 64;
    return sane ? transfers * 1e9 / 8 * lanes * coding : 0;
}

// The slower of both ends: the device, and the port above it.
static uint64_t link_rate(const char *folder, const char *address)
{
    double device = end_rate(folder, address, ""), port = end_rate(folder, address, "../");
    return (uint64_t)(port > 0 && port < device ? port : device);
}

void pci_read(const char *folder, const char *address, pci_device_t *device)
{
    char line[64];
    *device = (pci_device_t){.numa_node = -1};
    // It becomes part of a path.
    if (!address[0] || address[strspn(address, "0123456789abcdef:.")]) return;
    if (!line_read(folder, address, "vendor", line, sizeof line)) return;
    device->vendor = (uint32_t)strtoul(line, NULL, 16);
    if (line_read(folder, address, "numa_node", line, sizeof line))
        device->numa_node = (int)strtol(line, NULL, 10);
    device->link = link_rate(folder, address);
    line_read(folder, address, "driver/module/version", device->driver, sizeof device->driver);
}
