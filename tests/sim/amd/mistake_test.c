// SPDX-License-Identifier: Apache-2.0
// mistake_test DIRECTORY [CASE]: what those who write packets can do wrong, each with the line that
// tells them, and a right program that gets none.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "hsa.h"
#include "sim/amd/kfd/uapi.h"
#include "tests/asleep.h"

#include <hsa/amd_hsa_signal.h>

typedef struct {
    uint32_t *flag;
    uint32_t spare;
} answer_t;

static hsa_queue_t *queue;
static volatile uint32_t *flag;
static answer_t *arguments;

// A kernel that has told the host that it runs, and now waits for it.
static void answer_begin(hsa_signal_t done)
{
    kernel_t answer = kernel_find(&hsa_gpus[0], "answer.kd");
    flag = memory_alloc(hsa_host_memory, 4096);
    flag[0] = 0;
    const answer_t wanted = {(uint32_t *)flag, 7};
    const hsa_kernel_dispatch_packet_t packet =
        dispatch_make(&answer, 1, &wanted, sizeof wanted, done);
    arguments = packet.kernarg_address;
    queue = queue_make(&hsa_gpus[0]);
    log_keep();
    packet_push(queue, &packet, DISPATCH_HEADER);
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != 1) continue;
}

static void answer_end(void)
{
    __atomic_store_n(flag, 2, __ATOMIC_RELEASE);
}

static void test_none(void)
{
    hsa_signal_t done = signal_make(1);
    answer_begin(done);
    answer_end();
    signal_wait(done);
    HSA(hsa_queue_destroy(queue));
    CHECK(flag[1] == 7 && log_is_empty());
}

static void test_body(void)
{
    hsa_signal_t done = signal_make(1);
    answer_begin(done);
    ((hsa_kernel_dispatch_packet_t *)queue->base_address)->reserved2 = 1;
    answer_end();
    signal_wait(done);
    CHECK(log_wait("packet 0, dispatch of kernel answer: byte 48 of it was written after it had "
                   "been made valid"));
    HSA(hsa_queue_destroy(queue));
}

static void test_body_of_barrier(void)
{
    hsa_signal_t gate = signal_make(1), done = signal_make(1);
    const hsa_barrier_and_packet_t packet = {.dep_signal = {gate}, .completion_signal = done};
    queue = queue_make(&hsa_gpus[0]);
    log_keep();
    packet_push(queue, &packet, HSA_PACKET_TYPE_BARRIER_AND);
    // The queue has seen it when the watchdog has.
    CHECK(log_wait("packet 0 has not completed for 1 s: barrier-and"));
    ((hsa_barrier_and_packet_t *)queue->base_address)->reserved2 = 1;
    hsa_signal_store_screlease(gate, 0);
    signal_wait(done);
    CHECK(log_wait("byte 48 of it was written after it had been made valid"));
    HSA(hsa_queue_destroy(queue));
}

static void test_arguments(void)
{
    hsa_signal_t done = signal_make(1);
    answer_begin(done);
    arguments->spare = 8;
    answer_end();
    signal_wait(done);
    CHECK(log_wait("packet 0, dispatch of kernel answer: byte 8 of its arguments was written "
                   "while it ran"));
    HSA(hsa_queue_destroy(queue));
}

static void test_signal_destroyed(void)
{
    hsa_signal_t done;
    HSA(hsa_signal_create(1, 0, NULL, &done));
    answer_begin(done);
    HSA(hsa_signal_destroy(done));
    answer_end();
    CHECK(log_wait("packet 0, dispatch of kernel answer: its signal 0x"));
    CHECK(log_wait("was destroyed"));
    HSA(hsa_queue_destroy(queue));
}

// Allowed, so that --strict alone tells of it.
static void test_signal_unarmed(void)
{
    hsa_signal_t done = signal_make(0);
    answer_begin(done);
    answer_end();
    CHECK(log_wait("of node 1: a packet counts its signal 0x"));
    CHECK(log_wait("down from 0: it was not armed"));
    HSA(hsa_queue_destroy(queue));
}

// A barrier packet that depends on nothing, without its header and without a doorbell.
static hsa_barrier_and_packet_t *barrier_write(hsa_signal_t done)
{
    queue = queue_make(&hsa_gpus[0]);
    log_keep();
    hsa_queue_add_write_index_relaxed(queue, 1);
    hsa_barrier_and_packet_t *packet = queue->base_address;
    memset((uint8_t *)packet + 2, 0, sizeof *packet - 2);
    packet->completion_signal = done;
    return packet;
}

static void barrier_validate(hsa_barrier_and_packet_t *packet)
{
    __atomic_store_n(&packet->header, HSA_PACKET_TYPE_BARRIER_AND, __ATOMIC_RELEASE);
}

static void test_doorbell_count(void)
{
    hsa_signal_t done = signal_make(1);
    barrier_validate(barrier_write(done));
    hsa_signal_store_screlease(queue->doorbell_signal, 1);
    CHECK(log_wait("of node 1: the doorbell was rung with 1, but the write index is 1"));
    signal_wait(done);
    HSA(hsa_queue_destroy(queue));
}

static void test_doorbell_early(void)
{
    hsa_signal_t done = signal_make(1);
    hsa_barrier_and_packet_t *packet = barrier_write(done);
    hsa_signal_store_screlease(queue->doorbell_signal, 0);
    CHECK(log_wait("of node 1: the doorbell was rung for packet 0 before its header"));
    barrier_validate(packet);
    signal_wait(done);
    HSA(hsa_queue_destroy(queue));
}

static void test_doorbell_half(void)
{
    hsa_signal_t done = signal_make(1);
    barrier_validate(barrier_write(done));
    amd_signal_t *doorbell = (amd_signal_t *)queue->doorbell_signal.handle;
    __atomic_store_n((uint32_t *)doorbell->hardware_doorbell_ptr, 0, __ATOMIC_RELEASE);
    CHECK(log_wait("of node 1: half of the doorbell was written"));
    signal_wait(done);
    HSA(hsa_queue_destroy(queue));
}

static void test_doorbell_never(void)
{
    barrier_validate(barrier_write((hsa_signal_t){0}));
    HSA(hsa_queue_destroy(queue));
    CHECK(log_wait("of node 1 ends: the doorbell was never rung for packet 0, barrier-and"));
}

static atomic_int waiter_number; // 0: it has not begun

static void *waiter(void *signal)
{
    atomic_store(&waiter_number, thread_number());
    hsa_signal_wait_scacquire(*(hsa_signal_t *)signal, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
                              HSA_WAIT_STATE_BLOCKED);
    return NULL;
}

// The thread sleeps when its signal changes, unless its sleep is over just then: then once more.
static void test_interrupt(void)
{
    enum { ROUNDS = 4 };
    hsa_signal_t signal = signal_make(1);
    amd_signal_t *words = (amd_signal_t *)signal.handle;
    bool told = false;
    log_keep();
    for (unsigned k = 0; k < ROUNDS && !told; k++) {
        pthread_t thread;
        hsa_signal_store_screlease(signal, 1);
        atomic_store(&waiter_number, 0);
        CHECK(pthread_create(&thread, NULL, waiter, &signal) == 0);
        while (!atomic_load(&waiter_number)) sched_yield();
        asleep(atomic_load(&waiter_number));
        __atomic_store_n(&words->value, 0, __ATOMIC_RELEASE);
        CHECK(pthread_join(thread, NULL) == 0);
        told = log_wait("and went on without it: the signal was changed and no interrupt sent");
    }
    CHECK(told);
}

#define KFD(name, arguments)                                                                       \
    ioctl(kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', KFD_##name, sizeof *(arguments)), (arguments))

// Newer runtimes wait with the age of the event that they know.
static void test_interrupt_with_age(void)
{
    int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
    kfd_create_event_t event = {.event_type = KFD_EVENT_SIGNAL};
    log_keep();
    CHECK(kfd >= 0 && KFD(CREATE_EVENT, &event) == 0);
    kfd_event_data_t data = {.signal = {1}, .event_id = event.event_id};
    kfd_wait_events_t wait = {(uint64_t)(uintptr_t)&data, 1, 0, UINT32_MAX, 0};
    CHECK(KFD(WAIT_EVENTS, &wait) == 0 && wait.wait_result == KFD_WAIT_TIMEOUT);
    CHECK(log_wait("and went on without it: the signal was changed and no interrupt sent"));
    CHECK(close(kfd) == 0);
}

static const case_t cases[] = {
    {"none", test_none, "KEEL_SIM_STRICT=1"},
    {"body", test_body, NULL},
    {"body_of_barrier", test_body_of_barrier, NULL},
    {"arguments", test_arguments, NULL},
    {"signal_destroyed", test_signal_destroyed, NULL},
    {"signal_unarmed", test_signal_unarmed, "KEEL_SIM_STRICT=1"},
    {"doorbell_count", test_doorbell_count, NULL},
    {"doorbell_early", test_doorbell_early, NULL},
    {"doorbell_half", test_doorbell_half, NULL},
    {"doorbell_never", test_doorbell_never, NULL},
    {"interrupt", test_interrupt, "KEEL_SIM_STRICT=1"},
    {"interrupt_with_age", test_interrupt_with_age, "KEEL_SIM_STRICT=1"},
};

int main(int argc, char **argv)
{
    setenv("KEEL_SIM_WATCHDOG", "1", 1);
    return cases_run(argc, argv, cases, sizeof cases / sizeof *cases);
}
