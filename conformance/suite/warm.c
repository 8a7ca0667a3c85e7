// SPDX-License-Identifier: Apache-2.0
// What the C library, a sanitizer or a vendor's library opens and starts once in a process, for its
// own use, it is to open and start before the test: what is there after the test and was not there
// before is a leak.
#include "suite/run.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void *do_nothing(void *argument)
{
    return argument;
}

enum {
    BESIDE = 4,      // vendors keep that many of a kind for their next user, not more
    SIZE = 64 << 10, // small copies go other ways than large ones
    QUEUES = 8,      // one of each priority
};

typedef struct warmed_t {
    keel_device_t *device;
    keel_buffer_t *here, *host; // of the device's memory and of the host's: a part for each queue
    keel_queue_t *queues[QUEUES];
    keel_point_t points[QUEUES];
    size_t count;
} warmed_t;

// Gives a queue work of each kind.
static keel_status_t queue_use(warmed_t *w, size_t i)
{
    keel_ref_t here = keel_span(w->here, i * SIZE, SIZE), host = keel_span(w->host, i * SIZE, SIZE);
    const keel_op_t ops[] = {
        keel_op_fill(here, 1, 4), keel_op_barrier(),        keel_op_copy(here, host),
        keel_op_barrier(),        keel_op_copy(host, here),
    };
    return keel_queue_submit(w->queues[i], KEEL_NO_WAITS, ops, sizeof ops / sizeof *ops,
                             KEEL_NO_SIGNALS, &w->points[i]);
}

static keel_status_t device_use(const char *uri, warmed_t *w)
{
    // One part more, for a partner.
    keel_buffer_options_t here = {.size = (QUEUES + 1) * SIZE};
    keel_buffer_options_t host = {.size = here.size,
                                  .memory = KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_DEVICE_VISIBLE};
    keel_clock_pair_t pair;
    keel_status_t status = keel_device_open(uri, NULL, &w->device);
    if (!status) status = keel_device_clock(w->device, &pair);
    if (!status) status = keel_buffer_create(w->device, &here, &w->here);
    if (!status) status = keel_buffer_create(w->device, &host, &w->host);
    if (status) return status;
    const keel_caps_t *caps = keel_device_caps(w->device);
    keel_queue_options_t options = {.priority = caps->min_priority};
    for (; options.priority <= caps->max_priority && w->count < QUEUES && !status;
         options.priority++) {
        size_t i = w->count++;
        status = keel_queue_create(w->device, &options, &w->queues[i]);
        if (!status) status = queue_use(w, i);
    }
    return status;
}

static void device_finish(warmed_t *w)
{
    for (size_t i = 0; i < w->count; i++) {
        if (w->points[i].semaphore)
            keel_status_release(keel_wait(KEEL_POINTS(w->points[i]), KEEL_ALL, KEEL_FOREVER));
        keel_queue_release(w->queues[i]);
    }
    keel_buffer_release(w->here);
    keel_buffer_release(w->host);
    keel_device_release(w->device);
}

// Opens the device so many times at once. Whatever fails here the test will meet, too.
static void vendor_use(const char *uri, size_t count)
{
    warmed_t used[BESIDE] = {{0}};
    for (size_t i = 0; i < count; i++) keel_status_release(device_use(uri, &used[i]));
    for (size_t i = 0; i < count; i++) device_finish(&used[i]);
}

// Shows memory of the host to the device: HIP shows it to every GPU then, and starts threads for
// the first one if only another was open.
static void memory_show(keel_device_t *device)
{
    static _Alignas(4096) char memory[4096];
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_HOST, .handle.host = memory};
    keel_buffer_t *buffer = NULL;
    external.size = sizeof memory;
    if (device) keel_status_release(keel_buffer_import(device, &external, NULL, &buffer));
    keel_buffer_release(buffer);
}

// Most vendors start what they keep with the first device. One that has more threads after some
// work than after the first opening keeps threads for work, and starts them as they are needed: it
// is given as much work at once as has it start all of them. The first device stays open meanwhile:
// some make their context anew after the last one is closed, which takes most of a test's time.
static void warm_up_vendor(const char *uri)
{
    keel_device_t *device = NULL;
    if (strncmp(uri, "cpu:", 4) == 0 || strncmp(uri, "null:", 5) == 0) return;
    keel_status_release(keel_device_open(uri, NULL, &device));
    memory_show(device);
    int before = threads_now();
    vendor_use(uri, 1);
    if (threads_now() > before) vendor_use(uri, BESIDE);
    keel_device_release(device);
}

// Opens each device of the driver: a vendor may keep threads for each of its GPUs, from when it is
// opened first (ROCm's runtime, a queue of its own on each).
static void warm_up_listed(const char *uri)
{
    keel_device_listing_t devices[64];
    size_t count = 0;
    char driver[32];
    snprintf(driver, sizeof driver, "%.*s", (int)strcspn(uri, ":"), uri);
    keel_status_release(keel_device_list(driver, devices, 64, &count));
    for (size_t i = 0; i < count && i < 64; i++) {
        keel_device_t *device = NULL;
        keel_status_release(keel_device_open(devices[i].uri, NULL, &device));
        keel_device_release(device);
    }
}

// Two devices that have copied to each other.
static void warm_up_partner(const char *uri, const char *partner)
{
    warmed_t used[2] = {{0}};
    keel_status_t status = device_use(uri, &used[0]);
    if (!status) status = device_use(partner, &used[1]);
    for (int i = 0; i < 2 && !status; i++) {
        keel_point_t done;
        status = keel_queue_copy(keel_device_queue(used[i].device, 0), KEEL_NO_WAITS,
                                 keel_span(used[i].here, QUEUES * SIZE, SIZE),
                                 keel_span(used[!i].here, QUEUES * SIZE, SIZE), &done);
        if (!status) status = keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
    }
    keel_status_release(status);
    for (int i = 0; i < 2; i++) device_finish(&used[i]);
}

void warm_up(const settings_t *settings, const test_t *test)
{
    pthread_t thread;
    size_t count;
    fflush(NULL);
    // ThreadSanitizer starts a thread of its own with the first one of the process.
    if (pthread_create(&thread, NULL, do_nothing, NULL) == 0) pthread_join(thread, NULL);
    // What stands in for a vendor leaves nothing behind, unless the vendor's own library is there.
    const vendor_t *vendor = fault_vendor(settings->uri);
    bool bare = settings->mode != MODE_FAULT && settings->mode != MODE_SHUFFLE;
    if (bare || (vendor && vendor->keeps)) {
        warm_up_vendor(settings->uri);
        if (test && test->opens) warm_up_listed(settings->uri);
    }
    if (bare && settings->partner) {
        warm_up_vendor(settings->partner);
        warm_up_partner(settings->uri, settings->partner);
    }
    if (test && test->lists) keel_status_release(keel_device_list(NULL, NULL, 0, &count));
}
