// SPDX-License-Identifier: Apache-2.0
// Submissions that wait for each other go on without the host: counted by the scheduler itself. Run
// on the software GPU (keel sim).
#include <keel/keel.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/amdgpu/gate.h"
#include "drivers/amdgpu/host/scheduler/scheduler.h"
#include "ok.h"
#include "unit.h"

enum { CHAIN = 24 };

typedef struct setup_t {
    keel_device_t *device;
    keel_queue_t *queues[2], *second; // of the second GPU, or a second one of the first: `second`
    keel_buffer_t *buffer;            // a word for each link of a chain
    keel_semaphore_t *semaphore;
} setup_t;

static void setup_open(setup_t *s, const char *uri)
{
    const keel_buffer_options_t options = {.size = CHAIN * sizeof(uint32_t),
                                           .memory = KEEL_MEMORY_HOST_VISIBLE};
    OK(keel_device_open(uri, NULL, &s->device));
    s->second = NULL;
    s->queues[0] = keel_device_queue(s->device, 0);
    s->queues[1] = keel_device_queue(s->device, 1);
    if (!s->queues[1]) {
        OK(keel_queue_create(s->device, NULL, &s->second));
        s->queues[1] = s->second;
    }
    OK(keel_buffer_create(s->device, &options, &s->buffer));
    OK(keel_semaphore_create(s->device, NULL, &s->semaphore));
}

static void setup_close(setup_t *s)
{
    keel_semaphore_release(s->semaphore);
    keel_buffer_release(s->buffer);
    keel_queue_release(s->second);
    keel_device_release(s->device);
}

// Until the last tick that was asked for is over.
static void control_settle(const amdgpu_control_t *control)
{
    const hsa_symbols_t *hsa = control->device->hsa;
    const uint64_t *write = PROTOCOL_AT(const uint64_t, control->shared->control.write);
    while (hsa->hsa_queue_load_read_index_scacquire(control->queue) !=
           __atomic_load_n(write, __ATOMIC_ACQUIRE))
        sched_yield();
}

typedef struct counts_t {
    uint64_t ticks, told, looks, issued;
} counts_t;

// What the schedulers of all GPUs have done so far.
static counts_t counts_settled(const setup_t *s)
{
    const amdgpu_scheduler_t *scheduler = amdgpu_device(s->device)->scheduler;
    counts_t sum = {0};
    for (uint32_t i = 0; i < scheduler->control_count; i++) {
        const scheduler_t *shared = scheduler->controls[i].shared;
        control_settle(&scheduler->controls[i]);
        sum.ticks += shared->ticks;
        sum.told += shared->told;
        sum.looks += shared->looks;
        sum.issued += shared->issued;
    }
    return sum;
}

// Link i waits for value i, fills word i - 1, and signals i + 1.
static void link_submit_to(const setup_t *s, keel_queue_t *queue, uint32_t i)
{
    const keel_point_t wait = keel_point(s->semaphore, i), signal = keel_point(s->semaphore, i + 1);
    const keel_op_t op =
        keel_op_fill(keel_span(s->buffer, (i - 1) * sizeof i, sizeof i), i, sizeof i);
    OK(keel_queue_submit(queue, KEEL_POINTS(wait), &op, 1, KEEL_POINTS(signal), NULL));
}

// The two queues take turns.
static void link_submit(const setup_t *s, uint32_t i)
{
    link_submit_to(s, s->queues[i % 2], i);
}

static void words_check(const setup_t *s)
{
    uint32_t *words;
    OK(keel_buffer_map(s->buffer, 0, CHAIN * sizeof *words, KEEL_ACCESS_READ, (void **)&words));
    for (uint32_t i = 0; i < CHAIN; i++) assert_int_equal(words[i], i + 1);
    keel_buffer_unmap(s->buffer);
}

// The chain is to fill a buffer that has no memory yet.
static void setup_reserve(setup_t *s)
{
    const keel_pool_options_t pool_options = {.memory = KEEL_MEMORY_HOST_VISIBLE};
    const keel_buffer_options_t options = {.size = CHAIN * sizeof(uint32_t)};
    keel_pool_t *pool;
    OK(keel_pool_create(s->device, &pool_options, &pool));
    keel_buffer_release(s->buffer);
    OK(keel_buffer_reserve(pool, &options, &s->buffer));
    keel_pool_release(pool);
}

// The first link may go: by the host, or by a submission that gives the buffer its memory.
static void chain_begin(const setup_t *s, bool reserved)
{
    const keel_point_t first = keel_point(s->semaphore, 1);
    const keel_op_t op = keel_op_alloca(s->buffer);
    if (!reserved)
        OK(keel_semaphore_signal(s->semaphore, 1));
    else
        OK(keel_queue_submit(s->queues[0], KEEL_NO_WAITS, &op, 1, KEEL_POINTS(first), NULL));
}

// What a chain takes, from the first link to the last.
static counts_t chain_run(const char *uri, bool reserved)
{
    setup_t s;
    setup_open(&s, uri);
    if (reserved) setup_reserve(&s);
    for (uint32_t i = 1; i <= CHAIN; i++) link_submit(&s, i);
    counts_t before = counts_settled(&s);
    chain_begin(&s, reserved);
    const keel_point_t last = keel_point(s.semaphore, CHAIN + 1);
    OK(keel_wait(KEEL_POINTS(last), KEEL_ALL, KEEL_FOREVER));
    counts_t after = counts_settled(&s);
    words_check(&s);
    setup_close(&s);
    return (counts_t){after.ticks - before.ticks, after.told - before.told,
                      after.looks - before.looks, after.issued - before.issued};
}

// One tick lets each link go, and none looks in vain; the host is told once, or has looked by
// itself. The alloca takes another tick: it asks the host for the pool's first memory.
static void chain_check(bool reserved)
{
    counts_t counts = chain_run("amdgpu://0", reserved);
    assert_int_equal(counts.ticks, CHAIN + reserved);
    assert_in_range(counts.told, 0, 1 + reserved);
    // Each time at the one that can go on, and at the next, which cannot.
    assert_in_range(counts.looks, CHAIN, 2 * CHAIN);
}

static void test_a_chain_needs_no_host(void **state)
{
    (void)state;
    chain_check(false);
}

// Nor does one in memory of a pool, that was submitted before the memory was there.
static void test_a_chain_finds_its_memory(void **state)
{
    (void)state;
    chain_check(true);
}

// Each link wakes the next one, which another scheduler has: its own has nothing to do.
static void apart_check(const char *uri)
{
    counts_t counts = chain_run(uri, false);
    assert_int_equal(counts.ticks, CHAIN);
    assert_in_range(counts.told, 0, 2);
    assert_in_range(counts.looks, CHAIN, 2 * CHAIN);
}

static void test_a_chain_goes_from_gpu_to_gpu(void **state)
{
    (void)state;
    apart_check("amdgpu://0,1");
}

static void test_a_gpu_has_several_schedulers(void **state)
{
    (void)state;
    setup_t s;
    apart_check("amdgpu://0?schedulers=2");
    setup_open(&s, "amdgpu://0,1?schedulers=4");
    assert_int_equal(amdgpu_device(s.device)->scheduler->control_count, 8);
    assert_int_equal(amdgpu_control_of(s.queues[0])->node, 0);
    assert_int_equal(amdgpu_control_of(s.queues[1])->node, 1);
    setup_close(&s);
    setup_open(&s, "amdgpu://0?schedulers=2");
    assert_ptr_not_equal(amdgpu_control_of(s.queues[0]), amdgpu_control_of(s.queues[1]));
    setup_close(&s);
}

// A GPU with so many schedulers, for so many queues: a chain goes through all of them in turn.
static void topology_check(const char *uri, uint32_t schedulers, uint32_t count)
{
    keel_queue_t *queues[CHAIN];
    uint32_t shares[AMDGPU_CONTROLS] = {0};
    setup_t s;
    setup_open(&s, uri); // has two queues
    const amdgpu_scheduler_t *scheduler = amdgpu_device(s.device)->scheduler;
    assert_int_equal(scheduler->control_count, schedulers);
    for (uint32_t i = 0; i < count; i++) {
        if (i < 2) queues[i] = s.queues[i];
        if (i >= 2) OK(keel_queue_create(s.device, NULL, &queues[i]));
        shares[amdgpu_control_of(queues[i])->number]++;
    }
    for (uint32_t i = 0; i < schedulers; i++)
        assert_int_equal(shares[i], count < schedulers ? i < count : count / schedulers);
    for (uint32_t i = 1; i <= CHAIN; i++) link_submit_to(&s, queues[i % count], i);
    counts_t before = counts_settled(&s);
    OK(keel_semaphore_signal(s.semaphore, 1));
    const keel_point_t last = keel_point(s.semaphore, CHAIN + 1);
    OK(keel_wait(KEEL_POINTS(last), KEEL_ALL, KEEL_FOREVER));
    assert_int_equal(counts_settled(&s).ticks - before.ticks, CHAIN);
    words_check(&s);
    for (uint32_t i = 2; i < count; i++) keel_queue_release(queues[i]);
    setup_close(&s);
}

static void test_topologies(void **state)
{
    (void)state;
    topology_check("amdgpu://0", 1, 1);
    topology_check("amdgpu://0?schedulers=2", 2, 8);
    topology_check("amdgpu://0?schedulers=4", 4, 1);
    topology_check("amdgpu://0?schedulers=4", 4, 16);
}

// Links that were submitted last first wait on the GPU all the same.
static void order_check(const char *uri)
{
    setup_t s;
    setup_open(&s, uri);
    for (uint32_t i = CHAIN; i >= 1; i--) link_submit(&s, i);
    OK(keel_semaphore_signal(s.semaphore, 1));
    const keel_point_t last = keel_point(s.semaphore, CHAIN + 1);
    OK(keel_wait(KEEL_POINTS(last), KEEL_ALL, KEEL_FOREVER));
    setup_close(&s);
}

static void test_the_order_is_that_of_the_points(void **state)
{
    (void)state;
    order_check("amdgpu://0");
    order_check("amdgpu://0,1");
}

// A failure goes down the chain, and nothing runs.
static void failure_check(const char *uri)
{
    setup_t s;
    setup_open(&s, uri);
    for (uint32_t i = 1; i <= CHAIN; i++) link_submit(&s, i);
    uint64_t issued = counts_settled(&s).issued;
    OK(keel_semaphore_fail(s.semaphore, KEEL_ERROR(KEEL_ABORTED, "enough")));
    const keel_point_t last = keel_point(s.semaphore, CHAIN + 1);
    keel_status_t status = keel_wait(KEEL_POINTS(last), KEEL_ALL, KEEL_FOREVER);
    assert_int_equal(keel_status_code(status), KEEL_ABORTED);
    keel_status_release(status);
    OK(keel_device_wait_idle(s.device, KEEL_FOREVER));
    assert_int_equal(counts_settled(&s).issued, issued);
    setup_close(&s);
}

static void test_a_failure_goes_down_the_chain(void **state)
{
    (void)state;
    failure_check("amdgpu://0");
    failure_check("amdgpu://0,1");
}

// However few queues the hardware runs at a time (keel sim --queues=1): those that wait keep
// neither ticks nor other queues from running, and go on in the end.
static void test_queues_take_turns(void **state)
{
    (void)state;
    enum { GATED = 4 };
    keel_queue_t *gated[GATED];
    keel_semaphore_t *ends;
    hsa_signal_t gates[GATED];
    setup_t s;
    setup_open(&s, "amdgpu://0");
    const hsa_symbols_t *hsa = amdgpu_device(s.device)->hsa;
    OK(keel_semaphore_create(s.device, NULL, &ends));
    for (uint32_t i = 0; i < GATED; i++) {
        const keel_point_t wait = keel_point(i ? ends : s.semaphore, i ? i : CHAIN + 1);
        const keel_point_t signal = keel_point(ends, i + 1);
        OK(keel_queue_create(s.device, NULL, &gated[i]));
        gates[i] = gate_put(hsa, amdgpu_queue(gated[i])->queue);
        OK(keel_queue_submit(gated[i], KEEL_POINTS(wait), NULL, 0, KEEL_POINTS(signal), NULL));
    }
    for (uint32_t i = 1; i <= CHAIN; i++) link_submit(&s, i);
    OK(keel_semaphore_signal(s.semaphore, 1));
    const keel_point_t last = keel_point(s.semaphore, CHAIN + 1), end = keel_point(ends, GATED);
    OK(keel_wait(KEEL_POINTS(last), KEEL_ALL, KEEL_FOREVER));
    words_check(&s);
    for (uint32_t i = GATED; i-- > 0;) hsa->hsa_signal_store_screlease(gates[i], 0);
    OK(keel_wait(KEEL_POINTS(end), KEEL_ALL, KEEL_FOREVER));
    for (uint32_t i = 0; i < GATED; i++) keel_queue_release(gated[i]);
    for (uint32_t i = 0; i < GATED; i++) hsa->hsa_signal_destroy(gates[i]);
    keel_semaphore_release(ends);
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

static bool is_watched(void)
{
    return getenv("HSA_TOOLS_LIB");
}

static bool is_off(const char *variable)
{
    const char *value = getenv(variable);
    return value && !strcmp(value, "0");
}

// Why the GPU cannot schedule; NULL: it can.
static const char *obstacle(void)
{
    if (is_watched()) return "a tool watches the queues";
    if (is_off("KEEL_SIM_ATOMICS")) return "its link to the host carries no atomic";
    if (is_off("KEEL_SIM_DOORBELLS")) return "not all of them reach the doorbells";
    return NULL;
}

static void test_the_host_steps_in(void **state)
{
    (void)state;
    keel_device_t *device = NULL;
    char text[1024];
    assert_false(gpu_schedules("amdgpu://0"));
    keel_status_t status = keel_device_open("amdgpu://0?scheduler=device", NULL, &device);
    assert_int_equal(keel_status_code(status), KEEL_UNSUPPORTED);
    keel_status_format(status, text, sizeof text);
    assert_non_null(strstr(text, "the host schedules without the option"));
    assert_non_null(strstr(text, obstacle()));
    keel_status_release(status);
    order_check("amdgpu://0");
}

int main(void)
{
    if (!getenv("KEEL_SIM_GPUS")) return 77; // to be run by keel sim
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_schedules),
        cmocka_unit_test(test_a_chain_needs_no_host),
        cmocka_unit_test(test_a_chain_finds_its_memory),
        cmocka_unit_test(test_a_chain_goes_from_gpu_to_gpu),
        cmocka_unit_test(test_a_gpu_has_several_schedulers),
        cmocka_unit_test(test_topologies),
        cmocka_unit_test(test_the_order_is_that_of_the_points),
        cmocka_unit_test(test_a_failure_goes_down_the_chain),
        cmocka_unit_test(test_queues_take_turns),
    };
    const struct CMUnitTest host[] = {cmocka_unit_test(test_the_host_steps_in)};
    if (obstacle()) return cmocka_run_group_tests(host, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
