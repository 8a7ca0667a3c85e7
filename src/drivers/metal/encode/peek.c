// SPDX-License-Identifier: Apache-2.0
// Words that the host reads in the middle of a run: the value of a branch, the grid of a dispatch.
// Where they lie in memory that it does not see, the GPU copies them to where it does; the run
// waits for that and comes back to the same command.
#include "base/status.h"
#include "drivers/metal/encode/encode.h"
#include "drivers/metal/memory/memory.h"
#include "kit/command.h"

enum { AT = 4 * METAL_COUNTED }; // of the words of a run

// What the host must read; NULL: nothing.
static const keel_ref_t *words_of(const keel_command_t *command, const keel_cmd_execute_t *execute)
{
    const void *c = command;
    const keel_ref_t *ref = NULL;
    if (command_has_value(command->kind)) {
        ref = &((const keel_cmd_block_t *)c)->value;
    } else if (command->kind == KEEL_CMD_DISPATCH) {
        const keel_cmd_dispatch_t *dispatch = c;
        if (dispatch->counts_kind != KEEL_COUNTS_DIRECT && !metal_dispatch_counts(c, execute))
            ref = &dispatch->counts;
    }
    return ref && !keel_ref_is_parameter(ref) ? ref : NULL;
}

static const uint32_t *words_seen(const metal_run_t *run)
{
    const uint32_t *words =
        mtl_contents(metal_run_device(run)->api, metal_memory_buffer(run->words));
    return words + AT;
}

static keel_status_t fetch(metal_run_t *run, const metal_place_t *source)
{
    KEEL_TRY(metal_words_take(run));
    metal_place_t target = {metal_memory_buffer(run->words), AT * sizeof(uint32_t), source->length,
                            NULL};
    KEEL_TRY(metal_transfer_copy(run, source, &target));
    run->base.words = words_seen(run);
    return NULL;
}

bool metal_reads_words(const keel_command_t *command, const keel_cmd_execute_t *execute)
{
    return words_of(command, execute) != NULL;
}

run_outcome_t metal_peek(metal_run_t *run, const keel_command_t *command,
                         const keel_cmd_execute_t *execute, keel_status_t *status)
{
    const keel_ref_t *ref = words_of(command, execute);
    metal_place_t place = {0};
    if (!ref || run->base.words) return RUN_GOES_ON;
    *status = metal_place(ref, execute, &place);
    if (*status || place.data) return RUN_GOES_ON;
    if (run->base.before) return RUN_WAITS;
    if (!run_room_take(&run->base)) return RUN_STARVES;
    *status = fetch(run, &place);
    return *status ? RUN_GOES_ON : RUN_WAITS;
}
