// SPDX-License-Identifier: Apache-2.0
// Memory: of the device, of buffers, and of runs.
#ifndef KEEL_SRC_DRIVERS_METAL_MEMORY_MEMORY_H_
#define KEEL_SRC_DRIVERS_METAL_MEMORY_MEMORY_H_

#include "drivers/metal/base/device.h"

// memory.c
// A buffer of Metal's that is none of Keel's, but may be found by its address. Takes over `made`.
keel_status_t metal_memory_add(metal_device_t *device, id made, uint64_t size,
                               struct metal_memory_t **memory) KEEL_MUST_USE;
// Has queues that are made from now on see all memory, if Metal has sets for that.
void metal_residency_make(metal_device_t *device);
void metal_residency_release(metal_device_t *device); // memory may be released after it
void metal_memory_remove(metal_device_t *device, struct metal_memory_t *memory);
id metal_memory_buffer(const struct metal_memory_t *memory);
uint64_t metal_memory_address(const struct metal_memory_t *memory);
// Where memory of the device lies, by its address.
keel_status_t metal_place_at(metal_device_t *device, uint64_t address, uint64_t length,
                             metal_place_t *place) KEEL_MUST_USE;
// Where that lies which a command refers to, when everything before the last barrier was encoded.
keel_status_t metal_place(const keel_ref_t *ref, const keel_cmd_execute_t *execute,
                          metal_place_t *place) KEEL_MUST_USE;

// buffer.c
keel_status_t metal_buffer_alloc(keel_buffer_t *buffer);
void metal_buffer_free(keel_buffer_t *buffer);
keel_status_t metal_buffer_flush(keel_buffer_t *buffer, uint64_t offset, uint64_t length);
keel_status_t metal_buffer_invalidate(keel_buffer_t *buffer, uint64_t offset, uint64_t length);

// external.c
keel_status_t metal_buffer_import(keel_buffer_t *buffer);
void metal_buffer_forget(keel_buffer_t *buffer);
keel_status_t metal_buffer_export(keel_buffer_t *buffer, keel_external_buffer_t *external);
void metal_buffer_object(keel_buffer_t *root, void **object, uint64_t *offset);

// words.c
// Has the run have words, and takes them back.
keel_status_t metal_words_take(metal_run_t *run) KEEL_MUST_USE;
void metal_words_give_back(metal_run_t *run);

// staging.c
// Memory that both see, until the run has ended.
keel_status_t metal_stage(metal_run_t *run, uint64_t size,
                          struct metal_memory_t **memory) KEEL_MUST_USE;
// The same, cut from a larger piece. For the GPU to read; *data: for the host to write.
keel_status_t metal_stage_cut(metal_run_t *run, uint64_t size, metal_place_t *place,
                              void **data) KEEL_MUST_USE;
void metal_stages_release(metal_run_t *run);

#endif
