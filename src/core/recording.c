// SPDX-License-Identifier: Apache-2.0
#include "base/live.h"
#include "base/memory.h"
#include "core/check.h"
#include "core/device_ref.h"
#include "core/recorder.h"
#include "kit/command.h"

static void recording_destroy(keel_recording_t *recording)
{
    keel_device_t *device = recording->device;
    if (atomic_load(&recording->prepared)) device->ops->recording_discard(recording);
    if (recording->commands) commands_finish(recording->commands);
    if (recording->recorder) recorder_finish(recording->recorder);
    mem_free(recording->commands);
    mem_free(recording->recorder);
    mem_free(recording->needs);
    mem_free(recording->parameters);
    mem_free(recording->name);
    mem_free(recording);
    live_add(LIVE_RECORDING, -1);
    device_drop(device);
}

static keel_status_t recording_init(keel_recording_t *recording,
                                    const keel_recording_options_t *options)
{
    recording->options = *options;
    recording->options.name = NULL;
    KEEL_TRY(copy_name(options->name, &recording->name));
    recording->info = (keel_recording_info_t){recording->device, *options};
    recording->info.options.name = TEXT_OF(recording->name);
    recording->commands = mem_zalloc(sizeof *recording->commands);
    recording->recorder = mem_zalloc(sizeof *recording->recorder);
    recording->needs = mem_zalloc(options->slots * sizeof *recording->needs);
    if (!recording->commands || !recording->recorder || !recording->needs)
        return status_no_memory();
    recorder_t *recorder = recording->recorder;
    recorder_init(recorder, recording->device, recording->commands);
    recorder->allowed = RECORDING_OPS;
    recorder->is_recording = true;
    recorder->slots = options->slots;
    recorder->needs = recording->needs;
    return NULL;
}

keel_status_t keel_recording_create(keel_device_t *device, const keel_recording_options_t *options,
                                    keel_recording_t **recording)
{
    CHECK_NOT_NULL(recording);
    *recording = NULL;
    CHECK_NOT_NULL(device);
    KEEL_TRY(device_check(device));
    keel_recording_options_t own = options ? *options : (keel_recording_options_t){0};
    CHECK(own.slots <= device->caps.max_slots, KEEL_OUT_OF_RANGE,
          "options->slots is %u; the device takes at most %u", own.slots, device->caps.max_slots);
    keel_recording_t *r = mem_zalloc(sizeof *r);
    if (!r) return status_no_memory();
    object_init(&r->object);
    r->device = device;
    device_hold(device);
    live_add(LIVE_RECORDING, 1);
    keel_status_t status = recording_init(r, &own);
    if (status) {
        recording_destroy(r);
        return status;
    }
    *recording = r;
    return NULL;
}

keel_recording_t *keel_recording_retain(keel_recording_t *recording)
{
    if (recording) object_retain(&recording->object);
    return recording;
}

void keel_recording_release(keel_recording_t *recording)
{
    if (recording && object_release(&recording->object)) recording_destroy(recording);
}

keel_status_t keel_recording_add(keel_recording_t *recording, const keel_op_t *ops, size_t count)
{
    CHECK_NOT_NULL(recording);
    CHECK(ops || !count, KEEL_INVALID_ARGUMENT, "ops is NULL, but count is %zu", count);
    KEEL_TRY(device_check(recording->device));
    CHECK(recording->recorder, KEEL_FAILED_PRECONDITION, "recording '%s' has ended",
          TEXT_OF(recording->name));
    return recorder_add(recording->recorder, ops, count);
}

keel_status_t keel_recording_end(keel_recording_t *recording)
{
    CHECK_NOT_NULL(recording);
    KEEL_TRY(device_check(recording->device));
    CHECK(recording->recorder, KEEL_FAILED_PRECONDITION, "recording '%s' has ended",
          TEXT_OF(recording->name));
    KEEL_TRY(recorder_end(recording->recorder));
    if (recording->recorder->takes_parameters)
        KEEL_TRY(parameters_count(recording->commands, &recording->parameters));
    recorder_finish(recording->recorder);
    mem_free(recording->recorder);
    recording->recorder = NULL;
    return NULL;
}

keel_status_t keel_recording_prepare(keel_recording_t *recording, keel_queue_t *queue)
{
    CHECK_NOT_NULL(recording);
    CHECK_NOT_NULL(queue);
    KEEL_TRY(device_check(recording->device));
    CHECK(!recording->recorder, KEEL_FAILED_PRECONDITION, "recording '%s' has not ended",
          TEXT_OF(recording->name));
    CHECK(recording->device == queue->device, KEEL_INVALID_ARGUMENT,
          "recording and queue are of different devices");
    if (!recording->device->ops->recording_prepare) return NULL;
    return recording->device->ops->recording_prepare(recording, queue);
}

const keel_recording_info_t *keel_recording_info(const keel_recording_t *recording)
{
    return &recording->info;
}

size_t keel_recording_count(const keel_recording_t *recording)
{
    return recording->commands->count;
}
