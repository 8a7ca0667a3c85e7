// SPDX-License-Identifier: Apache-2.0
// hsa DIRECTORY: a program on ROCm's runtime itself, to be traced: check.py knows what it does.
// DIRECTORY has the kernels of tests/sim/amd. It prints what it computed, and then how long, by its
// own signals, some dispatches took.
// hsa DIRECTORY late: dispatches when exit handlers run, and ends the runtime then.
#include "sim/amd/hsa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 256, BESIDE = 4, LATE = 50, BYTES = (1 + BESIDE) * COUNT * 4 };

typedef struct {
    uint32_t *data;
    uint32_t count;
} arguments_t;

static gpu_t *gpu;
static hsa_queue_t *queue;
static hsa_queue_t *loose; // for dispatches that may overlap
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

// Two kernels that wait for each other: the second has no barrier bit, so that it may run beside
// the first. Both are there before the doorbell is rung, or each has its own ring.
static void dispatch_pair(bool one_ring)
{
    enum { PAIR = 2 };
    arguments_t arguments = {memory_alloc(hsa_host_memory, 4096), PAIR};
    kernel_t meet = kernel_find(gpu, "meet.kd");
    uint64_t at = hsa_queue_add_write_index_relaxed(loose, PAIR);
    hsa_signal_t done[PAIR];
    *arguments.data = 0;
    for (int i = 0; i < PAIR; i++) {
        uint8_t *place = (uint8_t *)loose->base_address + 64 * ((at + i) % loose->size);
        done[i] = signal_make(1);
        hsa_kernel_dispatch_packet_t packet =
            dispatch_make(&meet, 1, &arguments, sizeof arguments, done[i]);
        if (i) packet.header &= ~(1 << HSA_PACKET_HEADER_BARRIER);
        memcpy(place + 2, (const uint8_t *)&packet + 2, sizeof packet - 2);
        __atomic_store_n((uint16_t *)place, packet.header, __ATOMIC_RELEASE);
        if (i + 1 == PAIR || !one_ring)
            hsa_signal_store_screlease(loose->doorbell_signal, (int64_t)at + i);
    }
    for (int i = 0; i < PAIR; i++) signal_wait(done[i]);
}

// Without the barrier bit, all with one signal.
static void dispatch_beside(int rounds)
{
    hsa_signal_t done = signal_make(rounds);
    for (int i = 0; i < rounds; i++) {
        arguments_t arguments = {data + (1 + i) * COUNT, COUNT};
        hsa_kernel_dispatch_packet_t packet =
            dispatch_make(&add_one, COUNT / 64, &arguments, sizeof arguments, done);
        packet_push(loose, &packet, DISPATCH_HEADER & ~(1 << HSA_PACKET_HEADER_BARRIER));
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
        packet_push(loose, &packet, DISPATCH_HEADER & ~(1 << HSA_PACKET_HEADER_BARRIER));
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

static void begin(const char *directory)
{
    hsa_open(directory);
    gpu = &hsa_gpus[0];
    queue = queue_make(gpu);
    loose = queue_make(gpu);
    HSA(hsa_amd_profiling_set_profiler_enabled(queue, 1));
    add_one = kernel_find(gpu, "add_one.kd");
    data = memory_alloc(gpu->memory, BYTES);
}

// Kernels, each of which takes its time, are left in flight when the runtime ends.
static void late(void)
{
    struct {
        uint32_t *now, *most, looks;
    } arguments = {data, data + 1, 100};
    kernel_t crowd = kernel_find(gpu, "crowd.kd");
    hsa_signal_t none = {0};
    hsa_kernel_dispatch_packet_t packet =
        dispatch_make(&crowd, 1, &arguments, sizeof arguments, none);
    for (int i = 0; i < LATE; i++) packet_push(queue, &packet, DISPATCH_HEADER);
    HSA(hsa_shut_down());
}

int main(int argc, char **argv)
{
    uint32_t *host;
    CHECK(argc == 2 || argc == 3);
    if (argc == 3) {
        CHECK(atexit(late) == 0); // so that it runs after the handlers of those that start later
        begin(argv[1]);
        return 7;
    }
    begin(argv[1]);
    host = memory_alloc(hsa_host_memory, BYTES);
    memset(host, 0, BYTES);
    copy_wait(data, gpu->agent, host, hsa_cpu, BYTES);
    dispatch_timed(5);
    dispatch_plain(7);
    dispatch_pair(true);
    dispatch_beside(BESIDE);
    dispatch_pair(false);
    dispatch_again(6);
    dispatch_many(150);
    dispatch_gated(40);
    copy_wait(host, hsa_cpu, data, gpu->agent, BYTES);
    printf("%u %u %u %u\n", host[0], host[COUNT - 1], host[COUNT], host[BYTES / 4 - 1]);
    HSA(hsa_queue_destroy(loose));
    HSA(hsa_queue_destroy(queue));
    hsa_close();
    return 7;
}
