// SPDX-License-Identifier: Apache-2.0
#include "gpu.h"

#include <stdlib.h>

keel_status_t gpu_open(gpu_t *gpu, const setting_t *setting)
{
    gpu->job = setting->job;
    KEEL_TRY(rig_open(&gpu->rig, setting));
    gpu->queues[0] = gpu->rig.queue;
    KEEL_TRY(keel_queue_create(gpu->rig.device, NULL, &gpu->queues[1]));
    gpu->op = keel_op_dispatch(gpu->rig.entry, keel_groups(1, 1, 1), NULL, 0, KEEL_NO_BINDINGS);
    return keel_semaphore_create(gpu->rig.device, NULL, &gpu->semaphore);
}

void gpu_close(gpu_t *gpu)
{
    keel_semaphore_release(gpu->semaphore);
    keel_queue_release(gpu->queues[1]);
    rig_close(&gpu->rig);
}

keel_status_t gpu_begin(const setting_t *setting, void **state)
{
    gpu_t *self = calloc(1, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    return gpu_open(self, setting);
}

void gpu_end(void *state)
{
    gpu_close(state);
    free(state);
}

keel_status_t gpu_spin(keel_point_t point)
{
    uint64_t second = 1000000000;
    keel_wait_options_t options = {.spin_ns = second};
    return keel_wait_with(KEEL_POINTS(point), KEEL_ALL, 10 * second, &options);
}

keel_status_t bare_begin(const setting_t *setting, void **state)
{
    bare_t *self = calloc(1, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    self->job = setting->job;
    return raw_open(setting, &self->raw);
}

void bare_end(void *state)
{
    bare_t *self = state;
    raw_close(self->raw);
    free(self);
}
