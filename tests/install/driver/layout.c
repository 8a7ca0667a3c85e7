// SPDX-License-Identifier: Apache-2.0
// Prints what tells a driver's build from others; as C and as C++ the same.
#include <keel/driver/driver.h>
#include <stdio.h>

int main(void)
{
    printf("%u %u %zu %zu\n", KEEL_DRIVER_VERSION, KEEL_DRIVER_LAYOUT, sizeof(keel_cmd_dispatch_t),
           sizeof(keel_cmd_transfer_t));
    return 0;
}
