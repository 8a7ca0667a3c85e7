// SPDX-License-Identifier: Apache-2.0
// A user of the installed library. Its own functions have names that Keel uses inside.
#include <keel/keel.h>
#include <stdio.h>
#include <string.h>

int arena_init(void);
int tlsf_init(void);

int arena_init(void)
{
    return 1;
}

int tlsf_init(void)
{
    return 1;
}

int main(void)
{
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", KEEL_VERSION_MAJOR, KEEL_VERSION_MINOR,
             KEEL_VERSION_PATCH);
    if (strcmp(version, keel_version()) != 0 || strcmp(version, PACKAGE_VERSION) != 0) {
        fprintf(stderr, "header %s, library %s, package %s\n", version, keel_version(),
                PACKAGE_VERSION);
        return 1;
    }
    keel_device_t *device = NULL;
    keel_status_t status = keel_device_open("cpu://inline", NULL, &device);
    if (status) {
        keel_status_print(status, stderr);
        return 1;
    }
    keel_device_release(device);
    return arena_init() + tlsf_init() - 2;
}
