// SPDX-License-Identifier: Apache-2.0
#include "amd/isa/isa.h"

#include <stdlib.h>

#include "amd/isa/caches.h"

isa_t *isa_create(gfx_t gfx, unsigned node, const isa_host_t *host)
{
    isa_t *isa = calloc(1, sizeof *isa);
    if (!isa) return NULL;
    isa->gfx = gfx;
    isa->target = gfx_target(gfx);
    isa->node = node;
    if (host) isa->host = *host;
    isa->opcodes = opcode_tables(gfx);
    isa->owns_units = !isa->host.units;
    isa->units = isa->owns_units ? units_create(gfx) : isa->host.units;
    if (isa->units) return isa;
    free(isa);
    return NULL;
}

void isa_destroy(isa_t *isa)
{
    if (!isa) return;
    crew_destroy(isa->crew);
    code_forget(isa);
    if (isa->caches) caches_leave(isa->caches);
    for (unsigned k = 0; k < isa->room_count; k++) {
        free(isa->rooms[k].waves);
        free(isa->rooms[k].lds);
        free(isa->rooms[k].scratch);
    }
    free(isa->rooms);
    if (isa->owns_units) units_destroy(isa->units);
    free(isa);
}

const fault_t *isa_fault(const isa_t *isa)
{
    return &isa->fault;
}

bool isa_placed(const isa_t *isa)
{
    return atomic_load(&isa->placed);
}

uint64_t isa_count(const isa_t *isa)
{
    return isa->count + crew_count(isa->crew);
}

void isa_shuffle(isa_t *isa, uint64_t seed)
{
    isa->random = seed;
}

bool isa_weak(isa_t *isa, uint64_t seed)
{
    if (isa->caches) return true;
    isa->caches = caches_join(isa->node, isa->gfx, seed);
    isa->weak_seed = seed;
    code_forget(isa); // what was decoded knows no caches
    return isa->caches != NULL;
}
