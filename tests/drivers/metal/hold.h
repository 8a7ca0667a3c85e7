// SPDX-License-Identifier: Apache-2.0
// A kernel that runs until the host lets it go: what comes behind it waits on the GPU meanwhile,
// for as long as a test likes.
#ifndef TESTS_DRIVERS_METAL_HOLD_H_
#define TESTS_DRIVERS_METAL_HOLD_H_

#include <stdatomic.h>

#include "drivers/metal/device.h"

typedef struct hold_t {
    keel_executable_t *code;
    keel_buffer_t *buffer; // large: in small ones the software Metal refuses what the host writes
    _Atomic uint32_t *go;
} hold_t;

static inline hold_t hold_make(keel_device_t *device)
{
    static const char text[] =
        "#include <metal_stdlib>\n"
        "using namespace metal;\n"
        "struct block { device atomic_uint *go; };\n"
        "kernel void hold(constant block &b [[buffer(0)]])\n"
        "{\n"
        "    while (atomic_load_explicit(b.go, memory_order_relaxed) == 0) {}\n"
        "}\n";
    keel_executable_options_t options = {.data = text, .size = sizeof text - 1};
    keel_buffer_options_t memory = {.size = 1 << 17, .memory = KEEL_MEMORY_HOST_COHERENT};
    hold_t hold = {0};
    void *data = NULL;
    assert_null(keel_buffer_create(device, &memory, &hold.buffer));
    assert_null(keel_executable_load(device, &options, &hold.code));
    assert_null(keel_buffer_map(hold.buffer, 0, sizeof *hold.go, KEEL_ACCESS_WRITE, &data));
    hold.go = data;
    return hold;
}

static inline keel_point_t hold_submit(keel_queue_t *queue, hold_t *hold)
{
    const keel_patch_t patch = {0, keel_whole(hold->buffer)};
    uint64_t block = 0;
    keel_point_t point = keel_point(NULL, 0);
    keel_op_t op = keel_op_dispatch(find(hold->code, "hold"), keel_groups(1, 1, 1), &block,
                                    sizeof block, KEEL_NO_BINDINGS);
    op.as.dispatch.raw = true;
    op.as.dispatch.group_size = keel_groups(1, 1, 1);
    atomic_store(hold->go, 0);
    assert_null(keel_queue_run(queue, KEEL_NO_WAITS, keel_op_patched(op, &patch, 1), &point));
    return point;
}

static inline void hold_let_go(hold_t *hold)
{
    atomic_store(hold->go, 1);
}

static inline void hold_release(hold_t *hold)
{
    keel_buffer_unmap(hold->buffer);
    keel_buffer_release(hold->buffer);
    keel_executable_release(hold->code);
}

#endif
