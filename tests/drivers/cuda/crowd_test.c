// SPDX-License-Identifier: Apache-2.0
// Many queues of a CUDA device that wait for one signal, on the CUDA driver in software.
#include "drivers/cuda/device.h"

enum { QUEUES = 150, RUNS = 100 };

// `runs` submissions on each queue wait for the signal.
static void check_crowd(int runs)
{
    keel_device_t *device = device_open("");
    keel_buffer_t *buffer = buffer_create(device, QUEUES * 4, KEEL_MEMORY_HOST_VISIBLE);
    keel_semaphore_t *go = NULL;
    keel_queue_t *queues[QUEUES];
    keel_point_t done[QUEUES];
    uint32_t words[QUEUES];
    assert_null(keel_semaphore_create(device, NULL, &go));
    for (int i = 0; i < QUEUES; i++) {
        assert_null(keel_queue_create(device, NULL, &queues[i]));
        keel_op_t fill = keel_op_fill(keel_span(buffer, i * 4ull, 4), (uint32_t)i + 1, 4);
        for (int run = 0; run < runs; run++)
            assert_null(keel_queue_run(queues[i], KEEL_AFTER(keel_point(go, 1)), fill, &done[i]));
    }
    assert_null(keel_semaphore_signal(go, 1));
    for (int i = 0; i < QUEUES; i++) ok(done[i]);
    for (int i = 0; i < QUEUES; i++) assert_null(keel_queue_wait_idle(queues[i], KEEL_FOREVER));
    await(threads_named("keel-issue") <= 1); // the device's, and no queue's: these would stay
    assert_null(keel_buffer_read(buffer, 0, words, sizeof words));
    for (int i = 0; i < QUEUES; i++) assert_int_equal(words[i], i + 1);
    for (int i = 0; i < QUEUES; i++) keel_queue_release(queues[i]);
    keel_semaphore_release(go);
    keel_buffer_release(buffer);
    keel_device_release(device);
}

static void test_one_thread_issues_to_many_queues(void **state)
{
    (void)state;
    check_crowd(1);
}

static void test_one_thread_issues_much(void **state)
{
    (void)state;
    check_crowd(RUNS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_thread_issues_to_many_queues),
        cmocka_unit_test(test_one_thread_issues_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
