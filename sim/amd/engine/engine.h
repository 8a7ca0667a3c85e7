// SPDX-License-Identifier: Apache-2.0
// The devices: queues, packets, events. Any thread may call any of it.
#ifndef SIM_AMD_ENGINE_ENGINE_H_
#define SIM_AMD_ENGINE_ENGINE_H_

#define LITTLEENDIAN_CPU 1 // <hsa/hsa.h> knows no aarch64
#include <stdatomic.h>

#include <hsa/hsa.h>

#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>

#include "amd/base.h"
#include "amd/isa/units.h"
#include "amd/map.h"
#include "amd/wait.h"

enum { NODE_CPU = 0, NODE_FIRST_GPU = 1, GPU_MAX = 8 };

// The GPUs of this process, from KEEL_SIM_GPUS; read once.
unsigned gpu_count(void);
gfx_t gpu_gfx(unsigned node);

// Where its clock stands.
static inline uint64_t gpu_ticks(unsigned node)
{
    return gfx_ticks(gpu_gfx(node), clock_ns());
}
bool gpu_is(unsigned node);

// A bit for every GPU.
static inline uint64_t gpu_nodes(void)
{
    return ((1ull << gpu_count()) - 1) << NODE_FIRST_GPU;
}

// Events: flags that threads wait on, by their numbers. 0 is none.
enum { EVENT_MAX = 4096 };
typedef enum { EVENT_SIGNAL, EVENT_MEMORY, EVENT_OTHER } event_kind_t;

// One of the events that a thread waits for.
typedef struct {
    uint32_t id;
    uint64_t age;      // not 0: as it was when the thread last looked; another one ends the wait
    event_kind_t kind; // out
    bool activated;    // out: this one ended the wait, or would have
    bool fault;        // out: and there was an access to memory that is not there
    unsigned node;     // of that access
    uint64_t address;
} event_wait_t;

typedef enum { WAIT_DONE, WAIT_TIMEOUT, WAIT_FAILED, WAIT_UNKNOWN } wait_result_t;

// The number of a new event; 0 when there are too many.
uint32_t event_create(event_kind_t kind, bool manual);

// Each false when there is no such event.
bool event_destroy(uint32_t id);
bool event_set(uint32_t id);
bool event_reset(uint32_t id);
bool event_known(uint32_t id);

// Waits for one event or all. WAIT_UNKNOWN when one of them is none, WAIT_FAILED when one is
// destroyed meanwhile. With UINT32_MAX milliseconds it waits without an end; but a wait without
// ages, and in strict mode any, may end early with WAIT_TIMEOUT; the caller looks at what it waits
// for and waits again.
wait_result_t event_wait(event_wait_t *events, unsigned count, bool all, uint32_t milliseconds);

// Reports threads that stopped waiting before a time, have not come back, and whose event has not
// come: what they waited for happened without it. A GPU's driver would let them sleep.
void event_watch(uint64_t before);

// Sets an event as an interrupt of the device does.
void event_interrupt(uint32_t id);

// Tells the runtime of an access to memory that a node may not touch. False when it does not
// listen.
bool event_memory_fault(unsigned node, uint64_t address);

// Grows whenever code may have changed, so that queues forget what they decoded.
extern _Atomic uint64_t code_generation;

enum { PACKET_SIZE = 64, KERNARG_WATCHED = 4096 };

// What a packet in flight looked like when it was first seen. None of it may change until it is
// over (strict.h).
typedef struct {
    const void *at; // in the ring; NULL: none
    uint8_t body[PACKET_SIZE];
    int64_t signal_kind; // of its completion signal, and where that sends interrupts
    uint64_t signal_mailbox;
    uint32_t signal_event;
    size_t kernarg_size; // as far as it is kept
    uint8_t kernarg[KERNARG_WATCHED];
} watched_t;

typedef enum { QUEUE_COMPUTE, QUEUE_COPY } queue_kind_t;

// What a queue works on. The memory is borrowed until the queue ends.
typedef struct {
    unsigned node;
    queue_kind_t kind;
    int priority; // higher ones run first
    uint8_t *ring;
    uint64_t size;                      // of the ring, in bytes
    uint64_t *read_index, *write_index; // of a compute queue: those in its amd_queue_t
} queue_want_t;

// Starts a queue; its number, or 0 when there are too many or memory is short.
uint32_t queue_begin(const queue_want_t *want);

// Ends a queue, whatever it does; false when there is none of that number.
bool queue_end(uint32_t id);

// Says which compute units a queue may use, for dispatches that begin from now on. 0, or the error
// of the kernel: there is no such queue, or its GPU has none of these units.
int queue_mask(uint32_t id, uint64_t mask);

// Gives a queue another priority; false when there is none of that number.
bool queue_priority(uint32_t id, int priority);

// Gives a queue the barriers of its GPU. 0, or the error of the kernel: there is no such queue, or
// another has them.
int queue_gws(uint32_t id);

// The doorbells of all queues, 8 bytes for each by its number, as a file that can be mapped, and
// where they are. -1 and NULL when memory is short.
enum { QUEUE_MAX = 1024, DOORBELL_BYTES = QUEUE_MAX * 8 };
int doorbell_file(void);
uint8_t *doorbell_bytes(void);

// Each forgets everything, in a process that was forked off another: the threads are the other's,
// and may have held locks.
void queue_forget(void);
void event_forget(void);
void watchdog_forget(void);
void seat_forget(void);

// A queue's place among those that run; seats.c has the rules.
typedef struct {
    struct queue *next; // of the same node
    bool taken, waiting;
    atomic_bool asked; // to leave it
    uint64_t since;    // clock_ns when it was taken, or when the wait for it began
    unsigned riders;   // threads that run waves
    int priority;
} seat_t;

typedef struct queue {
    uint64_t id;
    unsigned node;
    uint8_t *ring;                                 // borrowed
    uint64_t size;                                 // of the ring, in bytes
    uint64_t *doorbell, *read_index, *write_index; // borrowed
    amd_queue_t *shared;                           // borrowed; NULL for a copy engine
    struct processor *processor;                   // owned; of packets; NULL for a copy engine
    seat_t seat;
    bell_t bell;            // rung when it shall stop
    atomic_bool gws;        // it is for cooperative launches
    _Atomic uint64_t units; // bit n: it may use compute unit n; 0: all
    atomic_bool stop;
    atomic_bool failed;             // it has reported an error
    _Atomic uint64_t waiting;       // the next packet, which has been there
    _Atomic uint64_t waiting_since; // since then (clock_ns; 0: it is not there)
    atomic_bool waiting_rung;       // and the doorbell was rung
    uint64_t reported;              // by the watchdog, under the lock of queues
    watched_t watched;              // the packet that waits
} queue_t;

// Makes a queue known to those that share the GPU, and the end of that.
void seat_add(queue_t *queue);
void seat_remove(queue_t *queue);

// Waits until the queue may run, or shall stop.
void seat_take(queue_t *queue);

// The same for a thread that runs waves of it, which calls seat_leave when it stops to.
void seat_enter(queue_t *queue);
void seat_leave(queue_t *queue);

// Gives the place up if no thread runs waves.
void seat_give(queue_t *queue);
void seat_priority(queue_t *queue, int priority);

// The engines: they run until the queue is told to stop.
bool aql_create(queue_t *queue);
void aql_run(queue_t *queue);
void aql_destroy(queue_t *queue);
void sdma_run(queue_t *queue);

// Reports packets that have run, or waited, since before a time. why is NULL unless it is known.
typedef void watch_fn(const queue_t *queue, uint64_t packet, uint64_t since, const char *why);
void aql_watch(const queue_t *queue, uint64_t before, watch_fn *report);

// Calls a function for every queue, which none of them ends meanwhile.
void queue_each(void (*visit)(queue_t *queue));

// An interpreter for dispatches of the queue; NULL when memory is short. meanwhile may be NULL.
isa_t *queue_isa(queue_t *queue, void (*meanwhile)(void *queue));

// Starts the thread that reports packets that do not end, unless it runs.
void watchdog_start(void);

// Has accesses of the host to memory of a GPU reported before they kill it, once.
void guard_start(void);

// What a GPU's memory is at an address that the host may not touch; false when there is none.
bool memory_is_hidden(uint64_t address, unsigned *out_node);

// Waits a little for what comes without notice, or until the bell rings, which is the queue's own
// or memory_bell. True when the queue shall stop.
bool queue_idle(queue_t *queue, bell_t *bell, patience_t *patience);

// Reports an error to the runtime and, with what the packet is, to people, and waits for the
// queue's end.
void queue_fail(queue_t *queue, const char *packet, uint64_t error);

// Reports a memory fault and waits for the queue's end.
void queue_memory_fault(queue_t *queue, uint64_t address);

// What the runtime's error handler understands.
enum {
    QUEUE_ERROR_DIMENSIONS = 2,
    QUEUE_ERROR_GROUP_MEMORY = 4,
    QUEUE_ERROR_CODE = 8,
    QUEUE_ERROR_PACKET = 32,
    QUEUE_ERROR_GROUP_SIZE = 64,
    QUEUE_ERROR_VENDOR_PACKET = 256,
    QUEUE_ERROR_APERTURE = 0x20000000,
    QUEUE_ERROR_INSTRUCTION = 0x40000000,
};
#define QUEUE_ERROR_TRAP 0x80000000u

#endif
