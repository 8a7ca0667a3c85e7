// SPDX-License-Identifier: Apache-2.0
#include "kit/transfer.h"

#include <keel/driver/driver.h>

#include "base/status.h"
#include "kit/command.h"

typedef struct transfer_t {
    aio_request_t aio;
    struct transfer_t *next;
    const transfer_ops_t *ops;
    aio_t *service;
    keel_cmd_transfer_t *c;
    unsigned char *data; // of the staging, or of the buffer itself
    uint64_t staging;    // as the device sees it; 0: none is needed
    uint64_t address;    // of the buffer
    uint64_t length, moved;
} transfer_t;

_Static_assert(sizeof(transfer_t) <= sizeof(((keel_cmd_transfer_t *)0)->request),
               "room for a transfer");

static bool is_write(const transfer_t *t)
{
    return t->c->head.kind == KEEL_CMD_WRITE;
}

static void step_done(aio_request_t *request, int error)
{
    transfer_t *t = (transfer_t *)(void *)request;
    transfers_t *transfers = request->context;
    if (!error) {
        t->next = atomic_load_explicit(&transfers->landed, memory_order_relaxed);
        // release: pairs with transfers_land.
        while (!atomic_compare_exchange_weak_explicit(&transfers->landed, &t->next, t,
                                                      memory_order_release, memory_order_relaxed)) {
        }
    }
    t->ops->done(transfers, t->c, command_transfer_status(t->c, error));
}

static uint64_t piece_size(const transfer_t *t, uint64_t at)
{
    uint64_t left = t->length - at;
    return t->staging && left > TRANSFER_PIECE ? TRANSFER_PIECE : left;
}

// Where in the staging it has its place: its neighbours have the other one.
static uint64_t piece_place(uint64_t at)
{
    return at / TRANSFER_PIECE % 2 * TRANSFER_PIECE;
}

// Moves the next piece between file and host memory; the step is counted.
static void step_begin(transfers_t *transfers, transfer_t *t)
{
    t->aio = (aio_request_t){
        .fd = t->c->file->fd,
        .write = is_write(t),
        .data = t->data + (t->staging ? piece_place(t->moved) : t->moved),
        .size = piece_size(t, t->moved),
        .offset = t->c->file_offset + t->moved,
        .done = step_done,
        .context = transfers,
    };
    aio_submit(t->service, &t->aio);
}

// Copies a piece between staging and buffer; nothing beyond the end.
static keel_status_t piece_copy(transfers_t *transfers, const transfer_t *t, uint64_t at)
{
    if (at >= t->length || !t->staging) return NULL;
    uint64_t here = t->staging + piece_place(at), there = t->address + at;
    bound_copy_t copy = {there, here, piece_size(t, at)};
    if (is_write(t)) copy = (bound_copy_t){here, there, copy.size};
    return t->ops->copy(transfers, &copy);
}

static keel_status_t transfer_init(transfers_t *transfers, transfer_t *t)
{
    const keel_ref_t *ref = &t->c->ref;
    bound_t span;
    KEEL_TRY(bind_ref(&(binder_t){0}, ref, &span));
    t->address = span.address;
    t->length = span.length;
    unsigned char *data = atomic_load_explicit(&ref->buffer->root->data, memory_order_relaxed);
    if (data && ref->buffer->memory & KEEL_MEMORY_HOST_COHERENT) {
        t->data = data + ref->buffer->offset + ref->offset;
        return NULL;
    }
    void *staging = NULL;
    uint64_t size = span.length < 2 * TRANSFER_PIECE ? span.length : 2 * TRANSFER_PIECE;
    KEEL_TRY(t->ops->stage(transfers, size, &staging, &t->staging));
    t->data = staging;
    return NULL;
}

void transfer_read(transfers_t *transfers, const transfer_ops_t *ops, aio_t *aio,
                   keel_cmd_transfer_t *c)
{
    transfer_t *t = (transfer_t *)(void *)c->request;
    *t = (transfer_t){.ops = ops, .service = aio, .c = c};
    keel_status_t status = transfer_init(transfers, t);
    if (status)
        ops->done(transfers, c, status);
    else
        step_begin(transfers, t);
}

keel_status_t transfer_write(transfers_t *transfers, const transfer_ops_t *ops, aio_t *aio,
                             keel_cmd_transfer_t *c)
{
    transfer_t *t = (transfer_t *)(void *)c->request;
    *t = (transfer_t){.ops = ops, .service = aio, .c = c};
    KEEL_TRY(transfer_init(transfers, t));
    KEEL_TRY(piece_copy(transfers, t, 0));
    KEEL_TRY(piece_copy(transfers, t, TRANSFER_PIECE));
    t->next = transfers->staged;
    transfers->staged = t;
    return NULL;
}

void transfers_staged(transfers_t *transfers)
{
    transfer_t *list = transfers->staged;
    transfers->staged = NULL;
    while (list && list->ops->begin(transfers)) {
        transfer_t *t = list;
        list = t->next;
        step_begin(transfers, t);
    }
}

bool transfers_land(transfers_t *transfers)
{
    // relaxed: all of it is over, and was seen to be.
    if (!atomic_load_explicit(&transfers->landed, memory_order_relaxed)) return false;
    // acquire: pairs with step_done.
    transfer_t *list = atomic_exchange_explicit(&transfers->landed, NULL, memory_order_acquire);
    bool more = false;
    while (list && list->ops->begin(transfers)) {
        transfer_t *t = list;
        uint64_t at = t->moved;
        list = t->next;
        t->moved += piece_size(t, at);
        // Of a file that is written the next piece is there already: the one after that takes the
        // place of this.
        uint64_t next = is_write(t) ? at + 2 * TRANSFER_PIECE : at;
        keel_status_t status = piece_copy(transfers, t, next);
        if (status || t->moved == t->length) {
            t->ops->done(transfers, t->c, status);
        } else {
            step_begin(transfers, t);
            more = true;
        }
    }
    return more;
}
