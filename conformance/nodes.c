// SPDX-License-Identifier: Apache-2.0
// One logical device of several.
#include "suite/suite.h"

#define NODES .also = NEED_NODES
#define RUNS  .needs = KEEL_CAP_EXECUTES, .also = NEED_NODES

static keel_buffer_t *buffer_on_node(keel_device_t *device, uint32_t node, uint64_t size)
{
    keel_buffer_options_t options = {.size = size, .node = node};
    keel_buffer_t *buffer = NULL;
    TRY(keel_buffer_create(device, &options, &buffer));
    OWN(buffer);
    return buffer;
}

static void run_on(keel_queue_t *queue, keel_op_t op)
{
    keel_point_t done;
    TRY(keel_queue_run(queue, KEEL_NO_WAITS, op, &done));
    reach(done);
}

TEST(nodes, each_has_a_queue_and_a_pool, NODES)
{
    keel_device_t *device = open_nodes();
    uint32_t nodes = keel_device_caps(device)->nodes;
    CHECK_GE(nodes, 2);
    CHECK(keel_device_queue(device, 0) != keel_device_queue(device, 1));
    CHECK(keel_device_queue(device, nodes) == NULL);
    if (keel_device_caps(device)->bits & KEEL_CAP_QUEUE_ALLOCA) {
        CHECK(keel_device_pool(device, 1));
        CHECK(keel_device_pool(device, 0) != keel_device_pool(device, 1));
    }
    CHECK(keel_device_pool(device, nodes) == NULL);
    for (uint32_t i = 0; i < nodes; i++) run_on(keel_device_queue(device, i), keel_op_barrier());
}

TEST(nodes, buffers_say_where_they_are, NODES)
{
    keel_device_t *device = open_nodes();
    for (uint32_t node = 0; node < keel_device_caps(device)->nodes; node++) {
        keel_buffer_info_t info;
        keel_buffer_t *buffer = buffer_on_node(device, node, 64);
        keel_buffer_info(buffer, &info);
        CHECK_EQ(info.node, node);
        keel_buffer_info(new_subspan(buffer, 8, 8), &info);
        CHECK_EQ(info.node, node);
    }
}

TEST(nodes, copies_between_them, RUNS)
{
    keel_device_t *device = open_nodes();
    keel_buffer_t *a = buffer_on_node(device, 0, 4096), *b = buffer_on_node(device, 1, 4096);
    keel_buffer_t *back = buffer_on_node(device, 0, 4096);
    keel_queue_t *first = keel_device_queue(device, 0), *second = keel_device_queue(device, 1);
    keel_point_t filled, copied, done;
    TRY(keel_queue_fill(first, KEEL_NO_WAITS, keel_whole(a), 0x01020304, 4, &filled));
    TRY(keel_queue_copy(second, KEEL_AFTER(filled), keel_whole(a), keel_whole(b), &copied));
    TRY(keel_queue_copy(first, KEEL_AFTER(copied), keel_whole(b), keel_whole(back), &done));
    reach(done);
    CHECK_EQ(buffer_u32(back, 1023), 0x01020304);
}

// One after the other: atomics are those of one node.
TEST(nodes, kernels_run_on_each, RUNS)
{
    keel_device_t *device = open_nodes();
    keel_entry_t tally = kernel_on(device, "tally");
    keel_buffer_t *word = buffer_on_node(device, 0, 4);
    buffer_put(word, 0, &(uint32_t){0}, 4);
    uint32_t nodes = keel_device_caps(device)->nodes;
    for (uint32_t i = 0; i < nodes; i++) {
        keel_point_t done;
        TRY(keel_queue_run(
            keel_device_queue(device, i), KEEL_NO_WAITS,
            keel_op_dispatch(tally, keel_groups(100, 1, 1), NULL, 0, KEEL_BIND(word)), &done));
        reach(done);
    }
    CHECK_EQ(buffer_u32(word, 0), 100 * nodes);
}

// Each node has the constants that the executable was loaded with.
TEST(nodes, constants_are_on_each, RUNS)
{
    keel_device_t *device = open_nodes();
    uint32_t word = 9;
    const keel_executable_constant_t constant = {"chosen_word", &word, sizeof word};
    keel_executable_options_t options = {.constants = &constant, .constant_count = 1};
    keel_executable_t *executable = NULL;
    keel_entry_t entry;
    kernel_on(device, "use_chosen"); // where the device does not take it, the test ends here
    kernels_image(&options.data, &options.size);
    TRY(keel_executable_load(device, &options, &executable));
    OWN(executable);
    TRY(keel_executable_entry(executable, "use_chosen", &entry));
    for (uint32_t i = 0; i < keel_device_caps(device)->nodes; i++) {
        keel_buffer_t *out = buffer_on_node(device, i, 64);
        row("node %u", i);
        run_on(keel_device_queue(device, i),
               keel_op_dispatch(entry, keel_groups(1, 1, 1), NULL, 0, KEEL_BIND(out)));
        CHECK_EQ(buffer_u32(out, 8), 9);
    }
}

TEST(nodes, a_recording_runs_on_each, RUNS)
{
    keel_device_t *device = open_nodes();
    keel_recording_options_t options = {.slots = 1};
    keel_recording_t *recording = NULL;
    keel_op_t op = keel_op_dispatch(kernel_on(device, "tally"), keel_groups(1, 1, 1), NULL, 0,
                                    KEEL_BIND(keel_slot(0, 0, 4)));
    TRY(keel_recording_create(device, &options, &recording));
    OWN(recording);
    TRY(keel_recording_add(recording, &op, 1));
    TRY(keel_recording_end(recording));
    for (uint32_t i = 0; i < keel_device_caps(device)->nodes; i++) {
        keel_buffer_t *word = buffer_on_node(device, i, 4);
        buffer_put(word, 0, &(uint32_t){0}, 4);
        TRY(keel_recording_prepare(recording, keel_device_queue(device, i)));
        run_on(keel_device_queue(device, i), keel_op_execute(recording, KEEL_BIND(word)));
        CHECK_EQ(buffer_u32(word, 0), 1);
    }
}

TEST(nodes, queues_and_pools_by_node, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_QUEUE_ALLOCA,
     .also = NEED_NODES)
{
    keel_device_t *device = open_nodes();
    keel_queue_options_t on_second = {.node = 1};
    keel_pool_options_t there = {.node = 1};
    keel_queue_t *queue = NULL;
    keel_pool_t *pool = NULL;
    TRY(keel_queue_create(device, &on_second, &queue));
    OWN(queue);
    TRY(keel_pool_create(device, &there, &pool));
    OWN(pool);
    keel_buffer_t *x = new_reserved(pool, 64);
    keel_buffer_info_t info;
    keel_buffer_info(x, &info);
    CHECK_EQ(info.node, 1);
    run_on(queue, keel_op_alloca(x));
    run_on(queue, keel_op_fill(keel_whole(x), 6, 1));
    check_filled(x, 0, 64, 6);
    run_on(keel_device_queue(device, 0), keel_op_dealloca(x));
}

// Memory for a queue comes from its own node, unless a pool is named.
TEST(nodes, alloca_by_node, .needs = KEEL_CAP_QUEUE_ALLOCA, .also = NEED_NODES)
{
    keel_device_t *device = open_nodes();
    for (uint32_t node = 0; node < keel_device_caps(device)->nodes; node++) {
        keel_queue_options_t options = {.node = node};
        keel_queue_t *queue = NULL;
        TRY(keel_queue_create(device, &options, &queue));
        OWN(queue);
        CHECK_EQ(keel_queue_info(queue)->node, node);
        keel_buffer_t *buffer = NULL;
        keel_point_t ready;
        keel_buffer_info_t info;
        TRY(keel_queue_alloca(queue, NULL, 64, &buffer, &ready));
        OWN(buffer);
        reach(ready);
        keel_buffer_info(buffer, &info);
        CHECK_EQ(info.node, node);
    }
}

TEST(nodes, wait_idle_waits_for_all, NODES)
{
    keel_device_t *device = open_nodes();
    keel_semaphore_t *gate = NULL;
    TRY(keel_semaphore_create(device, NULL, &gate));
    OWN(gate);
    TRY(keel_queue_signal(keel_device_queue(device, 1), KEEL_AFTER(keel_point(gate, 1)),
                          KEEL_NO_SIGNALS, NULL));
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_device_wait_idle(device, 1000000));
    TRY(keel_semaphore_signal(gate, 1));
    TRY(keel_device_wait_idle(device, patience()));
}

TEST(nodes, close_cancels_on_all, NODES)
{
    keel_device_t *device = open_nodes();
    keel_semaphore_t *gate = NULL;
    TRY(keel_semaphore_create(device, NULL, &gate));
    OWN(gate);
    keel_semaphore_t *timelines[2];
    keel_point_t done[2];
    for (size_t i = 0; i < 2; i++) {
        keel_queue_t *queue = keel_device_queue(device, i);
        timelines[i] = keel_semaphore_retain(keel_queue_timeline(queue));
        OWN(timelines[i]);
        TRY(keel_queue_signal(queue, KEEL_AFTER(keel_point(gate, 1)), KEEL_NO_SIGNALS, &done[i]));
    }
    drop(device);
    for (int i = 0; i < 2; i++) FAILS(KEEL_CANCELLED, keel_wait(KEEL_POINTS(done[i]), KEEL_ALL, 0));
}
