// SPDX-License-Identifier: Apache-2.0
// strict_test DIRECTORY [CASE]: what the software GPU allows and what it catches: packets that
// overlap and change places, workgroups at the same time, fresh memory, hidden memory, packets that
// never end.
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hsa.h"

enum {
    BARRIER = 1 << HSA_PACKET_HEADER_BARRIER,
    FREE_HEADER = DISPATCH_HEADER & ~BARRIER, // of a dispatch that need not wait
    PACKETS = 8,
};

static void push_free(hsa_queue_t *queue, const char *name, const void *arguments, size_t size,
                      hsa_signal_t done)
{
    kernel_t kernel = kernel_find(&hsa_gpus[0], name);
    const hsa_kernel_dispatch_packet_t packet = dispatch_make(&kernel, 1, arguments, size, done);
    packet_push(queue, &packet, FREE_HEADER);
}

typedef struct {
    uint32_t *flag;
    uint32_t value;
    uint32_t *out;
} wait_for_t;

typedef struct {
    uint32_t *word;
    uint32_t value;
} word_t;

// A kernel that runs until its flag becomes 2, whatever packets come behind it.
static void push_running(hsa_queue_t *queue, uint32_t *flag, hsa_signal_t done)
{
    push_free(queue, "answer.kd", &(word_t){flag, 7}, sizeof(word_t), done);
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != 1) sched_yield();
}

// A kernel waits for the one behind it, with a barrier packet between them that is over at once.
static void test_overlap(void)
{
    hsa_queue_t *queue = queue_make(&hsa_gpus[0]);
    uint32_t *memory = memory_alloc(hsa_host_memory, 4096);
    hsa_signal_t done = signal_make(2), between = signal_make(1);
    memset(memory, 0, 4096);
    push_running(queue, memory, done);
    const hsa_barrier_and_packet_t barrier = {.completion_signal = between};
    packet_push(queue, &barrier, HSA_PACKET_TYPE_BARRIER_AND);
    signal_wait(between);
    CHECK(hsa_signal_load_scacquire(done) == 2);
    push_free(queue, "set_word.kd", &(word_t){memory, 2}, sizeof(word_t), done);
    signal_wait(done);
    CHECK(hsa_queue_load_read_index_scacquire(queue) <= 3);
    HSA(hsa_queue_destroy(queue));
}

// With the barrier bit it would never run: the host has to help.
static void test_no_overlap(void)
{
    hsa_queue_t *queue = queue_make(&hsa_gpus[0]);
    kernel_t set_word = kernel_find(&hsa_gpus[0], "set_word.kd");
    uint32_t *memory = memory_alloc(hsa_host_memory, 4096);
    hsa_signal_t first = signal_make(1), second = signal_make(1);
    memset(memory, 0, 4096);
    push_running(queue, memory, first);
    dispatch_push(queue, &set_word, 1, &(word_t){memory + 64, 5}, sizeof(word_t), second);
    others_pass();
    CHECK(hsa_signal_load_scacquire(second) == 1 && memory[64] == 0);
    __atomic_store_n(memory, 2, __ATOMIC_RELEASE);
    signal_wait(second);
    CHECK(hsa_signal_load_scacquire(first) == 0 && memory[64] == 5);
    HSA(hsa_queue_destroy(queue));
}

// The order in which packets of a queue that was held back have run.
static void run_order(uint32_t *log, uint16_t header)
{
    hsa_queue_t *queue = queue_make(&hsa_gpus[0]);
    kernel_t append = kernel_find(&hsa_gpus[0], "append.kd");
    hsa_signal_t gate = signal_make(1), done = signal_make(PACKETS);
    memset(log, 0, 4096);
    const hsa_barrier_and_packet_t barrier = {.dep_signal = {gate}};
    packet_push(queue, &barrier, HSA_PACKET_TYPE_BARRIER_AND | BARRIER);
    for (uint32_t k = 0; k < PACKETS; k++) {
        const word_t arguments = {log, k};
        const hsa_kernel_dispatch_packet_t packet =
            dispatch_make(&append, 1, &arguments, sizeof arguments, done);
        packet_push(queue, &packet, header);
    }
    hsa_signal_store_screlease(gate, 0);
    signal_wait(done);
    HSA(hsa_queue_destroy(queue));
}

static void test_shuffle(void)
{
    uint32_t *log = memory_alloc(hsa_host_memory, 4096), seen = 0, in_order = 0;
    run_order(log, FREE_HEADER);
    CHECK(log[0] == PACKETS);
    for (uint32_t k = 0; k < PACKETS; k++) {
        seen |= 1u << log[1 + k];
        in_order += log[1 + k] == k;
    }
    CHECK(seen == (1u << PACKETS) - 1 && in_order < PACKETS);
    run_order(log, DISPATCH_HEADER);
    for (uint32_t k = 0; k < PACKETS; k++) CHECK(log[1 + k] == k);
}

// Workgroups that wait for each other, on one thread or on several.
static void test_meet(void)
{
    enum { MEETING = 16 };
    hsa_queue_t *queue = queue_make(&hsa_gpus[0]);
    kernel_t meet = kernel_find(&hsa_gpus[0], "meet.kd");
    uint32_t *memory = memory_alloc(hsa_host_memory, 4096);
    hsa_signal_t done = signal_make(1);
    memset(memory, 0, 4096);
    dispatch_push(queue, &meet, MEETING, &(word_t){memory, MEETING}, sizeof(word_t), done);
    signal_wait(done);
    CHECK(memory[0] == MEETING);
    HSA(hsa_queue_destroy(queue));
}

static void test_poison(void)
{
    uint32_t *device = memory_alloc(hsa_gpus[0].memory, 4 << 20);
    uint32_t *host = memory_alloc(hsa_host_memory, 4 << 20);
    for (unsigned n = 0; n < 1 << 20; n++) CHECK(host[n] == 0xdbdbdbdb);
    memset(host, 0, 4 << 20);
    copy_wait(host, hsa_cpu, device, hsa_gpus[0].agent, 4 << 20);
    for (unsigned n = 0; n < 1 << 20; n++) CHECK(host[n] == 0xdbdbdbdb);
}

// Large memory of a GPU, too, wherever it is touched, also beside what was written.
static void test_poison_large(void)
{
    enum { SIZE = 300 << 20, PART = 4096 };
    uint8_t *device = memory_alloc(hsa_gpus[0].memory, SIZE);
    uint8_t *host = memory_alloc(hsa_host_memory, 3 * PART);
    memset(host, 0x11, 3 * PART);
    copy_wait(device + SIZE / 2, hsa_gpus[0].agent, host, hsa_cpu, PART);
    copy_wait(host, hsa_cpu, device + SIZE / 2 - PART, hsa_gpus[0].agent, 3 * PART);
    for (unsigned n = 0; n < 3 * PART; n++) CHECK(host[n] == (n / PART == 1 ? 0x11 : 0xdb));
    memset(host, 0, 3 * PART);
    copy_wait(host, hsa_cpu, device + SIZE - PART, hsa_gpus[0].agent, PART);
    for (unsigned n = 0; n < PART; n++) CHECK(host[n] == 0xdb);
}

// The host may not look into a GPU's own memory, and is told so.
static void test_host_touches(void)
{
    volatile uint32_t *device = memory_alloc(hsa_gpus[0].memory, 4096);
    log_keep();
    pid_t child = fork();
    if (child == 0) {
        device[0] = 1;
        _exit(0);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK(log_wait("memory of the GPU at node 1"));
}

static void test_watchdog_kernel(void)
{
    hsa_queue_t *queue = queue_make(&hsa_gpus[0]);
    uint32_t *memory = memory_alloc(hsa_host_memory, 4096);
    hsa_signal_t done = signal_make(1);
    memset(memory, 0, 4096);
    log_keep();
    push_free(queue, "wait_for.kd", &(wait_for_t){memory, 1, memory + 64}, sizeof(wait_for_t),
              done);
    CHECK(log_wait("packet 0 has not completed for 1 s: dispatch of kernel wait_for"));
    __atomic_store_n(memory, 1, __ATOMIC_RELEASE);
    signal_wait(done);
    HSA(hsa_queue_destroy(queue));
}

static void test_watchdog_barrier(void)
{
    hsa_queue_t *queue = queue_make(&hsa_gpus[0]);
    hsa_signal_t never = signal_make(7);
    const hsa_barrier_and_packet_t barrier = {.dep_signal = {never}};
    log_keep();
    packet_push(queue, &barrier, HSA_PACKET_TYPE_BARRIER_AND | BARRIER);
    CHECK(log_wait("packet 0 has not completed for 1 s: barrier-and: signals"));
    CHECK(log_wait("is 7"));
    HSA(hsa_queue_destroy(queue));
}

static void test_watchdog_doorbell(void)
{
    hsa_queue_t *queue = queue_make(&hsa_gpus[0]);
    log_keep();
    hsa_queue_add_write_index_relaxed(queue, 1);
    __atomic_store_n((uint16_t *)queue->base_address, HSA_PACKET_TYPE_BARRIER_AND,
                     __ATOMIC_RELEASE);
    CHECK(log_wait("the doorbell was not rung"));
    HSA(hsa_queue_destroy(queue));
}

// A copy that waits for a signal, in the copy engine.
static void test_watchdog_copy(void)
{
    uint32_t *device = memory_alloc(hsa_gpus[0].memory, 4096);
    uint32_t *host = memory_alloc(hsa_host_memory, 4096);
    hsa_signal_t never = signal_make(1), done = signal_make(1);
    log_keep();
    HSA(hsa_amd_memory_async_copy(device, hsa_gpus[0].agent, host, hsa_cpu, 4096, 1, &never, done));
    CHECK(log_wait("watchdog: copy queue"));
    hsa_signal_store_screlease(never, 0);
    signal_wait(done);
}

static const case_t cases[] = {
    {"overlap", test_overlap, NULL},
    {"overlap_shuffled", test_overlap, "KEEL_SIM_SEED=3"},
    {"no_overlap", test_no_overlap, NULL},
    {"shuffle", test_shuffle, "KEEL_SIM_SEED=5"},
    {"meet", test_meet, NULL},
    {"meet_shuffled", test_meet, "KEEL_SIM_SEED=9"},
    {"meet_threads", test_meet, "KEEL_SIM_THREADS=4"},
    {"poison", test_poison, NULL},
    {"poison_large", test_poison_large, NULL},
    {"host_touches", test_host_touches, NULL},
    {"watchdog_kernel", test_watchdog_kernel, "KEEL_SIM_WATCHDOG=1"},
    {"watchdog_barrier", test_watchdog_barrier, "KEEL_SIM_WATCHDOG=1"},
    {"watchdog_doorbell", test_watchdog_doorbell, "KEEL_SIM_WATCHDOG=1"},
    {"watchdog_copy", test_watchdog_copy, "KEEL_SIM_WATCHDOG=1"},
};

int main(int argc, char **argv)
{
    return cases_run(argc, argv, cases, sizeof cases / sizeof *cases);
}
