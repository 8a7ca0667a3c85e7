// SPDX-License-Identifier: Apache-2.0
// A program that calls Metal itself, beside Keel.
#ifndef TESTS_DRIVERS_METAL_PROGRAM_H_
#define TESTS_DRIVERS_METAL_PROGRAM_H_

#include "drivers/metal/device.h"

typedef void *object_t;

static inline void *selector(const char *name)
{
    void *(*named)(const char *);
    *(void **)&named = sim_symbol("sel_registerName");
    return named(name);
}

// Sends a message with up to two words; what comes back is a word.
static inline uint64_t send(object_t self, const char *name, uint64_t a, uint64_t b)
{
    uint64_t (*message)(object_t, void *, uint64_t, uint64_t);
    *(void **)&message = sim_symbol("objc_msgSend");
    return message(self, selector(name), a, b);
}

static inline object_t send_for(object_t self, const char *name, uint64_t a, uint64_t b)
{
    return (object_t)(uintptr_t)send(self, name, a, b);
}

static inline object_t gpu_of(keel_device_t *device)
{
    uint64_t handle = 0;
    assert_null(keel_device_native(device, KEEL_NATIVE_METAL_DEVICE, &handle));
    assert_true(handle);
    return (object_t)(uintptr_t)handle;
}

static inline void *pool_push(void)
{
    void *(*push)(void);
    *(void **)&push = sim_symbol("objc_autoreleasePoolPush");
    return push();
}

static inline void pool_pop(void *pool)
{
    void (*pop)(void *);
    *(void **)&pop = sim_symbol("objc_autoreleasePoolPop");
    pop(pool);
}

#endif
