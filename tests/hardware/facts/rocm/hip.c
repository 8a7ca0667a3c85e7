// SPDX-License-Identifier: Apache-2.0
// HIP: streams, events, graphs, pools, and what a release does not have.
#include "tests/hardware/facts/facts.h"

#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIM "seen with HIP 5.2.3 on sim/amd, November 2026; on no card yet"

#define SIM6 "seen with HIP 6.4.3 on sim/amd, November 2026; on no card yet"

// The part of HIP that facts use, declared here. Handles are pointers.
typedef void (*hip_callback_fn)(void *stream, int status, void *user);

typedef struct hip_kernel_node_t {
    uint32_t block[3];
    void **extra;
    void *function;
    uint32_t grid[3];
    void **parameters;
    uint32_t shared;
} hip_kernel_node_t;

enum {
    HIP_INVALID_VALUE = 1,
    HIP_OUT_OF_MEMORY = 2,
    HIP_SHARED_OBJECT_INIT_FAILED = 303,
    HIP_NOT_FOUND = 500,
    HIP_NOT_READY = 600,
    HIP_NOT_SUPPORTED = 801,
    HIP_NON_BLOCKING = 1,
    HIP_NO_TIMES = 2,
    HIP_DEFAULT_KIND = 4, // of a copy
    HIP_POOLS_SUPPORTED = 88,
    HIP_HANDLES_SUPPORTED = 89,
    HIP_CLOCK_RATE = 10017,
    HIP_TIMELINE_FD = 9, // a kind of semaphore
};

#define HIP_FUNCTIONS(F)                                                                           \
    F(hipInit, (unsigned))                                                                         \
    F(hipRuntimeGetVersion, (int *))                                                               \
    F(hipGetDeviceCount, (int *))                                                                  \
    F(hipDeviceGetAttribute, (int *, int, int))                                                    \
    F(hipDeviceSynchronize, (void))                                                                \
    F(hipModuleLoad, (void **, const char *))                                                      \
    F(hipModuleGetFunction, (void **, void *, const char *))                                       \
    F(hipModuleLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,  \
                              unsigned, void *, void **, void **))                                 \
    F(hipStreamCreateWithFlags, (void **, unsigned))                                               \
    F(hipStreamCreateWithPriority, (void **, unsigned, int))                                       \
    F(hipDeviceGetStreamPriorityRange, (int *, int *))                                             \
    F(hipStreamDestroy, (void *))                                                                  \
    F(hipStreamQuery, (void *))                                                                    \
    F(hipStreamSynchronize, (void *))                                                              \
    F(hipStreamWaitEvent, (void *, void *, unsigned))                                              \
    F(hipStreamAddCallback, (void *, hip_callback_fn, void *, unsigned))                           \
    F(hipStreamBeginCapture, (void *, int))                                                        \
    F(hipStreamEndCapture, (void *, void **))                                                      \
    F(hipEventCreateWithFlags, (void **, unsigned))                                                \
    F(hipEventRecord, (void *, void *))                                                            \
    F(hipEventQuery, (void *))                                                                     \
    F(hipEventSynchronize, (void *))                                                               \
    F(hipGetLastError, (void))                                                                     \
    F(hipMalloc, (void **, size_t))                                                                \
    F(hipFree, (void *))                                                                           \
    F(hipHostMalloc, (void **, size_t, unsigned))                                                  \
    F(hipHostRegister, (void *, size_t, unsigned))                                                 \
    F(hipHostUnregister, (void *))                                                                 \
    F(hipHostGetDevicePointer, (void **, void *, unsigned))                                        \
    F(hipMemcpyAsync, (void *, const void *, size_t, int, void *))                                 \
    F(hipMemset, (void *, int, size_t))                                                            \
    F(hipMemsetAsync, (void *, int, size_t, void *))                                               \
    F(hipImportExternalSemaphore, (void **, const void *))                                         \
    F(hipMallocAsync, (void **, size_t, void *))                                                   \
    F(hipFreeAsync, (void *, void *))                                                              \
    F(hipDeviceGetDefaultMemPool, (void **, int))                                                  \
    F(hipMemPoolTrimTo, (void *, size_t))                                                          \
    F(hipGraphCreate, (void **, unsigned))                                                         \
    F(hipGraphGetNodes, (void *, void **, size_t *))                                               \
    F(hipGraphAddKernelNode, (void **, void *, void *const *, size_t, const hip_kernel_node_t *))  \
    F(hipGraphInstantiate, (void **, void *, void **, char *, size_t))                             \
    F(hipGraphLaunch, (void *, void *))                                                            \
    F(hipGraphExecKernelNodeSetParams, (void *, void *, const hip_kernel_node_t *))

static struct {
#define MEMBER(name, parameters) int(*name) parameters;
    HIP_FUNCTIONS(MEMBER)
#undef MEMBER
} hip;

static void *module;

#define HIP(call)                                                                                  \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_) fact_broken(__LINE__, "%s returned %d", #call, code_);                          \
    } while (0)
#define RETURNS(wanted, call)                                                                      \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ != (wanted)) fact_untrue(__LINE__, "%s returned %d", #call, code_);              \
    } while (0)

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

static int version(void)
{
    int value = 0;
    HIP(hip.hipRuntimeGetVersion(&value));
    return value; // 50221153: 5.2
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

static void begin(void)
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

static void *stream_new(void)
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

static uint32_t *words_new(void)
{
    void *memory;
    HIP(hip.hipHostMalloc(&memory, 4096, 0));
    return memset(memory, 0, 4096);
}

static void append(void *stream, uint32_t *log, uint32_t value)
{
    void *arguments[] = {&log, &value};
    HIP(hip.hipModuleLaunchKernel(kernel("append"), 1, 1, 1, 64, 1, 1, 0, stream, arguments, NULL));
}

// A kernel that stands in a stream until its first word is 1.
static uint32_t *gate_close(void *stream)
{
    uint32_t *word = words_new(), *out = word + 64, value = 1;
    void *arguments[] = {&word, &value, &out};
    HIP(hip.hipModuleLaunchKernel(kernel("wait_for"), 1, 1, 1, 64, 1, 1, 0, stream, arguments,
                                  NULL));
    return word;
}

static void gate_open(uint32_t *word)
{
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

static void no_host_functions(void)
{
    if (version() >= 50700000) fact_skip("this release has them");
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
    begin();
    void *stream = stream_new();
    RETURNS(0, hip.hipStreamQuery(stream));
    uint32_t *gate = gate_close(stream);
    RETURNS(HIP_NOT_READY, hip.hipStreamQuery(stream));
    gate_open(gate);
    RETURNS(0, hip.hipStreamSynchronize(stream));
    RETURNS(0, hip.hipStreamQuery(stream));
}

static void streams_overlap(void)
{
    begin();
    void *first = stream_new(), *second = stream_new();
    uint32_t *gate = gate_close(first), value = 1;
    void *arguments[] = {&gate, &value};
    HIP(hip.hipModuleLaunchKernel(kernel("set_word"), 1, 1, 1, 64, 1, 1, 0, second, arguments,
                                  NULL));
    RETURNS(0, hip.hipStreamSynchronize(first));
}

static void events_order(void)
{
    begin();
    void *first = stream_new(), *second = stream_new(), *event = event_new();
    uint32_t *log = words_new(), *gate = gate_close(first);
    append(first, log, 1);
    HIP(hip.hipEventRecord(event, first));
    HIP(hip.hipStreamWaitEvent(second, event, 0));
    append(second, log, 2);
    RETURNS(HIP_NOT_READY, hip.hipEventQuery(event));
    gate_open(gate);
    HIP(hip.hipStreamSynchronize(second));
    RETURNS(0, hip.hipEventQuery(event));
    REQUIRE(log[0] == 2 && log[1] == 1 && log[2] == 2);
}

// More streams than the GPU's queues for one priority wait for a gate.
static void other_priority(void)
{
    begin();
    void *stream = stream_new(), *event = event_new(), *waits, *urgent;
    uint32_t *log = words_new(), *gate = gate_close(stream);
    int least, greatest;
    HIP(hip.hipEventRecord(event, stream));
    for (int i = 0; i < 8; i++) {
        waits = stream_new();
        HIP(hip.hipStreamWaitEvent(waits, event, 0));
        append(waits, log + 64, 1);
    }
    HIP(hip.hipDeviceGetStreamPriorityRange(&least, &greatest));
    HIP(hip.hipStreamCreateWithPriority(&urgent, HIP_NON_BLOCKING, greatest));
    append(urgent, log, 1);
    RETURNS(0, hip.hipStreamSynchronize(urgent)); // while the gate is closed
    gate_open(gate);
    HIP(hip.hipDeviceSynchronize());
}

static void never_recorded(void)
{
    begin();
    void *stream = stream_new(), *event = event_new();
    RETURNS(0, hip.hipEventQuery(event));
    RETURNS(0, hip.hipEventSynchronize(event));
    RETURNS(0, hip.hipStreamWaitEvent(stream, event, 0));
    RETURNS(0, hip.hipStreamSynchronize(stream));
}

static void arguments_are_copied(void)
{
    begin();
    void *stream = stream_new();
    uint32_t *log = words_new(), *gate = gate_close(stream);
    for (uint32_t i = 0; i < 20; i++) append(stream, log, i);
    gate_open(gate);
    HIP(hip.hipStreamSynchronize(stream));
    REQUIRE(log[0] == 20);
    for (uint32_t i = 0; i < 20; i++) REQUIRE(log[1 + i] == i);
}

static void nothing_is_copied(void)
{
    begin();
    void *stream = stream_new(), *memory;
    uint32_t *words = words_new();
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
    begin();
    void *stream = stream_new();
    uint32_t *log = words_new(), *gate = gate_close(stream);
    append(stream, log, 1);
    HIP(hip.hipStreamAddCallback(stream, callback, log, 0));
    append(stream, log, 2);
    gate_open(gate);
    REQUIRE(fact_await(&called, 1));
    HIP(hip.hipStreamSynchronize(stream));
    fact_say("%u before it", called - 1);
    REQUIRE(called == 2 && log[0] == 2); // what comes behind it waits for it
}

static hip_kernel_node_t append_node(void **arguments)
{
    return (hip_kernel_node_t){.block = {64, 1, 1},
                               .grid = {1, 1, 1},
                               .function = kernel("append"),
                               .parameters = arguments};
}

static void graph_changes(void)
{
    begin();
    void *stream = stream_new(), *graph, *node, *exec;
    uint32_t *log = words_new(), value = 1;
    void *arguments[] = {&log, &value};
    hip_kernel_node_t params = append_node(arguments);
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
    begin();
    void *stream = stream_new(), *graph, *node, *exec;
    uint32_t *log = words_new(), value = 0;
    void *arguments[] = {&log, &value};
    hip_kernel_node_t params = append_node(arguments);
    HIP(hip.hipGraphCreate(&graph, 0));
    HIP(hip.hipGraphAddKernelNode(&node, graph, NULL, 0, &params));
    HIP(hip.hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    uint32_t *gate = gate_close(stream);
    for (; value < 10; value++) {
        HIP(hip.hipGraphExecKernelNodeSetParams(exec, node, &params));
        HIP(hip.hipGraphLaunch(exec, stream));
    }
    gate_open(gate);
    HIP(hip.hipStreamSynchronize(stream));
    REQUIRE(log[0] == 10);
    for (uint32_t i = 0; i < 10; i++) REQUIRE(log[1 + i] == i);
}

static void graphs_overtake(void)
{
    begin();
    void *stream = stream_new(), *other = stream_new(), *graph, *node, *exec;
    uint32_t *log = words_new(), value = 1;
    void *arguments[] = {&log, &value};
    hip_kernel_node_t params = append_node(arguments);
    HIP(hip.hipGraphCreate(&graph, 0));
    HIP(hip.hipGraphAddKernelNode(&node, graph, NULL, 0, &params));
    HIP(hip.hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    uint32_t *gate = gate_close(stream);
    HIP(hip.hipGraphLaunch(exec, stream));
    HIP(hip.hipGraphLaunch(exec, other));
    HIP(hip.hipStreamSynchronize(other)); // returns, or the gate stays closed
    REQUIRE(__atomic_load_n(&log[0], __ATOMIC_ACQUIRE) == 1);
    gate_open(gate);
    HIP(hip.hipStreamSynchronize(stream));
    REQUIRE(log[0] == 2);
}

static void launches_not_captured(void)
{
    begin();
    if (version() >= 50700000) fact_skip("this release captures them");
    void *stream = stream_new(), *graph = NULL;
    uint32_t *log = words_new();
    size_t count = 7;
    HIP(hip.hipStreamBeginCapture(stream, 0));
    append(stream, log, 1);
    HIP(hip.hipStreamEndCapture(stream, &graph));
    HIP(hip.hipGraphGetNodes(graph, NULL, &count));
    fact_say("%zu nodes", count);
    REQUIRE(count == 0);
}

static void pools_unsaid(void)
{
    begin();
    int supported = -1;
    void *stream = stream_new(), *memory = NULL, *pool;
    HIP(hip.hipDeviceGetAttribute(&supported, HIP_POOLS_SUPPORTED, 0));
    if (version() >= 60000000) fact_skip("this release says that it has pools");
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
    begin();
    void *stream = stream_new(), *memory = NULL;
    HIP(hip.hipMallocAsync(&memory, 4096, stream));
    HIP(hip.hipFreeAsync(memory, stream));
    HIP(hip.hipStreamSynchronize(stream));
    RETURNS(0, hip.hipStreamDestroy(stream));
}

static void registered(void)
{
    begin();
    static uint32_t own[1024];
    void *stream = stream_new(), *address = NULL;
    HIP(hip.hipHostRegister(own, sizeof own, 0));
    HIP(hip.hipHostGetDevicePointer(&address, own, 0));
    REQUIRE(address && address != own);
    append(stream, address, 5);
    HIP(hip.hipStreamSynchronize(stream));
    REQUIRE(own[0] == 1 && own[1] == 5);
    RETURNS(0, hip.hipHostUnregister(own));
}

static void names(void)
{
    begin();
    void *function;
    RETURNS(HIP_NOT_FOUND, hip.hipModuleGetFunction(&function, module, "nobody"));
}

static void launches_refused(void)
{
    begin();
    uint32_t *log = words_new(), value = 1;
    void *arguments[] = {&log, &value}, *append_it = kernel("append");
    REQUIRE(hip.hipModuleLaunchKernel(append_it, 1, 1, 1, 2048, 1, 1, 0, NULL, arguments, NULL));
    REQUIRE(hip.hipModuleLaunchKernel(append_it, 0, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL));
    RETURNS(0, hip.hipDeviceSynchronize());
    REQUIRE(log[0] == 0);
}

static void code_object_5(void)
{
    void *loaded;
    begin();
    if (version() >= 50700000) fact_skip("this release takes them");
    int error = load("v5", &loaded);
    if (error < 0) fact_skip("--kernels names no folder with such an object");
    REQUIRE(error == HIP_SHARED_OBJECT_INIT_FAILED);
}

// The signal by which a process ends that uses HIP so; 0: it does not.
static int ends_by(void (*use)(void))
{
    int status = 0;
    pid_t child = fork();
    NEED(child >= 0);
    if (child == 0) {
        begin();
        use();
        _exit(0);
    }
    NEED(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void store_astray(void)
{
    void *stream = stream_new();
    append(stream, (uint32_t *)(uintptr_t)0xdead0000, 1);
    hip.hipStreamSynchronize(stream);
}

// HIP does not report a wild store: it ends the process.
static void faults_end_the_process(void)
{
    REQUIRE(ends_by(store_astray) == SIGABRT);
}

static void fill_a_middle(void)
{
    void *stream = stream_new(), *memory;
    HIP(hip.hipMalloc(&memory, 4096));
    hip.hipMemsetAsync((char *)memory + 4096 - 6, 1, 4, stream);
    hip.hipStreamSynchronize(stream);
}

// Each fill inside the second word of 8 bytes, and what is around it.
static void fill_all_middles(void)
{
    void *stream = stream_new();
    uint8_t *bytes = (uint8_t *)words_new(), *memory;
    HIP(hip.hipMalloc((void **)&memory, 64));
    for (int first = 9; first < 15; first++) {
        for (int end = first + 1; end < 16; end++) {
            HIP(hip.hipMemsetAsync(memory, 0, 64, stream));
            HIP(hip.hipMemsetAsync(memory + first, 1, (size_t)(end - first), stream));
            HIP(hip.hipMemcpyAsync(bytes, memory, 64, HIP_DEFAULT_KIND, stream));
            HIP(hip.hipStreamSynchronize(stream));
            for (int i = 0; i < 64; i++) REQUIRE(bytes[i] == (i >= first && i < end));
        }
    }
}

static void fills_in_words(void)
{
    int signal = ends_by(fill_a_middle); // before this process uses HIP, as it is a child's
    begin();
    REQUIRE(signal == (version() < 50300000 ? SIGABRT : 0));
    if (!signal) fill_all_middles();
}

static void gate_release(void *gate)
{
    gate_open(gate);
}

// Whether a call waits for a kernel that stands in another stream.
static bool waits_for_streams(void (*call)(void *user), void *user, unsigned patience_ms)
{
    void *stream = stream_new();
    const fact_try_t attempt = {call, user, gate_release, gate_close(stream)};
    bool waits = fact_waits(&attempt, patience_ms);
    HIP(hip.hipStreamSynchronize(stream));
    return waits;
}

static void free_call(void *memory)
{
    HIP(hip.hipFree(memory));
}

static void free_waits(void)
{
    begin();
    void *memory;
    HIP(hip.hipMalloc(&memory, 4096));
    REQUIRE(waits_for_streams(free_call, memory, FACT_SHORT_MS));
}

static void fill_call(void *memory)
{
    HIP(hip.hipMemset(memory, 1, 4096));
}

static void fill_is_unordered(void)
{
    begin();
    void *memory;
    HIP(hip.hipMalloc(&memory, 4096));
    REQUIRE(!waits_for_streams(fill_call, memory, FACT_LONG_MS));
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
    void *stream = stream_new();
    asked_t asked = {event_new(), 0};
    uint32_t *gate = gate_close(stream);
    pthread_t sleeper;
    HIP(hip.hipEventRecord(asked.event, stream));
    NEED(!pthread_create(&sleeper, NULL, sleep_on, &asked));
    NEED(fact_await(&asked.asks, 1));
    fact_nap(ms);
    const fact_try_t attempt = {query_call, asked.event, gate_release, gate};
    bool waits = fact_waits(&attempt, FACT_SHORT_MS);
    pthread_join(sleeper, NULL);
    return waits;
}

// A machine may be busy: once is enough.
static void sleeper_holds_its_event(void)
{
    unsigned ms = FACT_SHORT_MS;
    begin();
    while (ms < FACT_LONG_MS && !sleeper_holds_after(ms)) ms *= 2;
    REQUIRE(ms < FACT_LONG_MS);
}

static void not_ready_is_an_error(void)
{
    begin();
    void *stream = stream_new();
    uint32_t *gate = gate_close(stream);
    (void)hip.hipGetLastError();
    RETURNS(HIP_NOT_READY, hip.hipStreamQuery(stream));
    RETURNS(HIP_NOT_READY, hip.hipGetLastError());
    RETURNS(0, hip.hipGetLastError());
    gate_open(gate);
    HIP(hip.hipStreamSynchronize(stream));
}

static char pages[2 * 4096] __attribute__((aligned(4096)));

static void registered_twice(void)
{
    void *address;
    begin();
    HIP(hip.hipHostRegister(pages, sizeof pages, 0));
    RETURNS(0, hip.hipHostRegister(pages, sizeof pages, 0));
    RETURNS(0, hip.hipHostUnregister(pages));
    REQUIRE(hip.hipHostGetDevicePointer(&address, pages, 0) != 0);
}

static void registered_in_two(void)
{
    void *first, *second;
    begin();
    HIP(hip.hipHostRegister(pages, 4096, 0));
    HIP(hip.hipHostRegister(pages + 4096, 4096, 0));
    HIP(hip.hipHostGetDevicePointer(&first, pages, 0));
    HIP(hip.hipHostGetDevicePointer(&second, pages + 4096, 0));
    fact_say("%td bytes apart", (char *)second - (char *)first);
    REQUIRE((char *)second - (char *)first != 4096);
}

static void registered_nowhere(void)
{
    begin();
    void *none = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(none != MAP_FAILED && !munmap(none, 4096));
    bool used_up = version() < 50300000;
    RETURNS(used_up ? HIP_OUT_OF_MEMORY : HIP_INVALID_VALUE, hip.hipHostRegister(none, 4096, 0));
}

static void clock_rate(void)
{
    int khz = 0, error;
    begin();
    error = hip.hipDeviceGetAttribute(&khz, HIP_CLOCK_RATE, 0);
    fact_say("error %d, %d kHz", error, khz);
    REQUIRE(version() < 50300000 ? error == HIP_INVALID_VALUE : !error && khz > 0);
}

static void no_timelines(void)
{
    begin();
    struct {
        int kind;
        int fd[4]; // a union that begins with the descriptor
        unsigned flags, reserved[16];
    } what = {HIP_TIMELINE_FD, {0}, 0, {0}};
    void *semaphore;
    RETURNS(HIP_INVALID_VALUE, hip.hipImportExternalSemaphore(&semaphore, &what));
}

// Memory behind handles, as HIP declares it since 5.7.
static struct {
    int (*hipMemCreate)(void **handle, size_t size, const void *properties, unsigned long long);
    int (*hipMemAddressReserve)(void **address, size_t size, size_t alignment, void *near,
                                unsigned long long flags);
    int (*hipMemMap)(void *address, size_t size, size_t offset, void *handle, unsigned long long);
    int (*hipMemUnmap)(void *address, size_t size);
    int (*hipMemSetAccess)(void *address, size_t size, const void *access, size_t count);
} handles;

enum { PIECE = 2 << 20, KIND_PINNED = 1, KIND_FD = 1, AT_DEVICE = 1, READ_AND_WRITE = 3 };

static int handle_create(void **handle)
{
    const struct {
        int type, handles, place, device;
        void *none;
        unsigned flags[4];
    } properties = {.type = KIND_PINNED, .handles = KIND_FD, .place = AT_DEVICE};
    return handles.hipMemCreate(handle, PIECE, &properties, 0);
}

static void handles_find(void)
{
    *(void **)&handles.hipMemCreate = dlsym(fact_library, "hipMemCreate");
    *(void **)&handles.hipMemAddressReserve = dlsym(fact_library, "hipMemAddressReserve");
    *(void **)&handles.hipMemMap = dlsym(fact_library, "hipMemMap");
    *(void **)&handles.hipMemUnmap = dlsym(fact_library, "hipMemUnmap");
    *(void **)&handles.hipMemSetAccess = dlsym(fact_library, "hipMemSetAccess");
}

static void handles_begin(int from)
{
    handles_find();
    begin();
    if (version() < from) fact_skip("this release is older");
}

static void handles_from_6(void)
{
    int has = -1;
    void *handle;
    handles_begin(50700000);
    HIP(hip.hipDeviceGetAttribute(&has, HIP_HANDLES_SUPPORTED, 0));
    REQUIRE(has == (version() >= 60000000));
    RETURNS(has ? 0 : HIP_NOT_SUPPORTED, handle_create(&handle));
}

static void reserved_anywhere(void)
{
    const size_t alignment = (size_t)1 << 32;
    int aligned = 0;
    handles_begin(60000000);
    for (int i = 0; i < 4; i++) {
        void *address;
        HIP(handles.hipMemAddressReserve(&address, PIECE, alignment, NULL, 0));
        aligned += (uintptr_t)address % alignment == 0;
    }
    REQUIRE(aligned < 4);
}

static void unmap_more(void)
{
    void *handle, *address;
    const struct {
        int place, device, flags;
    } access = {AT_DEVICE, 0, READ_AND_WRITE};
    handles_find();
    if (version() < 60000000) return;
    HIP(handle_create(&handle));
    HIP(handles.hipMemAddressReserve(&address, 2 * PIECE, 0, NULL, 0));
    if (handles.hipMemMap(address, 2 * PIECE, 0, handle, 0)) return;
    if (!handles.hipMemSetAccess(address, 2 * PIECE, &access, 1)) return;
    (void)handles.hipMemUnmap(address, 2 * PIECE);
}

static void unmapping_ends_the_process(void)
{
    int signal = ends_by(unmap_more);
    handles_begin(60000000);
    if (version() >= 70000000) fact_skip("this release looks first");
    REQUIRE(signal);
}

// The one that 6.4 exports opens libamdhip64.so, which may be another HIP.
static void no_proc_address(void)
{
    if (version() >= 60000000) fact_skip("this release has it");
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
    {"graph.launches_not_captured", "HIP 5.2 captures no launch of a module's kernel", SIM,
     launches_not_captured, HOLDS, HOLDS, NULL},
    {"pool.unsaid", "HIP 5 says that it has no pools, and has; trimmed, their streams go", SIM,
     pools_unsaid, HOLDS, HOLDS, NULL},
    {"pool.destroyed_untrimmed", "a stream goes with freed blocks left in the pool", SIM,
     destroyed_untrimmed, NOT_RUN, NOT_RUN,
     "hipStreamDestroy of 5.2 spins for ever: Heap::RemoveStream does not step on"},
    {"memory.registered", "memory of the host that is registered has another address for the GPU",
     SIM, registered, HOLDS, HOLDS, NULL},
    {"module.names", "names that a module does not have are not found", SIM, names, HOLDS, HOLDS,
     NULL},
    {"module.launches_refused", "workgroups that are too large, and no workgroups, are refused",
     SIM, launches_refused, HOLDS, HOLDS, NULL},
    {"module.code_object_5", "HIP 5.2 refuses code objects of version 5", SIM, code_object_5, HOLDS,
     HOLDS, NULL},
    {"module.clock_rate", "HIP 5.2 does not know the rate of the constant clock; others do", SIM,
     clock_rate, HOLDS, HOLDS, NULL},
    {"stream.fills_in_words",
     "HIP 5.2 writes far behind the end of a fill inside a word of 8 bytes; others do not", SIM,
     fills_in_words, HOLDS, HOLDS, NULL},
    {"stream.null_fill", "hipMemset on the null stream waits for no stream that does not wait", SIM,
     fill_is_unordered, HOLDS, HOLDS, NULL},
    {"event.sleeper_holds", "who sleeps on an event holds up who asks for it", SIM,
     sleeper_holds_its_event, HOLDS, HOLDS, NULL},
    {"memory.free_waits", "hipFree waits for all streams", SIM, free_waits, HOLDS, HOLDS, NULL},
    {"memory.registered_twice", "memory can be registered twice; to unregister it once ends both",
     SIM, registered_twice, HOLDS, HOLDS, NULL},
    {"memory.registered_in_two", "memory registered in two calls lies in two places for the GPU",
     SIM, registered_in_two, HOLDS, HOLDS, NULL},
    {"memory.registered_nowhere", "where no memory is, HIP 5.2 says that it is used up", SIM,
     registered_nowhere, HOLDS, HOLDS, NULL},
    {"memory.handles", "memory behind handles came with HIP 6; 5.7 says that it has none", SIM,
     handles_from_6, HOLDS, HOLDS, NULL},
    {"memory.reserved_anywhere", "addresses are reserved without the alignment asked for", SIM6,
     reserved_anywhere, HOLDS, HOLDS, NULL},
    {"memory.unmapping_ends",
     "HIP 6 ends the process when more is unmapped than there is, to which it refused access", SIM6,
     unmapping_ends_the_process, HOLDS, HOLDS, NULL},
    {"semaphore.no_timelines", "timeline semaphores cannot be imported", SIM, no_timelines, HOLDS,
     HOLDS, NULL},
    {"hip.no_proc_address", "HIP 5 has no hipGetProcAddress", SIM, no_proc_address, HOLDS, HOLDS,
     NULL},
    {"error.not_ready_stays", "that work is not over is the last error, until it is asked for", SIM,
     not_ready_is_an_error, HOLDS, HOLDS, NULL},
    {"error.faults_end_the_process", "HIP 5 ends the process when a kernel stores where nothing is",
     SIM, faults_end_the_process, HOLDS, HOLDS, NULL},
    {0},
};

static const fact_t *const areas[] = {hip_facts, NULL};
const fact_vendor_t fact_hip = {"hipInit", hip_is_sim, hip_open, areas};
