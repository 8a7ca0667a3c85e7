// SPDX-License-Identifier: Apache-2.0
// threads LIBRARY: threads that use the library at once, each with a queue of its own, on a runtime
// that is played: kernels, copies and ranges. Each kernel and copy is asked for its times once,
// and ThreadSanitizer sees what the threads share with each other and with the library's own. The
// queues have room for all packets: in full ones, kernels may be left without times.
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "played.h"

enum {
    THREADS = 6,
    SIZE = 1024,
    ROUNDS = 200,
    SIGNALS = 2 * ROUNDS,
    OWN = (THREADS + 1) * SIGNALS
};

typedef struct user_t {
    pthread_t thread;
    uint64_t number; // from 1
    hsa_packet_t ring[SIZE];
    hsa_queue_t handle;
    hsa_packets_fn seen;
    void *seen_data;
    bool good;
} user_t;

static user_t users[THREADS];
static _Thread_local user_t *user;  // of the calling thread; NULL: it is the library's
static _Atomic uint64_t made = OWN; // the library's signals come after the application's
static _Atomic bool done[OWN];      // a copy has ended
static _Atomic int kernel_times, copy_times;
static int (*range_push)(const char *);
static int (*range_pop)(void);

static HSA_FUNCTION(intercept_create, HSA_QUEUE_CREATE)
{
    user->handle = (hsa_queue_t){.base = user->ring, .size = SIZE, .id = user->number};
    *queue = &user->handle;
    return 0;
}

static hsa_status_t intercept_register(hsa_queue_t *queue, hsa_packets_fn fn, void *data)
{
    user->seen = fn;
    user->seen_data = data;
    return 0;
}

static hsa_status_t signal_create(int64_t value, uint32_t count, const hsa_agent_t *agents,
                                  uint64_t attributes, hsa_signal_t *signal)
{
    *signal = ++made;
    return 0;
}

static int64_t signal_load(hsa_signal_t signal)
{
    return signal < OWN && !done[signal]; // kernels end at once
}

static hsa_status_t dispatch_time(hsa_agent_t agent, hsa_signal_t signal, hsa_time_t *time)
{
    *time = (hsa_time_t){1, 2};
    kernel_times++;
    return 0;
}

static hsa_status_t copy_time(hsa_signal_t signal, hsa_time_t *time)
{
    *time = (hsa_time_t){1, 2};
    copy_times++;
    return 0;
}

static HSA_FUNCTION(copy_run, HSA_COPY)
{
    done[signal] = true;
    return 0;
}

static void writer(const void *packets, uint64_t count) {}

// A kernel with a signal of the application's, and one without; and a copy.
static bool round_run(uint64_t number)
{
    char from = 0, to = 0;
    const uint16_t header = HSA_PACKET_DISPATCH | HSA_HEADER_BARRIER;
    hsa_signal_t signal = user->number * SIGNALS + number;
    hsa_packet_t packets[] = {{.header = header}, {.header = header, .signal = signal}};
    hsa_fn copy = played_amd.slots[PLAYED_COPY];
    bool good = range_push("round") >= 0;
    user->seen(packets, 2, 2 * number, user->seen_data, writer);
    good &= ((hsa_status_t(*) HSA_COPY)copy)(&to, 1, &from, 2, 1, 0, NULL, signal + ROUNDS) == 0;
    return good & (range_pop() >= 0);
}

static void *run(void *argument)
{
    hsa_queue_t *queue = NULL;
    hsa_fn create = played_core.slots[PLAYED_QUEUE_CREATE];
    hsa_fn destroy = played_core.slots[PLAYED_QUEUE_DESTROY];
    user = argument;
    for (int i = 0; i < SIZE; i++) user->ring[i].header = HSA_PACKET_INVALID;
    user->good =
        ((hsa_status_t(*) HSA_QUEUE_CREATE)create)(1, SIZE, 0, NULL, NULL, 0, 0, &queue) == 0;
    for (uint64_t i = 0; i < ROUNDS && user->good; i++) user->good = round_run(i);
    user->good &= ((hsa_status_t(*)(hsa_queue_t *))destroy)(queue) == 0;
    return NULL;
}

static bool tables_fill(const char *path)
{
    played_begin();
    played_core.slots[PLAYED_SIGNAL_LOAD] = (hsa_fn)signal_load;
    played_amd.slots[PLAYED_DISPATCH_TIME] = (hsa_fn)dispatch_time;
    played_amd.slots[PLAYED_COPY] = (hsa_fn)copy_run;
    played_amd.slots[PLAYED_COPY_TIME] = (hsa_fn)copy_time;
    played_amd.slots[PLAYED_SIGNAL_CREATE] = (hsa_fn)signal_create;
    played_amd.slots[PLAYED_INTERCEPT_CREATE] = (hsa_fn)intercept_create;
    played_amd.slots[PLAYED_INTERCEPT_REGISTER] = (hsa_fn)intercept_register;
    if (!played_open(path)) return false;
    void *library = dlopen(path, RTLD_NOW);
    range_push = (int (*)(const char *))dlsym(library, "roctxRangePushA");
    range_pop = (int (*)(void))dlsym(library, "roctxRangePop");
    return range_push && range_pop;
}

int main(int argc, char **argv)
{
    if (argc != 2 || !tables_fill(argv[1])) return 1;
    bool good = true;
    for (int i = 0; i < THREADS; i++) {
        users[i].number = (uint64_t)i + 1;
        good &= pthread_create(&users[i].thread, NULL, run, &users[i]) == 0;
    }
    for (int i = 0; i < THREADS; i++) good &= pthread_join(users[i].thread, NULL) == 0;
    for (int i = 0; i < THREADS; i++) good &= users[i].good;
    // The thread of the library may come late. At the end it has not for ever.
    while (good && (kernel_times < 2 * ROUNDS * THREADS || copy_times < ROUNDS * THREADS))
        usleep(1000);
    played_unload();
    if (kernel_times != 2 * ROUNDS * THREADS || copy_times != ROUNDS * THREADS) {
        fprintf(stderr, "times of %d kernels and %d copies\n", kernel_times, copy_times);
        good = false;
    }
    played_exit(good);
}
