// SPDX-License-Identifier: Apache-2.0
// ROCm's runtime: signals, queues, packets, code and errors.
#include "hsa.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SIM "seen with ROCR 5.2.3 on sim/amd, November 2026; on no card yet"

static hsa_t hsa;

#define HSA(call)                                                                                  \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_) fact_broken(__LINE__, "%s returned %#x", #call, (unsigned)code_);               \
    } while (0)
#define RETURNS(wanted, call)                                                                      \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ != (wanted)) fact_untrue(__LINE__, "%s returned %#x", #call, (unsigned)code_);   \
    } while (0)

// What `begin` finds.
static hsa_handle_t gpu, cpu, gpu_memory, host_memory, kernarg_memory, code;

static void hsa_open(void)
{
#define FIND(result, name, parameters)                                                             \
    *(void **)&hsa.name = dlsym(fact_library, #name);                                              \
    if (!hsa.name) fact_skip("the runtime has no " #name);
    HSA_FUNCTIONS(FIND)
#undef FIND
}

static int agent_seen(hsa_handle_t agent, void *user)
{
    int device = -1;
    HSA(hsa.hsa_agent_get_info(agent, HSA_AGENT_DEVICE, &device));
    if (device == 0 && !cpu.handle) cpu = agent;
    if (device == 1 && !gpu.handle) gpu = agent;
    return 0;
}

static void agents_find(void)
{
    int error = hsa.hsa_init();
    if (error) fact_skip("hsa_init returned %#x", (unsigned)error);
    HSA(hsa.hsa_iterate_agents(agent_seen, NULL));
    if (!gpu.handle) fact_skip("there is no GPU");
}

// sim/amd stands below the runtime and calls its GPUs what AMD does; but it needs no kernel driver.
static bool hsa_is_sim(void)
{
    return access("/dev/kfd", F_OK) != 0;
}

static int pool_seen(hsa_handle_t pool, void *of_gpu)
{
    uint32_t segment = 1, flags = 0;
    HSA(hsa.hsa_amd_memory_pool_get_info(pool, HSA_POOL_SEGMENT, &segment));
    if (segment) return 0;
    HSA(hsa.hsa_amd_memory_pool_get_info(pool, HSA_POOL_GLOBAL_FLAGS, &flags));
    if (of_gpu && flags & HSA_POOL_COARSE)
        gpu_memory = pool;
    else if (!of_gpu && flags & HSA_POOL_KERNARG)
        kernarg_memory = pool;
    else if (!of_gpu && flags & HSA_POOL_FINE)
        host_memory = pool;
    return 0;
}

static void begin(void)
{
    char name[64], path[1024];
    hsa_handle_t reader;
    agents_find();
    HSA(hsa.hsa_amd_agent_iterate_memory_pools(cpu, pool_seen, NULL));
    HSA(hsa.hsa_amd_agent_iterate_memory_pools(gpu, pool_seen, &gpu));
    if (!host_memory.handle) host_memory = kernarg_memory;
    HSA(hsa.hsa_agent_get_info(gpu, HSA_AGENT_NAME, name));
    snprintf(path, sizeof path, "%s/%s-O2-queue.hsaco", fact_kernels ? fact_kernels : ".", name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) fact_skip("--kernels names no folder with %s-O2-queue.hsaco", name);
    HSA(hsa.hsa_code_object_reader_create_from_file(file, &reader));
    HSA(hsa.hsa_executable_create_alt(1, 0, NULL, &code));
    HSA(hsa.hsa_executable_load_agent_code_object(code, gpu, reader, NULL, NULL));
    HSA(hsa.hsa_executable_freeze(code, NULL));
}

static hsa_handle_t signal_new(int64_t value)
{
    hsa_handle_t made;
    HSA(hsa.hsa_signal_create(value, 0, NULL, &made));
    return made;
}

// Until it is below a value, or half a minute is over.
static bool signal_comes(hsa_handle_t signal, int64_t below)
{
    uint64_t frequency;
    HSA(hsa.hsa_system_get_info(HSA_SYSTEM_TIMESTAMP_FREQUENCY, &frequency));
    return hsa.hsa_signal_wait_scacquire(signal, HSA_BELOW, below, 30 * frequency, 0) < below;
}

static void *memory_new(hsa_handle_t pool, size_t size)
{
    void *memory;
    HSA(hsa.hsa_amd_memory_pool_allocate(pool, size, 0, &memory));
    HSA(hsa.hsa_amd_agents_allow_access(1, &gpu, NULL, memory));
    return memory;
}

static uint32_t *words_new(void)
{
    return memset(memory_new(host_memory, 4096), 0, 4096);
}

static int queue_error;
static hsa_handle_t queue_failed; // becomes 0

static void queue_fails(int status, hsa_queue_t *queue, void *user)
{
    queue_error = status;
    hsa.hsa_signal_store_screlease(queue_failed, 0);
}

static hsa_queue_t *queue_new(void)
{
    hsa_queue_t *queue;
    if (!queue_failed.handle) queue_failed = signal_new(1);
    HSA(hsa.hsa_queue_create(gpu, 64, 0, queue_fails, NULL, UINT32_MAX, UINT32_MAX, &queue));
    return queue;
}

static void *slot_of(const hsa_queue_t *queue, uint64_t index)
{
    return (char *)queue->base_address + 64 * (index & (queue->size - 1));
}

// Writes a packet into its place, the header last.
static uint64_t packet_put(hsa_queue_t *queue, const void *packet, unsigned header)
{
    uint64_t index = hsa.hsa_queue_add_write_index_relaxed(queue, 1);
    char *slot = slot_of(queue, index);
    memcpy(slot + 2, (const char *)packet + 2, 62);
    __atomic_store_n((uint16_t *)(void *)slot, (uint16_t)header, __ATOMIC_RELEASE);
    return index;
}

static void ring(const hsa_queue_t *queue, uint64_t index)
{
    hsa.hsa_signal_store_screlease(queue->doorbell_signal, (int64_t)index);
}

static void packet_push(hsa_queue_t *queue, const void *packet, unsigned header)
{
    ring(queue, packet_put(queue, packet, header));
}

enum {
    IN_ORDER = HSA_PACKET_BARRIER_BIT | HSA_PACKET_FENCES,
    DISPATCH = HSA_PACKET_DISPATCH | HSA_PACKET_FENCES,
};

static hsa_dispatch_t dispatch(const char *name, const void *arguments, size_t size,
                               hsa_handle_t done)
{
    hsa_handle_t symbol;
    uint32_t kernarg_size;
    hsa_dispatch_t d = {
        .setup = 1, .workgroup = {64, 1, 1}, .grid = {64, 1, 1}, .completion = done};
    HSA(hsa.hsa_executable_get_symbol_by_name(code, name, &gpu, &symbol));
    HSA(hsa.hsa_executable_symbol_get_info(symbol, HSA_KERNEL_OBJECT, &d.kernel_object));
    HSA(hsa.hsa_executable_symbol_get_info(symbol, HSA_KERNEL_GROUP_SIZE, &d.group_size));
    HSA(hsa.hsa_executable_symbol_get_info(symbol, HSA_KERNEL_PRIVATE_SIZE, &d.private_size));
    HSA(hsa.hsa_executable_symbol_get_info(symbol, HSA_KERNEL_KERNARG_SIZE, &kernarg_size));
    d.kernarg = memory_new(kernarg_memory, kernarg_size + size);
    memset(d.kernarg, 0, kernarg_size + size);
    memcpy(d.kernarg, arguments, size);
    return d;
}

typedef struct append_t {
    uint32_t *log;
    uint32_t value;
} append_t;

static hsa_dispatch_t append(uint32_t *log, uint32_t value, hsa_handle_t done)
{
    return dispatch("append.kd", &(append_t){log, value}, sizeof(append_t), done);
}

static void counted(void)
{
    agents_find();
    HSA(hsa.hsa_init());
    HSA(hsa.hsa_shut_down());
    RETURNS(0, hsa.hsa_iterate_agents(agent_seen, NULL));
    HSA(hsa.hsa_shut_down());
    RETURNS(HSA_NOT_INITIALIZED, hsa.hsa_shut_down());
}

static void no_interception(void)
{
    REQUIRE(!dlsym(fact_library, "hsa_amd_queue_intercept_create"));
    REQUIRE(!dlsym(fact_library, "hsa_amd_queue_intercept_register"));
}

static void timestamps(void)
{
    uint64_t frequency = 0, last = 0, now = 0;
    agents_find();
    HSA(hsa.hsa_system_get_info(HSA_SYSTEM_TIMESTAMP_FREQUENCY, &frequency));
    REQUIRE(frequency > 0);
    for (int i = 0; i < 100; i++, last = now) {
        HSA(hsa.hsa_system_get_info(HSA_SYSTEM_TIMESTAMP, &now));
        REQUIRE(now >= last);
    }
}

static void sizes(void)
{
    hsa_queue_t *queue;
    uint32_t most = 0;
    begin();
    HSA(hsa.hsa_agent_get_info(gpu, HSA_AGENT_QUEUE_MAX_SIZE, &most));
    fact_say("%u at most", most);
    REQUIRE(hsa.hsa_queue_create(gpu, 100, 0, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue) != 0);
    REQUIRE(hsa.hsa_queue_create(gpu, most * 2, 0, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue) !=
            0);
    HSA(hsa.hsa_queue_create(gpu, 256, 0, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    REQUIRE(queue->size == 256 && (uintptr_t)queue->base_address % 64 == 0);
}

// The first word of a signal is its kind; device code must know by it where to ring.
static void doorbell_kind(void)
{
    begin();
    hsa_queue_t *queue = queue_new();
    REQUIRE(*(const int64_t *)(uintptr_t)queue->doorbell_signal.handle == -1);
    REQUIRE(*(const int64_t *)(uintptr_t)signal_new(0).handle == 1);
}

static void doorbell_needed(void)
{
    begin();
    hsa_queue_t *queue = queue_new();
    hsa_handle_t done = signal_new(1);
    uint64_t index =
        packet_put(queue, &(hsa_barrier_t){.completion = done}, HSA_PACKET_BARRIER_AND | IN_ORDER);
    fact_nap(FACT_SHORT_MS); // nothing can be seen of what does not happen
    REQUIRE(hsa.hsa_signal_load_scacquire(done) == 1);
    ring(queue, index);
    REQUIRE(signal_comes(done, 1));
}

static void one_ring(void)
{
    begin();
    hsa_queue_t *queue = queue_new();
    hsa_handle_t done = signal_new(5);
    uint64_t last = 0;
    for (int i = 0; i < 5; i++)
        last = packet_put(queue, &(hsa_barrier_t){.completion = done},
                          HSA_PACKET_BARRIER_AND | IN_ORDER);
    ring(queue, last);
    REQUIRE(signal_comes(done, 1) && hsa.hsa_signal_load_scacquire(done) == 0);
}

static void packets_end(void)
{
    begin();
    hsa_queue_t *queue = queue_new();
    hsa_handle_t done = signal_new(7);
    packet_push(queue, &(hsa_barrier_t){.completion = done}, HSA_PACKET_BARRIER_AND | IN_ORDER);
    REQUIRE(signal_comes(done, 7) && hsa.hsa_signal_load_scacquire(done) == 6);
    REQUIRE(hsa.hsa_queue_load_read_index_scacquire(queue) == 1);
    REQUIRE((*(const uint16_t *)slot_of(queue, 0) & 0xff) == HSA_PACKET_INVALID);
}

static void around_the_ring(void)
{
    begin();
    hsa_queue_t *queue = queue_new();
    uint32_t *log = words_new();
    hsa_handle_t done = signal_new(200);
    hsa_dispatch_t packet = append(log, 3, done);
    for (uint64_t i = 0; i < 200; i++) {
        while (i - hsa.hsa_queue_load_read_index_scacquire(queue) >= queue->size) fact_nap(1);
        packet_push(queue, &packet, DISPATCH | HSA_PACKET_BARRIER_BIT);
    }
    REQUIRE(signal_comes(done, 1) && log[0] == 200);
}

static void barrier_and(void)
{
    begin();
    hsa_queue_t *queue = queue_new();
    hsa_handle_t one = signal_new(1), two = signal_new(1), done = signal_new(1);
    packet_push(queue, &(hsa_barrier_t){.signals = {one, two}, .completion = done},
                HSA_PACKET_BARRIER_AND | IN_ORDER);
    hsa.hsa_signal_store_screlease(one, 0);
    fact_nap(FACT_SHORT_MS);
    REQUIRE(hsa.hsa_signal_load_scacquire(done) == 1);
    hsa.hsa_signal_store_screlease(two, 0);
    REQUIRE(signal_comes(done, 1));
}

static void barrier_or(void)
{
    begin();
    hsa_queue_t *queue = queue_new();
    hsa_handle_t never = signal_new(1), one = signal_new(1), done = signal_new(1);
    packet_push(queue, &(hsa_barrier_t){.signals = {never, one}, .completion = done},
                HSA_PACKET_BARRIER_OR | IN_ORDER);
    fact_nap(FACT_SHORT_MS);
    REQUIRE(hsa.hsa_signal_load_scacquire(done) == 1);
    hsa.hsa_signal_store_screlease(one, 0);
    REQUIRE(signal_comes(done, 1));
}

static void queues_wait(void)
{
    begin();
    hsa_queue_t *first = queue_new(), *second = queue_new();
    uint32_t *log = words_new();
    hsa_handle_t gate = signal_new(1), between = signal_new(1), done = signal_new(1);
    hsa_dispatch_t early = append(log, 1, between), late = append(log, 2, done);
    packet_push(second, &(hsa_barrier_t){.signals = {between}}, HSA_PACKET_BARRIER_AND | IN_ORDER);
    packet_push(second, &late, DISPATCH | HSA_PACKET_BARRIER_BIT);
    packet_push(first, &(hsa_barrier_t){.signals = {gate}}, HSA_PACKET_BARRIER_AND | IN_ORDER);
    packet_push(first, &early, DISPATCH | HSA_PACKET_BARRIER_BIT);
    hsa.hsa_signal_subtract_screlease(gate, 1);
    REQUIRE(signal_comes(done, 1) && log[0] == 2 && log[1] == 1 && log[2] == 2);
}

// Without the barrier bit the second kernel runs beside the first, which waits for it.
static void packets_overlap(void)
{
    begin();
    hsa_queue_t *queue = queue_new();
    uint32_t *words = words_new();
    hsa_handle_t done = signal_new(2);
    const struct {
        uint32_t *flag;
        uint64_t value;
        uint32_t *out;
    } waits = {words, 42, words + 64};
    hsa_dispatch_t first = dispatch("wait_for.kd", &waits, sizeof waits, done);
    hsa_dispatch_t second = dispatch("set_word.kd", &(append_t){words, 42}, sizeof(append_t), done);
    packet_push(queue, &first, DISPATCH);
    packet_push(queue, &second, DISPATCH);
    REQUIRE(signal_comes(done, 1) && words[64] == 42);
}

static void copies_wait(void)
{
    begin();
    uint32_t *from = words_new(), *to = words_new();
    hsa_handle_t gate = signal_new(1), done = signal_new(1);
    void *device = memory_new(gpu_memory, 4096);
    hsa_handle_t there = signal_new(1);
    from[0] = 11;
    HSA(hsa.hsa_amd_memory_async_copy(device, gpu, from, cpu, 4096, 1, &gate, there));
    HSA(hsa.hsa_amd_memory_async_copy(to, cpu, device, gpu, 4096, 1, &there, done));
    fact_nap(FACT_SHORT_MS);
    REQUIRE(hsa.hsa_signal_load_scacquire(done) == 1 && to[0] == 0);
    from[0] = 12;
    hsa.hsa_signal_store_screlease(gate, 0);
    REQUIRE(signal_comes(done, 1) && to[0] == 12);
}

static uint32_t handled;

static bool handle(int64_t value, void *user)
{
    __atomic_store_n(&handled, (uint32_t)(value + 100), __ATOMIC_RELEASE);
    return false;
}

static void handlers(void)
{
    begin();
    hsa_handle_t signal = signal_new(3);
    HSA(hsa.hsa_amd_signal_async_handler(signal, HSA_BELOW, 1, handle, NULL));
    hsa.hsa_signal_store_screlease(signal, 2);
    hsa.hsa_signal_store_screlease(signal, -5);
    REQUIRE(fact_await(&handled, 1) && handled == 95);
}

static void locked(void)
{
    begin();
    static uint32_t own[1024];
    void *address = NULL;
    hsa_queue_t *queue = queue_new();
    hsa_handle_t done = signal_new(1);
    HSA(hsa.hsa_amd_memory_lock(own, sizeof own, &gpu, 1, &address));
    REQUIRE(address != NULL && address != own);
    hsa_dispatch_t packet = append(address, 6, done);
    packet_push(queue, &packet, DISPATCH | HSA_PACKET_BARRIER_BIT);
    REQUIRE(signal_comes(done, 1) && own[0] == 1 && own[1] == 6);
    RETURNS(0, hsa.hsa_amd_memory_unlock(own));
}

static void symbols(void)
{
    begin();
    hsa_handle_t symbol;
    RETURNS(0, hsa.hsa_executable_get_symbol_by_name(code, "append.kd", &gpu, &symbol));
    RETURNS(HSA_INVALID_SYMBOL_NAME,
            hsa.hsa_executable_get_symbol_by_name(code, "nobody.kd", &gpu, &symbol));
}

static void profiled(void)
{
    begin();
    hsa_queue_t *queue = queue_new();
    hsa_handle_t done[2] = {signal_new(1), signal_new(1)};
    uint64_t times[2][2];
    uint32_t *log = words_new();
    HSA(hsa.hsa_amd_profiling_set_profiler_enabled(queue, 1));
    for (int i = 0; i < 2; i++) {
        hsa_dispatch_t packet = append(log, 1, done[i]);
        packet_push(queue, &packet, DISPATCH | HSA_PACKET_BARRIER_BIT);
        NEED(signal_comes(done[i], 1));
        HSA(hsa.hsa_amd_profiling_get_dispatch_time(gpu, done[i], times[i]));
    }
    REQUIRE(times[0][0] <= times[0][1] && times[0][1] <= times[1][0] && times[1][0] <= times[1][1]);
}

static void illegal(void)
{
    begin();
    hsa_queue_t *queue = queue_new();
    uint32_t *data = words_new();
    hsa_dispatch_t packet = dispatch("illegal.kd", &data, sizeof data, (hsa_handle_t){0});
    packet_push(queue, &packet, DISPATCH | HSA_PACKET_BARRIER_BIT);
    REQUIRE(signal_comes(queue_failed, 1));
    REQUIRE(queue_error == HSA_ILLEGAL_INSTRUCTION);
}

// A queue that has failed does nothing more; another goes on.
static void queues_fail_alone(void)
{
    illegal();
    hsa_queue_t *other = queue_new();
    uint32_t *log = words_new();
    hsa_handle_t done = signal_new(1);
    hsa_dispatch_t packet = append(log, 4, done);
    packet_push(other, &packet, DISPATCH | HSA_PACKET_BARRIER_BIT);
    REQUIRE(signal_comes(done, 1) && log[1] == 4);
}

static void large_group(void)
{
    begin();
    hsa_queue_t *queue = queue_new();
    hsa_dispatch_t packet = append(words_new(), 1, (hsa_handle_t){0});
    packet.workgroup[0] = 2048;
    packet.grid[0] = 2048;
    packet_push(queue, &packet, DISPATCH | HSA_PACKET_BARRIER_BIT);
    REQUIRE(signal_comes(queue_failed, 1) && queue_error == HSA_INVALID_ARGUMENT);
}

static const fact_t hsa_facts[] = {
    {"hsa.counted", "the runtime is there until it was shut down as often as it was begun",
     "HSA runtime 1.2, 2.1.1", counted, HOLDS, HOLDS, NULL},
    {"hsa.no_interception", "queues are intercepted through the table of tools alone", SIM,
     no_interception, HOLDS, HOLDS, NULL},
    {"hsa.timestamps", "the system's time grows", "HSA runtime 1.2, HSA_SYSTEM_INFO_TIMESTAMP",
     timestamps, HOLDS, HOLDS, NULL},
    {"queue.sizes", "a queue has a power of two of packets, up to what its agent says",
     "HSA runtime 1.2, hsa_queue_create", sizes, HOLDS, HOLDS, NULL},
    {"queue.doorbell_kind", "a signal's first word says whether it is a doorbell of hardware", SIM,
     doorbell_kind, HOLDS, HOLDS, NULL},
    {"queue.doorbell_needed", "a packet waits until its doorbell is rung", SIM, doorbell_needed,
     HOLDS, NOT_RUN, "hardware may look at a queue for other reasons, and find the packet"},
    {"queue.one_ring", "the doorbell of the last packet does for all before it",
     "HSA system architecture 1.2, 2.8.3", one_ring, HOLDS, HOLDS, NULL},
    {"queue.packets_end", "a packet that ended is invalid, is read, and took 1 from its signal",
     "HSA system architecture 1.2, 2.9.1", packets_end, HOLDS, HOLDS, NULL},
    {"queue.around_the_ring", "places are used again when the read index is past them",
     "HSA system architecture 1.2, 2.8.3", around_the_ring, HOLDS, HOLDS, NULL},
    {"queue.barrier_and", "a barrier-and packet waits for all of its signals to be 0",
     "HSA system architecture 1.2, 2.9.8", barrier_and, HOLDS, HOLDS, NULL},
    {"queue.barrier_or", "a barrier-or packet waits for one of them",
     "HSA system architecture 1.2, 2.9.9", barrier_or, HOLDS, HOLDS, NULL},
    {"queue.queues_wait", "a queue waits for another by a signal, without the host",
     "HSA system architecture 1.2, 2.9.8", queues_wait, HOLDS, HOLDS, NULL},
    {"queue.packets_overlap", "without the barrier bit a kernel may wait for the next one", SIM,
     packets_overlap, HOLDS, HOLDS, NULL},
    {"signal.copies_wait", "a copy waits for signals, and reads memory after that",
     "hsa_ext_amd.h, hsa_amd_memory_async_copy", copies_wait, HOLDS, HOLDS, NULL},
    {"signal.handlers", "a handler is called with the value that met its condition",
     "hsa_ext_amd.h, hsa_amd_signal_async_handler", handlers, HOLDS, HOLDS, NULL},
    {"memory.locked", "memory of the host that is locked has another address for the GPU", SIM,
     locked, HOLDS, HOLDS, NULL},
    {"code.symbols", "a kernel is found by its descriptor's name", SIM, symbols, HOLDS, HOLDS,
     NULL},
    {"code.profiled", "times of kernels grow in the order of their queue",
     "hsa_ext_amd.h, hsa_amd_profiling_get_dispatch_time", profiled, HOLDS, HOLDS, NULL},
    {"error.illegal", "an illegal instruction is told to the queue's callback", SIM, illegal, HOLDS,
     HOLDS, NULL},
    {"error.queues_fail_alone", "and other queues go on", SIM, queues_fail_alone, HOLDS, HOLDS,
     NULL},
    {"error.large_group", "so is a workgroup that is too large", SIM, large_group, HOLDS, HOLDS,
     NULL},
    {0},
};

static const fact_t *const areas[] = {hsa_facts, NULL};
const fact_vendor_t fact_hsa = {"hsa_init", hsa_is_sim, hsa_open, areas};
