// SPDX-License-Identifier: Apache-2.0
// What the parts of the recorder share, from the top down: recorder.c (operations),
// parameters.c (of executions), recorder_dispatch.c and recorder_across.c (one operation each),
// recorder_blocks.c (control flow), recorder_ref.c (ranges).
#ifndef KEEL_SRC_CORE_RECORDER_INTERNAL_H_
#define KEEL_SRC_CORE_RECORDER_INTERNAL_H_

#include "core/check.h"
#include "core/recorder.h"
#include "kit/command.h"

// What an operation is going to do to a range.
typedef struct ref_use_t {
    const char *what; // for messages: "target"
    uint32_t usage;
    uint32_t access;
} ref_use_t;

extern const ref_use_t target_use, source_use; // of fills, copies and the like

// Checks a range of a buffer, of whatever device; its length comes back as a number. Inline: nearly
// every operation does it.
keel_status_t ref_refusal(const keel_ref_t *ref, const ref_use_t *use) KEEL_COLD;
KEEL_MUST_USE static inline keel_status_t ref_fits(keel_ref_t *ref, const ref_use_t *use)
{
    const keel_buffer_t *buffer = ref->buffer;
    uint64_t rest = buffer->size - ref->offset;
    bool whole = ref->length == KEEL_WHOLE;
    bool fits = ref->offset <= buffer->size && (whole || ref->length <= rest);
    bool suits = !(use->usage & ~buffer->usage) && !(use->access & ~buffer->access);
    if (__builtin_expect(!fits || !suits, 0)) return ref_refusal(ref, use);
    if (whole) ref->length = rest;
    return NULL;
}

// Checks a range of the recorder's device; its length comes back as a number unless it is a slot's.
keel_status_t ref_check(recorder_t *recorder, keel_ref_t *ref, const ref_use_t *use) KEEL_MUST_USE;

static inline void ref_retain(const keel_ref_t *ref)
{
    if (ref->buffer) object_retain(&ref->buffer->object);
}

// Parameters have fewer bytes than 2^31, as the list of commands that they are copied to.
enum { PARAMETER_BYTES = INT32_MAX };

// Checks a range of parameters. Its length is for the caller to check.
keel_status_t parameter_check(recorder_t *recorder, const keel_ref_t *ref,
                              const char *what) KEEL_MUST_USE;

// Checks the parameters of an execution of a recording that takes some.
keel_status_t parameters_check(const keel_execute_t *e) KEEL_MUST_USE;

// Puts them behind the newest command, which executes the recording, and which may move.
keel_status_t parameters_add(keel_commands_t *commands, keel_cmd_execute_t *newest,
                             const keel_execute_t *e) KEEL_MUST_USE;

// That the device takes so many workgroups of an entry point.
keel_status_t groups_check(const keel_caps_t *caps, keel_groups_t groups,
                           const keel_entry_info_t *info) KEEL_MUST_USE;

keel_status_t record_dispatch(recorder_t *recorder, const keel_op_t *op);
keel_status_t record_across(recorder_t *recorder, const keel_copy_t *copy);
keel_status_t record_event(recorder_t *recorder, const keel_op_t *op);
keel_status_t record_block(recorder_t *recorder, const keel_op_t *op); // if, while, switch
keel_status_t record_else(recorder_t *recorder, const keel_op_t *op);
keel_status_t record_case(recorder_t *recorder, const keel_op_t *op);
keel_status_t record_end(recorder_t *recorder, const keel_op_t *op);

#endif
