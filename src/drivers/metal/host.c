// SPDX-License-Identifier: Apache-2.0
// What the host does for a run. Each begins here and ends on another thread, while the run goes on
// up to the next barrier.
#include <stddef.h>
#include <string.h>

#include "drivers/metal/metal.h"
#include "kit/command.h"

static metal_run_t *run_of(transfers_t *transfers)
{
    return (metal_run_t *)(void *)((char *)transfers - offsetof(metal_run_t, transfers));
}

static keel_status_t files_stage(transfers_t *transfers, uint64_t size, void **data,
                                 uint64_t *address)
{
    metal_run_t *run = run_of(transfers);
    struct metal_memory_t *memory;
    KEEL_TRY(metal_stage(run, size, &memory));
    *data = mtl_contents(metal_run_device(run)->api, metal_memory_buffer(memory));
    *address = metal_memory_address(memory);
    return NULL;
}

static keel_status_t files_copy(transfers_t *transfers, const bound_copy_t *copy)
{
    metal_run_t *run = run_of(transfers);
    metal_place_t source, target;
    KEEL_TRY(metal_place_at(metal_run_device(run), copy->source, copy->size, &source));
    KEEL_TRY(metal_place_at(metal_run_device(run), copy->target, copy->size, &target));
    return metal_encode_copy(run, &source, &target);
}

static bool files_begin(transfers_t *transfers)
{
    metal_run_t *run = run_of(transfers);
    if (atomic_load(&run->base.failure)) return false;
    run_begin(&run->base);
    return true;
}

static void files_done(transfers_t *transfers, const keel_cmd_transfer_t *c, keel_status_t status)
{
    run_done_with(&run_of(transfers)->base, &c->head, status);
}

static const transfer_ops_t files_ops = {files_stage, files_copy, files_begin, files_done};

static keel_status_t file_begin(metal_run_t *run, keel_cmd_transfer_t *c)
{
    aio_t *aio = metal_run_device(run)->aio;
    run->moving++;
    run->base.unfinished = true;
    if (c->head.kind == KEEL_CMD_WRITE) return transfer_write(&run->transfers, &files_ops, aio, c);
    run_begin(&run->base);
    transfer_read(&run->transfers, &files_ops, aio, c);
    return NULL;
}

run_outcome_t metal_files_go_on(metal_run_t *run)
{
    if (!run->moving) return RUN_GOES_ON;
    if (!atomic_load(&run->base.failure)) {
        if (!run_room_take(&metal_queue(run->base.submission.queue)->room, &run->base))
            return RUN_STARVES;
        if (run->transfers.staged) {
            transfers_staged(&run->transfers);
            return RUN_WAITS;
        }
        if (transfers_land(&run->transfers)) return RUN_WAITS;
    }
    run->transfers.staged = NULL;
    atomic_store(&run->transfers.landed, NULL);
    run->moving = 0;
    run->base.unfinished = false;
    return RUN_GOES_ON;
}

static keel_status_t timestamp_write(metal_run_t *run, const keel_cmd_timestamp_t *c,
                                     const keel_cmd_execute_t *execute)
{
    metal_place_t place;
    uint64_t now = keel_now_ns();
    KEEL_TRY(metal_place(&c->target, execute, &place));
    if (!place.data) return metal_encode_bytes(run, &now, &place);
    memcpy(place.data, &now, sizeof now);
    return NULL;
}

keel_status_t metal_host(metal_run_t *run, const keel_command_t *command,
                         const keel_cmd_execute_t *execute)
{
    void *c = (void *)(uintptr_t)command; // they keep state in their records
    switch (command->kind) {
    case KEEL_CMD_HOST_CALL:
        return run_call(&run->base, &metal_queue(run->base.submission.queue)->calls, c);
    case KEEL_CMD_READ:
    case KEEL_CMD_WRITE: return file_begin(run, c);
    case KEEL_CMD_ALLOCA: return run_alloca(&run->base, c);
    case KEEL_CMD_DEALLOCA: return keel_slabs_dealloca(c);
    default: return timestamp_write(run, c, execute);
    }
}
