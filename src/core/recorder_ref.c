// SPDX-License-Identifier: Apache-2.0
// Ranges, which nearly every operation names.
#include "core/recorder_internal.h"

const ref_use_t target_use = {"target", KEEL_USAGE_TRANSFER, KEEL_ACCESS_WRITE};
const ref_use_t source_use = {"source", KEEL_USAGE_TRANSFER, KEEL_ACCESS_READ};

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

keel_status_t ref_refusal(const keel_ref_t *ref, const ref_use_t *use)
{
    const keel_buffer_t *buffer = ref->buffer;
    CHECK(ref->offset <= buffer->size, KEEL_OUT_OF_RANGE, "%s: offset %llu lies beyond %s",
          use->what, (unsigned long long)ref->offset, BUFFER_EXTENT(buffer));
    CHECK(ref->length == KEEL_WHOLE || ref->length <= buffer->size - ref->offset, KEEL_OUT_OF_RANGE,
          "%s: offset %llu and length %llu reach beyond %s", use->what,
          (unsigned long long)ref->offset, (unsigned long long)ref->length, BUFFER_EXTENT(buffer));
    CHECK((buffer->usage & use->usage) == use->usage, KEEL_PERMISSION_DENIED,
          "%s: %s was made without %s", use->what, BUFFER_LABEL(buffer),
          usage_name(use->usage & ~buffer->usage));
    return KEEL_ERROR(KEEL_PERMISSION_DENIED, "%s: %s was made without %s", use->what,
                      BUFFER_LABEL(buffer), access_name(use->access & ~buffer->access));
}

static keel_status_t slot_refusal(const recorder_t *recorder, const keel_ref_t *ref,
                                  const ref_use_t *use)
{
    CHECK(ref->slot != KEEL_PARAMETERS, KEEL_OUT_OF_RANGE,
          "%s: slot is that of parameters; these are for sources of copies, patterns of fills, "
          "patches, counts and values of blocks",
          use->what);
    return KEEL_ERROR(KEEL_OUT_OF_RANGE, "%s: slot is %u; the recording has %u", use->what,
                      ref->slot, recorder->slots);
}

keel_status_t ref_check(recorder_t *recorder, keel_ref_t *ref, const ref_use_t *use)
{
    const keel_buffer_t *buffer = ref->buffer;
    if (!buffer) {
        CHECK(recorder->is_recording, KEEL_INVALID_ARGUMENT,
              "%s: buffer is NULL; slots and parameters are for recordings", use->what);
        if (__builtin_expect(ref->slot >= recorder->slots, 0))
            return slot_refusal(recorder, ref, use);
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
    return ref_fits(ref, use);
}

keel_status_t parameter_check(recorder_t *recorder, const keel_ref_t *ref, const char *what)
{
    CHECK(recorder->is_recording, KEEL_INVALID_ARGUMENT, "%s: parameters are for recordings", what);
    CHECK(ref->offset <= PARAMETER_BYTES && ref->length <= PARAMETER_BYTES - ref->offset,
          KEEL_OUT_OF_RANGE, "%s: offset %llu and length %llu; parameters have at most %d bytes",
          what, (unsigned long long)ref->offset, (unsigned long long)ref->length, PARAMETER_BYTES);
    recorder->takes_parameters = true;
    return NULL;
}
