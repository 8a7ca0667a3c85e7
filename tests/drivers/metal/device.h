// SPDX-License-Identifier: Apache-2.0
// What tests of Metal devices on the software Metal have in common. Its settings are read once, so
// each test that has its own runs in a child.
#ifndef TESTS_DRIVERS_METAL_DEVICE_H_
#define TESTS_DRIVERS_METAL_DEVICE_H_

#include <keel/keel.h>

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

// Against children that wait for ever, and no measure: under a sanitizer, on a machine that others
// use, a test may take minutes.
enum { CHILD_SECONDS = 280 };

// `which` is its number, perhaps with options behind a question mark.
static inline keel_status_t device_try_open(const char *which, keel_device_t **device)
{
    char uri[512];
    snprintf(uri, sizeof uri, "metal://%s%clib=%s", which, strchr(which, '?') ? '&' : '?',
             METAL_LIBRARY);
    return keel_device_open(uri, NULL, device);
}

static inline keel_device_t *device_open(void)
{
    keel_device_t *device = NULL;
    keel_status_t status = device_try_open("0", &device);
    if (status) fail_msg("%s", keel_status_message(status));
    return device;
}

static inline keel_buffer_t *buffer_create(keel_device_t *device, uint64_t size)
{
    keel_buffer_options_t options = {.size = size};
    keel_buffer_t *buffer = NULL;
    assert_null(keel_buffer_create(device, &options, &buffer));
    return buffer;
}

static inline keel_status_t wait_for(keel_point_t point)
{
    return keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER);
}

static inline void ok(keel_point_t point)
{
    keel_status_t status = wait_for(point);
    if (status) fail_msg("%s", keel_status_message(status));
}

static inline keel_point_t submit(keel_device_t *device, keel_points_t after, keel_op_t op)
{
    keel_point_t point = keel_point(NULL, 0);
    assert_null(keel_queue_run(keel_device_queue(device, 0), after, op, &point));
    return point;
}

// What the software Metal tells of itself.
static inline void *sim_symbol(const char *name)
{
    void *handle = dlopen(METAL_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(handle);
    void *symbol = dlsym(handle, name);
    assert_non_null(symbol);
    return symbol;
}

static inline unsigned sim_objects(const char *class)
{
    unsigned (*objects)(const char *);
    *(void **)&objects = sim_symbol("simMetalObjects");
    return objects(class);
}

// How often a message was sent so far.
static inline uint64_t sim_sent(const char *selector)
{
    uint64_t (*sent)(const char *);
    *(void **)&sent = sim_symbol("simMetalSent");
    return sent(selector);
}

// How many messages were sent so far.
static inline uint64_t sim_messages(void)
{
    uint64_t (*sent)(void);
    *(void **)&sent = sim_symbol("simMetalMessages");
    return sent();
}

// Calls this once, on the thread that sends this message next, before anything comes of it.
static inline void sim_when(const char *selector, void (*call)(void))
{
    void (*when)(const char *, void (*)(void));
    *(void **)&when = sim_symbol("simMetalWhen");
    when(selector, call);
}

// Closes the device. Metal's own threads drop their references a little later.
static inline void device_close(keel_device_t *device)
{
    keel_device_release(device);
    while (sim_objects(NULL)) sched_yield();
}

static inline keel_entry_t find(keel_executable_t *executable, const char *name)
{
    keel_entry_t found;
    assert_null(keel_executable_entry(executable, name, &found));
    return found;
}

// Runs a test in a child, with settings of the software Metal.
static inline void run_with(const char *settings, void (*test)(void))
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char all[512];
        snprintf(all, sizeof all, "cache=%s %s", METAL_CACHE, settings);
        setenv("KEEL_SIM_METAL", all, 1);
        alarm(CHILD_SECONDS);
        test();
        fflush(NULL);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("with '%s' the child ended with %#x", settings, (unsigned)status);
}

#endif
