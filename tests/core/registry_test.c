// SPDX-License-Identifier: Apache-2.0
// Drivers of the program, registered and loaded: what is taken, and what is said of the rest.
#include "core/registry.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "unit.h"

static int closed, destroyed;

static void stand_close(keel_device_t *device)
{
    (void)device;
    closed++;
}

static void stand_destroy(keel_device_t *device)
{
    destroyed++;
    mem_free(device);
}

// The slots are looked at and not called.
static keel_device_ops_t whole_ops(void)
{
    keel_device_ops_t ops = {.device_close = stand_close, .device_destroy = stand_destroy};
    memcpy(&ops.device_memory, &ops.device_close, sizeof ops.device_memory);
    memcpy(&ops.queue_create, &ops.device_close, sizeof ops.queue_create);
    memcpy(&ops.queue_destroy, &ops.device_close, sizeof ops.queue_destroy);
    memcpy(&ops.queue_submit, &ops.device_close, sizeof ops.queue_submit);
    memcpy(&ops.buffer_alloc, &ops.device_close, sizeof ops.buffer_alloc);
    memcpy(&ops.buffer_free, &ops.device_close, sizeof ops.buffer_free);
    memcpy(&ops.executable_rank, &ops.device_close, sizeof ops.executable_rank);
    memcpy(&ops.executable_load, &ops.device_close, sizeof ops.executable_load);
    memcpy(&ops.executable_unload, &ops.device_close, sizeof ops.executable_unload);
    return ops;
}

static keel_device_ops_t stand_ops;
static keel_caps_t stand_caps;
static bool opens_nothing;

static keel_status_t stand_list(keel_device_listing_t *devices, size_t capacity, size_t *count)
{
    *count = 1;
    if (capacity) devices[0] = (keel_device_listing_t){.uri = "stand://", .name = "a stand-in"};
    return NULL;
}

static keel_status_t stand_open(const keel_uri_t *uri, keel_device_t **device)
{
    (void)uri;
    if (opens_nothing) return NULL;
    *device = mem_zalloc(sizeof **device);
    assert_non_null(*device);
    (*device)->ops = &stand_ops;
    (*device)->caps = stand_caps;
    return NULL;
}

static const keel_driver_t stand = {KEEL_DRIVER_HEAD, .name = "stand", .list = stand_list,
                                    .open = stand_open};

static void assert_says(keel_status_t status, keel_code_t code, const char *words)
{
    char text[1024];
    keel_status_format(status, text, sizeof text);
    if (keel_status_code(status) != code || !strstr(text, words))
        fail_msg("%s\ndoes not say: %s: %s", text, keel_code_name(code), words);
    keel_status_release(status);
}

static void refuses_what_is_no_driver(void **state)
{
    (void)state;
    keel_driver_t bad = stand;
    assert_says(keel_driver_register(NULL), KEEL_INVALID_ARGUMENT, "driver is NULL");
    bad.version = KEEL_DRIVER_VERSION + 1;
    bad.layout = 0;
    bad.name = NULL;
    assert_says(keel_driver_register(&bad), KEEL_UNSUPPORTED,
                "was built for version 2 of Keel's driver interface; this library has version 1");
    bad = stand;
    bad.layout++;
    assert_says(keel_driver_register(&bad), KEEL_UNSUPPORTED, "build it again with the headers");
    static const char *const names[] = {NULL,  "",    "Stand", "1st",
                                        "a b", "a_b", "a:b",   "abcdefghijklmnopqrstuvwxyzabcdef"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bad = stand;
        bad.name = names[i];
        assert_says(keel_driver_register(&bad), KEEL_INVALID_ARGUMENT,
                    "must be a lower-case letter and at most 30 more");
    }
    bad = stand;
    bad.list = NULL;
    assert_says(keel_driver_register(&bad), KEEL_INVALID_ARGUMENT, "'stand' has no `list`");
    bad = stand;
    bad.open = NULL;
    assert_says(keel_driver_register(&bad), KEEL_INVALID_ARGUMENT, "'stand' has no `open`");
    keel_device_t *device = NULL;
    assert_says(keel_device_open("stand://", NULL, &device), KEEL_NOT_FOUND, "no driver is called");
}

static void takes_one_of_a_name(void **state)
{
    (void)state;
    keel_device_listing_t info;
    size_t count = 0, before = 0;
    assert_null(keel_device_list(NULL, NULL, 0, &before));
    assert_null(keel_driver_register(&stand));
    assert_null(keel_driver_register(&stand));
    assert_null(keel_device_list(NULL, NULL, 0, &count));
    assert_int_equal(count, before + 1);
    assert_null(keel_device_list("stand", &info, 1, &count));
    assert_int_equal(count, 1);
    assert_string_equal(info.name, "a stand-in");
    keel_driver_t other = stand;
    assert_says(keel_driver_register(&other), KEEL_FAILED_PRECONDITION,
                "there is a driver called 'stand' already");
    other.name = "cpu";
    assert_says(keel_driver_register(&other), KEEL_FAILED_PRECONDITION,
                "there is a driver called 'cpu' already");
}

// Opens a device with these ops and caps, which is refused.
static void assert_refused(const keel_device_ops_t *ops, const keel_caps_t *caps, const char *words)
{
    keel_device_t *device = NULL;
    stand_ops = *ops;
    stand_caps = *caps;
    closed = destroyed = 0;
    assert_says(keel_device_open("stand://", NULL, &device), KEEL_INTERNAL, words);
    assert_null(device);
    assert_int_equal(closed, ops->device_close ? 1 : 0);
    assert_int_equal(destroyed, 1);
}

static const keel_caps_t whole_caps = {
    .nodes = 1, .buffer_alignment = 64, .memory_types = {KEEL_MEMORY_HOST_VISIBLE}};

static void refuses_slots_that_disagree(void **state)
{
    (void)state;
    keel_device_ops_t ops = whole_ops();
    keel_caps_t caps = whole_caps;
    ops.queue_submit = NULL;
    assert_refused(&ops, &caps, "driver 'stand': the slot queue_submit of the ops table is empty");
    ops = whole_ops();
    ops.device_close = NULL;
    assert_refused(&ops, &caps, "the slot device_close of the ops table is empty; it is required");
    ops = whole_ops();
    caps.bits = KEEL_CAP_QUEUE_ALLOCA;
    assert_refused(&ops, &caps,
                   "the slot pool_create of the ops table is empty, but KEEL_CAP_QUEUE_ALLOCA is "
                   "set: fill the slot, or clear the bit");
    caps.bits = 0;
    memcpy(&ops.buffer_export, &ops.device_close, sizeof ops.buffer_export);
    assert_refused(&ops, &caps,
                   "the slot buffer_export of the ops table is filled, but KEEL_CAP_EXPORT_FD is "
                   "not set: set the bit, or leave the slot empty");
    ops = whole_ops();
    memcpy(&ops.recording_prepare, &ops.device_close, sizeof ops.recording_prepare);
    assert_refused(&ops, &caps, "recording_prepare and recording_discard");
    ops = whole_ops();
    memcpy(&ops.semaphore_create, &ops.device_close, sizeof ops.semaphore_create);
    assert_refused(&ops, &caps,
                   "the slot semaphore_create of the ops table is filled, but queue_cancel is "
                   "empty: what waits on the device would not end");
}

static void refuses_caps_that_cannot_be(void **state)
{
    (void)state;
    keel_device_ops_t ops = whole_ops();
    keel_caps_t caps = whole_caps;
    caps.bits = KEEL_CAP_DLPACK;
    assert_refused(&ops, &caps, "caps.dlpack and KEEL_CAP_DLPACK go together");
    caps = whole_caps;
    caps.native = KEEL_CAP_EVENTS;
    assert_refused(&ops, &caps, "caps.native has bits 0x8 that caps.bits has not");
    caps = whole_caps;
    caps.nodes = 0;
    assert_refused(&ops, &caps, "caps.nodes is 0");
    caps = whole_caps;
    caps.memory_types[0] = 0;
    assert_refused(&ops, &caps, "caps.memory_types is empty");
    caps = whole_caps;
    caps.buffer_alignment = 48;
    assert_refused(&ops, &caps, "caps.buffer_alignment is 48; it is a power of two");
}

static void refuses_no_device(void **state)
{
    (void)state;
    keel_device_t *device = NULL;
    opens_nothing = true;
    assert_says(keel_device_open("stand://", NULL, &device), KEEL_INTERNAL, "has opened nothing");
    opens_nothing = false;
}

enum { THREADS = 8 };

static void *register_one(void *driver)
{
    return keel_driver_register(driver);
}

// Drivers of the same name come at once: one is taken.
static void threads_agree(void **state)
{
    (void)state;
    static keel_driver_t same[THREADS];
    pthread_t threads[THREADS];
    int taken = 0;
    for (int i = 0; i < THREADS; i++) {
        same[i] = stand;
        same[i].name = "same";
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, register_one, &same[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *status;
        pthread_join(threads[i], &status);
        if (!status)
            taken++;
        else
            assert_says(status, KEEL_FAILED_PRECONDITION, "a driver called 'same' already");
    }
    assert_int_equal(taken, 1);
}

// The last test: afterwards there is no room.
static void refuses_too_many(void **state)
{
    (void)state;
    static keel_driver_t many[KEEL_MAX_DRIVERS];
    static char names[KEEL_MAX_DRIVERS][8];
    keel_status_t status = NULL;
    int taken = 0;
    for (; taken < KEEL_MAX_DRIVERS && !status; taken++) {
        snprintf(names[taken], sizeof names[taken], "many%d", taken);
        many[taken] = stand;
        many[taken].name = names[taken];
        status = keel_driver_register(&many[taken]);
    }
    assert_int_equal(taken, KEEL_MAX_DRIVERS - 1); // two are there, and one was refused
    assert_says(status, KEEL_RESOURCE_EXHAUSTED, "64 can be registered besides Keel's own");
    const keel_driver_t *found;
    assert_null(registry_find("many0", &found));
    assert_null(registry_find("cpu", &found));
}

static void loads_drivers_only(void **state)
{
    (void)state;
    assert_says(keel_driver_load(NULL), KEEL_INVALID_ARGUMENT, "path is NULL");
    assert_says(keel_driver_load("libstand.so"), KEEL_INVALID_ARGUMENT, "as in ./libstand.so");
    assert_says(keel_driver_load("./no-such-file.so"), KEEL_NOT_FOUND, "No such file");
    assert_says(keel_driver_load(SOURCE_DIR "/README.md"), KEEL_UNSUPPORTED,
                "README.md' is refused as a driver");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_is_no_driver),
        cmocka_unit_test(takes_one_of_a_name),
        cmocka_unit_test(refuses_slots_that_disagree),
        cmocka_unit_test(refuses_caps_that_cannot_be),
        cmocka_unit_test(refuses_no_device),
        cmocka_unit_test(loads_drivers_only),
        cmocka_unit_test(threads_agree),
        cmocka_unit_test(refuses_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
