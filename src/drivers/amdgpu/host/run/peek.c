// SPDX-License-Identifier: Apache-2.0
// Words that the host reads in the middle of a run: the value of a branch, the grid of a dispatch.
// Where they lie in the GPU's own memory, it copies them to where the host sees them; the run waits
// for that and comes back to the same command.
#include "base/status.h"
#include "drivers/amdgpu/host/run/run.h"
#include "kit/command.h"

const keel_ref_t *amdgpu_peek_ref(const keel_command_t *command)
{
    const void *c = command;
    const keel_ref_t *ref = NULL;
    if (command_has_value(command->kind)) {
        ref = &((const keel_cmd_block_t *)c)->value;
    } else if (command->kind == KEEL_CMD_DISPATCH) {
        const keel_cmd_dispatch_t *dispatch = c;
        if (dispatch->counts_kind != KEEL_COUNTS_DIRECT) ref = &dispatch->counts;
    }
    return ref && !keel_ref_is_parameter(ref) ? ref : NULL;
}

keel_status_t amdgpu_peek_sees(const keel_ref_t *ref, const keel_cmd_execute_t *execute, bool *sees)
{
    keel_bound_t bound;
    KEEL_TRY(keel_bind_ref(ref, execute, &bound));
    *sees = bound.data;
    return NULL;
}

static keel_status_t words_make(amdgpu_run_t *run)
{
    enum { WORDS = 3 };
    void *data;
    if (run->peek) return NULL;
    KEEL_TRY(blocks_piece(&amdgpu_run_device(run)->blocks, NULL, &run->staging,
                          WORDS * sizeof *run->peek, &data, &run->peek_at));
    run->peek = data;
    return NULL;
}

keel_status_t amdgpu_peek(amdgpu_run_t *run, const keel_ref_t *ref,
                          const keel_cmd_execute_t *execute)
{
    keel_bound_t bound;
    KEEL_TRY(words_make(run));
    KEEL_TRY(keel_bind_ref(ref, execute, &bound));
    bound_copy_t copy = {run->peek_at, bound.address, bound.length};
    KEEL_TRY(amdgpu_issue_copy(run, &copy));
    run->base.words = run->peek;
    return NULL;
}
