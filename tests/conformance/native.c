// SPDX-License-Identifier: Apache-2.0
// The conformance suite on a device that waits for its semaphores by itself: `keel conformance`
// with one more driver.
#include "kit/native/native.h"
#include "conformance/command.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    keel_status_t status = keel_driver_register(&native_driver);
    if (status) {
        keel_status_print(status, stderr);
        return 2;
    }
    return conformance_main(argc, argv);
}
