// SPDX-License-Identifier: Apache-2.0
// The vendor's own objects behind Keel's, for programs that call the vendor's library as well.
//
// A handle is a number: cast it to the vendor's type, (CUstream)(uintptr_t)handle. Keel keeps the
// object and may use it at any time. The program may use it, too, as said below, and must never
// destroy it. Keel does not know of work that the program puts on a device by itself: only
// keel_point_native, host waits and semaphores order the two.
//
// Devices with KEEL_CAP_NATIVE have handles. The others, cpu:// among them, have none. Memory that
// is an object of the vendor's goes in and out by KEEL_EXTERNAL_NATIVE (buffer.h).
//
// Any thread may call every function. None waits.
#ifndef KEEL_NATIVE_H_
#define KEEL_NATIVE_H_

#include <keel/semaphore.h>

// What kind of object a handle stands for.
typedef enum keel_native_t {
    KEEL_NATIVE_CUDA_DEVICE = 1,   // CUdevice: of a device; a plain number
    KEEL_NATIVE_CUDA_CONTEXT = 2,  // CUcontext: of a device
    KEEL_NATIVE_CUDA_STREAM = 3,   // CUstream: of a queue
    KEEL_NATIVE_CUDA_EVENT = 4,    // CUevent: of a point
    KEEL_NATIVE_HIP_DEVICE = 5,    // hipDevice_t: of a device; a plain number
    KEEL_NATIVE_HIP_STREAM = 6,    // hipStream_t: of a queue
    KEEL_NATIVE_HIP_EVENT = 7,     // hipEvent_t: of a point
    KEEL_NATIVE_HSA_AGENT = 8,     // hsa_agent_t: of a device, that of its first GPU
    KEEL_NATIVE_HSA_QUEUE = 9,     // hsa_queue_t *: of a queue; see keel_queue_native
    KEEL_NATIVE_METAL_DEVICE = 10, // id<MTLDevice>: of a device
    KEEL_NATIVE_METAL_QUEUE = 11,  // id<MTLCommandQueue>: of a queue
    KEEL_NATIVE_METAL_EVENT = 12,  // const keel_metal_event_t *: of a point
} keel_native_t;

// An event of Metal's, and the value that it comes to: encodeWaitForEvent:value:.
typedef struct keel_metal_event_t {
    void *event; // id<MTLSharedEvent>
    uint64_t value;
} keel_metal_event_t;

// What keel_point_native calls. The status that it returns is passed on.
typedef keel_status_t (*keel_native_fn)(void *user, uint64_t handle);

KEEL_EXTERN_C_BEGIN

// Writes the handle of the object behind `device` to `handle`. It is valid until the device is
// closed. The program may make the context current, allocate memory in it, load code and make
// streams of its own.
//
// KEEL_UNSUPPORTED if a device of this kind has no such object. KEEL_INVALID_ARGUMENT if there is
// no such kind.
KEEL_API keel_status_t keel_device_native(keel_device_t *device, keel_native_t kind,
                                          uint64_t *handle) KEEL_MUST_USE;

// Writes the handle of the object behind `queue` to `handle`. It is valid until the queue is
// released or its device closed.
//
// The program may put work on the stream. That work runs behind what Keel has put there so far, and
// before what Keel puts there later, which need not be the order of submissions. What waits for the
// stream, or blocks it, holds up the queue. A stream of Keel's must not be captured.
//
// Into a queue of HSA's the program must put no packets: Keel counts those that are there. It may
// ask after the queue, and set its priority or its compute units.
//
// Of a queue of Metal's the program may make command buffers. Keel's wait for none of these, and
// count on 256 that the program does not have: more than a few at a time may block Keel.
//
// Fails as keel_device_native does.
KEEL_API keel_status_t keel_queue_native(keel_queue_t *queue, keel_native_t kind,
                                         uint64_t *handle) KEEL_MUST_USE;

// Calls `use(user, handle)`, once and before it returns, with the event that the device records
// behind the work that `point` stands for. In the call the program may have streams of its own wait
// for the event, or ask after it. After the call the event is Keel's alone, which records it again.
//
//     static keel_status_t wait_on(void *stream, uint64_t event)
//     {
//         CUresult result = cuStreamWaitEvent(stream, (CUevent)(uintptr_t)event, 0);
//         return result ? KEEL_ERROR(KEEL_INTERNAL, "CUDA says %d", result) : NULL;
//     }
//     KEEL_TRY(keel_point_native(done, KEEL_NATIVE_CUDA_EVENT, wait_on, stream));
//
// metal:// has events behind work that is submitted after the program has asked for a handle of the
// device or of one of its queues: they cost a few messages for each submission.
//
// If the point is reached already, there is nothing to wait for: `use` is not called, and the call
// succeeds. The event tells that the work has run. Whether it went well, only the point tells.
//
// The cause if the point has failed. KEEL_FAILED_PRECONDITION if the work is not on the device yet,
// because it waits for other points or the host has a part in it: keel_wait and keel_on serve then.
// KEEL_UNSUPPORTED if the work is of a device that has no such objects. KEEL_INVALID_ARGUMENT for
// points as keel_wait refuses them, and for bits in `until`.
KEEL_API keel_status_t keel_point_native(keel_point_t point, keel_native_t kind, keel_native_fn use,
                                         void *user) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
