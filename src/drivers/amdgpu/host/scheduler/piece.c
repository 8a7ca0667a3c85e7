// SPDX-License-Identifier: Apache-2.0
// Pieces of memory that host and GPU share for as long as the device is there: of cells, queues and
// handles.
#include <string.h>

#include "base/status.h"
#include "drivers/amdgpu/host/scheduler/scheduler.h"

enum { PIECE = 64, QUEUE = 2 * PIECE }; // bytes

struct amdgpu_piece_t {
    amdgpu_piece_t *next;
};

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

void amdgpu_page_keep(amdgpu_scheduler_t *s, block_t *block)
{
    block->used = block->size;
    lock_enter(&s->lock);
    block->next = s->pages;
    s->pages = block;
    lock_leave(&s->lock);
}

keel_status_t amdgpu_shared_queue_take(amdgpu_device_t *device, ring_queue_t **queue)
{
    void *piece;
    _Static_assert(sizeof **queue <= QUEUE, "a queue has room");
    KEEL_TRY(piece_take(device, &device->scheduler->spare_queues, QUEUE, &piece));
    *queue = piece;
    return NULL;
}

void amdgpu_shared_queue_give_back(amdgpu_device_t *device, ring_queue_t *queue)
{
    piece_give_back(device, &device->scheduler->spare_queues, queue);
}

// How many bytes a cell has, with its sides.
static uint64_t cell_size(const amdgpu_scheduler_t *s)
{
    uint64_t size = sizeof(cell_t) + s->control_count * sizeof(cell_side_t);
    return (size + PIECE - 1) / PIECE * PIECE;
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
