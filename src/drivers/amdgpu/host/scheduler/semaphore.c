// SPDX-License-Identifier: Apache-2.0
// Semaphores as cells of memory that host and GPU share.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/amdgpu/host/scheduler/scheduler.h"
#include "kit/object.h"
#include "kit/remote.h"

typedef struct amdgpu_semaphore_t {
    remote_t remote;
    amdgpu_cell_t cell;
} amdgpu_semaphore_t;

static cell_t *cell_of(remote_t *remote)
{
    return ((amdgpu_semaphore_t *)(void *)remote)->cell.cell;
}

static amdgpu_device_t *device_of(const remote_t *remote)
{
    return amdgpu_device(remote->semaphore.device);
}

cell_t *amdgpu_cell_of(keel_semaphore_t *semaphore, const keel_device_t *device)
{
    remote_t *remote = remote_here(semaphore, device);
    return remote ? cell_of(remote) : NULL;
}

static keel_status_t semaphore_load(remote_t *remote, uint64_t *value)
{
    cell_t *cell = cell_of(remote);
    // acquire: pairs with cell_signal and cell_fail.
    uint64_t now = PROTOCOL_LOAD(&cell->value, __ATOMIC_ACQUIRE);
    *value = now & ~PROTOCOL_FAILED;
    amdgpu_shelves_look(device_of(remote)); // what was written before is seen after this
    if (!(now & PROTOCOL_FAILED)) return NULL;
    return amdgpu_cause_get(device_of(remote), PROTOCOL_LOAD(&cell->cause, __ATOMIC_RELAXED));
}

static keel_status_t semaphore_signal(remote_t *remote, uint64_t value)
{
    if (!cell_signal(cell_of(remote), value)) return remote_refusal(remote, value);
    amdgpu_scheduler_wake(device_of(remote), cell_of(remote));
    return NULL;
}

static void semaphore_fail(remote_t *remote, keel_status_t cause)
{
    amdgpu_cell_fail(device_of(remote), cell_of(remote), cause);
    amdgpu_scheduler_wake(device_of(remote), cell_of(remote));
}

// The end of the submission that brings the value looks at it: the GPU is to tell of that at once.
// Again if another thread has come with a smaller value meanwhile, which this one may have undone.
static void semaphore_watch(remote_t *remote)
{
    uint64_t awaited;
    do {
        awaited = remote_awaited(remote);
        PROTOCOL_STORE(&cell_of(remote)->awaited, awaited, __ATOMIC_RELAXED);
        // seq_cst: pairs with the GPU's, between its signal and its look at `awaited`. Either it
        // sees this, or the library's look, which follows, sees the value.
        PROTOCOL_FENCE();
    } while (awaited != remote_awaited(remote));
}

static void semaphore_destroy(remote_t *remote)
{
    if (object_is_ours(&remote->semaphore.object))
        amdgpu_cell_give_back(device_of(remote), &((amdgpu_semaphore_t *)(void *)remote)->cell);
    mem_free_aligned(remote);
}

static const remote_ops_t semaphore_ops = {
    .load = semaphore_load,
    .signal = semaphore_signal,
    .fail = semaphore_fail,
    .watch = semaphore_watch,
    .destroy = semaphore_destroy,
};

keel_status_t amdgpu_semaphore_create(keel_device_t *device, uint64_t initial,
                                      keel_semaphore_t **semaphore)
{
    amdgpu_semaphore_t *s = mem_zalloc_aligned(sizeof *s, _Alignof(amdgpu_semaphore_t));
    if (!s) return status_no_memory();
    keel_status_t status = amdgpu_cell_take(amdgpu_device(device), &s->cell);
    if (status) {
        mem_free_aligned(s);
        return status;
    }
    s->cell.cell->awaited = PROTOCOL_NOBODY;
    // release: pairs with a tick that looks at the cell for the semaphore which had it before.
    PROTOCOL_STORE(&s->cell.cell->value, initial, __ATOMIC_RELEASE);
    remote_init(&s->remote, &semaphore_ops, device, initial);
    *semaphore = &s->remote.semaphore;
    return NULL;
}
