// SPDX-License-Identifier: Apache-2.0
// A program with a driver linked in.
#include <keel/driver/driver.h>
#include <string.h>

#include "try.h"

extern const keel_driver_t skeleton_driver;

static keel_status_t run(void)
{
    keel_device_listing_t info;
    size_t count = 0;
    KEEL_TRY(keel_driver_register(&skeleton_driver));
    KEEL_TRY(keel_driver_register(&skeleton_driver));
    KEEL_TRY(keel_device_list("skeleton", &info, 1, &count));
    if (count != 1 || strcmp(info.uri, "skeleton://") != 0)
        return KEEL_ERROR(KEEL_INTERNAL, "%zu devices are listed", count);
    return try_device(info.uri);
}

int main(void)
{
    return try_end(run());
}
