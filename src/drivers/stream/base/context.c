// SPDX-License-Identifier: Apache-2.0
// The vendor's context around calls, and the loss of a device.
#include "base/clock.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/status.h"
#include "drivers/stream/base/device.h"

enum {
    DRAIN_NS = 5000000,
    DRAIN_ATTEMPTS = 200,
};

bool stream_device_is_ours(const stream_device_t *device)
{
    return fork_is_ours(device->generation);
}

KEEL_HOT bool stream_enter(stream_device_t *device, stream_entered_t *entered)
{
    bool lost = atomic_load_explicit(&device->lost, memory_order_relaxed);
    if (__builtin_expect(lost || !stream_device_is_ours(device), 0)) return false;
    entered->device = device;
    device->api->enter(device->vendor, &entered->before);
    return true;
}

KEEL_HOT void stream_leave(stream_entered_t *entered)
{
    entered->device->api->leave(&entered->before);
}

keel_status_t stream_device_lost(stream_device_t *device)
{
    // acquire: pairs with stream_device_lose.
    return keel_status_retain(atomic_load_explicit(&device->lost, memory_order_acquire));
}

void stream_device_lose(stream_device_t *device, keel_status_t cause)
{
    keel_status_t none = NULL;
    bool first = !stream_device_is_lost(device);
    // Whatever the error was, the code says that the device is lost.
    if (first) cause = status_as(device->hooks->explain(device, cause), KEEL_DEVICE_LOST);
    // release: pairs with stream_device_lost.
    if (!first || !atomic_compare_exchange_strong(&device->lost, &none, cause)) {
        keel_status_release(cause);
        return;
    }
    log_say(KEEL_LOG_ERROR, "%s", keel_status_message(cause));
    device->hooks->end(device, cause);
}

keel_status_t stream_device_note(stream_device_t *device, keel_status_t status)
{
    if (__builtin_expect(!status, 1)) return NULL;
    keel_status_t lost = stream_device_lost(device);
    if (lost) {
        keel_status_release(status);
        return lost;
    }
    if (keel_status_code(status) != KEEL_DEVICE_LOST) return status;
    stream_device_lose(device, status);
    return stream_device_lost(device);
}

keel_status_t stream_device_drain(stream_device_t *device, stream_h stream)
{
    for (int left = DRAIN_ATTEMPTS;; left--) {
        if (stream_device_is_lost(device)) return stream_device_lost(device); // it stays so
        keel_status_t status = device->api->stream_drain(device->vendor, stream);
        if (!status || keel_status_code(status) == KEEL_DEVICE_LOST) return status;
        const char *silent = "the vendor does not say whether work has ended";
        if (!left) return status_as(keel_status_wrap(status, "%s", silent), KEEL_DEVICE_LOST);
        keel_status_release(status);
        clock_sleep(DRAIN_NS);
    }
}
