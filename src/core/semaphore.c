// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/live.h"
#include "base/memory.h"
#include "core/check.h"
#include "core/device_ref.h"
#include "kit/shared.h"
#include "kit/timeline.h"

static void semaphore_link(keel_semaphore_t *semaphore)
{
    keel_device_t *device = semaphore->device;
    lock_enter(device_lock(device));
    semaphore->link.next = device->all_semaphores;
    if (device->all_semaphores) device->all_semaphores->link.previous = semaphore;
    device->all_semaphores = semaphore;
    semaphore->listed = true;
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

// A copy of the name, if the options are sound.
static keel_status_t options_read(const keel_semaphore_options_t *options, uint64_t *initial,
                                  char **name)
{
    *initial = options ? options->initial : 0;
    CHECK(*initial < SEMAPHORE_FAILED, KEEL_INVALID_ARGUMENT, "options->initial is 2^63 or more");
    return copy_name(options ? options->name : NULL, name);
}

// Makes one the application's that a driver or the kit has made. From here on the end of the device
// ends it too; if that has come, it is refused, and gone.
static keel_status_t semaphore_publish(keel_device_t *device, char *name, keel_semaphore_t *made,
                                       keel_semaphore_t **semaphore)
{
    made->device = device;
    made->name = name;
    made->info = (keel_semaphore_info_t){device, TEXT_OF(name)};
    device_hold(device);
    object_init(&made->object);
    semaphore_link(made);
    live_add(LIVE_SEMAPHORE, 1);
    // seq_cst: see device_end.
    keel_status_t ended = keel_status_retain(atomic_load(&device->ended));
    if (ended)
        keel_semaphore_release(made);
    else
        *semaphore = made;
    return ended;
}

static keel_status_t shared_check(const keel_device_t *device)
{
    CHECK(device->caps.bits & KEEL_CAP_SHARED_SEMAPHORE, KEEL_UNSUPPORTED,
          "the device has no KEEL_CAP_SHARED_SEMAPHORE: the system shares none between processes");
    return NULL;
}

// Where the value is kept: in memory of several processes, where the driver says, or on the host.
static keel_status_t semaphore_make(keel_device_t *device, bool shared, uint64_t initial,
                                    keel_semaphore_t **made)
{
    if (shared) {
        KEEL_TRY(shared_check(device));
        return shared_create(initial, made);
    }
    return device->ops->semaphore_create ? device->ops->semaphore_create(device, initial, made)
                                         : timeline_create(initial, made);
}

keel_status_t keel_semaphore_create(keel_device_t *device, const keel_semaphore_options_t *options,
                                    keel_semaphore_t **semaphore)
{
    CHECK_NOT_NULL(semaphore);
    *semaphore = NULL;
    CHECK_NOT_NULL(device);
    KEEL_TRY(device_check(device));
    uint64_t initial;
    char *name = NULL;
    keel_semaphore_t *s = NULL;
    KEEL_TRY(options_read(options, &initial, &name));
    keel_status_t status = semaphore_make(device, options && options->shared, initial, &s);
    if (!status) return semaphore_publish(device, name, s, semaphore);
    mem_free(name);
    return status;
}

static keel_status_t external_check(const keel_external_semaphore_t *external)
{
    CHECK(external->kind == KEEL_SEMAPHORE_TIMELINE_FD ||
              external->kind == KEEL_SEMAPHORE_SHARED_FD || external->kind == KEEL_SEMAPHORE_NATIVE,
          KEEL_INVALID_ARGUMENT, "external->kind is %d, which is none of keel_semaphore_kind_t",
          (int)external->kind);
    return NULL;
}

static keel_status_t descriptor_copy(int fd, int *copy)
{
    *copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    CHECK(*copy >= 0 || errno != EBADF, KEEL_INVALID_ARGUMENT,
          "external->handle.fd is %d, which is not open", fd);
    CHECK(*copy >= 0, KEEL_RESOURCE_EXHAUSTED, "the process has no file descriptor left");
    return NULL;
}

static keel_status_t other_import(keel_device_t *device, const keel_external_semaphore_t *external,
                                  uint64_t initial, keel_semaphore_t **made)
{
    CHECK(device->caps.bits & KEEL_CAP_IMPORT_SEMAPHORE, KEEL_UNSUPPORTED,
          "the device has no KEEL_CAP_IMPORT_SEMAPHORE");
    if (external->kind == KEEL_SEMAPHORE_NATIVE)
        return device->ops->semaphore_import(device, external, initial, made);
    keel_external_semaphore_t own = *external;
    KEEL_TRY(descriptor_copy(external->handle.fd, &own.handle.fd));
    keel_status_t status = device->ops->semaphore_import(device, &own, initial, made);
    if (status) close(own.handle.fd);
    return status;
}

// Opens it, by the way of its kind.
static keel_status_t semaphore_open(keel_device_t *device,
                                    const keel_external_semaphore_t *external, uint64_t initial,
                                    keel_semaphore_t **made)
{
    KEEL_TRY(external_check(external));
    if (external->kind != KEEL_SEMAPHORE_SHARED_FD)
        return other_import(device, external, initial, made);
    KEEL_TRY(shared_check(device));
    return shared_import(external->handle.fd, initial, made);
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
    uint64_t initial;
    char *name = NULL;
    keel_semaphore_t *s = NULL;
    KEEL_TRY(options_read(options, &initial, &name));
    keel_status_t status = semaphore_open(device, external, initial, &s);
    if (!status) return semaphore_publish(device, name, s, semaphore);
    mem_free(name);
    return status;
}

keel_status_t keel_semaphore_export(keel_semaphore_t *semaphore,
                                    keel_external_semaphore_t *external)
{
    CHECK_NOT_NULL(semaphore);
    CHECK_NOT_NULL(external);
    KEEL_TRY(device_check(semaphore->device));
    KEEL_TRY(external_check(external));
    return semaphore->ops->export(semaphore, external);
}

keel_semaphore_t *keel_semaphore_retain(keel_semaphore_t *semaphore)
{
    if (semaphore) object_retain(&semaphore->object);
    return semaphore;
}

void keel_semaphore_release(keel_semaphore_t *semaphore)
{
    if (!semaphore || !object_release(&semaphore->object)) return;
    if (semaphore->listed) {
        if (object_is_ours(&semaphore->object)) semaphore_unlink(semaphore);
        live_add(LIVE_SEMAPHORE, -1);
    }
    keel_device_t *device = semaphore->device;
    keel_status_release(atomic_load(&semaphore->failure));
    mem_free(semaphore->name);
    semaphore->ops->destroy(semaphore);
    device_drop(device);
}

const keel_semaphore_info_t *keel_semaphore_info(const keel_semaphore_t *semaphore)
{
    return &semaphore->info;
}

keel_status_t keel_semaphore_value(keel_semaphore_t *semaphore, uint64_t *value)
{
    CHECK_NOT_NULL(semaphore);
    CHECK_NOT_NULL(value);
    if (object_is_ours(&semaphore->object)) return semaphore->ops->value(semaphore, value);
    // In the child of a fork, how far the parent's was known to be. acquire: as in timeline_value.
    uint64_t then = atomic_load_explicit(&semaphore->value, memory_order_acquire);
    *value = then & ~SEMAPHORE_FAILED;
    return then & SEMAPHORE_FAILED ? keel_status_retain(atomic_load(&semaphore->failure)) : NULL;
}

static keel_status_t semaphore_check_host(const keel_semaphore_t *semaphore)
{
    CHECK(object_is_ours(&semaphore->object), KEEL_DEVICE_LOST,
          "semaphore '%s' was made before fork and stayed with the parent process",
          TEXT_OF(semaphore->name));
    CHECK(semaphore->ops->signal, KEEL_FAILED_PRECONDITION,
          "the timeline of a queue is signalled, and failed, by the queue alone");
    return NULL;
}

keel_status_t keel_semaphore_signal(keel_semaphore_t *semaphore, uint64_t value)
{
    CHECK_NOT_NULL(semaphore);
    KEEL_TRY(semaphore_check_host(semaphore));
    CHECK(value < SEMAPHORE_FAILED, KEEL_INVALID_ARGUMENT, "value is 2^63 or more");
    return semaphore->ops->signal(semaphore, value);
}

static keel_status_t failure_check(const keel_semaphore_t *semaphore, keel_status_t cause)
{
    CHECK_NOT_NULL(semaphore);
    CHECK(cause, KEEL_INVALID_ARGUMENT, "cause is NULL, which is no failure");
    return semaphore_check_host(semaphore);
}

keel_status_t keel_semaphore_fail(keel_semaphore_t *semaphore, keel_status_t cause)
{
    keel_status_t refused = failure_check(semaphore, cause);
    if (refused)
        keel_status_release(cause);
    else
        semaphore->ops->fail(semaphore, cause);
    return refused;
}
