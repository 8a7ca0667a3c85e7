// SPDX-License-Identifier: Apache-2.0
// The packet processor of a compute queue.
//
// Packets are launched in order, unless the queue shuffles them, and end in any order. A dispatch
// is launched when all workgroups of those before it have begun, one with the barrier bit when all
// before it have ended; a barrier packet keeps those after it back until it is over. The queue's
// own thread runs a dispatch itself and looks, now and then, whether the next packet may be
// launched beside it: that one gets a thread of its own. So a kernel may wait for one behind it,
// and a queue whose packets come one by one needs no second thread.
//
//     retired            next               written
//        | launched, some ended | not launched |
//
// The ring's slot is free again, and the read index moves, once all packets up to it have ended:
// kernels look into their packet while they run.
#include <pthread.h>
#include <stdlib.h>

#include "amd/engine/strict.h"
#include "amd/usage.h"

enum { SHUFFLE_WINDOW = 8 };

// One dispatch that runs. The first is that of the queue's own thread.
typedef struct {
    struct processor *processor;
    isa_t *isa; // owned
    pthread_t thread;
    bool threaded;
    bool over;               // under the lock: the thread shall end
    _Atomic uint64_t packet; // that runs; UINT64_MAX: none
    _Atomic uint64_t since;  // clock_ns when it began
} flight_t;

typedef struct processor {
    queue_t *queue;
    uint64_t retired, next;
    uint64_t launched;  // bit n: packet next + n, which was taken before those in front of it
    atomic_bool *ended; // owned; by number modulo count, from retired on
    uint64_t count;     // of packets in the ring
    atomic_uint flying;
    uint64_t rung; // the doorbell as it was
    bool awake;    // it has rung and packets may be left
    bool gone;     // the queue has failed or shall end
    unsigned patience;
    uint64_t random;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    unsigned threads; // of flights, apart from the queue's own
    unsigned flight_count;
    flight_t flights[];
} processor_t;

// Acquire: pairs with the release of the packet's writer.
static uint16_t header_at(const queue_t *queue, uint64_t id)
{
    return __atomic_load_n((uint16_t *)packet_at(queue, id), __ATOMIC_ACQUIRE);
}

// The number of packets that the queue has been told of.
static uint64_t announced(processor_t *p)
{
    const queue_t *queue = p->queue;
    // Acquire, both: pairs with the releases of the writers of packets.
    uint64_t doorbell = __atomic_load_n(queue->doorbell, __ATOMIC_ACQUIRE);
    if (doorbell != p->rung) {
        uint64_t index = __atomic_load_n(queue->write_index, __ATOMIC_ACQUIRE);
        strict_doorbell(queue, doorbell, p->next, index);
        p->awake = true;
    }
    p->rung = doorbell;
    if (!p->awake) return 0;
    // Packets up to the number in the doorbell are there, even if the index is seen late.
    uint64_t written = __atomic_load_n(queue->write_index, __ATOMIC_ACQUIRE);
    uint64_t count = doorbell + 1 > written ? doorbell + 1 : written;
    if (count <= p->next) p->awake = false;
    return count;
}

static bool is_barred(uint16_t header)
{
    return header >> HSA_PACKET_HEADER_BARRIER & 1;
}

static bool is_dispatch(uint16_t header)
{
    return (header & 0xff) == HSA_PACKET_TYPE_KERNEL_DISPATCH;
}

// One of the dispatches that may run now, any of them. It sometimes waits for more to choose from.
static uint64_t choose_any(processor_t *p, uint64_t count)
{
    uint64_t choices[SHUFFLE_WINDOW];
    unsigned found = 0;
    for (uint64_t id = p->next; id < count && id < p->next + SHUFFLE_WINDOW; id++) {
        uint16_t header = header_at(p->queue, id);
        if (p->launched >> (id - p->next) & 1) continue;
        if (!is_dispatch(header) || (is_barred(header) && id > p->next)) break;
        choices[found++] = id;
    }
    if (!found) return UINT64_MAX;
    if (found < SHUFFLE_WINDOW && p->patience++ < random_below(&p->random, 8)) return UINT64_MAX;
    p->patience = 0;
    return choices[random_below(&p->random, found)];
}

// Whether all workgroups have begun of all dispatches that run: others come behind them.
static bool all_placed(const processor_t *p)
{
    for (unsigned k = 0; k <= p->threads; k++) {
        const flight_t *flight = &p->flights[k];
        if (atomic_load(&flight->packet) != UINT64_MAX && !isa_placed(flight->isa)) return false;
    }
    return true;
}

// The packet to launch now, UINT64_MAX for none.
static uint64_t choose(processor_t *p)
{
    uint64_t count = announced(p);
    if (p->next >= count || p->next >= p->retired + p->count) return UINT64_MAX;
    uint16_t header = header_at(p->queue, p->next);
    if ((header & 0xff) == HSA_PACKET_TYPE_INVALID) return UINT64_MAX;
    if (is_barred(header) && atomic_load(&p->flying)) return UINT64_MAX;
    if (is_dispatch(header) && !all_placed(p)) return UINT64_MAX;
    return p->random && is_dispatch(header) ? choose_any(p, count) : p->next;
}

static void mark_launched(processor_t *p, uint64_t id)
{
    p->launched |= 1ull << (id - p->next);
    while (p->launched & 1) {
        p->launched >>= 1;
        p->next++;
    }
    atomic_store(&p->queue->waiting_since, 0);
}

// Release: a writer that sees the index may overwrite the packets.
static void retire(processor_t *p)
{
    queue_t *queue = p->queue;
    while (p->retired < p->next && atomic_exchange(&p->ended[p->retired % p->count], false)) {
        __atomic_store_n((uint16_t *)packet_at(queue, p->retired), HSA_PACKET_TYPE_INVALID,
                         __ATOMIC_RELEASE);
        __atomic_store_n(queue->read_index, ++p->retired, __ATOMIC_RELEASE);
    }
}

// Every packet has its completion signal in the same place.
static hsa_signal_t completion(const queue_t *queue, uint64_t id)
{
    return ((const hsa_barrier_and_packet_t *)packet_at(queue, id))->completion_signal;
}

// From here on the packet counts as running.
static void flight_begin(flight_t *flight, uint64_t id)
{
    mark_launched(flight->processor, id);
    atomic_fetch_add(&flight->processor->flying, 1);
    atomic_store(&flight->since, clock_ns());
    atomic_store(&flight->packet, id);
}

// Runs a dispatch. On the queue's own thread it is retired before its signal tells of it.
static bool flight_run(flight_t *flight, uint64_t id)
{
    processor_t *p = flight->processor;
    queue_t *queue = p->queue;
    uint64_t start = gpu_ticks(queue->node);
    outcome_t outcome = packet_dispatch(queue, flight->isa, packet_at(queue, id), id);
    if (outcome == PACKET_DONE) {
        hsa_signal_t done = completion(queue, id);
        if (!flight->threaded) {
            atomic_store(&p->ended[id % p->count], true);
            retire(p);
        }
        outcome = packet_complete(queue, done, start);
        if (flight->threaded) atomic_store(&p->ended[id % p->count], true);
    }
    atomic_store(&flight->packet, UINT64_MAX);
    atomic_fetch_sub(&p->flying, 1);
    if (flight->threaded) bell_ring(&memory_bell);
    return outcome == PACKET_DONE;
}

static void *flight_main(void *argument)
{
    flight_t *flight = argument;
    processor_t *p = flight->processor;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (atomic_load(&flight->packet) == UINT64_MAX && !flight->over) {
            pthread_cond_wait(&p->wake, &p->lock);
        }
        if (flight->over) break;
        pthread_mutex_unlock(&p->lock);
        flight_run(flight, atomic_load(&flight->packet));
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

// A flight with a thread that does nothing, made when there is none; NULL when all are busy.
static flight_t *flight_idle(processor_t *p)
{
    for (unsigned k = 1; k <= p->threads; k++) {
        if (atomic_load(&p->flights[k].packet) == UINT64_MAX) return &p->flights[k];
    }
    if (p->threads + 1 == p->flight_count) return NULL;
    flight_t *flight = &p->flights[p->threads + 1];
    flight->isa = queue_isa(p->queue, NULL);
    flight->threaded = flight->isa && !usage_thread(&flight->thread, flight_main, flight);
    if (flight->threaded) {
        p->threads++;
        return flight;
    }
    isa_destroy(flight->isa);
    flight->isa = NULL;
    return NULL;
}

// Launches a dispatch on a thread of its own; false when none is to be had.
static bool launch_beside(processor_t *p, uint64_t id)
{
    flight_t *flight = flight_idle(p);
    if (!flight) return false;
    pthread_mutex_lock(&p->lock);
    flight_begin(flight, id);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    return true;
}

// Does what a packet that is no dispatch wants; false when it cannot be done now.
static bool try_other(processor_t *p, uint64_t id, uint16_t header)
{
    queue_t *queue = p->queue;
    uint64_t start = gpu_ticks(queue->node);
    outcome_t outcome = packet_try(queue, packet_at(queue, id), header);
    if (outcome == PACKET_WAITS) return false;
    if (outcome == PACKET_DONE) {
        hsa_signal_t done = completion(queue, id);
        mark_launched(p, id);
        atomic_store(&p->ended[id % p->count], true);
        retire(p);
        outcome = packet_complete(queue, done, start);
    }
    p->gone = outcome != PACKET_DONE;
    return true;
}

// Launches the next packet, or does it. False when there is none that may be.
static bool step(processor_t *p, bool beside)
{
    if (p->gone || atomic_load(&p->queue->failed)) return false;
    retire(p);
    uint64_t id = choose(p);
    if (id == UINT64_MAX) return false;
    uint16_t header = header_at(p->queue, id);
    if (!beside) seat_take(p->queue);
    if (!is_dispatch(header)) return try_other(p, id, header);
    if (beside) return launch_beside(p, id);
    flight_begin(&p->flights[0], id);
    if (!flight_run(&p->flights[0], id)) p->gone = true;
    return true;
}

// Tells the watchdog since when a packet is there that is not launched.
static void note_waiting(processor_t *p)
{
    queue_t *queue = p->queue;
    bool written = __atomic_load_n(queue->write_index, __ATOMIC_RELAXED) > p->next;
    atomic_store(&queue->waiting, p->next);
    if (!written) {
        atomic_store(&queue->waiting_since, 0);
    } else if (!atomic_load(&queue->waiting_since)) {
        atomic_store(&queue->waiting_since, clock_ns());
    }
    atomic_store(&queue->waiting_rung, p->awake);
}

// Short kernels end before another thread has woken up.
static void meanwhile(void *user)
{
    enum { SHORT_NS = 100000 };
    processor_t *p = ((queue_t *)user)->processor;
    if (clock_ns() - atomic_load(&p->flights[0].since) < SHORT_NS) return;
    while (step(p, true)) continue;
}

static bool processor_init(processor_t *p, queue_t *queue)
{
    p->queue = queue;
    p->rung = UINT64_MAX;
    p->random = sim_settings()->seed;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    for (unsigned k = 0; k < p->flight_count; k++) {
        p->flights[k].processor = p;
        atomic_init(&p->flights[k].packet, UINT64_MAX);
    }
    queue->processor = p;
    p->count = packet_count(queue);
    p->ended = calloc(p->count, sizeof *p->ended);
    if (!p->ended) return false;
    p->flights[0].isa = queue_isa(queue, meanwhile);
    return p->flights[0].isa && isa_threads(p->flights[0].isa, sim_settings()->threads);
}

static void processor_finish(processor_t *p)
{
    pthread_mutex_lock(&p->lock);
    for (unsigned k = 1; k < p->flight_count; k++) p->flights[k].over = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (unsigned k = 0; k < p->flight_count; k++) {
        if (p->flights[k].threaded) pthread_join(p->flights[k].thread, NULL);
        isa_destroy(p->flights[k].isa);
    }
    free(p->ended);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
}

// No more dispatches run at a time than the GPU has room for waves, and one is about to begin.
static unsigned flights_of(gfx_t gfx)
{
    return gfx_units(gfx) * UNIT_SIMDS * gfx_simd_waves(gfx) + 1;
}

bool aql_create(queue_t *queue)
{
    unsigned count = flights_of(gpu_gfx(queue->node));
    processor_t *p = calloc(1, sizeof *p + count * sizeof *p->flights);
    if (!p) return false;
    p->flight_count = count;
    if (processor_init(p, queue)) return true;
    aql_destroy(queue);
    return false;
}

void aql_destroy(queue_t *queue)
{
    if (!queue->processor) return;
    if (!atomic_load(&queue->failed)) strict_queue_end(queue, queue->processor->next);
    processor_finish(queue->processor);
    free(queue->processor);
    queue->processor = NULL;
}

void aql_run(queue_t *queue)
{
    processor_t *p = queue->processor;
    patience_t patience = {0};
    while (!p->gone) {
        if (step(p, false)) {
            patience = (patience_t){0};
            continue;
        }
        note_waiting(p);
        if (!p->awake) node_settle(queue->node);
        if (!p->awake && !atomic_load(&p->flying)) seat_give(queue);
        // Packets that are there wait for signals or for other packets, else the doorbell rings.
        bool here = p->awake || atomic_load(&p->flying);
        if (queue_idle(queue, here ? &memory_bell : &queue->bell, &patience)) return;
    }
}

void aql_watch(const queue_t *queue, uint64_t before, watch_fn *report)
{
    const processor_t *p = queue->processor;
    for (unsigned k = 0; k < p->flight_count; k++) {
        uint64_t id = atomic_load(&p->flights[k].packet), since = atomic_load(&p->flights[k].since);
        if (id != UINT64_MAX && since && since < before) report(queue, id, since, NULL);
    }
    uint64_t since = atomic_load(&queue->waiting_since);
    if (!since || since >= before) return;
    const char *why = atomic_load(&queue->waiting_rung) ? NULL : "the doorbell was not rung for it";
    report(queue, atomic_load(&queue->waiting), since, why);
}
