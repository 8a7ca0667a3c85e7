// SPDX-License-Identifier: Apache-2.0
// A device with what tests of recordings on it need: memory that the host sees, a semaphore, the
// suite's kernels and a recording.
#ifndef KEEL_TESTS_DRIVERS_AMDGPU_SETUP_H_
#define KEEL_TESTS_DRIVERS_AMDGPU_SETUP_H_

#include <keel/keel.h>
#include <string.h>

#include "ok.h"
#include "unit.h"

extern const unsigned char keel_embed_conformance_kernels[];
extern const uint64_t keel_embed_conformance_kernels_size;

enum { WORDS = 4096 };

typedef struct setup_t {
    keel_device_t *device;
    keel_queue_t *queue;
    keel_buffer_t *buffer; // WORDS words, which the host sees
    keel_semaphore_t *semaphore;
    keel_executable_t *executable;
    keel_recording_t *recording;
    uint64_t value; // of the semaphore, for a test that goes on from it
} setup_t;

static inline uint32_t *map(const setup_t *s)
{
    void *data;
    OK(keel_buffer_map(s->buffer, 0, WORDS * sizeof(uint32_t), KEEL_ACCESS_READ | KEEL_ACCESS_WRITE,
                       &data));
    return data;
}

// `slots`: of the recording's table.
static inline void setup_open(setup_t *s, const char *uri, uint32_t slots)
{
    const keel_buffer_options_t options = {.size = WORDS * sizeof(uint32_t),
                                           .memory = KEEL_MEMORY_HOST_VISIBLE};
    const keel_recording_options_t recording = {.slots = slots};
    const keel_executable_options_t image = {.data = keel_embed_conformance_kernels,
                                             .size = keel_embed_conformance_kernels_size};
    *s = (setup_t){0};
    OK(keel_device_open(uri, NULL, &s->device));
    s->queue = keel_device_queue(s->device, 0);
    OK(keel_buffer_create(s->device, &options, &s->buffer));
    memset(map(s), 0, WORDS * sizeof(uint32_t));
    keel_buffer_unmap(s->buffer);
    OK(keel_semaphore_create(s->device, NULL, &s->semaphore));
    OK(keel_executable_load(s->device, &image, &s->executable));
    OK(keel_recording_create(s->device, &recording, &s->recording));
}

static inline void setup_close(setup_t *s)
{
    keel_recording_release(s->recording);
    keel_executable_release(s->executable);
    keel_semaphore_release(s->semaphore);
    keel_buffer_release(s->buffer);
    keel_device_release(s->device);
}

static inline keel_ref_t word(const setup_t *s, uint32_t index)
{
    return keel_span(s->buffer, index * sizeof index, sizeof index);
}

static inline keel_op_t kernel(const setup_t *s, const char *name, keel_refs_t bindings)
{
    keel_entry_t entry;
    OK(keel_executable_entry(s->executable, name, &entry));
    return keel_op_dispatch(entry, keel_groups(1, 1, 1), NULL, 0, bindings);
}

static inline void add(const setup_t *s, keel_op_t op)
{
    OK(keel_recording_add(s->recording, &op, 1));
}

#endif
