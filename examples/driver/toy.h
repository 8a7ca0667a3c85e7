// SPDX-License-Identifier: Apache-2.0
// The toy driver: toy.c has its device, queues and memory, executable.c its kernels, and
// semaphore.c its semaphores.
#ifndef EXAMPLES_DRIVER_TOY_H_
#define EXAMPLES_DRIVER_TOY_H_

#include <keel/driver/driver.h>

#include <pthread.h>

enum {
    TOY_MAX_BINDINGS = 64,
    TOY_MAX_CONSTANTS = 4096,
    TOY_MAX_LOCAL = 1 << 20,
    TOY_MAX_DEPTH = 16
};

typedef struct toy_device_t {
    keel_device_t base;
    pthread_t thread;
    pthread_mutex_t lock;             // for the list and `stopping`
    pthread_cond_t changed;           //
    keel_submission_t *first, **last; // those that were started and do not run
    bool stopping;
    // The device's thread's.
    uint64_t lose;      // commands until the device is lost; 0: it is not to be
    keel_status_t lost; // owned: why it is; NULL: it works
    void *local;        // owned: memory of the workgroup that runs
} toy_device_t;

// A submission, and how far it is.
typedef struct toy_run_t {
    keel_submission_t base;
    const keel_command_t *at; // the next one
    keel_status_t failure;    // owned
} toy_run_t;

keel_status_t toy_dispatch(toy_device_t *device, const keel_cmd_dispatch_t *c,
                           const keel_cmd_execute_t *execute);
uint32_t toy_rank(keel_device_t *device, keel_image_kind_t kind, const char *target);
keel_status_t toy_load(keel_device_t *device, const keel_image_t *image,
                       keel_executable_t **executable);
void toy_unload(keel_executable_t *executable);
keel_status_t toy_global(keel_executable_t *executable, const char *name,
                         keel_external_buffer_t *where);
extern const char toy_target[];

keel_status_t toy_semaphore_create(keel_device_t *device, uint64_t initial,
                                   keel_semaphore_t **semaphore);
// Whether it waits for semaphores of the device. If one has failed it does not wait, and has
// `failure`. Under the device's lock.
bool toy_run_waits(toy_run_t *run);
// Signals those, or fails them with run->failure.
void toy_run_signal(toy_run_t *run);
void toy_queue_cancel(keel_queue_t *queue, keel_status_t cause);

#endif
