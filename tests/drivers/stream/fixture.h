// SPDX-License-Identifier: Apache-2.0
// What tests of the stream core on the fake vendor have in common: a device with kernels, on each
// kind of vendor in turn.
#ifndef TESTS_DRIVERS_STREAM_FIXTURE_H_
#define TESTS_DRIVERS_STREAM_FIXTURE_H_

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "drivers/stream/vendor.h"
#include "unit.h"

#define QUIRKS                                                                                     \
    {                                                                                              \
        .pending = 8,                                                                              \
        .launch_graphs = 4,                                                                        \
        .graph_room = 4,                                                                           \
        .small_transfer = 4096,                                                                    \
        .rebind_least = 4,                                                                         \
        .fill_word = 8,                                                                            \
        .graph_waits = true,                                                                       \
        .free_waits = true,                                                                        \
        .locks_pages = true,                                                                       \
        .pool_lags = true,                                                                         \
    }

// Streams whose room is shared, and where all that is on them takes some.
#define SHARED_ROOM                                                                                \
    {                                                                                              \
        .pending = 16,                                                                             \
        .transfer_room = 3,                                                                        \
        .event_room = 2,                                                                           \
        .full_shared = true,                                                                       \
        .waits_shared = true,                                                                      \
        .graph_unrolls = true,                                                                     \
    }

static const vendor_kind_t kinds[] = {
    {.name = "required slots alone"},
    {.name = "required slots, with quirks", .clock_khz = 100000, .quirks = QUIRKS},
    {.name = "plain graphs", .features = STREAM_GRAPHS},
    {.name = "plain graphs, shared room", .features = STREAM_GRAPHS, .quirks = SHARED_ROOM},
    {.name = "all features", .features = VENDOR_FEATURES},
    {.name = "all features, with quirks", .features = VENDOR_FEATURES, .quirks = QUIRKS},
};

static const vendor_kind_t *kind;
static keel_device_t *device;
static keel_queue_t *queue; // the device's own, the vendor's queue 0
static keel_executable_t *executable;
static keel_entry_t add, raw_add; // see vendor_image
static bool lost;                 // the test has lost the device
static char where[128];           // in front of messages

static inline void ok_status(keel_status_t status)
{
    if (status) fail_msg("%s", keel_status_message(status));
}

// Waits until the point is reached.
static inline void ok(keel_point_t point)
{
    ok_status(keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER));
}

// Waits until it has ended, and it must have failed so.
static inline void fails(keel_point_t point, keel_code_t code, const char *words)
{
    char text[2048];
    keel_status_t status = keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER);
    keel_status_format(status, text, sizeof text);
    if (keel_status_code(status) != code || !strstr(text, words))
        fail_msg("%s\ndoes not say: %s: %s", text, keel_code_name(code), words);
    keel_status_release(status);
}

static inline bool is_reached(keel_point_t point)
{
    keel_status_t status = keel_wait(KEEL_POINTS(point), KEEL_ALL, 0);
    keel_status_release(status);
    return !status;
}

static inline keel_status_t kernels_load(keel_device_t *on, keel_executable_t **loaded)
{
    void *bytes = NULL;
    keel_executable_options_t options = {.name = "kernels"};
    KEEL_TRY(vendor_image(&bytes, &options.size));
    options.data = bytes;
    keel_status_t status = keel_executable_load(on, &options, loaded);
    mem_free(bytes);
    return status;
}

// Everything is released, and nothing is left of it, here or at the vendor's.
static inline void all_is_gone(bool after_loss)
{
    static const keel_live_t none;
    keel_live_t live;
    keel_live_objects(&live);
    const char *misuse = vendor_end(after_loss);
    if (*misuse) fail_msg("%s%s", where, misuse);
    if (memcmp(&live, &none, sizeof live))
        fail_msg(
            "%sleft: %d devices, %d queues, %d semaphores, %d buffers, %d pools, %d executables"
            ", %d recordings, %d files, %d submissions, %d statuses",
            where, (int)live.devices, (int)live.queues, (int)live.semaphores, (int)live.buffers,
            (int)live.pools, (int)live.executables, (int)live.recordings, (int)live.files,
            (int)live.submissions, (int)live.statuses);
}

static inline int fixture_open(void **state)
{
    (void)state;
    lost = false;
    vendor_begin(kind);
    ok_status(keel_device_open("fake://", NULL, &device));
    queue = keel_device_queue(device, 0);
    ok_status(kernels_load(device, &executable));
    ok_status(keel_executable_entry(executable, "add", &add));
    ok_status(keel_executable_entry(executable, "raw_add", &raw_add));
    return 0;
}

static inline int fixture_close(void **state)
{
    (void)state;
    vendor_go();
    keel_executable_release(executable);
    keel_device_release(device);
    all_is_gone(lost);
    return 0;
}

static inline keel_buffer_t *buffer_create(uint64_t size)
{
    keel_buffer_options_t options = {.size = size};
    keel_buffer_t *buffer = NULL;
    ok_status(keel_buffer_create(device, &options, &buffer));
    return buffer;
}

// The memory of a buffer, which the host sees as the device does.
static inline uint32_t *words_of(keel_buffer_t *buffer)
{
    uint64_t address = 0;
    ok_status(keel_buffer_address(buffer, &address));
    return (uint32_t *)(uintptr_t)address;
}

// A buffer with these numbers.
static inline keel_buffer_t *numbers(uint32_t a, uint32_t b, uint32_t c)
{
    keel_buffer_t *buffer = buffer_create(64);
    uint32_t *words = words_of(buffer);
    memset(words, 0, 64);
    words[0] = a;
    words[1] = b;
    words[2] = c;
    return buffer;
}

// Adds k for each of so many groups.
static inline keel_op_t op_add(keel_ref_t *target, const uint32_t *k, uint32_t groups)
{
    return keel_op_dispatch(add, keel_groups(groups, 1, 1), k, sizeof *k, keel_refs(target, 1));
}

// What raw_add takes.
typedef struct raw_t {
    struct {
        uint64_t target;
        uint32_t k, zero;
    } block;
    keel_patch_t patch;
} raw_t;

// The same with a kernel made elsewhere, by the grid in memory.
static inline keel_op_t op_raw_add(raw_t *raw, keel_ref_t target, uint32_t k, keel_ref_t counts)
{
    *raw = (raw_t){.block.k = k, .patch = {0, target}};
    keel_op_t op = keel_op_dispatch(raw_add, keel_groups(1, 1, 1), &raw->block, sizeof raw->block,
                                    KEEL_NO_BINDINGS);
    op.as.dispatch.raw = true;
    op.as.dispatch.patches = &raw->patch;
    op.as.dispatch.patch_count = 1;
    op.as.dispatch.counts_kind = KEEL_COUNTS_DYNAMIC;
    op.as.dispatch.counts = counts;
    return op;
}

static inline keel_recording_t *record(const keel_op_t *ops, size_t count, uint32_t slots)
{
    keel_recording_t *recording = NULL;
    keel_recording_options_t options = {.slots = slots, .name = "recording"};
    ok_status(keel_recording_create(device, &options, &recording));
    ok_status(keel_recording_add(recording, ops, count));
    ok_status(keel_recording_end(recording));
    return recording;
}

static inline keel_point_t submit(keel_queue_t *on, keel_points_t waits, const keel_op_t *ops,
                                  size_t count)
{
    keel_point_t done;
    ok_status(keel_queue_submit(on, waits, ops, count, KEEL_NO_SIGNALS, &done));
    return done;
}

static inline keel_point_t execute(keel_queue_t *on, keel_recording_t *recording,
                                   keel_refs_t bindings)
{
    keel_op_t op = keel_op_execute(recording, bindings);
    return submit(on, KEEL_NO_WAITS, &op, 1);
}

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define TEST(f)     cmocka_unit_test_setup_teardown(f, fixture_open, fixture_close)

// Runs tests on every kind of vendor.
static inline int run_on_all(const struct CMUnitTest *tests, size_t count)
{
    int failed = 0;
    for (kind = kinds; kind < kinds + COUNT(kinds); kind++)
        failed += unit_run(kind->name, tests, count, NULL, NULL);
    return failed;
}

#endif
