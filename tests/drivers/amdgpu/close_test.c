// SPDX-License-Identifier: Apache-2.0
// What happens while a device is being closed. Run on the software GPU (keel sim).
#include <keel/keel.h>
#include <sched.h>
#include <stdlib.h>

#include "drivers/amdgpu/host/scheduler.h"
#include "ok.h"
#include "unit.h"

// The device, and what HSA was asked to do with its queues.
static struct {
    keel_device_t *base;
    amdgpu_device_t *device;
    amdgpu_control_t *control;
    hsa_queue_t *control_queue;
    hsa_symbols_t real, symbols;
    _Atomic uint32_t stopped;
    _Atomic bool wrong;
} s;

static void setup_open(void)
{
    atomic_store(&s.stopped, 0);
    atomic_store(&s.wrong, false);
    OK(keel_device_open("amdgpu://0", NULL, &s.base));
    s.device = amdgpu_device(s.base);
    s.control = &s.device->scheduler->controls[0];
    s.control_queue = s.control->queue;
    s.real = s.symbols = *s.device->hsa;
    s.device->hsa = &s.symbols;
}

static hsa_status_t inactivate_note(hsa_queue_t *queue)
{
    if (queue == s.control_queue) atomic_store(&s.wrong, true);
    hsa_status_t status = s.real.hsa_queue_inactivate(queue);
    atomic_fetch_add(&s.stopped, 1);
    return status;
}

// A failure comes just then: until the device's thread has stopped the other queue, and either
// goes for this one, too, or waits until it is gone.
static hsa_status_t destroy_and_fail(hsa_queue_t *queue)
{
    if (queue == s.control_queue) {
        amdgpu_queue_failed(HSA_STATUS_ERROR_EXCEPTION, queue, s.device);
        while (!atomic_load(&s.stopped)) sched_yield();
        while (!atomic_load(&s.wrong) && atomic_load(&s.control->drain_lock.state) != 2)
            sched_yield();
    }
    return s.real.hsa_queue_destroy(queue);
}

static void test_a_loss_meets_a_control_queue_that_goes(void **state)
{
    (void)state;
    setup_open();
    s.symbols.hsa_queue_inactivate = inactivate_note;
    s.symbols.hsa_queue_destroy = destroy_and_fail;
    keel_device_release(s.base);
    assert_false(atomic_load(&s.wrong));
}

int main(void)
{
    if (!getenv("KEEL_SIM_GPUS")) return 77; // to be run by keel sim
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_loss_meets_a_control_queue_that_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
