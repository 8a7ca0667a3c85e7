// SPDX-License-Identifier: Apache-2.0
// What a CUDA device keeps to use it again, on the CUDA driver in software: calls of the vendor's
// that make something are counted.
#include <pthread.h>
#include <stdlib.h>

#include "drivers/cuda/device.h"

enum { QUEUES = 20, LARGE = 1 << 20 };

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
static _Atomic uint32_t events, graphs, graphs_gone, allocations, frees;
static _Atomic bool held, freeing;
static _Atomic uint32_t fills, fills_before_free; // the latter when memory was last freed
static _Atomic bool stuck, at_it;                 // allocas take as long as that; one is there

static CUresult event_create(CUevent *event, unsigned int flags)
{
    atomic_fetch_add(&events, 1);
    return real.cuEventCreate(event, flags);
}

static CUevent recorded[64];
static uint32_t recorded_count; // different ones

static CUresult event_record(CUevent event, CUstream stream)
{
    uint32_t i = 0;
    while (i < recorded_count && recorded[i] != event) i++;
    if (i == recorded_count && i < 64) recorded[recorded_count++] = event;
    return real.cuEventRecord(event, stream);
}

static CUresult host_alloc(void **pointer, size_t size, unsigned int flags)
{
    atomic_fetch_add(&allocations, 1);
    return real.cuMemHostAlloc(pointer, size, flags);
}

static CUresult host_free(void *pointer)
{
    atomic_fetch_add(&frees, 1);
    return real.cuMemFreeHost(pointer);
}

static void (*meanwhile)(void);       // NULL: nothing happens while memory is freed
static _Atomic uint32_t memory_freed; // so often
static _Atomic uint32_t scarce;       // buffers find no memory until it was freed so often
static _Atomic uint32_t refused;

static CUresult mem_alloc(CUdeviceptr *address, size_t size)
{
    if (atomic_load(&memory_freed) >= atomic_load(&scarce)) return real.cuMemAlloc(address, size);
    atomic_fetch_add(&refused, 1);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

// Memory is freed when the device gets round to it.
static CUresult mem_free_waits(CUdeviceptr address)
{
    atomic_store(&fills_before_free, atomic_load(&fills));
    if (meanwhile) meanwhile();
    atomic_store(&freeing, true);
    held_wait(&held);
    atomic_store(&freeing, false);
    CUresult result = real.cuMemFree(address);
    atomic_fetch_add(&memory_freed, 1);
    return result;
}

static CUresult pool_alloc(CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream)
{
    atomic_store(&at_it, true);
    held_wait(&stuck);
    return real.cuMemAllocFromPoolAsync(address, size, pool, stream);
}

static CUresult fill_words(CUdeviceptr address, unsigned int value, size_t count, CUstream stream)
{
    atomic_fetch_add(&fills, 1);
    return real.cuMemsetD32Async(address, value, count, stream);
}

static CUresult graph_instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    atomic_fetch_add(&graphs, 1);
    return real.cuGraphInstantiateWithFlags(exec, graph, flags);
}

static CUresult exec_destroy(CUgraphExec exec)
{
    CUresult result = real.cuGraphExecDestroy(exec);
    atomic_fetch_add(&graphs_gone, 1);
    return result;
}

static int setup(void **state)
{
    (void)state;
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    symbols->cuMemAlloc = mem_alloc;
    symbols->cuGraphExecDestroy = exec_destroy;
    symbols->cuEventCreate = event_create;
    symbols->cuEventRecord = event_record;
    symbols->cuMemHostAlloc = host_alloc;
    symbols->cuMemFreeHost = host_free;
    symbols->cuMemFree = mem_free_waits;
    symbols->cuMemAllocFromPoolAsync = pool_alloc;
    symbols->cuMemsetD32Async = fill_words;
    symbols->cuGraphInstantiateWithFlags = graph_instantiate;
    return 0;
}

static keel_recording_t *record(keel_device_t *device, keel_op_t op)
{
    keel_recording_t *recording = NULL;
    assert_null(keel_recording_create(device, NULL, &recording));
    assert_null(keel_recording_add(recording, &op, 1));
    assert_null(keel_recording_end(recording));
    return recording;
}

// Queues that come and go leave their events, and their instances of a recording, to those that
// follow.
static void test_queues(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    keel_buffer_t *buffer = buffer_create(device, FILLED, 0);
    keel_recording_t *recording = record(device, keel_op_fill(keel_whole(buffer), 1, 4));
    uint32_t events_before = 0, graphs_before = 0;
    keel_queue_t *last = NULL; // goes when the next is there, so that this is not where it was
    for (int i = 0; i < QUEUES; i++) {
        keel_queue_t *queue = NULL;
        keel_point_t done;
        assert_null(keel_queue_create(device, NULL, &queue));
        keel_queue_release(last);
        assert_null(keel_queue_execute(queue, KEEL_NO_WAITS, recording, KEEL_NO_BINDINGS, &done));
        ok(done);
        last = queue;
        if (i != QUEUES / 2) continue; // until then what is there at a time may still grow
        events_before = atomic_load(&events);
        graphs_before = atomic_load(&graphs);
    }
    keel_queue_release(last);
    // A queue whose last reference is let go by its own thread lives a moment longer.
    assert_in_range(atomic_load(&events) - events_before, 0, 2 * 64);
    assert_in_range(atomic_load(&graphs) - graphs_before, 0, 2);
    keel_recording_release(recording);
    keel_buffer_release(buffer);
    keel_device_release(device);
}

// A thread that waits for each submission before the next has the same event again and again.
static void test_event(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    keel_buffer_t *buffer = buffer_create(device, FILLED, 0);
    keel_wait_options_t polls = {.spin_ns = PATIENCE_NS};
    recorded_count = 0;
    for (int i = 0; i < 50; i++) {
        keel_point_t done;
        assert_null(keel_queue_fill(keel_device_queue(device, 0), KEEL_NO_WAITS, keel_whole(buffer),
                                    1, 4, &done));
        assert_null(keel_wait_with(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER, &polls));
    }
    assert_in_range(recorded_count, 1, 8); // the device's own thread may have seen some ends first
    keel_buffer_release(buffer);
    keel_device_release(device);
}

// Staging of a large update is there for the next, also on another queue.
static void test_staging(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    keel_buffer_t *buffer = buffer_create(device, LARGE, 0);
    void *data = calloc(1, LARGE);
    uint32_t before = 0;
    for (int i = 0; i < 10; i++) {
        keel_queue_t *queue = NULL;
        keel_point_t done;
        assert_null(keel_queue_create(device, NULL, &queue));
        assert_null(keel_queue_run(queue, KEEL_NO_WAITS,
                                   keel_op_update(keel_span(buffer, 0, LARGE), data), &done));
        ok(done);
        keel_queue_release(queue);
        if (i == 4) before = atomic_load(&allocations);
    }
    assert_in_range(atomic_load(&allocations) - before, 0, 2); // as in test_queues
    before = atomic_load(&allocations);
    for (int i = 0; i < 100; i++) { // more than is kept at a time
        keel_op_t op = keel_op_update(keel_span(buffer, 0, LARGE), data);
        keel_point_t done;
        assert_null(keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS, op, &done));
        ok(done);
    }
    assert_in_range(atomic_load(&allocations) - before, 0, 2);
    free(data);
    keel_buffer_release(buffer);
    keel_device_release(device);
}

static uint32_t blocks_locked(void)
{
    return atomic_load(&allocations) - atomic_load(&frees);
}

// But not all of it for ever: page-locked memory is dear.
static void test_staging_is_bounded(void **state)
{
    (void)state;
    enum { PIECES = 100, MOST = 66 }; // of a MiB each
    keel_device_t *device = device_open("");
    keel_buffer_t *buffer = buffer_create(device, LARGE, 0);
    keel_op_t ops[PIECES];
    keel_point_t done;
    void *data = calloc(1, LARGE);
    for (int i = 0; i < PIECES; i++) ops[i] = keel_op_update(keel_span(buffer, 0, LARGE), data);
    uint32_t before = blocks_locked(), made = atomic_load(&allocations);
    assert_null(keel_queue_submit(keel_device_queue(device, 0), KEEL_NO_WAITS, ops, PIECES,
                                  KEEL_NO_SIGNALS, &done));
    assert_true(atomic_load(&allocations) - made >= PIECES); // all are the run's until it ends
    ok(done);
    await(blocks_locked() - before <= MOST); // a thread of the device's gives it back
    assert_in_range(blocks_locked() - before, 1, MOST);
    free(data);
    keel_buffer_release(buffer);
    keel_device_release(device);
}

// The vendor waits for the device before it frees memory, and holds up threads that launch
// meanwhile. Work whose end lets go of a buffer is told nevertheless, and the thread that submits
// more does not wait: the vendor gets it when the memory is freed. So it is for a queue that is
// made meanwhile, and though another thread gives something back by itself.
static void test_nobody_waits_for_frees(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    keel_queue_t *queue = keel_device_queue(device, 0), *late = NULL;
    keel_buffer_t *x = buffer_create(device, FILLED, 0), *y = buffer_create(device, FILLED, 0);
    keel_buffer_t *z = buffer_create(device, FILLED, 0);
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = calloc(1, 4096), .size = 4096};
    keel_buffer_t *imported = NULL;
    assert_null(keel_buffer_import(device, &external, NULL, &imported));
    keel_semaphore_t *gate = NULL;
    keel_point_t done[3];
    assert_null(keel_semaphore_create(device, NULL, &gate));
    assert_null(keel_queue_fill(queue, KEEL_AFTER(keel_point(gate, 1)), keel_whole(x), 1, 4, done));
    keel_buffer_release(x);
    atomic_store(&held, true);
    uint64_t start = keel_now_ns();
    assert_null(keel_semaphore_signal(gate, 1));
    ok(done[0]);
    await(atomic_load(&freeing));
    uint32_t before = atomic_load(&fills);
    assert_null(keel_queue_fill(queue, KEEL_NO_WAITS, keel_whole(y), 1, 4, &done[1]));
    assert_null(keel_queue_create(device, NULL, &late));
    assert_null(keel_queue_fill(late, KEEL_NO_WAITS, keel_whole(z), 1, 4, &done[2]));
    keel_buffer_release(imported);                        // it is unlocked here and now
    assert_true(keel_now_ns() - start < PATIENCE_NS / 2); // what is held takes twice that
    assert_int_equal(atomic_load(&fills), before);
    atomic_store(&held, false);
    ok(done[1]);
    ok(done[2]);
    assert_int_equal(atomic_load(&fills), before + 2);
    keel_queue_release(late);
    keel_semaphore_release(gate);
    keel_buffer_release(y);
    keel_buffer_release(z);
    keel_device_release(device);
    free(external.handle.host);
}

static struct {
    keel_queue_t *queue;
    keel_buffer_t *target;
    keel_point_t done;
    bool begun;
} own;

// A thread submits while the first thing is freed, and each takes its time.
static void submit_meanwhile(void)
{
    if (!own.begun)
        assert_null(
            keel_queue_fill(own.queue, KEEL_NO_WAITS, keel_whole(own.target), 1, 4, &own.done));
    own.begun = true;
    nanosleep(&(struct timespec){.tv_nsec = 2 * MS}, NULL);
}

static void *create_main(void *device)
{
    keel_buffer_options_t size = {.size = FILLED};
    keel_buffer_t *buffer = NULL;
    keel_status_t status = keel_buffer_create(device, &size, &buffer);
    keel_buffer_release(buffer);
    return status;
}

// Much that is to be freed, for which a thread waits that found no memory, holds no thread up for
// long.
static void test_frees_have_so_much_time(void **state)
{
    (void)state;
    enum { COUNT = 10 };
    keel_device_t *device = device_open("");
    keel_buffer_t *first = buffer_create(device, FILLED, 0), *buffers[COUNT];
    pthread_t thread;
    void *failed;
    own.queue = keel_device_queue(device, 0);
    own.target = buffer_create(device, FILLED, 0);
    for (int i = 0; i < COUNT; i++) buffers[i] = buffer_create(device, FILLED, 0);
    uint32_t before = atomic_load(&fills), freed = atomic_load(&memory_freed);
    atomic_store(&held, true); // until all are there
    keel_buffer_release(first);
    await(atomic_load(&freeing));
    for (int i = 0; i < COUNT; i++) keel_buffer_release(buffers[i]);
    uint32_t none = atomic_load(&refused);
    atomic_store(&scarce, freed + 1 + COUNT);
    assert_int_equal(pthread_create(&thread, NULL, create_main, device), 0);
    await(atomic_load(&refused) != none);
    meanwhile = submit_meanwhile;
    atomic_store(&held, false);
    await(atomic_load(&memory_freed) >= freed + 1 + COUNT);
    assert_int_equal(atomic_load(&fills_before_free), before + 1);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    await(atomic_load(&memory_freed) == freed + 1 + COUNT + 1); // what the thread had
    meanwhile = NULL;
    ok(own.done);
    keel_buffer_release(own.target);
    keel_device_release(device);
}

static _Atomic bool holds[2]; // what is freed first, and what next
static _Atomic uint32_t holds_count;

static void hold_each(void)
{
    uint32_t number = atomic_fetch_add(&holds_count, 1);
    if (number < 2) held_wait(&holds[number]);
}

// A thread that found no memory has it as soon as there is enough, though more is to be freed.
static void test_memory_comes_back_bit_by_bit(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    keel_buffer_t *x = buffer_create(device, FILLED, 0), *y = buffer_create(device, FILLED, 0);
    pthread_t thread;
    void *failed;
    uint32_t none = atomic_load(&refused);
    atomic_store(&holds[0], true), atomic_store(&holds[1], true);
    meanwhile = hold_each;
    atomic_store(&scarce, atomic_load(&memory_freed) + 1);
    keel_buffer_release(x), keel_buffer_release(y);
    await(atomic_load(&holds_count) == 1);
    assert_int_equal(pthread_create(&thread, NULL, create_main, device), 0);
    await(atomic_load(&refused) != none);
    atomic_store(&holds[0], false);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    assert_int_equal(atomic_load(&memory_freed), atomic_load(&scarce)); // but not y
    atomic_store(&holds[1], false);
    keel_device_release(device);
    meanwhile = NULL;
}

static void *alloca_main(void *argument)
{
    keel_buffer_t **buffer = argument;
    return keel_queue_alloca(own.queue, NULL, 64, buffer, &own.done);
}

// Nothing is freed while a thread issues, be it that it has nothing on the device yet. The graph of
// a recording goes meanwhile, and that thread has seen by then what else there is.
static void test_frees_wait_for_issuers(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    keel_buffer_t *x = buffer_create(device, FILLED, 0), *y = NULL;
    keel_buffer_t *z = buffer_create(device, FILLED, 0);
    keel_recording_t *recording = record(device, keel_op_fill(keel_whole(z), 1, 4));
    pthread_t thread;
    void *failed;
    own.queue = keel_device_queue(device, 0);
    assert_null(keel_recording_prepare(recording, own.queue));
    atomic_store(&held, true);
    atomic_store(&at_it, false);
    atomic_store(&stuck, true);
    assert_int_equal(pthread_create(&thread, NULL, alloca_main, &y), 0);
    await(atomic_load(&at_it));
    uint32_t gone = atomic_load(&graphs_gone), freed = atomic_load(&memory_freed);
    keel_buffer_release(x);
    keel_recording_release(recording);
    await(atomic_load(&graphs_gone) != gone);
    assert_false(atomic_load(&freeing));
    atomic_store(&stuck, false);
    atomic_store(&held, false);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    await(atomic_load(&memory_freed) != freed);
    ok(own.done);
    assert_null(keel_queue_dealloca(own.queue, KEEL_NO_WAITS, y, NULL));
    keel_buffer_release(y), keel_buffer_release(z);
    keel_device_release(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queues),
        cmocka_unit_test(test_event),
        cmocka_unit_test(test_staging),
        cmocka_unit_test(test_staging_is_bounded),
        cmocka_unit_test(test_nobody_waits_for_frees),
        cmocka_unit_test(test_frees_have_so_much_time),
        cmocka_unit_test(test_memory_comes_back_bit_by_bit),
        cmocka_unit_test(test_frees_wait_for_issuers),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
