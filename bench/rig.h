// SPDX-License-Identifier: Apache-2.0
// What rows and peers are built from: an open device with the kernels, the kernels themselves,
// places for threads.
#ifndef BENCH_RIG_H_
#define BENCH_RIG_H_

#include "bench.h"
#include "kernels/kernels.h"

typedef struct rig_t {
    keel_device_t *device;
    keel_queue_t *queue; // borrowed from the device
    keel_executable_t *executable;
    keel_entry_t entry; // the job's kernel
} rig_t;

// Opens the device of a setting and loads the kernels: the host's own where they run, those of the
// kernel language elsewhere. A rig of zeros may be closed, and one whose opening failed.
keel_status_t rig_open(rig_t *rig, const setting_t *setting) KEEL_MUST_USE;

// The same with the kernels of the kernel language on every device.
keel_status_t rig_open_regions(rig_t *rig, const setting_t *setting) KEEL_MUST_USE;
void rig_close(rig_t *rig);

// How often the library has asked for memory on this thread since rig_watch, which comes before any
// other call.
void rig_watch(void);
uint64_t rig_allocations(void);

// The kernel as a function, out of the very object that the device loads.
keel_status_t image_kernel(const char *name, keel_host_kernel_fn *kernel) KEEL_MUST_USE;

// How many steps "spin" makes in `ns` on a processor of its own. Measured once per process.
keel_status_t spin_calibrate(uint32_t ns, uint64_t *iterations) KEEL_MUST_USE;

// The number of the `index`th processor that the process may use, or -1.
int place_cpu(int index);
// Keeps the calling thread on that processor; with -1, lets it go where it may.
void place_pin(int cpu);
// The same for the two threads of a ping-pong.
void place_first(place_t place);
void place_second(place_t place);

// Returns the job's asleep_us after `*word` has become `value`, which its writer does before it
// goes to sleep. Polls, or yields where both threads may share a processor.
void place_until(const job_t *job, _Atomic uint32_t *word, uint32_t value);

// Waits for a point for at most ten seconds: a benchmark that hangs says where.
keel_status_t rig_wait(keel_point_t point) KEEL_MUST_USE;

#endif
