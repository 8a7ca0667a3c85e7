// SPDX-License-Identifier: Apache-2.0
// Runs a dispatch: workgroups one after the other on each thread, the waves of a workgroup in
// turns.
#include <stdio.h>
#include <stdlib.h>

#include "amd/base.h"
#include "amd/isa/caches.h"
#include "amd/isa/trace.h"
#include "amd/wait.h"

__extension__ typedef unsigned __int128 wide_t;

enum { DESCRIPTOR_SIZE = 64, BUDGET = 4096 };

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

// A number below a bound, by xorshift.
static uint64_t random_below(isa_t *isa, uint64_t bound)
{
    uint64_t x = isa->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    isa->random = x;
    return (x >> 11) % bound;
}

static bool fail(isa_t *isa, fault_kind_t kind, const char *text)
{
    char kernel[96];
    kernel_name(isa->dispatch->kernel, kernel, sizeof kernel);
    isa->fault.kind = kind;
    snprintf(isa->fault.text, sizeof isa->fault.text, "kernel %s: %s", kernel, text);
    log_line(LOG_ERROR, "%s", isa->fault.text);
    return false;
}

// Reads the arguments that the descriptor wants in registers. Code for GPUs that can do this begins
// behind code for those that cannot.
static bool preload_read(isa_t *isa, uint16_t preload, descriptor_t *out)
{
    enum { CODE_WITHOUT = 256 };
    unsigned count = preload & 127, first = preload >> 7;
    if (!count) return true;
    if (count > PRELOAD_MAX) return fail(isa, FAULT_MEMORY, "more arguments than registers");
    uint64_t address = isa->dispatch->kernarg + 4ull * first;
    const uint8_t *bytes = map_bytes(address, 4 * count, isa->node);
    if (!bytes) {
        isa->fault.address = address;
        return fail(isa, FAULT_MEMORY, "its arguments are in no memory of this node");
    }
    code_fetch(isa, address, bytes, out->preload, 4ull * count);
    out->preload_count = count;
    out->entry += CODE_WITHOUT;
    return true;
}

static bool descriptor_read(isa_t *isa, uint64_t address, descriptor_t *out)
{
    const uint8_t *bytes = map_bytes(address, DESCRIPTOR_SIZE, isa->node);
    if (!bytes) {
        isa->fault.address = address;
        return fail(isa, FAULT_MEMORY, "its descriptor is in no memory of this node");
    }
    uint8_t words[DESCRIPTOR_SIZE];
    code_fetch(isa, address, bytes, words, sizeof words);
    memcpy(&out->entry, words + 16, sizeof out->entry);
    memcpy(&out->resource1, words + 48, sizeof out->resource1);
    memcpy(&out->resource2, words + 52, sizeof out->resource2);
    memcpy(&out->properties, words + 56, sizeof out->properties);
    uint16_t preload;
    memcpy(&preload, words + 58, sizeof preload);
    return preload_read(isa, preload, out);
}

// A room that is free; NULL when memory is short. Others may move.
static room_t *room_find(isa_t *isa)
{
    for (unsigned k = 0; k < isa->room_count; k++) {
        if (!isa->rooms[k].count) return &isa->rooms[k];
    }
    unsigned count = isa->room_count ? 2 * isa->room_count : 4;
    room_t *rooms = realloc(isa->rooms, count * sizeof *rooms);
    if (!rooms) return NULL;
    memset(rooms + isa->room_count, 0, (count - isa->room_count) * sizeof *rooms);
    room_t *room = &rooms[isa->room_count];
    isa->rooms = rooms;
    isa->room_count = count;
    return room;
}

static bool room_grow(room_t *room, unsigned waves, uint64_t scratch)
{
    if (!room->lds) room->lds = aligned_alloc(64, LDS_SIZE_MAX);
    if (waves > room->wave_room) {
        free(room->waves);
        room->waves = aligned_alloc(64, waves * sizeof(wave_t));
        room->wave_room = room->waves ? waves : 0;
        if (!room->waves) return false;
        memset(room->waves, 0, waves * sizeof(wave_t));
    }
    if (scratch > room->scratch_room) {
        free(room->scratch);
        room->scratch = aligned_alloc(256, scratch);
        room->scratch_room = room->scratch ? scratch : 0;
    }
    return room->lds && (scratch == 0 || room->scratch);
}

static uint32_t mode_of(uint32_t resource1)
{
    uint32_t mode = resource1 >> 12 & 0xff; // rounding and denormals
    return mode | (resource1 >> 21 & 1) << 8 | (resource1 >> 23 & 1) << 9 |
           (resource1 >> 26 & 1) << 23; // FP16_OVFL
}

typedef struct {
    uint64_t number;
    uint32_t id[3], size[3]; // of the workgroup
    uint32_t items;
    unsigned waves;
} group_t;

// User registers, then those of the system, as the descriptor asks for them.
static void fill_scalars(wave_t *w, const descriptor_t *kernel, const group_t *group,
                         unsigned index)
{
    const dispatch_t *dispatch = w->isa->dispatch;
    uint32_t per_wave = w->scratch_size * LANES;
    uint64_t scratch = w->scratch_base - (uint64_t)index * per_wave;
    unsigned s = 0;
    if (kernel->properties & 1) {
        wave_set_s64(w, 0, scratch | 1ull << 63); // interleaved
        w->s[2] = ~0u;
        w->s[3] = 0x00e00000;
        s = 4;
    }
    const uint64_t pointers[] = {dispatch->packet, dispatch->queue, dispatch->kernarg, dispatch->id,
                                 scratch};
    for (unsigned k = 0; k < sizeof pointers / sizeof *pointers; k++) {
        if (!(kernel->properties >> (k + 1) & 1)) continue;
        wave_set_s64(w, s, pointers[k]);
        s += 2;
    }
    if (kernel->properties & 1 << 6) w->s[s++] = dispatch->scratch_size;
    memcpy(&w->s[s], kernel->preload, sizeof *w->s * kernel->preload_count);

    s = kernel->resource2 >> 1 & 31;
    for (unsigned k = 0; k < 3; k++) {
        if (kernel->resource2 >> (7 + k) & 1) w->s[s++] = group->id[k];
    }
    if (kernel->resource2 >> 10 & 1) w->s[s++] = group->waves;
    if (kernel->resource2 & 1 && !w->isa->target->own_scratch) w->s[s] = index * per_wave;
}

// Work-item numbers: in three registers, or packed into one.
static void fill_vectors(wave_t *w, const descriptor_t *kernel, const group_t *group,
                         unsigned index)
{
    unsigned registers = (kernel->resource2 >> 11 & 3) + 1;
    uint32_t item = index * LANES, row = item / group->size[0];
    uint32_t id[3] = {item % group->size[0], row % group->size[1], row / group->size[1]};
    for (unsigned l = 0; l < LANES; l++) {
        if (w->isa->target->packed_ids) {
            w->v[0][l] = id[0] | id[1] << 10 | id[2] << 20;
        } else {
            for (unsigned k = 0; k < registers; k++) w->v[k][l] = id[k];
        }
        if (++id[0] < group->size[0]) continue;
        id[0] = 0;
        if (++id[1] < group->size[1]) continue;
        id[1] = 0;
        id[2]++;
    }
}

static void wave_start(isa_t *isa, const room_t *room, const descriptor_t *kernel,
                       const group_t *group, unsigned index)
{
    wave_t *w = &room->waves[index];
    const dispatch_t *dispatch = isa->dispatch;
    // No code should rely on registers that the kernel has not written.
    memset(w->s, 0xcd, sizeof w->s);
    memset(w->v, 0xcd, sizeof w->v[0] * isa->target->granule * ((kernel->resource1 & 63) + 1));
    w->isa = isa;
    w->number = index;
    w->group = group->number;
    w->unit = room->cache;
    w->scc = 0;
    wave_set_mode(w, mode_of(kernel->resource1));
    w->lds = room->lds;
    w->lds_size = dispatch->lds_size;
    w->scratch_size = (dispatch->scratch_size + 15) & ~15u;
    uint64_t offset = (uint64_t)index * w->scratch_size * LANES;
    w->scratch = room->scratch ? room->scratch + offset : NULL;
    w->scratch_base = (uint64_t)(uintptr_t)room->scratch + offset;
    w->stores_pending = w->gws_waits = false;
    fill_scalars(w, kernel, group, index);
    fill_vectors(w, kernel, group, index);
    uint32_t items = group->items - index * LANES;
    wave_set_s64(w, SGPR_EXEC, items >= LANES ? ~0ull : (1ull << items) - 1);
    w->mask_for = wave_exec(w);
    lanes_expand(w->lane_mask, w->mask_for);
    w->pc = code_at(isa, dispatch->kernel + (uint64_t)kernel->entry);
    w->state = w->pc ? WAVE_RUNNING : WAVE_FAULTED;
}

static void wave_run(wave_t *w)
{
    const insn_t *i = w->pc;
    uint64_t count = 0;
    w->budget = w->isa->random ? 1 + (int)random_below(w->isa, 16) : w->isa->budget;
    w->state = WAVE_RUNNING;
    if (w->isa->watched) {
        for (; i; count++) {
            if (w->isa->breaks) trace_step(w, i);
            i = log_enabled(LOG_ISA) ? trace_run(w, i) : i->run(w, i);
        }
    } else {
        do {
            count++;
            i = i->run(w, i);
        } while (i);
    }
    w->isa->count += count;
}

// Lets the host do what it has to; true when it wants the dispatch to end.
static bool stopped(const isa_t *isa)
{
    const isa_host_t *host = &isa->host;
    if (host->meanwhile) host->meanwhile(host->user);
    return host->stop && host->stop(host->user);
}

static void room_stop(isa_t *isa, room_t *room, const grid_t *grid)
{
    if (room->unit >= 0) units_give(isa->units, room->unit, &grid->demand);
    room->unit = -1;
}

static void room_leave(isa_t *isa, room_t *room, const grid_t *grid)
{
    room->count = 0;
    room_stop(isa, room, grid);
}

// Gives each wave of a workgroup its turn. False on a fault.
static bool room_turn(isa_t *isa, room_t *room, const grid_t *grid)
{
    unsigned done = 0, waiting = 0, yielded = 0, stored = 0, count = room->count;
    if (isa->caches) caches_tick(isa->caches);
    unsigned first = isa->random ? (unsigned)random_below(isa, count) : 0;
    for (unsigned k = 0; k < count; k++) {
        wave_t *w = &room->waves[(first + k) % count];
        w->stored = false;
        if (w->state == WAVE_RUNNING || w->state == WAVE_YIELDED) wave_run(w);
        if (w->state == WAVE_FAULTED) return false;
        stored += w->stored || w->stores_pending;
        done += w->state == WAVE_DONE;
        waiting += w->state == WAVE_AT_BARRIER;
        yielded += w->state == WAVE_YIELDED;
    }
    room->rounds++;
    room->idle = done + waiting + yielded == count && yielded && !stored;
    room->idles = room->idle ? room->idles + 1 : 0;
    if (done == count) {
        room_leave(isa, room, grid);
    } else if (done + waiting == count) {
        for (unsigned k = 0; k < count; k++) {
            if (room->waves[k].state == WAVE_AT_BARRIER) room->waves[k].state = WAVE_RUNNING;
        }
    }
    return true;
}

// Puts a workgroup into a room that is free.
static bool room_enter(isa_t *isa, room_t *room, const grid_t *grid, uint64_t number)
{
    const dispatch_t *dispatch = grid->dispatch;
    const uint32_t id[3] = {(uint32_t)(number % grid->counts[0]),
                            (uint32_t)(number / grid->counts[0] % grid->counts[1]),
                            (uint32_t)(number / grid->counts[0] / grid->counts[1])};
    group_t group = {.number = number};
    for (unsigned k = 0; k < 3; k++) {
        uint32_t rest = dispatch->grid[k] - id[k] * dispatch->group[k];
        group.id[k] = id[k];
        group.size[k] = rest < dispatch->group[k] ? rest : dispatch->group[k];
    }
    group.items = group.size[0] * group.size[1] * group.size[2];
    group.waves = (group.items + LANES - 1) / LANES;
    uint64_t scratch = ((dispatch->scratch_size + 15ull) & ~15ull) * LANES * group.waves;
    if (!room_grow(room, group.waves, scratch)) {
        return fail(isa, FAULT_APERTURE, "no memory for its waves");
    }
    memset(room->lds, 0xa5, dispatch->lds_size);
    if (scratch) memset(room->scratch, 0xcd, scratch);
    if (isa->caches) room->cache = caches_unit(isa->caches);
    for (unsigned k = 0; k < group.waves; k++) wave_start(isa, room, &grid->kernel, &group, k);
    room->count = group.waves;
    room->rounds = room->idles = 0;
    if (isa->breaks) trace_break(&room->waves[0]);
    return true;
}

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
    grid->first = random_below(isa, grid->total);
    do {
        grid->step = 1 + random_below(isa, grid->total);
    } while (common_divisor(grid->step, grid->total) != 1);
}

// The workgroups of a thread that have begun and not ended.
typedef struct {
    unsigned active, stalled;
    bool idle, last; // none did anything; there are no more to begin
} rooms_t;

// Begins another workgroup, unless there is none, or no compute unit for it. False on a fault.
static bool rooms_begin(isa_t *isa, grid_t *grid, rooms_t *rooms, bool *out_begun)
{
    *out_begun = false;
    rooms->last = atomic_load_explicit(&grid->next, memory_order_relaxed) >= grid->total;
    if (rooms->last) return true;
    int unit = units_take(isa->units, grid->units, &grid->demand);
    if (unit < 0) return true;
    uint64_t n = atomic_fetch_add_explicit(&grid->next, 1, memory_order_relaxed);
    if (n + 1 == grid->total) atomic_store(grid->placed, true);
    room_t *room = n < grid->total ? room_find(isa) : NULL;
    if (!room) {
        units_give(isa->units, unit, &grid->demand);
        return n >= grid->total || fail(isa, FAULT_APERTURE, "no memory for its workgroups");
    }
    room->unit = unit;
    room->count = 1; // it is taken from here on, whatever comes of it
    rooms->active++;
    *out_begun = true;
    uint64_t number = (uint64_t)(((wide_t)n * grid->step + grid->first) % grid->total);
    return room_enter(isa, room, grid, number);
}

// Begins a workgroup if there is none, and as many again as there are if those do not get on; in a
// random order sometimes one without need.
static bool rooms_fill(isa_t *isa, grid_t *grid, rooms_t *rooms)
{
    bool needed = rooms->stalled == rooms->active, begun = true;
    bool random = isa->random && rooms->active < 4 && random_below(isa, 4) == 0;
    unsigned more = needed ? rooms->active + !rooms->active : random;
    while (more-- && begun) {
        if (!rooms_begin(isa, grid, rooms, &begun)) return false;
    }
    return true;
}

// A workgroup that only waits will hardly get on by itself; one that runs may have much to do.
static bool room_stalled(const room_t *room)
{
    enum { STALL_ROUNDS = 64, STALL_IDLES = 4 };
    return room->count && (room->rounds > STALL_ROUNDS || room->idles >= STALL_IDLES);
}

// Gives each workgroup its turn, which is the shorter the more of them there are. False on a fault.
static bool rooms_turn(isa_t *isa, const grid_t *grid, rooms_t *rooms)
{
    isa->budget = BUDGET / (1 + (int)rooms->active / 4);
    rooms->stalled = 0;
    rooms->idle = true;
    for (unsigned k = 0, seen = 0, active = rooms->active; seen < active; k++) {
        room_t *room = &isa->rooms[k];
        if (!room->count) continue;
        seen++;
        if (!room_turn(isa, room, grid)) return false;
        rooms->idle = rooms->idle && room->idle;
        rooms->active -= !room->count;
        rooms->stalled += room_stalled(room);
    }
    return true;
}

// The waves of workgroups that do not go on leave memory alone.
static void rooms_leave(isa_t *isa, const grid_t *grid)
{
    for (unsigned k = 0; k < isa->room_count; k++) {
        room_t *room = &isa->rooms[k];
        if (!room->count) continue;
        for (unsigned n = 0; isa->caches && n < room->wave_room && n < room->count; n++) {
            caches_end(isa->caches, &room->waves[n]);
        }
        room_leave(isa, room, grid);
    }
}

static void rooms_stop(isa_t *isa, const grid_t *grid)
{
    for (unsigned k = 0; k < isa->room_count; k++) {
        if (isa->rooms[k].count) room_stop(isa, &isa->rooms[k], grid);
    }
}

// Gives all workgroups a compute unit again, or none of them.
static bool rooms_resume(isa_t *isa, const grid_t *grid)
{
    for (unsigned k = 0; k < isa->room_count; k++) {
        room_t *room = &isa->rooms[k];
        if (!room->count) continue;
        room->unit = units_take(isa->units, grid->units, &grid->demand);
        if (room->unit >= 0) continue;
        rooms_stop(isa, grid);
        return false;
    }
    return true;
}

// Lets others run, if the host wants it. False when it wants the dispatch to end.
static bool rooms_yield(isa_t *isa, const grid_t *grid)
{
    enum { FULL_NS = 1000000 };
    const isa_host_t *host = &isa->host;
    patience_t patience = {0};
    if (!host->asked || !host->asked(host->user)) return true;
    rooms_stop(isa, grid);
    do {
        host->leave(host->user);
        bell_wait(units_bell(isa->units), &patience, FULL_NS);
        host->enter(host->user);
        if (stopped(isa)) return false;
    } while (host->asked(host->user) || !rooms_resume(isa, grid));
    return true;
}

// Runs workgroups until none is left; false on a fault or when the host says stop.
static bool rooms_run(isa_t *isa, grid_t *grid)
{
    enum { IDLE_NS = 50000 }; // until a wave sees what the host or another kernel wrote
    rooms_t rooms = {0};
    patience_t patience = {0};
    for (;;) {
        if (!rooms_fill(isa, grid, &rooms) || !rooms_turn(isa, grid, &rooms)) return false;
        if (!rooms.active && rooms.last) return true;
        if (rooms.idle) {
            bell_wait(rooms.active ? &memory_bell : units_bell(isa->units), &patience, IDLE_NS);
        } else {
            patience = (patience_t){0};
        }
        if (stopped(isa) || !rooms_yield(isa, grid)) return false;
    }
}

bool grid_run(isa_t *isa, grid_t *grid)
{
    const dispatch_t *dispatch = isa->dispatch = grid->dispatch;
    const isa_host_t *host = &isa->host;
    isa->fault = (fault_t){0};
    if (isa->code != dispatch->code) code_forget(isa);
    isa->code = dispatch->code;
    isa->breaks = trace_breaks(dispatch->kernel);
    isa->watched = isa->breaks || log_enabled(LOG_ISA);
    if (host->enter) host->enter(host->user);
    bool good = rooms_run(isa, grid);
    if (!good) {
        rooms_leave(isa, grid);
        atomic_store_explicit(&grid->next, grid->total, memory_order_relaxed);
    }
    if (host->leave) host->leave(host->user);
    return good;
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
        return fail(isa, FAULT_APERTURE, "too much group memory");
    grid_init(isa, &grid);
    grid.demand = demand_of(isa, &grid);
    grid.units = dispatch->units ? dispatch->units : UNITS_ALL;
    grid.placed = &isa->placed;
    struct crew *crew = grid.total > 1 ? isa->crew : NULL;
    crew_start(crew, &grid);
    bool good = grid_run(isa, &grid);
    const fault_t *fault = crew_join(crew);
    atomic_store(&isa->placed, false);
    if (fault && isa->fault.kind == FAULT_NONE) isa->fault = *fault;
    return good && !fault;
}
