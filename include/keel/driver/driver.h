// SPDX-License-Identifier: Apache-2.0
// For people who write a driver: docs/new-driver.md walks through this with the null driver at
// hand.
//
// A driver is one keel_driver_t, which the program registers or loads (keel_driver_load); the
// library's own stand in src/drivers/register.c. A device is a struct that begins with
// keel_device_t and an ops table. Arguments are checked before an op is called, so drivers assume
// good ones. No op is called with a lock of the library held, and all may be called from any thread
// at any time, unless the slot says otherwise.
//
// Errors: an op that returns a status leaves nothing behind when it fails. Work reports by the end
// of its submission (submission.h).
//
// What drivers need of the library is in the headers that this one includes: base.h (host memory,
// the log), uri.h (options), submission.h, bind.h and pool.h (running commands), semaphore.h (those
// that a device keeps), command.h, image.h and object.h (what they see).
#ifndef KEEL_DRIVER_DRIVER_H_
#define KEEL_DRIVER_DRIVER_H_

#include <keel/driver/base.h>
#include <keel/driver/bind.h>
#include <keel/driver/command.h>
#include <keel/driver/image.h>
#include <keel/driver/object.h>
#include <keel/driver/pool.h>
#include <keel/driver/semaphore.h>
#include <keel/driver/submission.h>
#include <keel/driver/uri.h>

// The version of what the headers of include/keel/driver say. A driver is taken only by a library
// of the same version: they share structs. KEEL_DRIVER_LAYOUT tells builds apart that have the same
// version and other structs, as between two commits.
#define KEEL_DRIVER_VERSION 1
#define KEEL_DRIVER_LAYOUT                                                                         \
    ((uint32_t)(sizeof(keel_device_t) + (sizeof(keel_queue_t) << 4) +                              \
                (sizeof(keel_buffer_t) << 8) + (sizeof(keel_executable_t) << 12) +                 \
                (sizeof(keel_recording_t) << 16) + (sizeof(keel_submission_t) << 20) +             \
                (sizeof(keel_device_ops_t) << 23)))
// Begins the initialiser of every keel_driver_t.
#define KEEL_DRIVER_HEAD .version = KEEL_DRIVER_VERSION, .layout = KEEL_DRIVER_LAYOUT

typedef struct keel_driver_t {
    uint32_t version; // KEEL_DRIVER_VERSION; stays the first field in every version
    uint32_t layout;  // KEEL_DRIVER_LAYOUT
    // The scheme of its URIs: a lower-case letter, then at most 30 letters, digits, + . or -
    const char *name;
    // Adds its devices. Finding none is no error.
    keel_status_t (*list)(keel_device_listing_t *devices, size_t capacity, size_t *count);
    // Makes a device: allocates its struct zeroed (keel_mem_zalloc), sets ops and caps. `object`,
    // `uri`, `name`, queues and pools are filled in by the library afterwards. Unknown options are
    // errors. The library then checks that ops and caps agree; if they do not, it calls
    // device_close and device_destroy and keel_device_open fails with KEEL_INTERNAL.
    keel_status_t (*open)(const keel_uri_t *uri, keel_device_t **device);
} keel_driver_t;

KEEL_EXTERN_C_BEGIN

// Adds a driver that is linked into the program. From then on keel_device_open and keel_device_list
// know it. The driver is borrowed for as long as the process lives: there is no way to take it out
// again. Any thread, at any time; does not block. Registering the same driver again does nothing.
//
// KEEL_UNSUPPORTED if it was built for another version of these headers. KEEL_INVALID_ARGUMENT if
// the name is no scheme, or `list` or `open` is empty. KEEL_FAILED_PRECONDITION if another driver
// has the name. KEEL_RESOURCE_EXHAUSTED beyond KEEL_MAX_DRIVERS. A driver that is refused leaves
// nothing behind.
KEEL_API keel_status_t keel_driver_register(const keel_driver_t *driver) KEEL_MUST_USE;

KEEL_EXTERN_C_END

// So many can be registered besides the library's own.
#define KEEL_MAX_DRIVERS 64

// Makes a shared object one that keel_driver_load (<keel/device.h>) takes: stands once in it,
// outside of all functions, with the keel_driver_t. The object calls the Keel of the program that
// loads it. It may be linked with libkeel.so, and need not be.
#define KEEL_DRIVER_ENTRY(driver)                                                                  \
    KEEL_EXTERN_C_BEGIN                                                                            \
    KEEL_API const keel_driver_t *keel_driver_entry(void);                                         \
    const keel_driver_t *keel_driver_entry(void)                                                   \
    {                                                                                              \
        return &(driver);                                                                          \
    }                                                                                              \
    KEEL_EXTERN_C_END

// The ops table. "(optional)" slots may be NULL, which their capability bit must then say; the text
// names what happens.
struct keel_device_ops_t {
    // Gives up threads and returns when no op will touch the device again. All submissions have
    // ended before. Called once, before destroy.
    void (*device_close)(keel_device_t *device);
    // Frees the struct and what the driver put into it. Also called for a half-opened device, and
    // in the child of a fork without device_close: it must not wait or lock.
    void (*device_destroy)(keel_device_t *device);
    // The device's clock in ns. (optional) default: the host's.
    keel_status_t (*device_clock)(keel_device_t *device, uint64_t *now_ns);
    // Fills total and budget.
    void (*device_memory)(keel_device_t *device, keel_memory_stats_t *stats);

    // Writes the handle of the vendor's object behind `queue`, or behind the device if that is
    // NULL. False: there is none of the kind. KEEL_CAP_NATIVE. (optional) default: there is none.
    bool (*device_native)(keel_device_t *device, keel_queue_t *queue, keel_native_t kind,
                          uint64_t *handle);

    // Whether the device copies to and from memory of `other`, a device of any driver, which the
    // host need not see. (optional) default: it does not.
    bool (*device_peers)(keel_device_t *device, keel_device_t *other);

    // Makes the driver's queue struct (keel_mem_zalloc, begins with keel_queue_t) and sets
    // submission_size.
    keel_status_t (*queue_create)(keel_device_t *device, const keel_queue_options_t *options,
                                  keel_queue_t **queue);
    // Called when no submission of the queue is left.
    void (*queue_destroy)(keel_queue_t *queue);
    // Takes over a submission. It ends by keel_submission_end, now or later; failures are reported
    // there. Must not block.
    void (*queue_submit)(keel_queue_t *queue, keel_submission_t *submission);

    // Submissions of the queue are cancelled, one of them, or all, as the device has ended
    // (device->ended is set): those that wait for points by themselves, with no help of the host,
    // and have not begun (semaphore.h), fail with `cause`, which is borrowed. A submission that
    // comes to such a wait later finds device->ended set: the driver lists it, then looks, both
    // seq_cst. Does not block. Required with semaphore_create. (optional) default: nothing waits
    // so.
    void (*queue_cancel)(keel_queue_t *queue, keel_status_t cause);

    // Makes a semaphore whose value and failure are kept where the device reads and writes them, by
    // keel_remote_create (in the tree, also by remote_init of kit/remote.h). The library fills in
    // the rest. (optional) default: the host keeps them.
    keel_status_t (*semaphore_create)(keel_device_t *device, uint64_t initial,
                                      keel_semaphore_t **semaphore);
    // Takes a semaphore of another API: makes one that is at `initial` at least (in the tree, by
    // outside_create of kit/outside.h, or by remote_init of kit/remote.h; other drivers leave this
    // empty as yet). A descriptor in `external` is the semaphore's from then on, unless this fails;
    // an object is the caller's. KEEL_UNSUPPORTED for kinds that the device does not take.
    // KEEL_CAP_IMPORT_SEMAPHORE.
    // (optional) default: there are none.
    keel_status_t (*semaphore_import)(keel_device_t *device,
                                      const keel_external_semaphore_t *external, uint64_t initial,
                                      keel_semaphore_t **semaphore);

    // Gives memory to a root buffer whose size, memory, usage and alignment are set: fills data,
    // address, handle and capacity, and may add bits to memory and usage.
    keel_status_t (*buffer_alloc)(keel_buffer_t *buffer);
    // Takes it back; never for imported memory. May be called in the child of a fork: no vendor
    // call then.
    void (*buffer_free)(keel_buffer_t *buffer);
    // Attaches buffer->external. buffer->memory is what was asked for, 0 for nothing, and is set to
    // what the memory is. (optional) default: KEEL_UNSUPPORTED.
    keel_status_t (*buffer_import)(keel_buffer_t *buffer);
    // Detaches it again, and when nothing uses the memory any more, now or later but before
    // device_close returns, calls external.release, if there is one. In the child of a fork: no
    // vendor call.
    void (*buffer_forget)(keel_buffer_t *buffer);
    // Writes the vendor's object that the memory of a root lies in, and where that begins in it
    // (KEEL_EXTERNAL_NATIVE). With it buffer_import takes such objects, too. (optional) default:
    // buffers are no objects.
    void (*buffer_object)(keel_buffer_t *root, void **object, uint64_t *offset);
    // (optional) default: host pointers and device addresses only.
    keel_status_t (*buffer_export)(keel_buffer_t *buffer, keel_external_buffer_t *external);
    // Make host writes visible to the device, device writes to the host. (optional) default:
    // nothing; coherent memory.
    keel_status_t (*buffer_flush)(keel_buffer_t *buffer, uint64_t offset, uint64_t length);
    keel_status_t (*buffer_invalidate)(keel_buffer_t *buffer, uint64_t offset, uint64_t length);

    // Queue-ordered memory: KEEL_CAP_QUEUE_ALLOCA, all four or none. Those of pool.h, over
    // buffer_alloc, stand here (KEEL_SLABS_OPS). (optional) default: there are no pools.
    keel_status_t (*pool_create)(keel_device_t *device, const keel_pool_options_t *options,
                                 keel_pool_t **pool);
    void (*pool_destroy)(keel_pool_t *pool);
    void (*pool_stats)(keel_pool_t *pool, keel_pool_stats_t *stats);
    keel_status_t (*pool_trim)(keel_pool_t *pool, uint64_t keep);

    // How well the device runs images of a kind for a target: 0 not at all, else see
    // KEEL_RANK_EXACT. Of a container, the first of the best is loaded.
    uint32_t (*executable_rank)(keel_device_t *device, keel_image_kind_t kind, const char *target);
    // Loads an image: makes the driver's struct (keel_mem_zalloc, begins with keel_executable_t)
    // and fills in the entries.
    keel_status_t (*executable_load)(keel_device_t *device, const keel_image_t *image,
                                     keel_executable_t **executable);
    void (*executable_unload)(keel_executable_t *executable);
    // Where a global lies. (optional) default: KEEL_UNSUPPORTED.
    keel_status_t (*executable_global)(keel_executable_t *executable, const char *name,
                                       keel_external_buffer_t *where);
    // Writes all of a global, before anything runs, and returns when it is there. (optional)
    // default: globals lie in memory of the host.
    keel_status_t (*executable_write)(keel_executable_t *executable,
                                      const keel_external_buffer_t *where, const void *data);

    // Translates an ended recording into what the device likes, to be kept in recording->prepared.
    // May be called several times, also at once. (optional) default: nothing to prepare.
    keel_status_t (*recording_prepare)(keel_recording_t *recording, keel_queue_t *queue);
    void (*recording_discard)(keel_recording_t *recording);
};

KEEL_EXTERN_C_BEGIN

// The device can do no more work: ends every wait with `cause` (KEEL_DEVICE_LOST), which is
// consumed; after an earlier end, with that one's. First submissions that wait fail. Then `settle`,
// the driver's, ends those that run, and must not return before the device can no longer touch
// their memory. Then the device's semaphores fail. What is submitted later fails by itself, in
// keel_submission_wait. Any thread, also several at once, with no lock held: all waiters are told
// here.
KEEL_API void keel_device_lose(keel_device_t *device, keel_status_t cause,
                               void (*settle)(keel_device_t *device));

// False in the child of a fork for what the parent has made: then device_destroy, buffer_free and
// the like free host memory and do nothing else. `object` is the first field of the device, queue,
// buffer, pool or executable. Any thread; does not block.
KEEL_API bool keel_object_is_ours(const keel_object_t *object);

KEEL_EXTERN_C_END

#endif
