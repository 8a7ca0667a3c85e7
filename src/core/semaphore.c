// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/live.h"
#include "base/memory.h"
#include "core/check.h"
#include "kit/ledger.h"
#include "kit/outside.h"

static void semaphore_link(keel_semaphore_t *semaphore)
{
    keel_device_t *device = semaphore->device;
    lock_enter(device_lock(device));
    semaphore->link.next = device->all_semaphores;
    if (device->all_semaphores) device->all_semaphores->link.previous = semaphore;
    device->all_semaphores = semaphore;
    lock_leave(device_lock(device));
}

static void semaphore_unlink(keel_semaphore_t *semaphore)
{
    keel_device_t *device = semaphore->device;
    lock_enter(device_lock(device));
    if (semaphore->link.previous)
        semaphore->link.previous->link.next = semaphore->link.next;
    else
        device->all_semaphores = semaphore->link.next;
    if (semaphore->link.next) semaphore->link.next->link.previous = semaphore->link.previous;
    lock_leave(device_lock(device));
}

// One that nobody knows of yet.
static keel_status_t semaphore_make(keel_device_t *device, const keel_semaphore_options_t *options,
                                    keel_semaphore_t **semaphore)
{
    uint64_t initial = options ? options->initial : 0;
    CHECK(initial < TIMELINE_FAILED, KEEL_INVALID_ARGUMENT, "options->initial is 2^63 or more");
    keel_semaphore_t *s = mem_zalloc_aligned(sizeof *s, _Alignof(keel_semaphore_t));
    if (!s) return status_no_memory();
    keel_status_t status = copy_name(options ? options->name : NULL, &s->name);
    if (status) {
        mem_free_aligned(s);
        return status;
    }
    object_init(&s->object);
    timeline_init(s, initial);
    s->device = device;
    *semaphore = s;
    return NULL;
}

// From here on the end of the device ends it too; if that has come, it is refused, and gone.
static keel_status_t semaphore_publish(keel_semaphore_t *semaphore)
{
    device_hold(semaphore->device);
    semaphore_link(semaphore);
    live_add(LIVE_SEMAPHORE, 1);
    // seq_cst: see device_end.
    keel_status_t ended = keel_status_retain(atomic_load(&semaphore->device->ended));
    if (ended) keel_semaphore_release(semaphore);
    return ended;
}

keel_status_t keel_semaphore_create(keel_device_t *device, const keel_semaphore_options_t *options,
                                    keel_semaphore_t **semaphore)
{
    CHECK_NOT_NULL(semaphore);
    *semaphore = NULL;
    CHECK_NOT_NULL(device);
    KEEL_TRY(device_check(device));
    keel_semaphore_t *s = NULL;
    KEEL_TRY(semaphore_make(device, options, &s));
    KEEL_TRY(semaphore_publish(s));
    *semaphore = s;
    return NULL;
}

static keel_status_t external_check(const keel_external_semaphore_t *external)
{
    CHECK(external->kind == KEEL_SEMAPHORE_TIMELINE_FD, KEEL_INVALID_ARGUMENT,
          "external->kind is %d, which is none of keel_semaphore_kind_t", (int)external->kind);
    return NULL;
}

static keel_status_t descriptor_copy(int fd, const char *what, int *copy)
{
    *copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    CHECK(*copy >= 0 || errno != EBADF, KEEL_INVALID_ARGUMENT, "%s is %d, which is not open", what,
          fd);
    CHECK(*copy >= 0, KEEL_RESOURCE_EXHAUSTED, "the process has no file descriptor left");
    return NULL;
}

keel_status_t keel_semaphore_import(keel_device_t *device,
                                    const keel_external_semaphore_t *external,
                                    const keel_semaphore_options_t *options,
                                    keel_semaphore_t **semaphore)
{
    CHECK_NOT_NULL(semaphore);
    *semaphore = NULL;
    CHECK_NOT_NULL(device);
    CHECK_NOT_NULL(external);
    KEEL_TRY(device_check(device));
    CHECK(device->caps.bits & KEEL_CAP_IMPORT_SEMAPHORE, KEEL_UNSUPPORTED,
          "the device has no KEEL_CAP_IMPORT_SEMAPHORE");
    KEEL_TRY(external_check(external));
    keel_semaphore_t *s = NULL;
    int fd = -1;
    KEEL_TRY(descriptor_copy(external->handle.fd, "external->handle.fd", &fd));
    keel_status_t status = semaphore_make(device, options, &s);
    if (!status) status = device->ops->semaphore_import(s, external);
    if (status) {
        close(fd);
        if (s) mem_free(s->name);
        mem_free_aligned(s);
        return status;
    }
    s->outside->fd = fd;
    KEEL_TRY(semaphore_publish(s));
    *semaphore = s;
    return NULL;
}

keel_status_t keel_semaphore_export(keel_semaphore_t *semaphore,
                                    keel_external_semaphore_t *external)
{
    CHECK_NOT_NULL(semaphore);
    CHECK_NOT_NULL(external);
    KEEL_TRY(device_check(semaphore->device));
    KEEL_TRY(external_check(external));
    CHECK(
        semaphore->outside, KEEL_UNSUPPORTED,
        "semaphore '%s' was made here, and the device can export none: let the other API make it, "
        "and import that",
        TEXT_OF(semaphore->name));
    return descriptor_copy(semaphore->outside->fd, "the semaphore's descriptor",
                           &external->handle.fd);
}

keel_semaphore_t *keel_semaphore_retain(keel_semaphore_t *semaphore)
{
    if (semaphore) object_retain(&semaphore->object);
    return semaphore;
}

void keel_semaphore_release(keel_semaphore_t *semaphore)
{
    if (!semaphore || !object_release(&semaphore->object)) return;
    if (!semaphore->ledger) {
        if (object_is_ours(&semaphore->object)) semaphore_unlink(semaphore);
        live_add(LIVE_SEMAPHORE, -1);
    }
    ledger_destroy(semaphore);
    if (semaphore->outside) {
        close(semaphore->outside->fd);
        semaphore->device->ops->semaphore_forget(semaphore);
    }
    keel_status_release(atomic_load(&semaphore->failure));
    device_drop(semaphore->device);
    mem_free(semaphore->name);
    mem_free_aligned(semaphore);
}

keel_status_t keel_semaphore_value(keel_semaphore_t *semaphore, uint64_t *value)
{
    CHECK_NOT_NULL(semaphore);
    CHECK_NOT_NULL(value);
    if (object_is_ours(&semaphore->object)) point_chase(semaphore);
    // acquire: pairs with the signal's release.
    uint64_t now = atomic_load_explicit(&semaphore->value, memory_order_acquire);
    *value = now & ~TIMELINE_FAILED;
    return now & TIMELINE_FAILED ? keel_status_retain(atomic_load(&semaphore->failure)) : NULL;
}

static keel_status_t semaphore_check_host(const keel_semaphore_t *semaphore)
{
    CHECK(object_is_ours(&semaphore->object), KEEL_DEVICE_LOST,
          "semaphore '%s' was made before fork and stayed with the parent process",
          TEXT_OF(semaphore->name));
    CHECK(!semaphore->ledger, KEEL_FAILED_PRECONDITION,
          "the timeline of a queue is signalled by the queue alone");
    return NULL;
}

keel_status_t keel_semaphore_signal(keel_semaphore_t *semaphore, uint64_t value)
{
    CHECK_NOT_NULL(semaphore);
    KEEL_TRY(semaphore_check_host(semaphore));
    CHECK(value < TIMELINE_FAILED, KEEL_INVALID_ARGUMENT, "value is 2^63 or more");
    return timeline_signal(semaphore, value);
}

void keel_semaphore_fail(keel_semaphore_t *semaphore, keel_status_t cause)
{
    if (!cause) return;
    keel_status_t refused = semaphore ? semaphore_check_host(semaphore) : NULL;
    if (semaphore && !refused)
        timeline_fail(semaphore, cause);
    else
        keel_status_release(cause);
    keel_status_release(refused);
}
