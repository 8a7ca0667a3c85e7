// SPDX-License-Identifier: Apache-2.0
// Guards: kernels that look whether promises came true that a run went ahead of (ahead.c), and make
// the grids of all its dispatches empty if not, or if the run was cancelled (stop.c). These grids
// lie in a table.
#include "drivers/metal/encode/encode.h"
#include "drivers/metal/memory/memory.h"
#include "drivers/metal/queue/promise.h"

enum {
    COUNTS = METAL_TABLE / 12, // of a table
    CHECKED = 8,               // slots that one guard looks at
    GUARDS = 32,               // threads of a guard
    NEEDED = 2,                // counts that a command may take between two of metal_guard_need
};

// What keel_guard takes at index 1.
typedef struct guard_t {
    uint32_t words, count;
    uint32_t index[CHECKED], number[CHECKED];
} guard_t;

// Has the counts of a table vanish if one of the promises did not come true. Others come behind it,
// so that they find what it has found.
static void guard_encode(metal_run_t *run, id words, const guard_t *guard)
{
    const metal_api_t *api = metal_run_device(run)->api;
    if (!guard->count) return;
    mtl_set_buffer(api, run->encoder, words, 0, 2);
    mtl_set_bytes(api, run->encoder, guard, sizeof *guard, 1);
    mtl_dispatch(api, run->encoder, (metal_size_t){1, 1, 1}, (metal_size_t){GUARDS, 1, 1});
    mtl_memory_barrier(api, run->encoder, METAL_SCOPE_BUFFERS);
}

// As many guards as it takes: each looks at some slots of one device.
static void guards_encode(metal_run_t *run)
{
    guard_t guard = {.words = 3 * COUNTS};
    id words = NULL;
    for (uint32_t i = 0; i < run->ahead_count; i++) {
        const metal_ahead_t *ahead = &run->aheads[i];
        if (ahead->words != words || guard.count == CHECKED) {
            guard_encode(run, words, &guard);
            guard.count = 0;
            words = ahead->words;
        }
        guard.index[guard.count] = ahead->promise->slot;
        guard.number[guard.count++] = (uint32_t)ahead->promise->number;
    }
    guard_encode(run, words, &guard);
}

// No one has asked it to stop yet, and it has not.
static void stop_clear(metal_run_t *run, uint32_t *words)
{
    words[0] = words[1] = 0;
    run->table.gone = &words[1];
}

// The first one is the run's own; more of them are staged.
static keel_status_t table_next(metal_run_t *run)
{
    const metal_api_t *api = metal_run_device(run)->api;
    struct metal_memory_t *memory;
    bool first = !run->table.buffer;
    if (first) {
        KEEL_TRY(metal_words_take(run));
        memory = run->words;
    } else {
        KEEL_TRY(metal_stage(run, METAL_TABLE, &memory));
    }
    run->table.buffer = metal_memory_buffer(memory);
    run->table.offset = first ? METAL_WORDS : 0;
    char *contents = mtl_contents(api, run->table.buffer);
    run->table.counts = (uint32_t *)(void *)(contents + run->table.offset);
    run->table.left = COUNTS;
    if (first) stop_clear(run, (uint32_t *)(void *)contents + METAL_STOP);
    return NULL;
}

keel_status_t metal_guard_need(metal_run_t *run)
{
    metal_device_t *device = metal_run_device(run);
    const metal_api_t *api = device->api;
    if (!run->guarded || run->table.left >= NEEDED) return NULL;
    KEEL_TRY(table_next(run));
    metal_pipeline_set(run, device->builtins[METAL_GUARD]);
    mtl_set_buffer(api, run->encoder, run->table.buffer, run->table.offset, 0);
    metal_indices_taken(run);
    mtl_set_buffer(api, run->encoder, metal_memory_buffer(run->words),
                   METAL_STOP * sizeof(uint32_t), 3);
    guards_encode(run);
    return NULL;
}

// Three words that the guard may clear. Answers where they are in the table's buffer.
static unsigned long table_put(metal_run_t *run, uint32_t first, uint32_t second, uint32_t third)
{
    uint32_t at = 3 * (COUNTS - run->table.left--);
    run->table.counts[at] = first;
    run->table.counts[at + 1] = second;
    run->table.counts[at + 2] = third;
    return run->table.offset + at * sizeof(uint32_t);
}

void metal_launch(metal_run_t *run, metal_size_t groups, metal_size_t threads)
{
    const metal_api_t *api = metal_run_device(run)->api;
    if (!run->guarded) {
        mtl_dispatch(api, run->encoder, groups, threads);
        return;
    }
    unsigned long at =
        table_put(run, (uint32_t)groups.width, (uint32_t)groups.height, (uint32_t)groups.depth);
    mtl_dispatch_indirect(api, run->encoder, run->table.buffer, at, threads);
}

void metal_launch_commands(metal_run_t *run, id commands, uint32_t begin, uint32_t count)
{
    const metal_api_t *api = metal_run_device(run)->api;
    if (!run->guarded) {
        mtl_execute(api, run->encoder, commands, (metal_range_t){begin, count});
        return;
    }
    unsigned long at = table_put(run, begin, count, 0); // no commands, if that becomes 0
    mtl_execute_counted(api, run->encoder, commands, run->table.buffer, at);
}
