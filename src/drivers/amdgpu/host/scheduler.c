// SPDX-License-Identifier: Apache-2.0
// What the schedulers of a device share: memory of cells and queues, and causes; what has ended;
// cancelling, and the end of the device.
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/amdgpu/device/program.h"
#include "drivers/amdgpu/host/scheduler.h"
#include "kit/object.h"
#include "kit/submission.h"

enum { PIECE = 64, QUEUE = 2 * PIECE }; // bytes

struct amdgpu_piece_t {
    amdgpu_piece_t *next;
};

amdgpu_control_t *amdgpu_control_of(const keel_queue_t *queue)
{
    return amdgpu_queue(queue)->control;
}

void amdgpu_scheduler_ask(amdgpu_control_t *control)
{
    amdgpu_scheduler_t *s = control->device->scheduler;
    lock_enter(&s->lock);
    if (!s->closing) tick_ask(control->shared);
    lock_leave(&s->lock);
}

void amdgpu_scheduler_wake(amdgpu_device_t *device, cell_t *cell)
{
    amdgpu_scheduler_t *s = device->scheduler;
    lock_enter(&s->lock);
    if (!s->closing) cell_wake(cell);
    lock_leave(&s->lock);
}

static keel_status_t kernels_find(amdgpu_device_t *device, amdgpu_scheduler_t *s)
{
    hsa_executable_t library = device->library;
    KEEL_TRY(amdgpu_kernel_find(device, library, "keel_tick", &s->tick));
    KEEL_TRY(amdgpu_kernel_find(device, library, "keel_advance", &s->advance));
    KEEL_TRY(amdgpu_kernel_find(device, library, "keel_issue", &s->issue));
    return amdgpu_kernel_find(device, library, "keel_patch", &s->patch);
}

keel_status_t amdgpu_scheduler_start(amdgpu_device_t *device, uint32_t each)
{
    amdgpu_scheduler_t *s = device->scheduler = mem_zalloc(sizeof *s);
    if (!s) return status_no_memory();
    KEEL_TRY(amdgpu_causes_init(s));
    KEEL_TRY(kernels_find(device, s));
    s->each = each;
    for (uint32_t i = 0; i < device->node_count * each; i++) {
        s->controls[i].device = device;
        s->controls[i].node = i / each;
        s->controls[i].number = i;
        s->control_count++;
        KEEL_TRY(amdgpu_control_start(&s->controls[i]));
    }
    return NULL;
}

// How many bytes a cell has, with its sides.
static uint64_t cell_size(const amdgpu_scheduler_t *s)
{
    uint64_t size = sizeof(cell_t) + s->control_count * sizeof(cell_side_t);
    return (size + PIECE - 1) / PIECE * PIECE;
}

static bool pieces_cut(amdgpu_scheduler_t *s, amdgpu_piece_t **spare, uint64_t size, void **piece)
{
    uint64_t offset = 0;
    lock_enter(&s->lock);
    *piece = *spare;
    if (*spare)
        *spare = (*spare)->next;
    else if (block_cut(s->pages, size, &offset))
        *piece = s->pages->data + offset;
    lock_leave(&s->lock);
    return *piece;
}

// So many bytes of shared memory: of a list of spare ones, or zeroed.
static keel_status_t piece_take(amdgpu_device_t *device, amdgpu_piece_t **spare, uint64_t size,
                                void **piece)
{
    amdgpu_scheduler_t *s = device->scheduler;
    block_t *more = NULL;
    if (pieces_cut(s, spare, size, piece)) return NULL;
    KEEL_TRY(blocks_acquire(&device->blocks, size, &more));
    memset(more->data, 0, more->size);
    lock_enter(&s->lock);
    more->next = s->pages;
    more->used = 0;
    s->pages = more;
    lock_leave(&s->lock);
    return pieces_cut(s, spare, size, piece) ? NULL
                                             : status_no_memory(); // others have taken all of it
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

static void queue_list(amdgpu_scheduler_t *s, amdgpu_queue_t *queue)
{
    lock_enter(&s->queues_lock);
    queue->next = s->queues;
    s->queues = queue;
    lock_leave(&s->queues_lock);
}

static void queue_unlist(amdgpu_scheduler_t *s, const amdgpu_queue_t *queue)
{
    lock_enter(&s->queues_lock);
    amdgpu_queue_t **link = &s->queues;
    while (*link != queue) link = &(*link)->next;
    *link = queue->next;
    lock_leave(&s->queues_lock);
}

// Of the control queue, too: the tick that wrote the last packets of the queue rings for them when
// they may have ended already, as others ring for theirs.
void amdgpu_scheduler_leave(amdgpu_queue_t *queue)
{
    if (!queue->shared) return;
    amdgpu_control_drain(queue->control, queue->queue);
    amdgpu_control_drain(queue->control, NULL);
    queue_unlist(amdgpu_device(queue->base.device)->scheduler, queue);
}

// Until the device goes: a tick that was not waited for may still write there.
static void queue_memory_keep(amdgpu_scheduler_t *s, block_t *advances)
{
    advances->used = advances->size;
    lock_enter(&s->lock);
    advances->next = s->pages;
    s->pages = advances;
    lock_leave(&s->lock);
}

void amdgpu_scheduler_forget(amdgpu_queue_t *queue)
{
    amdgpu_device_t *device = amdgpu_device(queue->base.device);
    amdgpu_scheduler_t *s = device->scheduler;
    if (!queue->shared) return;
    if (atomic_load(&device->failed)) {
        queue_memory_keep(s, queue->advances);
    } else {
        piece_give_back(device, &s->spare_queues, queue->shared);
        blocks_return(&device->blocks, queue->advances, false);
    }
    queue->shared = NULL;
}

// The last record of each queue has ended, but the kernel that told so may still run. Queues that
// are on their way out count as well, which the device does not list any more.
static void queues_drain(amdgpu_scheduler_t *s)
{
    lock_enter(&s->queues_lock);
    for (const amdgpu_queue_t *queue = s->queues; queue; queue = queue->next)
        amdgpu_control_drain(queue->control, queue->queue);
    lock_leave(&s->queues_lock);
}

// All records have ended; the last ticks may still be on their way.
void amdgpu_scheduler_stop(amdgpu_device_t *device)
{
    amdgpu_scheduler_t *s = device->scheduler;
    if (!s) return;
    lock_enter(&s->lock);
    s->closing = true;
    lock_leave(&s->lock);
    queues_drain(s);
    for (uint32_t i = 0; i < s->control_count; i++) amdgpu_control_drain(&s->controls[i], NULL);
    for (uint32_t i = 0; i < s->control_count; i++) amdgpu_control_stop(&s->controls[i]);
}

void amdgpu_scheduler_clear(amdgpu_device_t *device)
{
    amdgpu_scheduler_t *s = device->scheduler;
    for (uint32_t i = 0; s && i < s->control_count; i++) amdgpu_control_clear(&s->controls[i]);
}

void amdgpu_scheduler_free(amdgpu_device_t *device)
{
    amdgpu_scheduler_t *s = device->scheduler;
    if (!s) return;
    bool ours = object_is_ours(&device->base.object);
    amdgpu_causes_free(s);
    for (uint32_t i = 0; ours && i < s->control_count; i++) amdgpu_control_free(&s->controls[i]);
    if (s->pages && ours) blocks_return(&device->blocks, s->pages, false);
    mem_free(s);
}

// What stays the same whichever semaphore it is.
static void cell_make(amdgpu_scheduler_t *s, cell_t *cell)
{
    cell_side_t *sides = (cell_side_t *)(void *)(cell + 1);
    cell->sides = (uintptr_t)sides;
    cell->side_count = s->control_count;
    for (uint32_t i = 0; i < s->control_count; i++) {
        sides[i].cell = (uintptr_t)cell;
        sides[i].scheduler = (uintptr_t)s->controls[i].shared;
        sides[i].wanted = PROTOCOL_NOBODY;
    }
}

keel_status_t amdgpu_cell_take(amdgpu_device_t *device, amdgpu_cell_t *cell)
{
    amdgpu_scheduler_t *s = device->scheduler;
    void *piece;
    KEEL_TRY(piece_take(device, &s->spare_cells, cell_size(s), &piece));
    cell->cell = piece;
    if (!cell->cell->side_count) cell_make(s, cell->cell);
    cell->cell->cause = 0; // the lists of the GPU's are as they were
    amdgpu_cell_list(s, cell);
    return NULL;
}

void amdgpu_cell_give_back(amdgpu_device_t *device, amdgpu_cell_t *cell)
{
    amdgpu_cell_unlist(device->scheduler, cell);
    piece_give_back(device, &device->scheduler->spare_cells, cell->cell);
}

keel_status_t amdgpu_handle_take(amdgpu_device_t *device, handle_t **handle)
{
    void *piece;
    _Static_assert(sizeof **handle <= PIECE, "a handle is a piece");
    KEEL_TRY(piece_take(device, &device->scheduler->spare_handles, PIECE, &piece));
    memset(piece, 0, PIECE);
    *handle = piece;
    return NULL;
}

void amdgpu_handle_give_back(amdgpu_device_t *device, handle_t *handle)
{
    piece_give_back(device, &device->scheduler->spare_handles, handle);
}

keel_status_t amdgpu_scheduler_adopt(amdgpu_device_t *device, amdgpu_queue_t *queue, uint32_t node)
{
    amdgpu_scheduler_t *s = device->scheduler;
    void *piece;
    if (!s) return NULL;
    uint64_t size = queue->queue->size * sizeof(advance_args_t);
    _Static_assert(sizeof *queue->shared <= QUEUE, "a queue has room");
    KEEL_TRY(piece_take(device, &s->spare_queues, QUEUE, &piece));
    keel_status_t status = amdgpu_queue_describe(queue->queue, AMDGPU_DEVICE_ROOM, piece);
    if (!status) status = blocks_acquire(&device->blocks, size, &queue->advances);
    if (status) {
        piece_give_back(device, &s->spare_queues, piece);
        return status;
    }
    uint32_t turn = atomic_fetch_add(&s->turn[node], 1) % s->each;
    queue->control = &s->controls[node * s->each + turn];
    queue->shared = piece;
    queue->shared->advances = queue->advances->address;
    queue_list(s, queue);
    return NULL;
}

// Ends what one of them has. True: there is more to come.
static bool control_work(amdgpu_control_t *control)
{
    scheduler_t *shared = control->shared;
    if (!shared) return false;
    uint64_t at = records_take(&shared->done);
    if (at) amdgpu_shelves_look(control->device); // before the ends are shown
    amdgpu_trace_flush(control);                  // while the runs are there that it tells of
    amdgpu_trace_forget(control, at); // nothing orders the slots of the rest before `done`
    while (at) {
        const record_t *record = PROTOCOL_AT(record_t, at);
        amdgpu_run_t *run = (amdgpu_run_t *)(uintptr_t)record->user;
        at = record->next;
        amdgpu_record_end(run, NULL);
    }
    return PROTOCOL_LOAD(&shared->live, __ATOMIC_RELAXED);
}

bool amdgpu_scheduler_work(amdgpu_device_t *device)
{
    amdgpu_scheduler_t *s = device->scheduler;
    bool more = false;
    // A tick that was under way when the device was lost may still tell of ends: of runs that are
    // gone.
    for (uint32_t i = 0; s && !s->lost && i < s->control_count; i++)
        more |= control_work(&s->controls[i]);
    if (s) amdgpu_shelves_work(device);
    return more;
}

void amdgpu_scheduler_lost(amdgpu_device_t *device)
{
    amdgpu_scheduler_t *s = device->scheduler;
    if (!s) return;
    amdgpu_scheduler_work(device);
    for (uint32_t i = 0; i < s->control_count; i++) amdgpu_trace_stop(&s->controls[i]);
    for (;;) {
        lock_enter(&s->lock);
        amdgpu_run_t *run = s->runs;
        lock_leave(&s->lock);
        if (!run) break;
        amdgpu_record_end(run, amdgpu_lost_cause(device));
    }
    s->lost = true;
}

void amdgpu_queue_cancel(keel_queue_t *queue, keel_status_t cause)
{
    amdgpu_device_t *device = amdgpu_device(queue->device);
    amdgpu_scheduler_t *s = device->scheduler;
    amdgpu_control_t *control = amdgpu_control_of(queue);
    bool some = false;
    lock_enter(&s->lock);
    for (amdgpu_run_t *run = s->runs; run; run = run->flight.next) {
        if (run->base.submission.queue != queue) continue;
        // One that is there stays: the GPU may have read it, and causes are swept by what records
        // hold.
        if (PROTOCOL_LOAD(&run->record->cancel, __ATOMIC_RELAXED)) continue;
        uint64_t number = amdgpu_cancel_number(run);
        PROTOCOL_STORE(&run->record->cancel, number, __ATOMIC_RELAXED);
        some |= number != 0;
    }
    // release: pairs with the acquire of the tick that looks for them.
    if (some && !s->closing) PROTOCOL_SWAP(&control->shared->cancels, 1, __ATOMIC_RELEASE);
    lock_leave(&s->lock);
    if (some) amdgpu_scheduler_ask(control);
}
