// SPDX-License-Identifier: Apache-2.0
// kfd_test FILE: drives the kernel driver below ROCm directly, from several threads: events,
// memory, compute and copy queues, packets that overlap, queues that end while they work. It needs
// no library of the vendor, so that sanitizers see all of it.
#define LITTLEENDIAN_CPU 1 // <hsa/hsa.h> knows no aarch64
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <hsa/hsa.h>

#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>

#include "sim/amd/bench/device.h"
#include "sim/amd/kfd/kfd.h"
#include "tests/asleep.h"

enum { GPU = GPU_ID + 1, THREADS = 4, ROUNDS = 100, PACKETS = 64, COUNT = 1000 };
enum { BARRIER = 1 << HSA_PACKET_HEADER_BARRIER };

static void check(bool good, const char *what, int line)
{
    if (good) return;
    fprintf(stderr, "line %d: not true: %s\n", line, what);
    exit(1);
}
#define CHECK(condition) check((condition), #condition, __LINE__)

// A request that must be served.
static void ask(unsigned number, void *arguments, unsigned size, int line)
{
    int result = kfd_request(number, arguments, size);
    if (!result) return;
    fprintf(stderr, "line %d: request %#x: %s\n", line, number, strerror(-result));
    exit(1);
}
#define ASK(name, arguments) ask(KFD_##name, (arguments), sizeof *(arguments), __LINE__)

// The answer to one that must not be.
#define REFUSED(name, arguments) kfd_request(KFD_##name, (arguments), sizeof *(arguments))

static module_t module;

typedef struct {
    uint8_t *at; // of the devices; of the host too, unless it is the GPU's own
    size_t size;
    uint64_t handle;
} memory_t;

static uint64_t number(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static void memory_map_gpu(const memory_t *memory)
{
    uint32_t gpu = GPU;
    kfd_map_memory_t map = {memory->handle, number(&gpu), 1, 0};
    ASK(MAP_MEMORY_TO_GPU, &map);
    CHECK(map.n_success == 1);
}

static memory_t memory_make(uint32_t flags, size_t size)
{
    bool host = flags & KFD_MEM_USERPTR;
    memory_t memory = {.size = size};
    memory.at = mmap(NULL, size, host ? PROT_READ | PROT_WRITE : PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory.at != MAP_FAILED);
    kfd_alloc_memory_t alloc = {
        number(memory.at), size, 0, host ? number(memory.at) : 0, GPU, flags};
    ASK(ALLOC_MEMORY_OF_GPU, &alloc);
    memory.handle = alloc.handle;
    memory_map_gpu(&memory);
    return memory;
}

static memory_t host_make(size_t size)
{
    return memory_make(KFD_MEM_USERPTR, size);
}

static void memory_end(const memory_t *memory)
{
    uint32_t gpu = GPU;
    kfd_map_memory_t map = {memory->handle, number(&gpu), 1, 0};
    kfd_free_memory_t freed = {memory->handle};
    CHECK(REFUSED(FREE_MEMORY_OF_GPU, &freed) == -EBUSY);
    ASK(UNMAP_MEMORY_FROM_GPU, &map);
    ASK(FREE_MEMORY_OF_GPU, &freed);
    munmap(memory->at, memory->size);
}

static uint32_t event_make(bool manual)
{
    kfd_create_event_t event = {.event_type = KFD_EVENT_SIGNAL, .auto_reset = !manual};
    ASK(CREATE_EVENT, &event);
    CHECK(event.event_id && event.event_page_offset);
    return event.event_id;
}

static void event_end(uint32_t id)
{
    ASK(DESTROY_EVENT, &((kfd_event_t){id, 0}));
}

// Waits for one event; whether it was set. age is 0, or what is known, and becomes what is.
static bool event_await(uint32_t id, uint64_t *age, uint32_t milliseconds)
{
    kfd_event_data_t data = {.signal = {*age}, .event_id = id};
    kfd_wait_events_t waited = {number(&data), 1, 0, milliseconds, 0};
    ASK(WAIT_EVENTS, &waited);
    *age = data.signal.last_age;
    return waited.wait_result == KFD_WAIT_COMPLETE;
}

// A queue with its ring, the struct that it shares with the device, and a signal for its packets.
typedef struct {
    memory_t memory[4];
    amd_queue_t *shared;
    uint8_t *ring;
    amd_signal_t *done;
    uint32_t event, id;
    uint8_t *kernargs;
    uint64_t *doorbell;
    uint64_t written;
} ring_t;

static uint64_t *doorbell_at(uint64_t offset)
{
    return (uint64_t *)(doorbell_bytes() + offset);
}

static ring_t queue_make(void)
{
    ring_t queue = {.memory = {host_make(4096), host_make(PACKETS * 64), host_make(4096),
                               host_make(PACKETS * 256)},
                    .event = event_make(false)};
    queue.shared = (amd_queue_t *)queue.memory[0].at;
    queue.ring = queue.memory[1].at;
    queue.done = (amd_signal_t *)queue.memory[2].at;
    queue.kernargs = queue.memory[3].at;
    memset(queue.shared, 0, sizeof *queue.shared);
    memset(queue.done, 0, sizeof *queue.done);
    queue.done->event_mailbox_ptr = number(queue.memory[2].at + 2048);
    queue.done->event_id = queue.event;
    for (unsigned k = 0; k < PACKETS; k++) {
        *(uint16_t *)(queue.ring + 64 * k) = HSA_PACKET_TYPE_INVALID;
    }
    kfd_create_queue_t wanted = {
        .ring_base_address = number(queue.ring),
        .ring_size = PACKETS * 64,
        .read_pointer_address = number((void *)&queue.shared->read_dispatch_id),
        .write_pointer_address = number((void *)&queue.shared->write_dispatch_id),
        .gpu_id = GPU,
        .queue_type = KFD_QUEUE_AQL,
        .queue_percentage = 100,
        .queue_priority = 7,
    };
    ASK(CREATE_QUEUE, &wanted);
    queue.id = wanted.queue_id;
    queue.doorbell = doorbell_at(wanted.doorbell_offset);
    return queue;
}

static void queue_finish(ring_t *queue)
{
    ASK(DESTROY_QUEUE, &((kfd_destroy_queue_t){queue->id, 0}));
    event_end(queue->event);
    for (unsigned k = 0; k < 4; k++) memory_end(&queue->memory[k]);
}

static void queue_push(ring_t *queue, const void *packet, uint16_t header)
{
    uint64_t id = queue->written++;
    while (id - __atomic_load_n(&queue->shared->read_dispatch_id, __ATOMIC_ACQUIRE) >= PACKETS) {
        usleep(100);
    }
    uint8_t *slot = queue->ring + id % PACKETS * 64;
    memcpy(slot + 2, (const uint8_t *)packet + 2, 62);
    __atomic_store_n(&queue->shared->write_dispatch_id, id + 1, __ATOMIC_RELEASE);
    __atomic_store_n((uint16_t *)slot, header, __ATOMIC_RELEASE);
    __atomic_store_n(queue->doorbell, id, __ATOMIC_RELEASE);
}

static void queue_dispatch(ring_t *queue, const char *kernel, uint32_t groups,
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

static void queue_wait(ring_t *queue)
{
    while (__atomic_load_n(&queue->done->value, __ATOMIC_ACQUIRE) > 0) {
        event_await(queue->event, &(uint64_t){0}, 50);
    }
}

typedef struct {
    uint32_t *data;
    uint32_t count;
} add_one_t;

static void compute(uint64_t *state)
{
    ring_t queue = queue_make();
    memory_t memory = host_make(4096);
    uint32_t *data = (uint32_t *)memory.at;
    memset(data, 0, COUNT * 4);
    unsigned times = 1 + (unsigned)(random_next(state) % 8);
    for (unsigned k = 0; k < times; k++) {
        queue_dispatch(&queue, "add_one.kd", (COUNT + 63) / 64, &(add_one_t){data, COUNT},
                       sizeof(add_one_t), BARRIER);
    }
    queue_wait(&queue);
    for (unsigned n = 0; n < COUNT; n++) CHECK(data[n] == times);
    queue_finish(&queue);
    memory_end(&memory);
}

// A kernel waits for the one behind it; many others count beside them.
static void overlap(void)
{
    ring_t queue = queue_make();
    memory_t memory = host_make(4096);
    uint32_t *words = (uint32_t *)memory.at;
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
    queue_finish(&queue);
    memory_end(&memory);
}

// The queue ends in the middle of a kernel that would never.
static void abandon(void)
{
    ring_t queue = queue_make();
    memory_t memory = host_make(4096);
    uint32_t *words = (uint32_t *)memory.at;
    memset(words, 0, 4096);
    struct {
        uint32_t *flag;
        uint32_t spare;
    } answer = {words, 0};
    for (unsigned k = 0; k < 3; k++) {
        queue_dispatch(&queue, "answer.kd", 1, &answer, sizeof answer, 0);
    }
    while (!__atomic_load_n(words, __ATOMIC_ACQUIRE)) sched_yield();
    queue_finish(&queue);
    memory_end(&memory);
}

// A queue of a copy engine, and the word that its fences write.
typedef struct {
    memory_t ring, pointers, fence;
    uint64_t *doorbell, written;
    uint32_t id;
} copier_t;

static copier_t copier_make(void)
{
    enum { RING = 4096 };
    copier_t copier = {host_make(RING), host_make(4096), host_make(4096), NULL, 0, 0};
    kfd_create_queue_t wanted = {.ring_base_address = number(copier.ring.at),
                                 .ring_size = RING,
                                 .read_pointer_address = number(copier.pointers.at),
                                 .write_pointer_address = number(copier.pointers.at + 8),
                                 .gpu_id = GPU,
                                 .queue_type = KFD_QUEUE_SDMA,
                                 .queue_percentage = 100};
    memset(copier.pointers.at, 0, 16);
    ASK(CREATE_QUEUE, &wanted);
    copier.doorbell = doorbell_at(wanted.doorbell_offset);
    copier.id = wanted.queue_id;
    return copier;
}

static void copier_end(copier_t *copier)
{
    ASK(DESTROY_QUEUE, &((kfd_destroy_queue_t){copier->id, 0}));
    memory_end(&copier->ring);
    memory_end(&copier->pointers);
    memory_end(&copier->fence);
}

// Writes packets and rings the doorbell with where they end, or with more than that.
static void copier_push(copier_t *copier, const uint32_t *packets, unsigned words, uint64_t more)
{
    memcpy(copier->ring.at + copier->written, packets, 4 * words);
    copier->written += 4 * words;
    __atomic_store_n((uint64_t *)(copier->pointers.at + 8), copier->written, __ATOMIC_RELEASE);
    __atomic_store_n(copier->doorbell, copier->written + more, __ATOMIC_RELEASE);
}

static void copier_fence(copier_t *copier, uint64_t more)
{
    enum { FENCE = 5, DONE = 77 };
    uint32_t *there = (uint32_t *)copier->fence.at;
    const uint32_t last[4] = {FENCE, (uint32_t)number(there), (uint32_t)(number(there) >> 32),
                              DONE};
    *there = 0;
    copier_push(copier, last, 4, more);
    while (__atomic_load_n(there, __ATOMIC_ACQUIRE) != DONE) usleep(100);
}

// Runs packets of a copy engine to their end.
static void copy_run(const uint32_t *packets, unsigned words)
{
    copier_t copier = copier_make();
    copier_push(&copier, packets, words, 0);
    copier_fence(&copier, 0);
    copier_end(&copier);
}

// What was written to standard error since log_begin has a text.
static FILE *kept_log;

static void log_begin(void)
{
    kept_log = tmpfile();
    CHECK(kept_log && dup2(fileno(kept_log), STDERR_FILENO) == STDERR_FILENO);
}

static bool log_has(const char *text)
{
    char kept[4096] = "";
    CHECK(pread(fileno(kept_log), kept, sizeof kept - 1, 0) >= 0);
    return strstr(kept, text) != NULL;
}

// Doorbells of copy engines that are rung wrongly are told of.
static void copy_doorbells(void)
{
    const uint64_t half = (uint64_t)UINT32_MAX << 32;
    copier_t copier = copier_make();
    int saved = dup(STDERR_FILENO);
    log_begin();
    copier_fence(&copier, 0);
    CHECK(!log_has("sim:"));
    copier_fence(&copier, half);
    CHECK(log_has("rung with 0xffffffff00000020: half of it was written"));
    copier_fence(&copier, -4ull);
    CHECK(log_has("the packet at byte 32 has 16 bytes, of which the doorbell was rung for 12"));
    copier_fence(&copier, -2ull);
    CHECK(log_has("rung with 0x3e: packets end at multiples of 4"));
    copier_fence(&copier, 4);
    CHECK(log_has("rung with 0x54: the write index is only 80"));
    copier_end(&copier);
    fclose(kept_log);
    CHECK(dup2(saved, STDERR_FILENO) == STDERR_FILENO && close(saved) == 0);
}

static void copy_write(uint32_t packet[7], uint64_t from, uint64_t to, size_t size)
{
    enum { LINEAR = 1 };
    const uint32_t words[7] = {
        LINEAR,       (uint32_t)size - 1,  0, (uint32_t)from, (uint32_t)(from >> 32),
        (uint32_t)to, (uint32_t)(to >> 32)};
    memcpy(packet, words, sizeof words);
}

// Bytes of the host to the GPU's own memory and back.
static void copies(uint64_t *state)
{
    enum { SIZE = 65536 };
    memory_t from = host_make(SIZE), to = host_make(SIZE);
    memory_t device = memory_make(KFD_MEM_VRAM, SIZE);
    uint32_t packets[14];
    for (unsigned n = 0; n < SIZE; n++) from.at[n] = (uint8_t)random_next(state);
    copy_write(packets, number(from.at), number(device.at), SIZE);
    copy_write(packets + 7, number(device.at), number(to.at), SIZE);
    copy_run(packets, 14);
    CHECK(!memcmp(from.at, to.at, SIZE));
    memory_end(&from);
    memory_end(&to);
    memory_end(&device);
}

// A thread, and the event that it waits for or destroys.
typedef struct {
    uint32_t event;
    atomic_int number; // of the thread that waits; 0: it has not begun
} waiter_t;

static void *wait_main(void *argument)
{
    waiter_t *waiter = argument;
    atomic_store(&waiter->number, thread_number());
    while (!event_await(waiter->event, &(uint64_t){0}, 1000)) continue;
    return NULL;
}

// Two wait for the same event, and both wake up.
static void events(void)
{
    uint32_t event = event_make(true);
    waiter_t waiters[2] = {{.event = event}, {.event = event}};
    pthread_t threads[2];
    for (unsigned k = 0; k < 2; k++) {
        CHECK(!pthread_create(&threads[k], NULL, wait_main, &waiters[k]));
        while (!atomic_load(&waiters[k].number)) sched_yield();
        asleep(atomic_load(&waiters[k].number));
    }
    ASK(SET_EVENT, &((kfd_event_t){event, 0}));
    for (unsigned k = 0; k < 2; k++) CHECK(!pthread_join(threads[k], NULL));
    ASK(RESET_EVENT, &((kfd_event_t){event, 0}));
    CHECK(!event_await(event, &(uint64_t){0}, 0));
    event_end(event);
}

// Set before any thread waits, an event is that of the first that does; the next is not left
// asleep. With an age, the next sees that it was set.
static void event_taken(void)
{
    uint32_t event = event_make(false);
    uint64_t age = 1;
    CHECK(!event_await(event, &age, 0));
    ASK(SET_EVENT, &((kfd_event_t){event, 0}));
    CHECK(event_await(event, &(uint64_t){0}, UINT32_MAX));
    CHECK(!event_await(event, &(uint64_t){0}, UINT32_MAX));
    CHECK(event_await(event, &age, UINT32_MAX) && age == 2);
    CHECK(!event_await(event, &age, 0));
    event_end(event);
}

static void *destroy_main(void *argument)
{
    waiter_t *waiter = argument;
    asleep(atomic_load(&waiter->number));
    event_end(waiter->event);
    return NULL;
}

// A thread that waits for an event is told that it was destroyed, also when that was before.
static void event_destroyed(void)
{
    uint32_t event = event_make(false);
    kfd_event_data_t data = {.signal = {1}, .event_id = event};
    kfd_wait_events_t waited = {number(&data), 1, 0, UINT32_MAX, 0};
    pthread_t thread;
    waiter_t waiter = {event, thread_number()};
    CHECK(!pthread_create(&thread, NULL, destroy_main, &waiter));
    int result = REFUSED(WAIT_EVENTS, &waited);
    CHECK(!pthread_join(thread, NULL));
    CHECK(result == -EINVAL || (result == -EIO && waited.wait_result == KFD_WAIT_FAIL));
}

// Memory of the host that has another address on the devices.
static void registered(void)
{
    memory_t own = host_make(8192);
    uint8_t *other = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    kfd_alloc_memory_t alloc = {number(other), 8192, 0, number(own.at), GPU, KFD_MEM_USERPTR};
    ASK(ALLOC_MEMORY_OF_GPU, &alloc);
    memory_t alias = {other, 8192, alloc.handle};
    memory_map_gpu(&alias);
    uint32_t packets[7];
    memset(own.at, 1, 4096);
    copy_write(packets, number(other), number(other) + 4096, 4096);
    copy_run(packets, 7);
    CHECK(!memcmp(own.at, own.at + 4096, 4096));
    memory_end(&alias);
    memory_end(&own);
}

// Memory that is exported and placed at two other addresses, whole and in part.
static void placed(void)
{
    enum { SIZE = 16384 };
    kfd_alloc_memory_t alloc = {0, SIZE, 0, 0, GPU, KFD_MEM_VRAM};
    ASK(ALLOC_MEMORY_OF_GPU, &alloc);
    kfd_export_dmabuf_t exported = {alloc.handle, 0, 0};
    ASK(EXPORT_DMABUF, &exported);
    uint64_t handle, size, offset;
    CHECK(!memory_open((int)exported.dmabuf_fd, GPU - GPU_ID, &handle, &size) && size == SIZE);
    kfd_dmabuf_info_t info = {.dmabuf_fd = exported.dmabuf_fd};
    ASK(GET_DMABUF_INFO, &info);
    CHECK(info.size == SIZE && info.gpu_id == GPU && info.flags == KFD_MEM_VRAM);
    close((int)exported.dmabuf_fd);
    ASK(FREE_MEMORY_OF_GPU, &((kfd_free_memory_t){alloc.handle})); // and the bytes stay
    CHECK(!memory_offset(handle, &offset));
    uint8_t *seen =
        mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memory_file(), (off_t)offset);
    uint8_t *room = mmap(NULL, 2 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(seen != MAP_FAILED && seen[SIZE - 1] == 0xdb);
    memset(seen, 3, SIZE / 2);
    CHECK(!memory_place(handle, 0, SIZE, number(room)));
    CHECK(!memory_place(handle, SIZE / 2, SIZE / 2, number(room) + SIZE));
    CHECK(memory_place(handle, SIZE / 2, SIZE, number(room) + 4 * SIZE) == -EINVAL);
    uint32_t packets[7];
    copy_write(packets, number(room), number(room) + SIZE, SIZE / 2);
    copy_run(packets, 7);
    CHECK(!memcmp(seen, seen + SIZE / 2, SIZE / 2));
    CHECK(!memory_unplace(handle, number(room)));
    CHECK(memory_unplace(handle, number(room)) == -EINVAL);
    ASK(FREE_MEMORY_OF_GPU, &((kfd_free_memory_t){handle})); // with what is placed of it
    CHECK(!map_bytes(number(room) + SIZE, 1, GPU - GPU_ID));
    munmap(seen, SIZE);
    munmap(room, 2 * SIZE);
}

static void clocks(void)
{
    kfd_clock_counters_t clocks = {.gpu_id = GPU};
    ASK(GET_CLOCK_COUNTERS, &clocks);
    CHECK(clocks.gpu_clock_counter && clocks.system_clock_freq == 1000000000);
}

static void *thread_main(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    for (unsigned k = 0; k < ROUNDS; k++) {
        switch (random_next(&state) % 9) {
        case 0: overlap(); break;
        case 1: abandon(); break;
        case 2: copies(&state); break;
        case 3: events(); break;
        case 4: event_taken(); break;
        case 5: registered(); break;
        case 6: placed(); break;
        case 7: clocks(); break;
        default: compute(&state); break;
        }
    }
    return NULL;
}

static uint64_t available(void)
{
    kfd_available_memory_t room = {.gpu_id = GPU};
    ASK(AVAILABLE_MEMORY, &room);
    return room.available;
}

// A GPU has so much memory and no more.
static void exhausted(void)
{
    enum { SIZE = 1 << 20 };
    uint64_t before = available();
    memory_t some = memory_make(KFD_MEM_VRAM, SIZE);
    kfd_alloc_memory_t alloc = {0, before, 0, 0, GPU, KFD_MEM_VRAM};
    CHECK(available() == before - SIZE);
    CHECK(REFUSED(ALLOC_MEMORY_OF_GPU, &alloc) == -ENOMEM);
    memory_end(&some);
    CHECK(REFUSED(FREE_MEMORY_OF_GPU, &((kfd_free_memory_t){some.handle})) == -EINVAL);
    CHECK(available() == before);
}

// What is wrong is refused with the error of the kernel.
static void refusals(void)
{
    kfd_version_t version = {0};
    kfd_alloc_memory_t alloc = {4096, 4096, 0, 0, GPU + 1, KFD_MEM_VRAM};
    kfd_create_queue_t queue = {.gpu_id = GPU, .queue_type = KFD_QUEUE_AQL, .ring_size = 4096};
    kfd_event_data_t data = {.event_id = EVENT_MAX - 1};
    kfd_wait_events_t waited = {number(&data), 1, 0, 0, 0};
    ASK(GET_VERSION, &version);
    CHECK(version.major_version == 1 && version.minor_version >= 15);
    CHECK(REFUSED(ALLOC_MEMORY_OF_GPU, &alloc) == -EINVAL); // no such GPU
    alloc.gpu_id = GPU;
    alloc.flags = KFD_MEM_EXECUTABLE; // of no kind
    CHECK(REFUSED(ALLOC_MEMORY_OF_GPU, &alloc) == -EINVAL);
    CHECK(REFUSED(CREATE_QUEUE, &queue) == -EINVAL); // without memory
    queue.ring_size = 4097;
    CHECK(REFUSED(CREATE_QUEUE, &queue) == -EINVAL);
    CHECK(REFUSED(DESTROY_QUEUE, &((kfd_destroy_queue_t){1000, 0})) == -EINVAL);
    CHECK(REFUSED(UPDATE_QUEUE, &((kfd_update_queue_t){.queue_id = 1000})) == -EFAULT);
    CHECK(REFUSED(SET_EVENT, &((kfd_event_t){EVENT_MAX, 0})) == -EINVAL);
    CHECK(REFUSED(WAIT_EVENTS, &waited) == -EINVAL);
    CHECK(REFUSED(SET_XNACK_MODE, &((kfd_xnack_mode_t){1})) == -EPERM);
    CHECK(REFUSED(EXPORT_DMABUF, &((kfd_export_dmabuf_t){12345, 0, 0})) == -EINVAL);
    CHECK(REFUSED(IMPORT_DMABUF, &((kfd_import_dmabuf_t){.gpu_id = GPU})) == -EINVAL);
    CHECK(kfd_request(KFD_SVM, &alloc, 24) == -EPERM);
    CHECK(REFUSED(ALLOC_QUEUE_GWS, &((kfd_gws_t){.queue_id = 1000, .num_gws = 1})) == -EINVAL);
    CHECK(REFUSED(SET_CU_MASK, &((kfd_cu_mask_t){1000, 31, number(&(uint32_t){1})})) == -EINVAL);
    CHECK(REFUSED(SET_CU_MASK, &((kfd_cu_mask_t){1000, 32, number(&(uint32_t){1})})) == -EFAULT);
    CHECK(kfd_request(0x7f, NULL, 0) == -EINVAL);
}

// Large memory of a GPU is filled where it is touched; who is given all of it sees it filled.
static void filled(void)
{
    enum { SIZE = 8 << 20 };
    memory_t device = memory_make(KFD_MEM_VRAM, SIZE);
    kfd_export_dmabuf_t exported = {device.handle, 0, 0};
    uint64_t handle, size, offset = 0;
    uint8_t *end = map_bytes(number(device.at) + SIZE - 1, 1, GPU - GPU_ID);
    CHECK(end && *end == 0xdb && end[1 - SIZE] == 0);
    *end = 5;
    ASK(EXPORT_DMABUF, &exported);
    CHECK(!memory_open((int)exported.dmabuf_fd, GPU - GPU_ID, &handle, &size) && size == SIZE);
    CHECK(!close((int)exported.dmabuf_fd) && !memory_offset(handle, &offset));
    uint8_t *seen = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, memory_file(), (off_t)offset);
    CHECK(seen != MAP_FAILED && seen[0] == 0xdb && !memcmp(seen, seen + 1, SIZE - 2));
    CHECK(seen[SIZE - 1] == 5);
    munmap(seen, SIZE);
    ASK(FREE_MEMORY_OF_GPU, &((kfd_free_memory_t){handle}));
    memory_end(&device);
}

// A queue runs on those compute units that it is told, if its GPU has any of them.
static void units(void)
{
    ring_t queue = queue_make();
    const uint32_t none[] = {16}, behind[] = {0, 1}, one[] = {8};
    CHECK(REFUSED(SET_CU_MASK, &((kfd_cu_mask_t){queue.id, 32, number(none)})) == -EINVAL);
    CHECK(REFUSED(SET_CU_MASK, &((kfd_cu_mask_t){queue.id, 64, number(behind)})) == -EINVAL);
    ASK(SET_CU_MASK, &((kfd_cu_mask_t){queue.id, 32, number(one)}));
    queue_finish(&queue);
}

// Callers of other times have shorter arguments, or longer ones.
static void sizes(void)
{
    struct {
        kfd_version_t version;
        uint32_t more[64];
    } longer = {.more = {7}};
    uint32_t half[2] = {0, 7};
    CHECK(!kfd_request(KFD_GET_VERSION, &longer, sizeof longer) && longer.more[0] == 7);
    CHECK(longer.version.major_version == 1);
    CHECK(!kfd_request(KFD_GET_VERSION, half, 4) && half[0] == 1 && half[1] == 7);
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    if (argc != 2) return 2;
    alarm(240);
    CHECK(gpu_count() == 1 && doorbell_bytes());
    module = module_load(argv[1]);
    refusals();
    sizes();
    units();
    filled();
    exhausted();
    copy_doorbells();
    for (unsigned k = 0; k < 20; k++) event_destroyed();
    for (uintptr_t k = 0; k < THREADS; k++) {
        CHECK(!pthread_create(&threads[k], NULL, thread_main, (void *)(k + 1)));
    }
    for (unsigned k = 0; k < THREADS; k++) CHECK(!pthread_join(threads[k], NULL));
    module_unload(&module);
    printf("done\n");
    return 0;
}
