// SPDX-License-Identifier: Apache-2.0
// Ranges, which nearly every operation names.
#include "core/recorder_internal.h"

// The first of some bits, as the application wrote it.
static const char *usage_name(uint32_t bits)
{
    static const char *const names[] = {"KEEL_USAGE_TRANSFER", "KEEL_USAGE_DISPATCH",
                                        "KEEL_USAGE_COUNTS", "KEEL_USAGE_MAP", "KEEL_USAGE_EXPORT"};
    return names[__builtin_ctz(bits)];
}

static const char *access_name(uint32_t bits)
{
    return bits & KEEL_ACCESS_READ ? "KEEL_ACCESS_READ" : "KEEL_ACCESS_WRITE";
}

keel_status_t ref_check(recorder_t *recorder, keel_ref_t *ref, const ref_use_t *use)
{
    const keel_buffer_t *buffer = ref->buffer;
    if (!buffer) {
        CHECK(recorder->is_recording, KEEL_INVALID_ARGUMENT,
              "%s: buffer is NULL; slots are for recordings", use->what);
        CHECK(ref->slot < recorder->slots, KEEL_OUT_OF_RANGE,
              "%s: slot is %u; the recording has %u", use->what, ref->slot, recorder->slots);
        uint64_t length = ref->length == KEEL_WHOLE ? 0 : ref->length;
        CHECK(ref->offset <= UINT64_MAX - length, KEEL_OUT_OF_RANGE,
              "%s: offset and length overflow", use->what);
        keel_slot_need_t *need = &recorder->needs[ref->slot];
        if (ref->offset + length > need->length) need->length = ref->offset + length;
        need->usage |= use->usage;
        need->access |= use->access;
        return NULL;
    }
    CHECK(buffer->device == recorder->device, KEEL_INVALID_ARGUMENT,
          "%s: %s belongs to another device", use->what, BUFFER_LABEL(buffer));
    CHECK(ref->offset <= buffer->size, KEEL_OUT_OF_RANGE, "%s: offset %llu lies beyond %s",
          use->what, (unsigned long long)ref->offset, BUFFER_EXTENT(buffer));
    uint64_t rest = buffer->size - ref->offset;
    if (ref->length == KEEL_WHOLE) ref->length = rest;
    CHECK(ref->length <= rest, KEEL_OUT_OF_RANGE, "%s: offset %llu and length %llu reach beyond %s",
          use->what, (unsigned long long)ref->offset, (unsigned long long)ref->length,
          BUFFER_EXTENT(buffer));
    CHECK((buffer->usage & use->usage) == use->usage, KEEL_PERMISSION_DENIED,
          "%s: %s was made without %s", use->what, BUFFER_LABEL(buffer),
          usage_name(use->usage & ~buffer->usage));
    CHECK((buffer->access & use->access) == use->access, KEEL_PERMISSION_DENIED,
          "%s: %s was made without %s", use->what, BUFFER_LABEL(buffer),
          access_name(use->access & ~buffer->access));
    return NULL;
}
