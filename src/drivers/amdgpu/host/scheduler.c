// SPDX-License-Identifier: Apache-2.0
// The scheduler's queue and memory, and what the host does when the GPU tells it something.
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/amdgpu/device/program.h"
#include "drivers/amdgpu/host/scheduler.h"
#include "kit/object.h"
#include "kit/submission.h"

enum {
    CONTROL = 64,  // packets of the control queue: two ticks, one that tells and one that drain
                   // waits for are all there are
    PIECE = 64,    // bytes
    CAUSES = 16,   // that there is room for at first
    HARDWARE = -1, // kind of a doorbell that is a word of the hardware's
};

struct amdgpu_piece_t {
    amdgpu_piece_t *next;
};

// What HSA keeps behind the handles, as amd_hsa_queue.h and amd_hsa_signal.h have it.
enum { QUEUE_WRITE = 56, SIGNAL_KIND = 0, SIGNAL_DOORBELL = 8 };

static uint64_t word_at(uint64_t address, uint64_t offset)
{
    return *(const uint64_t *)(uintptr_t)(address + offset);
}

// How packets are written into a queue without HSA's functions. A tool that watches the queue takes
// the place of its doorbell: then only these will do.
static keel_status_t queue_describe(hsa_queue_t *queue, uint32_t room, ring_queue_t *ring)
{
    uint64_t doorbell = queue->doorbell_signal.handle;
    if ((int64_t)word_at(doorbell, SIGNAL_KIND) != HARDWARE)
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "scheduler=device needs doorbells of the hardware's own; a tool watches "
                          "the queues, or the GPU is too old: leave the option out");
    *ring = (ring_queue_t){
        .packets = (uintptr_t)queue->base_address,
        .mask = queue->size - 1,
        .write = (uintptr_t)queue + QUEUE_WRITE,
        .doorbell = word_at(doorbell, SIGNAL_DOORBELL),
        .room = room,
    };
    return NULL;
}

static bool is_closing(amdgpu_scheduler_t *s)
{
    lock_enter(&s->lock);
    bool closing = s->closing;
    lock_leave(&s->lock);
    return closing;
}

void amdgpu_scheduler_ask(amdgpu_device_t *device, cell_t *cell)
{
    amdgpu_scheduler_t *s = device->scheduler;
    lock_enter(&s->lock);
    if (!s->closing && cell) cell_touch(s->shared, cell);
    if (!s->closing) tick_ask(s->shared);
    lock_leave(&s->lock);
}

// The GPU has told. On a thread of HSA's.
static bool told(hsa_signal_value_t value, void *data)
{
    amdgpu_device_t *device = data;
    amdgpu_scheduler_t *s = device->scheduler;
    (void)value;
    if (is_closing(s)) {
        atomic_store(&s->listening, false);
        return false;
    }
    device->hsa->hsa_signal_store_screlease(s->signal, 1);
    // acq_rel: pairs with the GPU's. Behind the signal, which it may count down again from here on;
    // and only here, so that one packet of the control queue tells at a time.
    PROTOCOL_SWAP(&s->shared->telling, 0, __ATOMIC_ACQ_REL);
    helper_wake(&device->runs.worker);
    return true; // it is to be called again
}

// A packet of a kernel of the scheduler's: one group, of `items`.
static void packet_make(const amdgpu_kernel_t *kernel, uint16_t items, uint64_t arguments,
                        uint16_t bits, packet_t *made)
{
    const amdgpu_launch_t launch = {
        .kernel = kernel,
        .groups = {1, 1, 1},
        .group_size = {items, 1, 1},
        .local = kernel->group,
    };
    hsa_kernel_dispatch_packet_t packet;
    amdgpu_packet_make(&launch, arguments, &packet);
    packet.header |= bits;
    memcpy(made, &packet, sizeof packet);
}

static void packets_make(amdgpu_scheduler_t *s, uint64_t arguments)
{
    const uint16_t barrier = 1u << HSA_PACKET_HEADER_BARRIER;
    hsa_barrier_and_packet_t tell = {
        .header = HSA_PACKET_TYPE_BARRIER_AND | HSA_FENCE_SCOPE_SYSTEM
                                                    << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE,
        .completion_signal = s->signal,
    };
    packet_make(&s->tick, 1, arguments, barrier, &s->shared->tick); // one at a time
    packet_make(&s->advance, 1, 0, barrier, &s->shared->advance);   // behind all of its record
    packet_make(&s->issue, PROGRAM_WIDE, 0, 0, &s->shared->issue);
    packet_make(&s->patch, 1, 0, 0, &s->shared->patch);
    memcpy(&s->shared->tell, &tell, sizeof tell);
}

static keel_status_t shared_make(amdgpu_device_t *device)
{
    amdgpu_scheduler_t *s = device->scheduler;
    KEEL_TRY(blocks_acquire(&device->blocks, sizeof(scheduler_t) + PIECE, &s->memory));
    scheduler_args_t *arguments = (scheduler_args_t *)(void *)s->memory->data;
    s->shared = (scheduler_t *)(void *)(s->memory->data + PIECE);
    memset(s->memory->data, 0, sizeof(scheduler_t) + PIECE);
    arguments->scheduler = s->memory->address + PIECE;
    packets_make(s, s->memory->address);
    return queue_describe(s->control, CONTROL, &s->shared->control);
}

static keel_status_t kernels_find(amdgpu_device_t *device, amdgpu_scheduler_t *s)
{
    hsa_executable_t library = device->library;
    KEEL_TRY(amdgpu_kernel_find(device, library, "keel_tick", &s->tick));
    KEEL_TRY(amdgpu_kernel_find(device, library, "keel_advance", &s->advance));
    KEEL_TRY(amdgpu_kernel_find(device, library, "keel_issue", &s->issue));
    return amdgpu_kernel_find(device, library, "keel_patch", &s->patch);
}

keel_status_t amdgpu_scheduler_start(amdgpu_device_t *device)
{
    const hsa_symbols_t *hsa = device->hsa;
    amdgpu_scheduler_t *s = device->scheduler = mem_zalloc(sizeof *s);
    if (!s) return status_no_memory();
    s->causes = mem_zalloc(CAUSES * sizeof *s->causes);
    if (!s->causes) return status_no_memory();
    s->cause_capacity = CAUSES;
    s->causes[s->cause_count++] = status_no_memory(); // where there is none for a cause
    KEEL_TRY(kernels_find(device, s));
    KEEL_TRY(HSA_CALL(hsa, hsa_queue_create, device->agent, CONTROL, HSA_QUEUE_TYPE_MULTI,
                      amdgpu_queue_failed, device, UINT32_MAX, UINT32_MAX, &s->control));
    KEEL_TRY(HSA_CALL(hsa, hsa_amd_queue_set_priority, s->control, HSA_AMD_QUEUE_PRIORITY_HIGH));
    KEEL_TRY(HSA_CALL(hsa, hsa_signal_create, 1, 0, NULL, &s->signal));
    KEEL_TRY(HSA_CALL(hsa, hsa_signal_create, 1, 0, NULL, &s->drained));
    KEEL_TRY(shared_make(device));
    atomic_store(&s->listening, true);
    keel_status_t status = HSA_CALL(hsa, hsa_amd_signal_async_handler, s->signal,
                                    HSA_SIGNAL_CONDITION_LT, 1, told, device);
    if (status) atomic_store(&s->listening, false);
    return status;
}

static bool pieces_cut(amdgpu_scheduler_t *s, amdgpu_piece_t **spare, void **piece)
{
    uint64_t offset = 0;
    lock_enter(&s->lock);
    *piece = *spare;
    if (*spare)
        *spare = (*spare)->next;
    else if (block_cut(s->pages, PIECE, &offset))
        *piece = s->pages->data + offset;
    lock_leave(&s->lock);
    return *piece;
}

// 64 bytes of shared memory: of a list of spare ones, or zeroed.
static keel_status_t piece_take(amdgpu_device_t *device, amdgpu_piece_t **spare, void **piece)
{
    amdgpu_scheduler_t *s = device->scheduler;
    block_t *more = NULL;
    if (pieces_cut(s, spare, piece)) return NULL;
    KEEL_TRY(blocks_acquire(&device->blocks, PIECE, &more));
    memset(more->data, 0, more->size);
    lock_enter(&s->lock);
    more->next = s->pages;
    more->used = 0;
    s->pages = more;
    lock_leave(&s->lock);
    return pieces_cut(s, spare, piece) ? NULL : status_no_memory(); // others have taken all of it
}

static void piece_give_back(amdgpu_device_t *device, amdgpu_piece_t **spare, void *piece)
{
    amdgpu_scheduler_t *s = device->scheduler;
    amdgpu_piece_t *p = piece;
    lock_enter(&s->lock);
    p->next = *spare;
    *spare = p;
    lock_leave(&s->lock);
}

// A packet behind all others of the queue, until it has ended.
static void packet_await(amdgpu_device_t *device, hsa_queue_t *queue, hsa_signal_t signal)
{
    enum { WAIT = 100000000 };
    const hsa_symbols_t *hsa = device->hsa;
    const hsa_barrier_and_packet_t packet = {.completion_signal = signal};
    const uint32_t header = HSA_PACKET_TYPE_BARRIER_AND | 1u << HSA_PACKET_HEADER_BARRIER;
    hsa->hsa_signal_store_screlease(signal, 1);
    uint64_t number = amdgpu_packet_write(hsa, queue, &packet, header);
    hsa->hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)number);
    while (!atomic_load(&device->failed) &&
           hsa->hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, WAIT,
                                          HSA_WAIT_STATE_BLOCKED) > 0) {
    }
}

// Until the last packet of the queue, NULL: of the control queue, has ended. One at a time, as
// there is one signal. When the scheduler has stopped, all have ended.
static void drain(amdgpu_device_t *device, hsa_queue_t *queue)
{
    amdgpu_scheduler_t *s = device->scheduler;
    lock_enter(&s->drain_lock);
    if (s->drained.handle && !atomic_load(&device->failed))
        packet_await(device, queue ? queue : s->control, s->drained);
    lock_leave(&s->drain_lock);
}

// Of the control queue, too: the tick that wrote the last packets of the queue rings for them when
// they may have ended already, as others ring for theirs.
void amdgpu_scheduler_leave(amdgpu_queue_t *queue)
{
    amdgpu_device_t *device = amdgpu_device(queue->base.device);
    if (!queue->shared) return;
    drain(device, queue->queue);
    drain(device, NULL);
    piece_give_back(device, &device->scheduler->spare_queues, queue->shared);
    blocks_return(&device->blocks, queue->advances, false);
    queue->shared = NULL;
}

// The last record of each queue has ended, but the kernel that told so may still run.
static void queues_drain(amdgpu_device_t *device)
{
    keel_queue_t *queue = NULL;
    while ((queue = device_next_queue(&device->base, queue)))
        drain(device, amdgpu_queue(queue)->queue);
}

// A queue may be on its way out meanwhile, and drain.
static void queue_and_signals_destroy(amdgpu_device_t *device)
{
    const hsa_symbols_t *hsa = device->hsa;
    amdgpu_scheduler_t *s = device->scheduler;
    lock_enter(&s->drain_lock);
    if (s->control) hsa->hsa_queue_destroy(s->control);
    if (s->signal.handle) hsa->hsa_signal_destroy(s->signal);
    // Queues of a lost device may have a packet with it still.
    if (s->drained.handle && !atomic_load(&device->failed)) hsa->hsa_signal_destroy(s->drained);
    s->control = NULL;
    s->signal.handle = s->drained.handle = 0;
    lock_leave(&s->drain_lock);
}

// All records have ended; the last tick may still be on its way.
void amdgpu_scheduler_stop(amdgpu_device_t *device)
{
    amdgpu_scheduler_t *s = device->scheduler;
    if (!s) return;
    lock_enter(&s->lock);
    s->closing = true;
    lock_leave(&s->lock);
    queues_drain(device);
    drain(device, NULL);
    // Again and again: one that was being told sets it back.
    while (atomic_load(&s->listening)) {
        device->hsa->hsa_signal_store_screlease(s->signal, 0);
        sched_yield();
    }
    queue_and_signals_destroy(device);
    if (s->memory) blocks_return(&device->blocks, s->memory, true);
    s->memory = NULL;
}

void amdgpu_scheduler_free(amdgpu_device_t *device)
{
    amdgpu_scheduler_t *s = device->scheduler;
    if (!s) return;
    for (uint64_t i = 0; i < s->cause_count; i++) keel_status_release(s->causes[i]);
    mem_free(s->causes);
    if (s->pages && object_is_ours(&device->base.object))
        blocks_return(&device->blocks, s->pages, false);
    mem_free(s);
}

// Under the lock.
static bool causes_grow(amdgpu_scheduler_t *s)
{
    if (s->cause_count < s->cause_capacity) return true;
    keel_status_t *causes = mem_resize(s->causes, 2 * s->cause_capacity * sizeof *causes);
    if (!causes) return false;
    s->causes = causes;
    s->cause_capacity *= 2;
    return true;
}

uint64_t amdgpu_cause_note(amdgpu_scheduler_t *s, keel_status_t cause)
{
    if (!causes_grow(s)) return 1;
    s->causes[s->cause_count] = keel_status_retain(cause);
    return ++s->cause_count;
}

uint64_t amdgpu_cause_add(amdgpu_device_t *device, keel_status_t cause)
{
    amdgpu_scheduler_t *s = device->scheduler;
    lock_enter(&s->lock);
    uint64_t number = amdgpu_cause_note(s, cause);
    lock_leave(&s->lock);
    return number;
}

// Under the lock, when neither a cell nor a record has a number: takes one, but for the first.
static keel_status_t cause_forget(amdgpu_scheduler_t *s)
{
    bool used = s->cells || s->runs || s->cause_count == 1;
    return used ? NULL : s->causes[--s->cause_count];
}

keel_status_t amdgpu_cell_take(amdgpu_device_t *device, cell_t **cell)
{
    amdgpu_scheduler_t *s = device->scheduler;
    void *piece;
    KEEL_TRY(piece_take(device, &s->spare_cells, &piece));
    *cell = piece;
    lock_enter(&s->lock);
    s->cells++;
    lock_leave(&s->lock);
    return NULL;
}

void amdgpu_cell_give_back(amdgpu_device_t *device, cell_t *cell)
{
    amdgpu_scheduler_t *s = device->scheduler;
    keel_status_t forgotten;
    piece_give_back(device, &s->spare_cells, cell);
    lock_enter(&s->lock);
    s->cells--;
    lock_leave(&s->lock);
    do {
        lock_enter(&s->lock);
        forgotten = cause_forget(s);
        lock_leave(&s->lock);
        keel_status_release(forgotten);
    } while (forgotten);
}

keel_status_t amdgpu_cause_get(amdgpu_device_t *device, uint64_t number)
{
    amdgpu_scheduler_t *s = device->scheduler;
    if (!number) return NULL;
    lock_enter(&s->lock);
    keel_status_t cause = keel_status_retain(s->causes[number - 1]);
    lock_leave(&s->lock);
    return cause;
}

keel_status_t amdgpu_scheduler_adopt(amdgpu_device_t *device, amdgpu_queue_t *queue)
{
    void *piece;
    if (!device->scheduler) return NULL;
    uint64_t size = (queue->queue->size) * sizeof(advance_args_t);
    KEEL_TRY(piece_take(device, &device->scheduler->spare_queues, &piece));
    keel_status_t status = queue_describe(queue->queue, AMDGPU_DEVICE_ROOM, piece);
    if (!status) status = blocks_acquire(&device->blocks, size, &queue->advances);
    if (status) {
        piece_give_back(device, &device->scheduler->spare_queues, piece);
        return status;
    }
    queue->shared = piece;
    queue->shared->advances = queue->advances->address;
    return NULL;
}

bool amdgpu_scheduler_work(amdgpu_device_t *device)
{
    amdgpu_scheduler_t *s = device->scheduler;
    if (!s || !s->shared) return false;
    uint64_t at = records_take(&s->shared->done);
    while (at) {
        const record_t *record = PROTOCOL_AT(record_t, at);
        at = record->next;
        amdgpu_record_end((amdgpu_run_t *)(uintptr_t)record->user, NULL);
    }
    return PROTOCOL_LOAD(&s->shared->live, __ATOMIC_RELAXED);
}

void amdgpu_scheduler_lost(amdgpu_device_t *device)
{
    amdgpu_scheduler_t *s = device->scheduler;
    if (!s) return;
    amdgpu_scheduler_work(device);
    for (;;) {
        lock_enter(&s->lock);
        amdgpu_run_t *run = s->runs;
        lock_leave(&s->lock);
        if (!run) break;
        amdgpu_record_end(run, keel_status_retain(atomic_load(&device->failed)));
    }
    PROTOCOL_STORE(&s->shared->live, 0, __ATOMIC_RELAXED); // nothing more is to be looked for
}

void amdgpu_queue_cancel(keel_queue_t *queue, keel_status_t cause)
{
    amdgpu_device_t *device = amdgpu_device(queue->device);
    amdgpu_scheduler_t *s = device->scheduler;
    uint64_t number = 0;
    bool all = atomic_load(&device->base.ended);
    lock_enter(&s->lock);
    for (amdgpu_run_t *run = s->runs; run; run = run->flight.next) {
        if (run->base.submission.queue != queue ||
            (!all && !submission_is_cancelled(&run->base.submission)))
            continue;
        if (!number) number = amdgpu_cause_note(s, cause);
        PROTOCOL_STORE(&run->record->cancel, number, __ATOMIC_RELAXED);
    }
    // release: pairs with the acquire of the tick that looks for them.
    if (number && !s->closing) PROTOCOL_SWAP(&s->shared->cancels, 1, __ATOMIC_RELEASE);
    lock_leave(&s->lock);
    if (number) amdgpu_scheduler_ask(device, NULL);
}
