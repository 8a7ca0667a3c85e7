// SPDX-License-Identifier: Apache-2.0
// scope_test DIRECTORY [CASE]: on weak memory the acquire and release of a packet mean what they
// say, between the host, kernels and the copy engine. Each case is done with the scope that it
// needs and must be right; then with less, and the mistake must be seen.
#include <string.h>

#include "hsa.h"

enum { WORDS = 64, ROUNDS = 24 };

typedef struct {
    uint32_t *data;
    uint32_t count;
} add_one_t;

static hsa_queue_t *queue;
static hsa_signal_t done;
static kernel_t add_one;

static void begin(void)
{
    queue = queue_make(&hsa_gpus[0]);
    done = signal_make(1);
    add_one = kernel_find(&hsa_gpus[0], "add_one.kd");
}

static void end(void)
{
    HSA(hsa_queue_destroy(queue));
}

// Runs a dispatch with these scopes and waits for it.
static void run(const hsa_kernel_dispatch_packet_t *packet, unsigned acquire, unsigned release)
{
    hsa_signal_store_relaxed(done, 1);
    packet_push(queue, packet,
                (uint16_t)(HSA_PACKET_TYPE_KERNEL_DISPATCH | 1 << HSA_PACKET_HEADER_BARRIER |
                           acquire << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                           release << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE));
    signal_wait(done);
}

static hsa_kernel_dispatch_packet_t add_one_to(uint32_t *data)
{
    const add_one_t arguments = {data, WORDS};
    return dispatch_make(&add_one, 1, &arguments, sizeof arguments, done);
}

// What the host reads of coarse-grained memory that a kernel has counted up.
static bool host_sees(unsigned release)
{
    uint32_t *data = memory_alloc(hsa_coarse_memory, WORDS * sizeof *data);
    memset(data, 0, WORDS * sizeof *data);
    const hsa_kernel_dispatch_packet_t packet = add_one_to(data);
    run(&packet, HSA_FENCE_SCOPE_SYSTEM, release);
    bool seen = data[0] == 1 && data[WORDS - 1] == 1;
    HSA(hsa_amd_memory_pool_free(data));
    return seen;
}

static void test_release_to_host(void)
{
    begin();
    CHECK(host_sees(HSA_FENCE_SCOPE_SYSTEM));
    CHECK(!host_sees(HSA_FENCE_SCOPE_AGENT));
    CHECK(!host_sees(HSA_FENCE_SCOPE_NONE));
    end();
}

// What a kernel reads of coarse-grained memory that it knew before the host wrote it anew.
static bool kernel_sees(unsigned acquire)
{
    uint32_t *data = memory_alloc(hsa_coarse_memory, WORDS * sizeof *data);
    memset(data, 0, WORDS * sizeof *data);
    const hsa_kernel_dispatch_packet_t packet = add_one_to(data);
    run(&packet, HSA_FENCE_SCOPE_SYSTEM, HSA_FENCE_SCOPE_SYSTEM);
    for (unsigned k = 0; k < WORDS; k++) data[k] = 10;
    run(&packet, acquire, HSA_FENCE_SCOPE_SYSTEM);
    bool seen = data[0] == 11;
    HSA(hsa_amd_memory_pool_free(data));
    return seen;
}

static void test_acquire_from_host(void)
{
    begin();
    CHECK(kernel_sees(HSA_FENCE_SCOPE_SYSTEM));
    CHECK(!kernel_sees(HSA_FENCE_SCOPE_AGENT));
    end();
}

// The copy engine reads memory of the GPU, and not its caches.
static bool copy_sees(unsigned release)
{
    uint32_t *device = memory_alloc(hsa_gpus[0].memory, WORDS * sizeof *device);
    uint32_t *host = memory_alloc(hsa_host_memory, WORDS * sizeof *host);
    for (unsigned k = 0; k < WORDS; k++) host[k] = 5;
    copy_wait(device, hsa_gpus[0].agent, host, hsa_cpu, WORDS * sizeof *host);
    const hsa_kernel_dispatch_packet_t packet = add_one_to(device);
    run(&packet, HSA_FENCE_SCOPE_SYSTEM, release);
    copy_wait(host, hsa_cpu, device, hsa_gpus[0].agent, WORDS * sizeof *host);
    bool seen = host[0] == 6;
    HSA(hsa_amd_memory_pool_free(device));
    HSA(hsa_amd_memory_pool_free(host));
    return seen;
}

static void test_release_to_copy(void)
{
    begin();
    CHECK(copy_sees(HSA_FENCE_SCOPE_SYSTEM));
    CHECK(!copy_sees(HSA_FENCE_SCOPE_AGENT));
    end();
}

// How often a kernel gets the arguments that the host has written over those of the one before.
static unsigned right_arguments(unsigned acquire)
{
    uint32_t *data = memory_alloc(hsa_host_memory, 2 * WORDS * sizeof *data);
    hsa_kernel_dispatch_packet_t packet = add_one_to(data);
    unsigned right = 0;
    for (unsigned k = 0; k < ROUNDS; k++) {
        add_one_t *arguments = packet.kernarg_address;
        arguments->data = data + k % 2 * WORDS;
        data[0] = data[WORDS] = 0;
        run(&packet, acquire, HSA_FENCE_SCOPE_SYSTEM);
        right += arguments->data[0] == 1;
    }
    HSA(hsa_amd_memory_pool_free(data));
    return right;
}

static void test_arguments(void)
{
    begin();
    CHECK(right_arguments(HSA_FENCE_SCOPE_AGENT) == ROUNDS);
    CHECK(right_arguments(HSA_FENCE_SCOPE_NONE) < ROUNDS);
    end();
}

// Kernels that follow each other on one GPU, in memory that none but they use; whether all counted.
static bool chain_counts(unsigned acquire, unsigned release)
{
    uint32_t *device = memory_alloc(hsa_gpus[0].memory, WORDS * sizeof *device);
    uint32_t *host = memory_alloc(hsa_host_memory, WORDS * sizeof *host);
    memset(host, 0, WORDS * sizeof *host);
    copy_wait(device, hsa_gpus[0].agent, host, hsa_cpu, WORDS * sizeof *host);
    const hsa_kernel_dispatch_packet_t packet = add_one_to(device);
    run(&packet, HSA_FENCE_SCOPE_SYSTEM, release);
    for (unsigned k = 2; k < ROUNDS; k++) run(&packet, acquire, release);
    run(&packet, acquire, HSA_FENCE_SCOPE_SYSTEM);
    copy_wait(host, hsa_cpu, device, hsa_gpus[0].agent, WORDS * sizeof *host);
    bool all = host[0] == ROUNDS;
    HSA(hsa_amd_memory_pool_free(device));
    HSA(hsa_amd_memory_pool_free(host));
    return all;
}

static void test_chain(void)
{
    begin();
    CHECK(chain_counts(HSA_FENCE_SCOPE_AGENT, HSA_FENCE_SCOPE_AGENT));
    CHECK(!chain_counts(HSA_FENCE_SCOPE_NONE, HSA_FENCE_SCOPE_AGENT));
    end();
}

static const case_t cases[] = {
    {"release_to_host", test_release_to_host, "KEEL_SIM_WEAK=1"},
    {"acquire_from_host", test_acquire_from_host, "KEEL_SIM_WEAK=1"},
    {"release_to_copy", test_release_to_copy, "KEEL_SIM_WEAK=1"},
    {"arguments", test_arguments, "KEEL_SIM_WEAK=1"},
    {"chain", test_chain, "KEEL_SIM_WEAK=1"},
};

int main(int argc, char **argv)
{
    return cases_run(argc, argv, cases, sizeof cases / sizeof *cases);
}
