// SPDX-License-Identifier: Apache-2.0
// The walk over the commands of a submission: what is next, and how much of it is claimed.
#include "drivers/cpu/cpu.h"
#include "kit/bind.h"

static uint64_t transfer_units(const keel_ref_t *ref, const keel_ref_t *table)
{
    return (bind_length(table, ref) + CPU_UNIT_BYTES - 1) / CPU_UNIT_BYTES;
}

// How many units a command has; 0 if there is nothing to do.
static keel_status_t command_units(const cpu_run_t *run, const keel_command_t *command,
                                   uint64_t *units)
{
    const keel_ref_t *table = cpu_table(run->execute);
    const void *c = command;
    *units = 1;
    switch (command->kind) {
    case KEEL_CMD_DISPATCH: {
        uint32_t counts[3];
        KEEL_TRY(cpu_dispatch_counts(c, run->execute, counts));
        *units = (uint64_t)counts[0] * counts[1] * counts[2];
        break;
    }
    case KEEL_CMD_FILL:
        *units = transfer_units(&((const keel_cmd_fill_t *)c)->target, table);
        break;
    case KEEL_CMD_UPDATE:
        *units = transfer_units(&((const keel_cmd_update_t *)c)->target, table);
        break;
    case KEEL_CMD_COPY:
        *units = transfer_units(&((const keel_cmd_copy_t *)c)->source, table);
        break;
    case KEEL_CMD_ACROSS: {
        const keel_cmd_across_t *across = c;
        if (cpu_reaches(across)) *units = transfer_units(&across->copy.source, table);
        break;
    }
    default: break;
    }
    return NULL;
}

// The first failure counts, and what is dealt out and not claimed is not run any more.
void cpu_walk_fail(cpu_run_t *run, keel_status_t status)
{
    if (run->failure) {
        keel_status_release(status);
        return;
    }
    run->failure = status;
    if (cpu_deal_withdraw(run)) run->in_flight--;
}

static void walk_fail_at(cpu_run_t *run, keel_status_t status)
{
    cpu_walk_fail(run, submission_blame(&run->base, run->execute, run->at, status));
}

static void walk_enter(cpu_run_t *run, const keel_cmd_execute_t *execute)
{
    run->execute = execute;
    run->commands = execute->recording->commands;
    run->at = keel_commands_first(run->commands);
}

static void walk_return(cpu_run_t *run)
{
    run->commands = &run->base.commands;
    run->at = keel_command_next(&run->execute->head);
    run->execute = NULL;
}

// A barrier or a branch: all before it has ended.
static void walk_branch(cpu_run_t *run)
{
    if (run->at->kind == KEEL_CMD_BARRIER) {
        run->at = keel_command_next(run->at);
        return;
    }
    const keel_cmd_block_t *c = (const keel_cmd_block_t *)(const void *)run->at;
    uint32_t value = 1;
    keel_status_t status = NULL;
    if (submission_is_cancelled(&run->base)) status = submission_cancelled(&run->base);
    if (!status && command_has_value(run->at->kind)) status = cpu_branch_value(run, c, &value);
    if (!status) status = command_jump(run->commands, value, run->loops, &run->at);
    if (status) walk_fail_at(run, status);
}

// Shuffling, the commands of a stage are taken from a random one on, and those before it
// afterwards.
static void walk_rotate(cpu_run_t *run)
{
    const keel_command_t *end = run->at;
    uint64_t count = 0;
    for (; end != keel_commands_end(run->commands); end = keel_command_next(end), count++)
        if (keel_command_is_barrier(end->kind) || end->kind == KEEL_CMD_EXECUTE) break;
    run->rotation.first = run->at;
    run->rotation.end = end;
    run->random = run->random * 6364136223846793005u + 1442695040888963407u;
    for (uint64_t skip = count ? (run->random >> 33) % count : 0; skip; skip--)
        run->at = keel_command_next(run->at);
    run->rotation.pivot = count ? run->at : NULL;
}

static void walk_advance(cpu_run_t *run)
{
    run->at = keel_command_next(run->at);
    if (!run->rotation.pivot) return;
    if (run->at == run->rotation.end) run->at = run->rotation.first;
    if (run->at != run->rotation.pivot) return;
    run->at = run->rotation.end;
    run->rotation.pivot = NULL;
}

// Takes units of the command at hand.
static void walk_claim(cpu_run_t *run, uint64_t most, cpu_chunk_t *chunk)
{
    uint64_t left = run->units - run->unit;
    uint64_t count = left < most ? left : most;
    *chunk = (cpu_chunk_t){run->at, run->commands, run->execute, run->unit, count, NULL};
    run->unit += count;
    run->in_flight++;
    if (count < left) return;
    run->unit = run->units = 0;
    walk_advance(run);
}

// How much to claim under the lock: of commands that could not be dealt out.
static uint64_t walk_share(const cpu_run_t *run)
{
    uint64_t workers = cpu_run_node(run)->worker_count, left = run->units - run->unit;
    uint64_t part = workers ? left / (2 * workers) : left;
    if (part > run->claim) part = run->claim;
    return part ? part : 1;
}

// How much of a command to claim at first: what should take no longer than it takes to decide to
// share.
static uint64_t walk_first_claim(const cpu_run_t *run)
{
    if (!cpu_run_node(run)->worker_count) return UINT64_MAX;
    uint32_t cost = cpu_command_cost(run->at);
    uint64_t fit = cost ? cpu_run_device(run)->share_ticks / cost : 1;
    return fit ? fit : 1;
}

// Whether the units of the command at hand may be dealt out. Shuffling, they are claimed one by
// one; and a guest's run has no other worker to deal to.
static bool walk_may_deal(const cpu_run_t *run)
{
    return !cpu_run_device(run)->shuffle && cpu_run_node(run)->worker_count > 1;
}

// Whether they take long enough. If that is not known, it would be too late to find out by running
// one.
__attribute__((noinline)) static bool walk_is_worth_dealing(const cpu_run_t *run)
{
    uint64_t units = run->units - run->unit;
    if (units < 2 || !walk_may_deal(run)) return false;
    uint32_t cost = cpu_command_cost(run->at);
    return !cost || units >= 4 * cpu_run_device(run)->share_ticks / cost;
}

// Goes on until there is work to claim or nothing to do. Alone, or under the lock.
cpu_step_t cpu_walk_next(cpu_run_t *run, bool alone, cpu_chunk_t *chunk)
{
    for (;;) {
        if (__builtin_expect(run->failure != NULL, 0))
            return run->in_flight ? CPU_STEP_WAIT : CPU_STEP_DONE;
        if (run->at == keel_commands_end(run->commands)) {
            if (run->execute) {
                walk_return(run);
                continue;
            }
            return run->in_flight ? CPU_STEP_WAIT : CPU_STEP_DONE;
        }
        bool rotate =
            cpu_run_device(run)->shuffle && !run->rotation.pivot && run->at != run->rotation.end;
        if (__builtin_expect(rotate, 0)) walk_rotate(run);
        uint32_t kind = run->at->kind;
        if (keel_command_is_barrier(kind)) {
            if (run->in_flight) return CPU_STEP_WAIT;
            if (!alone) return CPU_STEP_ALONE;
            walk_branch(run);
            run->stage_start = 0;
        } else if (kind == KEEL_CMD_EXECUTE) {
            walk_enter(run, (const keel_cmd_execute_t *)(const void *)run->at);
        } else if (kind == KEEL_CMD_GROUP_BEGIN || kind == KEEL_CMD_GROUP_END ||
                   kind == KEEL_CMD_EVENT_SET) {
            walk_advance(run);
        } else {
            if (!run->units) {
                keel_status_t status = command_units(run, run->at, &run->units);
                if (status) {
                    walk_fail_at(run, status);
                    continue;
                }
                if (!run->units) {
                    walk_advance(run);
                    continue;
                }
            }
            if (!alone) cpu_walk_deal(run);
            if (!run->units) continue;
            if (run->units > 1 && alone && walk_is_worth_dealing(run)) return CPU_STEP_SHARE;
            if (!run->unit) run->claim = walk_first_claim(run);
            walk_claim(run, alone ? run->claim : walk_share(run), chunk);
            return CPU_STEP_CHUNK;
        }
    }
}

void cpu_walk_deal(cpu_run_t *run)
{
    if (!run->units || run->failure || !walk_may_deal(run)) return;
    if (!cpu_deal_publish(run, cpu_run_device(run)->share_ticks) || run->unit < run->units) return;
    run->unit = run->units = 0;
    walk_advance(run);
}
