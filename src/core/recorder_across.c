// SPDX-License-Identifier: Apache-2.0
// Copies between two devices.
#include "core/recorder_internal.h"
#include "kit/across.h"

// That the device can copy between the two buffers.
static keel_status_t pair_check(const recorder_t *recorder, const keel_copy_t *copy)
{
    keel_buffer_t *source = copy->source.buffer, *target = copy->target.buffer;
    CHECK(!recorder->is_recording, KEEL_INVALID_ARGUMENT,
          "a buffer of the copy belongs to another device; copies between devices are for "
          "submissions, not for recordings");
    CHECK(recorder->device->caps.bits & KEEL_CAP_COPY_ACROSS, KEEL_UNSUPPORTED,
          "a buffer of the copy belongs to another device, and the device has no "
          "KEEL_CAP_COPY_ACROSS; submit the copy to a queue of the other device");
    CHECK(source, KEEL_INVALID_ARGUMENT, "source: buffer is NULL");
    CHECK(target, KEEL_INVALID_ARGUMENT, "target: buffer is NULL");
    const keel_device_t *from = source->device, *to = target->device;
    CHECK(from == recorder->device || to == recorder->device, KEEL_INVALID_ARGUMENT,
          "source is %s of device '%s' and target %s of device '%s': submit the copy to a queue of "
          "one of these two, not of device '%s'",
          BUFFER_LABEL(source), TEXT_OF(from->name), BUFFER_LABEL(target), TEXT_OF(to->name),
          TEXT_OF(recorder->device->name));
    const keel_buffer_t *other = from == recorder->device ? target : source;
    KEEL_TRY(device_check(other->device));
    CHECK(across_is_served(recorder->device, other), KEEL_UNSUPPORTED,
          "%s: the host does not see its memory, and device '%s' has no KEEL_CAP_COPY_ACROSS",
          BUFFER_LABEL(other), TEXT_OF(other->device->name));
    return NULL;
}

keel_status_t record_across(recorder_t *recorder, const keel_copy_t *copy)
{
    // Of the pair that the copy before it was of, too, only the ranges are others.
    if (!commands_copied(recorder->commands, copy->source.buffer, copy->target.buffer))
        KEEL_TRY(pair_check(recorder, copy));
    keel_ref_t source = copy->source, target = copy->target;
    KEEL_TRY(ref_fits(&source, &source_use));
    KEEL_TRY(ref_fits(&target, &target_use));
    CHECK(source.length == target.length, KEEL_INVALID_ARGUMENT,
          "source has %llu bytes and target %llu", (unsigned long long)source.length,
          (unsigned long long)target.length);
    keel_cmd_across_t *c = commands_add(recorder->commands, KEEL_CMD_ACROSS, sizeof *c);
    if (!c) return status_no_memory();
    c->copy.source = source;
    c->copy.target = target;
    c->other = source.buffer->device == recorder->device ? target.buffer : source.buffer;
    command_keep_copied(recorder->commands, &c->copy);
    return NULL;
}
