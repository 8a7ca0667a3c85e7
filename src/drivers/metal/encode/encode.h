// SPDX-License-Identifier: Apache-2.0
// What the GPU does for a run, in encoders of its command buffer.
#ifndef KEEL_SRC_DRIVERS_METAL_ENCODE_ENCODE_H_
#define KEEL_SRC_DRIVERS_METAL_ENCODE_ENCODE_H_

#include "drivers/metal/base/device.h"

// used.c
// A buffer that the open encoder has not used yet is made resident.
void metal_used_add(metal_run_t *run, id buffer);
// An encoder begins, which has no buffer resident; the run has ended.
void metal_used_forget(metal_run_t *run);
void metal_used_release(metal_run_t *run);

// settings.c
void metal_settings_forget(metal_run_t *run); // an encoder begins, which has nothing
void metal_pipeline_set(metal_run_t *run, id pipeline);
// Threadgroup memory at index 0, until another pipeline is set.
void metal_local_set(metal_run_t *run, unsigned long bytes);
// Something else was set where kernels find their arguments.
void metal_indices_taken(metal_run_t *run);

// guard.c
// Has room for the grids of a command; before anything of it is set.
keel_status_t metal_guard_need(metal_run_t *run) KEEL_MUST_USE;
// A dispatch, behind the guard if there is one.
void metal_launch(metal_run_t *run, metal_size_t groups, metal_size_t threads);
// The same for indirect commands.
void metal_launch_commands(metal_run_t *run, id commands, uint32_t begin, uint32_t count);

// samples.c
void metal_samples_find(metal_device_t *device);
void metal_samples_release(metal_device_t *device);
// Whether the command buffer at hand has room for so many times.
bool metal_samples_need(metal_run_t *run, uint32_t count);
void metal_samples_give_back(metal_run_t *run);
// The place of a sample of the run in the buffer.
unsigned long metal_sample_at(const metal_run_t *run, uint32_t index);
id metal_sampled_encoder(metal_run_t *run, metal_encoder_t kind); // with timed.wanted

// encoder.c
// An encoder of that kind, with room for a command buffer, behind what the last barrier is for.
keel_status_t metal_encoder_need(metal_run_t *run, metal_encoder_t kind) KEEL_MUST_USE;
// Ends the open encoder: others follow it.
keel_status_t metal_encoder_hand_over(metal_run_t *run) KEEL_MUST_USE;
void metal_encoder_end(metal_run_t *run); // the same, and no other follows

// promise.c
// Around the end of the last encoder of a run that ends well if the command buffer at hand does:
// promises that, if it is worth it.
void metal_promise_begin(metal_run_t *run);
void metal_promise_signal(metal_run_t *run);                        // that has one
void metal_promise_kept(promise_t *promise, keel_status_t failure); // of run_ops_t

// transfer.c
// A command other than a dispatch that the GPU does.
keel_status_t metal_transfer(metal_run_t *run, const keel_command_t *command,
                             const keel_cmd_execute_t *execute) KEEL_MUST_USE;
// Copies between places of one length, behind what the last barrier is for.
keel_status_t metal_transfer_copy(metal_run_t *run, const metal_place_t *source,
                                  const metal_place_t *target) KEEL_MUST_USE;
// Writes bytes to a place.
keel_status_t metal_transfer_bytes(metal_run_t *run, const void *bytes,
                                   const metal_place_t *target) KEEL_MUST_USE;
// Has the GPU read counts: three words that a dispatch may take, and one that is not 0 if they were
// too large.
keel_status_t metal_transfer_counts(metal_run_t *run, const metal_place_t *source,
                                    const metal_place_t *target) KEEL_MUST_USE;

// arguments.c
// Bytes at an index of the open encoder, by a buffer if they are too many.
keel_status_t metal_bytes_set(metal_run_t *run, const void *bytes, uint32_t size,
                              unsigned long index) KEEL_MUST_USE;
// What a kernel with an argument buffer takes, out of the block of the other kernels.
keel_status_t metal_arguments_set(metal_run_t *run, const keel_cmd_dispatch_t *command,
                                  const keel_cmd_execute_t *execute,
                                  const unsigned char *block) KEEL_MUST_USE;
// The same in memory, for a GPU of tier 2: the argument buffer, and behind it, from these bytes on,
// the constants and the lengths of what is bound.
typedef struct metal_layout_t {
    uint32_t constants, sizes;
    uint32_t bytes; // of all
} metal_layout_t;
metal_layout_t metal_arguments_layout(const keel_cmd_dispatch_t *command);
void metal_arguments_write(const keel_cmd_dispatch_t *command, const unsigned char *block,
                           unsigned char *data, uint64_t address); // of `data`, for the GPU

// dispatch.c
// With room for a command buffer.
keel_status_t metal_dispatch(metal_run_t *run, const keel_cmd_dispatch_t *command,
                             const keel_cmd_execute_t *execute) KEEL_MUST_USE;
// Counts that the GPU has read were too large: the run has failed.
void metal_counts_settle(metal_run_t *run);
// Whether the GPU reads the counts, and not the host.
bool metal_dispatch_counts(const keel_cmd_dispatch_t *command, const keel_cmd_execute_t *execute);
// Whether the host must read what commands before it write.
bool metal_dispatch_reads(const keel_cmd_dispatch_t *command);

// The block of arguments of a dispatch.
keel_status_t metal_block_make(const keel_cmd_dispatch_t *command,
                               const keel_cmd_execute_t *execute, const uint32_t groups[3],
                               unsigned char *block, uint32_t *size) KEEL_MUST_USE;
// Threadgroup memory that the dispatch adds, as Metal takes it.
unsigned long metal_local_of(const keel_cmd_dispatch_t *command);
// Whether its groups have no more threads than `most`, which a pipeline takes.
bool metal_threads_fit(const keel_cmd_dispatch_t *command, unsigned long most);

// stamp.c
keel_status_t metal_device_clock(keel_device_t *device, uint64_t *now_ns);
void metal_clock_trace(metal_device_t *device); // for a trace: at the begin, and at the end
// Whether the GPU can write a timestamp in the command buffer at hand; and has it do so.
bool metal_stamp_can(metal_run_t *run);
// Before it does: true if a sample was encoded, whose end is to tell whether the clock is good.
bool metal_stamp_try(metal_run_t *run, keel_status_t *status);
keel_status_t metal_stamp(metal_run_t *run, const metal_place_t *target) KEEL_MUST_USE;
// In place of that, when what comes before has ended.
uint64_t metal_stamp_late(const metal_run_t *run);
bool metal_is_traced(const metal_run_t *run); // each command has times of its own
// Around a command, for a trace. False: it has to wait, for its command buffer must be its own.
bool metal_trace_begin(metal_run_t *run) KEEL_MUST_USE;
void metal_trace_end(metal_run_t *run, const keel_command_t *command,
                     const keel_cmd_execute_t *execute);
void metal_stamps_settle(metal_run_t *run); // a command buffer has ended well
void metal_stamps_give_back(metal_run_t *run);

// indirect.c
// Whether the device replays recordings so.
void metal_indirect_find(metal_device_t *device, bool wanted);
keel_status_t metal_recording_prepare(keel_recording_t *recording, keel_queue_t *queue);
void metal_recording_discard(keel_recording_t *recording);
// With room for a command buffer. False: the command is to be encoded as it is. True: it was, and
// what follows it up to run->inner.
bool metal_indirect(metal_run_t *run, const keel_command_t *command,
                    const keel_cmd_execute_t *execute, keel_status_t *status);

// peek.c
// The words that the host must read for a command and does not see. RUN_GOES_ON: it has them, or
// needs none.
run_outcome_t metal_peek(metal_run_t *run, const keel_command_t *command,
                         const keel_cmd_execute_t *execute, keel_status_t *status);
// Whether the host must read any for it.
bool metal_reads_words(const keel_command_t *command, const keel_cmd_execute_t *execute);

// across.c
bool metal_device_peers(keel_device_t *device, keel_device_t *other);
keel_status_t metal_across(run_t *run, const keel_cmd_across_t *command,
                           run_across_t *how) KEEL_MUST_USE; // of run_ops_t

#endif
