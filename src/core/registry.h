// SPDX-License-Identifier: Apache-2.0
// The drivers there are.
#ifndef KEEL_SRC_CORE_REGISTRY_H_
#define KEEL_SRC_CORE_REGISTRY_H_

#include <keel/driver/driver.h>

// KEEL_NOT_FOUND names the drivers there are.
keel_status_t registry_find(const char *name, const keel_driver_t **driver);

// That a freshly opened device's ops table and capabilities agree.
keel_status_t registry_check_ops(const keel_device_t *device);

#endif
