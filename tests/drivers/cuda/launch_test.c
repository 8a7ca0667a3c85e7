// SPDX-License-Identifier: Apache-2.0
// Launches that come again are graphs, on the CUDA driver in software: which ones, how many, and
// what becomes of the graphs.
#include "drivers/cuda/device.h"
#include "drivers/stream/run/launch.h"

extern const unsigned char keel_embed_conformance_kernels[];
extern const uint64_t keel_embed_conformance_kernels_size;

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
// Mostly by this thread; queues may be taken apart by another.
static _Atomic uint32_t dispatches, graphs, made, destroyed, refusals;
static _Atomic(CUgraphExec) changed;      // the last that was
static _Atomic(CUfunction) before, after; // and what it launched then
static _Atomic(CUgraphNode) node;         // by this one
static CUgraph instantiated;              // the last that was
static uint32_t reused;                   // instantiated twice
static _Atomic uint32_t alive;            // graphs, not destroyed by anybody
static bool unable;                       // to make graphs
static _Atomic uint32_t unloads;          // of modules

// The device's own kernels: those that it has before an executable is loaded.
enum { OWN = 64 };
static CUfunction own_kernels[OWN];
static uint32_t own_count;
static bool opening;

static CUresult get_function(CUfunction *function, CUmodule module, const char *name)
{
    CUresult result = real.cuModuleGetFunction(function, module, name);
    if (opening && own_count < OWN) own_kernels[own_count++] = *function;
    return result;
}

static bool is_own(CUfunction function)
{
    for (uint32_t i = 0; i < own_count; i++)
        if (own_kernels[i] == function) return true;
    return false;
}

static CUresult module_unload(CUmodule module)
{
    CUresult result = real.cuModuleUnload(module);
    atomic_fetch_add(&unloads, 1);
    return result;
}

static CUresult graph_launch(CUgraphExec exec, CUstream stream)
{
    graphs++;
    return real.cuGraphLaunch(exec, stream);
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    if (unable) return CUDA_ERROR_OUT_OF_MEMORY;
    made++;
    reused += graph == instantiated;
    instantiated = graph;
    return real.cuGraphInstantiateWithFlags(exec, graph, flags);
}

static CUresult graph_create(CUgraph *graph, unsigned flags)
{
    alive++;
    return real.cuGraphCreate(graph, flags);
}

static CUresult graph_destroy(CUgraph graph)
{
    alive--;
    return real.cuGraphDestroy(graph);
}

static CUresult exec_destroy(CUgraphExec exec)
{
    destroyed++;
    return real.cuGraphExecDestroy(exec);
}

static CUresult node_set(CUgraphExec exec, CUgraphNode at, const CUDA_KERNEL_NODE_PARAMS *params)
{
    if (refusals && refusals--) return CUDA_ERROR_INVALID_VALUE;
    before = exec == changed ? (CUfunction)after : NULL;
    changed = exec;
    node = at;
    after = params->func;
    return real.cuGraphExecKernelNodeSetParams(exec, at, params);
}

static int setup(void **state)
{
    (void)state;
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    symbols->cuGraphLaunch = graph_launch;
    symbols->cuGraphInstantiateWithFlags = instantiate;
    symbols->cuGraphCreate = graph_create;
    symbols->cuGraphDestroy = graph_destroy;
    symbols->cuGraphExecDestroy = exec_destroy;
    symbols->cuGraphExecKernelNodeSetParams = node_set;
    symbols->cuModuleGetFunction = get_function;
    symbols->cuModuleUnload = module_unload;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    *symbols = real;
    return 0;
}

typedef struct place_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_buffer_t *word;
    uint32_t count; // what is to be in it
} place_t;

static void load(place_t *place)
{
    keel_executable_options_t options = {.data = keel_embed_conformance_kernels,
                                         .size = keel_embed_conformance_kernels_size};
    assert_null(keel_executable_load(place->device, &options, &place->kernels));
    dispatches = graphs = made = destroyed = 0;
}

static void unload(place_t *place)
{
    uint32_t seen = atomic_load(&unloads);
    keel_executable_release(place->kernels);
    await(atomic_load(&unloads) != seen);
}

static place_t place_open(const char *options)
{
    const uint32_t zero = 0;
    own_count = 0;
    opening = true;
    place_t place = {.device = device_open(options)};
    opening = false;
    load(&place);
    place.word = buffer_create(place.device, sizeof zero, KEEL_MEMORY_HOST_VISIBLE);
    assert_null(keel_buffer_write(place.word, 0, &zero, sizeof zero));
    return place;
}

static void place_close(place_t *place)
{
    keel_buffer_release(place->word);
    keel_executable_release(place->kernels);
    keel_device_release(place->device);
}

// Counts the groups of a dispatch, so many times.
static void tally(place_t *place, keel_queue_t *queue, uint32_t groups, uint32_t times)
{
    keel_entry_t entry;
    assert_null(keel_executable_entry(place->kernels, "tally", &entry));
    keel_op_t op =
        keel_op_dispatch(entry, keel_groups(groups, 1, 1), NULL, 0, KEEL_BIND(place->word));
    for (uint32_t i = 0; i < times; i++, dispatches++)
        assert_null(keel_queue_run(queue, KEEL_NO_WAITS, op, NULL));
    assert_null(keel_queue_wait_idle(queue, KEEL_FOREVER));
    uint32_t count;
    place->count += groups * times;
    assert_null(keel_buffer_read(place->word, 0, &count, sizeof count));
    assert_int_equal(count, place->count);
}

// The first time it is launched, then it has a graph; nothing is made for that.
static void test_again(void **state)
{
    (void)state;
    place_t place = place_open("");
    tally(&place, keel_device_queue(place.device, 0), 3, 10);
    assert_int_equal(dispatches - graphs, 1);
    assert_int_equal(graphs, 9);
    assert_int_equal(made, 0);
    place_close(&place);
}

static void check_plain(const char *options)
{
    place_t place = place_open(options);
    tally(&place, keel_device_queue(place.device, 0), 3, 10);
    assert_int_equal(dispatches - graphs, 10);
    assert_int_equal(graphs, 0);
    place_close(&place);
}

// A device that wants no graphs has none.
static void test_plain(void **state)
{
    (void)state;
    check_plain("&commands=stream");
    check_plain("&serial=1");
}

// What comes in turns with others at its place does not take it from them, and is launched.
static void test_in_turns(void **state)
{
    (void)state;
    enum { GRIDS = LAUNCH_SLOTS + 1, ROUNDS = 4 };
    place_t place = place_open("");
    keel_queue_t *queue = keel_device_queue(place.device, 0);
    for (int i = 0; i < ROUNDS; i++)
        for (uint32_t g = 1; g <= GRIDS; g++) tally(&place, queue, g, 1);
    uint32_t steady = graphs;
    assert_in_range(dispatches - graphs, GRIDS + 2 * (ROUNDS - 1), GRIDS * ROUNDS);
    for (uint32_t g = 1; g <= GRIDS; g++) tally(&place, queue, g, 1);
    assert_int_equal((graphs - steady) * (ROUNDS - 1), steady);
    place_close(&place);
}

// Whether a launch that comes again on the queue has a graph.
static bool has_graph(place_t *place, keel_queue_t *queue, uint32_t groups)
{
    uint32_t launched = graphs;
    tally(place, queue, groups, 2);
    return graphs != launched;
}

// The device has so many and no more; a queue that goes gives its own back, all of them, and they
// name no kernel any more that may go.
static void test_shared(void **state)
{
    (void)state;
    enum { QUEUES = 1 + LAUNCH_GRAPHS / LAUNCH_SLOTS, GRIDS = 200 };
    place_t place = place_open("");
    keel_queue_t *queues[QUEUES];
    for (int i = 0; i < QUEUES; i++) {
        assert_null(keel_queue_create(place.device, NULL, &queues[i]));
        for (uint32_t g = 1; g <= GRIDS; g++) tally(&place, queues[i], g, 2);
    }
    assert_int_equal(graphs, (QUEUES - 1) * GRIDS); // for the last there were none
    keel_queue_release(queues[0]);
    await(has_graph(&place, queues[QUEUES - 1], GRIDS));
    for (int i = 1; i < QUEUES; i++) keel_queue_release(queues[i]);
    for (int i = 1; i < QUEUES; i++) {
        assert_null(keel_queue_create(place.device, NULL, &queues[i]));
        for (uint32_t g = 1; g <= GRIDS; g++) await(has_graph(&place, queues[i], g));
    }
    assert_false(is_own(after));
    for (int i = 1; i < QUEUES; i++) keel_queue_release(queues[i]);
    await(is_own(after));
    assert_int_equal(made, 0);
    place_close(&place);
}

// CUDA locks no graph, and a node is its graph's. So no two of them come from one: the threads that
// change them, and others that make room, never meet.
static void test_apart(void **state)
{
    (void)state;
    reused = 0;
    place_t place = place_open("");
    keel_queue_t *beside = NULL;
    assert_null(keel_queue_create(place.device, NULL, &beside));
    tally(&place, keel_device_queue(place.device, 0), 3, 2);
    CUgraphExec first = changed;
    CUgraphNode first_node = node;
    tally(&place, beside, 3, 2);
    assert_ptr_not_equal(changed, first);
    assert_ptr_not_equal(node, first_node);
    assert_int_equal(reused, 0);
    keel_queue_release(beside);
    place_close(&place);
}

// Without any the device works as well, and nothing half made is left.
static void test_none(void **state)
{
    (void)state;
    unable = true;
    alive = 0;
    place_t place = place_open("");
    unable = false;
    await(alive == 0);
    tally(&place, keel_device_queue(place.device, 0), 3, 10);
    assert_int_equal(dispatches - graphs, 10);
    place_close(&place);
}

// What CUDA lets no graph be changed to is launched, and the graph stays at its place: however
// often code is unloaded, and what is refused comes again, the device loses none.
static void test_refused(void **state)
{
    (void)state;
    place_t place = place_open("");
    keel_queue_t *queue = NULL;
    assert_null(keel_queue_create(place.device, NULL, &queue));
    for (int i = 0; i < 3; i++) {
        tally(&place, queue, 3, 1);
        refusals = 1;
        tally(&place, queue, 3, 5);
        assert_int_equal(refusals, 0);
        assert_int_equal(dispatches - graphs, 6);
        unload(&place);
        load(&place);
    }
    tally(&place, queue, 3, 3); // CUDA has nothing against it any more
    assert_int_equal(graphs, 2);
    assert_int_equal(destroyed, 0);
    keel_queue_release(queue);
    place_close(&place);
}

// One that may still name a kernel that goes is not kept.
static void test_not_cleared(void **state)
{
    (void)state;
    place_t place = place_open("");
    keel_queue_t *queue = keel_device_queue(place.device, 0);
    tally(&place, queue, 3, 2);
    unload(&place);
    load(&place);
    refusals = 1;
    tally(&place, queue, 3, 3);
    assert_int_equal(refusals, 0);
    assert_int_equal(destroyed, 1);
    assert_int_equal(graphs, 2); // another one
    place_close(&place);
}

// A kernel may come to lie where another was, which a graph still names: that names none first.
static void test_unloaded(void **state)
{
    (void)state;
    place_t place = place_open("");
    keel_queue_t *queue = keel_device_queue(place.device, 0);
    tally(&place, queue, 3, 5);
    CUfunction first = after;
    unload(&place);
    load(&place);
    assert_false(is_own(first));
    tally(&place, queue, 3, 1);
    assert_ptr_equal(before, first);
    assert_true(is_own(after));
    tally(&place, queue, 3, 4);
    assert_int_equal(dispatches - graphs, 1);
    assert_int_equal(graphs, 4);
    place_close(&place);
}

static uint32_t fills; // by CUDA itself

static CUresult fill_words(CUdeviceptr target, unsigned value, size_t count, CUstream stream)
{
    fills++;
    return real.cuMemsetD32Async(target, value, count, stream);
}

// Fills a part of the buffer, and tells how many CUDA filled.
static uint32_t fill_in(const place_t *place, keel_buffer_t *buffer, uint64_t offset, uint64_t size)
{
    keel_point_t done;
    fills = 0;
    symbols->cuMemsetD32Async = fill_words;
    assert_null(keel_queue_run(keel_device_queue(place->device, 0), KEEL_NO_WAITS,
                               keel_op_fill(keel_span(buffer, offset, size), 7, 4), &done));
    ok(done);
    symbols->cuMemsetD32Async = real.cuMemsetD32Async;
    return fills;
}

static uint32_t fill_some(const place_t *place, uint64_t offset, uint64_t size)
{
    keel_buffer_t *buffer = buffer_create(place->device, FILLED, 0);
    uint32_t count = fill_in(place, buffer, offset, size);
    keel_buffer_release(buffer);
    return count;
}

// Fills that are small, and whole units of the kernel's, are launches where these become graphs.
static void test_fills(void **state)
{
    (void)state;
    place_t place = place_open(""), plain = place_open("&commands=stream");
    assert_int_equal(fill_some(&place, 0, 16), 0);
    assert_int_equal(fill_some(&place, 48, 1 << 16), 0);
    assert_int_equal(fill_some(&place, 0, (1 << 16) + 16), 1);
    assert_int_equal(fill_some(&place, 4, 16), 1);
    assert_int_equal(fill_some(&place, 0, 20), 1);
    assert_int_equal(fill_some(&plain, 0, 16), 1);
    place_close(&plain);
    place_close(&place);
}

// What the host sees, and what may be another device's, is CUDA's to get to.
static void test_fills_elsewhere(void **state)
{
    (void)state;
    place_t place = place_open("");
    keel_buffer_t *own = buffer_create(place.device, FILLED, 0), *lent = NULL;
    keel_buffer_t *seen = buffer_create(place.device, FILLED, KEEL_MEMORY_HOST_VISIBLE);
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_DEVICE};
    assert_null(keel_buffer_export(own, &external));
    assert_null(keel_buffer_import(place.device, &external, NULL, &lent));
    assert_int_equal(fill_in(&place, own, 0, 16), 0);
    assert_int_equal(fill_in(&place, lent, 0, 16), 1);
    assert_int_equal(fill_in(&place, seen, 0, 16), 1);
    keel_buffer_release(lent);
    keel_buffer_release(own);
    keel_buffer_release(seen);
    place_close(&place);
}

static uint32_t copies; // by CUDA itself

static CUresult copy_counted(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream)
{
    copies++;
    return real.cuMemcpyAsync(target, source, size, stream);
}

// Copies so many bytes from one place to another, and tells how many CUDA copied.
static uint32_t copy_some(const place_t *place, keel_queue_t *queue, uint32_t memory,
                          uint64_t offset, uint64_t size)
{
    keel_buffer_t *from = buffer_create(place->device, FILLED, memory);
    keel_buffer_t *to = buffer_create(place->device, FILLED, 0);
    keel_buffer_t *seen = buffer_create(place->device, FILLED, KEEL_MEMORY_HOST_VISIBLE);
    keel_op_t ops[] = {keel_op_fill(keel_whole(from), 0xabcd1234, 4),
                       keel_op_fill(keel_whole(to), 7, 4),
                       keel_op_barrier(),
                       keel_op_copy(keel_span(from, offset, size), keel_span(to, offset, size)),
                       keel_op_barrier(),
                       keel_op_copy(keel_whole(to), keel_whole(seen))};
    keel_point_t done;
    copies = 0;
    symbols->cuMemcpyAsync = copy_counted;
    assert_null(keel_queue_submit(queue, KEEL_NO_WAITS, ops, 6, KEEL_NO_SIGNALS, &done));
    ok(done);
    symbols->cuMemcpyAsync = real.cuMemcpyAsync;
    uint32_t words[FILLED / 4];
    assert_null(keel_buffer_read(seen, 0, words, FILLED));
    for (uint32_t i = 0; i < FILLED / 4; i++) {
        bool copied = i * 4 >= offset && i * 4 < offset + size;
        assert_int_equal(words[i], copied ? 0xabcd1234 : 7);
    }
    keel_buffer_release(from);
    keel_buffer_release(to);
    keel_buffer_release(seen);
    return copies - 1; // the last one is CUDA's in any case
}

// So are copies within the device's memory, but on queues for transfers.
static void test_copies(void **state)
{
    (void)state;
    place_t place = place_open(""), plain = place_open("&commands=stream");
    keel_queue_t *queue = keel_device_queue(place.device, 0), *transfers = NULL;
    keel_queue_options_t options = {.family = KEEL_QUEUE_TRANSFER};
    assert_null(keel_queue_create(place.device, &options, &transfers));
    assert_int_equal(copy_some(&place, queue, 0, 0, 16), 0);
    assert_int_equal(copy_some(&place, queue, 0, 48, 1 << 16), 0);
    assert_int_equal(copy_some(&place, queue, 0, 0, (1 << 16) + 16), 1);
    assert_int_equal(copy_some(&place, queue, 0, 4, 16), 1);
    assert_int_equal(copy_some(&place, queue, 0, 0, 20), 1);
    assert_int_equal(copy_some(&place, queue, KEEL_MEMORY_HOST_VISIBLE, 0, 16), 1);
    assert_int_equal(copy_some(&place, transfers, 0, 0, 16), 1);
    assert_int_equal(copy_some(&plain, keel_device_queue(plain.device, 0), 0, 0, 16), 1);
    keel_queue_release(transfers);
    place_close(&plain);
    place_close(&place);
}

static _Atomic bool held;

static CUresult copy(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream)
{
    return held_copy(&real, &held, target, source, size, stream);
}

// CUDA has launches of one graph wait for each other. So what is on its way on one queue gets to no
// other, though all give up what they have when code is unloaded.
static void test_on_its_way(void **state)
{
    (void)state;
    place_t place = place_open(""), other = {.device = place.device};
    keel_queue_t *queue = keel_device_queue(place.device, 0), *beside = NULL;
    keel_buffer_t *from = buffer_create(place.device, FILLED, 0);
    keel_buffer_t *to = buffer_create(place.device, FILLED, 0);
    keel_entry_t entry;
    keel_point_t done, last;
    assert_null(keel_queue_create(place.device, NULL, &beside));
    tally(&place, queue, 3, 2);
    assert_null(keel_executable_entry(place.kernels, "tally", &entry));
    keel_op_t op = keel_op_dispatch(entry, keel_groups(3, 1, 1), NULL, 0, KEEL_BIND(place.word));
    load(&other);
    atomic_store(&held, true);
    symbols->cuMemcpyAsync = copy;
    assert_null(keel_queue_copy(queue, KEEL_NO_WAITS, keel_whole(from), keel_whole(to), NULL));
    assert_null(keel_queue_run(queue, KEEL_NO_WAITS, op, NULL));
    uint32_t seen = atomic_load(&unloads);
    keel_executable_release(other.kernels);
    assert_null(keel_queue_run(queue, KEEL_NO_WAITS, op, &last));
    for (int i = 0; i < 3; i++) assert_null(keel_queue_run(beside, KEEL_NO_WAITS, op, &done));
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, PATIENCE_NS / 2);
    atomic_store(&held, false);
    symbols->cuMemcpyAsync = real.cuMemcpyAsync;
    assert_null(status);
    ok(last);
    await(atomic_load(&unloads) != seen);
    keel_buffer_release(from);
    keel_buffer_release(to);
    keel_queue_release(beside);
    place_close(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_in_turns),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_unloaded),
        cmocka_unit_test(test_on_its_way),
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_fills),
        cmocka_unit_test(test_fills_elsewhere),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_not_cleared),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
