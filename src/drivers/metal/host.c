// SPDX-License-Identifier: Apache-2.0
// What the host does for a run. Each begins here and ends on another thread, while the run goes on
// up to the next barrier.
#include <stddef.h>
#include <string.h>

#include "drivers/metal/metal.h"
#include "kit/command.h"

_Static_assert(sizeof(aio_request_t) <= sizeof(((keel_cmd_transfer_t *)0)->request),
               "room for a request");

static void transfer_done(aio_request_t *request, int error)
{
    char *at = (char *)request - offsetof(keel_cmd_transfer_t, request);
    keel_cmd_transfer_t *c = (keel_cmd_transfer_t *)(void *)at;
    run_done_with(request->context, &c->head, command_transfer_status(c, error));
}

static keel_status_t transfer_begin(metal_run_t *run, keel_cmd_transfer_t *c)
{
    metal_place_t place;
    KEEL_TRY(metal_place(&c->ref, NULL, &place));
    aio_request_t *request = (aio_request_t *)(void *)c->request;
    *request = (aio_request_t){
        .fd = c->file->fd,
        .write = c->head.kind == KEEL_CMD_WRITE,
        .data = place.data,
        .size = place.length,
        .offset = c->file_offset,
        .done = transfer_done,
        .context = &run->base,
    };
    run_begin(&run->base);
    aio_submit(metal_run_device(run)->aio, request);
    return NULL;
}

static keel_status_t timestamp_write(const keel_cmd_timestamp_t *c,
                                     const keel_cmd_execute_t *execute)
{
    metal_place_t place;
    uint64_t now = keel_now_ns();
    KEEL_TRY(metal_place(&c->target, execute, &place));
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
    case KEEL_CMD_WRITE: return transfer_begin(run, c);
    case KEEL_CMD_ALLOCA: return run_alloca(&run->base, c);
    case KEEL_CMD_DEALLOCA: return keel_slabs_dealloca(c);
    default: return timestamp_write(c, execute);
    }
}
