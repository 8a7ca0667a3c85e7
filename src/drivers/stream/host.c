// SPDX-License-Identifier: Apache-2.0
// What a stream cannot do: call the application, read and write files.
//
// A file is moved a piece at a time through staging, unless the host can reach the buffer. Reading:
// file to staging, then on the stream staging to buffer; writing the other way round. Between the
// two the run is parked, once for all transfers of a stage.
#include <stddef.h>

#include "base/status.h"
#include "drivers/stream/stream.h"
#include "kit/call.h"

enum { PIECE = 16 << 20 }; // of a file that is staged; two at a time

static void call_done(keel_host_call_t *state, keel_status_t status)
{
    const keel_cmd_call_t *c =
        (const keel_cmd_call_t *)(void *)((char *)state - offsetof(keel_cmd_call_t, state));
    stream_run_t *run = state->context;
    if (status) stream_run_fail(run, submission_blame(&run->base, NULL, &c->head, status));
    stream_run_done(run);
}

static keel_status_t call_begin(stream_run_t *run, keel_cmd_call_t *c)
{
    bool detached = c->call.detached;
    c->state = (keel_host_call_t){.done = call_done, .context = run};
    KEEL_TRY(call_post(&stream_queue(run->base.queue)->calls, run->base.queue, c));
    if (detached) stream_run_done(run);
    return NULL;
}

typedef struct stream_transfer_t {
    aio_request_t aio;
    struct stream_transfer_t *next;
    keel_cmd_transfer_t *c;
    unsigned char *data; // of the staging, or of the buffer itself
    uint64_t staging;    // as the device sees it; 0: none is needed
    uint64_t address;    // of the buffer
    uint64_t length, moved;
} stream_transfer_t;

_Static_assert(sizeof(stream_transfer_t) <= sizeof(((keel_cmd_transfer_t *)0)->request),
               "room for a transfer");

static bool transfer_is_write(const stream_transfer_t *t)
{
    return t->c->head.kind == KEEL_CMD_WRITE;
}

static void transfer_fail(stream_run_t *run, const stream_transfer_t *t, keel_status_t status)
{
    stream_run_fail(run, submission_blame(&run->base, NULL, &t->c->head, status));
}

static void transfer_moved(aio_request_t *request, int error)
{
    stream_transfer_t *t = (stream_transfer_t *)(void *)request;
    stream_run_t *run = request->context;
    if (error) {
        transfer_fail(run, t, command_transfer_status(t->c, error));
    } else {
        t->next = atomic_load_explicit(&run->landed, memory_order_relaxed);
        // release: pairs with stream_host_land.
        while (!atomic_compare_exchange_weak_explicit(&run->landed, &t->next, t,
                                                      memory_order_release, memory_order_relaxed)) {
        }
    }
    stream_run_done(run);
}

static uint64_t piece_size(const stream_transfer_t *t, uint64_t at)
{
    uint64_t left = t->length - at;
    return t->staging && left > PIECE ? PIECE : left;
}

// Where in the staging it has its place: its neighbours have the other one.
static uint64_t piece_place(uint64_t at)
{
    return at / PIECE % 2 * PIECE;
}

// Moves the next piece between file and host memory; counted as pending.
static void transfer_file(stream_run_t *run, stream_transfer_t *t)
{
    t->aio = (aio_request_t){
        .fd = t->c->file->fd,
        .write = transfer_is_write(t),
        .data = t->data + (t->staging ? piece_place(t->moved) : t->moved),
        .size = piece_size(t, t->moved),
        .offset = t->c->file_offset + t->moved,
        .done = transfer_moved,
        .context = run,
    };
    aio_submit(stream_device(run->base.queue->device)->aio, &t->aio);
}

// Copies a piece between staging and buffer, on the stream; nothing beyond the end.
static keel_status_t transfer_copy(stream_run_t *run, const stream_transfer_t *t, uint64_t at)
{
    if (at >= t->length || !t->staging) return NULL;
    stream_device_t *device = stream_device(run->base.queue->device);
    stream_queue_t *queue = stream_queue(run->base.queue);
    uint64_t here = t->staging + piece_place(at), there = t->address + at;
    bound_copy_t copy = {there, here, piece_size(t, at)};
    if (transfer_is_write(t)) copy = (bound_copy_t){here, there, copy.size};
    run->issued = true;
    return stream_device_note(device,
                              device->api->copy(device->vendor, stream_queue_onto(queue), &copy));
}

static keel_status_t transfer_init(stream_run_t *run, keel_cmd_transfer_t *c,
                                   stream_transfer_t **made)
{
    stream_transfer_t *t = (stream_transfer_t *)(void *)c->request;
    const keel_buffer_t *buffer = c->ref.buffer;
    bound_t span;
    KEEL_TRY(bind_ref(&(binder_t){0}, &c->ref, &span));
    *t = (stream_transfer_t){.c = c, .address = span.address, .length = span.length};
    unsigned char *data = atomic_load_explicit(&buffer->root->data, memory_order_relaxed);
    if (data) {
        t->data = data + buffer->offset + c->ref.offset;
    } else {
        void *staging;
        uint64_t size = span.length < 2 * PIECE ? span.length : 2 * PIECE;
        KEEL_TRY(stream_stage(run, size, &staging, &t->staging));
        t->data = staging;
    }
    *made = t;
    return NULL;
}

void stream_host_begin(stream_run_t *run, keel_command_t *command)
{
    stream_transfer_t *t = NULL;
    keel_status_t status;
    if (command->kind == KEEL_CMD_HOST_CALL)
        status = call_begin(run, (keel_cmd_call_t *)(void *)command);
    else
        status = transfer_init(run, (keel_cmd_transfer_t *)(void *)command, &t);
    if (t) transfer_file(run, t);
    if (!status) return;
    stream_run_fail(run, submission_blame(&run->base, NULL, command, status));
    stream_run_done(run);
}

keel_status_t stream_host_write(stream_run_t *run, keel_command_t *command)
{
    stream_transfer_t *t;
    KEEL_TRY(transfer_init(run, (keel_cmd_transfer_t *)(void *)command, &t));
    KEEL_TRY(transfer_copy(run, t, 0));
    KEEL_TRY(transfer_copy(run, t, PIECE));
    t->next = run->staged;
    run->staged = t;
    return NULL;
}

void stream_host_staged(stream_run_t *run)
{
    stream_transfer_t *list = run->staged;
    run->staged = NULL;
    while (list && !atomic_load(&run->failure)) {
        stream_transfer_t *t = list;
        list = t->next;
        atomic_fetch_add_explicit(&run->pending, 1, memory_order_relaxed);
        transfer_file(run, t);
    }
}

bool stream_host_land(stream_run_t *run)
{
    // relaxed: all of it is over, and was seen to be.
    if (!atomic_load_explicit(&run->landed, memory_order_relaxed)) return false;
    // acquire: pairs with transfer_moved.
    stream_transfer_t *list = atomic_exchange_explicit(&run->landed, NULL, memory_order_acquire);
    bool more = false;
    while (list && !atomic_load(&run->failure)) {
        stream_transfer_t *t = list;
        uint64_t at = t->moved;
        list = t->next;
        t->moved += piece_size(t, at);
        // Of a file that is written the next piece is there already: the one after that takes the
        // place of this.
        keel_status_t status = transfer_copy(run, t, transfer_is_write(t) ? at + 2 * PIECE : at);
        if (status) transfer_fail(run, t, status);
        if (status || t->moved == t->length) continue;
        atomic_fetch_add_explicit(&run->pending, 1, memory_order_relaxed);
        transfer_file(run, t);
        more = true;
    }
    return more;
}
