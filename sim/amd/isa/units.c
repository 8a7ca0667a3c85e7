// SPDX-License-Identifier: Apache-2.0
#include "amd/isa/units.h"

#include <pthread.h>
#include <stdlib.h>

#include "amd/isa/state.h"

struct units {
    pthread_mutex_t lock;
    bell_t bell;
    struct {
        uint32_t others, phase;
    } gws[GWS_COUNT];
    demand_t whole; // what a unit has
    unsigned count; // of units
    demand_t left[];
};

unsigned gfx_simd_waves(gfx_t gfx)
{
    return gfx_target(gfx)->simd_waves;
}

units_t *units_create(gfx_t gfx)
{
    unsigned count = gfx_units(gfx);
    units_t *units = calloc(1, sizeof *units + count * sizeof *units->left);
    if (!units) return NULL;
    pthread_mutex_init(&units->lock, NULL);
    units->whole = (demand_t){
        .waves = UNIT_SIMDS * gfx_simd_waves(gfx),
        .registers = UNIT_SIMDS * gfx_target(gfx)->simd_rows,
        .lds = LDS_SIZE_MAX,
    };
    units->count = count;
    for (unsigned k = 0; k < count; k++) units->left[k] = units->whole;
    return units;
}

void units_destroy(units_t *units)
{
    if (!units) return;
    pthread_mutex_destroy(&units->lock);
    free(units);
}

bell_t *units_bell(units_t *units)
{
    return &units->bell;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

// What is taken of a unit, which has no more than the whole.
static demand_t share(const units_t *units, const demand_t *demand)
{
    return (demand_t){least(demand->waves, units->whole.waves),
                      least(demand->registers * demand->waves, units->whole.registers),
                      least(demand->lds, units->whole.lds)};
}

// The unit with the most waves left, so that workgroups spread over all of them.
static int choose(const units_t *units, uint64_t mask, const demand_t *need, unsigned from)
{
    int chosen = -1;
    for (unsigned n = 0; n < units->count; n++) {
        unsigned k = (from + n) % units->count;
        const demand_t *left = &units->left[k];
        if (!(mask >> k & 1) || left->waves < need->waves || left->lds < need->lds) continue;
        if (left->registers < need->registers) continue;
        if (chosen < 0 || left->waves > units->left[chosen].waves) chosen = (int)k;
    }
    return chosen;
}

int units_take(units_t *units, uint64_t mask, const demand_t *demand, unsigned from)
{
    demand_t need = share(units, demand);
    pthread_mutex_lock(&units->lock);
    int unit = choose(units, mask, &need, from);
    if (unit >= 0) {
        units->left[unit].waves -= need.waves;
        units->left[unit].registers -= need.registers;
        units->left[unit].lds -= need.lds;
    }
    pthread_mutex_unlock(&units->lock);
    return unit;
}

void units_give(units_t *units, int unit, const demand_t *demand)
{
    demand_t need = share(units, demand);
    pthread_mutex_lock(&units->lock);
    units->left[unit].waves += need.waves;
    units->left[unit].registers += need.registers;
    units->left[unit].lds += need.lds;
    pthread_mutex_unlock(&units->lock);
    bell_ring(&units->bell);
}

void gws_set(units_t *units, unsigned number, uint32_t others)
{
    pthread_mutex_lock(&units->lock);
    units->gws[number].others = others;
    pthread_mutex_unlock(&units->lock);
}

uint32_t gws_come(units_t *units, unsigned number, uint32_t others)
{
    pthread_mutex_lock(&units->lock);
    uint32_t phase = units->gws[number].phase;
    bool last = !units->gws[number].others;
    if (last) {
        units->gws[number].others = others;
        units->gws[number].phase++;
    } else {
        units->gws[number].others--;
    }
    pthread_mutex_unlock(&units->lock);
    if (last) bell_ring(&memory_bell);
    return phase;
}

bool gws_over(units_t *units, unsigned number, uint32_t phase)
{
    pthread_mutex_lock(&units->lock);
    bool over = units->gws[number].phase != phase;
    pthread_mutex_unlock(&units->lock);
    return over;
}
