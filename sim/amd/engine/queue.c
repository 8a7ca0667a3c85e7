// SPDX-License-Identifier: Apache-2.0
// User queues: each has a doorbell and a thread that plays the engine behind it.
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "amd/engine/engine.h"

enum { QUEUE_MAX = 1024, DOORBELL_BYTES = QUEUE_MAX * sizeof(uint64_t) };

typedef struct {
    queue_t *queue; // owned
    pthread_t thread;
    bool ending;
} slot_t;

static slot_t slots[QUEUE_MAX]; // by number; 0 is none
static uint64_t *doorbells;     // one per slot, in memory of all nodes
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

isa_t *queue_isa(queue_t *queue, void (*meanwhile)(void *queue))
{
    const isa_host_t host = {interrupt, stop, meanwhile, queue};
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
    aql_destroy(queue);
    free(queue);
}

static bool doorbells_make(void)
{
    if (doorbells) return true;
    void *page =
        mmap(NULL, DOORBELL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    doorbells = page;
    return map_add(&(span_t){.base = (uint64_t)(uintptr_t)page,
                             .size = DOORBELL_BYTES,
                             .host = page,
                             .nodes = gpu_nodes()});
}

// The indices of a compute queue are in the struct that it shares with the runtime.
static bool queue_connect(queue_t *queue, HsaQueueResource *resource)
{
    if (queue->type != HSA_QUEUE_COMPUTE_AQL) {
        queue->read_index = &queue->own_index[0];
        queue->write_index = &queue->own_index[1];
        resource->Queue_read_ptr_aql = (HSAuint64 *)queue->read_index;
        resource->Queue_write_ptr_aql = (HSAuint64 *)queue->write_index;
        return true;
    }
    queue->read_index = (uint64_t *)resource->Queue_read_ptr_aql;
    queue->write_index = (uint64_t *)resource->Queue_write_ptr_aql;
    queue->shared =
        (amd_queue_t *)((char *)queue->read_index - offsetof(amd_queue_t, read_dispatch_id));
    return aql_create(queue);
}

static bool queue_start(queue_t *queue, HsaQueueResource *resource)
{
    unsigned id = 1;
    while (id < QUEUE_MAX && slots[id].queue) id++;
    if (id == QUEUE_MAX || !doorbells_make() || !queue_connect(queue, resource)) return false;
    queue->id = id;
    queue->doorbell = &doorbells[id];
    *queue->doorbell = UINT64_MAX;
    if (pthread_create(&slots[id].thread, NULL, queue_thread, queue)) return false;
    slots[id].queue = queue;
    resource->QueueId = id;
    resource->Queue_DoorBell_aql = (HSAuint64 *)queue->doorbell;
    return true;
}

// As many parameters as the vendor's interface has.
#define CREATE_PARAMETERS                                                                          \
    HSAuint32 node, HSA_QUEUE_TYPE type, HSAuint32 percentage, HSA_QUEUE_PRIORITY priority,        \
        void *ring, HSAuint64 size, HsaEvent *event, HsaQueueResource *resource

HSAKMT_STATUS hsaKmtCreateQueue(CREATE_PARAMETERS)
{
    bool copies = type == HSA_QUEUE_SDMA || type == HSA_QUEUE_SDMA_XGMI;
    if (!gpu_is(node)) return HSAKMT_STATUS_INVALID_NODE_UNIT;
    if (!copies && type != HSA_QUEUE_COMPUTE_AQL) return HSAKMT_STATUS_NOT_SUPPORTED;
    queue_t *queue = calloc(1, sizeof *queue);
    if (!queue) return HSAKMT_STATUS_NO_MEMORY;
    queue->node = node;
    queue->type = type;
    queue->ring = ring;
    queue->size = size;
    queue->reported = UINT64_MAX;
    pthread_mutex_lock(&lock);
    bool started = queue_start(queue, resource);
    pthread_mutex_unlock(&lock);
    log_line(LOG_CALLS, "CreateQueue: node %u, type %d, %llu bytes: %s", node, (int)type,
             (unsigned long long)size, started ? "started" : "refused");
    if (started) watchdog_start();
    if (!started) queue_destroy(queue);
    return started ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_OUT_OF_RESOURCES;
}

static bool queue_known(HSA_QUEUEID id)
{
    return id > 0 && id < QUEUE_MAX && slots[id].queue;
}

HSAKMT_STATUS hsaKmtDestroyQueue(HSA_QUEUEID id)
{
    pthread_mutex_lock(&lock);
    slot_t slot = queue_known(id) && !slots[id].ending ? slots[id] : (slot_t){0};
    if (slot.queue) slots[id].ending = true;
    pthread_mutex_unlock(&lock);
    if (!slot.queue) return HSAKMT_STATUS_INVALID_HANDLE;
    atomic_store(&slot.queue->stop, true);
    bell_ring(&slot.queue->bell);
    bell_ring(&memory_bell);
    pthread_join(slot.thread, NULL);
    queue_destroy(slot.queue);
    pthread_mutex_lock(&lock);
    slots[id] = (slot_t){0};
    pthread_mutex_unlock(&lock);
    return HSAKMT_STATUS_SUCCESS;
}

// There are no shares of the machine to hand out, nor units to choose from.
HSAKMT_STATUS hsaKmtUpdateQueue(HSA_QUEUEID id, HSAuint32 percentage, HSA_QUEUE_PRIORITY priority,
                                void *ring, HSAuint64 size, HsaEvent *event)
{
    return queue_known(id) ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_INVALID_HANDLE;
}

HSAKMT_STATUS hsaKmtSetQueueCUMask(HSA_QUEUEID id, HSAuint32 count, HSAuint32 *mask)
{
    return queue_known(id) ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_INVALID_HANDLE;
}
