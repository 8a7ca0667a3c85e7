// SPDX-License-Identifier: Apache-2.0
// What happens while a device is being closed, or is lost. Run on the software GPU (keel sim).
#include <keel/keel.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "drivers/amdgpu/gate.h"
#include "drivers/amdgpu/host/driver.h"
#include "drivers/amdgpu/host/scheduler/scheduler.h"
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

static void device_open(const char *uri)
{
    atomic_store(&s.stopped, 0);
    atomic_store(&s.wrong, false);
    OK(keel_device_open(uri, NULL, &s.base));
    s.device = amdgpu_device(s.base);
    s.real = s.symbols = *s.device->hsa;
    s.device->hsa = &s.symbols;
}

static void setup_open(void)
{
    device_open("amdgpu://0");
    s.control = &s.device->scheduler->controls[0];
    s.control_queue = s.control->queue;
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
        amdgpu_ring_failed(HSA_STATUS_ERROR_EXCEPTION, queue, s.device);
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

// A queue of HSA's that the device does not list: as one whose last reference has just gone.
static struct {
    keel_queue_t *queue;
    hsa_queue_t *ring; // its own
    hsa_signal_t gate;
    uint64_t written; // packets, with the one that waits for the gate
    _Atomic bool is_open;
    _Atomic bool ends; // the control queue is being destroyed
} out;

static uint64_t out_written(void)
{
    const ring_queue_t *shared = amdgpu_queue(out.queue)->shared;
    return __atomic_load_n(PROTOCOL_AT(const uint64_t, shared->write), __ATOMIC_ACQUIRE);
}

// What runs there takes long.
static void out_make(void)
{
    const keel_queue_options_t options = {0};
    OK(amdgpu_queue_create(s.base, &options, &out.queue));
    out.queue->device = s.base;
    out.queue->object.generation = s.base->object.generation;
    out.gate = gate_put(&s.real, amdgpu_queue(out.queue)->queue);
    out.written = out_written();
}

// Opens the gate when someone waits behind it, or the control queue goes.
static void *out_let_go(void *argument)
{
    while (out_written() == out.written && !atomic_load(&out.ends)) sched_yield();
    atomic_store(&out.is_open, true);
    s.real.hsa_signal_store_screlease(out.gate, 0);
    return argument;
}

static hsa_status_t destroy_and_look(hsa_queue_t *queue)
{
    if (queue == s.control_queue) {
        if (!atomic_load(&out.is_open)) atomic_store(&s.wrong, true);
        atomic_store(&out.ends, true);
    }
    return s.real.hsa_queue_destroy(queue);
}

// Behind the end of the scheduler.
static hsa_status_t out_end(hsa_executable_t library)
{
    while (!atomic_load(&out.is_open)) sched_yield(); // the thread looks at it no more
    amdgpu_queue_destroy(out.queue);
    return s.real.hsa_executable_destroy(library);
}

static void test_a_queue_on_its_way_out_is_waited_for(void **state)
{
    (void)state;
    pthread_t thread;
    setup_open();
    out_make();
    s.symbols.hsa_queue_destroy = destroy_and_look;
    s.symbols.hsa_executable_destroy = out_end;
    assert_int_equal(pthread_create(&thread, NULL, out_let_go, NULL), 0);
    keel_device_release(s.base);
    pthread_join(thread, NULL);
    assert_false(atomic_load(&s.wrong));
    s.real.hsa_signal_destroy(out.gate);
}

// The memory that a scheduler has of a queue is still there when the queue goes.
static hsa_status_t destroy_and_check(hsa_queue_t *queue)
{
    if (queue == out.ring &&
        (!amdgpu_queue(out.queue)->shared || s.device->scheduler->spare_queues))
        atomic_store(&s.wrong, true);
    return s.real.hsa_queue_destroy(queue);
}

static bool is_page(const block_t *block)
{
    amdgpu_scheduler_t *scheduler = s.device->scheduler;
    lock_enter(&scheduler->lock);
    const block_t *page = scheduler->pages;
    while (page && page != block) page = page->next;
    lock_leave(&scheduler->lock);
    return page;
}

// A tick of a device that has failed is not waited for: then the memory stays.
static void queue_go(bool fails)
{
    enum { LONG = 60 }; // seconds
    setup_open();
    s.symbols.hsa_queue_destroy = destroy_and_check;
    OK(keel_queue_create(s.base, NULL, &out.queue));
    out.ring = amdgpu_queue(out.queue)->queue;
    const block_t *advances = amdgpu_queue(out.queue)->advances;
    if (fails) amdgpu_ring_failed(HSA_STATUS_ERROR_EXCEPTION, s.control_queue, s.device);
    keel_queue_release(out.queue);
    // The device's thread, which stops the queues, may have it for a while.
    uint64_t late = clock_deadline(UINT64_C(1000000000) * LONG);
    while (is_page(advances) != fails && keel_now_ns() < late) sched_yield();
    assert_int_equal(is_page(advances), fails);
    assert_int_equal(!s.device->scheduler->spare_queues, fails);
    keel_device_release(s.base);
    assert_false(atomic_load(&s.wrong));
}

static void test_a_queue_goes_before_its_memory(void **state)
{
    (void)state;
    queue_go(false);
    queue_go(true);
}

// HSA's thread, which has told of a failure and not returned from that.
static struct {
    _Atomic bool told;
    _Atomic bool awaited; // or the queue is being destroyed
    _Atomic bool returns;
} hsa_thread;

static bool fail_and_stay(hsa_signal_value_t value, void *queue)
{
    (void)value;
    amdgpu_ring_failed(HSA_STATUS_ERROR_EXCEPTION, queue, s.device);
    atomic_store(&hsa_thread.told, true);
    while (!atomic_load(&hsa_thread.returns)) sched_yield();
    return false;
}

static hsa_status_t handler_note(hsa_signal_t signal, hsa_signal_condition_t condition,
                                 hsa_signal_value_t value,
                                 bool (*handler)(hsa_signal_value_t value, void *data), void *data)
{
    hsa_status_t status =
        s.real.hsa_amd_signal_async_handler(signal, condition, value, handler, data);
    atomic_store(&hsa_thread.awaited, true);
    return status;
}

static hsa_status_t destroy_behind(hsa_queue_t *queue)
{
    if (!atomic_load(&hsa_thread.returns)) atomic_store(&s.wrong, true);
    atomic_store(&hsa_thread.awaited, true);
    return s.real.hsa_queue_destroy(queue);
}

static void *hsa_let_go(void *argument)
{
    while (!atomic_load(&hsa_thread.awaited)) sched_yield();
    atomic_store(&hsa_thread.returns, true);
    return argument;
}

static void test_a_queue_that_has_failed_goes_when_hsa_has_done_with_it(void **state)
{
    (void)state;
    pthread_t thread;
    keel_queue_t *queue;
    hsa_signal_t fails;
    device_open("amdgpu://0?scheduler=host");
    OK(keel_queue_create(s.base, NULL, &queue));
    assert_int_equal(s.real.hsa_signal_create(0, 0, NULL, &fails), 0);
    assert_int_equal(s.real.hsa_amd_signal_async_handler(fails, HSA_SIGNAL_CONDITION_LT, 1,
                                                         fail_and_stay, amdgpu_queue(queue)->queue),
                     0);
    while (!atomic_load(&hsa_thread.told)) sched_yield();
    s.symbols.hsa_queue_destroy = destroy_behind;
    s.symbols.hsa_amd_signal_async_handler = handler_note;
    assert_int_equal(pthread_create(&thread, NULL, hsa_let_go, NULL), 0);
    keel_queue_release(queue);
    keel_device_release(s.base);
    pthread_join(thread, NULL);
    assert_false(atomic_load(&s.wrong));
    s.real.hsa_signal_destroy(fails);
}

static void *clock_ask(void *argument)
{
    keel_clock_pair_t now;
    *(keel_status_t *)argument = keel_device_clock(s.base, &now);
    return NULL;
}

static uint64_t side_written(void)
{
    enum { WRITE = 56 }; // amd_queue_t
    const unsigned char *queue = (const unsigned char *)(const void *)s.device->side;
    return __atomic_load_n((const uint64_t *)(const void *)(queue + WRITE), __ATOMIC_ACQUIRE);
}

// Its packet stands behind one that does not end, and never ends either.
static void test_who_asks_for_the_clock_learns_of_the_loss(void **state)
{
    (void)state;
    keel_clock_pair_t now;
    pthread_t thread;
    keel_status_t status = NULL;
    setup_open();
    OK(keel_device_clock(s.base, &now));
    hsa_signal_t gate = gate_put(&s.real, s.device->side);
    uint64_t written = side_written();
    assert_int_equal(pthread_create(&thread, NULL, clock_ask, &status), 0);
    while (side_written() == written) sched_yield();
    amdgpu_ring_failed(HSA_STATUS_ERROR_EXCEPTION, s.device->side, s.device);
    pthread_join(thread, NULL);
    assert_int_equal(keel_status_code(status), KEEL_DEVICE_LOST);
    keel_status_release(status);
    assert_non_null(s.device->late); // the GPU may still write there
    keel_device_release(s.base);
    s.real.hsa_signal_destroy(gate);
}

int main(void)
{
    if (!getenv("KEEL_SIM_GPUS")) return 77; // to be run by keel sim
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_loss_meets_a_control_queue_that_goes),
        cmocka_unit_test(test_a_queue_on_its_way_out_is_waited_for),
        cmocka_unit_test(test_a_queue_goes_before_its_memory),
        cmocka_unit_test(test_a_queue_that_has_failed_goes_when_hsa_has_done_with_it),
        cmocka_unit_test(test_who_asks_for_the_clock_learns_of_the_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
