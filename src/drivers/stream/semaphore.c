// SPDX-License-Identifier: Apache-2.0
// Semaphores of other APIs: what kit/border.h asks of a driver.
//
// Signals go to a stream of the semaphore's own, each behind the event that it is promised by. A
// stream that waits for the other side may wait for ever, and whatever has to wait for all streams
// of a context, loading code for example, with it: lanes are streams of a context beside the
// device's, where nothing else is done.
#include <fcntl.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/driver.h"
#include "kit/border.h"

typedef struct beside_t {
    stream_device_t *device; // borrowed; may be gone
    const stream_api_t *api;
    stream_vendor_t *vendor; // owned
    stream_event_h probe;    // owned; never recorded: asking after it tells how the context is
} beside_t;

typedef struct ours_t {
    stream_outside_h signals;
    stream_h stream;
} ours_t;

static keel_status_t beside_send(void *place, void *ours, const outgoing_t *outgoing)
{
    stream_device_t *device = ((beside_t *)place)->device;
    const ours_t *o = ours;
    const stream_event_t *event = (const stream_event_t *)(void *)outgoing->promise;
    stream_entered_t entered;
    if (!stream_enter(device, &entered)) return stream_device_lost(device);
    keel_status_t status = NULL;
    if (event) status = device->api->stream_wait(device->vendor, o->stream, event->handle);
    if (!status)
        status =
            device->api->outside_signal(device->vendor, o->signals, outgoing->value, o->stream);
    stream_leave(&entered);
    return status;
}

static void beside_ours_close(void *place, void *ours)
{
    stream_device_t *device = ((beside_t *)place)->device;
    ours_t *o = ours;
    stream_entered_t entered;
    if (stream_enter(device, &entered)) {
        keel_status_t busy = NULL;
        if (o->stream) STREAM_TWICE(busy, device->api->stream_drain(device->vendor, o->stream));
        if (o->stream) device->api->stream_destroy(device->vendor, o->stream);
        if (o->signals && !busy) device->api->outside_destroy(device->vendor, o->signals);
        stream_leave(&entered);
        keel_status_release(busy);
    }
    mem_free(o);
}

static keel_status_t beside_lost(void *place)
{
    return stream_device_lost(((beside_t *)place)->device);
}

static void beside_lose(void *place, keel_status_t cause)
{
    stream_device_lose(((beside_t *)place)->device, cause);
}

static keel_status_t beside_note(void *place, keel_status_t status)
{
    return stream_device_note(((beside_t *)place)->device, status);
}

static keel_status_t beside_lane_create(void *place, void **lane)
{
    const beside_t *b = place;
    stream_before_t before;
    b->api->enter(b->vendor, &before);
    keel_status_t status = b->api->stream_create(b->vendor, b->device->limits.least, lane);
    b->api->leave(&before);
    return status;
}

static void beside_lane_destroy(void *place, void *lane)
{
    const beside_t *b = place;
    b->api->stream_destroy(b->vendor, lane);
}

static keel_status_t beside_lane_wait(void *place, void *lane, void *theirs, uint64_t value,
                                      void (*came)(void *user), void *user)
{
    const beside_t *b = place;
    stream_before_t before;
    b->api->enter(b->vendor, &before);
    keel_status_t status = b->api->outside_wait(b->vendor, theirs, value, lane), deaf = NULL;
    // Once the lane is parked, a thread has to learn that the value has come.
    if (!status) STREAM_TWICE(deaf, b->api->stream_call(b->vendor, lane, came, user));
    b->api->leave(&before);
    if (deaf) stream_device_lose(b->device, deaf);
    return status;
}

static void beside_theirs_close(void *place, void *theirs)
{
    const beside_t *b = place;
    b->api->outside_destroy(b->vendor, theirs);
}

static keel_status_t probe_ask(const beside_t *b)
{
    stream_before_t before;
    bool over;
    b->api->enter(b->vendor, &before);
    keel_status_t status = b->api->event_query(b->vendor, b->probe, &over);
    b->api->leave(&before);
    return status;
}

static keel_status_t beside_check(void *place)
{
    keel_status_t status;
    STREAM_TWICE(status, probe_ask(place));
    return status;
}

static void beside_close(void *place)
{
    beside_t *b = place;
    if (b->probe) b->api->event_destroy(b->vendor, b->probe);
    if (b->vendor) b->api->close_device(b->vendor);
    mem_free(b);
}

static const border_ops_t beside_ops = {
    beside_send,         beside_ours_close,  beside_lost,      beside_lose,
    beside_note,         beside_lane_create, beside_lane_wait, beside_lane_destroy,
    beside_theirs_close, beside_check,       beside_close,
};

// Entered.
static keel_status_t beside_create(stream_device_t *device, border_t **border)
{
    stream_before_t before;
    beside_t *b = mem_zalloc(sizeof *b);
    if (!b) return status_no_memory();
    *b = (beside_t){.device = device, .api = device->api};
    keel_status_t status = b->api->beside(device->vendor, &b->vendor);
    if (!status) {
        b->api->enter(b->vendor, &before);
        status = b->api->event_create(b->vendor, STREAM_EVENT_POLLED, &b->probe);
        b->api->leave(&before);
    }
    if (!status) return border_create(&beside_ops, b, border);
    beside_close(b);
    return status;
}

// The device's, made when first needed; entered.
static keel_status_t border_get(stream_device_t *device, border_t **border)
{
    border_t *none = NULL, *made = NULL;
    *border = atomic_load(&device->border);
    if (*border) return NULL;
    KEEL_TRY(beside_create(device, &made));
    *border = made;
    if (atomic_compare_exchange_strong(&device->border, &none, made)) return NULL;
    *border = none;
    border_destroy(made);
    return NULL;
}

// Gives the vendor a copy of a descriptor. Whatever it does not like about it, it is the caller's
// that is no good; unless there was no memory for it.
static keel_status_t outside_open(const stream_api_t *api, stream_vendor_t *vendor, int fd,
                                  stream_outside_h *outside)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "the process has no file descriptor left");
    keel_status_t status = api->outside_import(vendor, copy, outside);
    if (!status) return NULL;
    close(copy);
    if (keel_status_code(status) == KEEL_RESOURCE_EXHAUSTED) return status;
    return keel_status_wrap(status_as(status, KEEL_INVALID_ARGUMENT),
                            "external->handle.fd is no timeline semaphore for this device");
}

// Entered.
static keel_status_t outside_import(stream_device_t *device, int fd, uint64_t initial,
                                    keel_semaphore_t **semaphore)
{
    border_t *border;
    stream_before_t before;
    stream_outside_h theirs = NULL;
    KEEL_TRY(border_get(device, &border));
    const beside_t *b = border->place;
    ours_t *ours = mem_zalloc(sizeof *ours);
    if (!ours) return status_no_memory();
    keel_status_t status = outside_open(b->api, device->vendor, fd, &ours->signals);
    if (!status)
        status = b->api->stream_create(device->vendor, device->limits.greatest, &ours->stream);
    if (!status) {
        b->api->enter(b->vendor, &before);
        status = outside_open(b->api, b->vendor, fd, &theirs);
        b->api->leave(&before);
    }
    if (!status)
        return border_import(border, &(border_sides_t){ours, theirs}, initial, fd, semaphore);
    beside_ours_close(border->place, ours);
    return status;
}

keel_status_t stream_semaphore_import(keel_device_t *base,
                                      const keel_external_semaphore_t *external, uint64_t initial,
                                      keel_semaphore_t **semaphore)
{
    stream_device_t *device = stream_device(base);
    stream_entered_t entered;
    if (external->kind != KEEL_SEMAPHORE_TIMELINE_FD)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "the device imports semaphores by descriptors only, "
                                            "KEEL_SEMAPHORE_TIMELINE_FD");
    if (!stream_enter(device, &entered)) return stream_device_lost(device);
    keel_status_t status = outside_import(device, external->handle.fd, initial, semaphore);
    stream_leave(&entered);
    return stream_device_note(device, status);
}
