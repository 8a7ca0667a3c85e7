// SPDX-License-Identifier: Apache-2.0
// Dispatches that the device gives their arguments, on the CUDA driver in software: which ones are,
// what the host does then, and what if CUDA will not have it.
#include <stdlib.h>
#include <string.h>

#include "drivers/cuda/device.h"

extern const unsigned char keel_embed_conformance_kernels[];
extern const uint64_t keel_embed_conformance_kernels_size;

enum { LEAST = 128, MOST = 8192, LARGE = 1 << 20, ROUNDS = 6 };

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
// By any thread: nodes made updatable, changes by the host, uploads, ends of streams.
static _Atomic uint32_t updatable, changes, uploads, streams_gone;
static bool unable; // to have updatable nodes
// Refuses the next of these calls, on any thread.
static _Atomic bool refuse_upload, refuse_run;
static _Atomic bool held;        // the stream gets no further than the next graph
static _Atomic bool holds;       // it is to be held
static _Atomic(CUgraphExec) ran; // the last that was launched
static keel_device_t *device;
static keel_executable_t *kernels;

static CUresult attribute_set(CUgraphNode node, CUlaunchAttributeID attribute,
                              const CUlaunchAttributeValue *value)
{
    if (unable) return CUDA_ERROR_NOT_SUPPORTED;
    updatable++;
    return real.cuGraphKernelNodeSetAttribute(node, attribute, value);
}

static CUresult node_set(CUgraphExec exec, CUgraphNode at, const CUDA_KERNEL_NODE_PARAMS *params)
{
    changes++;
    return real.cuGraphExecKernelNodeSetParams(exec, at, params);
}

static CUresult upload(CUgraphExec exec, CUstream stream)
{
    uploads++;
    if (atomic_exchange(&refuse_upload, false)) return CUDA_ERROR_OUT_OF_MEMORY;
    return real.cuGraphUpload(exec, stream);
}

static CUresult run(CUgraphExec exec, CUstream stream)
{
    if (atomic_exchange(&refuse_run, false)) return CUDA_ERROR_OUT_OF_MEMORY;
    ran = exec;
    if (atomic_exchange(&holds, false)) real.cuLaunchHostFunc(stream, held_call, &held);
    return real.cuGraphLaunch(exec, stream);
}

// An executable graph whose end is looked for.
typedef struct watched_t {
    _Atomic(CUgraphExec) exec;
    _Atomic bool gone;
} watched_t;
static watched_t plain_graph, over_graph;

static CUresult destroy(CUgraphExec exec)
{
    CUresult result = real.cuGraphExecDestroy(exec);
    if (exec == plain_graph.exec) plain_graph.gone = true;
    if (exec == over_graph.exec) over_graph.gone = true;
    return result;
}

static CUresult stream_destroy(CUstream stream)
{
    CUresult result = real.cuStreamDestroy(stream);
    streams_gone++;
    return result;
}

static int setup(void **state)
{
    (void)state;
    keel_executable_options_t options = {.data = keel_embed_conformance_kernels,
                                         .size = keel_embed_conformance_kernels_size};
    setenv("KEEL_SIM_CUDA", "fail=cuLaunchKernel:1:2",
           1); // graphs are launched otherwise
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    symbols->cuGraphKernelNodeSetAttribute = attribute_set;
    symbols->cuGraphExecKernelNodeSetParams = node_set;
    symbols->cuGraphUpload = upload;
    symbols->cuGraphExecDestroy = destroy;
    symbols->cuGraphLaunch = run;
    symbols->cuStreamDestroy = stream_destroy;
    device = device_open("");
    assert_null(keel_executable_load(device, &options, &kernels));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    keel_executable_release(kernels);
    keel_device_release(device);
    *symbols = real;
    return 0;
}

// Each adds one to the word.
static void add(keel_recording_t *recording, uint32_t count, keel_ref_t word)
{
    keel_entry_t entry;
    assert_null(keel_executable_entry(kernels, "tally", &entry));
    keel_op_t op = keel_op_dispatch(entry, keel_groups(1, 1, 1), NULL, 0, KEEL_BIND(word));
    for (uint32_t i = 0; i < count; i++) assert_null(keel_recording_add(recording, &op, 1));
}

// So many of them on the word of the slot, or of the buffer if there is one.
static keel_recording_t *record(uint32_t count, keel_buffer_t *buffer, bool ends)
{
    keel_recording_options_t options = {.slots = 1};
    keel_recording_t *recording;
    assert_null(keel_recording_create(device, &options, &recording));
    add(recording, count, buffer ? keel_whole(buffer) : keel_slot(0, 0, 4));
    if (ends) assert_null(keel_recording_end(recording));
    updatable = changes = uploads = 0;
    return recording;
}

// Executes on a word of its own each time, all under way at once.
static void execute_on(keel_queue_t *queue, keel_recording_t *recording, uint32_t count)
{
    keel_buffer_t *words = buffer_create(device, ROUNDS * 16, KEEL_MEMORY_HOST_VISIBLE);
    uint32_t found[ROUNDS * 4] = {0};
    keel_point_t last;
    assert_null(keel_buffer_write(words, 0, found, sizeof found));
    for (uint32_t i = 0; i < ROUNDS; i++)
        assert_null(keel_queue_execute(queue, i ? KEEL_AFTER(last) : KEEL_NO_WAITS, recording,
                                       KEEL_BIND(keel_span(words, i * 16, 8)), &last));
    ok(last);
    assert_null(keel_buffer_read(words, 0, found, sizeof found));
    for (uint32_t i = 0; i < ROUNDS; i++) assert_int_equal(found[i * 4], count);
    keel_buffer_release(words);
}

static void execute(keel_recording_t *recording, uint32_t count)
{
    execute_on(keel_device_queue(device, 0), recording, count);
}

static void test_many(void **state)
{
    (void)state;
    keel_recording_t *recording = record(LEAST, NULL, true);
    execute(recording, LEAST);
    assert_int_equal(updatable, LEAST);
    assert_int_equal(uploads, 1);
    assert_int_equal(changes, 0);
    execute(recording, LEAST);
    assert_int_equal(uploads, 1);
    keel_recording_release(recording);
}

static void test_prepared(void **state)
{
    (void)state;
    keel_recording_t *recording = record(LEAST, NULL, true);
    assert_null(keel_recording_prepare(recording, keel_device_queue(device, 0)));
    assert_int_equal(uploads, 1);
    execute(recording, LEAST);
    assert_int_equal(uploads, 2); // to the stream that it runs on, once
    execute(recording, LEAST);
    assert_int_equal(uploads, 2);
    assert_int_equal(updatable, LEAST);
    keel_recording_release(recording);
}

// A queue that takes over the graph of one that has gone has another stream.
static void test_taken_over(void **state)
{
    (void)state;
    keel_recording_t *recording = record(LEAST, NULL, true);
    for (uint32_t i = 1; i <= 3; i++) {
        keel_queue_t *queue = NULL;
        assert_null(keel_queue_create(device, NULL, &queue));
        execute_on(queue, recording, LEAST);
        assert_int_equal(updatable, LEAST); // of one graph
        assert_int_equal(uploads, i);
        uint32_t gone = streams_gone;
        keel_queue_release(queue);
        await(streams_gone != gone); // another thread may be the last that has it
    }
    keel_recording_release(recording);
}

static void test_few(void **state)
{
    (void)state;
    keel_recording_t *recording = record(LEAST - 1, NULL, true);
    execute(recording, LEAST - 1);
    assert_int_equal(updatable, 0);
    assert_int_equal(changes, (LEAST - 1) * (ROUNDS - 1));
    keel_recording_release(recording);
}

static void test_too_many(void **state)
{
    (void)state;
    keel_recording_t *recording = record(MOST + 1, NULL, true);
    execute(recording, MOST + 1);
    assert_int_equal(updatable, 0);
    keel_recording_release(recording);
    recording = record(MOST, NULL, true);
    execute(recording, MOST);
    assert_int_equal(updatable, MOST);
    keel_recording_release(recording);
}

// Only dispatches that may change count, and all that may change is made changeable.
static void test_some(void **state)
{
    (void)state;
    keel_buffer_t *word = buffer_create(device, 4, KEEL_MEMORY_DEVICE_LOCAL);
    keel_op_t fill = keel_op_fill(keel_slot(0, 4, 4), 9, 4);
    for (uint32_t i = 0; i < 2; i++) {
        keel_recording_t *recording = record(LEAST - 1 + i, NULL, false);
        add(recording, LEAST, keel_whole(word));
        assert_null(keel_recording_add(recording, &fill, 1));
        assert_null(keel_recording_end(recording));
        execute(recording, LEAST - 1 + i);
        assert_int_equal(updatable, i ? LEAST + 1 : 0);
        keel_recording_release(recording);
    }
    keel_buffer_release(word);
}

// The grid of a dispatch is the same, however much its slots hold.
static void test_whole_slots(void **state)
{
    (void)state;
    keel_recording_t *recording = record(0, NULL, false);
    add(recording, LEAST, keel_slot(0, 0, KEEL_WHOLE));
    assert_null(keel_recording_end(recording));
    execute(recording, LEAST);
    assert_int_equal(updatable, LEAST);
    assert_int_equal(changes, 0);
    keel_recording_release(recording);
}

// What the host changes beside the device's nodes, or finds without groups, is not uploaded again.
static void test_others_change(void **state)
{
    (void)state;
    uint32_t grid[] = {3, 1, 1};
    uint64_t block = 0;
    keel_buffer_t *counts = buffer_create(device, sizeof grid, KEEL_MEMORY_HOST_VISIBLE);
    keel_patch_t patch = {0, keel_slot(0, 0, 4)};
    keel_recording_t *recording = record(0, NULL, false);
    keel_entry_t foreign, own;
    assert_null(keel_executable_entry(kernels, "raw_tally", &foreign));
    assert_null(keel_executable_entry(kernels, "tally", &own));
    keel_op_t ops[] = {
        keel_op_dispatch(foreign, keel_groups(1, 1, 1), &block, sizeof block, KEEL_NO_BINDINGS),
        keel_op_dispatch(own, keel_groups(0, 1, 1), NULL, 0, KEEL_BIND(keel_slot(0, 0, 4))),
        keel_op_fill(keel_slot(0, 4, KEEL_WHOLE), 9, 4)};
    ops[0].as.dispatch.raw = true;
    ops[0].as.dispatch.patches = &patch;
    ops[0].as.dispatch.patch_count = 1;
    ops[0] = keel_op_indirect(ops[0], KEEL_COUNTS_STATIC, keel_whole(counts));
    assert_null(keel_buffer_write(counts, 0, grid, sizeof grid));
    assert_null(keel_recording_add(recording, ops, 3));
    assert_null(keel_recording_end(recording));
    execute(recording, grid[0]);
    assert_int_equal(updatable, 2); // the dispatch, and what gives it its grid
    assert_int_equal(changes, ROUNDS - 1);
    assert_int_equal(uploads, 1);
    keel_recording_release(recording);
    keel_buffer_release(counts);
}

// Each has a block of so many bytes, of which the kernel takes the first eight.
static void execute_blocks(uint32_t size)
{
    static unsigned char block[32764];
    keel_recording_options_t options = {.slots = 1};
    keel_recording_t *recording;
    keel_patch_t patch = {0, keel_slot(0, 0, 4)};
    keel_op_t op = {.kind = KEEL_OP_DISPATCH,
                    .as.dispatch = {.groups = {1, 1, 1},
                                    .raw = true,
                                    .constants = block,
                                    .constant_size = size,
                                    .patches = &patch,
                                    .patch_count = 1}};
    assert_null(keel_executable_entry(kernels, "raw_tally", &op.as.dispatch.entry));
    assert_null(keel_recording_create(device, &options, &recording));
    for (uint32_t i = 0; i < LEAST; i++) assert_null(keel_recording_add(recording, &op, 1));
    assert_null(keel_recording_end(recording));
    updatable = 0;
    execute(recording, LEAST);
    assert_int_equal(updatable, LEAST);
    keel_recording_release(recording);
}

static void test_blocks(void **state)
{
    (void)state;
    execute_blocks(8);
    execute_blocks(32764); // as large as any
}

static void test_nothing_changes(void **state)
{
    (void)state;
    keel_point_t done;
    keel_buffer_t *word = buffer_create(device, 4, KEEL_MEMORY_DEVICE_LOCAL);
    keel_recording_t *recording = record(LEAST, word, true);
    assert_null(keel_queue_execute(keel_device_queue(device, 0), KEEL_NO_WAITS, recording,
                                   KEEL_BIND(keel_span(NULL, 0, 0)), &done));
    ok(done);
    assert_int_equal(updatable, 0);
    assert_int_equal(uploads, 0);
    keel_recording_release(recording);
    keel_buffer_release(word);
}

// A fill that changes as well, of so many bytes. Returns how many nodes were made updatable.
static uint32_t with_transfer(uint64_t length, bool prepared)
{
    keel_recording_t *recording = record(LEAST, NULL, false);
    keel_op_t ops[] = {keel_op_barrier(), keel_op_fill(keel_slot(0, 4, length), 9, 4)};
    keel_buffer_t *words[2];
    keel_point_t last;
    uint32_t found[2];
    assert_null(keel_recording_add(recording, ops, 2));
    assert_null(keel_recording_end(recording));
    if (prepared) assert_null(keel_recording_prepare(recording, keel_device_queue(device, 0)));
    for (int i = 0; i < 2; i++)
        words[i] = buffer_create(device, 2 * LARGE, KEEL_MEMORY_HOST_VISIBLE);
    for (int i = 0; i < 4; i++)
        assert_null(keel_queue_execute(keel_device_queue(device, 0),
                                       i ? KEEL_AFTER(last) : KEEL_NO_WAITS, recording,
                                       KEEL_BIND(keel_whole(words[i % 2])), &last));
    ok(last);
    for (int i = 0; i < 2; i++) {
        assert_null(keel_buffer_read(words[i], 4, found, sizeof found));
        assert_int_equal(found[0], 9);
        assert_null(
            keel_buffer_read(words[i], length == KEEL_WHOLE ? 2 * LARGE - 4 : length, found, 4));
        assert_int_equal(found[0], 9);
        keel_buffer_release(words[i]);
    }
    keel_recording_release(recording);
    return updatable;
}

static void test_transfers(void **state)
{
    (void)state;
    assert_int_equal(with_transfer(64, false), LEAST + 1);
    assert_int_equal(changes, 0);
    assert_int_equal(uploads, 1);
    assert_int_equal(with_transfer(LARGE, false), LEAST + 1);
    // The grid is that of the fill, whatever length was guessed ahead of time.
    assert_int_equal(with_transfer(LARGE, true), LEAST + 1);
    assert_int_equal(changes, 0);
    assert_int_equal(with_transfer(LARGE + 4, false), 0);
    assert_int_equal(with_transfer(KEEL_WHOLE, false), 0);
}

static void test_refused(void **state)
{
    (void)state;
    unable = true;
    keel_recording_t *recording = record(LEAST, NULL, true);
    execute(recording, LEAST);
    unable = false;
    assert_int_equal(changes, LEAST * (ROUNDS - 1));
    keel_recording_release(recording);
}

// Executes once, on a word of several, and returns whether that failed.
static bool execute_at(keel_recording_t *recording, keel_buffer_t *words, uint32_t at)
{
    keel_point_t done;
    assert_null(keel_queue_execute(keel_device_queue(device, 0), KEEL_NO_WAITS, recording,
                                   KEEL_BIND(keel_span(words, at * 16, 4)), &done));
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
    keel_status_release(status);
    return status;
}

// Whatever is refused on the way, the next run finds its own arguments. The first run is refused
// once, and if that was its upload the second, too, in front of the changes.
static void refused(keel_recording_t *recording, _Atomic bool *refuse, uint32_t count)
{
    keel_buffer_t *words = buffer_create(device, 64, KEEL_MEMORY_HOST_VISIBLE);
    uint32_t found[16] = {0};
    assert_null(keel_buffer_write(words, 0, found, sizeof found));
    for (uint32_t i = 0; i < (refuse == &refuse_upload ? 2 : 1); i++) {
        if (refuse) atomic_store(refuse, true);
        assert_true(execute_at(recording, words, i));
        if (refuse) assert_false(atomic_load(refuse));
    }
    for (uint32_t i = 0; i < 4; i++) assert_false(execute_at(recording, words, i % 3));
    assert_null(keel_buffer_read(words, 0, found, sizeof found));
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(found[i * 4], i ? count : 2 * count);
    keel_recording_release(recording);
    keel_buffer_release(words);
}

// The first of all launches is refused.
static void test_launch_refused(void **state)
{
    (void)state;
    keel_recording_t *recording = record(LEAST, NULL, true);
    assert_null(keel_recording_prepare(recording, keel_device_queue(device, 0)));
    refused(recording, NULL, LEAST);
}

static void test_run_refused(void **state)
{
    (void)state;
    keel_recording_t *recording = record(LEAST, NULL, true);
    assert_null(keel_recording_prepare(recording, keel_device_queue(device, 0)));
    refused(recording, &refuse_run, LEAST);
}

// Of a recording that is two graphs.
static void test_upload_refused(void **state)
{
    (void)state;
    keel_buffer_t *word = buffer_create(device, 4, KEEL_MEMORY_DEVICE_LOCAL);
    keel_op_t barrier = keel_op_barrier();
    keel_recording_t *recording = record(LEAST, NULL, false);
    add(recording, MOST, keel_whole(word));
    assert_null(keel_recording_add(recording, &barrier, 1));
    add(recording, LEAST, keel_slot(0, 0, 4));
    assert_null(keel_recording_end(recording));
    refused(recording, &refuse_upload, 2 * LEAST);
    assert_int_equal(uploads, 4); // two refused
    keel_buffer_release(word);
}

// To destroy its graphs CUDA waits for all that the device runs; they go when that is nothing. The
// graph of a recording whose arguments the host changes goes meanwhile, by the same thread.
static void test_release(void **state)
{
    (void)state;
    keel_buffer_t *words = buffer_create(device, 64, KEEL_MEMORY_HOST_VISIBLE);
    keel_recording_t *over = record(LEAST, NULL, true), *runs = record(LEAST, NULL, true);
    keel_recording_t *plain = record(LEAST - 1, NULL, true);
    keel_point_t done;
    assert_false(execute_at(plain, words, 0));
    plain_graph.exec = (CUgraphExec)ran;
    assert_false(execute_at(over, words, 0));
    over_graph.exec = (CUgraphExec)ran;
    held = holds = true;
    assert_null(keel_queue_execute(keel_device_queue(device, 0), KEEL_NO_WAITS, runs,
                                   KEEL_BIND(keel_span(words, 16, 4)), &done));
    await(!holds);
    keel_recording_release(over);
    keel_recording_release(plain);
    await(plain_graph.gone);
    assert_false(over_graph.gone);
    held = false;
    ok(done);
    await(over_graph.gone);
    keel_recording_release(runs);
    keel_buffer_release(words);
}

// More than a stream has room for; `before` more pieces are in front.
static void fill_stream(uint32_t before)
{
    enum { RUNS = 600 };
    keel_buffer_t *words = buffer_create(device, RUNS * 16, KEEL_MEMORY_HOST_VISIBLE);
    keel_buffer_t *filled = buffer_create(device, FILLED, KEEL_MEMORY_DEVICE_LOCAL);
    keel_recording_t *recording = record(LEAST, NULL, true);
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_op_t fill = keel_op_fill(keel_whole(filled), 1, 4);
    keel_point_t last;
    static uint32_t found[RUNS * 4];
    memset(found, 0, sizeof found);
    assert_null(keel_buffer_write(words, 0, found, sizeof found));
    assert_null(keel_recording_prepare(recording, queue));
    held = holds = true;
    for (uint32_t i = 0; i < RUNS; i++) {
        if (i == 1 && before)
            assert_null(keel_queue_submit(queue, KEEL_NO_WAITS, &fill, 1, KEEL_NO_SIGNALS, NULL));
        assert_null(keel_queue_execute(queue, KEEL_NO_WAITS, recording,
                                       KEEL_BIND(keel_span(words, i * 16, 4)), &last));
    }
    held = false;
    ok(last);
    assert_null(keel_buffer_read(words, 0, found, sizeof found));
    for (uint32_t i = 0; i < RUNS; i++) assert_int_equal(found[i * 4], LEAST);
    keel_recording_release(recording);
    keel_buffer_release(filled);
    keel_buffer_release(words);
}

// Put off in front of the changes, and between them and the run.
static void test_full_stream(void **state)
{
    (void)state;
    fill_stream(0);
    fill_stream(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launch_refused), cmocka_unit_test(test_many),
        cmocka_unit_test(test_prepared),       cmocka_unit_test(test_few),
        cmocka_unit_test(test_taken_over),     cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_others_change),  cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_nothing_changes),
        cmocka_unit_test(test_transfers),      cmocka_unit_test(test_run_refused),
        cmocka_unit_test(test_upload_refused), cmocka_unit_test(test_some),
        cmocka_unit_test(test_whole_slots),    cmocka_unit_test(test_release),
        cmocka_unit_test(test_full_stream),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
