// SPDX-License-Identifier: Apache-2.0
// User queues: each has a doorbell and a thread that plays the engine behind it.
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "amd/engine/engine.h"
#include "amd/usage.h"

typedef struct {
    queue_t *queue; // owned
    pthread_t thread;
    bool ending;
} slot_t;

static slot_t slots[QUEUE_MAX]; // by number; 0 is none
static uint64_t *doorbells;     // one per slot
static int doorbells_file = -1;
static units_t *units[NODE_FIRST_GPU + GPU_MAX]; // of each node, made with its first queue
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool queue_idle(queue_t *queue, bell_t *bell, patience_t *patience)
{
    enum { LIMIT_NS = 500000 }; // until a doorbell is seen, and a signal that the host changed
    bell_wait(bell, patience, LIMIT_NS);
    return atomic_load_explicit(&queue->stop, memory_order_relaxed);
}

static void wait_for_end(queue_t *queue)
{
    enum { LIMIT_NS = 1000000000 };
    patience_t patience = {0};
    seat_give(queue);
    while (!atomic_load(&queue->stop)) bell_wait(&queue->bell, &patience, LIMIT_NS);
}

static const char *error_text(uint64_t error)
{
    switch (error) {
    case QUEUE_ERROR_DIMENSIONS: return "not one to three dimensions, or one without items";
    case QUEUE_ERROR_GROUP_MEMORY: return "more work-group memory than there is";
    case QUEUE_ERROR_CODE: return "no kernel";
    case QUEUE_ERROR_PACKET: return "a packet of no known type";
    case QUEUE_ERROR_GROUP_SIZE: return "a work-group of more than 1024 items";
    case QUEUE_ERROR_VENDOR_PACKET: return "a vendor's packet of no known format";
    case QUEUE_ERROR_APERTURE: return "an access outside of its memory";
    case QUEUE_ERROR_INSTRUCTION: return "an illegal instruction";
    case QUEUE_ERROR_TRAP: return "a trap";
    default: return "an error";
    }
}

void queue_fail(queue_t *queue, const char *packet, uint64_t error)
{
    atomic_store(&queue->failed, true);
    log_line(LOG_ERROR, "queue %llu of node %u ends: %s: %s", (unsigned long long)queue->id,
             queue->node, packet, error_text(error));
    if (queue->shared && queue->shared->queue_inactive_signal.handle) {
        amd_signal_t *signal =
            (amd_signal_t *)(uintptr_t)queue->shared->queue_inactive_signal.handle;
        // Release: pairs with the runtime's handler, which reads the value it was woken for.
        __atomic_store_n(&signal->value, (int64_t)error, __ATOMIC_RELEASE);
        if (signal->event_mailbox_ptr) event_interrupt(signal->event_id);
    }
    wait_for_end(queue);
}

void queue_memory_fault(queue_t *queue, uint64_t address)
{
    if (event_memory_fault(queue->node, address)) {
        atomic_store(&queue->failed, true);
        wait_for_end(queue);
    } else {
        queue_fail(queue, "memory", QUEUE_ERROR_APERTURE);
    }
}

static void *queue_thread(void *argument)
{
    queue_t *queue = argument;
    if (queue->processor) {
        aql_run(queue);
    } else {
        sdma_run(queue);
    }
    return NULL;
}

static void interrupt(void *user, uint32_t event)
{
    event_interrupt(event);
}

static bool stop(void *user)
{
    return atomic_load_explicit(&((queue_t *)user)->stop, memory_order_relaxed);
}

static void enter(void *user)
{
    seat_enter(user);
}

static void leave(void *user)
{
    seat_leave(user);
}

static bool asked(void *user)
{
    return atomic_load_explicit(&((queue_t *)user)->seat.asked, memory_order_relaxed);
}

isa_t *queue_isa(queue_t *queue, void (*meanwhile)(void *queue))
{
    const isa_host_t host = {.interrupt = interrupt,
                             .stop = stop,
                             .meanwhile = meanwhile,
                             .enter = enter,
                             .leave = leave,
                             .asked = asked,
                             .user = queue,
                             .units = units[queue->node]};
    isa_t *isa = isa_create(gpu_gfx(queue->node), queue->node, &host);
    if (!isa) return NULL;
    isa_shuffle(isa, sim_settings()->seed);
    if (!sim_settings()->weak || isa_weak(isa, sim_settings()->weak)) return isa;
    isa_destroy(isa);
    return NULL;
}

void queue_each(void (*visit)(queue_t *queue))
{
    pthread_mutex_lock(&lock);
    for (unsigned id = 1; id < QUEUE_MAX; id++) {
        if (slots[id].queue && !slots[id].ending) visit(slots[id].queue);
    }
    pthread_mutex_unlock(&lock);
}

static void queue_destroy(queue_t *queue)
{
    if (!queue) return;
    seat_remove(queue);
    aql_destroy(queue);
    free(queue);
}

// The lock is held. Behind the doorbells is a page that a device maps for its registers.
static bool doorbells_make(void)
{
    enum { SIZE = DOORBELL_BYTES + 4096 };
    if (doorbells) return true;
    doorbells_file = memfd_create("doorbells", MFD_CLOEXEC);
    if (doorbells_file < 0) return false;
    void *page = ftruncate(doorbells_file, SIZE)
                     ? MAP_FAILED
                     : mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, doorbells_file, 0);
    if (page == MAP_FAILED) {
        close(doorbells_file);
        doorbells_file = -1;
        return false;
    }
    doorbells = page;
    return true;
}

int doorbell_file(void)
{
    pthread_mutex_lock(&lock);
    int file = doorbells_make() ? doorbells_file : -1;
    pthread_mutex_unlock(&lock);
    return file;
}

uint8_t *doorbell_bytes(void)
{
    return doorbell_file() < 0 ? NULL : (uint8_t *)doorbells;
}

static bool queue_start(queue_t *queue, queue_kind_t kind)
{
    unsigned id = 1;
    while (id < QUEUE_MAX && slots[id].queue) id++;
    if (id == QUEUE_MAX || !doorbells_make()) return false;
    queue->id = id;
    queue->doorbell = &doorbells[id];
    *queue->doorbell = UINT64_MAX;
    if (kind == QUEUE_COMPUTE) {
        queue->shared =
            (amd_queue_t *)((char *)queue->read_index - offsetof(amd_queue_t, read_dispatch_id));
        if (!units[queue->node]) units[queue->node] = units_create(gpu_gfx(queue->node));
        if (!units[queue->node] || !aql_create(queue)) return false;
    }
    if (usage_thread(&slots[id].thread, queue_thread, queue)) return false;
    slots[id].queue = queue;
    seat_add(queue);
    return true;
}

uint32_t queue_begin(const queue_want_t *want)
{
    queue_t *queue = calloc(1, sizeof *queue);
    if (!queue) return 0;
    queue->node = want->node;
    queue->seat.priority = want->priority;
    queue->ring = want->ring;
    queue->size = want->size;
    queue->read_index = want->read_index;
    queue->write_index = want->write_index;
    queue->reported = UINT64_MAX;
    pthread_mutex_lock(&lock);
    bool started = queue_start(queue, want->kind);
    uint32_t id = started ? (uint32_t)queue->id : 0;
    pthread_mutex_unlock(&lock);
    if (started) watchdog_start();
    if (!started) queue_destroy(queue);
    return id;
}

// The lock is held.
static bool is_running(uint32_t id)
{
    return id > 0 && id < QUEUE_MAX && slots[id].queue && !slots[id].ending;
}

// The lock is held.
static int mask_set(queue_t *queue, uint64_t mask)
{
    gfx_t gfx = gpu_gfx(queue->node);
    if (!(mask & gfx_units_all(gfx))) {
        log_line(LOG_ERROR, "SET_CU_MASK: %llx has none of the %u compute units",
                 (unsigned long long)mask, gfx_units(gfx));
        return -EINVAL;
    }
    atomic_store(&queue->units, mask & gfx_units_all(gfx));
    return 0;
}

int queue_mask(uint32_t id, uint64_t mask)
{
    pthread_mutex_lock(&lock);
    int error = is_running(id) ? mask_set(slots[id].queue, mask) : -EFAULT;
    pthread_mutex_unlock(&lock);
    return error;
}

bool queue_priority(uint32_t id, int priority)
{
    pthread_mutex_lock(&lock);
    bool known = is_running(id);
    if (known) seat_priority(slots[id].queue, priority);
    pthread_mutex_unlock(&lock);
    return known;
}

// The lock is held. One queue of a GPU has the global wave sync at a time.
static bool gws_taken(unsigned node)
{
    for (unsigned id = 1; id < QUEUE_MAX; id++) {
        const queue_t *queue = slots[id].queue;
        if (queue && queue->node == node && atomic_load(&queue->gws)) return true;
    }
    return false;
}

int queue_gws(uint32_t id)
{
    pthread_mutex_lock(&lock);
    int error = !is_running(id) ? -EINVAL : gws_taken(slots[id].queue->node) ? -EBUSY : 0;
    if (!error) atomic_store(&slots[id].queue->gws, true);
    pthread_mutex_unlock(&lock);
    return error;
}

bool queue_end(uint32_t id)
{
    pthread_mutex_lock(&lock);
    bool known = is_running(id);
    slot_t slot = known ? slots[id] : (slot_t){0};
    if (known) slots[id].ending = true;
    pthread_mutex_unlock(&lock);
    if (!known) return false;
    atomic_store(&slot.queue->stop, true);
    bell_ring(&slot.queue->bell);
    bell_ring(&memory_bell);
    pthread_join(slot.thread, NULL);
    queue_destroy(slot.queue);
    pthread_mutex_lock(&lock);
    slots[id] = (slot_t){0};
    pthread_mutex_unlock(&lock);
    return true;
}

void queue_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    memset(slots, 0, sizeof slots);
    memset(units, 0, sizeof units);
    seat_forget();
    doorbells = NULL;
    doorbells_file = -1;
    node_forget();
}
