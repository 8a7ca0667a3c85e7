// SPDX-License-Identifier: Apache-2.0
// Workgroups on a thread: each in a room, one after the other or, where they wait for each other,
// several at a time; the waves of each in turns.
#include <stdlib.h>

#include "amd/base.h"
#include "amd/isa/caches.h"
#include "amd/isa/trace.h"
#include "amd/wait.h"

__extension__ typedef unsigned __int128 wide_t;

enum { BUDGET = 4096 };

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

static void wave_run(wave_t *w)
{
    const insn_t *i = w->pc;
    uint64_t count = 0;
    w->budget = w->isa->random ? 1 + (int)random_below(&w->isa->random, 16) : w->isa->budget;
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
    unsigned first = isa->random ? (unsigned)random_below(&isa->random, count) : 0;
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
        return dispatch_fail(isa, FAULT_APERTURE, "no memory for its waves");
    }
    memset(room->lds, 0xa5, dispatch->lds_size);
    if (scratch) memset(room->scratch, 0xcd, scratch);
    for (unsigned k = 0; k < group.waves; k++) wave_start(isa, room, &grid->kernel, &group, k);
    room->count = group.waves;
    room->rounds = room->idles = 0;
    if (isa->breaks) trace_break(&room->waves[0]);
    return true;
}

// The workgroups of a thread that have begun and not ended.
typedef struct {
    unsigned active, stalled;
    bool idle, last; // none did anything; there are no more to begin
} rooms_t;

// A compute unit for a workgroup; -1 when none has room.
static int unit_take(isa_t *isa, const grid_t *grid, uint64_t number)
{
    unsigned from = isa->caches   ? caches_any_unit(isa->caches)
                    : isa->random ? (unsigned)random_below(&isa->random, isa->target->units)
                                  : 0;
    uint64_t share = grid->shares[number % grid->share_count];
    return units_take(isa->units, share, &grid->demand, from);
}

// The next workgroup to begin, if there is a unit for it, else -1 for that. False when there is no
// workgroup left.
static bool grid_take(isa_t *isa, grid_t *grid, uint64_t *out_number, int *out_unit)
{
    unsigned long long n = atomic_load_explicit(&grid->next, memory_order_relaxed);
    while (n < grid->total) {
        *out_number = (uint64_t)(((wide_t)n * grid->step + grid->first) % grid->total);
        *out_unit = unit_take(isa, grid, *out_number);
        if (*out_unit < 0) return true;
        bool last = n + 1 == grid->total;
        if (atomic_compare_exchange_strong(&grid->next, &n, n + 1)) {
            if (last) atomic_store(grid->placed, true);
            return true;
        }
        units_give(isa->units, *out_unit, &grid->demand); // another thread has begun it
    }
    return false;
}

// Begins another workgroup, unless there is none, or no compute unit for it. False on a fault.
static bool rooms_begin(isa_t *isa, grid_t *grid, rooms_t *rooms, bool *out_begun)
{
    *out_begun = false;
    int unit;
    uint64_t number;
    rooms->last = !grid_take(isa, grid, &number, &unit);
    if (rooms->last || unit < 0) return true;
    room_t *room = room_find(isa);
    if (!room) {
        units_give(isa->units, unit, &grid->demand);
        return dispatch_fail(isa, FAULT_APERTURE, "no memory for its workgroups");
    }
    room->unit = unit;
    room->count = 1; // it is taken from here on, whatever comes of it
    rooms->active++;
    *out_begun = true;
    return room_enter(isa, room, grid, number);
}

// Begins a workgroup if there is none, and as many again as there are if those do not get on; in a
// random order sometimes one without need.
static bool rooms_fill(isa_t *isa, grid_t *grid, rooms_t *rooms)
{
    bool needed = rooms->stalled == rooms->active, begun = true;
    bool random = isa->random && rooms->active < 4 && random_below(&isa->random, 4) == 0;
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

// A workgroup will go on elsewhere: what its waves have under way is completed, and what they have
// stored is in the L2, for no other unit knows of it.
static void room_depart(isa_t *isa, const room_t *room)
{
    if (!isa->caches || !room->count) return;
    for (unsigned n = 0; n < room->count; n++) weak_complete(&room->waves[n]);
    caches_settle(isa->caches, (unsigned)room->unit);
}

// It goes on: what the caches of the unit have may be older than what its waves have seen.
static void room_arrive(isa_t *isa, const room_t *room)
{
    if (!room->count) return;
    for (unsigned n = 0; n < room->count; n++) room->waves[n].unit = (unsigned)room->unit;
    if (!isa->caches) return;
    caches_drop_l1(isa->caches, (unsigned)room->unit);
    caches_drop_scalar(isa->caches, (unsigned)room->unit);
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
        room->unit = unit_take(isa, grid, room->waves[0].group);
        if (room->unit >= 0) continue;
        rooms_stop(isa, grid);
        return false;
    }
    for (unsigned k = 0; k < isa->room_count; k++) room_arrive(isa, &isa->rooms[k]);
    return true;
}

// Lets others run, if the host wants it. False when it wants the dispatch to end.
static bool rooms_yield(isa_t *isa, const grid_t *grid)
{
    enum { FULL_NS = 1000000 };
    const isa_host_t *host = &isa->host;
    patience_t patience = {0};
    if (!host->asked || !host->asked(host->user)) return true;
    for (unsigned k = 0; k < isa->room_count; k++) room_depart(isa, &isa->rooms[k]);
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
