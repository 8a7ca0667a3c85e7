// SPDX-License-Identifier: Apache-2.0
// Keel: a compute hardware abstraction layer. This header includes the others. Each of them is the
// manual of its noun; docs/model.md is the map.
//
//     base.h         version, time, allocator, counters of live objects
//     status.h       how calls fail
//     log.h          messages of the library
//     device.h       opening devices, capabilities
//     queue.h        submitting work
//     semaphore.h    timelines, points, waiting
//     completion.h   the ends of waits: calls, and a queue for event loops
//     op.h           the operations, as data
//     recording.h    operations recorded once, run often
//     executable.h   kernels
//     image.h        what an image of kernels holds
//     buffer.h       memory
//     pool.h         queue-ordered memory
//     file.h         reading and writing files in queue order
//     dlpack.h       tensors in and out
//     native.h       the vendor's own objects behind Keel's
//     trace.h        the application's own spans, marks and counters in a trace
//     host_kernel.h  the kernel ABI of cpu:// (not included here)
//     kernel.h       the kernel language (not included here)
//
// These rules hold for every function. The comment above a function says where it differs.
//
// Threads. Any thread may call it, several at once. The last reference to an object is released
// when no other thread uses the object.
//
// Blocking. The call does not wait for work, points or devices. It may take a lock of the library
// for a short time. Functions that wait have "wait" in their name, or their comment says so. None
// may be called in a signal handler.
//
// Ownership. Pointers in arguments are borrowed for the call, names and lists are copied, objects
// that the library keeps are retained. An object that a function makes is one reference, which the
// caller releases. "Borrowed" results live as long as the object they come from.
//
// Options. A struct of options that is all zero means the defaults. A pointer to options may be
// NULL unless the comment says otherwise.
//
// Failure. A call that fails changes nothing, and the pointer to the object it was to make is NULL.
// Besides the codes that its comment names, a call may return
//     KEEL_INVALID_ARGUMENT     a pointer that must not be NULL is; a bit is unknown; an object
//                               belongs to another device
//     KEEL_OUT_OF_MEMORY        the allocator had no host memory
//     KEEL_FAILED_PRECONDITION  the device is closed
//     KEEL_DEVICE_LOST          the device is lost, or the process was forked after it was opened
// Functions that return no status need a valid object. retain and release also take NULL.
#ifndef KEEL_KEEL_H_
#define KEEL_KEEL_H_

#include <keel/base.h>
#include <keel/buffer.h>
#include <keel/completion.h>
#include <keel/device.h>
#include <keel/dlpack.h>
#include <keel/executable.h>
#include <keel/file.h>
#include <keel/image.h>
#include <keel/log.h>
#include <keel/native.h>
#include <keel/op.h>
#include <keel/pool.h>
#include <keel/queue.h>
#include <keel/recording.h>
#include <keel/semaphore.h>
#include <keel/status.h>
#include <keel/trace.h>

#endif
