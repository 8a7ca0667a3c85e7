// SPDX-License-Identifier: Apache-2.0
// The Metal driver. docs/metal.md says how the model maps to Metal's. These are its rooms and
// their files, from the bottom up: each knows only those above it in this list.
//
//     base        devices, queues and runs
//       messages.c    Metal from plain C
//     memory      of the device, of buffers and of runs
//       memory.c      pieces of MTLBuffers, found by their addresses
//       mapping.c     pages that are mapped for them
//       buffer.c      buffers: allocating, flushing
//       external.c    and those that others have, too
//       words.c       words of a run that the host and the GPU see
//       staging.c     memory of a run, likewise
//     executable  what Metal compiles
//       compile.c     what Apple's compiler does
//       builtin.c     kernels of the driver's own
//       cross.c       MSL of SPIR-V
//       module.c      MTLLibrary and pipelines
//       executable.c  entry points and variables (variables.c)
//     queue       what orders runs
//       queue.c       MTLCommandQueue
//       event.c       events of the program's as semaphores
//       stop.c        cancelling what was committed
//       worker.c      the thread of a device
//       demand.c      whether promises are worth their messages
//       slots.c       promises, and where the GPU writes that they came true
//       ahead.c       submissions that do not wait for the host, but go ahead of promises
//     encode      what the GPU does for a run
//       used.c        buffers that the open encoder has made resident
//       settings.c    what else it has
//       guard.c       dispatches that do nothing if what they went ahead of has failed
//       samples.c     times of encoders, by the GPU's clock
//       encoder.c     command buffers and their encoders; fences and barriers
//       promise.c     promises that runs make
//       transfer.c    fills, updates and copies
//       arguments.c   argument buffers, and blocks that are too large for an encoder
//       dispatch.c    kernels and their arguments
//       stamp.c       timestamps, and times of commands in a trace
//       indirect.c    stretches of recordings that are encoded once
//       peek.c        words that the host must read and does not see
//       across.c      copies to and from other devices
//     commit.c    committing, and how that ended
//     run.c       a submission: what becomes of each command
//     driver.c    finding and opening devices; what they can do
#ifndef KEEL_SRC_DRIVERS_METAL_METAL_H_
#define KEEL_SRC_DRIVERS_METAL_METAL_H_

#include "drivers/metal/base/device.h"

// commit.c
// Commits what was encoded, if anything was, and the run waits for it; gives it up if the run has
// failed.
void metal_commit(run_t *run);
// The command buffer has ended, and this is how.
void metal_settle(run_t *run);

// run.c
void metal_queue_submit(keel_queue_t *queue, keel_submission_t *submission);
extern const run_ops_t metal_run_ops;

#endif
