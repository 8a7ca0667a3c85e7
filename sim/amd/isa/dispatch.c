// SPDX-License-Identifier: Apache-2.0
// Runs a dispatch: one thread or several take its workgroups one after the other.
#include "amd/base.h"
#include "amd/isa/state.h"

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    return b ? common_divisor(b, a % b) : a;
}

// In a random order every step that has no divisor in common with the number of workgroups reaches
// them all.
static void grid_init(isa_t *isa, grid_t *grid)
{
    const dispatch_t *dispatch = isa->dispatch;
    grid->dispatch = dispatch;
    grid->total = 1;
    for (unsigned k = 0; k < 3; k++) {
        grid->counts[k] =
            ((uint64_t)dispatch->grid[k] + dispatch->group[k] - 1) / dispatch->group[k];
        grid->total *= grid->counts[k];
    }
    grid->step = 1;
    grid->weak = isa->weak_seed;
    if (!isa->random) return;
    grid->seed = isa->random;
    grid->first = random_below(&isa->random, grid->total);
    do {
        grid->step = 1 + random_below(&isa->random, grid->total);
    } while (common_divisor(grid->step, grid->total) != 1);
}

// Which compute units the workgroups have, of each die. A die in which they have none is left out.
static void grid_share(const isa_t *isa, grid_t *grid)
{
    uint64_t units = grid->dispatch->units ? grid->dispatch->units : gfx_units_all(isa->gfx);
    for (unsigned die = 0; die < isa->target->dies; die++) {
        uint64_t share = 0;
        for (unsigned k = die; k < isa->target->units; k += isa->target->dies) {
            share |= units & 1ull << k;
        }
        if (share) grid->shares[grid->share_count++] = share;
    }
}

// What each workgroup takes of a compute unit.
static demand_t demand_of(const isa_t *isa, const grid_t *grid)
{
    const uint32_t *group = grid->dispatch->group;
    return (demand_t){.waves = (group[0] * group[1] * group[2] + LANES - 1) / LANES,
                      .registers = isa->target->granule * ((grid->kernel.resource1 & 63) + 1),
                      .lds = grid->dispatch->lds_size};
}

bool isa_dispatch(isa_t *isa, const dispatch_t *dispatch)
{
    grid_t grid = {0};
    isa->dispatch = dispatch;
    isa->fault = (fault_t){0};
    if (!descriptor_read(isa, dispatch->kernel, &grid.kernel)) return false;
    if (dispatch->lds_size > LDS_SIZE_MAX)
        return dispatch_fail(isa, FAULT_APERTURE, "too much group memory");
    grid_init(isa, &grid);
    grid.demand = demand_of(isa, &grid);
    grid_share(isa, &grid);
    grid.placed = &isa->placed;
    struct crew *crew = grid.total > 1 ? isa->crew : NULL;
    crew_start(crew, &grid);
    bool good = grid_run(isa, &grid);
    const fault_t *fault = crew_join(crew);
    atomic_store(&isa->placed, false);
    if (fault && isa->fault.kind == FAULT_NONE) isa->fault = *fault;
    return good && !fault;
}
