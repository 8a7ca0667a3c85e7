// SPDX-License-Identifier: Apache-2.0
// Cancelling submissions that went ahead of what they wait for: the GPU leaves them out.
#include "drivers/metal/hold.h"

enum { SIZE = 1 << 17, WARM = 8, MANY = 100, COMMANDS = 1000 };

static keel_device_t *device;
static keel_queue_t *queues[2];
static keel_buffer_t *x;
static hold_t hold;

static keel_point_t fill(int queue, keel_points_t after, uint64_t word)
{
    keel_point_t point = keel_point(NULL, 0);
    keel_op_t op = keel_op_fill(keel_span(x, word * 4, 4), 7, 1);
    assert_null(keel_queue_run(queues[queue], after, op, &point));
    return point;
}

// Submissions behind a gate have the device see that others wait: it makes promises from then on.
static void rig_open(void)
{
    keel_semaphore_t *gate = NULL;
    device = device_open();
    for (int i = 0; i < 2; i++) assert_null(keel_queue_create(device, NULL, &queues[i]));
    x = buffer_create(device, SIZE);
    hold = hold_make(device);
    assert_null(keel_semaphore_create(device, NULL, &gate));
    keel_point_t last = keel_point(gate, 1);
    for (int i = 0; i < WARM; i++) last = fill(i % 2, KEEL_AFTER(last), 0);
    assert_null(keel_semaphore_signal(gate, 1));
    ok(last);
    keel_semaphore_release(gate);
}

static void rig_close(void)
{
    hold_release(&hold);
    keel_buffer_release(x);
    for (int i = 0; i < 2; i++) keel_queue_release(queues[i]);
    device_close(device);
}

static uint32_t word_at(uint64_t word)
{
    uint32_t value = 0;
    assert_null(keel_buffer_read(x, word * 4, &value, sizeof value));
    return value;
}

static void cancel(keel_point_t point)
{
    keel_cancel_t was = KEEL_CANCEL_ENDED;
    assert_null(keel_queue_cancel(point, &was));
    assert_int_equal(was, KEEL_CANCEL_RUNNING);
}

// Until so many command buffers are left on the GPU, and no others.
static void let_be(unsigned commands)
{
    while (sim_objects("MTLCommandBuffer") != commands) sched_yield();
}

// Cancels several at a time: it has told the GPU of all of them.
static void cancel_all(const keel_point_t *points, uint64_t count, unsigned commands)
{
    static const char fill_buffer[] = "fillBuffer:range:value:";
    uint64_t before = sim_sent(fill_buffer);
    for (uint64_t i = 0; i < count; i++) cancel(points[i]);
    while (sim_sent(fill_buffer) < before + count) sched_yield();
    let_be(commands);
}

static void is_cancelled(keel_point_t point, keel_point_t cause)
{
    char words[64];
    snprintf(words, sizeof words, "submission %llu was cancelled", (unsigned long long)cause.value);
    keel_status_t status = wait_for(point);
    assert_int_equal(keel_status_code(status), KEEL_CANCELLED);
    assert_non_null(strstr(keel_status_message(status), words));
    keel_status_release(status);
}

// Of those that wait for one, on its queue and on the other, two are cancelled: these do nothing
// and fail, as does what depends on them. The others run.
static void of_some(void)
{
    rig_open();
    keel_point_t held = hold_submit(queues[0], &hold);
    keel_point_t first = fill(0, KEEL_AFTER(held), 1), second = fill(1, KEEL_AFTER(held), 2);
    keel_point_t third = fill(0, KEEL_AFTER(first), 3), fourth = fill(1, KEEL_AFTER(held), 4);
    let_be(5); // all are the GPU's
    cancel_all((keel_point_t[]){first, second}, 2, 5);
    hold_let_go(&hold);
    ok(held);
    is_cancelled(first, first);
    is_cancelled(second, second);
    is_cancelled(third, first);
    ok(fourth);
    for (uint64_t i = 1; i <= 4; i++) assert_int_equal(word_at(i), i == 4 ? 0x07070707 : 0);
    ok(fill(0, KEEL_NO_WAITS, 1)); // and so does what comes later
    assert_int_equal(word_at(1), 0x07070707);
    rig_close();
}

// All of many, whose command buffers are told as few at a time as it takes.
static void of_many(void)
{
    rig_open();
    keel_point_t points[MANY], held = hold_submit(queues[0], &hold);
    for (uint64_t i = 0; i < MANY; i++) points[i] = fill((int)i % 2, KEEL_AFTER(held), i + 1);
    let_be(1 + MANY);
    cancel_all(points, MANY, 1 + MANY);
    hold_let_go(&hold);
    for (int i = 0; i < MANY; i++) is_cancelled(points[i], points[i]);
    for (uint64_t i = 0; i < MANY; i++) assert_int_equal(word_at(i + 1), 0);
    rig_close();
}

// One with more commands than one guard has counts for.
static void of_a_long_one(void)
{
    static keel_op_t ops[COMMANDS];
    keel_point_t point;
    rig_open();
    for (uint64_t i = 0; i < COMMANDS; i++) ops[i] = keel_op_fill(keel_span(x, i * 4, 4), 9, 1);
    uint32_t before = word_at(0);
    keel_point_t held = hold_submit(queues[0], &hold);
    assert_null(
        keel_queue_submit(queues[1], KEEL_AFTER(held), ops, COMMANDS, KEEL_NO_SIGNALS, &point));
    let_be(2);
    cancel_all(&point, 1, 2);
    hold_let_go(&hold);
    is_cancelled(point, point);
    for (uint64_t i = 0; i < COMMANDS; i++) assert_int_equal(word_at(i), i ? 0 : before);
    rig_close();
}

// The device closes: what went ahead is left out, unless it has begun.
static void by_closing(void)
{
    rig_open();
    keel_point_t held = hold_submit(queues[0], &hold), point = fill(1, KEEL_AFTER(held), 1);
    keel_semaphore_retain(point.semaphore);
    hold_let_go(&hold);
    rig_close();
    keel_status_release(wait_for(point));
    keel_semaphore_release(point.semaphore);
}

// It may have begun when it is cancelled, and ends well or badly then.
static void race(void)
{
    rig_open();
    for (int i = 0; i < MANY; i++) {
        keel_point_t held = hold_submit(queues[0], &hold), point = fill(1, KEEL_AFTER(held), 1);
        hold_let_go(&hold);
        assert_null(keel_queue_cancel(point, NULL));
        keel_status_t status = wait_for(point);
        assert_true(!status || keel_status_code(status) == KEEL_CANCELLED);
        keel_status_release(status);
    }
    rig_close();
}

#define TEST(name, settings)                                                                       \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        run_with(settings, name);                                                                  \
    }
TEST(of_some, "hazards=1")
TEST(of_many, "hazards=1")
TEST(of_a_long_one, "hazards=1")
TEST(by_closing, "hazards=1")
TEST(race, "hazards=1")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_some),       cmocka_unit_test(test_of_many),
        cmocka_unit_test(test_of_a_long_one), cmocka_unit_test(test_by_closing),
        cmocka_unit_test(test_race),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
