// SPDX-License-Identifier: Apache-2.0
// The driver of AMD's GPUs over HSA. docs/amdgpu.md says how the model maps to HSA's. Each of these
// rooms knows those in front of it (.ci/check/arrows):
//
//     base/         HSA, its GPUs, and the device
//     memory/       memory of both sides
//     code/         executables, and the driver's own kernels
//     queue/        rings of packets, and runs in there
//     run/          submissions that the host goes over: commands as packets
//     program/      what the GPU runs by itself
//     scheduler/    the host's side of the schedulers on the GPUs
//     record/       submissions that are theirs
//
//     queue.c       Keel's queues, and who goes on with what is submitted to them
//     worker.c      the device's thread, and the end of a device whose queue has failed
//     driver.c      finding and opening devices
#ifndef KEEL_SRC_DRIVERS_AMDGPU_HOST_DRIVER_H_
#define KEEL_SRC_DRIVERS_AMDGPU_HOST_DRIVER_H_

#include "drivers/amdgpu/host/base/device.h"

// queue.c
keel_status_t amdgpu_queue_create(keel_device_t *device, const keel_queue_options_t *options,
                                  keel_queue_t **queue);
void amdgpu_queue_destroy(keel_queue_t *queue);
void amdgpu_queue_submit(keel_queue_t *queue, keel_submission_t *submission);

// worker.c
uint64_t amdgpu_worker(void *device); // the work of the device's thread

#endif
