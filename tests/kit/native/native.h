// SPDX-License-Identifier: Apache-2.0
// A driver for tests whose device keeps the values and failures of its semaphores itself
// (kit/remote.h), as a GPU would in its memory:
//
//     native://             the device notifies the host when it signals or fails a semaphore
//     native://?poll=1      it does not: the host has to look
//
// One thread plays the processor of the device. It sees packets and cells, which stand for memory
// of the device, and calls nothing of the library but to raise an interrupt. Work does nothing but
// wait and signal.
#ifndef TESTS_KIT_NATIVE_NATIVE_H_
#define TESTS_KIT_NATIVE_NATIVE_H_

#include <keel/driver/driver.h>

KEEL_API extern const keel_driver_t native_driver;

// What the device has of a semaphore, past the host.
uint64_t native_value(keel_semaphore_t *semaphore);
// What another processor of the device might do: signals it there, where a value that is not larger
// changes nothing, or fails it there with `cause` (consumed).
void native_signal_there(keel_semaphore_t *semaphore, uint64_t value);
void native_fail_there(keel_semaphore_t *semaphore, keel_status_t cause);
// The device falls down, with `cause` (consumed): from now on its processor signals nothing.
void native_lose(keel_device_t *device, keel_status_t cause);

#endif
