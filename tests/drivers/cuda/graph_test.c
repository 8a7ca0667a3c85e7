// SPDX-License-Identifier: Apache-2.0
// When a CUDA device makes graphs of recordings, how many, and where it launches them, on the CUDA
// driver in software: the calls are counted.
#include "drivers/cuda/device.h"

enum { SIZE = FILLED, QUEUES = 3, ROUNDS = 3 };

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
static _Atomic uint32_t made, uploaded, launched, changed;
static _Atomic(CUstream) uploading; // NULL: that is over
static _Atomic(CUgraphExec) latest; // launched

static CUresult instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    atomic_fetch_add(&made, 1);
    return real.cuGraphInstantiateWithFlags(exec, graph, flags);
}

static CUresult upload(CUgraphExec exec, CUstream stream)
{
    atomic_fetch_add(&uploaded, 1);
    atomic_store(&uploading, stream);
    return real.cuGraphUpload(exec, stream);
}

static CUresult stream_sync(CUstream stream)
{
    CUresult result = real.cuStreamSynchronize(stream);
    CUstream awaited = stream;
    atomic_compare_exchange_strong(&uploading, &awaited, NULL);
    return result;
}

static CUresult set_memset(CUgraphExec exec, CUgraphNode node,
                           const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
    atomic_fetch_add(&changed, 1);
    return real.cuGraphExecMemsetNodeSetParams(exec, node, params, context);
}

static CUresult launch(CUgraphExec exec, CUstream stream)
{
    atomic_fetch_add(&launched, 1);
    atomic_store(&latest, exec);
    return real.cuGraphLaunch(exec, stream);
}

static int setup(void **state)
{
    (void)state;
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    symbols->cuGraphInstantiateWithFlags = instantiate;
    symbols->cuGraphUpload = upload;
    symbols->cuGraphLaunch = launch;
    symbols->cuGraphExecMemsetNodeSetParams = set_memset;
    symbols->cuStreamSynchronize = stream_sync;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    *symbols = real;
    return 0;
}

static int zero(void **state)
{
    (void)state;
    atomic_store(&made, 0);
    atomic_store(&uploaded, 0);
    atomic_store(&launched, 0);
    atomic_store(&changed, 0);
    return 0;
}

// What is made with the device, for launches, does not count.
static keel_device_t *opened(const char *options)
{
    keel_device_t *device = device_open(options);
    zero(NULL);
    return device;
}

typedef struct work_t {
    keel_device_t *device;
    keel_buffer_t *buffer, *seen; // and where the host sees it
    keel_recording_t *recording;
} work_t;

// A recording of so many fills, with a slot for its target.
static work_t work_open(const char *options, bool one_shot, int fills)
{
    keel_recording_options_t recording = {.one_shot = one_shot, .slots = 1};
    keel_op_t ops[] = {keel_op_fill(keel_slot(0, 0, KEEL_WHOLE), 7, 4), keel_op_barrier()};
    work_t work = {.device = opened(options)};
    work.buffer = buffer_create(work.device, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    work.seen = buffer_create(work.device, SIZE, KEEL_MEMORY_HOST_VISIBLE);
    assert_null(keel_recording_create(work.device, &recording, &work.recording));
    for (int i = 0; i < fills; i++) assert_null(keel_recording_add(work.recording, ops, 2));
    assert_null(keel_recording_end(work.recording));
    return work;
}

static void work_close(work_t *work)
{
    keel_recording_release(work->recording);
    keel_buffer_release(work->buffer);
    keel_buffer_release(work->seen);
    keel_device_release(work->device);
}

static void work_run(const work_t *work, keel_queue_t *queue)
{
    uint32_t words[SIZE / 4];
    keel_ref_t table[] = {keel_whole(work->buffer)};
    keel_point_t cleared, filled, copied;
    assert_null(keel_queue_fill(queue, KEEL_NO_WAITS, keel_whole(work->buffer), 0, 4, &cleared));
    assert_null(keel_queue_execute(queue, KEEL_AFTER(cleared), work->recording, keel_refs(table, 1),
                                   &filled));
    assert_null(keel_queue_copy(queue, KEEL_AFTER(filled), keel_whole(work->buffer),
                                keel_whole(work->seen), &copied));
    ok(copied);
    assert_null(keel_buffer_read(work->seen, 0, words, SIZE));
    for (int i = 0; i < SIZE / 4; i++) assert_int_equal(words[i], 7);
}

static uint32_t made_for(const char *options, bool one_shot)
{
    work_t work = work_open(options, one_shot, 1);
    uint32_t before = atomic_load(&made);
    work_run(&work, keel_device_queue(work.device, 0));
    uint32_t count = atomic_load(&made) - before;
    assert_int_equal(atomic_load(&launched) != 0, count != 0);
    zero(NULL);
    work_close(&work);
    return count;
}

// The option decides; without it a graph is made of what may be executed again.
static void test_commands(void **state)
{
    (void)state;
    assert_int_equal(made_for("", false), 1);
    assert_int_equal(made_for("", true), 0);
    assert_int_equal(made_for("&commands=graph", false), 1);
    assert_int_equal(made_for("&commands=graph", true), 1);
    assert_int_equal(made_for("&commands=stream", false), 0);
    assert_int_equal(made_for("&commands=stream", true), 0);
    assert_int_equal(made_for("&serial=1", false), 0);
}

// One for each queue, or launches on one queue would wait for those on another; and the same again
// on the same queue.
static void test_queues_have_their_own(void **state)
{
    (void)state;
    work_t work = work_open("", false, 1);
    keel_queue_t *queues[QUEUES];
    CUgraphExec execs[QUEUES];
    for (int i = 0; i < QUEUES; i++) assert_null(keel_queue_create(work.device, NULL, &queues[i]));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < QUEUES; i++) {
            work_run(&work, queues[i]);
            if (!round) execs[i] = atomic_load(&latest);
            assert_ptr_equal(atomic_load(&latest), execs[i]);
            for (int other = 0; other < i; other++) assert_ptr_not_equal(execs[i], execs[other]);
        }
    }
    assert_int_equal(atomic_load(&made), QUEUES);
    for (int i = 0; i < QUEUES; i++) keel_queue_release(queues[i]);
    work_close(&work);
}

// What is prepared is made and uploaded then, for that queue, and not again when it is executed,
// whatever is in the slots.
static void test_prepared_ahead(void **state)
{
    (void)state;
    work_t work = work_open("", false, 1);
    keel_queue_t *queues[2] = {keel_device_queue(work.device, 0)};
    assert_null(keel_queue_create(work.device, NULL, &queues[1]));
    for (uint32_t i = 0; i < 2; i++) {
        for (int twice = 0; twice < 2; twice++) {
            assert_null(keel_recording_prepare(work.recording, queues[i]));
            assert_int_equal(atomic_load(&made), i + 1);
            assert_int_equal(atomic_load(&uploaded), i + 1);
            assert_null(atomic_load(&uploading)); // other streams do not wait for it
        }
    }
    assert_int_equal(atomic_load(&launched), 0);
    for (int i = 0; i < 2; i++) work_run(&work, queues[i]);
    assert_int_equal(atomic_load(&made), 2);
    assert_int_equal(atomic_load(&launched), 2);
    keel_queue_release(queues[1]);
    work_close(&work);
}

// Only what lies elsewhere is changed.
static void test_few_are_changed(void **state)
{
    (void)state;
    enum { SLOTS = 4 };
    keel_recording_options_t options = {.slots = SLOTS};
    keel_device_t *device = opened("");
    keel_recording_t *recording = NULL;
    keel_ref_t table[SLOTS];
    keel_buffer_t *buffers[SLOTS + 1];
    for (int i = 0; i <= SLOTS; i++)
        buffers[i] = buffer_create(device, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    assert_null(keel_recording_create(device, &options, &recording));
    for (uint32_t i = 0; i < SLOTS; i++) {
        keel_op_t op = keel_op_fill(keel_slot(i, 0, KEEL_WHOLE), 7, 4);
        assert_null(keel_recording_add(recording, &op, 1));
        table[i] = keel_whole(buffers[i]);
    }
    assert_null(keel_recording_end(recording));
    for (uint32_t round = 0; round < 3; round++) { // as they are, the same again, one other
        keel_point_t done;
        if (round == 2) table[1] = keel_whole(buffers[SLOTS]);
        assert_null(keel_queue_execute(keel_device_queue(device, 0), KEEL_NO_WAITS, recording,
                                       keel_refs(table, SLOTS), &done));
        ok(done);
        assert_int_equal(atomic_load(&changed), round == 2);
        assert_int_equal(atomic_load(&made), 1);
    }
    for (int i = 0; i <= SLOTS; i++) keel_buffer_release(buffers[i]);
    keel_recording_release(recording);
    keel_device_release(device);
}

static CUresult refuse_copy(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                            size_t count, const CUDA_MEMCPY3D *params, CUcontext context)
{
    (void)node, (void)graph, (void)after, (void)count, (void)params, (void)context;
    return CUDA_ERROR_INVALID_VALUE;
}

// Which command could not be prepared, also in a block.
static void test_culprit_is_named(void **state)
{
    (void)state;
    keel_recording_options_t options = {.slots = 2, .name = "decode"};
    keel_device_t *device = opened("");
    keel_recording_t *recording = NULL;
    keel_ref_t slot = keel_slot(0, 0, SIZE);
    keel_op_t ops[] = {keel_op_fill(slot, 7, 4),
                       keel_op_barrier(),
                       keel_op_if(keel_slot(1, 0, 4)),
                       keel_op_group_begin("last"),
                       keel_op_copy(slot, keel_slot(1, 0, SIZE)),
                       keel_op_group_end(),
                       keel_op_end()};
    assert_null(keel_recording_create(device, &options, &recording));
    assert_null(keel_recording_add(recording, ops, sizeof ops / sizeof *ops));
    assert_null(keel_recording_end(recording));
    symbols->cuGraphAddMemcpyNode = refuse_copy;
    keel_status_t status = keel_recording_prepare(recording, keel_device_queue(device, 0));
    symbols->cuGraphAddMemcpyNode = real.cuGraphAddMemcpyNode;
    assert_int_equal(keel_status_code(status), KEEL_INVALID_ARGUMENT);
    assert_string_equal(keel_status_path(status),
                        "recording 'decode' > group 'last' > command 4 (copy)");
    keel_status_release(status);
    assert_null(keel_recording_prepare(recording, keel_device_queue(device, 0)));
    keel_recording_release(recording);
    keel_device_release(device);
}

// Nothing is prepared that goes to the stream anyway.
static void test_nothing_to_prepare(void **state)
{
    (void)state;
    work_t work = work_open("&commands=stream", false, 1);
    assert_null(keel_recording_prepare(work.recording, keel_device_queue(work.device, 0)));
    work_run(&work, keel_device_queue(work.device, 0));
    assert_int_equal(atomic_load(&made), 0);
    work_close(&work);
}

// A long one is made into graphs if a thread asks for that, and it may be any.
static void test_long(void **state)
{
    (void)state;
    static const struct {
        const char *options;
        bool one_shot, graphs;
    } rows[] = {{"", false, true}, {"", true, false}, {"&commands=stream", false, false}};
    for (int i = 0; i < 3; i++) {
        work_t work = work_open(rows[i].options, rows[i].one_shot, 1 << 16); // each and a barrier
        assert_null(keel_recording_prepare(work.recording, keel_device_queue(work.device, 0)));
        assert_int_equal(atomic_load(&made) > 0, rows[i].graphs);
        work_close(&work);
    }
}

static _Atomic bool held;

static CUresult copy(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream)
{
    return held_copy(&real, &held, target, source, size, stream);
}

// CUDA may wait for the device to make one, for the first time or anew. That holds up no thread
// that submits.
static void test_made_by_others(void **state)
{
    (void)state;
    enum { MANY = 60 };
    keel_recording_options_t options = {.slots = 1};
    keel_device_t *device = opened("");
    keel_queue_t *queue = keel_device_queue(device, 0), *beside = NULL;
    keel_buffer_t *buffers[] = {buffer_create(device, SIZE, KEEL_MEMORY_DEVICE_LOCAL),
                                buffer_create(device, SIZE, KEEL_MEMORY_HOST_VISIBLE)};
    keel_buffer_t *from = buffer_create(device, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    keel_buffer_t *to = buffer_create(device, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    keel_recording_t *recordings[MANY];
    keel_op_t op = keel_op_copy(keel_whole(from), keel_slot(0, 0, KEEL_WHOLE));
    keel_point_t done, last;
    assert_null(keel_queue_create(device, NULL, &beside));
    for (int i = 0; i < MANY; i++) {
        assert_null(keel_recording_create(device, &options, &recordings[i]));
        assert_null(keel_recording_add(recordings[i], &op, 1));
        assert_null(keel_recording_end(recordings[i]));
    }
    atomic_store(&held, true);
    symbols->cuMemcpyAsync = copy;
    assert_null(keel_queue_copy(beside, KEEL_NO_WAITS, keel_whole(from), keel_whole(to), &last));
    uint64_t start = keel_now_ns();
    for (int i = 0; i < 2 * MANY; i++) {
        keel_ref_t table[] = {keel_whole(buffers[i % 2])};
        assert_null(keel_queue_execute(queue, KEEL_NO_WAITS, recordings[i / 2], keel_refs(table, 1),
                                       &done));
    }
    assert_true(keel_now_ns() - start < PATIENCE_NS / 2); // it is held for twice that
    atomic_store(&held, false);
    ok(done);
    ok(last);
    symbols->cuMemcpyAsync = real.cuMemcpyAsync;
    assert_int_equal(atomic_load(&made), 2 * MANY);
    for (int i = 0; i < MANY; i++) keel_recording_release(recordings[i]);
    for (int i = 0; i < 2; i++) keel_buffer_release(buffers[i]);
    keel_buffer_release(from);
    keel_buffer_release(to);
    keel_queue_release(beside);
    keel_device_release(device);
}

// A long recording is several graphs, launched one after the other.
static void test_long_ones_are_split(void **state)
{
    (void)state;
    enum { FILLS = 20000 };
    work_t work = work_open("", false, FILLS);
    work_run(&work, keel_device_queue(work.device, 0));
    assert_in_range(atomic_load(&made), 2, 10);
    assert_int_equal(atomic_load(&launched), atomic_load(&made));
    work_close(&work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_commands, zero),
        cmocka_unit_test_setup(test_queues_have_their_own, zero),
        cmocka_unit_test_setup(test_prepared_ahead, zero),
        cmocka_unit_test_setup(test_long, zero),
        cmocka_unit_test_setup(test_few_are_changed, zero),
        cmocka_unit_test_setup(test_culprit_is_named, zero),
        cmocka_unit_test_setup(test_nothing_to_prepare, zero),
        cmocka_unit_test_setup(test_made_by_others, zero),
        cmocka_unit_test_setup(test_long_ones_are_split, zero),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
