// SPDX-License-Identifier: Apache-2.0
// Submissions that wait for each other go on without the host: counted by the scheduler itself. Run
// on the software GPU (keel sim).
#include <keel/keel.h>
#include <sched.h>
#include <stdlib.h>

#include "drivers/amdgpu/host/scheduler.h"
#include "ok.h"
#include "unit.h"

enum { CHAIN = 24 };

typedef struct setup_t {
    keel_device_t *device;
    keel_queue_t *queue;
    keel_buffer_t *buffer; // a word for each link of a chain
    keel_semaphore_t *semaphore;
} setup_t;

static void setup_open(setup_t *s)
{
    const keel_buffer_options_t options = {.size = CHAIN * sizeof(uint32_t),
                                           .memory = KEEL_MEMORY_HOST_VISIBLE};
    OK(keel_device_open("amdgpu://0", NULL, &s->device));
    s->queue = keel_device_queue(s->device, 0);
    OK(keel_buffer_create(s->device, &options, &s->buffer));
    OK(keel_semaphore_create(s->device, NULL, &s->semaphore));
}

static void setup_close(setup_t *s)
{
    keel_semaphore_release(s->semaphore);
    keel_buffer_release(s->buffer);
    keel_device_release(s->device);
}

static const scheduler_t *shared_of(const setup_t *s)
{
    return amdgpu_device(s->device)->scheduler->shared;
}

// Until the last tick that was asked for is over.
static void ticks_settle(const setup_t *s)
{
    const amdgpu_device_t *device = amdgpu_device(s->device);
    const amdgpu_scheduler_t *scheduler = device->scheduler;
    const uint64_t *write = PROTOCOL_AT(const uint64_t, scheduler->shared->control.write);
    while (device->hsa->hsa_queue_load_read_index_scacquire(scheduler->control) !=
           __atomic_load_n(write, __ATOMIC_ACQUIRE))
        sched_yield();
}

// Link i waits for value i, fills word i - 1, and signals i + 1.
static void link_submit(const setup_t *s, uint32_t i)
{
    const keel_point_t wait = keel_point(s->semaphore, i), signal = keel_point(s->semaphore, i + 1);
    const keel_op_t op =
        keel_op_fill(keel_span(s->buffer, (i - 1) * sizeof i, sizeof i), i, sizeof i);
    OK(keel_queue_submit(s->queue, KEEL_POINTS(wait), &op, 1, KEEL_POINTS(signal), NULL));
}

static void test_a_chain_needs_no_host(void **state)
{
    (void)state;
    setup_t s;
    setup_open(&s);
    for (uint32_t i = 1; i <= CHAIN; i++) link_submit(&s, i);
    ticks_settle(&s);
    uint64_t ticks = shared_of(&s)->ticks, told = shared_of(&s)->told;
    uint64_t looks = shared_of(&s)->looks;
    OK(keel_semaphore_signal(s.semaphore, 1));
    const keel_point_t last = keel_point(s.semaphore, CHAIN + 1);
    OK(keel_wait(KEEL_POINTS(last), KEEL_ALL, KEEL_FOREVER));
    ticks_settle(&s);
    // One that the host asked for, and one behind each link, unless one serves for two.
    assert_in_range(shared_of(&s)->ticks - ticks, 1, CHAIN + 1);
    assert_in_range(shared_of(&s)->told - told, 0, 1); // 0: the host has looked by itself
    // Each time at the one that can go on, and at the next, which cannot.
    assert_in_range(shared_of(&s)->looks - looks, CHAIN, 2 * CHAIN);
    uint32_t *words;
    OK(keel_buffer_map(s.buffer, 0, CHAIN * sizeof *words, KEEL_ACCESS_READ, (void **)&words));
    for (uint32_t i = 0; i < CHAIN; i++) assert_int_equal(words[i], i + 1);
    keel_buffer_unmap(s.buffer);
    setup_close(&s);
}

// Links that were submitted last first wait on the GPU all the same.
static void test_the_order_is_that_of_the_points(void **state)
{
    (void)state;
    setup_t s;
    setup_open(&s);
    for (uint32_t i = CHAIN; i >= 1; i--) link_submit(&s, i);
    OK(keel_semaphore_signal(s.semaphore, 1));
    const keel_point_t last = keel_point(s.semaphore, CHAIN + 1);
    OK(keel_wait(KEEL_POINTS(last), KEEL_ALL, KEEL_FOREVER));
    setup_close(&s);
}

// A failure goes down the chain, and nothing runs.
static void test_a_failure_goes_down_the_chain(void **state)
{
    (void)state;
    setup_t s;
    setup_open(&s);
    for (uint32_t i = 1; i <= CHAIN; i++) link_submit(&s, i);
    uint64_t issued = shared_of(&s)->issued;
    OK(keel_semaphore_fail(s.semaphore, KEEL_ERROR(KEEL_ABORTED, "enough")));
    const keel_point_t last = keel_point(s.semaphore, CHAIN + 1);
    keel_status_t status = keel_wait(KEEL_POINTS(last), KEEL_ALL, KEEL_FOREVER);
    assert_int_equal(keel_status_code(status), KEEL_ABORTED);
    keel_status_release(status);
    OK(keel_device_wait_idle(s.device, KEEL_FOREVER));
    assert_int_equal(shared_of(&s)->issued, issued);
    setup_close(&s);
}

static bool gpu_schedules(const char *uri)
{
    keel_device_t *device;
    OK(keel_device_open(uri, NULL, &device));
    bool does = amdgpu_device(device)->scheduler;
    keel_device_release(device);
    return does;
}

static void test_who_schedules(void **state)
{
    (void)state;
    assert_true(gpu_schedules("amdgpu://0"));
    assert_true(gpu_schedules("amdgpu://0?scheduler=device"));
    assert_false(gpu_schedules("amdgpu://0?scheduler=host"));
}

// Where a tool watches the queues, as keel trace.
static void test_the_host_steps_in(void **state)
{
    (void)state;
    keel_device_t *device = NULL;
    assert_false(gpu_schedules("amdgpu://0"));
    keel_status_t status = keel_device_open("amdgpu://0?scheduler=device", NULL, &device);
    assert_int_equal(keel_status_code(status), KEEL_UNSUPPORTED);
    keel_status_release(status);
    test_the_order_is_that_of_the_points(state);
}

int main(void)
{
    if (!getenv("KEEL_SIM_GPUS")) return 77; // to be run by keel sim
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_schedules),
        cmocka_unit_test(test_a_chain_needs_no_host),
        cmocka_unit_test(test_the_order_is_that_of_the_points),
        cmocka_unit_test(test_a_failure_goes_down_the_chain),
    };
    const struct CMUnitTest watched[] = {cmocka_unit_test(test_the_host_steps_in)};
    if (getenv("HSA_TOOLS_LIB")) return cmocka_run_group_tests(watched, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
