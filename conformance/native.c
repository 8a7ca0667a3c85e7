// SPDX-License-Identifier: Apache-2.0
// The vendor's own objects behind devices, queues and points. What such an object is, only the
// vendor's library can tell: here it is whether there is one, which one, and when.
#include "suite/suite.h"

enum { LAST = KEEL_NATIVE_METAL_EVENT };

typedef struct uses_t {
    int count;
    uint64_t handle;
    keel_status_t answer;
} uses_t;

static keel_status_t use(void *user, uint64_t handle)
{
    uses_t *uses = user;
    uses->count++;
    uses->handle = handle;
    return uses->answer;
}

// That the call has no such object.
#define HAS_NONE(call) FAILS_SAYING(KEEL_UNSUPPORTED, "there is no CU", call)

// A status of which only the code matters.
static keel_code_t code_of(keel_status_t status)
{
    keel_code_t code = keel_status_code(status);
    keel_status_release(status);
    return code;
}

// The kind of objects that queues have; those of devices and of points are other ones.
static keel_native_t kind_of_queues(void)
{
    keel_native_t found = 0;
    for (int kind = 1; kind <= LAST; kind++) {
        uint64_t handle = 0;
        if (code_of(keel_queue_native(the_queue(), (keel_native_t)kind, &handle))) continue;
        CHECK(!found);
        CHECK(handle);
        found = (keel_native_t)kind;
    }
    return found;
}

TEST(native, bit_says_whether)
{
    bool has = the_caps()->bits & KEEL_CAP_NATIVE;
    int found = 0;
    for (int kind = 1; kind <= LAST; kind++) {
        uint64_t handle;
        found += !code_of(keel_device_native(the_device(), (keel_native_t)kind, &handle));
    }
    CHECK_EQ(found > 0, has);
    CHECK_EQ(kind_of_queues() != 0, has);
}

TEST(native, devices_have_no_streams)
{
    uint64_t handle;
    HAS_NONE(keel_device_native(the_device(), KEEL_NATIVE_CUDA_STREAM, &handle));
    HAS_NONE(keel_device_native(the_device(), KEEL_NATIVE_CUDA_EVENT, &handle));
    HAS_NONE(keel_queue_native(the_queue(), KEEL_NATIVE_CUDA_CONTEXT, &handle));
    FAILS_SAYING(KEEL_UNSUPPORTED, "there is no hipStream_t",
                 keel_device_native(the_device(), KEEL_NATIVE_HIP_STREAM, &handle));
}

TEST(native, each_queue_has_its_own, .needs = KEEL_CAP_NATIVE)
{
    keel_native_t kind = kind_of_queues();
    uint64_t first = 0, again = 0, other = 0;
    TRY(keel_queue_native(the_queue(), kind, &first));
    TRY(keel_queue_native(the_queue(), kind, &again));
    TRY(keel_queue_native(new_queue(0), kind, &other));
    CHECK_EQ(first, again);
    CHECK(first != other);
}

// Asks for every kind until the work is on the device.
static keel_native_t event_find(keel_point_t point, uses_t *uses)
{
    uint64_t end = keel_now_ns() + patience();
    for (int kind = 1; keel_now_ns() < end; kind = kind % LAST + 1) {
        keel_code_t code = code_of(keel_point_native(point, (keel_native_t)kind, use, uses));
        if (!code || faulted()) return (keel_native_t)kind;
        CHECK(code == KEEL_FAILED_PRECONDITION || code == KEEL_UNSUPPORTED);
        CHECK_EQ(uses->count, 0);
    }
    return 0;
}

// Work that is under way has an event, until it has ended.
TEST(native, event_behind_work, .needs = KEEL_CAP_NATIVE | KEEL_CAP_EXECUTES,
     .also = NEED_OVERLAP | NEED_POINT_OBJECTS)
{
    uses_t *uses = scratch(sizeof *uses);
    keel_buffer_t *words = new_buffer(16);
    CHECK(kind_of_queues()); // who asks for no handles needs no events
    keel_point_t held = queue_hold(new_queue(0), words, 10000);
    keel_native_t kind = event_find(held, uses);
    bool was_held = pending(held);
    if (was_held && !faulted()) {
        CHECK(kind);
        CHECK_EQ(uses->count, 1);
        CHECK(uses->handle);
        uses->answer = KEEL_ERROR(KEEL_ABORTED, "of the function");
        FAILS_SAYING(KEEL_ABORTED, "of the function", keel_point_native(held, kind, use, uses));
    }
    reach(submit(keel_op_fill(keel_span(words, 8, 4), 1, 1)));
    reach(held);
    int before = uses->count;
    TRY(keel_point_native(held, kind ? kind : KEEL_NATIVE_CUDA_EVENT, use, uses));
    CHECK_EQ(uses->count, before);
}

TEST(native, points_without_one)
{
    uses_t *uses = scratch(sizeof *uses);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t waits = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_barrier());
    const keel_point_t points[] = {waits, keel_point(gate, 1)};
    for (size_t i = 0; i < COUNT(points); i++) {
        row("point %zu", i);
        // A device may know before its work has begun that there will be none.
        keel_code_t code = code_of(keel_point_native(points[i], KEEL_NATIVE_CUDA_EVENT, use, uses));
        CHECK(code == KEEL_FAILED_PRECONDITION || code == KEEL_UNSUPPORTED || faulted());
    }
    TRY(keel_semaphore_fail(gate, KEEL_ERROR(KEEL_CORRUPT, "on purpose")));
    reach_failure(waits, KEEL_CORRUPT);
    for (size_t i = 0; i < COUNT(points); i++)
        FAILS_SAYING(KEEL_CORRUPT, "on purpose",
                     keel_point_native(points[i], KEEL_NATIVE_CUDA_EVENT, use, uses));
    TRY(keel_point_native(keel_point(gate, 0), KEEL_NATIVE_CUDA_EVENT, use, uses));
    CHECK_EQ(uses->count, 0);
}

TEST(native, bad_arguments)
{
    uint64_t handle;
    uses_t uses = {0};
    keel_native_t kind = KEEL_NATIVE_CUDA_EVENT;
    keel_point_t point = keel_point(new_semaphore(0), 0), nowhere = keel_point(NULL, 1);
    keel_point_t unknown = keel_point(keel_queue_timeline(the_queue()), 100);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device", keel_device_native(NULL, kind, &handle));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "handle", keel_device_native(the_device(), kind, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "kind", keel_device_native(the_device(), 0, &handle));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "queue", keel_queue_native(NULL, kind, &handle));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "handle", keel_queue_native(the_queue(), kind, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "kind", keel_queue_native(the_queue(), 99, &handle));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "use", keel_point_native(point, kind, NULL, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "kind", keel_point_native(point, LAST + 1, use, &uses));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "semaphore", keel_point_native(nowhere, kind, use, &uses));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "100", keel_point_native(unknown, kind, use, &uses));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "until",
                 keel_point_native(keel_ended(point), kind, use, &uses));
}
