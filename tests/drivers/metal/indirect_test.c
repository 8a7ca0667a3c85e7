// SPDX-License-Identifier: Apache-2.0
// Recordings that are replayed by indirect commands: what they compute, how many messages that
// takes, and when it is not done.
#include <pthread.h>

#include "drivers/metal/image.h"

enum { ROUNDS = 50, COUNT = 64, REPLAYS = 3 };

static const char *const execute = "executeCommandsInBuffer:withRange:";
static const char *const execute_counted =
    "executeCommandsInBuffer:indirectBuffer:indirectBufferOffset:";
static const char *const dispatch = "dispatchThreadgroups:threadsPerThreadgroup:";
static const char *const make = "newIndirectCommandBufferWithDescriptor:maxCommandCount:options:";

// The order of steps matters: each takes the result of the one before.
static const char source[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "struct step_block {\n"
    "    uint groups[3], zero;\n"
    "    ulong addresses[1], lengths[1];\n"
    "    uint add;\n"
    "};\n"
    "kernel void step(constant step_block &b [[buffer(0)]], uint i [[thread_position_in_grid]])\n"
    "{\n"
    "    device uint *y = (device uint *)b.addresses[0];\n"
    "    y[i] = y[i] * 3 + b.add;\n"
    "}\n";

// The same with an argument buffer.
static const char bound_source[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "struct step_arguments { device uint *y [[id(0)]]; };\n"
    "kernel void step(constant step_arguments &a [[buffer(0)]], constant uint &add [[buffer(1)]],\n"
    "                 uint i [[thread_position_in_grid]])\n"
    "{\n"
    "    a.y[i] = a.y[i] * 3 + add;\n"
    "}\n";

static bool is_bound; // which of the two
static keel_device_t *device;
static keel_executable_t *executable;
static keel_buffer_t *y;
static keel_recording_t *recording;

static void rig_open(const char *which)
{
    static const keel_binding_info_t binding = {"y", KEEL_ACCESS_READ | KEEL_ACCESS_WRITE};
    keel_image_entry_t entry = {.info = {.name = "step",
                                         .group_size = {COUNT, 1, 1},
                                         .bindings = 1,
                                         .constants = sizeof(uint32_t),
                                         .fixed_size = true},
                                .bindings = &binding,
                                .abi = is_bound ? KEEL_ABI_BOUND : KEEL_ABI_DIRECT};
    keel_status_t status = device_try_open(which, &device);
    if (status) fail_msg("%s", keel_status_message(status));
    assert_null(load_text(device, is_bound ? bound_source : source, &entry, 1, &executable));
    y = buffer_create(device, COUNT * sizeof(uint32_t));
    assert_null(keel_recording_create(device, NULL, &recording));
    ok(submit(device, KEEL_NO_WAITS, keel_op_fill(keel_whole(y), 0, 1)));
}

static void rig_close(void)
{
    keel_recording_release(recording);
    keel_buffer_release(y);
    keel_executable_release(executable);
    device_close(device);
}

static keel_op_t step(uint32_t add, keel_refs_t bound)
{
    static uint32_t adds[ROUNDS];
    adds[add % ROUNDS] = add;
    return keel_op_dispatch(find(executable, "step"), keel_groups(1, 1, 1), &adds[add % ROUNDS],
                            sizeof add, bound);
}

// Steps, each behind the one before.
static void record(keel_refs_t bound)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        keel_op_t ops[] = {step(i, bound), keel_op_barrier()};
        assert_null(keel_recording_add(recording, ops, 2));
    }
    assert_null(keel_recording_end(recording));
}

static uint32_t after(int replays)
{
    uint32_t value = 0;
    for (int r = 0; r < replays; r++)
        for (uint32_t i = 0; i < ROUNDS; i++) value = value * 3 + i;
    return value;
}

static void check(uint32_t expected)
{
    uint32_t values[COUNT];
    assert_null(keel_buffer_read(y, 0, values, sizeof values));
    for (int i = 0; i < COUNT; i++) assert_int_equal(values[i], expected);
}

static void replay(void)
{
    ok(submit(device, KEEL_NO_WAITS, keel_op_execute(recording, KEEL_NO_BINDINGS)));
}

// Messages of one replay.
static uint64_t replay_counted(void)
{
    uint64_t before = sim_messages();
    replay();
    return sim_messages() - before;
}

// One message for all dispatches, and barriers are still barriers.
static void prepared(void)
{
    rig_open("0");
    record(KEEL_BIND(y));
    assert_null(keel_recording_prepare(recording, keel_device_queue(device, 0)));
    assert_null(keel_recording_prepare(recording, keel_device_queue(device, 0))); // is done
    assert_int_equal(sim_sent(make), 1);
    uint64_t pipelines = sim_sent("setComputePipelineState:");
    for (int i = 1; i <= REPLAYS; i++) {
        replay();
        check(after(i));
        assert_int_equal(sim_sent(execute), i);
        assert_int_equal(sim_sent("useResources:count:usage:"), i);
    }
    assert_int_equal(sim_sent("setComputePipelineState:"), pipelines);
    assert_int_equal(sim_sent(dispatch), 0);
    assert_in_range(replay_counted(), 1, 20);
    rig_close();
}

static void arguments(void)
{
    is_bound = true;
    prepared();
}

// An encoder of Metal's writes argument buffers, each time.
static void encoded_arguments(void)
{
    is_bound = true;
    rig_open("0");
    record(KEEL_BIND(y));
    assert_null(keel_recording_prepare(recording, keel_device_queue(device, 0)));
    replay();
    check(after(1));
    assert_int_equal(sim_sent(make) + sim_sent(execute), 0);
    rig_close();
}

// A GPU that wants the pipelines to be set once more.
static void touched(void)
{
    rig_open("0");
    record(KEEL_BIND(y));
    assert_null(keel_recording_prepare(recording, keel_device_queue(device, 0)));
    uint64_t pipelines = sim_sent("setComputePipelineState:");
    replay();
    check(after(1));
    assert_int_equal(sim_sent("setComputePipelineState:"), pipelines + 1);
    rig_close();
}

// What comes again and again is found out, with no word of the program's.
static void found_out(void)
{
    rig_open("0");
    record(KEEL_BIND(y));
    for (int i = 1; i <= 5; i++) {
        replay();
        check(after(i));
        assert_int_equal(sim_sent(execute), i < 3 ? 0 : i - 2);
        assert_int_equal(sim_sent(dispatch), ROUNDS * (i < 3 ? i : 2));
    }
    rig_close();
}

// Part of a recording: what is around it is encoded as it comes.
static void in_the_middle(void)
{
    rig_open("0");
    keel_op_t fill[] = {keel_op_fill(keel_whole(y), 0, 1), keel_op_barrier()};
    assert_null(keel_recording_add(recording, fill, 2));
    for (uint32_t i = 0; i < 6; i++) {
        keel_op_t ops[] = {step(i, KEEL_BIND(y)), keel_op_barrier()};
        assert_null(keel_recording_add(recording, ops, 2));
    }
    assert_null(keel_recording_add(recording, (keel_op_t[]){fill[0], fill[1]}, 2));
    for (uint32_t i = 0; i < 3; i++) { // too few
        keel_op_t ops[] = {step(i, KEEL_BIND(y)), keel_op_barrier()};
        assert_null(keel_recording_add(recording, ops, 2));
    }
    assert_null(keel_recording_end(recording));
    assert_null(keel_recording_prepare(recording, keel_device_queue(device, 0)));
    replay();
    check((0 * 3 + 1) * 3 + 2);
    assert_int_equal(sim_sent(execute), 1);
    rig_close();
}

// Dispatches that differ from time to time are encoded each time.
static void not_fixed(void)
{
    rig_open("0");
    keel_recording_release(recording);
    assert_null(keel_recording_create(device, &(keel_recording_options_t){.slots = 1}, &recording));
    record(KEEL_BIND(keel_slot(0, 0, KEEL_WHOLE)));
    assert_null(keel_recording_prepare(recording, keel_device_queue(device, 0)));
    ok(submit(device, KEEL_NO_WAITS, keel_op_execute(recording, KEEL_BIND(y))));
    check(after(1));
    assert_int_equal(sim_sent(make) + sim_sent(execute), 0);
    assert_int_equal(sim_sent(dispatch), ROUNDS);
    rig_close();
}

// Switched off, on a GPU that has none, or where Metal refuses something.
static void without(void)
{
    const char *off = getenv("INDIRECT_OFF");
    rig_open(off ? "0?indirect=0" : "0");
    record(KEEL_BIND(y));
    assert_null(keel_recording_prepare(recording, keel_device_queue(device, 0)));
    for (int i = 1; i <= REPLAYS; i++) replay();
    check(after(REPLAYS));
    assert_int_equal(sim_sent(execute), 0);
    assert_in_range(replay_counted(), 2 * ROUNDS, 4 * ROUNDS);
    rig_close();
}

static keel_recording_t *other_recording;

static void *other_prepare(void *unused)
{
    (void)unused;
    assert_null(keel_recording_prepare(other_recording, keel_device_queue(device, 0)));
    return NULL;
}

static void other_thread(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, other_prepare, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

// While Metal compiles for one thread, others need not wait for it, also those who need the same.
static void compiled_by_two(void)
{
    rig_open("0");
    record(KEEL_BIND(y));
    other_recording = recording;
    assert_null(keel_recording_create(device, NULL, &recording));
    record(KEEL_BIND(y));
    sim_when("newComputePipelineStateWithDescriptor:options:reflection:error:", other_thread);
    assert_null(keel_recording_prepare(recording, keel_device_queue(device, 0)));
    replay();
    ok(submit(device, KEEL_NO_WAITS, keel_op_execute(other_recording, KEEL_NO_BINDINGS)));
    check(after(2));
    assert_int_equal(sim_sent(execute), 2);
    keel_recording_release(other_recording);
    rig_close();
}

// A submission that went ahead of one that dies: none of its commands runs.
static void guarded(void)
{
    enum { CHAIN = 10 };
    rig_open("0"); // the first command buffer
    record(KEEL_BIND(y));
    assert_null(keel_recording_prepare(recording, keel_device_queue(device, 0)));
    keel_semaphore_t *gate = NULL;
    keel_point_t last, points[CHAIN];
    assert_null(keel_semaphore_create(device, NULL, &gate));
    last = keel_point(gate, 1);
    for (int i = 0; i < CHAIN; i++) {
        keel_op_t op = keel_op_execute(recording, KEEL_NO_BINDINGS);
        last = points[i] = submit(device, KEEL_AFTER(last), op);
    }
    assert_null(keel_semaphore_signal(gate, 1));
    int done = 0;
    for (int i = 0; i < CHAIN; i++) {
        keel_status_t status = wait_for(points[i]);
        if (!status) done++;
        keel_status_release(status);
    }
    assert_int_equal(done, 6); // the eighth command buffer dies
    assert_true(sim_sent(execute_counted) > 0);
    check(after(done));
    keel_semaphore_release(gate);
    rig_close();
}

static void test_prepared(void **state)
{
    (void)state;
    run_with("", prepared);
    run_with("indirectthreads=64", prepared); // groups are as large as that
    run_with("seed=3 residency=1", prepared);
}

static void test_arguments(void **state)
{
    (void)state;
    run_with("hazards=1 seed=4 residency=1", arguments);
    run_with("tier=1 residency=1", encoded_arguments);
}

static void test_touched(void **state)
{
    (void)state;
    run_with("family=8", touched);
}

static void test_found_out(void **state)
{
    (void)state;
    run_with("", found_out);
}

static void test_in_the_middle(void **state)
{
    (void)state;
    run_with("seed=5", in_the_middle);
}

static void test_not_fixed(void **state)
{
    (void)state;
    run_with("", not_fixed);
}

static void test_without(void **state)
{
    (void)state;
    run_with("family=6", without);
    run_with("fail=newIndirectCommandBufferWithDescriptor:maxCommandCount:options:/1", without);
    run_with("fail=newComputePipelineStateWithDescriptor:options:reflection:error:/1", without);
    run_with("fail=indirectComputeCommandAtIndex:/20", without);
    run_with("indirectthreads=63", without); // groups have 64
    setenv("INDIRECT_OFF", "1", 1);
    run_with("", without);
    unsetenv("INDIRECT_OFF");
}

static void test_compiled_by_two(void **state)
{
    (void)state;
    run_with("hazards=1", compiled_by_two);
}

static void test_guarded(void **state)
{
    (void)state;
    run_with("kill=8:3 hazards=1", guarded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),       cmocka_unit_test(test_prepared),
        cmocka_unit_test(test_touched),         cmocka_unit_test(test_found_out),
        cmocka_unit_test(test_in_the_middle),   cmocka_unit_test(test_not_fixed),
        cmocka_unit_test(test_without),         cmocka_unit_test(test_guarded),
        cmocka_unit_test(test_compiled_by_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
