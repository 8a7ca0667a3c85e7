// SPDX-License-Identifier: Apache-2.0
// The drivers there are: the library's own, and those that the program registered or loaded.
#ifndef KEEL_SRC_CORE_REGISTRY_H_
#define KEEL_SRC_CORE_REGISTRY_H_

#include <keel/driver/driver.h>

// The driver of that number, in the order in which they came; NULL: there are no more.
const keel_driver_t *registry_at(size_t index);

// KEEL_NOT_FOUND names the drivers there are.
keel_status_t registry_find(const char *name, const keel_driver_t **driver);

// That the driver is of this version and whole; errors as of keel_driver_register.
keel_status_t registry_check_driver(const keel_driver_t *driver);

// That what a driver has just opened is whole: required slots of the ops table are filled, optional
// ones agree with the capabilities. Else KEEL_INTERNAL, which names the slot.
keel_status_t registry_check_device(const keel_driver_t *driver, const keel_device_t *device);

#endif
