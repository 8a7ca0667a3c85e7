// SPDX-License-Identifier: Apache-2.0
// HIP: memory, and what fills it.
#include "tests/hardware/facts/rocm/hip.h"

#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void registered(void)
{
    hip_begin();
    static uint32_t own[1024];
    int moves = 0;
    void *stream = hip_stream_new(), *address = NULL;
    HIP(hip.hipHostRegister(own, sizeof own, 0));
    HIP(hip.hipHostGetDevicePointer(&address, own, 0));
    HIP(hip.hipDeviceGetAttribute(&moves, HIP_MOVES_PAGES, 0));
    fact_say("%s, %s", moves ? "a kernel with SVM" : "a kernel without SVM",
             address == own ? "the same address" : "another address");
    REQUIRE(address && (address != own || moves));
    hip_append(stream, address, 5);
    HIP(hip.hipStreamSynchronize(stream));
    REQUIRE(own[0] == 1 && own[1] == 5);
    RETURNS(0, hip.hipHostUnregister(own));
}

static void fill_a_middle(void)
{
    void *stream = hip_stream_new(), *memory;
    HIP(hip.hipMalloc(&memory, 4096));
    hip.hipMemsetAsync((char *)memory + 4096 - 6, 1, 4, stream);
    hip.hipStreamSynchronize(stream);
}

// Each fill inside the second word of 8 bytes, and what is around it.
static void fill_all_middles(void)
{
    void *stream = hip_stream_new();
    uint8_t *bytes = (uint8_t *)hip_words_new(), *memory;
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
    int signal = hip_ends_by(fill_a_middle); // before this process uses HIP, as it is a child's
    hip_begin();
    REQUIRE(signal == (hip_version() < 50300000 ? SIGABRT : 0));
    if (!signal) fill_all_middles();
}

// Whether a call waits for a kernel that stands in the stream.
static bool waits_for(void *stream, void (*call)(void *user), void *user, unsigned patience_ms)
{
    const fact_try_t attempt = {call, user, hip_gate_release, hip_gate_close(stream)};
    bool waits = fact_waits(&attempt, patience_ms);
    HIP(hip.hipStreamSynchronize(stream));
    return waits;
}

static bool waits_for_streams(void (*call)(void *user), void *user, unsigned patience_ms)
{
    return waits_for(hip_stream_new(), call, user, patience_ms);
}

static void free_call(void *memory)
{
    HIP(hip.hipFree(memory));
}

static void free_waits(void)
{
    hip_begin();
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
    hip_begin();
    void *memory;
    HIP(hip.hipMalloc(&memory, 4096));
    REQUIRE(!waits_for_streams(fill_call, memory, FACT_LONG_MS));
}

// Two pieces of memory of the host, and a stream that a kernel holds.
static struct {
    uint32_t *words[2];
    void *stream;
} held;

static void held_copy(void *unused)
{
    HIP(hip.hipMemcpyAsync(held.words[0], held.words[1], 64, HIP_DEFAULT_KIND, held.stream));
}

static void held_fill(void *unused)
{
    HIP(hip.hipMemsetAsync(held.words[0], 1, 64, held.stream));
}

static void host_waits(void)
{
    hip_begin();
    for (int i = 0; i < 2; i++) held.words[i] = hip_words_new();
    held.stream = hip_stream_new();
    REQUIRE(waits_for(held.stream, held_copy, NULL, FACT_SHORT_MS));
    REQUIRE(waits_for(held.stream, held_fill, NULL, FACT_SHORT_MS) == (hip_version() < 70000000));
}

static char pages[2 * 4096] __attribute__((aligned(4096)));

static void registered_twice(void)
{
    void *address;
    hip_begin();
    HIP(hip.hipHostRegister(pages, sizeof pages, 0));
    RETURNS(0, hip.hipHostRegister(pages, sizeof pages, 0));
    RETURNS(0, hip.hipHostUnregister(pages));
    REQUIRE(hip.hipHostGetDevicePointer(&address, pages, 0) != 0);
}

static void registered_in_two(void)
{
    void *first, *second;
    hip_begin();
    HIP(hip.hipHostRegister(pages, 4096, 0));
    HIP(hip.hipHostRegister(pages + 4096, 4096, 0));
    HIP(hip.hipHostGetDevicePointer(&first, pages, 0));
    HIP(hip.hipHostGetDevicePointer(&second, pages + 4096, 0));
    if (first == pages) fact_skip("the kernel gives the GPU the addresses of the host (SVM)");
    fact_say("%td bytes apart", (char *)second - (char *)first);
    REQUIRE((char *)second - (char *)first != 4096);
}

static void registered_constant(void)
{
    int moves = 0;
    hip_begin();
    void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    NEED(page != MAP_FAILED);
    HIP(hip.hipDeviceGetAttribute(&moves, HIP_MOVES_PAGES, 0));
    bool taken = hip.hipHostRegister(page, 4096, 0) == 0;
    fact_say("%s, %s", moves ? "a kernel with SVM" : "a kernel without SVM",
             taken ? "taken" : "refused");
    REQUIRE(taken == (moves && hip_version() >= 50300000));
}

static void registered_nowhere(void)
{
    hip_begin();
    void *none = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(none != MAP_FAILED && !munmap(none, 4096));
    bool used_up = hip_version() < 50300000;
    RETURNS(used_up ? HIP_OUT_OF_MEMORY : HIP_INVALID_VALUE, hip.hipHostRegister(none, 4096, 0));
}

// HSA, which HIP stands on: memory of the host that it allocates.
enum { HSA_OF_PROCESSORS = 0, HSA_DEVICE = 17, HSA_ALLOWED = 5, HSA_FOUND = 1 };

static struct {
    int (*hsa_iterate_agents)(int (*see)(uint64_t agent, void *user), void *user);
    int (*hsa_agent_get_info)(uint64_t agent, int what, void *value);
    int (*hsa_amd_agent_iterate_memory_pools)(uint64_t agent, int (*see)(uint64_t pool, void *user),
                                              void *user);
    int (*hsa_amd_memory_pool_get_info)(uint64_t pool, int what, void *value);
    int (*hsa_amd_memory_pool_allocate)(uint64_t pool, size_t size, unsigned flags, void **memory);
} below;

static int agent_see(uint64_t agent, void *processor)
{
    int kind = -1;
    below.hsa_agent_get_info(agent, HSA_DEVICE, &kind);
    if (kind != HSA_OF_PROCESSORS) return 0;
    *(uint64_t *)processor = agent;
    return HSA_FOUND;
}

static int pool_see(uint64_t pool, void *memory)
{
    bool allowed = false;
    below.hsa_amd_memory_pool_get_info(pool, HSA_ALLOWED, &allowed);
    return allowed && !below.hsa_amd_memory_pool_allocate(pool, 4096, 0, memory) ? HSA_FOUND : 0;
}

#define FIND(name) *(void **)&below.name = dlsym(fact_library, #name)
static bool below_find(void)
{
    FIND(hsa_iterate_agents);
    FIND(hsa_agent_get_info);
    FIND(hsa_amd_agent_iterate_memory_pools);
    FIND(hsa_amd_memory_pool_get_info);
    FIND(hsa_amd_memory_pool_allocate);
    return below.hsa_iterate_agents;
}
#undef FIND

static void register_of_hsa(void)
{
    uint64_t processor = 0;
    void *memory = NULL, *address = NULL;
    NEED(below.hsa_iterate_agents(agent_see, &processor) == HSA_FOUND);
    NEED(below.hsa_amd_agent_iterate_memory_pools(processor, pool_see, &memory) == HSA_FOUND);
    if (hip.hipHostRegister(memory, 4096, 0) == HIP_INVALID_VALUE) raise(SIGTERM);
    HIP(hip.hipHostGetDevicePointer(&address, memory, 0));
    NEED(address == memory);
    (void)hip.hipHostUnregister(memory);
}

// HSA does not always end the process: it may also wait for ever.
static void bring_to_the_first(void)
{
    enum { PATIENCE = 10 }; // seconds
    int count = 0;
    void *there, *here, *stream;
    HIP(hip.hipGetDeviceCount(&count));
    if (hip_version() >= 60000000 || count < 2) raise(SIGTERM);
    HIP(hip.hipMalloc(&there, 4096));
    HIP(hip.hipSetDevice(1));
    HIP(hip.hipHostMalloc(&here, 4096, HIP_PORTABLE));
    stream = hip_stream_new();
    alarm(PATIENCE);
    HIP(hip.hipMemcpyAsync(there, here, 4096, HIP_DEFAULT_KIND, stream));
    HIP(hip.hipStreamSynchronize(stream));
}

static void host_to_peer(void)
{
    int signal = hip_ends_by(bring_to_the_first);
    if (signal == SIGTERM) fact_skip("this release copies well, or there is no second GPU");
    REQUIRE(signal == SIGABRT || signal == SIGALRM);
}

static void registered_of_hsa(void)
{
    if (!below_find()) fact_skip("this HIP stands on something else");
    int signal = hip_ends_by(register_of_hsa);
    if (signal == SIGTERM) fact_skip("this release refuses it");
    REQUIRE(signal == SIGABRT);
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
    hip_begin();
    if (hip_version() < from) fact_skip("this release is older");
}

static void handles_from_6(void)
{
    int has = -1;
    void *handle;
    handles_begin(50700000);
    HIP(hip.hipDeviceGetAttribute(&has, HIP_HANDLES_SUPPORTED, 0));
    REQUIRE(has == (hip_version() >= 60000000));
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
    if (hip_version() < 60000000) return;
    HIP(handle_create(&handle));
    HIP(handles.hipMemAddressReserve(&address, 2 * PIECE, 0, NULL, 0));
    if (handles.hipMemMap(address, 2 * PIECE, 0, handle, 0)) return;
    if (!handles.hipMemSetAccess(address, 2 * PIECE, &access, 1)) return;
    (void)handles.hipMemUnmap(address, 2 * PIECE);
}

static void unmapping_ends_the_process(void)
{
    int signal = hip_ends_by(unmap_more);
    handles_begin(60000000);
    if (hip_version() >= 70000000) fact_skip("this release looks first");
    REQUIRE(signal);
}

const fact_t hip_memory_facts[] = {
    {"memory.registered",
     "memory of the host that is registered has another address for the GPU; where the kernel can "
     "(SVM), later releases leave it where it is",
     SIM, registered, HOLDS, HOLDS, NULL},
    {"stream.fills_in_words",
     "HIP 5.2 writes far behind the end of a fill inside a word of 8 bytes; others do not", SIM,
     fills_in_words, HOLDS, HOLDS, NULL},
    {"stream.null_fill", "hipMemset on the null stream waits for no stream that does not wait", SIM,
     fill_is_unordered, HOLDS, HOLDS, NULL},
    {"memory.free_waits", "hipFree waits for all streams", SIM, free_waits, HOLDS, HOLDS, NULL},
    {"memory.registered_twice", "memory can be registered twice; to unregister it once ends both",
     SIM, registered_twice, HOLDS, HOLDS, NULL},
    {"memory.registered_in_two", "memory registered in two calls lies in two places for the GPU",
     SIM, registered_in_two, HOLDS, HOLDS, NULL},
    {"memory.registered_constant",
     "memory that the process cannot write is registered where the kernel can (SVM), by later "
     "releases than 5.2",
     SIM, registered_constant, HOLDS, HOLDS, NULL},
    {"memory.registered_nowhere", "where no memory is, HIP 5.2 says that it is used up", SIM,
     registered_nowhere, HOLDS, HOLDS, NULL},
    {"memory.registered_of_hsa",
     "memory that HSA has allocated can be registered; to unregister it ends the process", SIM,
     registered_of_hsa, HOLDS, HOLDS, NULL},
    {"memory.host_to_peer",
     "before HIP 6 a copy of memory of the host to the first GPU, on a stream of another one, goes "
     "where that may not touch",
     SIM, host_to_peer, HOLDS, HOLDS, NULL},
    {"memory.host_waits",
     "a copy within memory of the host waits for its stream, as does a fill before HIP 7", SIM,
     host_waits, HOLDS, HOLDS, NULL},
    {"memory.handles", "memory behind handles came with HIP 6; 5.7 says that it has none", SIM,
     handles_from_6, HOLDS, HOLDS, NULL},
    {"memory.reserved_anywhere", "addresses are reserved without the alignment asked for", SIM6,
     reserved_anywhere, HOLDS, HOLDS, NULL},
    {"memory.unmapping_ends",
     "HIP 6 ends the process when more is unmapped than there is, to which it refused access", SIM6,
     unmapping_ends_the_process, HOLDS, HOLDS, NULL},
    {0},
};
