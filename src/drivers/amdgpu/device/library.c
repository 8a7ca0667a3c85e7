// SPDX-License-Identifier: Apache-2.0
// The device library: what the driver runs on the GPU, for itself. make.sh makes library.co of it.
#include "builtin/kernels.c"

#define RING_NOW() clock_now()
#include "drivers/amdgpu/device/scheduler.h"
#include "drivers/amdgpu/device/version.h"

// What the host looks at before it uses the rest.
KEEL_EXECUTABLE_CONSTANT(uint64_t, keel_library_version) = LIBRARY_VERSION;

KEEL_RAW_KERNEL(keel_tick, KEEL_GROUP(1), scheduler_args_t, a)
{
    KEEL_ITEMS {
        scheduler_tick(PROTOCOL_AT(scheduler_t, a.scheduler));
    }
}

// Its record may be the host's again before the kernel ends; the arguments are the queue's.
KEEL_RAW_KERNEL(keel_advance, KEEL_GROUP(1), advance_args_t, a)
{
    KEEL_ITEMS {
        record_t *record = PROTOCOL_AT(record_t, a.record);
        scheduler_t *s = PROTOCOL_AT(scheduler_t, record->scheduler);
        uint64_t start = zone_begin();
        scheduler_advance(s, record, false);
        zone_end(s, ZONE_ADVANCE, start);
    }
}

KEEL_RAW_KERNEL(keel_issue, KEEL_GROUP(PROGRAM_WIDE), issue_args_t, a)
{
    KEEL_ITEMS {
        issue_run(&a, keel_global_id(0));
    }
}

KEEL_RAW_KERNEL(keel_patch, KEEL_GROUP(1), patch_args_t, a)
{
    KEEL_ITEMS {
        patch_run(&a);
    }
}
