// SPDX-License-Identifier: Apache-2.0
// Dispatches of kernels made elsewhere over grids in memory, on the CUDA driver in software. They
// need graphs that CUDA may wait for the device to make, and always does to destroy; so that is
// done while an executable is loaded, and later not at all.
#include <pthread.h>

#include "drivers/cuda/device.h"

extern const unsigned char keel_embed_conformance_kernels[];
extern const uint64_t keel_embed_conformance_kernels_size;

enum { QUEUES = 4, MANY = 100, GROUPS = 2 };

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
static _Atomic uint32_t made, destroyed, refusals;
static _Atomic bool *copy_held;
static _Atomic bool unable; // to make graphs

static CUresult instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    if (atomic_load(&unable)) return CUDA_ERROR_OUT_OF_MEMORY;
    atomic_fetch_add(&made, 1);
    return real.cuGraphInstantiateWithFlags(exec, graph, flags);
}

// The modules of functions, and what nodes of graphs launch; of executable ones, what they were
// changed to.
enum { FUNCTIONS = 1000, CHANGES = 4000 };
typedef struct change_t {
    CUgraphExec exec; // NULL: it is destroyed
    CUgraphNode node;
    CUfunction function;
} change_t;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    CUfunction function;
    CUmodule module;
} functions[FUNCTIONS];
static change_t changes[CHANGES];
static uint32_t function_count, change_count, stale;
static _Atomic uint32_t unloaded;
static pthread_t tester;
static uint32_t destroyed_here; // by its thread

static CUresult get_function(CUfunction *function, CUmodule module, const char *name)
{
    CUresult result = real.cuModuleGetFunction(function, module, name);
    pthread_mutex_lock(&lock);
    if (!result && function_count < FUNCTIONS) {
        functions[function_count].function = *function;
        functions[function_count++].module = module;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static void note(CUgraphExec exec, CUgraphNode node, CUfunction function)
{
    uint32_t i = 0;
    pthread_mutex_lock(&lock);
    while (i < change_count && (changes[i].exec != exec || changes[i].node != node)) i++;
    if (i < CHANGES) changes[i] = (change_t){exec, node, function};
    if (i == change_count && i < CHANGES) change_count++;
    pthread_mutex_unlock(&lock);
}

static void forget(CUgraphExec exec)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < change_count; i++)
        if (changes[i].exec == exec) changes[i].exec = NULL;
    pthread_mutex_unlock(&lock);
}

static CUresult exec_destroy(CUgraphExec exec)
{
    atomic_fetch_add(&destroyed, 1);
    if (pthread_equal(pthread_self(), tester)) destroyed_here++;
    forget(exec);
    return real.cuGraphExecDestroy(exec);
}

// Counts nodes that launch something of it.
static CUresult unload(CUmodule module)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < change_count; i++)
        for (uint32_t k = 0; k < function_count && changes[i].exec; k++)
            stale += functions[k].module == module && functions[k].function == changes[i].function;
    for (uint32_t k = 0; k < function_count; k++)
        if (functions[k].module == module) functions[k].function = NULL;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&unloaded, 1);
    return real.cuModuleUnload(module);
}

// What a graph was made of stays in it, whatever its executable graphs are changed to.
static CUresult node_add(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                         const CUDA_KERNEL_NODE_PARAMS *params)
{
    CUresult result = real.cuGraphAddKernelNode(node, graph, before, count, params);
    if (!result) note((CUgraphExec)graph, *node, params->func);
    return result;
}

static CUresult graph_destroy(CUgraph graph)
{
    forget((CUgraphExec)graph);
    return real.cuGraphDestroy(graph);
}

static CUresult node_set(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    uint32_t left = atomic_load(&refusals);
    if (left && atomic_compare_exchange_strong(&refusals, &left, left - 1))
        return CUDA_ERROR_INVALID_VALUE;
    note(exec, node, params->func);
    return real.cuGraphExecKernelNodeSetParams(exec, node, params);
}

typedef struct place_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_buffer_t *words; // a count; and a grid
    keel_buffer_t *aside; // whatever is in it
    uint64_t block;       // of arguments
    keel_patch_t patch;
    _Atomic bool held;
} place_t;

static void load(place_t *place)
{
    keel_executable_options_t options = {.data = keel_embed_conformance_kernels,
                                         .size = keel_embed_conformance_kernels_size};
    assert_null(keel_executable_load(place->device, &options, &place->kernels));
}

static int setup(void **state)
{
    static place_t place;
    const uint32_t words[] = {0, 0, 0, 0, GROUPS, 1, 1, 0};
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    tester = pthread_self();
    symbols->cuGraphInstantiateWithFlags = instantiate;
    symbols->cuGraphExecDestroy = exec_destroy;
    symbols->cuGraphAddKernelNode = node_add;
    symbols->cuGraphDestroy = graph_destroy;
    symbols->cuGraphExecKernelNodeSetParams = node_set;
    symbols->cuModuleGetFunction = get_function;
    symbols->cuModuleUnload = unload;
    place.device = device_open("");
    atomic_store(&made, 0); // with the device, for launches
    atomic_store(&destroyed, destroyed_here = 0);
    load(&place);
    place.words = buffer_create(place.device, sizeof words, KEEL_MEMORY_HOST_VISIBLE);
    assert_null(keel_buffer_write(place.words, 0, words, sizeof words));
    place.aside = buffer_create(place.device, FILLED, KEEL_MEMORY_DEVICE_LOCAL);
    *state = &place;
    return 0;
}

static int teardown(void **state)
{
    place_t *place = *state;
    keel_buffer_release(place->words);
    keel_buffer_release(place->aside);
    keel_executable_release(place->kernels);
    keel_device_release(place->device); // all is unloaded by then
    *symbols = real;
    if (stale) print_error("%u graphs launch what is unloaded\n", stale);
    return stale != 0;
}

static keel_op_t tally(place_t *place, keel_ref_t word)
{
    keel_op_t op = {.kind = KEEL_OP_DISPATCH};
    place->patch = (keel_patch_t){0, word};
    assert_null(keel_executable_entry(place->kernels, "raw_tally", &op.as.dispatch.entry));
    op.as.dispatch.raw = true;
    op.as.dispatch.constants = &place->block;
    op.as.dispatch.constant_size = sizeof place->block;
    op.as.dispatch.patches = &place->patch;
    op.as.dispatch.patch_count = 1;
    return keel_op_indirect(op, KEEL_COUNTS_STATIC, keel_span(place->words, 16, 12));
}

static uint32_t word_at(const place_t *place, uint32_t word)
{
    uint32_t number = 0;
    assert_null(keel_buffer_read(place->words, word * sizeof number, &number, sizeof number));
    return number;
}

// How often there was a dispatch: all of its groups count.
static uint32_t count(const place_t *place, uint32_t word)
{
    assert_int_equal(word_at(place, word) % GROUPS, 0);
    return word_at(place, word) / GROUPS;
}

// So many graphs were made, and then destroyed as soon as the device rested.
static void graphs_are(uint32_t most, uint32_t gone)
{
    await(atomic_load(&destroyed) >= gone);
    assert_int_equal(atomic_load(&made), most);
    assert_int_equal(atomic_load(&destroyed), gone);
}

// What goes again leaves its room. While nothing runs, loading sees to that itself, so that no
// thread is held up for it later.
static void test_loaded(void **state)
{
    (void)state;
    assert_int_equal(destroyed_here, 32);
    graphs_are(96, 32);
}

// On several queues, one by one and many at a time, more than a queue has its share of.
static void test_dispatched(void **state)
{
    place_t *place = *state;
    keel_queue_t *queues[QUEUES];
    keel_point_t done[QUEUES], last;
    keel_op_t op = tally(place, keel_span(place->words, 0, 4)), ops[MANY];
    for (int i = 0; i < MANY; i++) ops[i] = op;
    for (int i = 0; i < QUEUES; i++)
        assert_null(keel_queue_create(place->device, NULL, &queues[i]));
    uint32_t before = count(place, 0);
    for (int i = 0; i < MANY; i++)
        for (int k = 0; k < QUEUES; k++)
            assert_null(keel_queue_run(queues[k], KEEL_NO_WAITS, op, &done[k]));
    for (int i = 0; i < QUEUES; i++) ok(done[i]);
    assert_null(keel_queue_submit(queues[0], KEEL_NO_WAITS, ops, MANY, KEEL_NO_SIGNALS, &last));
    ok(last);
    for (int i = 0; i < QUEUES; i++) {
        assert_null(keel_queue_wait_idle(queues[i], KEEL_FOREVER));
        keel_queue_release(queues[i]);
    }
    assert_int_equal(count(place, 0) - before, MANY * QUEUES + MANY);
    graphs_are(96, 32);
}

static _Atomic uint32_t copies; // that were issued

static CUresult copy(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream)
{
    atomic_fetch_add(&copies, 1);
    return held_copy(&real, copy_held, target, source, size, stream);
}

// Queues whose streams do not move leave one for each that comes.
static void test_shared(void **state)
{
    place_t *place = *state;
    enum { HELD = 10, EACH = 10 };
    keel_queue_t *queues[HELD], *free_one;
    keel_point_t done[HELD], last;
    keel_op_t op = tally(place, keel_span(place->words, 0, 4));
    keel_buffer_t *aside = place->aside;
    copy_held = &place->held;
    atomic_store(copy_held, true);
    symbols->cuMemcpyAsync = copy;
    for (uint32_t i = 0; i < HELD; i++) {
        keel_op_t wait = keel_op_copy(keel_span(aside, 8 * i, 4), keel_span(aside, 8 * i + 4, 4));
        assert_null(keel_queue_create(place->device, NULL, &queues[i]));
        assert_null(keel_queue_run(queues[i], KEEL_NO_WAITS, wait, NULL));
        for (int k = 0; k < EACH; k++)
            assert_null(keel_queue_run(queues[i], KEEL_NO_WAITS, op, &done[i]));
    }
    assert_null(keel_queue_create(place->device, NULL, &free_one));
    assert_null(keel_queue_run(free_one, KEEL_NO_WAITS, op, &last));
    keel_status_t status = keel_wait(KEEL_POINTS(last), KEEL_ALL, PATIENCE_NS / 2);
    atomic_store(copy_held, false);
    assert_null(status);
    for (int i = 0; i < HELD; i++) ok(done[i]);
    for (int i = 0; i < HELD; i++) keel_queue_release(queues[i]);
    keel_queue_release(free_one);
    symbols->cuMemcpyAsync = real.cuMemcpyAsync;
}

static keel_status_t held_host(void *user, keel_host_call_t *call)
{
    (void)call;
    held_wait(user);
    return NULL;
}

// What a run has done before it waits for the host is not the run's any more, whether the host
// begins after that or before.
static void check_parked(place_t *place, int call)
{
    enum { OPS = 10 };
    keel_queue_t *queue = keel_device_queue(place->device, 0);
    keel_op_t op = tally(place, keel_span(place->words, 0, 4)), ops[OPS];
    for (int i = 0; i < OPS; i++) ops[i] = op;
    ops[call ? call - 1 : OPS - 1] = keel_op_barrier();
    ops[call] = keel_op_host_call(held_host, &place->held);
    keel_point_t first, second;
    atomic_store(&place->held, true);
    assert_null(keel_queue_submit(queue, KEEL_NO_WAITS, ops, OPS, KEEL_NO_SIGNALS, &first));
    assert_null(keel_queue_run(queue, KEEL_NO_WAITS, op, &second));
    uint64_t start = keel_now_ns();
    ok(second);
    assert_true(keel_now_ns() - start < PATIENCE_NS / 2); // what is held takes twice that
    atomic_store(&place->held, false);
    ok(first);
}

static void test_parked(void **state)
{
    check_parked(*state, 9);
    check_parked(*state, 0);
}

// Nor what it has done before it waits for memory, which a thread gives back that needs a graph.
static void test_starved(void **state)
{
    place_t *place = *state;
    enum { SIZE = 4096, OPS = 10 };
    keel_queue_t *queue = keel_device_queue(place->device, 0);
    keel_pool_options_t limit = {.limit = SIZE};
    keel_buffer_options_t size = {.size = SIZE};
    keel_pool_t *pool = NULL;
    keel_semaphore_t *gate = NULL;
    keel_buffer_t *taken = NULL, *wanted = NULL;
    keel_point_t ready, first, second;
    assert_null(keel_pool_create(place->device, &limit, &pool));
    assert_null(keel_semaphore_create(place->device, NULL, &gate));
    assert_null(keel_queue_alloca(queue, pool, SIZE, &taken, &ready));
    ok(ready);
    assert_null(keel_buffer_reserve(pool, &size, &wanted));
    keel_op_t op = tally(place, keel_span(place->words, 0, 4)), ops[OPS];
    for (int i = 0; i < OPS - 2; i++) ops[i] = op;
    ops[OPS - 2] = keel_op_barrier();
    ops[OPS - 1] = keel_op_alloca(wanted);
    keel_op_t give[] = {op, keel_op_barrier(), keel_op_dealloca(taken)};
    assert_null(keel_queue_submit(queue, KEEL_AFTER(keel_point(gate, 1)), give, 3, KEEL_NO_SIGNALS,
                                  &second));
    assert_null(keel_queue_submit(queue, KEEL_NO_WAITS, ops, OPS, KEEL_NO_SIGNALS, &first));
    assert_null(keel_semaphore_signal(gate, 1));
    assert_null(keel_wait(KEEL_POINTS(second), KEEL_ALL, PATIENCE_NS));
    ok(first);
    assert_null(keel_queue_dealloca(queue, KEEL_NO_WAITS, wanted, NULL));
    keel_buffer_release(taken);
    keel_buffer_release(wanted);
    keel_semaphore_release(gate);
    keel_pool_release(pool);
}

// A recording is made by `prepare`, and changed when its arguments lie elsewhere.
static void test_recorded(void **state)
{
    place_t *place = *state;
    keel_queue_t *queue = keel_device_queue(place->device, 0);
    keel_recording_options_t options = {.slots = 1};
    keel_recording_t *recording = NULL;
    keel_op_t ops[] = {tally(place, keel_slot(0, 0, 4)), keel_op_fill(keel_slot(0, 4, 4), 7, 4)};
    uint32_t before[] = {count(place, 0), count(place, 2)};
    assert_null(keel_recording_create(place->device, &options, &recording));
    assert_null(keel_recording_add(recording, ops, 2));
    assert_null(keel_recording_end(recording));
    assert_null(keel_recording_prepare(recording, queue));
    for (uint32_t i = 0; i < MANY; i++) {
        keel_ref_t table[] = {keel_span(place->words, i % 2 * 8, 8)};
        assert_null(keel_queue_run(queue, KEEL_NO_WAITS,
                                   keel_op_execute(recording, keel_refs(table, 1)), NULL));
    }
    assert_null(keel_queue_wait_idle(queue, KEEL_FOREVER));
    assert_int_equal(count(place, 0) - before[0], MANY / 2);
    assert_int_equal(count(place, 2) - before[1], MANY / 2);
    assert_int_equal(word_at(place, 1), 7);
    assert_int_equal(word_at(place, 3), 7);
    graphs_are(97, 32);
    keel_recording_release(recording);
    graphs_are(97, 33);
}

// Releases the kernels, and waits until a thread of the library has unloaded them: it is counted.
static void unload_all(place_t *place)
{
    uint32_t before = atomic_load(&unloaded);
    keel_executable_release(place->kernels);
    await(atomic_load(&unloaded) != before);
}

// What a graph has launched may be unloaded.
static void test_unloaded(void **state)
{
    place_t *place = *state;
    for (int i = 0; i < 3; i++) {
        keel_point_t done;
        uint32_t before = count(place, 0);
        assert_null(keel_queue_run(keel_device_queue(place->device, 0), KEEL_NO_WAITS,
                                   tally(place, keel_span(place->words, 0, 4)), &done));
        ok(done);
        assert_int_equal(count(place, 0) - before, 1);
        unload_all(place);
        load(place);
    }
    graphs_are(97, 33);
}

// For a kernel to which none can be changed another one is made; not by the thread that submits,
// which leaves it to the queue's own thread to try again. One that cannot be changed back does not
// stay.
static void test_refused(void **state)
{
    place_t *place = *state;
    keel_queue_t *queue = keel_device_queue(place->device, 0);
    keel_op_t op = tally(place, keel_span(place->words, 0, 4));
    atomic_store(&refusals, 1);
    assert_null(keel_queue_run(queue, KEEL_NO_WAITS, op, NULL));
    assert_null(keel_queue_wait_idle(queue, KEEL_FOREVER));
    graphs_are(97, 33);
    stream_of(queue, place->aside); // what comes while that thread is at it is left to it
    uint32_t before = count(place, 0);
    atomic_store(&refusals, 2); // by the thread that submits, and by the queue's own thread
    for (int i = 0; i < MANY; i++) assert_null(keel_queue_run(queue, KEEL_NO_WAITS, op, NULL));
    assert_null(keel_queue_wait_idle(queue, KEEL_FOREVER));
    assert_int_equal(count(place, 0) - before, MANY);
    graphs_are(98, 34);
    unload_all(place);
    graphs_are(98, 35); // which goes with its kernel
    load(place);
    graphs_are(98 + 33, 35 + 32);
    op = tally(place, keel_span(place->words, 0, 4));
    assert_null(keel_queue_run(queue, KEEL_NO_WAITS, op, NULL));
    assert_null(keel_queue_wait_idle(queue, KEEL_FOREVER));
    atomic_store(&refusals, 1);
    unload_all(place);
    graphs_are(98 + 33, 35 + 33);
    load(place);
    graphs_are(98 + 66, 35 + 65);
}

// If none could be made when the executable was loaded, the first who needs one has them made.
static void test_made_late(void **state)
{
    (void)state;
    place_t late = {.device = device_open("")};
    keel_point_t done;
    atomic_store(&unable, true);
    load(&late);
    atomic_store(&unable, false);
    const uint32_t words[] = {0, 0, 0, 0, GROUPS, 1, 1, 0};
    late.words = buffer_create(late.device, sizeof words, KEEL_MEMORY_HOST_VISIBLE);
    assert_null(keel_buffer_write(late.words, 0, words, sizeof words));
    assert_null(keel_queue_run(keel_device_queue(late.device, 0), KEEL_NO_WAITS,
                               tally(&late, keel_span(late.words, 0, 4)), &done));
    assert_null(keel_wait(KEEL_POINTS(done), KEEL_ALL, PATIENCE_NS));
    assert_int_equal(count(&late, 0), 1);
    keel_buffer_release(late.words);
    keel_executable_release(late.kernels);
    keel_device_release(late.device);
}

// What the device does not change goes at once, though it is busy.
static void test_plain_graphs_do_not_wait(void **state)
{
    place_t *place = *state;
    keel_queue_t *queue = keel_device_queue(place->device, 0);
    keel_recording_t *recording = NULL;
    keel_op_t op = keel_op_fill(keel_span(place->words, 4, 4), 7, 4);
    keel_op_t wait = keel_op_copy(keel_span(place->words, 4, 4), keel_span(place->aside, 12, 4));
    keel_point_t done;
    assert_null(keel_recording_create(place->device, NULL, &recording));
    assert_null(keel_recording_add(recording, &op, 1));
    assert_null(keel_recording_end(recording));
    assert_null(keel_queue_execute(queue, KEEL_NO_WAITS, recording, KEEL_NO_BINDINGS, &done));
    ok(done);
    copy_held = &place->held;
    atomic_store(copy_held, true);
    symbols->cuMemcpyAsync = copy;
    uint32_t issued = atomic_load(&copies);
    assert_null(keel_queue_run(queue, KEEL_NO_WAITS, wait, &done));
    await(atomic_load(&copies) != issued); // queues may be held up for a moment
    uint32_t before = atomic_load(&destroyed);
    keel_recording_release(recording);
    graphs_are(atomic_load(&made), before + 1);
    uint64_t value = 0;
    assert_null(keel_semaphore_value(done.semaphore, &value));
    assert_true(value < done.value); // which runs meanwhile
    atomic_store(copy_held, false);
    ok(done);
    symbols->cuMemcpyAsync = real.cuMemcpyAsync;
}

// That one launches no other, so that it goes with its kernel whatever else is under way.
static void test_kept(void **state)
{
    place_t *place = *state, other = {.device = place->device, .words = place->words};
    keel_queue_t *queue = keel_device_queue(place->device, 0);
    keel_op_t wait = keel_op_copy(keel_span(place->words, 4, 4), keel_span(place->aside, 12, 4));
    keel_op_t op = tally(place, keel_span(place->words, 0, 4));
    keel_point_t done;
    load(&other);
    atomic_store(&refusals, 2);
    assert_null(keel_queue_run(queue, KEEL_NO_WAITS, op, &done));
    ok(done);
    copy_held = &place->held;
    atomic_store(copy_held, true);
    symbols->cuMemcpyAsync = copy;
    op = tally(&other, keel_span(place->words, 0, 4));
    uint32_t before = atomic_load(&unloaded);
    assert_null(keel_queue_run(queue, KEEL_NO_WAITS, wait, NULL));
    assert_null(keel_queue_run(queue, KEEL_NO_WAITS, op, &done));
    keel_executable_release(place->kernels);
    place->kernels = other.kernels;
    atomic_store(copy_held, false);
    ok(done);
    await(atomic_load(&unloaded) != before);
    assert_int_equal(atomic_load(&unloaded), before + 1);
    assert_int_equal(stale, 0);
    symbols->cuMemcpyAsync = real.cuMemcpyAsync;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loaded),
        cmocka_unit_test(test_dispatched),
        cmocka_unit_test(test_parked),
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_unloaded),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_starved),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_plain_graphs_do_not_wait),
        cmocka_unit_test(test_made_late),
        cmocka_unit_test(test_kept),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
