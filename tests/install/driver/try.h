// SPDX-License-Identifier: Apache-2.0
// What a program does with a device of a driver that it has added.
#ifndef TESTS_INSTALL_TRY_H_
#define TESTS_INSTALL_TRY_H_

#include <keel/keel.h>

// Opens it, and sees a submission through.
static inline keel_status_t try_device(const char *uri)
{
    keel_device_t *device;
    keel_point_t done;
    KEEL_TRY(keel_device_open(uri, NULL, &device));
    keel_status_t status =
        keel_queue_signal(keel_device_queue(device, 0), KEEL_NO_WAITS, KEEL_NO_SIGNALS, &done);
    if (!status) status = keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
    keel_device_release(device);
    return status;
}

static inline int try_end(keel_status_t status)
{
    if (!status) return 0;
    keel_status_print(status, stdout);
    keel_status_release(status);
    return 1;
}

#endif
