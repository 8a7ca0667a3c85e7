// SPDX-License-Identifier: Apache-2.0
// Submissions of one GPU that go ahead of what another one does: an event is between the two, no
// thread of the host, and when a command buffer dies nothing runs that should not.
#include "drivers/metal/hold.h"

enum { PAGE = 16384, CHAIN = 120, GPUS = 2, WARM = 8, SEVEN = 0x07070707 };

static const char *const wait_event = "encodeWaitForEvent:value:";

static _Alignas(PAGE) uint32_t words[PAGE / 4];

static keel_device_t *devices[GPUS];
static keel_buffer_t *views[GPUS]; // of the words, by each
static hold_t hold;                // of the first

static void device_begin(int i, const char *which)
{
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_HOST, .size = sizeof words};
    external.handle.host = words;
    assert_null(device_try_open(which, &devices[i]));
    assert_null(keel_buffer_import(devices[i], &external, NULL, &views[i]));
}

static void device_end(int i)
{
    keel_buffer_release(views[i]);
    keel_device_release(devices[i]);
}

// Steps behind a point, in turns on the two: each copies the word before it.
static void steps_submit(keel_point_t after, keel_point_t *points, int count)
{
    for (int i = 0; i < count; i++) {
        keel_buffer_t *x = views[i % GPUS];
        uint64_t at = (uint64_t)i * 4;
        keel_op_t op = keel_op_fill(keel_span(x, 0, 4), 7, 1);
        if (i) op = keel_op_copy(keel_span(x, at - 4, 4), keel_span(x, at, 4));
        points[i] = submit(devices[i % GPUS], KEEL_AFTER(after), op);
        after = points[i];
    }
}

// Promises are made from here on.
static void warm_up(void)
{
    keel_semaphore_t *gate = NULL;
    keel_point_t points[WARM];
    assert_null(keel_semaphore_create(devices[0], NULL, &gate));
    steps_submit(keel_point(gate, 1), points, WARM);
    assert_null(keel_semaphore_signal(gate, 1));
    ok(points[WARM - 1]);
    keel_semaphore_release(gate);
    memset(words, 0, sizeof words);
}

static void rig_open(const char *first, const char *second)
{
    device_begin(0, first);
    device_begin(1, second);
    hold = hold_make(devices[0]);
    warm_up();
}

static void rig_close(void)
{
    hold_release(&hold);
    device_end(0);
    device_end(1);
    while (sim_objects(NULL)) sched_yield();
}

static void chain(void)
{
    keel_point_t points[CHAIN];
    steps_submit(hold_submit(keel_device_queue(devices[0], 0), &hold), points, CHAIN);
    hold_let_go(&hold);
    ok(points[CHAIN - 1]);
    for (int i = 0; i < CHAIN; i++) assert_int_equal(words[i], SEVEN);
}

// A chain of which all is committed before the first step may begin.
static void chain_commit(keel_point_t *points)
{
    uint64_t commits = sim_sent("commit") + 1 + CHAIN;
    steps_submit(hold_submit(keel_device_queue(devices[0], 0), &hold), points, CHAIN);
    while (sim_sent("commit") < commits) sched_yield(); // other threads may be at it
}

// An event is between each two steps.
static void in_turns(void)
{
    keel_point_t points[CHAIN];
    rig_open("0", "1");
    uint64_t waits = sim_sent(wait_event);
    chain_commit(points);
    assert_int_equal(sim_sent(wait_event), waits + CHAIN - 1); // the first has a fence
    hold_let_go(&hold);
    ok(points[CHAIN - 1]);
    for (int i = 0; i < CHAIN; i++) assert_int_equal(words[i], SEVEN);
    rig_close();
    assert_int_equal(sim_sent("setSignaledValue:"), 0);
}

// One GPU that was opened twice.
static void twice(void)
{
    rig_open("0", "0");
    uint64_t waits = sim_sent(wait_event);
    chain();
    assert_true(sim_sent(wait_event) > waits);
    rig_close();
}

// Metal does not take the pages of the slots: the host waits, and all is done.
static void unseen(void)
{
    rig_open("0", "1");
    chain();
    assert_int_equal(sim_sent(wait_event), 0);
    rig_close();
}

// A step of each GPU dies: those before the first of them are done, those after it do nothing and
// fail with its cause, whichever GPU they are of. The next chain is done whole.
static void killed(void)
{
    keel_point_t points[CHAIN];
    int done = CHAIN;
    rig_open("0", "1");
    chain_commit(points);
    hold_let_go(&hold);
    for (int i = 0; i < CHAIN; i++) {
        keel_status_t status = wait_for(points[i]);
        if (status && done == CHAIN) done = i;
        if (!status != (done == CHAIN)) fail_msg("step %d ran behind step %d, which died", i, done);
        if (status && !strstr(keel_status_message(status), "MTLCommandBufferError 3"))
            fail_msg("%s", keel_status_message(status));
        keel_status_release(status);
    }
    assert_true(done < CHAIN);
    for (int i = 0; i < CHAIN; i++) assert_int_equal(words[i], i < done ? SEVEN : 0);
    chain();
    rig_close();
}

static void test_killed(void **state)
{
    // Of the command buffers of a GPU in the order of their start; half of WARM, and on the first
    // one what holds up the rest, come before.
    static const int places[] = {6, 7, 31};
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char settings[48];
        snprintf(settings, sizeof settings, "devices=2 kill=%d:3 hazards=1", places[i]);
        run_with(settings, killed);
    }
}

// One GPU is closed and opened again, while the other keeps what it has seen of it.
static void reopened(void)
{
    rig_open("0", "1");
    for (int i = 0; i < 3; i++) {
        chain();
        device_end(1);
        device_begin(1, "1");
        warm_up();
    }
    rig_close();
}

// The first GPU is closed while the other waits for it: what went ahead of work that is given up
// does nothing.
static void closed(void)
{
    keel_semaphore_t *steps = NULL;
    rig_open("0", "1");
    assert_null(keel_semaphore_create(devices[1], NULL, &steps));
    for (uint64_t i = 0; i < CHAIN; i++) {
        keel_ref_t from = keel_span(views[1], i * 4, 4),
                   to = keel_span(views[1], PAGE / 2 + i * 4, 4);
        keel_op_t op = keel_op_fill(keel_span(views[0], i * 4, 4), 7, 1);
        keel_point_t first = submit(devices[0], KEEL_NO_WAITS, op);
        op = keel_op_copy(from, to);
        assert_null(keel_queue_submit(keel_device_queue(devices[1], 0), KEEL_AFTER(first), &op, 1,
                                      KEEL_SIGNAL(keel_point(steps, i + 1)), NULL));
    }
    hold_release(&hold);
    device_end(0);
    for (uint64_t i = 0; i < CHAIN; i++) {
        keel_status_t status = wait_for(keel_point(steps, i + 1));
        if (!status) assert_int_equal(words[PAGE / 8 + i], SEVEN);
        keel_status_release(status);
    }
    keel_semaphore_release(steps);
    device_end(1);
    while (sim_objects(NULL)) sched_yield();
}

#define WRAP "newBufferWithBytesNoCopy:length:options:deallocator:"
#define TEST(name, settings)                                                                       \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        run_with(settings, name);                                                                  \
    }
TEST(in_turns, "devices=2 seed=3 hazards=1")
TEST(twice, "hazards=1")
TEST(unseen, "devices=2 fail=" WRAP "/4 fail=" WRAP "/6")
TEST(reopened, "devices=2 hazards=1")
TEST(closed, "devices=2 hazards=1")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_turns), cmocka_unit_test(test_twice),
        cmocka_unit_test(test_unseen),   cmocka_unit_test(test_killed),
        cmocka_unit_test(test_reopened), cmocka_unit_test(test_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
