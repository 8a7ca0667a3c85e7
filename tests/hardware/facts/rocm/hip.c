// SPDX-License-Identifier: Apache-2.0
// HIP: streams, events, graphs, pools, and what a release does not have.
#include "tests/hardware/facts/rocm/hip.h"

#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

hip_t hip;
static void *module;

static void hip_open(void)
{
#define FIND(name, parameters)                                                                     \
    *(void **)&hip.name = dlsym(fact_library, #name);                                              \
    if (!hip.name) fact_skip("the library has no " #name);
    HIP_FUNCTIONS(FIND)
#undef FIND
}

static void devices_find(void)
{
    int count = 0, error = hip.hipInit(0);
    if (!error) error = hip.hipGetDeviceCount(&count);
    if (error || !count) fact_skip("there is no GPU: HIP returned %d", error);
}

// As in hsa.c.
static bool hip_is_sim(void)
{
    return access("/dev/kfd", F_OK) != 0;
}

int hip_version(void)
{
    int value = 0;
    HIP(hip.hipRuntimeGetVersion(&value));
    return value;
}

// Loads TARGET-WHAT.hsaco for the target that the GPU takes: HIP does not tell its name in a call
// whose struct stays the same from release to release. The last error, or -1 if there is no file.
static int load(const char *what, void **loaded)
{
    char pattern[1024];
    glob_t files;
    int error = -1;
    snprintf(pattern, sizeof pattern, "%s/*-%s.hsaco", fact_kernels ? fact_kernels : ".", what);
    if (glob(pattern, 0, NULL, &files)) return error;
    for (size_t i = 0; i < files.gl_pathc && error; i++)
        error = hip.hipModuleLoad(loaded, files.gl_pathv[i]);
    globfree(&files);
    return error;
}

void hip_begin(void)
{
    devices_find();
    if (load("O2-queue", &module)) fact_skip("--kernels names no folder of kernels for this GPU");
}

static void *kernel(const char *name)
{
    void *function;
    HIP(hip.hipModuleGetFunction(&function, module, name));
    return function;
}

void *hip_stream_new(void)
{
    void *stream;
    HIP(hip.hipStreamCreateWithFlags(&stream, HIP_NON_BLOCKING));
    return stream;
}

static void *event_new(void)
{
    void *event;
    HIP(hip.hipEventCreateWithFlags(&event, HIP_NO_TIMES));
    return event;
}

uint32_t *hip_words_new(void)
{
    void *memory;
    HIP(hip.hipHostMalloc(&memory, 4096, 0));
    return memset(memory, 0, 4096);
}

void hip_append(void *stream, uint32_t *log, uint32_t value)
{
    void *arguments[] = {&log, &value};
    HIP(hip.hipModuleLaunchKernel(kernel("append"), 1, 1, 1, 64, 1, 1, 0, stream, arguments, NULL));
}

uint32_t *hip_gate_close(void *stream)
{
    uint32_t *word = hip_words_new(), *out = word + 64, value = 1;
    void *arguments[] = {&word, &value, &out};
    HIP(hip.hipModuleLaunchKernel(kernel("wait_for"), 1, 1, 1, 64, 1, 1, 0, stream, arguments,
                                  NULL));
    return word;
}

void hip_gate_open(uint32_t *word)
{
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

void hip_gate_release(void *gate)
{
    hip_gate_open(gate);
}

int hip_ends_by(void (*use)(void))
{
    int status = 0;
    pid_t child = fork();
    NEED(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // the fact may run out of time
        hip_begin();
        use();
        _exit(0);
    }
    NEED(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void no_host_functions(void)
{
    if (hip_version() >= 50700000) fact_skip("this release has them");
    REQUIRE(!dlsym(fact_library, "hipLaunchHostFunc"));
    REQUIRE(!dlsym(fact_library, "hipGraphUpload") &&
            !dlsym(fact_library, "hipGraphNodeSetEnabled"));
}

static void no_conditions(void)
{
    REQUIRE(!dlsym(fact_library, "hipGraphConditionalHandleCreate"));
    REQUIRE(!dlsym(fact_library, "hipLaunchKernelEx"));
}

static void stream_query(void)
{
    hip_begin();
    void *stream = hip_stream_new();
    RETURNS(0, hip.hipStreamQuery(stream));
    uint32_t *gate = hip_gate_close(stream);
    RETURNS(HIP_NOT_READY, hip.hipStreamQuery(stream));
    hip_gate_open(gate);
    RETURNS(0, hip.hipStreamSynchronize(stream));
    RETURNS(0, hip.hipStreamQuery(stream));
}

static void streams_overlap(void)
{
    hip_begin();
    void *first = hip_stream_new(), *second = hip_stream_new();
    uint32_t *gate = hip_gate_close(first), value = 1;
    void *arguments[] = {&gate, &value};
    HIP(hip.hipModuleLaunchKernel(kernel("set_word"), 1, 1, 1, 64, 1, 1, 0, second, arguments,
                                  NULL));
    RETURNS(0, hip.hipStreamSynchronize(first));
}

static void events_order(void)
{
    hip_begin();
    void *first = hip_stream_new(), *second = hip_stream_new(), *event = event_new();
    uint32_t *log = hip_words_new(), *gate = hip_gate_close(first);
    hip_append(first, log, 1);
    HIP(hip.hipEventRecord(event, first));
    HIP(hip.hipStreamWaitEvent(second, event, 0));
    hip_append(second, log, 2);
    RETURNS(HIP_NOT_READY, hip.hipEventQuery(event));
    hip_gate_open(gate);
    HIP(hip.hipStreamSynchronize(second));
    RETURNS(0, hip.hipEventQuery(event));
    REQUIRE(log[0] == 2 && log[1] == 1 && log[2] == 2);
}

// More streams than the GPU's queues for one priority wait for a gate.
static void other_priority(void)
{
    hip_begin();
    void *stream = hip_stream_new(), *event = event_new(), *waits, *urgent;
    uint32_t *log = hip_words_new(), *gate = hip_gate_close(stream);
    int least, greatest;
    HIP(hip.hipEventRecord(event, stream));
    for (int i = 0; i < 8; i++) {
        waits = hip_stream_new();
        HIP(hip.hipStreamWaitEvent(waits, event, 0));
        hip_append(waits, log + 64, 1);
    }
    HIP(hip.hipDeviceGetStreamPriorityRange(&least, &greatest));
    HIP(hip.hipStreamCreateWithPriority(&urgent, HIP_NON_BLOCKING, greatest));
    hip_append(urgent, log, 1);
    RETURNS(0, hip.hipStreamSynchronize(urgent)); // while the gate is closed
    hip_gate_open(gate);
    HIP(hip.hipDeviceSynchronize());
}

static void never_recorded(void)
{
    hip_begin();
    void *stream = hip_stream_new(), *event = event_new();
    RETURNS(0, hip.hipEventQuery(event));
    RETURNS(0, hip.hipEventSynchronize(event));
    RETURNS(0, hip.hipStreamWaitEvent(stream, event, 0));
    RETURNS(0, hip.hipStreamSynchronize(stream));
}

static void arguments_are_copied(void)
{
    hip_begin();
    void *stream = hip_stream_new();
    uint32_t *log = hip_words_new(), *gate = hip_gate_close(stream);
    for (uint32_t i = 0; i < 20; i++) hip_append(stream, log, i);
    hip_gate_open(gate);
    HIP(hip.hipStreamSynchronize(stream));
    REQUIRE(log[0] == 20);
    for (uint32_t i = 0; i < 20; i++) REQUIRE(log[1 + i] == i);
}

static void nothing_is_copied(void)
{
    hip_begin();
    void *stream = hip_stream_new(), *memory;
    uint32_t *words = hip_words_new();
    HIP(hip.hipMalloc(&memory, 64));
    RETURNS(0, hip.hipMemcpyAsync(memory, words, 0, HIP_DEFAULT_KIND, stream));
    RETURNS(0, hip.hipMemsetAsync(memory, 1, 0, stream));
    RETURNS(0, hip.hipStreamSynchronize(stream));
}

static uint32_t called;

static void callback(void *stream, int status, void *user)
{
    const uint32_t *log = user;
    __atomic_store_n(&called, 1 + log[0] + (status ? 100 : 0), __ATOMIC_RELEASE);
}

static void callbacks(void)
{
    hip_begin();
    void *stream = hip_stream_new();
    uint32_t *log = hip_words_new(), *gate = hip_gate_close(stream);
    hip_append(stream, log, 1);
    HIP(hip.hipStreamAddCallback(stream, callback, log, 0));
    hip_append(stream, log, 2);
    hip_gate_open(gate);
    REQUIRE(fact_await(&called, 1));
    HIP(hip.hipStreamSynchronize(stream));
    fact_say("%u before it", called - 1);
    REQUIRE(called == 2 && log[0] == 2); // what comes behind it waits for it
}

static hip_kernel_node_t node_of(const char *name, void **arguments)
{
    return (hip_kernel_node_t){
        .block = {64, 1, 1}, .grid = {1, 1, 1}, .function = kernel(name), .parameters = arguments};
}

static void graph_changes(void)
{
    hip_begin();
    void *stream = hip_stream_new(), *graph, *node, *exec;
    uint32_t *log = hip_words_new(), value = 1;
    void *arguments[] = {&log, &value};
    hip_kernel_node_t params = node_of("append", arguments);
    HIP(hip.hipGraphCreate(&graph, 0));
    HIP(hip.hipGraphAddKernelNode(&node, graph, NULL, 0, &params));
    HIP(hip.hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    HIP(hip.hipGraphLaunch(exec, stream));
    HIP(hip.hipStreamSynchronize(stream));
    value = 2;
    HIP(hip.hipGraphExecKernelNodeSetParams(exec, node, &params));
    HIP(hip.hipGraphLaunch(exec, stream));
    HIP(hip.hipStreamSynchronize(stream));
    REQUIRE(log[0] == 2 && log[1] == 1 && log[2] == 2);
}

static void graph_changes_are_for_later(void)
{
    hip_begin();
    void *stream = hip_stream_new(), *graph, *node, *exec;
    uint32_t *log = hip_words_new(), value = 0;
    void *arguments[] = {&log, &value};
    hip_kernel_node_t params = node_of("append", arguments);
    HIP(hip.hipGraphCreate(&graph, 0));
    HIP(hip.hipGraphAddKernelNode(&node, graph, NULL, 0, &params));
    HIP(hip.hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    uint32_t *gate = hip_gate_close(stream);
    for (; value < 10; value++) {
        HIP(hip.hipGraphExecKernelNodeSetParams(exec, node, &params));
        HIP(hip.hipGraphLaunch(exec, stream));
    }
    hip_gate_open(gate);
    HIP(hip.hipStreamSynchronize(stream));
    REQUIRE(log[0] == 10);
    for (uint32_t i = 0; i < 10; i++) REQUIRE(log[1 + i] == i);
}

static void graphs_overtake(void)
{
    hip_begin();
    void *stream = hip_stream_new(), *other = hip_stream_new(), *graph, *node, *exec;
    uint32_t *log = hip_words_new(), value = 1;
    void *arguments[] = {&log, &value};
    hip_kernel_node_t params = node_of("append", arguments);
    HIP(hip.hipGraphCreate(&graph, 0));
    HIP(hip.hipGraphAddKernelNode(&node, graph, NULL, 0, &params));
    HIP(hip.hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    uint32_t *gate = hip_gate_close(stream);
    HIP(hip.hipGraphLaunch(exec, stream));
    HIP(hip.hipGraphLaunch(exec, other));
    HIP(hip.hipStreamSynchronize(other)); // returns, or the gate stays closed
    REQUIRE(__atomic_load_n(&log[0], __ATOMIC_ACQUIRE) == 1);
    hip_gate_open(gate);
    HIP(hip.hipStreamSynchronize(stream));
    REQUIRE(log[0] == 2);
}

static void graph_fills_early(void)
{
    hip_begin();
    if (hip_version() / 10000000 != 6) fact_skip("other releases fill when the graph runs");
    void *stream = hip_stream_new(), *graph, *node, *exec;
    uint32_t *target = hip_words_new();
    const hip_fill_node_t fill = {.target = target, .word = 4, .height = 1, .value = 7, .count = 1};
    HIP(hip.hipGraphCreate(&graph, 0));
    HIP(hip.hipGraphAddMemsetNode(&node, graph, NULL, 0, &fill));
    REQUIRE(*target == 0);
    HIP(hip.hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    REQUIRE(*target == 7);
    *target = 0;
    HIP(hip.hipGraphLaunch(exec, stream));
    HIP(hip.hipStreamSynchronize(stream));
    REQUIRE(*target == 0);
}

// Behind a gate, which a right copy would wait for.
static void graph_copies_overtake(void)
{
    int count = 0;
    devices_find();
    if (hip_version() >= 50300000) fact_skip("this release orders them");
    HIP(hip.hipGetDeviceCount(&count));
    if (count < 2) fact_skip("there is no second GPU");
    HIP(hip.hipSetDevice(1));
    hip_begin();
    void *stream = hip_stream_new(), *graph, *first, *then, *exec;
    uint32_t *gate = hip_words_new(), *out = gate + 64, value = 1;
    uint32_t *source = hip_words_new(), *target = hip_words_new();
    void *arguments[] = {&gate, &value, &out};
    hip_kernel_node_t params = node_of("wait_for", arguments);
    *source = 42;
    HIP(hip.hipGraphCreate(&graph, 0));
    HIP(hip.hipGraphAddKernelNode(&first, graph, NULL, 0, &params));
    HIP(hip.hipGraphAddMemcpyNode1D(&then, graph, &first, 1, target, source, 4, HIP_DEFAULT_KIND));
    HIP(hip.hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    HIP(hip.hipGraphLaunch(exec, stream));
    REQUIRE(fact_await(target, 42));
    RETURNS(HIP_NOT_READY, hip.hipStreamQuery(stream));
    hip_gate_open(gate);
    HIP(hip.hipStreamSynchronize(stream));
}

static void launches_not_captured(void)
{
    hip_begin();
    if (hip_version() >= 50700000) fact_skip("this release captures them");
    void *stream = hip_stream_new(), *graph = NULL;
    uint32_t *log = hip_words_new();
    size_t count = 7;
    HIP(hip.hipStreamBeginCapture(stream, 0));
    hip_append(stream, log, 1);
    HIP(hip.hipStreamEndCapture(stream, &graph));
    HIP(hip.hipGraphGetNodes(graph, NULL, &count));
    fact_say("%zu nodes", count);
    REQUIRE(count == 0);
}

static void pools_unsaid(void)
{
    hip_begin();
    int supported = -1;
    void *stream = hip_stream_new(), *memory = NULL, *pool;
    HIP(hip.hipDeviceGetAttribute(&supported, HIP_POOLS_SUPPORTED, 0));
    if (hip_version() >= 60000000) fact_skip("this release says that it has pools");
    REQUIRE(supported == 0);
    RETURNS(0, hip.hipMallocAsync(&memory, 4096, stream));
    RETURNS(0, hip.hipMemsetAsync(memory, 1, 4096, stream));
    RETURNS(0, hip.hipFreeAsync(memory, stream));
    RETURNS(0, hip.hipStreamSynchronize(stream));
    RETURNS(0, hip.hipDeviceGetDefaultMemPool(&pool, 0));
    RETURNS(0, hip.hipMemPoolTrimTo(pool, 0));
    RETURNS(0, hip.hipStreamDestroy(stream)); // which spins for ever if the pool is not trimmed
}

static void destroyed_untrimmed(void)
{
    hip_begin();
    void *stream = hip_stream_new(), *memory = NULL;
    HIP(hip.hipMallocAsync(&memory, 4096, stream));
    HIP(hip.hipFreeAsync(memory, stream));
    HIP(hip.hipStreamSynchronize(stream));
    RETURNS(0, hip.hipStreamDestroy(stream));
}

static void names(void)
{
    hip_begin();
    void *function;
    RETURNS(HIP_NOT_FOUND, hip.hipModuleGetFunction(&function, module, "nobody"));
}

static void launches_refused(void)
{
    hip_begin();
    uint32_t *log = hip_words_new(), value = 1;
    void *arguments[] = {&log, &value}, *append_it = kernel("append");
    REQUIRE(hip.hipModuleLaunchKernel(append_it, 1, 1, 1, 2048, 1, 1, 0, NULL, arguments, NULL));
    REQUIRE(hip.hipModuleLaunchKernel(append_it, 0, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL));
    RETURNS(0, hip.hipDeviceSynchronize());
    REQUIRE(log[0] == 0);
}

static void code_object_5(void)
{
    void *loaded;
    hip_begin();
    if (hip_version() >= 50700000) fact_skip("this release takes them");
    int error = load("v5", &loaded);
    if (error < 0) fact_skip("--kernels names no folder with such an object");
    REQUIRE(error == HIP_SHARED_OBJECT_INIT_FAILED);
}

static void store_astray(void)
{
    void *stream = hip_stream_new();
    hip_append(stream, (uint32_t *)(uintptr_t)0xdead0000, 1);
    hip.hipStreamSynchronize(stream);
}

// HIP does not report a wild store: it ends the process.
static void faults_end_the_process(void)
{
    REQUIRE((hip_ends_by(store_astray) == SIGABRT) == (hip_version() < 70000000));
}

typedef struct asked_t {
    void *event;
    uint32_t asks; // the thread that sleeps is about to
} asked_t;

static void *sleep_on(void *user)
{
    asked_t *asked = user;
    __atomic_store_n(&asked->asks, 1, __ATOMIC_RELEASE);
    HIP(hip.hipEventSynchronize(asked->event));
    return NULL;
}

static void query_call(void *event)
{
    (void)hip.hipEventQuery(event);
}

// Nothing shows that a thread sleeps in HIP: it gets so long for that.
static bool sleeper_holds_after(unsigned ms)
{
    void *stream = hip_stream_new();
    asked_t asked = {event_new(), 0};
    uint32_t *gate = hip_gate_close(stream);
    pthread_t sleeper;
    HIP(hip.hipEventRecord(asked.event, stream));
    NEED(!pthread_create(&sleeper, NULL, sleep_on, &asked));
    NEED(fact_await(&asked.asks, 1));
    fact_nap(ms);
    const fact_try_t attempt = {query_call, asked.event, hip_gate_release, gate};
    bool waits = fact_waits(&attempt, FACT_SHORT_MS);
    pthread_join(sleeper, NULL);
    return waits;
}

// A machine may be busy: once is enough.
static void sleeper_holds_its_event(void)
{
    unsigned ms = FACT_SHORT_MS;
    hip_begin();
    while (ms < FACT_LONG_MS && !sleeper_holds_after(ms)) ms *= 2;
    REQUIRE(ms < FACT_LONG_MS);
}

static void not_ready_is_an_error(void)
{
    hip_begin();
    void *stream = hip_stream_new();
    uint32_t *gate = hip_gate_close(stream);
    (void)hip.hipGetLastError();
    RETURNS(HIP_NOT_READY, hip.hipStreamQuery(stream));
    RETURNS(hip_version() < 70000000 ? HIP_NOT_READY : 0, hip.hipGetLastError());
    RETURNS(0, hip.hipGetLastError());
    hip_gate_open(gate);
    HIP(hip.hipStreamSynchronize(stream));
}

static void clock_rate(void)
{
    int khz = 0, error;
    hip_begin();
    error = hip.hipDeviceGetAttribute(&khz, HIP_CLOCK_RATE, 0);
    fact_say("error %d, %d kHz", error, khz);
    REQUIRE(hip_version() < 50400000 ? error == HIP_INVALID_VALUE : !error && khz > 0);
}

static void no_timelines(void)
{
    hip_begin();
    struct {
        int kind;
        int fd[4]; // a union that begins with the descriptor
        unsigned flags, reserved[16];
    } what = {HIP_TIMELINE_FD, {0}, 0, {0}};
    void *semaphore;
    RETURNS(HIP_INVALID_VALUE, hip.hipImportExternalSemaphore(&semaphore, &what));
}

// The one that 6.4 exports opens libamdhip64.so, which may be another HIP.
static void no_proc_address(void)
{
    if (hip_version() >= 60000000) fact_skip("this release has it");
    REQUIRE(!dlsym(fact_library, "hipGetProcAddress"));
}

static const fact_t hip_facts[] = {
    {"hip.no_host_functions", "HIP 5.2 exports no hipLaunchHostFunc, though its header declares it",
     SIM, no_host_functions, HOLDS, HOLDS, NULL},
    {"hip.no_conditions", "there are neither conditional nodes nor launches with attributes", SIM,
     no_conditions, HOLDS, HOLDS, NULL},
    {"stream.query", "a stream's query says whether all of its work is over",
     "HIP runtime API, hipStreamQuery", stream_query, HOLDS, HOLDS, NULL},
    {"stream.overlap", "a kernel may wait for one of another stream", SIM, streams_overlap, HOLDS,
     HOLDS, NULL},
    {"stream.arguments_are_copied", "arguments are copied by the call that launches",
     "HIP runtime API, hipModuleLaunchKernel", arguments_are_copied, HOLDS, HOLDS, NULL},
    {"stream.nothing_is_copied", "copies and fills of no bytes succeed", SIM, nothing_is_copied,
     HOLDS, HOLDS, NULL},
    {"stream.callbacks", "a callback comes between the work around it",
     "HIP runtime API, hipStreamAddCallback", callbacks, HOLDS, HOLDS, NULL},
    {"event.order", "a stream waits for an event of another", "HIP runtime API, hipStreamWaitEvent",
     events_order, HOLDS, HOLDS, NULL},
    {"stream.other_priority", "streams that wait hold up none of the greatest priority", SIM,
     other_priority, HOLDS, HOLDS, NULL},
    {"event.never_recorded", "an event that was never recorded is over", SIM, never_recorded, HOLDS,
     HOLDS, NULL},
    {"graph.changes", "a changed argument is that of the next launch", SIM, graph_changes, HOLDS,
     HOLDS, NULL},
    {"graph.changes_are_for_later", "launches under way keep theirs", SIM,
     graph_changes_are_for_later, HOLDS, HOLDS, NULL},
    {"graph.overtake", "launches of one executable graph on two streams do not wait for each other",
     SIM, graphs_overtake, HOLDS, HOLDS, NULL},
    {"graph.copies_overtake",
     "in graphs of HIP 5.2 on other GPUs than the first, copies between memory of the host wait "
     "for "
     "no node",
     SIM, graph_copies_overtake, HOLDS, HOLDS, NULL},
    {"graph.fills_early",
     "HIP 6 does a fill in a graph, of memory of the host, when the graph is made, and not when it "
     "runs",
     SIM6, graph_fills_early, HOLDS, HOLDS, NULL},
    {"graph.launches_not_captured", "HIP 5.2 captures no launch of a module's kernel", SIM,
     launches_not_captured, HOLDS, HOLDS, NULL},
    {"pool.unsaid", "HIP 5 says that it has no pools, and has; trimmed, their streams go", SIM,
     pools_unsaid, HOLDS, HOLDS, NULL},
    {"pool.destroyed_untrimmed", "a stream goes with freed blocks left in the pool", SIM,
     destroyed_untrimmed, NOT_RUN, NOT_RUN,
     "hipStreamDestroy of 5.2 spins for ever: Heap::RemoveStream does not step on"},
    {"module.names", "names that a module does not have are not found", SIM, names, HOLDS, HOLDS,
     NULL},
    {"module.launches_refused", "workgroups that are too large, and no workgroups, are refused",
     SIM, launches_refused, HOLDS, HOLDS, NULL},
    {"module.code_object_5", "HIP 5.2 refuses code objects of version 5", SIM, code_object_5, HOLDS,
     HOLDS, NULL},
    {"module.clock_rate", "HIP 5.4 and later know the rate of the constant clock; 5.2 does not",
     SIM, clock_rate, HOLDS, HOLDS, NULL},
    {"event.sleeper_holds", "who sleeps on an event holds up who asks for it", SIM,
     sleeper_holds_its_event, HOLDS, HOLDS, NULL},
    {"semaphore.no_timelines", "timeline semaphores cannot be imported", SIM, no_timelines, HOLDS,
     HOLDS, NULL},
    {"hip.no_proc_address", "HIP 5 has no hipGetProcAddress", SIM, no_proc_address, HOLDS, HOLDS,
     NULL},
    {"error.not_ready_stays",
     "before HIP 7, that work is not over is the last error, until it is asked for", SIM,
     not_ready_is_an_error, HOLDS, HOLDS, NULL},
    {"error.faults_end_the_process",
     "HIP before 7 ends the process when a kernel stores where nothing is", SIM,
     faults_end_the_process, HOLDS, HOLDS, NULL},
    {0},
};

static const fact_t *const areas[] = {hip_facts, hip_memory_facts, NULL};
const fact_vendor_t fact_hip = {"hipInit", hip_is_sim, hip_open, areas};
