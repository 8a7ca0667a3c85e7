// SPDX-License-Identifier: Apache-2.0
// The ends of queues and of what is in them. Run on the software GPU (keel sim).
#include <keel/keel.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/amdgpu/gate.h"
#include "drivers/amdgpu/host/scheduler/scheduler.h"
#include "ok.h"
#include "unit.h"

static keel_device_t *gpu_open(const char *uri)
{
    keel_device_t *device = NULL;
    OK(keel_device_open(uri, NULL, &device));
    return device;
}

static uint64_t control_written(const amdgpu_scheduler_t *scheduler)
{
    const scheduler_t *shared = scheduler->controls[0].shared;
    return __atomic_load_n(PROTOCOL_AT(const uint64_t, shared->control.write), __ATOMIC_ACQUIRE);
}

// A packet in the control queue, in place of a tick that takes long.
typedef struct hold_t {
    amdgpu_device_t *device;
    hsa_signal_t gate;
    uint64_t written; // packets, with it
    _Atomic bool open;
} hold_t;

static void control_hold(hold_t *hold)
{
    const hsa_symbols_t *hsa = hold->device->hsa;
    hsa_queue_t *control = hold->device->scheduler->controls[0].queue;
    hold->gate = gate_put(hsa, control);
    hold->written = control_written(hold->device->scheduler);
}

// Opens when someone waits behind it.
static void *control_let_go(void *argument)
{
    hold_t *hold = argument;
    while (control_written(hold->device->scheduler) == hold->written) sched_yield();
    atomic_store(&hold->open, true);
    hold->device->hsa->hsa_signal_store_screlease(hold->gate, 0);
    return NULL;
}

// A tick may be about to ring for packets of the queue.
static void test_a_queue_goes_when_ticks_are_over(void **state)
{
    (void)state;
    keel_device_t *device = gpu_open("amdgpu://0");
    hold_t hold = {.device = amdgpu_device(device)};
    keel_queue_t *queue = NULL;
    pthread_t thread;
    OK(keel_queue_create(device, NULL, &queue));
    control_hold(&hold);
    assert_int_equal(pthread_create(&thread, NULL, control_let_go, &hold), 0);
    keel_queue_release(queue);
    bool open = atomic_load(&hold.open);
    if (!open)
        amdgpu_scheduler_ask(&hold.device->scheduler->controls[0]); // so that the thread ends
    pthread_join(thread, NULL);
    assert_true(open);
    hold.device->hsa->hsa_signal_destroy(hold.gate);
    keel_device_release(device);
}

static _Atomic uint32_t refused;

static hsa_status_t handler_refuse(hsa_signal_t signal, hsa_signal_condition_t condition,
                                   hsa_signal_value_t value,
                                   bool (*handler)(hsa_signal_value_t value, void *data),
                                   void *data)
{
    (void)signal, (void)condition, (void)value, (void)handler, (void)data;
    atomic_fetch_add(&refused, 1);
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

static void fill_check(keel_device_t *device, keel_buffer_t *buffer, uint32_t value)
{
    keel_point_t done;
    uint32_t found = 0;
    OK(keel_queue_fill(keel_device_queue(device, 0), KEEL_NO_WAITS, keel_whole(buffer), value,
                       sizeof value, &done));
    OK(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    OK(keel_buffer_read(buffer, 0, &found, sizeof found));
    assert_int_equal(found, value);
}

static void test_ends_are_seen_without_handlers(void **state)
{
    (void)state;
    enum { ROUNDS = 8 };
    keel_device_t *device = gpu_open("amdgpu://0");
    const keel_buffer_options_t options = {.size = 4096, .memory = KEEL_MEMORY_HOST_VISIBLE};
    keel_buffer_t *buffer = NULL;
    hsa_symbols_t symbols = *amdgpu_device(device)->hsa;
    OK(keel_buffer_create(device, &options, &buffer));
    symbols.hsa_amd_signal_async_handler = handler_refuse;
    amdgpu_device(device)->hsa = &symbols;
    for (uint32_t i = 1; i <= ROUNDS; i++) fill_check(device, buffer, i);
    assert_true(atomic_load(&refused) >= ROUNDS);
    keel_buffer_release(buffer);
    keel_device_release(device);
}

static hsa_status_t memory_refuse(hsa_amd_memory_pool_t pool, size_t size, uint32_t flags,
                                  void **memory)
{
    (void)pool, (void)size, (void)flags, (void)memory;
    atomic_fetch_add(&refused, 1);
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

// Each waits for the one before it, and the first for the host.
static void test_the_host_takes_over_without_memory(void **state)
{
    (void)state;
    enum { LINKS = 400 }; // more than there is memory left for
    keel_device_t *device = gpu_open("amdgpu://0");
    keel_semaphore_t *semaphore = NULL;
    hsa_symbols_t symbols = *amdgpu_device(device)->hsa;
    OK(keel_semaphore_create(device, NULL, &semaphore));
    symbols.hsa_amd_memory_pool_allocate = memory_refuse;
    amdgpu_device(device)->hsa = &symbols;
    atomic_store(&refused, 0);
    for (uint64_t i = 1; i <= LINKS; i++) {
        const keel_point_t wait = keel_point(semaphore, i), signal = keel_point(semaphore, i + 1);
        const keel_op_t op = keel_op_barrier();
        OK(keel_queue_submit(keel_device_queue(device, 0), KEEL_POINTS(wait), &op, 1,
                             KEEL_POINTS(signal), NULL));
    }
    assert_true(atomic_load(&refused));
    const keel_point_t last = keel_point(semaphore, LINKS + 1);
    keel_status_t pending = keel_wait(KEEL_POINTS(last), KEEL_ALL, 0);
    assert_int_equal(keel_status_code(pending), KEEL_DEADLINE_EXCEEDED);
    keel_status_release(pending);
    OK(keel_semaphore_signal(semaphore, 1));
    OK(keel_wait(KEEL_POINTS(last), KEEL_ALL, KEEL_FOREVER));
    keel_semaphore_release(semaphore);
    keel_device_release(device);
}

static uint64_t counted(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

// One tick ends them all, and for each the host is to be told. It hears at once, so a packet for
// each would go round the control queue. Nothing is issued, so that none but ticks tell.
static void test_a_tick_tells_once(void **state)
{
    (void)state;
    enum { RECORDS = 2000 };
    keel_device_t *device = gpu_open("amdgpu://0");
    keel_queue_t *queue = keel_device_queue(device, 0);
    const scheduler_t *shared = amdgpu_device(device)->scheduler->controls[0].shared;
    keel_semaphore_t *semaphore = NULL;
    OK(keel_semaphore_create(device, NULL, &semaphore));
    const keel_point_t never = keel_point(semaphore, 1);
    const keel_op_t op = keel_op_barrier();
    for (int i = 0; i < RECORDS; i++)
        OK(keel_queue_submit(queue, KEEL_POINTS(never), &op, 1, KEEL_NO_SIGNALS, NULL));
    while (counted(&shared->inbox)) sched_yield();
    uint64_t ticks = counted(&shared->ticks), told = counted(&shared->told);
    OK(keel_semaphore_fail(semaphore, KEEL_ERROR(KEEL_ABORTED, "enough")));
    keel_status_release(keel_queue_wait_idle(queue, KEEL_FOREVER));
    assert_int_equal(counted(&shared->issued), 0);
    // The tick that was running when they were counted may have told, too.
    assert_in_range(counted(&shared->told) - told, 0, counted(&shared->ticks) - ticks + 1);
    keel_semaphore_release(semaphore);
    keel_device_release(device);
}

// No tick is left that could end what waits: the host does, and says as much as it would have.
static void test_what_the_gpu_leaves_says_why(void **state)
{
    (void)state;
    keel_device_t *device = gpu_open("amdgpu://0");
    hold_t hold = {.device = amdgpu_device(device)};
    const hsa_symbols_t *hsa = hold.device->hsa;
    keel_semaphore_t *semaphore = NULL;
    keel_point_t done;
    OK(keel_semaphore_create(device, NULL, &semaphore));
    const keel_point_t never = keel_point(semaphore, 1);
    const keel_op_t op = keel_op_barrier();
    control_hold(&hold);
    OK(keel_queue_submit(keel_device_queue(device, 0), KEEL_POINTS(never), &op, 1, KEEL_NO_SIGNALS,
                         &done));
    amdgpu_device_fail(hold.device, KEEL_ERROR(KEEL_INTERNAL, "a test's"));
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
    assert_int_equal(keel_status_code(status), KEEL_DEVICE_LOST);
    assert_non_null(strstr(keel_status_message(status), "is lost; waiting: queue"));
    keel_status_release(status);
    keel_semaphore_release(semaphore);
    keel_device_release(device);
    hsa->hsa_signal_destroy(hold.gate);
}

int main(void)
{
    if (!getenv("KEEL_SIM_GPUS")) return 77; // to be run by keel sim
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_queue_goes_when_ticks_are_over),
        cmocka_unit_test(test_ends_are_seen_without_handlers),
        cmocka_unit_test(test_the_host_takes_over_without_memory),
        cmocka_unit_test(test_a_tick_tells_once),
        cmocka_unit_test(test_what_the_gpu_leaves_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
