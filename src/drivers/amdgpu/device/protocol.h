// SPDX-License-Identifier: Apache-2.0
// What host and GPU share of the scheduler: structs in memory of the host that both read and write,
// and what may be done with their words. docs/amdgpu.md has the protocol and its memory orders.
// Compiled for both; addresses are numbers, as the two have pointers of their own.
#ifndef KEEL_SRC_DRIVERS_AMDGPU_DEVICE_PROTOCOL_H_
#define KEEL_SRC_DRIVERS_AMDGPU_DEVICE_PROTOCOL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROTOCOL_LINE = 64 }; // bytes of a cache line

#define PROTOCOL_FAILED (UINT64_C(1) << 63) // in cell_t.value: it stands still

// A semaphore. Records of several GPUs may wait for it: each scheduler has its side of the cell.
typedef struct cell_t {
    uint64_t value;   // and PROTOCOL_FAILED
    uint64_t cause;   // a number of the host's, written before the bit
    uint64_t awaited; // the host is to be told when the value is that high
    uint64_t sides;   // cell_side_t [side_count]
    uint32_t side_count;
    uint32_t unused;
} cell_t;

// Of a cell, what a scheduler keeps. All of it stays when the cell becomes another semaphore's.
typedef struct cell_side_t {
    uint64_t cell, scheduler; // cell_t, scheduler_t
    uint64_t wanted;          // the least that a record waits for; PROTOCOL_NOBODY: there is none
    uint64_t next;            // cell_side_t: in scheduler_t.changed
    uint32_t changed;         // it is there
    uint32_t unused;
    uint64_t waiters, last; // wait_t: the first and the last that wait; the tick's own
} cell_side_t;

#define PROTOCOL_NOBODY UINT64_MAX // in cell_side_t.wanted; and in cell_t.awaited

// What a record waits for.
typedef struct wait_t {
    uint64_t side; // cell_side_t: that of the record's scheduler
    uint64_t value;
    uint64_t self, record;   // wait_t, record_t
    uint64_t next, previous; // wait_t: among those of the cell; the tick's own
    uint64_t linked;         // it is there
} wait_t;

typedef struct cell_point_t {
    uint64_t cell; // cell_t
    uint64_t value;
} cell_point_t;

typedef struct packet_t {
    _Alignas(PROTOCOL_LINE) uint32_t words[16];
} packet_t;

// Of a packet; arguments are written in units of it, too.
typedef uint32_t quarter_t __attribute__((vector_size(16), may_alias));

_Static_assert(sizeof(packet_t) == PROTOCOL_LINE, "a packet is a cache line");

typedef struct record_list_t {
    uint64_t first, last; // record_t
} record_list_t;

// A queue of HSA's, as who writes packets needs it.
typedef struct ring_queue_t {
    uint64_t packets;  // packet_t [mask + 1]
    uint64_t mask;     //
    uint64_t write;    // uint64_t: where its write index is
    uint64_t doorbell; // uint64_t: where its doorbell is
    uint64_t advances; // advance_args_t [mask + 1]: of the packet with that number
    uint32_t used;     // packets that the scheduler has in there
    uint32_t room;     // it may have so many
    // The tick's own.
    record_list_t starved; // for room in it
    uint64_t next;         // ring_queue_t: in a list of those for which some starve
} ring_queue_t;

// What keel_advance gets. They lie with the queue: a record may be the host's again while the
// kernel that has ended it still runs. Who writes those of a packet knows that the one which had
// its place in the ring before is over.
typedef struct advance_args_t {
    uint64_t record; // record_t
    uint64_t unused;
} advance_args_t;

// Why a record cannot go on, as a command of it says: in the upper half of record_t.fault, above
// the command's offset.
typedef enum fault_kind_t {
    FAULT_COUNTS = 1, // too many groups: fault_counts
    FAULT_RANGE,      // of a fill or a copy
    FAULT_LOOP,       // it has run as often as it may
    FAULT_MISSING,  // a buffer has no memory: in place of the offset, its number in record_t.lates
    FAULT_GRANTED,  // a buffer that is to get memory has some: its number in record_t.grants
    FAULT_RETURNED, // one has none to give back: its number in record_t.returns
} fault_kind_t;

// What a record asks the host for, besides its end.
typedef enum request_t {
    REQUEST_NONE,
    REQUEST_WORK,    // to do the work, and to signal: the waits are over, and nothing of it has run
    REQUEST_SIGNALS, // behind its end: to signal semaphores that are not the device's
} request_t;

// A buffer of a pool that the record refers to. Where it lies is known when the waits are over.
typedef struct late_t {
    uint64_t word;  // uint64_t: the address, which its alloca has written; 0: it has no memory
    uint64_t entry; // table_entry_t (program.h): the address is added to that which is there
    uint64_t user;  // the host's
    uint32_t step, offset; // that the host blames if it has no memory
} late_t;

enum { RECORD_LOOPS = 16 };

// A submission: programs (program.h) that run one after the other, in a number of packets that is
// the record's until it ends.
typedef struct record_t {
    // In the list scheduler_t.done it is a request to the host, which reads its first cache line
    // and nothing else.
    _Alignas(PROTOCOL_LINE) uint64_t next; // record_t: in the list that it is in
    // Its end:
    uint64_t user;  // the host's
    uint64_t cause; // why it failed; 0: it has not
    uint64_t fault; // why it cannot go on: then the host fails it; 0: it can
    uint32_t fault_counts[3];
    uint32_t refused;       // the first signal that was out of order, and 1; 0: none
    uint32_t step, segment; // where it is
    uint32_t request;       // request_t; the GPU may make it REQUEST_WORK
    // The rest is the scheduler's.
    uint64_t scheduler, self; // scheduler_t, record_t
    uint64_t previous;        // record_t: in a list of the tick's, in front of it
    uint64_t queue;           // ring_queue_t
    uint64_t waits;           // wait_t [wait_count]
    uint64_t signals;         // cell_point_t [signal_count]
    uint64_t steps;           // step_t [step_count]
    uint64_t lates;           // late_t [late_count]
    uint64_t arguments;       // room for those of kernels
    uint32_t step_count;      //
    uint32_t room;            // packets
    uint32_t wait_count, signal_count;
    uint32_t late_count;
    uint32_t grant_count, return_count, need_count;
    uint64_t shelf, side;     // shelf_t, shelf_side_t (shelf.h): of the blocks; 0: it needs none
    uint64_t needs;           // shelf_need_t [need_count]: the blocks for `grants`, by bins
    uint64_t grants, returns; // handle_t: those that get a block first, and that give it back last
    uint32_t lacks;           // it is counted among those that wait for blocks
    uint32_t unmet;           // waits that are not over
    uint32_t entered;         // the packets of the segment were issued
    uint32_t unused;          //
    uint64_t cancel;          // the host's: the cause; 0: go on
    // Of the step.
    uint32_t loops[RECORD_LOOPS]; // rounds so far, of each depth
    uint32_t issue_args[11];      // of keel_issue: issue_args_t, at the first 16 bytes boundary
} record_t;

_Static_assert(offsetof(record_t, request) < PROTOCOL_LINE, "a request is a cache line");

// One of a GPU. Those of a device wake each other.
typedef struct scheduler_t {
    uint64_t inbox;                 // record_t: those that came, newest first
    uint64_t done;                  // record_t: those that have ended, newest first
    uint64_t changed;               // cell_side_t: those that a tick is to look at, newest first
    uint32_t live;                  // records that have not
    uint32_t ticking;               // a tick is on its way that has not begun
    uint32_t telling;               // the host is told, and has not looked yet
    uint32_t cancels;               // the host has cancelled some that wait
    uint32_t starving;              // records may wait for room in their queues
    uint32_t unused;                //
    uint64_t trace;                 // trace_ring_t (ring.h); 0: nothing is traced
    packet_t tick;                  // keel_tick's, for the control queue
    packet_t tell;                  // a barrier's whose signal wakes the host
    packet_t advance, issue, patch; // of the kernels of these names, for queues
    ring_queue_t control;
    // The tick's own, one at a time.
    record_list_t waiting; // for cells
    record_list_t lacking; // blocks; and those whose waits have ended in this tick
    uint64_t full;         // ring_queue_t: those for whose room records starve
    // Counted, for who wants to know.
    uint64_t ticks, issued, told;
    uint64_t looks; // of ticks at waits
} scheduler_t;

_Static_assert(offsetof(scheduler_t, tick) == PROTOCOL_LINE,
               "what the host looks at is a cache line");

typedef struct scheduler_args_t {
    uint64_t scheduler; // scheduler_t
} scheduler_args_t;

// PROTOCOL_: words that the host or another GPU reads or writes, too: at system scope. AGENT_:
// words of which only kernels of one GPU know. What the system must see costs a write-back of the
// whole L2, or drops what is in it. On the host a compiler has no scopes.
#ifdef PROTOCOL_LOAD // a test has its own
#elif defined(__AMDGCN__)
#define PROTOCOL_AT(type, address) ((type *)(__attribute__((address_space(1))) type *)(address))
#define PROTOCOL_LOAD(p, order)    __scoped_atomic_load_n((p), (order), __MEMORY_SCOPE_SYSTEM)
#define PROTOCOL_STORE(p, v, order)                                                                \
    __scoped_atomic_store_n((p), (v), (order), __MEMORY_SCOPE_SYSTEM)
#define PROTOCOL_SWAP(p, v, order)                                                                 \
    __scoped_atomic_exchange_n((p), (v), (order), __MEMORY_SCOPE_SYSTEM)
#define PROTOCOL_ADD(p, v, order)                                                                  \
    __scoped_atomic_fetch_add((p), (v), (order), __MEMORY_SCOPE_SYSTEM)
#define PROTOCOL_MOST(p, v)                                                                        \
    __scoped_atomic_fetch_max((p), (v), __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM)
#define PROTOCOL_CAS(p, old, v)                                                                    \
    __scoped_atomic_compare_exchange_n((p), (old), (v), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE, \
                                       __MEMORY_SCOPE_SYSTEM)
#define PROTOCOL_FENCE()         __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "")
#define PROTOCOL_SENT()          ((void)0)
#define AGENT_LOAD(p, order)     __scoped_atomic_load_n((p), (order), __MEMORY_SCOPE_DEVICE)
#define AGENT_STORE(p, v, order) __scoped_atomic_store_n((p), (v), (order), __MEMORY_SCOPE_DEVICE)
#define AGENT_ADD(p, v, order)   __scoped_atomic_fetch_add((p), (v), (order), __MEMORY_SCOPE_DEVICE)
#define AGENT_CAS(p, old, v)                                                                       \
    __scoped_atomic_compare_exchange_n((p), (old), (v), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE, \
                                       __MEMORY_SCOPE_DEVICE)
#define AGENT_FENCE() __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent")
// A release for the packet processor of the same GPU. What was written before need only be visible
// to that GPU. The word itself goes to memory, which may be the host's, or is a doorbell.
#define AGENT_SEND(p, v)                                                                           \
    (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent"), PROTOCOL_STORE((p), (v), __ATOMIC_RELAXED))
#else
#define PROTOCOL_AT(type, address)  ((type *)(uintptr_t)(address))
#define PROTOCOL_LOAD(p, order)     __atomic_load_n((p), (order))
#define PROTOCOL_STORE(p, v, order) __atomic_store_n((p), (v), (order))
#define PROTOCOL_SWAP(p, v, order)  __atomic_exchange_n((p), (v), (order))
#define PROTOCOL_ADD(p, v, order)   __atomic_fetch_add((p), (v), (order))
#define PROTOCOL_MOST(p, v)         protocol_most((p), (v))
#define PROTOCOL_CAS(p, old, v)                                                                    \
    __atomic_compare_exchange_n((p), (old), (v), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#define PROTOCOL_FENCE() __atomic_thread_fence(__ATOMIC_SEQ_CST)
// Where a ring is in a GPU's memory the processor may combine writes, and send a header before the
// rest: no release keeps it from that.
#define PROTOCOL_SENT()  __atomic_thread_fence(__ATOMIC_SEQ_CST)
static inline void protocol_most(uint64_t *p, uint64_t value)
{
    uint64_t old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (value > old && !PROTOCOL_CAS(p, &old, value)) {
    }
}
#endif
#ifndef __AMDGCN__
#define AGENT_LOAD(p, order)     PROTOCOL_LOAD(p, order)
#define AGENT_STORE(p, v, order) PROTOCOL_STORE(p, v, order)
#define AGENT_ADD(p, v, order)   PROTOCOL_ADD(p, v, order)
#define AGENT_CAS(p, old, v)     PROTOCOL_CAS(p, old, v)
#define AGENT_FENCE()            PROTOCOL_FENCE()
#define AGENT_SEND(p, v)         PROTOCOL_STORE(p, v, __ATOMIC_RELEASE)
#endif

// Puts a record on a list that others take as a whole.
static inline void record_push(uint64_t *list, record_t *record)
{
    uint64_t first = PROTOCOL_LOAD(list, __ATOMIC_RELAXED);
    do {
        PROTOCOL_STORE(&record->next, first, __ATOMIC_RELAXED);
        // release: pairs with the acquire of records_take; the record was written before.
    } while (!PROTOCOL_CAS(list, &first, record->self));
}

// Takes all, the oldest first.
static inline uint64_t records_take(uint64_t *list)
{
    uint64_t oldest = 0;
    // acquire: pairs with record_push.
    uint64_t at = PROTOCOL_SWAP(list, 0, __ATOMIC_ACQUIRE);
    while (at) {
        record_t *record = PROTOCOL_AT(record_t, at);
        uint64_t next = record->next;
        record->next = oldest;
        oldest = at;
        at = next;
    }
    return oldest;
}

// Raises a cell. False: it has failed, or the value is not larger.
static inline bool cell_signal(cell_t *cell, uint64_t value)
{
    uint64_t old = PROTOCOL_LOAD(&cell->value, __ATOMIC_RELAXED);
    do {
        if (value <= old) return false; // the bit of a failed one is above all values
        // release: pairs with the acquire of who waits, on the GPU and on the host.
    } while (!PROTOCOL_CAS(&cell->value, &old, value));
    return true;
}

// The first cause stays.
static inline void cell_fail(cell_t *cell, uint64_t cause)
{
    uint64_t none = 0, old;
    PROTOCOL_CAS(&cell->cause, &none, cause);
    old = PROTOCOL_LOAD(&cell->value, __ATOMIC_RELAXED);
    // release: pairs with the acquire of who reads the cause when it has seen the bit.
    while (!(old & PROTOCOL_FAILED) && !PROTOCOL_CAS(&cell->value, &old, old | PROTOCOL_FAILED)) {
    }
}

// All but the header, which is invalid until the rest is there: the packet processor looks at it.
static inline void packet_copy(packet_t *at, const packet_t *from)
{
    quarter_t *to = (quarter_t *)(void *)at;
    const quarter_t *quarters = (const quarter_t *)(const void *)from;
    quarter_t head = quarters[0], grid = quarters[1], middle = quarters[2], tail = quarters[3];
    for (int i = 1; i < 4; i++) at->words[i] = head[i];
    to[1] = grid;
    to[2] = middle;
    to[3] = tail;
}

// Writes a packet into a queue that several write into, and rings for it.
static inline void packet_put(const ring_queue_t *queue, const packet_t *packet)
{
    // relaxed: the number is all that is wanted of it.
    uint64_t number = PROTOCOL_ADD(PROTOCOL_AT(uint64_t, queue->write), 1, __ATOMIC_RELAXED);
    packet_t *at = PROTOCOL_AT(packet_t, queue->packets) + (number & queue->mask);
    packet_copy(at, packet);
    PROTOCOL_SENT();
    // release: pairs with the packet processor, which reads the rest when the header is valid.
    PROTOCOL_STORE(&at->words[0], packet->words[0], __ATOMIC_RELEASE);
    PROTOCOL_STORE(PROTOCOL_AT(uint64_t, queue->doorbell), number, __ATOMIC_RELEASE);
}

// Something has changed that a tick is to look at. At most one is on its way, so the control queue
// has always room.
static inline void tick_ask(scheduler_t *s)
{
    // acq_rel: pairs with the swap that a tick begins with. Either this sees 0 and sends a tick, or
    // the tick that is on its way sees what was written before.
    if (!PROTOCOL_SWAP(&s->ticking, 1, __ATOMIC_ACQ_REL)) packet_put(&s->control, &s->tick);
}

// Tells the host that there is something for it, unless that is on its way.
static inline void host_tell(scheduler_t *s)
{
    // acq_rel: pairs with the host's, which clears it and then looks.
    if (PROTOCOL_SWAP(&s->telling, 1, __ATOMIC_ACQ_REL)) return;
    AGENT_ADD(&s->told, 1, __ATOMIC_RELAXED);
    packet_put(&s->control, &s->tell);
}

// Has the next tick of its scheduler look at the cell.
static inline void side_touch(cell_side_t *side)
{
    scheduler_t *s = PROTOCOL_AT(scheduler_t, side->scheduler);
    // acq_rel: pairs with the tick's, which clears it and then looks at the value.
    if (PROTOCOL_SWAP(&side->changed, 1, __ATOMIC_ACQ_REL)) return;
    uint64_t first = PROTOCOL_LOAD(&s->changed, __ATOMIC_RELAXED);
    do {
        PROTOCOL_STORE(&side->next, first, __ATOMIC_RELAXED);
        // release: pairs with the acquire of who takes the list.
    } while (!PROTOCOL_CAS(&s->changed, &first, (uintptr_t)side));
}

// The value of a cell has changed: schedulers whose records wait for it look, on this GPU and on
// others.
static inline void cell_wake(cell_t *cell)
{
    cell_side_t *sides = PROTOCOL_AT(cell_side_t, cell->sides);
    // seq_cst: pairs with a tick's, between its write of `wanted` and its look at the value. Either
    // this sees who waits, or they see the value. What the host waits for is the same.
    PROTOCOL_FENCE();
    // The bit of a failed one is above all that is wanted, but for PROTOCOL_NOBODY.
    uint64_t value = PROTOCOL_LOAD(&cell->value, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < cell->side_count; i++) {
        if (PROTOCOL_LOAD(&sides[i].wanted, __ATOMIC_RELAXED) > value) continue;
        side_touch(&sides[i]);
        tick_ask(PROTOCOL_AT(scheduler_t, sides[i].scheduler));
    }
}

#endif
