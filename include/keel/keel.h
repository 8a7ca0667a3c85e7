// SPDX-License-Identifier: Apache-2.0
// Keel: a compute hardware abstraction layer. This header includes all others; each is the manual
// of its noun.
//
//     base.h         time, allocator, leak counters
//     status.h       how calls fail
//     log.h          what the library has to say
//     device.h       opening devices, capabilities
//     queue.h        submitting work
//     semaphore.h    timelines, points, waiting
//     op.h           the operations, as data
//     recording.h    operations recorded once, run often
//     executable.h   kernels
//     buffer.h       memory
//     pool.h         queue-ordered memory
//     file.h         reading and writing files in queue order
//     dlpack.h       tensors in and out
//     host_kernel.h  the kernel ABI of cpu:// (not included here)
#ifndef KEEL_KEEL_H_
#define KEEL_KEEL_H_

#include <keel/base.h>
#include <keel/buffer.h>
#include <keel/device.h>
#include <keel/dlpack.h>
#include <keel/executable.h>
#include <keel/file.h>
#include <keel/log.h>
#include <keel/op.h>
#include <keel/pool.h>
#include <keel/queue.h>
#include <keel/recording.h>
#include <keel/semaphore.h>
#include <keel/status.h>

#endif
