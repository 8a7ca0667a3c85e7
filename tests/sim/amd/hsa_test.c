// SPDX-License-Identifier: Apache-2.0
// hsa_test DIRECTORY [CASE]: ROCm's runtime on the software GPU.
#include "hsa.h"

#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1000, HEADER_BARRIER = 1 << HSA_PACKET_HEADER_BARRIER };

typedef struct {
    uint32_t *data;
    uint32_t count;
} add_one_t;

// Memory of the host to the GPU's own, a kernel over it, and back.
static void test_dispatch(void)
{
    for (unsigned k = 0; k < hsa_gpu_count; k++) {
        const gpu_t *gpu = &hsa_gpus[k];
        hsa_queue_t *queue = queue_make(gpu);
        kernel_t kernel = kernel_find(gpu, "add_one.kd");
        uint32_t *host = memory_alloc(hsa_host_memory, COUNT * 4);
        uint32_t *device = memory_alloc(gpu->memory, COUNT * 4);
        for (unsigned n = 0; n < COUNT; n++) host[n] = 3 * n;
        copy_wait(device, gpu->agent, host, hsa_cpu, COUNT * 4);
        memset(host, 0, COUNT * 4);
        hsa_signal_t done = signal_make(1);
        dispatch_push(queue, &kernel, (COUNT + 63) / 64, &(add_one_t){device, COUNT},
                      sizeof(add_one_t), done);
        signal_wait(done);
        copy_wait(host, hsa_cpu, device, gpu->agent, COUNT * 4);
        for (unsigned n = 0; n < COUNT; n++) CHECK(host[n] == 3 * n + 1);
        HSA(hsa_queue_destroy(queue));
        HSA(hsa_amd_memory_pool_free(device));
        HSA(hsa_amd_memory_pool_free(host));
    }
}

static void test_profiling(void)
{
    hsa_queue_t *queue = queue_make(&hsa_gpus[0]);
    kernel_t kernel = kernel_find(&hsa_gpus[0], "add_one.kd");
    uint32_t *data = memory_alloc(hsa_host_memory, COUNT * 4);
    hsa_signal_t done = signal_make(1);
    uint64_t before, after;
    hsa_amd_profiling_dispatch_time_t time;
    HSA(hsa_amd_profiling_set_profiler_enabled(queue, 1));
    HSA(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &before));
    dispatch_push(queue, &kernel, 16, &(add_one_t){data, COUNT}, sizeof(add_one_t), done);
    signal_wait(done);
    HSA(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &after));
    HSA(hsa_amd_profiling_get_dispatch_time(hsa_gpus[0].agent, done, &time));
    uint64_t slack = 2000000; // the runtime's translation of clocks is approximate
    CHECK(time.start <= time.end);
    CHECK(time.start + slack >= before && time.end <= after + slack);
    HSA(hsa_queue_destroy(queue));
}

typedef struct {
    uint32_t *log;
    uint32_t value;
} append_t;

// Packets in two queues, ordered by signals alone: 1 after 0, 2 after either.
static void test_barriers(void)
{
    hsa_queue_t *first = queue_make(&hsa_gpus[0]), *second = queue_make(&hsa_gpus[0]);
    kernel_t kernel = kernel_find(&hsa_gpus[0], "append.kd");
    uint32_t *log = memory_alloc(hsa_host_memory, 4096);
    hsa_signal_t gate = signal_make(1), never = signal_make(1), opened = signal_make(1);
    hsa_signal_t done = signal_make(2);
    memset(log, 0, 4096);
    hsa_barrier_and_packet_t all = {.dep_signal = {gate, opened}};
    packet_push(second, &all, HSA_PACKET_TYPE_BARRIER_AND | HEADER_BARRIER);
    dispatch_push(second, &kernel, 1, &(append_t){log, 1}, sizeof(append_t), done);
    hsa_barrier_or_packet_t any = {.dep_signal = {never, gate}};
    packet_push(first, &any, HSA_PACKET_TYPE_BARRIER_OR | HEADER_BARRIER);
    dispatch_push(first, &kernel, 1, &(append_t){log, 0}, sizeof(append_t), done);
    hsa_barrier_and_packet_t tell = {.completion_signal = opened};
    packet_push(first, &tell, HSA_PACKET_TYPE_BARRIER_AND | HEADER_BARRIER);
    others_pass();
    CHECK(__atomic_load_n(&log[0], __ATOMIC_ACQUIRE) == 0);
    hsa_signal_subtract_screlease(gate, 1);
    signal_wait(done);
    CHECK(log[0] == 2 && log[1] == 0 && log[2] == 1);
    HSA(hsa_queue_destroy(first));
    HSA(hsa_queue_destroy(second));
}

static void test_barrier_value(void)
{
    hsa_queue_t *queue = queue_make(&hsa_gpus[0]);
    hsa_signal_t value = signal_make(0), done = signal_make(1);
    const hsa_amd_barrier_value_packet_t packet = {
        .header = {.AmdFormat = HSA_AMD_PACKET_TYPE_BARRIER_VALUE},
        .signal = value,
        .value = 5,
        .mask = 7,
        .cond = HSA_SIGNAL_CONDITION_GTE,
        .completion_signal = done,
    };
    packet_push(queue, &packet, HSA_PACKET_TYPE_VENDOR_SPECIFIC | HEADER_BARRIER);
    hsa_signal_store_screlease(value, 8 + 4);
    others_pass();
    CHECK(hsa_signal_load_scacquire(done) == 1);
    hsa_signal_store_screlease(value, 8 + 6);
    signal_wait(done);
    HSA(hsa_queue_destroy(queue));
}

// Memory that the program brings along has another address on the device.
static void test_lock(void)
{
    hsa_queue_t *queue = queue_make(&hsa_gpus[0]);
    kernel_t kernel = kernel_find(&hsa_gpus[0], "add_one.kd");
    uint32_t *own = malloc(COUNT * 4);
    void *device;
    hsa_signal_t done = signal_make(1);
    CHECK(own != NULL);
    for (unsigned n = 0; n < COUNT; n++) own[n] = n;
    HSA(hsa_amd_memory_lock(own, COUNT * 4, &hsa_gpus[0].agent, 1, &device));
    CHECK(device != own);
    dispatch_push(queue, &kernel, 16, &(add_one_t){device, COUNT}, sizeof(add_one_t), done);
    signal_wait(done);
    for (unsigned n = 0; n < COUNT; n++) CHECK(own[n] == n + 1);
    HSA(hsa_amd_memory_unlock(own));
    free(own);
    HSA(hsa_queue_destroy(queue));
}

static void test_wait_for_host(void)
{
    hsa_queue_t *queue = queue_make(&hsa_gpus[0]);
    kernel_t kernel = kernel_find(&hsa_gpus[0], "wait_for.kd");
    uint32_t *memory = memory_alloc(hsa_host_memory, 4096);
    hsa_signal_t done = signal_make(1);
    memset(memory, 0, 4096);
    struct {
        uint32_t *flag;
        uint32_t value;
        uint32_t *out;
    } arguments = {memory, 42, memory + 64};
    dispatch_push(queue, &kernel, 1, &arguments, sizeof arguments, done);
    others_pass();
    CHECK(hsa_signal_load_scacquire(done) == 1);
    __atomic_store_n(memory, 42, __ATOMIC_RELEASE);
    signal_wait(done);
    for (unsigned n = 0; n < 64; n++) CHECK(memory[64 + n] == 42);
    HSA(hsa_queue_destroy(queue));
}

// A kernel that dispatches another kernel, through the other queue's doorbell.
static void test_device_enqueue(void)
{
    hsa_queue_t *first = queue_make(&hsa_gpus[0]), *second = queue_make(&hsa_gpus[0]);
    kernel_t enqueue = kernel_find(&hsa_gpus[0], "enqueue.kd");
    kernel_t add_one = kernel_find(&hsa_gpus[0], "add_one.kd");
    uint32_t *data = memory_alloc(hsa_host_memory, COUNT * 4);
    hsa_kernel_dispatch_packet_t *packet = memory_alloc(hsa_host_memory, sizeof *packet);
    amd_queue_t *shared = (amd_queue_t *)second;
    hsa_signal_t done = signal_make(3);
    memset(data, 0, COUNT * 4);
    *packet = dispatch_make(&add_one, 16, &(add_one_t){data, COUNT}, sizeof(add_one_t), done);
    const amd_signal_t *doorbell = (const amd_signal_t *)(uintptr_t)second->doorbell_signal.handle;
    CHECK(doorbell->kind == AMD_SIGNAL_KIND_DOORBELL);
    struct {
        void *ring;
        uint64_t mask;
        volatile uint64_t *write_index, *doorbell;
        const void *packet;
    } arguments = {second->base_address, second->size - 1, &shared->write_dispatch_id,
                   doorbell->hardware_doorbell_ptr, packet};
    for (unsigned k = 0; k < 3; k++) {
        dispatch_push(first, &enqueue, 1, &arguments, sizeof arguments, (hsa_signal_t){0});
    }
    signal_wait(done);
    for (unsigned n = 0; n < COUNT; n++) CHECK(data[n] == 3);
    HSA(hsa_queue_destroy(first));
    HSA(hsa_queue_destroy(second));
}

// Kernels of one queue that wait for each other, as many as the queue holds; and the workgroups of
// one kernel, as many as the GPU holds.
static void test_meet(void)
{
    enum { PACKETS = 60 };
    const gpu_t *gpu = &hsa_gpus[0];
    hsa_queue_t *queue = queue_make(gpu);
    kernel_t kernel = kernel_find(gpu, "meet.kd");
    uint32_t *count = memory_alloc(hsa_host_memory, 2 * sizeof *count), units, waves;
    hsa_signal_t done = signal_make(PACKETS + 1);
    struct {
        uint32_t *count, groups;
    } arguments = {count, PACKETS};
    memset(count, 0, 2 * sizeof *count);
    for (unsigned k = 0; k < PACKETS; k++) {
        hsa_kernel_dispatch_packet_t packet =
            dispatch_make(&kernel, 1, &arguments, sizeof arguments, done);
        packet_push(queue, &packet, DISPATCH_HEADER & ~HEADER_BARRIER);
    }
    HSA(hsa_agent_get_info(gpu->agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT,
                           &units));
    HSA(hsa_agent_get_info(gpu->agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU,
                           &waves));
    arguments.count++;
    arguments.groups = units * waves;
    dispatch_push(queue, &kernel, arguments.groups, &arguments, sizeof arguments, done);
    signal_wait(done);
    CHECK(count[0] == PACKETS && count[1] == units * waves);
    HSA(hsa_queue_destroy(queue));
}

// How many workgroups of a dispatch run at a time, at most.
static uint32_t crowd(const gpu_t *gpu, hsa_queue_t *queue, uint32_t groups)
{
    kernel_t kernel = kernel_find(gpu, "crowd.kd");
    uint32_t *words = memory_alloc(hsa_host_memory, 2 * sizeof *words);
    hsa_signal_t done = signal_make(1);
    struct {
        uint32_t *now, *most, looks;
    } arguments = {words, words + 1, 1000};
    memset(words, 0, 2 * sizeof *words);
    dispatch_push(queue, &kernel, groups, &arguments, sizeof arguments, done);
    signal_wait(done);
    return words[1];
}

// Runs so many workgroups that wait for each other: it ends if the queue holds them all at a time.
static void meet(const gpu_t *gpu, hsa_queue_t *queue, uint32_t groups)
{
    kernel_t kernel = kernel_find(gpu, "meet.kd");
    uint32_t *count = memory_alloc(hsa_host_memory, sizeof *count);
    hsa_signal_t done = signal_make(1);
    struct {
        uint32_t *count, groups;
    } arguments = {count, groups};
    *count = 0;
    dispatch_push(queue, &kernel, groups, &arguments, sizeof arguments, done);
    signal_wait(done);
    CHECK(*count == groups);
}

// A queue with two compute units runs no more workgroups than those hold, one with four does.
static void test_units(void)
{
    const gpu_t *gpu = &hsa_gpus[0];
    hsa_queue_t *queue = queue_make(gpu);
    const uint32_t two[] = {5}, all[] = {15};
    uint32_t waves;
    HSA(hsa_agent_get_info(gpu->agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU,
                           &waves));
    HSA(hsa_amd_queue_cu_set_mask(queue, 32, two));
    CHECK(crowd(gpu, queue, 2 * waves + 20) <= 2 * waves);
    HSA(hsa_amd_queue_cu_set_mask(queue, 32, all));
    meet(gpu, queue, 2 * waves + 20);
    HSA(hsa_queue_destroy(queue));
}

// One queue runs at a time: a kernel waits for what the kernel of another queue does, which is
// stopped while it looks. How often it looked, of LOOKS times.
enum { LOOKS = 3000 };
static uint32_t look_beside(hsa_amd_queue_priority_t priority, uint32_t looks)
{
    const gpu_t *gpu = &hsa_gpus[0];
    hsa_queue_t *first = queue_make(gpu), *second = queue_make(gpu);
    kernel_t hold = kernel_find(gpu, "hold.kd"), look = kernel_find(gpu, "look.kd");
    uint32_t *words = memory_alloc(hsa_host_memory, 4 * sizeof *words);
    hsa_signal_t done = signal_make(2);
    memset(words, 0, 4 * sizeof *words);
    struct {
        uint32_t *here, *flag, *out;
    } held = {words, words + 1, words + 2};
    struct {
        uint32_t *flag, *word, looks, *out;
    } looked = {words + 1, words + 2, looks, words + 3};
    HSA(hsa_amd_queue_set_priority(second, priority));
    dispatch_push(first, &hold, 1, &held, sizeof held, done);
    while (!__atomic_load_n(&words[0], __ATOMIC_ACQUIRE)) continue;
    dispatch_push(second, &look, 1, &looked, sizeof looked, done);
    signal_wait(done);
    HSA(hsa_queue_destroy(first));
    HSA(hsa_queue_destroy(second));
    return words[3];
}

static void test_priority(void)
{
    CHECK(look_beside(HSA_AMD_QUEUE_PRIORITY_HIGH, LOOKS) == LOOKS);
}

static void test_turns(void)
{
    CHECK(look_beside(HSA_AMD_QUEUE_PRIORITY_NORMAL, UINT32_MAX) < UINT32_MAX);
}

// Kernels of three queues that wait for each other, each of which fills the GPU, and of which one
// runs at a time: those that are stopped make room.
static void test_full_turns(void)
{
    enum { QUEUES = 3 };
    const gpu_t *gpu = &hsa_gpus[0];
    kernel_t kernel = kernel_find(gpu, "meet.kd");
    uint32_t *count = memory_alloc(hsa_host_memory, sizeof *count), units, waves;
    hsa_queue_t *queues[QUEUES];
    hsa_signal_t done = signal_make(QUEUES);
    HSA(hsa_agent_get_info(gpu->agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT,
                           &units));
    HSA(hsa_agent_get_info(gpu->agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU,
                           &waves));
    struct {
        uint32_t *count, groups;
    } arguments = {count, QUEUES * units * waves};
    *count = 0;
    for (unsigned k = 0; k < QUEUES; k++) {
        queues[k] = queue_make(gpu);
        dispatch_push(queues[k], &kernel, units * waves, &arguments, sizeof arguments, done);
    }
    signal_wait(done);
    for (unsigned k = 0; k < QUEUES; k++) HSA(hsa_queue_destroy(queues[k]));
}

// Own memory of one GPU to that of another.
static void test_peers(void)
{
    if (hsa_gpu_count < 2) exit(77);
    uint32_t *host = memory_alloc(hsa_host_memory, COUNT * 4);
    uint32_t *one = memory_alloc(hsa_gpus[0].memory, COUNT * 4);
    uint32_t *other = memory_alloc(hsa_gpus[1].memory, COUNT * 4);
    for (unsigned n = 0; n < COUNT; n++) host[n] = n * n;
    copy_wait(one, hsa_gpus[0].agent, host, hsa_cpu, COUNT * 4);
    copy_wait(other, hsa_gpus[1].agent, one, hsa_gpus[0].agent, COUNT * 4);
    memset(host, 0, COUNT * 4);
    copy_wait(host, hsa_cpu, other, hsa_gpus[1].agent, COUNT * 4);
    for (unsigned n = 0; n < COUNT; n++) CHECK(host[n] == n * n);
}

// A copy engine's packets: a window of rows, words that are all the same, and when it was.
static void test_copy_engine(void)
{
    enum { PITCH = 64, ROWS = 8, BYTES = PITCH * ROWS, WIDTH = 20, HEIGHT = 5 };
    const gpu_t *gpu = &hsa_gpus[0];
    uint8_t *host = memory_alloc(hsa_host_memory, BYTES);
    uint8_t *device = memory_alloc(gpu->memory, BYTES);
    hsa_signal_t done = signal_make(1);
    uint64_t before, after;
    hsa_amd_profiling_async_copy_time_t time;
    HSA(hsa_amd_memory_fill(device, 0x01020304, BYTES / 4));
    for (unsigned k = 0; k < BYTES; k++) host[k] = (uint8_t)(k ^ k >> 8);
    const hsa_pitched_ptr_t from = {host, PITCH, BYTES}, to = {device, PITCH, BYTES};
    const hsa_dim3_t from_offset = {8, 1, 0}, to_offset = {4, 2, 0}, range = {WIDTH, HEIGHT, 1};
    HSA(hsa_amd_profiling_async_copy_enable(true));
    HSA(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &before));
    HSA(hsa_amd_memory_async_copy_rect(&to, &to_offset, &from, &from_offset, &range, gpu->agent,
                                       hsaHostToDevice, 0, NULL, done));
    signal_wait(done);
    HSA(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &after));
    HSA(hsa_amd_profiling_get_async_copy_time(done, &time));
    CHECK(time.start <= time.end && time.start + 2000000 >= before && time.end <= after + 2000000);
    uint8_t *back = memory_alloc(hsa_host_memory, BYTES);
    copy_wait(back, hsa_cpu, device, gpu->agent, BYTES);
    for (unsigned k = 0; k < BYTES; k++) {
        unsigned x = k % PITCH - 4, y = k / PITCH - 2, source = (y + 1) * PITCH + x + 8;
        bool inside = x < WIDTH && y < HEIGHT;
        CHECK(back[k] == (inside ? (uint8_t)(source ^ source >> 8) : 4 - k % 4));
    }
}

static void queue_fails(const char *name, int want)
{
    hsa_queue_t *queue = queue_make(&hsa_gpus[0]);
    kernel_t kernel = kernel_find(&hsa_gpus[0], name);
    uint32_t *data = memory_alloc(hsa_host_memory, 4096);
    dispatch_push(queue, &kernel, 1, &data, sizeof data, (hsa_signal_t){0});
    signal_wait(queue_failed);
    CHECK((int)queue_status == want);
    CHECK(data[0] == 1);
    failed_queue_destroy(queue);
}

static void test_illegal(void)
{
    queue_fails("illegal.kd", HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION);
}
static void test_trap(void)
{
    queue_fails("stop_here.kd", HSA_STATUS_ERROR_EXCEPTION);
}

static void bad_packet(const void *packet, uint16_t header, hsa_status_t want, const char *said)
{
    hsa_queue_t *queue = queue_make(&hsa_gpus[0]);
    log_keep();
    packet_push(queue, packet, header);
    signal_wait(queue_failed);
    CHECK(queue_status == want);
    CHECK(log_wait(said));
    failed_queue_destroy(queue);
}

static void test_bad_type(void)
{
    bad_packet((const uint8_t[64]){0}, 0x33, HSA_STATUS_ERROR_INVALID_PACKET_FORMAT,
               "packet with header 0033: a packet of no known type");
}

static void test_group_size(void)
{
    kernel_t kernel = kernel_find(&hsa_gpus[0], "add_one.kd");
    const hsa_kernel_dispatch_packet_t packet = {.setup = 1,
                                                 .workgroup_size_x = 2048,
                                                 .workgroup_size_y = 1,
                                                 .workgroup_size_z = 1,
                                                 .grid_size_x = 2048,
                                                 .grid_size_y = 1,
                                                 .grid_size_z = 1,
                                                 .kernel_object = kernel.object};
    bad_packet(&packet, HSA_PACKET_TYPE_KERNEL_DISPATCH, HSA_STATUS_ERROR_INVALID_ARGUMENT,
               "dispatch of kernel add_one: a work-group of more than 1024 items");
}

static uint64_t fault_address;

static hsa_status_t system_event(const hsa_amd_event_t *event, void *user)
{
    if (event->event_type == HSA_AMD_GPU_MEMORY_FAULT_EVENT) {
        fault_address = event->memory_fault.virtual_address;
        hsa_signal_store_screlease(queue_failed, 0);
    }
    return HSA_STATUS_SUCCESS;
}

static void memory_faults(const char *name, const void *arguments, size_t size, uint64_t want)
{
    hsa_queue_t *queue = queue_make(&hsa_gpus[0]);
    kernel_t kernel = kernel_find(&hsa_gpus[0], name);
    HSA(hsa_amd_register_system_event_handler(system_event, NULL));
    dispatch_push(queue, &kernel, 1, arguments, size, (hsa_signal_t){0});
    signal_wait(queue_failed);
    CHECK(fault_address == (want & ~4095ull));
    failed_queue_destroy(queue);
}

static void test_stray(void)
{
    uint32_t *data = memory_alloc(hsa_host_memory, 4096);
    memory_faults("stray.kd", &data, sizeof data, 0xdead0000);
}

// A pointer of the host that the device was never told of.
static void test_host_pointer(void)
{
    uint32_t *own = malloc(COUNT * 4);
    memory_faults("add_one.kd", &(add_one_t){own, 64}, sizeof(add_one_t), (uint64_t)(uintptr_t)own);
    free(own);
}

// Memory that exists, and is another GPU's. Small allocations would share a block with others.
static void test_no_access(void)
{
    enum { LARGE = 64 << 20 };
    void *memory;
    if (hsa_gpu_count < 2) exit(77);
    HSA(hsa_amd_memory_pool_allocate(hsa_gpus[1].memory, LARGE, 0, &memory));
    memory_faults("add_one.kd", &(add_one_t){memory, 64}, sizeof(add_one_t),
                  (uint64_t)(uintptr_t)memory);
}

// The same, and it is no more.
static void test_freed(void)
{
    enum { LARGE = 64 << 20 };
    void *memory;
    HSA(hsa_amd_memory_pool_allocate(hsa_gpus[0].memory, LARGE, 0, &memory));
    HSA(hsa_amd_memory_pool_free(memory));
    memory_faults("add_one.kd", &(add_one_t){memory, 64}, sizeof(add_one_t),
                  (uint64_t)(uintptr_t)memory);
}

static const case_t cases[] = {
    {"dispatch", test_dispatch, NULL},
    {"profiling", test_profiling, NULL},
    {"barriers", test_barriers, NULL},
    {"barrier_value", test_barrier_value, NULL},
    {"lock", test_lock, NULL},
    {"wait_for_host", test_wait_for_host, NULL},
    {"device_enqueue", test_device_enqueue, NULL},
    {"copy_engine", test_copy_engine, NULL},
    {"meet", test_meet, NULL},
    {"units", test_units, NULL},
    {"priority", test_priority, "KEEL_SIM_QUEUES=1"},
    {"turns", test_turns, "KEEL_SIM_QUEUES=1"},
    {"full_turns", test_full_turns, "KEEL_SIM_QUEUES=1"},
    {"peers", test_peers, NULL},
    {"illegal", test_illegal, NULL},
    {"trap", test_trap, NULL},
    {"bad_type", test_bad_type, NULL},
    {"group_size", test_group_size, NULL},
    {"stray", test_stray, NULL},
    {"no_access", test_no_access, NULL},
    {"host_pointer", test_host_pointer, NULL},
    {"freed", test_freed, NULL},
};

int main(int argc, char **argv)
{
    return cases_run(argc, argv, cases, sizeof cases / sizeof *cases);
}
