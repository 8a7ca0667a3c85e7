// SPDX-License-Identifier: Apache-2.0
// The device library: what the driver runs on the GPU, for itself. make.sh makes library.co of it.
#include "builtin/kernels.c"

#include "drivers/amdgpu/device/scheduler.h"

KEEL_RAW_KERNEL(keel_tick, KEEL_GROUP(1), scheduler_args_t, a)
{
    KEEL_ITEMS {
        scheduler_tick(PROTOCOL_AT(scheduler_t, a.scheduler));
    }
}

KEEL_RAW_KERNEL(keel_retire, KEEL_GROUP(1), retire_args_t, a)
{
    KEEL_ITEMS {
        scheduler_retire(PROTOCOL_AT(scheduler_t, a.scheduler), PROTOCOL_AT(record_t, a.record));
    }
}
