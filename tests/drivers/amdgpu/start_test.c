// SPDX-License-Identifier: Apache-2.0
// Opening where HSA refuses what a scheduler on the GPU needs. Run on the software GPU (keel sim).
#include <keel/keel.h>
#include <stdlib.h>

#include "drivers/amdgpu/host/scheduler/scheduler.h"
#include "ok.h"
#include "unit.h"

static hsa_symbols_t real;
static hsa_status_t answer; // of what is refused

// Only a scheduler needs signals before there is work.
static hsa_status_t signal_refuse(hsa_signal_value_t value, uint32_t count,
                                  const hsa_agent_t *consumers, hsa_signal_t *signal)
{
    (void)value, (void)count, (void)consumers, (void)signal;
    return answer;
}

static int high; // queues that were to have that priority

static hsa_status_t priority_refuse(hsa_queue_t *queue, hsa_amd_queue_priority_t priority)
{
    (void)queue;
    high += priority == HSA_AMD_QUEUE_PRIORITY_HIGH;
    return answer;
}

// The table of all devices, which the library owns.
static hsa_symbols_t *table(void)
{
    const hsa_symbols_t *symbols = NULL;
    OK(hsa_symbols_open(NULL, &symbols));
    return (hsa_symbols_t *)(uintptr_t)symbols;
}

static int setup(void **state)
{
    (void)state;
    real = *table();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    *table() = real;
    return 0;
}

static bool gpu_schedules(const char *uri)
{
    keel_device_t *device = NULL;
    OK(keel_device_open(uri, NULL, &device));
    bool does = amdgpu_device(device)->scheduler;
    OK(keel_device_wait_idle(device, KEEL_FOREVER));
    keel_device_release(device);
    return does;
}

static void refused(const char *uri, keel_code_t code)
{
    keel_device_t *device = NULL;
    keel_status_t status = keel_device_open(uri, NULL, &device);
    assert_int_equal(keel_status_code(status), code);
    keel_status_release(status);
}

static void test_the_host_steps_in_where_signals_are_short(void **state)
{
    (void)state;
    table()->hsa_signal_create = signal_refuse;
    answer = HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    assert_false(gpu_schedules("amdgpu://0"));
    refused("amdgpu://0?scheduler=device", KEEL_RESOURCE_EXHAUSTED);
    answer = HSA_STATUS_ERROR;
    assert_false(gpu_schedules("amdgpu://0"));
    answer = HSA_STATUS_ERROR_EXCEPTION;
    refused("amdgpu://0", KEEL_DEVICE_LOST);
}

// The control queue's, which it asks for.
static void test_priority_is_not_needed(void **state)
{
    (void)state;
    high = 0;
    table()->hsa_amd_queue_set_priority = priority_refuse;
    answer = HSA_STATUS_ERROR;
    assert_true(gpu_schedules("amdgpu://0"));
    assert_int_equal(high, 1);
    assert_true(gpu_schedules("amdgpu://0?scheduler=device&schedulers=2"));
    assert_int_equal(high, 3);
}

static _Atomic bool has_failed; // the queue

// A queue fails just before a scheduler is whole. What is asked for behind that waits for HSA's
// thread to be done with the queue.
static hsa_status_t handler_refuse(hsa_signal_t signal, hsa_signal_condition_t condition,
                                   hsa_signal_value_t value,
                                   bool (*handler)(hsa_signal_value_t value, void *data),
                                   void *control)
{
    if (atomic_exchange(&has_failed, true))
        return real.hsa_amd_signal_async_handler(signal, condition, value, handler, control);
    amdgpu_control_t *c = control;
    amdgpu_ring_failed(HSA_STATUS_ERROR_EXCEPTION, c->queue, c->device);
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

// The device's thread, which ends a device whose queue fails, leaves half a scheduler alone. There
// are several turns because it runs beside the opening.
static void test_a_control_queue_that_fails_at_once_is_told(void **state)
{
    (void)state;
    table()->hsa_amd_signal_async_handler = handler_refuse;
    for (int i = 0; i < 20; i++) {
        atomic_store(&has_failed, false);
        refused("amdgpu://0", KEEL_DEVICE_LOST);
    }
}

// The release that these tests run on puts them into memory of the host.
static void test_rings_lie_where_they_are_wanted(void **state)
{
    (void)state;
    const char *local = getenv("HSA_ALLOCATE_QUEUE_DEV_MEM");
    assert_true(gpu_schedules(local ? "amdgpu://0?rings=device" : "amdgpu://0?rings=host"));
    refused(local ? "amdgpu://0?rings=host" : "amdgpu://0?rings=device", KEEL_UNSUPPORTED);
}

int main(void)
{
    if (!getenv("KEEL_SIM_GPUS")) return 77; // to be run by keel sim
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_host_steps_in_where_signals_are_short, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_priority_is_not_needed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_control_queue_that_fails_at_once_is_told, setup,
                                        teardown),
        cmocka_unit_test(test_rings_lie_where_they_are_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
