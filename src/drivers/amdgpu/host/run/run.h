// SPDX-License-Identifier: Apache-2.0
// What becomes of the commands of a submission that the host goes over.
//
//     dispatch.c    dispatches and their arguments
//     issue.c       commands as kernels
//     peek.c        words of the device's memory that the host must know
//     across.c      copies to and from memory of other devices
//     run.c         what is done for each command
//     clock.c       the clock of the GPU, beside all submissions
#ifndef KEEL_SRC_DRIVERS_AMDGPU_HOST_RUN_RUN_H_
#define KEEL_SRC_DRIVERS_AMDGPU_HOST_RUN_RUN_H_

#include "drivers/amdgpu/host/queue/queue.h"

// dispatch.c
// That HSA can count the work-items.
keel_status_t amdgpu_grid_check(const amdgpu_launch_t *launch) KEEL_MUST_USE;
// The block of a kernel made elsewhere, of AMDGPU_MAX_ARGUMENTS bytes: what the dispatch gives, and
// behind it what the grid of the launch says, where the kernel looks for it. Sets launch->size.
keel_status_t amdgpu_raw_block(const binder_t *binder, const keel_cmd_dispatch_t *command,
                               amdgpu_launch_t *launch, unsigned char *block) KEEL_MUST_USE;
keel_status_t amdgpu_dispatch(amdgpu_run_t *run, const keel_cmd_dispatch_t *command,
                              const keel_cmd_execute_t *execute) KEEL_MUST_USE;

// issue.c
// A command that the GPU does, for a run that has room for a packet.
keel_status_t amdgpu_issue(amdgpu_run_t *run, const keel_command_t *command,
                           const keel_cmd_execute_t *execute) KEEL_MUST_USE;
keel_status_t amdgpu_issue_copy(amdgpu_run_t *run, const bound_copy_t *copy) KEEL_MUST_USE;

// peek.c
// The words that the host must know before it goes on with a command; NULL: none, or they came with
// the execution.
const keel_ref_t *amdgpu_peek_ref(const keel_command_t *command);
// Whether the host sees them by itself.
keel_status_t amdgpu_peek_sees(const keel_ref_t *ref, const keel_cmd_execute_t *execute,
                               bool *sees) KEEL_MUST_USE;
// Has the GPU copy them to where it does, for a run that has room for a packet.
keel_status_t amdgpu_peek(amdgpu_run_t *run, const keel_ref_t *ref,
                          const keel_cmd_execute_t *execute) KEEL_MUST_USE;

// across.c
// Whether the GPU comes to the memory of another device, which is of this driver.
bool amdgpu_device_peers(keel_device_t *device, keel_device_t *other);
// run_ops_t; room for AMDGPU_PIECES packets is there.
keel_status_t amdgpu_across(run_t *run, const keel_cmd_across_t *c,
                            run_across_t *how) KEEL_MUST_USE;
keel_status_t amdgpu_peer(keel_device_t *device, const keel_cmd_across_t *c) KEEL_MUST_USE;

// run.c
extern const run_ops_t amdgpu_run_ops;
void amdgpu_host_start(keel_submission_t *submission); // the host walks over it; the waits are over

// clock.c
keel_status_t amdgpu_device_clock(keel_device_t *device, uint64_t *now_ns);
// Has the GPU take no more packets of what is beside the queues: the device is lost.
void amdgpu_clock_inactivate(amdgpu_device_t *device);
void amdgpu_clock_close(amdgpu_device_t *device);

#endif
