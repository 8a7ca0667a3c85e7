// SPDX-License-Identifier: Apache-2.0
#include "metal/counter.h"

#include "metal/foundation.h"
#include "metal/hazard.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BUFFERS = 32, MOST_BYTES = 32768, RESOLVED_AT = 256 };
static const unsigned long none = ~0ul;                 // MTLCounterDontSample
static const uint64_t ahead_ns = 1000u * 1000000000ull; // of the host's clock

typedef struct samples_t {
    object_t object;
    unsigned long count;
    atomic_uint_fast64_t *times; // owned
} samples_t;

typedef struct samples_descriptor_t {
    object_t object;
    void *set; // retained
    unsigned long storage, count;
} samples_descriptor_t;

// Of one attachment, which is all that counts here.
typedef struct attachment_t {
    object_t object;
    samples_t *samples; // retained
    unsigned long first, last;
} attachment_t;

typedef struct attachments_t {
    object_t object;
    attachment_t *only; // retained
} attachments_t;

typedef struct pass_t {
    object_t object; // of class MTLComputePassDescriptor or MTLBlitPassDescriptor
    unsigned long type;
    attachments_t *attachments; // retained
} pass_t;

typedef struct data_object_t {
    object_t object;
    void *bytes; // owned
    unsigned long length;
} data_object_t;

static class_t MTLCounterSet, MTLCounterSampleBuffer, MTLCounterSampleBufferDescriptor;
static class_t MTLComputePassSampleBufferAttachmentDescriptor, NSData;
static class_t MTLComputePassSampleBufferAttachmentDescriptorArray;

uint64_t counter_now(void)
{
    return clock_ns() + ahead_ns;
}

bool device_supports_sampling(void *self, sel_t cmd, unsigned long point)
{
    if (point > 4) misuse(self, cmd, "there is no sampling point %lu", point);
    return point == 0 && settings()->samples != SAMPLES_NONE;
}

static void *set_name(void *self, sel_t cmd)
{
    return object_autorelease(string_new("timestamp"));
}

void *device_counter_sets(void *self, sel_t cmd)
{
    void *set = object_new(&MTLCounterSet);
    void *sets = array_new(&set, settings()->samples != SAMPLES_NONE);
    object_release(set);
    return object_autorelease(sets);
}

static void refuse(void **error, const char *text)
{
    if (error) *error = object_autorelease(error_new("MTLCounterErrorDomain", 0, text));
}

void *device_samples(void *self, sel_t cmd, void *descriptor, void **error)
{
    object_check(self, cmd, descriptor, &MTLCounterSampleBufferDescriptor);
    const samples_descriptor_t *asked = descriptor;
    if (!asked->set) misuse(self, cmd, "the descriptor has no counter set");
    if (asked->storage != STORAGE_SHARED && asked->storage != STORAGE_PRIVATE)
        misuse(self, cmd, "samples have no storage mode %lu", asked->storage);
    if (asked->count == 0 || asked->count * sizeof(uint64_t) > MOST_BYTES) {
        refuse(error, "the sample count is out of range");
        return NULL;
    }
    if (atomic_load(&MTLCounterSampleBuffer.live) >= MOST_BUFFERS) {
        refuse(error, "there are too many counter sample buffers");
        return NULL;
    }
    samples_t *samples = object_new(&MTLCounterSampleBuffer);
    samples->count = asked->count;
    samples->times = make(asked->count * sizeof *samples->times);
    return samples;
}

void device_timestamps(void *self, sel_t cmd, uint64_t *host, uint64_t *gpu)
{
    if (!host || !gpu) misuse(self, cmd, "NULL where a time is to go");
    *gpu = counter_now();
    *host = clock_ns();
}

static void samples_dealloc(void *self)
{
    free(((samples_t *)self)->times);
}

static void check_samples(const void *self, sel_t cmd, const samples_t *samples, range_t range)
{
    if (range.length == 0 || range.location > samples->count ||
        range.length > samples->count - range.location)
        misuse(self, cmd, "%lu samples from %lu on: there are %lu", range.length, range.location,
               samples->count);
}

static void *samples_resolve(samples_t *self, sel_t cmd, range_t range)
{
    check_samples(self, cmd, self, range);
    data_object_t *data = object_new(&NSData);
    data->length = range.length * sizeof(uint64_t);
    uint64_t *times = data->bytes = make(data->length);
    for (unsigned long i = 0; i < range.length; i++)
        times[i] = atomic_load(&self->times[range.location + i]);
    return object_autorelease(data);
}

static const void *data_bytes(data_object_t *self, sel_t cmd)
{
    return self->bytes;
}

static unsigned long data_length(data_object_t *self, sel_t cmd)
{
    return self->length;
}

static void data_dealloc(void *self)
{
    free(((data_object_t *)self)->bytes);
}

static void *descriptor_new(class_t *self, sel_t cmd)
{
    return object_new(&MTLCounterSampleBufferDescriptor);
}

static void descriptor_set(samples_descriptor_t *self, sel_t cmd, void *set)
{
    object_check(self, cmd, set, &MTLCounterSet);
    object_release(self->set);
    self->set = object_retain(set);
}

static void descriptor_storage(samples_descriptor_t *self, sel_t cmd, unsigned long storage)
{
    self->storage = storage;
}

static void descriptor_count(samples_descriptor_t *self, sel_t cmd, unsigned long count)
{
    self->count = count;
}

static void descriptor_dealloc(void *self)
{
    object_release(((samples_descriptor_t *)self)->set);
}

static void *pass_new(class_t *class)
{
    pass_t *pass = object_new(class);
    pass->attachments = object_new(&MTLComputePassSampleBufferAttachmentDescriptorArray);
    attachment_t *only = object_new(&MTLComputePassSampleBufferAttachmentDescriptor);
    only->first = only->last = none;
    pass->attachments->only = only;
    return object_autorelease(pass);
}

static void *pass_new_compute(class_t *self, sel_t cmd)
{
    return pass_new(&MTLComputePassDescriptor);
}

static void *pass_new_blit(class_t *self, sel_t cmd)
{
    return pass_new(&MTLBlitPassDescriptor);
}

static void pass_dealloc(void *self)
{
    object_release(((pass_t *)self)->attachments);
}

static void pass_set_type(pass_t *self, sel_t cmd, unsigned long type)
{
    if (type > 1) misuse(self, cmd, "there is no dispatch type %lu", type);
    self->type = type;
}

static void *pass_attachments(pass_t *self, sel_t cmd)
{
    return self->attachments;
}

static void *attachments_at(attachments_t *self, sel_t cmd, unsigned long index)
{
    if (index) misuse(self, cmd, "attachment %lu: there is one", index);
    return self->only;
}

static void attachments_dealloc(void *self)
{
    object_release(((attachments_t *)self)->only);
}

static void attachment_samples(attachment_t *self, sel_t cmd, samples_t *samples)
{
    object_check(self, cmd, samples, &MTLCounterSampleBuffer);
    object_release(self->samples);
    self->samples = object_retain(samples);
}

static void attachment_first(attachment_t *self, sel_t cmd, unsigned long index)
{
    self->first = index;
}

static void attachment_last(attachment_t *self, sel_t cmd, unsigned long index)
{
    self->last = index;
}

static void attachment_dealloc(void *self)
{
    object_release(((attachment_t *)self)->samples);
}

typedef struct sample_work_t {
    work_t work;
    unsigned long index;
    bool empty; // the encoder did nothing: then there is no time
} sample_work_t;

static unsigned perform_sample(work_t *work)
{
    const sample_work_t *sample = (sample_work_t *)work;
    samples_t *samples = (samples_t *)work->uses[0];
    uint64_t now = settings()->samples == SAMPLES_ZERO ? 0 : counter_now();
    if (!sample->empty) atomic_store(&samples->times[sample->index], now);
    return ERROR_NONE;
}

static sample_work_t *sample_add(encoder_t *encoder, samples_t *samples, unsigned long index)
{
    sample_work_t *sample =
        command_add(encoder->command, sizeof *sample, perform_sample, (void *[]){samples}, 1);
    sample->work.ordered = true;
    sample->index = index;
    return sample;
}

unsigned long pass_type(const void *self, sel_t cmd, void *descriptor, const class_t *class)
{
    object_check(self, cmd, descriptor, class);
    const attachment_t *attachment = ((pass_t *)descriptor)->attachments->only;
    const samples_t *samples = attachment->samples;
    if (samples && attachment->first != none)
        check_samples(self, cmd, samples, (range_t){attachment->first, 1});
    if (samples && attachment->last != none)
        check_samples(self, cmd, samples, (range_t){attachment->last, 1});
    return ((pass_t *)descriptor)->type;
}

void pass_begin(encoder_t *encoder, void *descriptor)
{
    const attachment_t *attachment = ((pass_t *)descriptor)->attachments->only;
    if (!attachment->samples) return;
    encoder->samples = object_retain(attachment->samples);
    encoder->last_sample = attachment->last;
    if (attachment->first != none)
        encoder->first_sample = &sample_add(encoder, attachment->samples, attachment->first)->work;
}

void pass_end(encoder_t *encoder, bool worked)
{
    if (!encoder->samples) return;
    if (encoder->first_sample) ((sample_work_t *)encoder->first_sample)->empty = !worked;
    if (encoder->last_sample != none)
        sample_add(encoder, encoder->samples, encoder->last_sample)->empty = !worked;
    object_release(encoder->samples);
    encoder->samples = NULL;
}

typedef struct resolve_work_t {
    work_t work;
    range_t range;
    unsigned long offset;
    unsigned encoder; // its number
} resolve_work_t;

static unsigned perform_resolve(work_t *work)
{
    const resolve_work_t *resolve = (resolve_work_t *)work;
    const samples_t *samples = (samples_t *)work->uses[0];
    char *to = ((buffer_t *)work->uses[1])->gpu + resolve->offset;
    hazard_begin(resolve->encoder, false, "resolved", "counters");
    hazard_touch(to, resolve->range.length * sizeof(uint64_t), WRITES);
    for (unsigned long i = 0; i < resolve->range.length; i++) {
        uint64_t time = atomic_load(&samples->times[resolve->range.location + i]);
        memcpy(to + i * sizeof time, &time, sizeof time);
    }
    hazard_end(resolve->encoder);
    return ERROR_NONE;
}

void blit_resolve(encoder_t *self, sel_t cmd, void *samples, range_t range, void *buffer,
                  unsigned long offset)
{
    encoder_check_open(self, cmd);
    object_check(self, cmd, samples, &MTLCounterSampleBuffer);
    object_check(self, cmd, buffer, &MTLBuffer);
    check_samples(self, cmd, samples, range);
    if (offset % RESOLVED_AT)
        misuse(self, cmd, "offset %lu must be a multiple of %d", offset, RESOLVED_AT);
    buffer_check(self, cmd, buffer, (range_t){offset, range.length * sizeof(uint64_t)});
    resolve_work_t *resolve = command_add(self->command, sizeof *resolve, perform_resolve,
                                          (void *[]){samples, buffer}, 2);
    resolve->encoder = self->number;
    resolve->range = range;
    resolve->offset = offset;
}

static class_t MTLCounterSet = {.name = "MTLCounterSet",
                                .size = sizeof(object_t),
                                .methods = (method_t[]){METHOD("name", set_name), METHODS_END}};
static class_t MTLCounterSampleBuffer = {
    .name = "MTLCounterSampleBuffer",
    .size = sizeof(samples_t),
    .dealloc = samples_dealloc,
    .methods = (method_t[]){METHOD_MAY_FAIL("resolveCounterRange:", samples_resolve), METHODS_END}};
static class_t MTLCounterSampleBufferDescriptor = {
    .name = "MTLCounterSampleBufferDescriptor",
    .size = sizeof(samples_descriptor_t),
    .dealloc = descriptor_dealloc,
    .methods = (method_t[]){METHOD("setCounterSet:", descriptor_set),
                            METHOD("setStorageMode:", descriptor_storage),
                            METHOD("setSampleCount:", descriptor_count), METHODS_END}};
static class_t NSData = {.name = "NSData",
                         .size = sizeof(data_object_t),
                         .dealloc = data_dealloc,
                         .methods = (method_t[]){METHOD("bytes", data_bytes),
                                                 METHOD("length", data_length), METHODS_END}};
static class_t MTLComputePassSampleBufferAttachmentDescriptor = {
    .name = "MTLComputePassSampleBufferAttachmentDescriptor",
    .size = sizeof(attachment_t),
    .dealloc = attachment_dealloc,
    .methods = (method_t[]){METHOD("setSampleBuffer:", attachment_samples),
                            METHOD("setStartOfEncoderSampleIndex:", attachment_first),
                            METHOD("setEndOfEncoderSampleIndex:", attachment_last), METHODS_END}};
static class_t MTLComputePassSampleBufferAttachmentDescriptorArray = {
    .name = "MTLComputePassSampleBufferAttachmentDescriptorArray",
    .size = sizeof(attachments_t),
    .dealloc = attachments_dealloc,
    .methods = (method_t[]){METHOD("objectAtIndexedSubscript:", attachments_at), METHODS_END}};
class_t MTLComputePassDescriptor = {
    .name = "MTLComputePassDescriptor",
    .size = sizeof(pass_t),
    .dealloc = pass_dealloc,
    .methods = (method_t[]){METHOD("setDispatchType:", pass_set_type),
                            METHOD("sampleBufferAttachments", pass_attachments), METHODS_END}};
class_t MTLBlitPassDescriptor = {
    .name = "MTLBlitPassDescriptor",
    .size = sizeof(pass_t),
    .dealloc = pass_dealloc,
    .methods = (method_t[]){METHOD("sampleBufferAttachments", pass_attachments), METHODS_END}};

static class_t descriptor_meta = {.name = "MTLCounterSampleBufferDescriptor",
                                  .methods =
                                      (method_t[]){METHOD("new", descriptor_new), METHODS_END}};
static class_t compute_meta = {
    .name = "MTLComputePassDescriptor",
    .methods = (method_t[]){METHOD("computePassDescriptor", pass_new_compute), METHODS_END}};
static class_t blit_meta = {
    .name = "MTLBlitPassDescriptor",
    .methods = (method_t[]){METHOD("blitPassDescriptor", pass_new_blit), METHODS_END}};

void counter_add(void)
{
    class_add(&NSData);
    class_add(&MTLCounterSet);
    class_add(&MTLCounterSampleBuffer);
    class_add_meta(&MTLCounterSampleBufferDescriptor, &descriptor_meta);
    class_add(&MTLComputePassSampleBufferAttachmentDescriptor);
    class_add(&MTLComputePassSampleBufferAttachmentDescriptorArray);
    class_add_meta(&MTLComputePassDescriptor, &compute_meta);
    class_add_meta(&MTLBlitPassDescriptor, &blit_meta);
}
