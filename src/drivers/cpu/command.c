// SPDX-License-Identifier: Apache-2.0
// What commands read from memory to know what to do, and what they cost.
#include <string.h>

#include "drivers/cpu/cpu.h"
#include "kit/bind.h"

// Words of memory, or of parameters.
static keel_status_t words_read(const keel_ref_t *ref, const keel_cmd_execute_t *execute,
                                void *words, size_t size)
{
    bound_t span;
    if (keel_ref_is_parameter(ref)) {
        memcpy(words, keel_execute_parameters(execute) + ref->offset, size);
        return NULL;
    }
    KEEL_TRY(bind_now(cpu_table(execute), ref, &span));
    memcpy(words, cpu_memory(span.address), size);
    return NULL;
}

keel_status_t cpu_branch_value(const cpu_run_t *run, const keel_cmd_block_t *branch,
                               uint32_t *value)
{
    return words_read(&branch->value, run->execute, value, sizeof *value);
}

keel_status_t cpu_counts_read(const keel_cmd_dispatch_t *c, const keel_cmd_execute_t *execute,
                              uint32_t counts[3])
{
    KEEL_TRY(words_read(&c->counts, execute, counts, 12));
    return bind_counts_check(c, counts);
}

// At some eight bytes per tick: all that matters is on which side of a microsecond it lies.
static uint32_t transfer_cost(const keel_ref_t *ref)
{
    uint64_t bytes = ref->length < CPU_UNIT_BYTES ? ref->length : CPU_UNIT_BYTES;
    return (uint32_t)(bytes / 8 + 1);
}

uint32_t cpu_command_cost(const keel_command_t *command)
{
    const void *c = command;
    switch (command->kind) {
    case KEEL_CMD_DISPATCH:
        // relaxed: a guess.
        return atomic_load_explicit(
            &((cpu_kernel_t *)((const keel_cmd_dispatch_t *)c)->kernel)->cost,
            memory_order_relaxed);
    case KEEL_CMD_FILL: return transfer_cost(&((const keel_cmd_fill_t *)c)->target);
    case KEEL_CMD_UPDATE: return transfer_cost(&((const keel_cmd_update_t *)c)->target);
    case KEEL_CMD_COPY: return transfer_cost(&((const keel_cmd_copy_t *)c)->source);
    case KEEL_CMD_ACROSS: {
        const keel_cmd_across_t *across = c;
        return cpu_reaches(across) ? transfer_cost(&across->copy.source) : 1;
    }
    case KEEL_CMD_HOST_CALL: return 0;
    default: return 1; // done at once, or only begun
    }
}

void cpu_command_learn(const keel_command_t *command, uint64_t units, uint64_t took)
{
    if (command->kind != KEEL_CMD_DISPATCH) return;
    const keel_cmd_dispatch_t *c = (const keel_cmd_dispatch_t *)(const void *)command;
    cpu_kernel_t *kernel = c->kernel;
    uint64_t each = took / units + 1,
             known = atomic_load_explicit(&kernel->cost, memory_order_relaxed);
    if (each > UINT32_MAX) each = UINT32_MAX;
    // Written only when it is news: all workers read the line.
    if (each > 2 * known || 2 * each < known)
        atomic_store_explicit(&kernel->cost, (uint32_t)each, memory_order_relaxed);
}
