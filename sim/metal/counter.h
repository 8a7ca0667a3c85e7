// SPDX-License-Identifier: Apache-2.0
// MTLCounterSampleBuffer: times at which encoders begin and end, by the GPU's own clock.
#ifndef SIM_METAL_COUNTER_H_
#define SIM_METAL_COUNTER_H_

#include "metal/buffer.h"
#include "metal/encoder.h"

// The GPU's clock in ns, which is not the host's.
uint64_t counter_now(void);

// Methods of the device.
bool device_supports_sampling(void *self, sel_t cmd, unsigned long point);
void *device_counter_sets(void *self, sel_t cmd);
void *device_samples(void *self, sel_t cmd, void *descriptor, void **error);
void device_timestamps(void *self, sel_t cmd, uint64_t *host, uint64_t *gpu);

// The descriptor of an encoder, checked to be of that class: what kind of dispatches it has.
unsigned long pass_type(const void *self, sel_t cmd, void *descriptor, const class_t *class);
// An encoder begins as its descriptor says; and ends, with `worked` if it has done anything.
void pass_begin(encoder_t *encoder, void *descriptor);
void pass_end(encoder_t *encoder, bool worked);

// Of blit encoders.
void blit_resolve(encoder_t *self, sel_t cmd, void *samples, range_t range, void *buffer,
                  unsigned long offset);

#endif
