// SPDX-License-Identifier: Apache-2.0
// hsa DIRECTORY: a program on ROCm's runtime itself, to be traced: check.py knows what it does.
// DIRECTORY has the kernels of tests/sim/amd. It prints what it computed, and then how long, by its
// own signals, some dispatches took.
#include "sim/amd/hsa.h"

#include <stdio.h>
#include <string.h>

enum { COUNT = 256, BESIDE = 4, BYTES = (1 + BESIDE) * COUNT * 4 };

typedef struct {
    uint32_t *data;
    uint32_t count;
} arguments_t;

static gpu_t *gpu;
static hsa_queue_t *queue;
static kernel_t add_one;
static uint32_t *data;

// Dispatches with signals, and how long they took.
static void dispatch_timed(int rounds)
{
    arguments_t arguments = {data, COUNT};
    for (int i = 0; i < rounds; i++) {
        hsa_amd_profiling_dispatch_time_t time;
        hsa_signal_t done = signal_make(1);
        dispatch_push(queue, &add_one, COUNT / 64, &arguments, sizeof arguments, done);
        signal_wait(done);
        HSA(hsa_amd_profiling_get_dispatch_time(gpu->agent, done, &time));
        fprintf(stderr, "took %llu\n", (unsigned long long)(time.end - time.start));
    }
}

// Without signals, but for a barrier packet's after them; it asks for its own times.
static void dispatch_plain(int rounds)
{
    arguments_t arguments = {data, COUNT};
    hsa_signal_t done = signal_make(1), none = {0};
    hsa_barrier_and_packet_t barrier = {.completion_signal = done};
    hsa_amd_profiling_dispatch_time_t time = {0};
    for (int i = 0; i < rounds; i++)
        dispatch_push(queue, &add_one, COUNT / 64, &arguments, sizeof arguments, none);
    packet_push(queue, &barrier, HSA_PACKET_TYPE_BARRIER_AND | 1 << HSA_PACKET_HEADER_BARRIER);
    signal_wait(done);
    HSA(hsa_amd_profiling_get_dispatch_time(gpu->agent, done, &time));
    CHECK(time.start > 0 && time.start <= time.end);
}

// Without the barrier bit, all with one signal.
static void dispatch_beside(int rounds)
{
    hsa_signal_t done = signal_make(rounds);
    for (int i = 0; i < rounds; i++) {
        arguments_t arguments = {data + (1 + i) * COUNT, COUNT};
        hsa_kernel_dispatch_packet_t packet =
            dispatch_make(&add_one, COUNT / 64, &arguments, sizeof arguments, done);
        packet_push(queue, &packet, DISPATCH_HEADER & ~(1 << HSA_PACKET_HEADER_BARRIER));
    }
    signal_wait(done);
}

// The same signal again, set anew by the program as soon as it is complete.
static void dispatch_again(int rounds)
{
    arguments_t arguments = {data, COUNT};
    hsa_signal_t done = signal_make(1);
    for (int i = 0; i < rounds; i++) {
        hsa_signal_store_relaxed(done, 1);
        hsa_kernel_dispatch_packet_t packet =
            dispatch_make(&add_one, COUNT / 64, &arguments, sizeof arguments, done);
        packet_push(queue, &packet, DISPATCH_HEADER & ~(1 << HSA_PACKET_HEADER_BARRIER));
        signal_wait(done);
    }
}

// Far more than the queue has room for.
static void dispatch_many(int rounds)
{
    arguments_t arguments = {data, COUNT};
    hsa_signal_t none = {0}, done = signal_make(1);
    for (int i = 0; i < rounds; i++)
        dispatch_push(queue, &add_one, COUNT / 64, &arguments, sizeof arguments,
                      i % 2 && i + 1 < rounds ? none
                      : i + 1 < rounds        ? signal_make(1)
                                              : done);
    signal_wait(done);
}

// Nearly as many as the queue has room for, which all wait for the program. More packets would not
// fit.
static void dispatch_gated(int rounds)
{
    arguments_t arguments = {data, COUNT};
    hsa_signal_t gate = signal_make(1), none = {0}, done = signal_make(1);
    hsa_barrier_and_packet_t barrier = {.dep_signal = {gate}};
    packet_push(queue, &barrier, HSA_PACKET_TYPE_BARRIER_AND | 1 << HSA_PACKET_HEADER_BARRIER);
    for (int i = 1; i < rounds; i++)
        dispatch_push(queue, &add_one, COUNT / 64, &arguments, sizeof arguments,
                      i % 2 ? none : signal_make(1));
    dispatch_push(queue, &add_one, COUNT / 64, &arguments, sizeof arguments, done);
    hsa_signal_store_screlease(gate, 0);
    signal_wait(done);
}

int main(int argc, char **argv)
{
    uint32_t *host;
    CHECK(argc == 2);
    hsa_open(argv[1]);
    gpu = &hsa_gpus[0];
    queue = queue_make(gpu);
    HSA(hsa_amd_profiling_set_profiler_enabled(queue, 1));
    add_one = kernel_find(gpu, "add_one.kd");
    data = memory_alloc(gpu->memory, BYTES);
    host = memory_alloc(hsa_host_memory, BYTES);
    memset(host, 0, BYTES);
    copy_wait(data, gpu->agent, host, hsa_cpu, BYTES);
    dispatch_timed(5);
    dispatch_plain(7);
    dispatch_beside(BESIDE);
    dispatch_again(6);
    dispatch_many(150);
    dispatch_gated(40);
    copy_wait(host, hsa_cpu, data, gpu->agent, BYTES);
    printf("%u %u %u %u\n", host[0], host[COUNT - 1], host[COUNT], host[BYTES / 4 - 1]);
    HSA(hsa_queue_destroy(queue));
    hsa_close();
    return 7;
}
