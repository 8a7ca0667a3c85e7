// SPDX-License-Identifier: Apache-2.0
// Times that the GPU samples: where an encoder begins and ends, in a counter sample buffer. A run
// has a slice of one, which the device keeps for later runs. stamp.c says what is done with them.
#include <string.h>

#include "drivers/metal/encode/encode.h"

enum {
    SAMPLES = METAL_SLICES * METAL_SLICE, // of a buffer; 32768 bytes at most
    STAGE_BOUNDARY = 0,                   // MTLCounterSamplingPointAtStageBoundary
};
static const unsigned long no_sample = ~0ul; // MTLCounterDontSample

static bool is_timestamp(const metal_api_t *api, id set)
{
    const char *name = mtl_utf8(api, mtl_counter_set_name(api, set));
    return name && strcmp(name, "timestamp") == 0;
}

void metal_samples_find(metal_device_t *device)
{
    const metal_api_t *api = device->api;
    id gpu = device->device;
    if (device->discrete || !mtl_responds(api, gpu, api->selectors.supports_sampling)) return;
    if (!mtl_supports_sampling(api, gpu, STAGE_BOUNDARY)) return;
    id sets = mtl_counter_sets(api, gpu);
    for (unsigned long i = 0; i < mtl_count(api, sets); i++) {
        id set = mtl_at(api, sets, i);
        if (!device->samples.set && is_timestamp(api, set))
            device->samples.set = mtl_retain(api, set);
    }
}

void metal_samples_release(metal_device_t *device)
{
    for (uint32_t i = 0; i < device->samples.made; i++)
        mtl_release(device->api, device->samples.buffers[i]);
    for (uint32_t i = 0; i < METAL_SAMPLED * METAL_SLICES; i++)
        mtl_release(device->api, device->samples.order[i].event);
    mtl_release(device->api, device->samples.set);
}

static bool has_samples(const metal_device_t *device)
{
    return device->samples.set && !atomic_load(&device->samples.bad);
}

static id samples_make(metal_device_t *device)
{
    const metal_api_t *api = device->api;
    id error = NULL;
    id descriptor = mtl_new(api, api->objc_getClass("MTLCounterSampleBufferDescriptor"));
    mtl_set_counter_set(api, descriptor, device->samples.set);
    mtl_set_sample_count(api, descriptor, SAMPLES);
    id made = mtl_new_samples(api, device->device, descriptor, &error); // of shared storage
    mtl_release(api, descriptor);
    return made;
}

// A spare slice. `more`: there is none, but there may be one more buffer.
static bool slice_find(metal_run_t *run, bool *more)
{
    metal_device_t *device = metal_run_device(run);
    lock_enter(&device->lock);
    bool has = device->samples.spare_count;
    if (has) run->slice = device->samples.spare[--device->samples.spare_count];
    if (has) run->samples = device->samples.buffers[run->slice / METAL_SLICES];
    *more = !has && device->samples.made < METAL_SAMPLED;
    lock_leave(&device->lock);
    return has;
}

// One more buffer, in slices. False: others have made the last one meanwhile.
static bool slices_add(metal_device_t *device, id samples)
{
    lock_enter(&device->lock);
    uint32_t made = device->samples.made;
    bool fits = made < METAL_SAMPLED;
    if (fits) device->samples.buffers[device->samples.made++] = samples;
    for (uint32_t i = 0; fits && i < METAL_SLICES; i++)
        device->samples.spare[device->samples.spare_count++] = (uint16_t)(made * METAL_SLICES + i);
    lock_leave(&device->lock);
    return fits;
}

static bool slice_take(metal_run_t *run)
{
    metal_device_t *device = metal_run_device(run);
    bool more;
    if (slice_find(run, &more)) return true;
    id samples = more ? samples_make(device) : NULL;
    if (samples && !slices_add(device, samples)) mtl_release(device->api, samples);
    return samples && slice_find(run, &more);
}

bool metal_samples_need(metal_run_t *run, uint32_t count)
{
    if (!has_samples(metal_run_device(run)) || run->sampled + count > METAL_SLICE) return false;
    return run->samples || slice_take(run);
}

unsigned long metal_sample_at(const metal_run_t *run, uint32_t index)
{
    return (unsigned long)(run->slice % METAL_SLICES) * METAL_SLICE + index;
}

id metal_sampled_encoder(metal_run_t *run, metal_encoder_t kind)
{
    const metal_api_t *api = metal_run_device(run)->api;
    bool blit = kind == METAL_BLIT;
    id pass = blit ? mtl_blit_pass(api, api->objc_getClass("MTLBlitPassDescriptor"))
                   : mtl_compute_pass(api, api->objc_getClass("MTLComputePassDescriptor"));
    id attachment = mtl_attachment(api, mtl_attachments(api, pass), 0);
    mtl_set_samples(api, attachment, run->samples);
    mtl_set_first_sample(api, attachment,
                         run->timed.both ? metal_sample_at(run, run->sampled) : no_sample);
    mtl_set_last_sample(api, attachment, metal_sample_at(run, run->sampled + run->timed.both));
    run->timed.wanted = false;
    if (blit) return mtl_blit_encoder_of(api, run->command, pass);
    mtl_set_pass_type(api, pass, metal_run_device(run)->dispatches);
    return mtl_compute_encoder_of(api, run->command, pass);
}

void metal_samples_give_back(metal_run_t *run)
{
    metal_device_t *device = metal_run_device(run);
    if (!run->samples) return;
    lock_enter(&device->lock);
    device->samples.spare[device->samples.spare_count++] = run->slice;
    lock_leave(&device->lock);
    run->samples = NULL;
}
