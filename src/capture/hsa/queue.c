// SPDX-License-Identifier: Apache-2.0
// A dispatch gets a completion signal of this library's, which has its times. If it has one of the
// application's, that is moved to a barrier packet after it, so that the GPU completes it without
// the host. The packet waits for everything before it. So did the dispatch, by its barrier bit.
//
// A dispatch without that bit may run beside those before and after it, which a barrier packet
// between them would prevent. So it keeps its signal, and watch.h has its times. So does a dispatch
// before it: the next packet is looked at if the application has written it, and a queue that has
// had one without the bit gets no more barrier packets.
//
// The runtime takes an intercepted packet off the application's ring at once, and must then have
// room for it in the queue below, of the same size: ROCR 5.2 aborts if not. So packets wait here
// until those before are known to have ended. Where too few packets have signals to know that, a
// packet that does nothing is added.
#include "capture/hsa/queue.h"

#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "capture/call.h"
#include "capture/hsa/agents.h"
#include "capture/hsa/collect.h"
#include "capture/hsa/flight.h"
#include "capture/hsa/kernels.h"
#include "capture/hsa/times.h"
#include "capture/hsa/watch.h"
#include "capture/mode.h"
#include "trace/event.h"

typedef struct queue_t {
    flight_queue_t flights;
    hsa_agent_t agent;
    uint32_t number;     // in the trace
    bool times;          // dispatches with signals of the application's have times: by the mode
    hsa_queue_t *handle; // borrowed
    // Under the runtime's lock of the queue:
    hsa_packet_t *packets; // owned
    uint32_t capacity;
    uint64_t written; // packets so far
    uint64_t marked;  // of these, until after the last one with a signal of ours
    uint64_t stuck;   // the place, and 1, at which the queue did not move while packets waited
    uint64_t spilled; // the place after packets for which there was no room; 0: none
    bool overlaps;    // it has had a dispatch without the barrier bit
    struct queue_t *next;
} queue_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static queue_t *queues; // under `lock`

static inline void work_fill(const queue_t *queue, const hsa_packet_t *packet, work_t *work)
{
    work->op = TRACE_OP_DISPATCH;
    work->agent = queue->agent;
    work->queue = queue->number;
    work->name = kernels_name(packet->kernel);
    work->call = call_current();
    work->submitted = trace_now();
    for (int i = 0; i < 3; i++) work->shape.grid[i] = packet->grid[i];
    work->shape.group_x = packet->group[0];
    work->shape.group_y = packet->group[1];
    work->shape.group_z = packet->group[2];
    work->shape.group_bytes = packet->group_size;
}

// A dispatch stays as it is; it is watched, or recorded without times.
__attribute__((noinline)) static uint32_t
dispatch_keep(const queue_t *queue, const hsa_packet_t *packet, hsa_packet_t *out)
{
    work_t work;
    work_fill(queue, packet, &work);
    *out = *packet;
    if (!queue->times || !watch_add(&work, packet->signal)) work_note(&work);
    return 1;
}

// Writes a dispatch that gets another signal. Returns how many packets that is.
static uint32_t dispatch_change(flight_t *flight, const hsa_packet_t *packet, hsa_packet_t out[2])
{
    out[0] = *packet;
    out[0].signal = flight->signal;
    if (!packet->signal) return 1;
    flight->own = packet->signal;
    if (!times_expect(flight->own, flight)) flight->own = 0;
    out[1] = (hsa_packet_t){
        .header =
            HSA_PACKET_BARRIER_AND | HSA_HEADER_BARRIER | (packet->header & HSA_HEADER_RELEASE),
        .signal = packet->signal,
    };
    return 2;
}

// What is being written of the packets that the runtime hands over.
typedef struct batch_t {
    hsa_packet_t *out;
    uint32_t count;
    bool roomy;             // there may be more than were handed over
    flight_t *first, *last; // of the list of those that have a signal of ours
} batch_t;

// Puts a signal of ours at the batch's end, and onto its list; NULL: there is no memory.
static flight_t *flight_at(queue_t *queue, batch_t *batch)
{
    flight_t *flight = flight_take(&queue->flights);
    if (!flight) return NULL;
    flight->place = queue->marked = queue->written + batch->count + 1;
    flight->next = batch->first;
    if (!batch->first) batch->last = flight;
    batch->first = flight;
    return flight;
}

static void dispatch_write(queue_t *queue, const hsa_packet_t *packet, batch_t *batch)
{
    hsa_packet_t *out = batch->out + batch->count;
    flight_t *flight = NULL;
    if (!packet->signal || (queue->times && !queue->overlaps && batch->roomy))
        flight = flight_at(queue, batch);
    if (!flight) {
        batch->count += dispatch_keep(queue, packet, out);
        return;
    }
    work_fill(queue, packet, &flight->work);
    batch->count += dispatch_change(flight, packet, out);
}

// Adds a packet that does nothing but tell when the queue has reached it.
__attribute__((noinline)) static void mark_write(queue_t *queue, batch_t *batch)
{
    flight_t *flight = flight_at(queue, batch);
    if (!flight) return;
    batch->out[batch->count++] =
        (hsa_packet_t){.header = HSA_PACKET_BARRIER_AND, .signal = flight->signal};
}

static bool is_dispatch(const hsa_packet_t *packet)
{
    return (packet->header & HSA_HEADER_TYPE) == HSA_PACKET_DISPATCH;
}

static bool may_overlap(uint16_t header)
{
    return (header & (HSA_HEADER_TYPE | HSA_HEADER_BARRIER)) == HSA_PACKET_DISPATCH;
}

// Learns whether packets that a doorbell was rung for, or the one after them, may overlap. That one
// is in the application's ring, where the runtime marks what it has taken as invalid.
static void overlaps_see(queue_t *queue, const hsa_packet_t *packets, uint64_t count,
                         uint64_t index)
{
    hsa_packet_t *ring = queue->handle->base;
    _Atomic uint16_t *next =
        (_Atomic uint16_t *)&ring[(index + count) & (queue->handle->size - 1)].header;
    // relaxed: of the packet only this word is read.
    bool overlaps = may_overlap(atomic_load_explicit(next, memory_order_relaxed));
    for (uint64_t i = 0; i < count; i++) overlaps |= may_overlap(packets[i].header);
    if (overlaps) queue->overlaps = true;
}

static uint64_t queue_reached(queue_t *queue)
{
    // relaxed: a later look sees more.
    return atomic_load_explicit(&queue->flights.reached, memory_order_relaxed);
}

static bool room_is_for(queue_t *queue, uint32_t count)
{
    enum { SPARE = 4 }; // the runtime's own packets, and a mark
    return queue->written - queue_reached(queue) + count + SPARE <= queue->handle->size;
}

// There is no room, and the queue does not move. The runtime keeps packets for later, but only once
// until they are written.
static bool room_spill(queue_t *queue, uint32_t count)
{
    if (queue->spilled > queue_reached(queue)) return false;
    queue->spilled = queue->written + count;
    return true;
}

// Waits until there is room for twice so many packets. False: they are to be written as they are,
// since the queue does not move, perhaps because the application has yet to do something for it. A
// batch that is larger than the queue is taken apart by runtimes that have such.
__attribute__((noinline)) static bool room_wait(queue_t *queue, uint32_t count)
{
    enum { NAP_NS = 20000, PATIENCE_NS = 100000000 };
    if (2 * count > queue->handle->size / 2) return true;
    for (uint64_t since = keel_now_ns(); !room_is_for(queue, 2 * count);) {
        uint64_t reached = queue_reached(queue);
        if (keel_now_ns() - since > PATIENCE_NS) queue->stuck = reached + 1;
        if (queue->stuck == reached + 1 && (room_is_for(queue, count) || room_spill(queue, count)))
            return false;
        collect_wake();
        clock_sleep(NAP_NS);
    }
    return true;
}

static hsa_packet_t *packets_reserve(queue_t *queue, uint32_t count)
{
    if (count <= queue->capacity) return queue->packets;
    hsa_packet_t *packets =
        mem_reserve(queue->packets, &queue->capacity, count - 1, sizeof *packets);
    if (packets) queue->packets = packets;
    return packets;
}

__attribute__((noinline)) static void packets_pass(queue_t *queue, const hsa_packet_t *packets,
                                                   uint64_t count, hsa_writer_fn write)
{
    for (uint64_t i = 0; i < count; i++)
        if (packets[i].signal) times_forget(packets[i].signal, NULL);
    queue->written += count;
    write(packets, count);
}

// What most doorbells are rung for: one dispatch without a signal of the application's, for which
// there is room. It does what packets_seen does for any, in fewer steps. False: it is not so, or
// there is no memory.
static bool one_seen(queue_t *queue, const hsa_packet_t *packet, hsa_writer_fn write)
{
    if (!is_dispatch(packet) || packet->signal || !room_is_for(queue, 2) || !trace_is_on())
        return false;
    flight_t *flight = flight_take(&queue->flights);
    if (!flight) return false;
    hsa_packet_t out = *packet;
    out.signal = flight->signal;
    flight->place = queue->marked = ++queue->written;
    work_fill(queue, packet, &flight->work);
    if (may_overlap(packet->header)) queue->overlaps = true;
    write(&out, 1);
    flight_push(flight, flight);
    return true;
}

// Called by the runtime with the packets that a doorbell was rung for. They are to be written at
// once: ROCR keeps those for which the queue has no room, but not of a second write.
static void packets_seen(const void *seen, uint64_t count, uint64_t index, void *data,
                         hsa_writer_fn write)
{
    queue_t *queue = data;
    const hsa_packet_t *packets = seen;
    if (count == 1 && one_seen(queue, packets, write)) return;
    bool roomy = room_is_for(queue, 2 * (uint32_t)count) || room_wait(queue, (uint32_t)count);
    batch_t batch = {.roomy = roomy};
    batch.out = packets_reserve(queue, (uint32_t)count * 2 + 1);
    if (!queue->overlaps) overlaps_see(queue, packets, count, index);
    if (!batch.out || !trace_is_on()) {
        packets_pass(queue, packets, count, write);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (is_dispatch(&packets[i])) {
            dispatch_write(queue, &packets[i], &batch);
            continue;
        }
        if (packets[i].signal) times_forget(packets[i].signal, NULL);
        batch.out[batch.count++] = packets[i];
    }
    if (batch.roomy && queue->written + batch.count - queue->marked > queue->handle->size / 4)
        mark_write(queue, &batch);
    queue->written += batch.count;
    write(batch.out, batch.count);
    if (batch.first) flight_push(batch.first, batch.last);
}

static void queue_tell(queue_t *queue)
{
    _Atomic uint32_t number = 0;
    char name[64];
    snprintf(name, sizeof name, "queue %llu", (unsigned long long)queue->handle->id);
    queue->number = trace_queue(&number, agents_name(queue->agent), name, NULL);
}

static bool queue_watch(hsa_agent_t agent, hsa_queue_t *handle)
{
    queue_t *queue = mem_zalloc(sizeof *queue);
    if (!queue) return false;
    queue->agent = agent;
    queue->times = capture_mode()->copies;
    queue->handle = handle;
    queue_tell(queue);
    if (hsa.profiling_set_profiler_enabled(handle, 1) != 0 ||
        hsa.queue_intercept_register(handle, packets_seen, queue) != 0) {
        mem_free(queue);
        return false;
    }
    pthread_mutex_lock(&lock);
    queue->next = queues;
    queues = queue;
    pthread_mutex_unlock(&lock);
    return true;
}

static THREAD_LOCAL bool leaves;

void queue_leave(bool leave)
{
    leaves = leave;
}

HSA_FUNCTION(queue_create, HSA_QUEUE_CREATE)
{
    enum { LEAST = 8 }; // so that a dispatch, what follows it and the runtime's own packet fit
    if (leaves)
        return hsa.queue_create(agent, size, type, error, data, private_size, group_size, queue);
    if (size >= LEAST && hsa.queue_intercept_create(agent, size, type, error, data, private_size,
                                                    group_size, queue) == 0) {
        if (!queue_watch(agent, *queue))
            log_say(KEEL_LOG_WARNING, "memory is short: a queue is not traced");
        return 0;
    }
    hsa_status_t status =
        hsa.queue_create(agent, size, type, error, data, private_size, group_size, queue);
    if (status == 0)
        log_say(KEEL_LOG_WARNING,
                "a queue of %u packets is not traced: the runtime has no "
                "intercept queue of that kind",
                size);
    return status;
}

// Takes a queue off the list; NULL: it is not there.
static queue_t *queue_take(const hsa_queue_t *handle)
{
    pthread_mutex_lock(&lock);
    queue_t **at = &queues;
    while (*at && (*at)->handle != handle) at = &(*at)->next;
    queue_t *queue = *at;
    if (queue) *at = queue->next;
    pthread_mutex_unlock(&lock);
    return queue;
}

static void queue_free(queue_t *queue)
{
    mem_free(queue->packets);
    mem_free(queue);
}

hsa_status_t queue_destroy(hsa_queue_t *handle)
{
    queue_t *queue = queue_take(handle);
    bool over = queue && flight_drain(&queue->flights);
    hsa_status_t status = hsa.queue_destroy(handle);
    if (over && status == 0) { // else the collector still has some of its flights
        flight_finish(&queue->flights);
        queue_free(queue);
    }
    return status;
}

hsa_status_t queue_set_profiler(hsa_queue_t *handle, int on)
{
    pthread_mutex_lock(&lock);
    const queue_t *queue = queues;
    while (queue && queue->handle != handle) queue = queue->next;
    pthread_mutex_unlock(&lock);
    return queue && !on ? 0 : hsa.profiling_set_profiler_enabled(handle, on);
}

void queue_drain_all(void)
{
    pthread_mutex_lock(&lock);
    for (queue_t *queue = queues; queue; queue = queue->next) (void)flight_drain(&queue->flights);
    pthread_mutex_unlock(&lock);
}

void queue_wait_all(void)
{
    pthread_mutex_lock(&lock);
    for (queue_t *queue = queues; queue; queue = queue->next) (void)flight_wait(&queue->flights);
    pthread_mutex_unlock(&lock);
}

// The queues stay allocated: a doorbell may still be rung.
void queue_forget_all(void)
{
    pthread_mutex_lock(&lock);
    queues = NULL;
    pthread_mutex_unlock(&lock);
}

void queue_child(void)
{
    pthread_mutex_init(&lock, NULL);
    queues = NULL;
}
