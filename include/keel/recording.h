// SPDX-License-Identifier: Apache-2.0
// Recordings: operations that are recorded once, checked once, and executed any number of times
// (keel_op_execute).
//
// A recording is open until keel_recording_end, and immutable from then on. An open recording is
// used by one thread at a time. An ended one may be used by any thread, and be in flight several
// times at once. It refers to buffers directly, or through slots of a binding table that comes with
// each execution (keel_slot).
//
// A recording retains the objects that it names directly. Slots retain nothing: the submission
// retains what its binding table names.
#ifndef KEEL_RECORDING_H_
#define KEEL_RECORDING_H_

#include <keel/op.h>

// How to make a recording.
typedef struct keel_recording_options_t {
    uint32_t slots;   // size of the binding table, at most keel_caps_t.max_slots
    bool one_shot;    // executed at most once: the driver does not optimise it
    const char *name; // used in messages; may be NULL
} keel_recording_options_t;

// What keel_recording_info tells about a recording.
typedef struct keel_recording_info_t {
    keel_device_t *device;            // whose it is
    keel_recording_options_t options; // as asked for; name "" without one
} keel_recording_info_t;

KEEL_EXTERN_C_BEGIN

// Makes an empty, open recording.
//
// KEEL_OUT_OF_RANGE for more slots than the device takes.
KEEL_API keel_status_t keel_recording_create(keel_device_t *device,
                                             const keel_recording_options_t *options,
                                             keel_recording_t **recording) KEEL_MUST_USE;

// Adds a reference and returns `recording`. NULL is fine.
KEEL_API keel_recording_t *keel_recording_retain(keel_recording_t *recording);

// Gives up a reference. The last one frees the recording, open or ended, and releases what it
// names. Executions in flight hold references of their own. NULL is fine. Does not wait for the
// device.
KEEL_API void keel_recording_release(keel_recording_t *recording);

// Appends `count` operations to an open recording, and checks them: op.h says what each demands.
// The recording's memory grows in steps, so most calls allocate nothing.
//
// An error names the operation and has the reason as its cause. The operations before it in `ops`
// are recorded; it and the rest are not. The recording stays open and usable.
// KEEL_FAILED_PRECONDITION after keel_recording_end. KEEL_RESOURCE_EXHAUSTED beyond
// keel_caps_t.max_commands.
KEEL_API keel_status_t keel_recording_add(keel_recording_t *recording, const keel_op_t *ops,
                                          size_t count) KEEL_MUST_USE;

// Ends the recording. It is immutable from now on and can be executed.
//
// KEEL_FAILED_PRECONDITION if a block or a group is not ended, and the recording stays open; or if
// it has ended before.
KEEL_API keel_status_t keel_recording_end(keel_recording_t *recording) KEEL_MUST_USE;

// Translates the recording for `queue` now, into a CUDA graph for example. Without this call a
// thread of the queue does it at the first execution: the submitting thread does not wait, but that
// execution starts later. After this call executions on the queue start at once, except that copies
// and fills through slots may need a new translation (docs/stream.md, "Recordings").
//
// On a GPU it may wait for everything that the device runs, as keel_executable_load, and other
// calls into the vendor's library wait meanwhile. On cpu:// it does nothing. Fails with the
// vendor's error. KEEL_FAILED_PRECONDITION while the recording is open. KEEL_INVALID_ARGUMENT for a
// queue of another device.
KEEL_API keel_status_t keel_recording_prepare(keel_recording_t *recording,
                                              keel_queue_t *queue) KEEL_MUST_USE;

// Returns what the recording is. This never changes, and is borrowed from the recording. Never
// fails.
KEEL_API const keel_recording_info_t *keel_recording_info(const keel_recording_t *recording);

// Returns the number of commands recorded so far. A block may take more commands than operations.
KEEL_API size_t keel_recording_count(const keel_recording_t *recording);

KEEL_EXTERN_C_END

#endif
