// SPDX-License-Identifier: Apache-2.0
// Recordings: operations recorded once, checked once, and executed as often as you like
// (keel_op_execute).
//
// A recording is open until keel_recording_end and immutable from then on. While open it belongs to
// one thread; afterwards it may be used from any, and be in flight several times at once. Buffers
// are referenced directly, or through slots of the binding table that comes with each execution
// (keel_slot).
#ifndef KEEL_RECORDING_H_
#define KEEL_RECORDING_H_

#include <keel/op.h>

typedef struct keel_recording_options_t {
    uint32_t slots; // size of the binding table
    bool one_shot;  // executed at most once: the device need not optimise it
    const char *name;
} keel_recording_options_t;

KEEL_EXTERN_C_BEGIN

KEEL_API keel_status_t keel_recording_create(keel_device_t *device,
                                             const keel_recording_options_t *options,
                                             keel_recording_t **recording) KEEL_MUST_USE;
KEEL_API keel_recording_t *keel_recording_retain(keel_recording_t *recording);
// Never waits for the device, as keel_buffer_release.
KEEL_API void keel_recording_release(keel_recording_t *recording);

// Appends operations. An error names the operation; those before it in `ops` are recorded, it and
// the rest are not. Allocates nothing per operation.
KEEL_API keel_status_t keel_recording_add(keel_recording_t *recording, const keel_op_t *ops,
                                          size_t count) KEEL_MUST_USE;

// Closes the recording: blocks and groups must be balanced, and every event waited for must have
// been set.
KEEL_API keel_status_t keel_recording_end(keel_recording_t *recording) KEEL_MUST_USE;

// Does now what the first execution on `queue` would do: translation into what the device likes. On
// a GPU it may wait for all that the device runs, as keel_executable_load, and others wait
// meanwhile. Left to the first execution, a thread of the queue's does it, and whoever submits goes
// on; if it was done, executions on that queue wait no more, but for copies and fills through slots
// that have to be translated anew (docs/stream.md, "Recordings").
KEEL_API keel_status_t keel_recording_prepare(keel_recording_t *recording,
                                              keel_queue_t *queue) KEEL_MUST_USE;

KEEL_API size_t keel_recording_count(const keel_recording_t *recording);

KEEL_EXTERN_C_END

#endif
