// SPDX-License-Identifier: Apache-2.0
// Events of the program's as semaphores: who signals, who is woken, and what is left behind.
#include <pthread.h>

#include "drivers/metal/hold.h"
#include "drivers/metal/program.h"

enum { SIZE = 4096, WARM = 8 };

static const char *const signal_event = "encodeSignalEvent:value:";
static const char *const raise_event = "setSignaledValue:";
static const char *const notify = "notifyListener:atValue:block:";

typedef struct rig_t {
    keel_device_t *device;
    object_t event; // the program's
    keel_semaphore_t *semaphore;
    keel_buffer_t *x;
} rig_t;

static keel_semaphore_t *import(keel_device_t *device, object_t event)
{
    keel_external_semaphore_t external = {.kind = KEEL_SEMAPHORE_NATIVE, .handle.object = event};
    keel_semaphore_t *semaphore = NULL;
    assert_null(keel_semaphore_import(device, &external, NULL, &semaphore));
    return semaphore;
}

// By the program's own ways: one that asks Keel for a handle gets events with all work from then
// on.
static object_t event_make(void)
{
    object_t (*copy_devices)(void);
    *(void **)&copy_devices = sim_symbol("MTLCopyAllDevices");
    object_t devices = copy_devices();
    object_t event = send_for(send_for(devices, "objectAtIndex:", 0, 0), "newSharedEvent", 0, 0);
    assert_non_null(event);
    send(devices, "release", 0, 0);
    return event;
}

static rig_t rig_open(void)
{
    rig_t rig = {.device = device_open()};
    rig.event = event_make();
    rig.semaphore = import(rig.device, rig.event);
    rig.x = buffer_create(rig.device, SIZE);
    return rig;
}

// After it, no object is alive.
static void rig_close(rig_t *rig)
{
    keel_buffer_release(rig->x);
    keel_semaphore_release(rig->semaphore);
    send(rig->event, "release", 0, 0);
    device_close(rig->device);
}

static uint64_t value_there(const rig_t *rig)
{
    return send(rig->event, "signaledValue", 0, 0);
}

static void signal_there(const rig_t *rig, uint64_t value)
{
    send(rig->event, raise_event, value, 0);
}

static uint64_t value_here(const rig_t *rig)
{
    uint64_t value = 0;
    assert_null(keel_semaphore_value(rig->semaphore, &value));
    return value;
}

static keel_point_t submit_with(const rig_t *rig, keel_points_t after, keel_op_t op,
                                keel_points_t signals)
{
    keel_point_t point = keel_point(NULL, 0);
    assert_null(
        keel_queue_submit(keel_device_queue(rig->device, 0), after, &op, 1, signals, &point));
    return point;
}

static keel_op_t work(const rig_t *rig)
{
    return keel_op_fill(keel_whole(rig->x), 7, 1);
}

static bool is_pending(keel_point_t point)
{
    keel_status_t status = keel_wait(KEEL_POINTS(point), KEEL_ALL, 0);
    bool pending = keel_status_code(status) == KEEL_DEADLINE_EXCEEDED;
    keel_status_release(status);
    return pending;
}

// The command buffer that does the work signals, in the order of the list, up to the first signal
// that is the host's.
static void gpu_signals(void)
{
    rig_t rig = rig_open();
    keel_semaphore_t *own = NULL;
    assert_null(keel_semaphore_create(rig.device, NULL, &own));
    uint64_t signals = sim_sent(signal_event), raises = sim_sent(raise_event);
    ok(submit_with(&rig, KEEL_NO_WAITS, work(&rig), KEEL_SIGNAL(keel_point(rig.semaphore, 3))));
    assert_int_equal(sim_sent(signal_event) - signals, 1);
    assert_int_equal(sim_sent(raise_event) - raises, 0);
    assert_int_equal(value_there(&rig), 3);
    ok(submit_with(&rig, KEEL_NO_WAITS, work(&rig),
                   KEEL_SIGNAL(keel_point(own, 1), keel_point(rig.semaphore, 4))));
    assert_int_equal(sim_sent(signal_event) - signals, 1);
    assert_int_equal(sim_sent(raise_event) - raises, 1);
    assert_int_equal(value_there(&rig), 4);
    ok(submit_with(&rig, KEEL_NO_WAITS, keel_op_barrier(),
                   KEEL_SIGNAL(keel_point(rig.semaphore, 5)))); // there is no command buffer
    assert_int_equal(sim_sent(signal_event) - signals, 1);
    assert_int_equal(value_there(&rig), 5);
    keel_semaphore_release(own);
    rig_close(&rig);
}

// A submission that went ahead may turn out to do nothing: its command buffer must not signal.
static void ahead(void)
{
    rig_t rig = rig_open();
    hold_t hold = hold_make(rig.device);
    keel_queue_t *queue = keel_device_queue(rig.device, 0);
    keel_point_t point = keel_point(NULL, 0);
    for (int i = 0; i < WARM; i++) { // promises are made from here on
        keel_point_t held = hold_submit(queue, &hold);
        point = submit(rig.device, KEEL_AFTER(held), work(&rig));
        hold_let_go(&hold);
        ok(point);
    }
    uint64_t signals = sim_sent(signal_event), raises = sim_sent(raise_event);
    keel_point_t held = hold_submit(queue, &hold);
    point =
        submit_with(&rig, KEEL_AFTER(held), work(&rig), KEEL_SIGNAL(keel_point(rig.semaphore, 1)));
    hold_let_go(&hold);
    ok(point);
    assert_int_equal(value_there(&rig), 1);
    assert_int_equal(sim_sent(signal_event) - signals, 0);
    assert_int_equal(sim_sent(raise_event) - raises, 1);
    hold_release(&hold);
    rig_close(&rig);
}

// Work of the program's on a queue of its own, before and behind work of Keel's.
static void another_queue(void)
{
    rig_t rig = rig_open();
    object_t queue = send_for(gpu_of(rig.device), "newCommandQueue", 0, 0);
    keel_point_t done = submit_with(&rig, KEEL_AFTER(keel_point(rig.semaphore, 1)), work(&rig),
                                    KEEL_SIGNAL(keel_point(rig.semaphore, 2)));
    assert_true(is_pending(done));
    void *pool = pool_push();
    object_t before = send_for(queue, "commandBuffer", 0, 0);
    object_t behind = send_for(queue, "commandBuffer", 0, 0);
    send(before, signal_event, (uintptr_t)rig.event, 1);
    send(behind, "encodeWaitForEvent:value:", (uintptr_t)rig.event, 2);
    send(behind, signal_event, (uintptr_t)rig.event, 3);
    send(before, "commit", 0, 0);
    send(behind, "commit", 0, 0);
    send(behind, "waitUntilCompleted", 0, 0);
    assert_int_equal(value_there(&rig), 3);
    ok(done);
    ok(keel_point(rig.semaphore, 3));
    pool_pop(pool);
    send(queue, "release", 0, 0);
    rig_close(&rig);
}

// A thread that polls finds what is there, and never has a listener.
static void polled(void)
{
    rig_t rig = rig_open();
    object_t other = event_make();
    keel_semaphore_t *second = import(rig.device, other);
    keel_point_t points[] = {keel_point(rig.semaphore, 1), keel_point(second, 1)};
    for (int i = 0; i < 3; i++) assert_true(is_pending(points[0]));
    signal_there(&rig, 1);
    assert_null(keel_wait(keel_points(points, 2), KEEL_ANY, 0));
    assert_true(is_pending(points[1]));
    send(other, raise_event, 2, 0);
    points[0].value = points[1].value = 2;
    signal_there(&rig, 2);
    assert_null(keel_wait(keel_points(points, 2), KEEL_ALL, 0));
    assert_int_equal(sim_sent(notify), 0);
    keel_semaphore_release(second);
    send(other, "release", 0, 0);
    rig_close(&rig);
}

static void *wait_on_thread(void *user)
{
    const rig_t *rig = user;
    ok(keel_point(rig->semaphore, 2));
    return NULL;
}

// A listener wakes a thread that sleeps; where none does, no listener is made.
static void who_is_woken(void)
{
    rig_t rig = rig_open();
    pthread_t thread;
    signal_there(&rig, 1);
    ok(keel_point(rig.semaphore, 1));
    ok(submit_with(&rig, KEEL_AFTER(keel_point(rig.semaphore, 1)), work(&rig), KEEL_NO_SIGNALS));
    assert_int_equal(value_here(&rig), 1);
    assert_int_equal(sim_sent(notify), 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_on_thread, &rig), 0);
    while (sim_sent(notify) < 1) sched_yield(); // it is about to sleep
    signal_there(&rig, 2);
    assert_int_equal(pthread_join(thread, NULL), 0);
    rig_close(&rig);
}

// The value of a listener that is late is known by other ways: the next value has one of its own.
static void late(void)
{
    rig_t rig = rig_open();
    keel_point_t first =
        submit_with(&rig, KEEL_AFTER(keel_point(rig.semaphore, 1)), work(&rig), KEEL_NO_SIGNALS);
    assert_int_equal(sim_sent(notify), 1);
    signal_there(&rig, 1);
    assert_int_equal(value_here(&rig), 1);
    ok(first);
    keel_point_t second =
        submit_with(&rig, KEEL_AFTER(keel_point(rig.semaphore, 2)), work(&rig), KEEL_NO_SIGNALS);
    assert_int_equal(sim_sent(notify), 2);
    signal_there(&rig, 2);
    ok(second);
    rig_close(&rig);
}

// Of several values that are awaited the smallest has a listener, and no value has two.
static void falling_order(void)
{
    rig_t rig = rig_open();
    keel_point_t points[3];
    const uint64_t values[] = {9, 5, 7};
    for (int i = 0; i < 3; i++)
        points[i] = submit_with(&rig, KEEL_AFTER(keel_point(rig.semaphore, values[i])), work(&rig),
                                KEEL_NO_SIGNALS);
    assert_int_equal(sim_sent(notify), 2); // 7 has time
    signal_there(&rig, 5);
    ok(points[1]);
    signal_there(&rig, 7);
    ok(points[2]);
    signal_there(&rig, 9);
    ok(points[0]);
    rig_close(&rig);
}

// A signal that fails is never made, and the host says why.
static void killed(void)
{
    rig_t rig = rig_open();
    keel_point_t done =
        submit_with(&rig, KEEL_NO_WAITS, work(&rig), KEEL_SIGNAL(keel_point(rig.semaphore, 1)));
    keel_status_t status = wait_for(keel_point(rig.semaphore, 1));
    assert_non_null(strstr(keel_status_message(status), "the GPU gave up"));
    keel_status_release(status);
    keel_status_release(wait_for(done));
    assert_int_equal(value_there(&rig), 0);
    signal_there(&rig, 1); // the other side goes on
    assert_non_null(status = keel_semaphore_signal(rig.semaphore, 2));
    keel_status_release(status);
    assert_int_equal(value_there(&rig), 1);
    rig_close(&rig);
}

// With the device goes what waits, here; the event is the program's.
static void lost(void)
{
    rig_t rig = rig_open();
    keel_point_t waits =
        submit_with(&rig, KEEL_AFTER(keel_point(rig.semaphore, 1)), work(&rig), KEEL_NO_SIGNALS);
    keel_status_release(wait_for(submit(rig.device, KEEL_NO_WAITS, work(&rig))));
    keel_status_t status = wait_for(waits);
    assert_int_equal(keel_status_code(status), KEEL_DEVICE_LOST);
    keel_status_release(status);
    assert_int_equal(value_there(&rig), 0);
    signal_there(&rig, 1);
    rig_close(&rig);
}

// A listener cannot be taken back. What it finds when it is called is nothing, and what is never
// called goes with the event.
static void released(void)
{
    rig_t rig = rig_open();
    object_t other = event_make();
    keel_semaphore_t *second = import(rig.device, other);
    keel_completion_t *completion = NULL;
    assert_null(keel_completion_create(&completion));
    keel_point_t points[] = {keel_point(rig.semaphore, 1), keel_point(second, 1)};
    for (int i = 0; i < 2; i++)
        assert_null(keel_completion_add(completion, KEEL_POINTS(points[i]), KEEL_ALL, NULL));
    assert_int_equal(sim_sent(notify), 2);
    keel_completion_release(completion);
    keel_semaphore_release(rig.semaphore);
    keel_semaphore_release(second);
    keel_buffer_release(rig.x);
    keel_device_release(rig.device);
    signal_there(&rig, 1);
    send(rig.event, "release", 0, 0);
    send(other, "release", 0, 0);
    while (sim_objects(NULL)) sched_yield();
}

static void no_listener(void)
{
    keel_device_t *device = device_open();
    object_t event = event_make();
    keel_external_semaphore_t external = {.kind = KEEL_SEMAPHORE_NATIVE, .handle.object = event};
    keel_semaphore_t *semaphore = NULL;
    keel_status_t status = keel_semaphore_import(device, &external, NULL, &semaphore);
    assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
    keel_status_release(status);
    assert_null(semaphore);
    keel_semaphore_release(import(device, event));
    send(event, "release", 0, 0);
    device_close(device);
}

#define CHILD(name, settings)                                                                      \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        run_with(settings, name);                                                                  \
    }
CHILD(gpu_signals, "hazards=1")
CHILD(ahead, "")
CHILD(another_queue, "")
CHILD(polled, "lostnotes=1")
CHILD(who_is_woken, "")
CHILD(late, "late=1000000 seed=5")
CHILD(falling_order, "late=1000 seed=2")
CHILD(killed, "kill=1:3")
CHILD(lost, "kill=1+:11")
CHILD(released, "")
CHILD(no_listener, "fail=new/1")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpu_signals),   cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_another_queue), cmocka_unit_test(test_polled),
        cmocka_unit_test(test_who_is_woken),  cmocka_unit_test(test_late),
        cmocka_unit_test(test_falling_order), cmocka_unit_test(test_killed),
        cmocka_unit_test(test_lost),          cmocka_unit_test(test_released),
        cmocka_unit_test(test_no_listener),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
