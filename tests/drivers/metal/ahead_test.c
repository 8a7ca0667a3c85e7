// SPDX-License-Identifier: Apache-2.0
// Submissions that go ahead of what they wait for: the GPU waits, no thread of the host is between,
// and when a command buffer dies nothing runs that should not.
#include "drivers/metal/hold.h"
#include "kit/semaphore.h"

enum { SIZE = 4096, CHAIN = 200, WARM = 8 };

static const char *const wait_event = "encodeWaitForEvent:value:";
static const char *const signal_event = "encodeSignalEvent:value:";
static const char *const wait_fence = "waitForFence:";
static const char *const raise_event = "setSignaledValue:";

static keel_queue_t *queues[2];
static keel_semaphore_t *gate;

static keel_device_t *rig_open(void)
{
    keel_device_t *device = device_open();
    for (int i = 0; i < 2; i++) assert_null(keel_queue_create(device, NULL, &queues[i]));
    assert_null(keel_semaphore_create(device, NULL, &gate));
    return device;
}

static void rig_close(keel_device_t *device)
{
    keel_semaphore_release(gate);
    for (int i = 0; i < 2; i++) keel_queue_release(queues[i]);
    device_close(device);
}

static keel_point_t run(keel_queue_t *queue, keel_points_t after, keel_op_t op)
{
    keel_point_t point = keel_point(NULL, 0);
    assert_null(keel_queue_run(queue, after, op, &point));
    return point;
}

// A chain of steps behind a point: each copies the word before it. `apart`: every other step is on
// the other queue.
static void chain_after(keel_point_t after, keel_buffer_t *x, keel_point_t *points, int count,
                        bool apart)
{
    points[0] = run(queues[0], KEEL_AFTER(after), keel_op_fill(keel_span(x, 0, 4), 7, 1));
    for (int i = 1; i < count; i++)
        points[i] = run(
            queues[apart ? i % 2 : 0], KEEL_AFTER(points[i - 1]),
            keel_op_copy(keel_span(x, (uint64_t)(i - 1) * 4, 4), keel_span(x, (uint64_t)i * 4, 4)));
}

static void chain_submit(keel_buffer_t *x, keel_point_t *points, int count, bool apart)
{
    chain_after(keel_point(gate, 1), x, points, count, apart);
}

// Promises are made from here on.
static void warm_up(keel_buffer_t *x, bool apart)
{
    keel_point_t points[WARM];
    chain_submit(x, points, WARM, apart);
    assert_null(keel_semaphore_signal(gate, 1));
    ok(points[WARM - 1]);
}

static uint8_t byte_at(keel_buffer_t *x, int word)
{
    uint8_t byte = 0;
    assert_null(keel_buffer_read(x, (uint64_t)word * 4, &byte, 1));
    return byte;
}

typedef struct sent_t {
    uint64_t commits, event_waits, event_signals, fence_waits;
} sent_t;

static sent_t sent_now(void)
{
    return (sent_t){sim_sent("commit"), sim_sent(wait_event), sim_sent(signal_event),
                    sim_sent(wait_fence)};
}

// A chain that the GPU is given while it is held up: what was sent until all was committed.
static sent_t chain(bool apart)
{
    keel_device_t *device = rig_open();
    keel_buffer_t *x = buffer_create(device, SIZE);
    hold_t hold = hold_make(device);
    keel_point_t points[CHAIN];
    warm_up(x, apart);
    ok(run(queues[0], KEEL_NO_WAITS, keel_op_fill(keel_whole(x), 0, 1)));
    sent_t before = sent_now();
    chain_after(hold_submit(queues[0], &hold), x, points, CHAIN, apart);
    sent_t now = sent_now();
    hold_let_go(&hold);
    ok(points[CHAIN - 1]);
    for (int i = 0; i < CHAIN; i++) assert_int_equal(byte_at(x, i), 7);
    hold_release(&hold);
    keel_buffer_release(x);
    rig_close(device);
    return (sent_t){now.commits - before.commits, now.event_waits - before.event_waits,
                    now.event_signals - before.event_signals, now.fence_waits - before.fence_waits};
}

// All are committed at once, with what holds them up; an event each is between them.
static void across_queues(void)
{
    sent_t sent = chain(true);
    assert_int_equal(sent.commits, 1 + CHAIN);
    assert_int_equal(sent.event_waits, CHAIN - 1);
    assert_int_equal(sent.event_signals, 1 + CHAIN);
    assert_int_equal(sim_sent(raise_event), 0);
    assert_int_equal(sim_sent("notifyListener:atValue:block:"), 0);
}

// The order of one queue serves: a fence, and no event.
static void on_one_queue(void)
{
    sent_t sent = chain(false);
    assert_int_equal(sent.commits, 1 + CHAIN);
    assert_in_range(sent.fence_waits, CHAIN, 2 * CHAIN); // between encoders of one, too
    assert_int_equal(sim_sent("newSharedEvent") + sim_sent(wait_event) + sim_sent(signal_event), 0);
}

static int killed_at; // of the command buffers in the order of their start, the one that dies
static bool is_apart;

// How many steps ended well before the first that failed, if it was by this error. What comes after
// that one must have failed too, with its cause.
static int steps_done(const keel_point_t *points, const char *words)
{
    int done = CHAIN;
    for (int i = 0; i < CHAIN; i++) {
        keel_status_t status = wait_for(points[i]);
        if (status && done == CHAIN) done = i;
        if (!status != (done == CHAIN)) fail_msg("step %d ran behind step %d, which died", i, done);
        if (status && !strstr(keel_status_message(status), words))
            fail_msg("%s", keel_status_message(status));
        keel_status_release(status);
    }
    return done;
}

// A chain of which a step dies: how many were done before it.
static int chain_killed(keel_buffer_t *x, keel_point_t *points)
{
    chain_submit(x, points, CHAIN, is_apart);
    assert_null(keel_semaphore_signal(gate, 1));
    int done = steps_done(points, "MTLCommandBufferError 3");
    assert_true(done < CHAIN && (is_apart || done == killed_at - 1));
    return done;
}

// A step dies: those before it are done, those after it do nothing and fail with its cause, and the
// next chain is done whole. On two queues it is not known which one it is.
static void killed(void)
{
    keel_device_t *device = rig_open();
    keel_buffer_t *x = buffer_create(device, SIZE);
    keel_point_t points[CHAIN];
    int done = chain_killed(x, points);
    for (int i = 0; i < CHAIN; i++) assert_int_equal(byte_at(x, i), i < done ? 7 : 0);
    chain_submit(x, points, CHAIN, is_apart);
    ok(points[CHAIN - 1]);
    assert_int_equal(byte_at(x, CHAIN - 1), 7);
    keel_buffer_release(x);
    rig_close(device);
}

static void test_killed(void **state)
{
    static const int places[] = {1, 2, 3, 4, 51, CHAIN};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof places / sizeof *places; i++) {
        char settings[32];
        killed_at = places[i / 2];
        is_apart = i % 2;
        snprintf(settings, sizeof settings, "kill=%d:3 hazards=1", killed_at);
        run_with(settings, killed);
    }
}

// A step dies at its very end, after it has told the GPU that it is done: what went ahead of it may
// have run by then, and fails with its cause all the same.
static void killed_late(void)
{
    keel_device_t *device = rig_open();
    keel_buffer_t *x = buffer_create(device, SIZE);
    keel_point_t points[CHAIN];
    int done = chain_killed(x, points);
    for (int i = 0; i < done; i++) assert_int_equal(byte_at(x, i), 7);
    keel_buffer_release(x);
    rig_close(device);
}

static void test_killed_late(void **state)
{
    (void)state;
    killed_at = 51;
    for (int i = 0; i < 2; i++) {
        is_apart = i;
        run_with("kill=51:3@1000 hazards=1", killed_late);
    }
}

// The device goes with a step: nothing waits for ever.
static void lost(void)
{
    keel_device_t *device = rig_open();
    keel_buffer_t *x = buffer_create(device, SIZE);
    keel_point_t points[CHAIN];
    chain_submit(x, points, CHAIN, true);
    assert_null(keel_semaphore_signal(gate, 1));
    assert_true(steps_done(points, "MTLCommandBufferError 11") < CHAIN);
    keel_buffer_release(x);
    rig_close(device);
}

// One semaphore counts the steps of both queues. The host finds it failed where a step has died.
static void by_semaphore(void)
{
    keel_device_t *device = rig_open();
    keel_buffer_t *x = buffer_create(device, SIZE);
    keel_semaphore_t *steps = NULL;
    assert_null(keel_semaphore_create(device, NULL, &steps));
    for (int i = 0; i < CHAIN; i++) {
        keel_point_t before = i ? keel_point(steps, (uint64_t)i) : keel_point(gate, 1);
        keel_point_t after = keel_point(steps, (uint64_t)i + 1);
        keel_op_t op = keel_op_fill(keel_span(x, (uint64_t)i * 4, 4), 7, 1);
        assert_null(
            keel_queue_submit(queues[i % 2], KEEL_AFTER(before), &op, 1, KEEL_SIGNAL(after), NULL));
    }
    assert_null(keel_semaphore_signal(gate, 1));
    for (int i = 0; i < 2; i++) {
        keel_status_t status = keel_queue_wait_idle(queues[i], KEEL_FOREVER);
        keel_status_release(status); // with the failure of a submission
    }
    uint64_t value = 0;
    keel_status_t status = keel_semaphore_value(steps, &value);
    assert_int_equal(status == NULL, killed_at == 0);
    keel_status_release(status);
    assert_int_equal(value == CHAIN, killed_at == 0);
    for (int i = 0; i < CHAIN; i++) assert_int_equal(byte_at(x, i), (uint64_t)i < value ? 7 : 0);
    keel_semaphore_release(steps);
    keel_buffer_release(x);
    rig_close(device);
}

static void test_by_semaphore(void **state)
{
    (void)state;
    killed_at = 0;
    run_with("hazards=1", by_semaphore);
    killed_at = 31;
    run_with("kill=31:3 hazards=1", by_semaphore);
}

// Two signals of one semaphore that do not depend on each other. The first dies: the second must
// not raise_event it, though its own work is done, and what waits for the second must not run.
static void two_signals(void)
{
    keel_device_t *device = rig_open();
    keel_buffer_t *x = buffer_create(device, SIZE);
    keel_semaphore_t *both = NULL;
    keel_point_t second;
    assert_null(keel_semaphore_create(device, NULL, &both));
    warm_up(x, false);
    keel_op_t op = keel_op_fill(keel_span(x, 64, 4), 1, 1);
    assert_null(keel_queue_submit(queues[0], KEEL_NO_WAITS, &op, 1,
                                  KEEL_SIGNAL(keel_point(both, 1)), NULL));
    op = keel_op_fill(keel_span(x, 68, 4), 2, 1);
    assert_null(keel_queue_submit(queues[0], KEEL_NO_WAITS, &op, 1,
                                  KEEL_SIGNAL(keel_point(both, 2)), &second));
    op = keel_op_fill(keel_span(x, 72, 4), 3, 1);
    keel_point_t third = run(queues[1], KEEL_AFTER(keel_point(both, 2)), op);
    ok(second);
    keel_status_t status = wait_for(third);
    assert_int_equal(keel_status_code(status), KEEL_ABORTED);
    keel_status_release(status);
    assert_int_equal(byte_at(x, 17), 2);
    assert_int_equal(byte_at(x, 18), 0);
    keel_semaphore_release(both);
    keel_buffer_release(x);
    rig_close(device);
}

// More commands than one guard has counts for, more promises than one looks at, and a large update.
static void many(void)
{
    enum { COMMANDS = 1000, BEFORE = 20, LARGE = 200000 };
    keel_device_t *device = rig_open();
    keel_buffer_t *x = buffer_create(device, COMMANDS * 4), *y = buffer_create(device, LARGE);
    keel_point_t points[BEFORE];
    hold_t hold = hold_make(device);
    static keel_op_t ops[COMMANDS + 1];
    static unsigned char bytes[LARGE], seen[LARGE];
    for (int i = 0; i < LARGE; i++) bytes[i] = (unsigned char)(i * 7);
    warm_up(x, true);
    uint64_t before = sim_sent(wait_event);
    keel_point_t held = hold_submit(queues[0], &hold);
    for (int i = 0; i < BEFORE; i++)
        points[i] =
            run(queues[0], KEEL_AFTER(held), keel_op_fill(keel_span(x, (uint64_t)i * 4, 4), 1, 1));
    for (int i = 0; i < COMMANDS; i++)
        ops[i] = keel_op_fill(keel_span(x, (uint64_t)i * 4, 4), (uint32_t)i % 251, 1);
    ops[COMMANDS] = keel_op_update(keel_whole(y), bytes);
    keel_point_t done;
    assert_null(keel_queue_submit(queues[1], (keel_points_t){points, BEFORE}, ops, COMMANDS + 1,
                                  KEEL_NO_SIGNALS, &done));
    assert_int_equal(sim_sent(wait_event) - before, BEFORE);
    hold_let_go(&hold);
    ok(done);
    for (int i = 0; i < COMMANDS; i++) assert_int_equal(byte_at(x, i), i % 251);
    assert_null(keel_buffer_read(y, 0, seen, LARGE));
    assert_memory_equal(bytes, seen, LARGE);
    hold_release(&hold);
    keel_buffer_release(x);
    keel_buffer_release(y);
    rig_close(device);
}

// The host has a part in what goes ahead: it is called when what comes before has ended.
static keel_status_t look(void *word, keel_host_call_t *call)
{
    (void)call;
    return *(uint32_t *)word == 0x07070707 ? NULL : KEEL_ERROR(KEEL_INTERNAL, "it came too early");
}

static void host_part(void)
{
    keel_device_t *device = rig_open();
    keel_buffer_t *x = buffer_create(device, SIZE);
    void *words = NULL;
    assert_null(keel_buffer_map(x, 0, SIZE, KEEL_ACCESS_READ, &words));
    keel_point_t points[CHAIN];
    chain_submit(x, points, CHAIN, true);
    keel_op_t op = keel_op_host_call(look, (uint32_t *)words + CHAIN - 1);
    keel_point_t called = run(queues[1], KEEL_AFTER(points[CHAIN - 1]), op);
    assert_null(keel_semaphore_signal(gate, 1));
    ok(called);
    keel_buffer_unmap(x);
    keel_buffer_release(x);
    rig_close(device);
}

static keel_status_t must_not_be(void *called, keel_host_call_t *call)
{
    (void)call;
    *(bool *)called = true;
    return NULL;
}

static hold_t dropped_hold;
static keel_point_t dropped;

static void drop(void)
{
    keel_status_t status = keel_wait(KEEL_POINTS(dropped), KEEL_ALL, 0);
    assert_int_equal(keel_status_code(status), KEEL_DEADLINE_EXCEEDED);
    keel_status_release(status);
    hold_let_go(&dropped_hold);
    status = wait_for(dropped);
    assert_int_equal(keel_status_code(status), KEEL_ABORTED);
    keel_status_release(status);
}

// What it went ahead of dies while its commands are still looked at: the host has no part then.
static void host_part_dropped(void)
{
    enum { LARGE = 1 << 19 }; // bytes, for which the host gets memory when it comes to them
    keel_device_t *device = rig_open();
    keel_buffer_t *x = buffer_create(device, SIZE), *y = buffer_create(device, LARGE);
    keel_point_t last;
    bool called = false;
    static unsigned char bytes[LARGE];
    memset(bytes, 1, LARGE);
    dropped_hold = hold_make(device);
    warm_up(x, true);
    dropped = run(queues[0], KEEL_AFTER(hold_submit(queues[0], &dropped_hold)),
                  keel_op_fill(keel_span(x, 64, 4), 1, 1));
    keel_op_t ops[] = {keel_op_update(keel_whole(y), bytes),
                       keel_op_host_call(must_not_be, &called)};
    sim_when("newBufferWithLength:options:", drop);
    assert_null(keel_queue_submit(queues[1], KEEL_AFTER(dropped), ops, 2, KEEL_NO_SIGNALS, &last));
    keel_status_t status = wait_for(last);
    assert_int_equal(keel_status_code(status), KEEL_ABORTED);
    keel_status_release(status);
    assert_false(called);
    assert_int_equal(byte_at(x, 16) + byte_at(y, 0), 0);
    hold_release(&dropped_hold);
    keel_buffer_release(x);
    keel_buffer_release(y);
    rig_close(device);
}

// P has two kernels of one encoder and dies after some works of it, whatever order these are in: if
// C, which went ahead of it, has run, then so has all of P.
static void done_is_last(void)
{
    keel_device_t *device = rig_open();
    keel_buffer_t *x = buffer_create(device, SIZE);
    keel_point_t first, second;
    warm_up(x, false);
    keel_op_t ops[] = {keel_op_fill(keel_span(x, 101, 1), 1, 1),
                       keel_op_fill(keel_span(x, 201, 1), 1, 1)};
    assert_null(keel_queue_submit(queues[0], KEEL_NO_WAITS, ops, 2, KEEL_NO_SIGNALS, &first));
    second = run(queues[0], KEEL_AFTER(first), keel_op_fill(keel_span(x, 301, 1), 1, 1));
    keel_status_release(wait_for(first));
    keel_status_release(wait_for(second));
    uint8_t bytes[SIZE];
    assert_null(keel_buffer_read(x, 0, bytes, SIZE));
    if (bytes[301]) assert_true(bytes[101] && bytes[201]);
    keel_buffer_release(x);
    rig_close(device);
}

static void test_done_is_last(void **state)
{
    enum { WORKS = 7, SEEDS = 3 };
    (void)state;
    for (int i = 0; i < WORKS * SEEDS; i++) {
        char settings[48];
        snprintf(settings, sizeof settings, "kill=9:3@%d seed=%d", i % WORKS + 1, i / WORKS + 1);
        run_with(settings, done_is_last);
    }
}

// Who asks after a point of a semaphore of another device may have the promise a little longer than
// there is the device that gave it.
static void outlived(void)
{
    keel_device_t *device = rig_open(), *other = NULL;
    keel_buffer_t *x = buffer_create(device, SIZE);
    keel_semaphore_t *steps = NULL;
    promise_t *promise = NULL;
    keel_point_t points[8];
    keel_op_t op = keel_op_fill(keel_span(x, 64, 4), 1, 1);
    assert_null(keel_device_open("cpu://", NULL, &other));
    assert_null(keel_semaphore_create(other, NULL, &steps));
    assert_null(keel_semaphore_signal(gate, 1));
    for (uint64_t value = 1; !promise; value++) { // it may be over before it is asked after
        keel_point_t end = keel_point(steps, value);
        chain_submit(x, points, 8, true);
        assert_null(
            keel_queue_submit(queues[0], KEEL_AFTER(points[7]), &op, 1, KEEL_SIGNAL(end), NULL));
        promise = point_promise(&end);
        ok(end);
    }
    keel_buffer_release(x);
    rig_close(device);
    promise->ops->poll(promise);
    promise_release(promise);
    keel_semaphore_release(steps);
    keel_device_release(other);
}

#define TEST(name, settings)                                                                       \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        run_with(settings, name);                                                                  \
    }
TEST(across_queues, "seed=3 hazards=1")
TEST(on_one_queue, "seed=3 hazards=1")
TEST(lost, "kill=51:11")
TEST(two_signals, "kill=9:3 hazards=1")
TEST(many, "residency=1 hazards=1")
TEST(host_part, "hazards=1")
TEST(outlived, "")
TEST(host_part_dropped, "kill=10:3 hazards=1")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_across_queues), cmocka_unit_test(test_on_one_queue),
        cmocka_unit_test(test_killed),        cmocka_unit_test(test_killed_late),
        cmocka_unit_test(test_lost),          cmocka_unit_test(test_by_semaphore),
        cmocka_unit_test(test_two_signals),   cmocka_unit_test(test_many),
        cmocka_unit_test(test_host_part),     cmocka_unit_test(test_host_part_dropped),
        cmocka_unit_test(test_outlived),      cmocka_unit_test(test_done_is_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
