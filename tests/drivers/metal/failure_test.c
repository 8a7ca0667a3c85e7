// SPDX-License-Identifier: Apache-2.0
// What becomes of work when Metal fails: command buffers that die, a device that goes, messages
// that answer nil.
#include "drivers/metal/device.h"

enum { SIZE = 4096 };

static void fails(keel_point_t point, keel_code_t code, const char *words)
{
    keel_status_t status = wait_for(point);
    assert_non_null(status);
    if (keel_status_code(status) != code || !strstr(keel_status_message(status), words))
        fail_msg("%s", keel_status_message(status));
    keel_status_release(status);
}

static keel_op_t fill(keel_buffer_t *buffer, uint8_t value)
{
    return keel_op_fill(keel_whole(buffer), value, 1);
}

// The second of three dies. What depends on it fails and does not run; the rest goes on.
static void killed(void)
{
    keel_device_t *device = device_open();
    keel_buffer_t *x = buffer_create(device, SIZE), *y = buffer_create(device, SIZE);
    ok(submit(device, KEEL_NO_WAITS, fill(x, 1)));
    keel_point_t dead = submit(device, KEEL_NO_WAITS, fill(x, 2));
    keel_point_t after = submit(device, KEEL_AFTER(dead), fill(y, 3));
    fails(dead, KEEL_ABORTED, "MTLCommandBufferError 3");
    fails(after, KEEL_ABORTED, "MTLCommandBufferError 3");
    uint8_t bytes[2] = {9, 9};
    assert_null(keel_buffer_read(x, 0, &bytes[0], 1));
    assert_null(keel_buffer_read(y, 0, &bytes[1], 1));
    assert_int_equal(bytes[0], 1);
    assert_int_equal(bytes[1], 0);
    ok(submit(device, KEEL_NO_WAITS, fill(x, 4)));
    keel_buffer_release(x);
    keel_buffer_release(y);
    device_close(device);
}

static unsigned killed_by; // the code that the child's first command buffer dies of

// The failure has the code, and Metal's own text. With some the device is lost, with others not.
static void killed_by_code(void)
{
    keel_device_t *device = device_open();
    keel_buffer_t *x = buffer_create(device, SIZE);
    bool loses = killed_by == 4 || killed_by == 7 || killed_by == 11;
    char words[40];
    snprintf(words, sizeof words, "MTLCommandBufferError %u", killed_by);
    keel_status_t status = wait_for(submit(device, KEEL_NO_WAITS, fill(x, 1)));
    assert_non_null(status);
    if (!strstr(keel_status_message(status), words)) fail_msg("%s", keel_status_message(status));
    assert_int_equal(keel_status_code(status) == KEEL_DEVICE_LOST, loses);
    keel_status_release(status);
    keel_point_t after = keel_point(NULL, 0);
    status = keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS, fill(x, 2), &after);
    if (!status) status = wait_for(after);
    assert_int_equal(keel_status_code(status), loses ? KEEL_DEVICE_LOST : 0);
    keel_status_release(status);
    keel_buffer_release(x);
    device_close(device);
}

static void test_every_code(void **state)
{
    (void)state;
    for (killed_by = 1; killed_by <= 12; killed_by++) {
        char settings[16];
        snprintf(settings, sizeof settings, "kill=1:%u", killed_by);
        run_with(settings, killed_by_code);
    }
}

// The device goes with the second, and all later ones die of the same.
static void lost(void)
{
    keel_device_t *device = device_open();
    keel_buffer_t *x = buffer_create(device, SIZE);
    keel_semaphore_t *gate = NULL;
    assert_null(keel_semaphore_create(device, NULL, &gate));
    ok(submit(device, KEEL_NO_WAITS, fill(x, 1)));
    keel_point_t waits = submit(device, KEEL_AFTER(keel_point(gate, 1)), fill(x, 2));
    fails(submit(device, KEEL_NO_WAITS, fill(x, 3)), KEEL_DEVICE_LOST, "MTLCommandBufferError 11");
    fails(waits, KEEL_DEVICE_LOST, "MTLCommandBufferError 11");
    keel_point_t late = keel_point(NULL, 0);
    keel_status_t status =
        keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS, fill(x, 4), &late);
    if (!status) status = wait_for(late);
    assert_int_equal(keel_status_code(status), KEEL_DEVICE_LOST);
    keel_status_release(status);
    keel_semaphore_release(gate);
    keel_buffer_release(x);
    device_close(device);
}

// Both kinds of encoder, a fence, memory of the program's, and a second queue.
static keel_status_t scenario(keel_device_t *device)
{
    keel_buffer_options_t options = {.size = SIZE};
    keel_buffer_t *x = NULL;
    keel_queue_t *queue = NULL;
    keel_point_t done = keel_point(NULL, 0);
    keel_status_t status = keel_buffer_create(device, &options, &x);
    if (!status) status = keel_queue_create(device, NULL, &queue);
    keel_ref_t some = x ? keel_span(x, 0, 16) : keel_whole(x);
    keel_op_t ops[] = {keel_op_fill(some, 1, 1), keel_op_barrier(), keel_op_fill(some, 0x1234, 2)};
    if (!status) status = keel_queue_submit(queue, KEEL_NO_WAITS, ops, 3, KEEL_NO_SIGNALS, &done);
    if (!status) status = wait_for(done);
    keel_queue_release(queue);
    keel_buffer_release(x);
    return status;
}

enum { UNHARMED = 3 }; // how the child exits that met no failure

static void scenario_run(unsigned number)
{
    char settings[512];
    snprintf(settings, sizeof settings, "cache=%s fail=%u", METAL_CACHE, number);
    setenv("KEEL_SIM_METAL", settings, 1);
    alarm(CHILD_SECONDS);
    keel_device_t *device = NULL;
    keel_status_t status = device_try_open("0", &device);
    if (!status) status = scenario(device);
    if (device) keel_device_release(device);
    while (sim_objects(NULL)) sched_yield();
    bool good = !status;
    keel_status_release(status);
    _exit(good ? UNHARMED : 0);
}

// Each message that may answer nil does so once: an error, no crash, and nothing is left behind.
static void test_each_message_fails(void **state)
{
    (void)state;
    unsigned number = 0;
    int status = 0;
    while (status == 0) {
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) scenario_run(number + 1);
        waitpid(child, &status, 0);
        assert_true(WIFEXITED(status));
        number += WEXITSTATUS(status) == 0;
    }
    assert_int_equal(WEXITSTATUS(status), UNHARMED);
    assert_in_range(number, 17, 99); // a library, its kernels, queues, a buffer, encoders, a fence
}

static void test_killed(void **state)
{
    (void)state;
    run_with("kill=2:3", killed);
}

static void test_lost(void **state)
{
    (void)state;
    run_with("kill=2+:11", lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_every_code),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_each_message_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
