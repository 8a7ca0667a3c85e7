// SPDX-License-Identifier: Apache-2.0
// thunk_test FILE: drives the library below ROCm's runtime directly, from several threads: events,
// memory, compute and copy queues, packets that overlap, queues that end while they work. It needs
// no library of the vendor, so that sanitizers see all of it.
#define LITTLEENDIAN_CPU 1 // <hsa/hsa.h> knows no aarch64
#include <hsakmt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hsa/hsa.h>

#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>

#include "sim/amd/bench/device.h"

enum { GPU = 1, THREADS = 4, ROUNDS = 100, PACKETS = 64, COUNT = 1000 };
enum { BARRIER = 1 << HSA_PACKET_HEADER_BARRIER };

static void check(bool good, const char *what, int line)
{
    if (good) return;
    fprintf(stderr, "line %d: not true: %s\n", line, what);
    exit(1);
}
#define CHECK(condition) check((condition), #condition, __LINE__)
#define KMT(call)        check((call) == HSAKMT_STATUS_SUCCESS, #call, __LINE__)

static module_t module;

static void *memory_make(unsigned node, size_t size, bool host)
{
    HsaMemFlags flags = {.ui32 = {.HostAccess = host}};
    void *memory;
    HSAuint64 device;
    KMT(hsaKmtAllocMemory(node, size, flags, &memory));
    KMT(hsaKmtMapMemoryToGPU(memory, size, &device));
    CHECK(device == (HSAuint64)(uintptr_t)memory);
    return memory;
}

static void memory_end(void *memory, size_t size)
{
    KMT(hsaKmtUnmapMemoryToGPU(memory));
    KMT(hsaKmtFreeMemory(memory, size));
}

static HsaEvent *event_make(void)
{
    HsaEventDescriptor descriptor = {.EventType = HSA_EVENTTYPE_SIGNAL, .NodeId = GPU};
    HsaEvent *event;
    KMT(hsaKmtCreateEvent(&descriptor, false, false, &event));
    return event;
}

// A queue with its ring, the struct that it shares with the device, and a signal for its packets.
typedef struct {
    amd_queue_t *shared;
    uint8_t *ring;
    amd_signal_t *done;
    HsaEvent *event;
    uint8_t *kernargs;
    HsaQueueResource resource;
    uint64_t written;
} queue_t;

static queue_t queue_make(void)
{
    queue_t queue = {.shared = memory_make(0, 4096, true),
                     .ring = memory_make(0, PACKETS * 64, true),
                     .done = memory_make(0, 4096, true),
                     .kernargs = memory_make(0, PACKETS * 256, true),
                     .event = event_make()};
    memset(queue.shared, 0, sizeof *queue.shared);
    memset(queue.done, 0, sizeof *queue.done);
    queue.done->event_mailbox_ptr = queue.event->EventData.HWData2;
    queue.done->event_id = queue.event->EventId;
    for (unsigned k = 0; k < PACKETS; k++) {
        *(uint16_t *)(queue.ring + 64 * k) = HSA_PACKET_TYPE_INVALID;
    }
    queue.resource.Queue_read_ptr_aql = (HSAuint64 *)&queue.shared->read_dispatch_id;
    queue.resource.Queue_write_ptr_aql = (HSAuint64 *)&queue.shared->write_dispatch_id;
    KMT(hsaKmtCreateQueue(GPU, HSA_QUEUE_COMPUTE_AQL, 100, HSA_QUEUE_PRIORITY_NORMAL, queue.ring,
                          PACKETS * 64, NULL, &queue.resource));
    return queue;
}

static void queue_end(queue_t *queue)
{
    KMT(hsaKmtDestroyQueue(queue->resource.QueueId));
    KMT(hsaKmtDestroyEvent(queue->event));
    memory_end(queue->shared, 4096);
    memory_end(queue->ring, PACKETS * 64);
    memory_end(queue->done, 4096);
    memory_end(queue->kernargs, PACKETS * 256);
}

static void queue_push(queue_t *queue, const void *packet, uint16_t header)
{
    uint64_t id = queue->written++;
    while (id - __atomic_load_n(&queue->shared->read_dispatch_id, __ATOMIC_ACQUIRE) >= PACKETS) {
        usleep(100);
    }
    uint8_t *slot = queue->ring + id % PACKETS * 64;
    memcpy(slot + 2, (const uint8_t *)packet + 2, 62);
    __atomic_store_n(&queue->shared->write_dispatch_id, id + 1, __ATOMIC_RELEASE);
    __atomic_store_n((uint16_t *)slot, header, __ATOMIC_RELEASE);
    __atomic_store_n(queue->resource.Queue_DoorBell_aql, id, __ATOMIC_RELEASE);
}

static void queue_dispatch(queue_t *queue, const char *kernel, uint32_t groups,
                           const void *arguments, size_t size, uint16_t barrier)
{
    uint8_t *kernarg = queue->kernargs + queue->written % PACKETS * 256;
    while (queue->written - __atomic_load_n(&queue->shared->read_dispatch_id, __ATOMIC_ACQUIRE) >=
           PACKETS) {
        usleep(100);
    }
    memcpy(kernarg, arguments, size);
    __atomic_fetch_add(&queue->done->value, 1, __ATOMIC_RELAXED);
    const hsa_kernel_dispatch_packet_t packet = {
        .setup = 1,
        .workgroup_size_x = 64,
        .workgroup_size_y = 1,
        .workgroup_size_z = 1,
        .grid_size_x = 64 * groups,
        .grid_size_y = 1,
        .grid_size_z = 1,
        .kernel_object = module_symbol(&module, kernel),
        .kernarg_address = kernarg,
        .completion_signal = {(uint64_t)(uintptr_t)queue->done},
    };
    queue_push(queue, &packet, HSA_PACKET_TYPE_KERNEL_DISPATCH | barrier);
}

static void queue_wait(queue_t *queue)
{
    while (__atomic_load_n(&queue->done->value, __ATOMIC_ACQUIRE) > 0) {
        hsaKmtWaitOnEvent(queue->event, 50);
    }
}

typedef struct {
    uint32_t *data;
    uint32_t count;
} add_one_t;

static void compute(uint64_t *state)
{
    queue_t queue = queue_make();
    uint32_t *data = memory_make(0, COUNT * 4, true);
    memset(data, 0, COUNT * 4);
    unsigned times = 1 + (unsigned)(random_next(state) % 8);
    for (unsigned k = 0; k < times; k++) {
        queue_dispatch(&queue, "add_one.kd", (COUNT + 63) / 64, &(add_one_t){data, COUNT},
                       sizeof(add_one_t), BARRIER);
    }
    queue_wait(&queue);
    for (unsigned n = 0; n < COUNT; n++) CHECK(data[n] == times);
    queue_end(&queue);
    memory_end(data, COUNT * 4);
}

// A kernel waits for the one behind it; many others count beside them.
static void overlap(void)
{
    queue_t queue = queue_make();
    uint32_t *words = memory_make(0, 4096, true);
    memset(words, 0, 4096);
    struct {
        uint32_t *flag;
        uint32_t value;
        uint32_t *out;
    } wait_for = {words, 1, words + 512};
    struct {
        uint32_t *word;
        uint32_t value;
    } append = {words + 1, 0}, set = {words, 1};
    queue_dispatch(&queue, "wait_for.kd", 1, &wait_for, sizeof wait_for, 0);
    for (append.value = 0; append.value < 20; append.value++) {
        queue_dispatch(&queue, "append.kd", 1, &append, sizeof append, 0);
    }
    queue_dispatch(&queue, "set_word.kd", 1, &set, sizeof set, 0);
    queue_wait(&queue);
    CHECK(words[1] == 20 && words[512] == 1);
    queue_end(&queue);
    memory_end(words, 4096);
}

// The queue ends in the middle of a kernel that would never.
static void abandon(void)
{
    queue_t queue = queue_make();
    uint32_t *words = memory_make(0, 4096, true);
    memset(words, 0, 4096);
    struct {
        uint32_t *flag;
        uint32_t value;
        uint32_t *out;
    } wait_for = {words, 1, words + 512};
    for (unsigned k = 0; k < 3; k++) {
        queue_dispatch(&queue, "wait_for.kd", 1, &wait_for, sizeof wait_for, 0);
    }
    usleep(2000);
    queue_end(&queue);
    memory_end(words, 4096);
}

// Bytes of the host to the GPU's own memory and back, with a fence behind them.
static void copies(uint64_t *state)
{
    enum { RING = 4096, SIZE = 65536, LINEAR = 1, FENCE = 5, WORDS = 7 + 7 + 4 };
    uint8_t *ring = memory_make(0, RING, true), *from = memory_make(0, SIZE, true);
    uint8_t *to = memory_make(0, SIZE, true), *device = memory_make(GPU, SIZE, false);
    uint32_t *fence = memory_make(0, 4096, true);
    HsaQueueResource resource = {0};
    KMT(hsaKmtCreateQueue(GPU, HSA_QUEUE_SDMA, 100, HSA_QUEUE_PRIORITY_NORMAL, ring, RING, NULL,
                          &resource));
    for (unsigned n = 0; n < SIZE; n++) from[n] = (uint8_t)random_next(state);
    *fence = 0;
    const uint64_t a = (uint64_t)(uintptr_t)from, b = (uint64_t)(uintptr_t)device;
    const uint64_t c = (uint64_t)(uintptr_t)to, f = (uint64_t)(uintptr_t)fence;
    const uint32_t packets[WORDS] = {LINEAR,
                                     SIZE - 1,
                                     0,
                                     (uint32_t)a,
                                     (uint32_t)(a >> 32),
                                     (uint32_t)b,
                                     (uint32_t)(b >> 32),
                                     LINEAR,
                                     SIZE - 1,
                                     0,
                                     (uint32_t)b,
                                     (uint32_t)(b >> 32),
                                     (uint32_t)c,
                                     (uint32_t)(c >> 32),
                                     FENCE,
                                     (uint32_t)f,
                                     (uint32_t)(f >> 32),
                                     77};
    memcpy(ring, packets, sizeof packets);
    __atomic_store_n(resource.Queue_DoorBell_aql, sizeof packets, __ATOMIC_RELEASE);
    while (__atomic_load_n(fence, __ATOMIC_ACQUIRE) != 77) usleep(100);
    CHECK(!memcmp(from, to, SIZE));
    KMT(hsaKmtDestroyQueue(resource.QueueId));
    memory_end(ring, RING);
    memory_end(from, SIZE);
    memory_end(to, SIZE);
    memory_end(device, SIZE);
    memory_end(fence, 4096);
}

static void *wait_main(void *argument)
{
    HsaEvent *event = argument;
    while (hsaKmtWaitOnEvent(event, 1000) != HSAKMT_STATUS_SUCCESS) continue;
    return NULL;
}

// Two wait for the same event, and both wake up.
static void events(void)
{
    HsaEventDescriptor descriptor = {.EventType = HSA_EVENTTYPE_SIGNAL, .NodeId = GPU};
    HsaEvent *event;
    pthread_t waiters[2];
    KMT(hsaKmtCreateEvent(&descriptor, true, false, &event));
    for (unsigned k = 0; k < 2; k++) CHECK(!pthread_create(&waiters[k], NULL, wait_main, event));
    usleep(1000);
    KMT(hsaKmtSetEvent(event));
    for (unsigned k = 0; k < 2; k++) CHECK(!pthread_join(waiters[k], NULL));
    KMT(hsaKmtDestroyEvent(event));
}

// Set before anybody waits, an event is that of the first who does; the next is not left asleep.
static void event_taken(void)
{
    HsaEventDescriptor descriptor = {.EventType = HSA_EVENTTYPE_SIGNAL, .NodeId = GPU};
    HsaEvent *event;
    KMT(hsaKmtCreateEvent(&descriptor, false, false, &event));
    KMT(hsaKmtSetEvent(event));
    KMT(hsaKmtWaitOnEvent(event, HSA_EVENTTIMEOUT_INFINITE));
    CHECK(hsaKmtWaitOnEvent(event, HSA_EVENTTIMEOUT_INFINITE) == HSAKMT_STATUS_WAIT_TIMEOUT);
    KMT(hsaKmtDestroyEvent(event));
}

// Registered memory, its information, and other calls that only look.
static void looks(void)
{
    HsaMemFlags flags = {.ui32 = {.HostAccess = 1}};
    HSAuint32 nodes[1] = {GPU};
    HSAuint64 device;
    HsaPointerInfo info;
    HsaClockCounters clocks;
    uint32_t *own = malloc(10000);
    KMT(hsaKmtRegisterMemoryWithFlags(own, 10000, flags));
    KMT(hsaKmtMapMemoryToGPUNodes(own, 10000, &device, (HsaMemMapFlags){0}, 1, nodes));
    KMT(hsaKmtQueryPointerInfo(own, &info));
    CHECK(info.GPUAddress == device && device != (HSAuint64)(uintptr_t)own);
    KMT(hsaKmtGetClockCounters(GPU, &clocks));
    KMT(hsaKmtUnmapMemoryToGPU(own));
    KMT(hsaKmtDeregisterMemory(own));
    free(own);
}

static void *thread_main(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    for (unsigned k = 0; k < ROUNDS; k++) {
        switch (random_next(&state) % 7) {
        case 0: overlap(); break;
        case 1: abandon(); break;
        case 2: copies(&state); break;
        case 3: events(); break;
        case 4: event_taken(); break;
        case 5: looks(); break;
        default: compute(&state); break;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    HsaSystemProperties properties;
    if (argc != 2) return 2;
    alarm(240);
    KMT(hsaKmtOpenKFD());
    KMT(hsaKmtAcquireSystemProperties(&properties));
    CHECK(properties.NumNodes == 2);
    module = module_load(argv[1]);
    for (uintptr_t k = 0; k < THREADS; k++) {
        CHECK(!pthread_create(&threads[k], NULL, thread_main, (void *)(k + 1)));
    }
    for (unsigned k = 0; k < THREADS; k++) CHECK(!pthread_join(threads[k], NULL));
    module_unload(&module);
    KMT(hsaKmtReleaseSystemProperties());
    KMT(hsaKmtCloseKFD());
    printf("done\n");
    return 0;
}
