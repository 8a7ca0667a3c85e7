// SPDX-License-Identifier: Apache-2.0
#include "amd/isa/caches.h"

#include <pthread.h>
#include <stdlib.h>

#include "amd/base.h"

enum { LINE = 64, UPPER_LINES = 256, L2_LINES = 8192, NODES = 64, WORD = 64 };

typedef struct {
    uint64_t tag;          // address / LINE; 0: nothing is here
    uint64_t valid, dirty; // bit n: byte n
    uint8_t bytes[LINE] __attribute__((aligned(8)));
} line_t;

// A cache above the L2. Each packet drops what they have, which is little, and there are many of
// them: so each knows which of its lines may have something.
typedef struct {
    uint64_t held[UPPER_LINES / WORD]; // by bits; of all other lines the tag is 0
    line_t lines[UPPER_LINES];
} upper_t;

typedef struct {
    upper_t l1;
    access_t *oldest, **end; // operations under way
} unit_t;

struct caches {
    pthread_mutex_t lock;
    unsigned node, users;
    bool probed; // the L2 notices writes of others to the GPU's own memory
    uint64_t random;
    access_t *spare;                   // owned
    span_t span;                       // that was used last, good while generation is current
    uint64_t span_generation;          // of the map
    uint64_t l2_held[L2_LINES / WORD]; // as upper_t
    line_t l2[L2_LINES];
    upper_t *scalar; // owned
    unsigned dies, unit_count, scalar_count;
    unit_t units[];
};

// By node. Written under the lock; who has an interpreter of the node may read it without.
static caches_t *of_node[NODES];
static pthread_mutex_t nodes_lock = PTHREAD_MUTEX_INITIALIZER;

// Bits for size bytes of a line from an address on; they do not reach over its end.
static uint64_t mask_of(uint64_t address, size_t size)
{
    return (size == LINE ? ~0ull : (1ull << size) - 1) << address % LINE;
}

// How many bytes of [address, address + size) are in the first line.
static size_t in_line(uint64_t address, size_t size)
{
    size_t room = LINE - address % LINE;
    return size < room ? size : room;
}

// Words in one piece, as far as they are aligned: the host looks on. A line holds what lies beside
// the program's memory, too, so AddressSanitizer does not look at it.
__attribute__((no_sanitize("address"))) static void copy(uint8_t *to, const uint8_t *from,
                                                         size_t size)
{
    while (size) {
        uintptr_t both = (uintptr_t)to | (uintptr_t)from;
        size_t step = size >= 8 && both % 8 == 0 ? 8 : size >= 4 && both % 4 == 0 ? 4 : 1;
        if (step == 8) {
            __atomic_store_n((uint64_t *)to, __atomic_load_n((const uint64_t *)from, 0), 0);
        } else if (step == 4) {
            __atomic_store_n((uint32_t *)to, __atomic_load_n((const uint32_t *)from, 0), 0);
        } else {
            __atomic_store_n(to, __atomic_load_n(from, 0), 0);
        }
        to += step;
        from += step;
        size -= step;
    }
}

static bool span_has(const span_t *span, uint64_t address, size_t size)
{
    uint64_t offset = address - span->base;
    return offset < span->size && size <= span->size - offset;
}

// The bytes of memory at an address, whose span is then c->span; NULL when they are gone.
static uint8_t *memory_at(caches_t *c, uint64_t address, size_t size)
{
    uint64_t generation = map_generation();
    if (c->span_generation != generation || !span_has(&c->span, address, size)) {
        if (!map_find(address, size, &c->span)) c->span = (span_t){0};
        c->span_generation = generation;
    }
    return span_has(&c->span, address, size) ? c->span.host + (address - c->span.base) : NULL;
}

static line_t *line_at(line_t *lines, unsigned count, uint64_t address)
{
    return &lines[address / LINE % count];
}

static void hold(uint64_t *held, unsigned count, uint64_t address)
{
    uint64_t n = address / LINE % count;
    held[n / WORD] |= 1ull << n % WORD;
}

// The first of the lines from n on that may have something; count: none.
static unsigned held_next(const uint64_t *held, unsigned count, unsigned n)
{
    while (n < count) {
        uint64_t left = held[n / WORD] >> n % WORD;
        if (left) return n + (unsigned)__builtin_ctzll(left);
        n += WORD - n % WORD;
    }
    return count;
}

#define EACH_HELD(n, held, count)                                                                  \
    for (unsigned n = held_next(held, count, 0); n < (count); n = held_next(held, count, n + 1))

static bool line_is(const line_t *line, uint64_t address)
{
    return line->tag == address / LINE;
}

static bool line_has(const line_t *line, uint64_t address, size_t size)
{
    return line_is(line, address) && !(mask_of(address, size) & ~line->valid);
}

static void bytes_write_back(caches_t *c, const line_t *line, unsigned first, size_t size)
{
    uint8_t *memory = memory_at(c, line->tag * LINE + first, size);
    if (memory) copy(memory, line->bytes + first, size);
}

static void l2_write_back(caches_t *c, line_t *line)
{
    for (unsigned n = 0; n < LINE; n += 4) {
        if ((line->dirty >> n & 15) == 15) {
            bytes_write_back(c, line, n, 4);
            continue;
        }
        for (unsigned k = n; k < n + 4; k++) {
            if (line->dirty >> k & 1) bytes_write_back(c, line, k, 1);
        }
    }
    line->dirty = 0;
}

// The place for a line of the L2, which has it, or nothing of it yet.
static line_t *l2_line(caches_t *c, uint64_t address)
{
    line_t *line = line_at(c->l2, L2_LINES, address);
    if (line_is(line, address)) return line;
    l2_write_back(c, line);
    hold(c->l2_held, L2_LINES, address);
    line->tag = address / LINE;
    line->valid = 0;
    return line;
}

// The L2 does not keep what it reads of the memory that was used last.
static bool l2_passes(const caches_t *c)
{
    return !c->span.coarse || (c->probed && c->span.home == c->node);
}

// Fetches bytes of a line from memory, but for those that were stored.
static void l2_fill(caches_t *c, line_t *line, uint64_t address, size_t size)
{
    const uint8_t *memory = memory_at(c, address, size);
    uint64_t wanted = mask_of(address, size) & ~line->dirty;
    if (!l2_passes(c)) wanted &= ~line->valid;
    uint8_t fresh[LINE];
    copy(fresh, memory, size);
    for (size_t k = 0; k < size; k++) {
        if (wanted >> (address % LINE + k) & 1) line->bytes[address % LINE + k] = fresh[k];
    }
    line->valid |= mask_of(address, size);
}

// The part of an address's line that is in the same span.
static size_t span_part(const caches_t *c, uint64_t *address)
{
    uint64_t begin = *address & ~(uint64_t)(LINE - 1), end = begin + LINE;
    if (begin < c->span.base) begin = c->span.base;
    if (end > c->span.base + c->span.size) end = c->span.base + c->span.size;
    *address = begin;
    return end - begin;
}

// Within a line. What was freed meanwhile reads as zero.
static void l2_read(caches_t *c, uint64_t address, uint8_t *out, size_t size)
{
    const uint8_t *memory = memory_at(c, address, size);
    if (!memory) {
        memset(out, 0, size);
        return;
    }
    line_t *line = line_at(c->l2, L2_LINES, address);
    if (l2_passes(c)) {
        copy(out, memory, size);
        if (!c->span.coarse || !line_is(line, address)) return;
        for (size_t k = 0; k < size; k++) {
            if (line->dirty >> (address % LINE + k) & 1) out[k] = line->bytes[address % LINE + k];
        }
        return;
    }
    if (!line_has(line, address, size)) {
        uint64_t from = address;
        size_t part = span_part(c, &from);
        line = l2_line(c, address);
        l2_fill(c, line, from, part);
    }
    memcpy(out, line->bytes + address % LINE, size);
}

static void l2_write(caches_t *c, uint64_t address, const uint8_t *from, size_t size)
{
    uint8_t *memory = memory_at(c, address, size);
    if (!memory) return;
    if (!c->span.coarse) {
        copy(memory, from, size);
        return;
    }
    line_t *line = l2_line(c, address);
    memcpy(line->bytes + address % LINE, from, size);
    line->valid |= mask_of(address, size);
    line->dirty |= mask_of(address, size);
}

// Aligned, so within a line.
static uint64_t l2_change(caches_t *c, uint64_t address, size_t size, change_fn *change,
                          const uint32_t *operands)
{
    uint8_t *memory = memory_at(c, address, size);
    if (!memory) return 0;
    if (!c->span.coarse) return change(memory, operands);
    line_t *line = l2_line(c, address);
    l2_fill(c, line, address, size);
    line->dirty |= mask_of(address, size);
    return change(line->bytes + address % LINE, operands);
}

// Fetches what a line above the L2 does not have.
static void upper_fill(caches_t *c, line_t *line, uint64_t address)
{
    uint8_t fresh[LINE];
    size_t part = span_part(c, &address);
    l2_read(c, address, fresh, part);
    for (size_t k = 0; k < part; k++) {
        uint64_t n = address % LINE + k;
        if (!(line->dirty >> n & 1)) line->bytes[n] = fresh[k];
        line->valid |= 1ull << n;
    }
}

// Reads through a cache above the L2; within a line. What was freed meanwhile reads as zero.
static void upper_read(caches_t *c, upper_t *upper, uint64_t address, uint8_t *out, size_t size)
{
    line_t *line = line_at(upper->lines, UPPER_LINES, address);
    if (!line_has(line, address, size)) {
        if (!line_is(line, address)) line->valid = 0;
        hold(upper->held, UPPER_LINES, address);
        line->tag = address / LINE;
        if (!memory_at(c, address, size)) {
            memset(out, 0, size);
            return;
        }
        upper_fill(c, line, address);
    }
    memcpy(out, line->bytes + address % LINE, size);
}

static void unit_read(caches_t *c, unit_t *unit, const access_t *a, uint64_t address, uint8_t *out,
                      size_t size)
{
    if (!a->past_l1) {
        upper_read(c, &unit->l1, address, out, size);
        return;
    }
    line_t *line = line_at(unit->l1.lines, UPPER_LINES, address);
    if (line_is(line, address)) line->tag = 0;
    l2_read(c, address, out, size);
}

static void unit_write(caches_t *c, unit_t *unit, uint64_t address, const uint8_t *from,
                       size_t size)
{
    line_t *line = line_at(unit->l1.lines, UPPER_LINES, address);
    l2_write(c, address, from, size);
    if (!line_is(line, address)) return;
    memcpy(line->bytes + address % LINE, from, size);
    line->valid |= mask_of(address, size);
}

static void lane_change(caches_t *c, unit_t *unit, access_t *a, unsigned lane)
{
    uint64_t address = a->address[lane];
    line_t *line = line_at(unit->l1.lines, UPPER_LINES, address);
    if (line_is(line, address)) line->tag = 0;
    uint64_t old = l2_change(c, address, a->size, a->change, a->data[lane]);
    memcpy(a->data[lane], &old, sizeof old);
}

static void lane_move(caches_t *c, unit_t *unit, access_t *a, unsigned lane)
{
    uint64_t address = a->address[lane];
    uint8_t *data = (uint8_t *)a->data[lane];
    for (size_t done = 0, step; done < a->size; done += step) {
        step = in_line(address + done, a->size - done);
        if (a->kind == ACCESS_LOAD) {
            unit_read(c, unit, a, address + done, data + done, step);
        } else {
            unit_write(c, unit, address + done, data + done, step);
        }
    }
}

static void l2_write_back_all(caches_t *c)
{
    EACH_HELD(k, c->l2_held, L2_LINES)
    {
        if (c->l2[k].dirty) l2_write_back(c, &c->l2[k]);
    }
}

static bool must_follow(const access_t *a, const access_t *older)
{
    return a->kind == ACCESS_WRITE_BACK || (a->low < older->high && older->low < a->high);
}

// Performs an operation of a unit, and before it those that it must follow. Each of these recurses
// no deeper than there are operations before it.
static void perform(caches_t *c, unit_t *unit, access_t *a)
{
    if (a->performed) return;
    for (access_t *older = unit->oldest; older != a; older = older->next) {
        if (!older->performed && must_follow(a, older)) perform(c, unit, older);
    }
    if (a->kind == ACCESS_WRITE_BACK) l2_write_back_all(c);
    EACH_ACTIVE_LANE(a->lanes)
    {
        if (a->kind == ACCESS_ATOMIC) {
            lane_change(c, unit, a, (unsigned)l);
        } else {
            lane_move(c, unit, a, (unsigned)l);
        }
    }
    a->performed = true;
}

static void spare(caches_t *c, access_t *a)
{
    a->next = c->spare;
    c->spare = a;
}

static access_t *unlink_at(unit_t *unit, access_t **link)
{
    access_t *a = *link;
    *link = a->next;
    if (!a->next) unit->end = link;
    return a;
}

// Takes out what is performed and has no wave that waits for it.
static void sweep(caches_t *c, unit_t *unit)
{
    for (access_t **link = &unit->oldest; *link;) {
        if ((*link)->performed && !(*link)->wave) {
            spare(c, unlink_at(unit, link));
        } else {
            link = &(*link)->next;
        }
    }
}

// Performs what ended waves have left in a unit, or all.
static void perform_left(caches_t *c, unit_t *unit, bool all)
{
    for (access_t *a = unit->oldest; a; a = a->next) {
        if (all || !a->wave) perform(c, unit, a);
    }
    sweep(c, unit);
}

static void lines_drop(line_t *lines, uint64_t *held, unsigned count)
{
    EACH_HELD(k, held, count)
    {
        lines[k].tag = 0;
        lines[k].valid = 0;
    }
    memset(held, 0, count / WORD * sizeof *held);
}

static void upper_drop(upper_t *upper)
{
    lines_drop(upper->lines, upper->held, UPPER_LINES);
}

static void scalar_line_write(caches_t *c, line_t *line)
{
    for (uint64_t n = 0; n < LINE; n++) {
        if (line->dirty >> n & 1) l2_write(c, line->tag * LINE + n, line->bytes + n, 1);
    }
    line->dirty = 0;
}

// Units of one die share a scalar cache.
static unsigned scalar_of(const caches_t *c, unsigned unit)
{
    return unit % c->dies + c->dies * (unit / c->dies / UNITS_TOGETHER);
}

static void scalar_write_all(caches_t *c, unsigned number)
{
    upper_t *upper = &c->scalar[number];
    EACH_HELD(k, upper->held, UPPER_LINES)
    {
        scalar_line_write(c, &upper->lines[k]);
    }
}

static void scalar_drop_all(caches_t *c, unsigned number)
{
    scalar_write_all(c, number);
    upper_drop(&c->scalar[number]);
}

static void l2_drop_all(caches_t *c)
{
    l2_write_back_all(c);
    lines_drop(c->l2, c->l2_held, L2_LINES);
}

static void acquire(caches_t *c, scope_t scope)
{
    if (scope == SCOPE_NONE) return;
    for (unsigned k = 0; k < c->unit_count; k++) upper_drop(&c->units[k].l1);
    for (unsigned k = 0; k < c->scalar_count; k++) scalar_drop_all(c, k);
    if (scope == SCOPE_SYSTEM) l2_drop_all(c);
}

static void release(caches_t *c, scope_t scope)
{
    if (scope == SCOPE_NONE) return;
    for (unsigned k = 0; k < c->unit_count; k++) perform_left(c, &c->units[k], false);
    if (scope == SCOPE_SYSTEM) l2_write_back_all(c);
}

static void flush(caches_t *c)
{
    for (unsigned k = 0; k < c->unit_count; k++) perform_left(c, &c->units[k], true);
    acquire(c, SCOPE_SYSTEM);
}

static bool line_meets(const line_t *line, const span_t *span)
{
    uint64_t begin = line->tag * LINE;
    return begin < span->base + span->size && span->base < begin + LINE;
}

// Drops lines of a span.
static void lines_leave(line_t *lines, unsigned count, const span_t *span)
{
    for (unsigned k = 0; k < count; k++) {
        if (line_meets(&lines[k], span)) lines[k].tag = 0;
    }
}

// Memory goes away: what is on its way there arrives before, and no cache keeps any of it.
static void span_leaves(caches_t *c, const span_t *span)
{
    for (unsigned k = 0; k < c->unit_count; k++) {
        unit_t *unit = &c->units[k];
        for (access_t *a = unit->oldest; a; a = a->next) {
            if (a->low < span->base + span->size && span->base < a->high) perform(c, unit, a);
        }
        sweep(c, unit);
        lines_leave(unit->l1.lines, UPPER_LINES, span);
    }
    for (unsigned k = 0; k < c->scalar_count; k++) {
        scalar_write_all(c, k);
        lines_leave(c->scalar[k].lines, UPPER_LINES, span);
    }
    for (unsigned k = 0; k < L2_LINES; k++) {
        line_t *line = &c->l2[k];
        if (line->dirty && line_meets(line, span)) l2_write_back(c, line);
    }
    lines_leave(c->l2, L2_LINES, span);
}

static void memory_leaves(uint64_t base)
{
    span_t span;
    if (!map_find(base, 0, &span)) return;
    pthread_mutex_lock(&nodes_lock);
    for (unsigned k = 0; k < NODES; k++) {
        caches_t *c = of_node[k];
        if (!c) continue;
        pthread_mutex_lock(&c->lock);
        span_leaves(c, &span);
        pthread_mutex_unlock(&c->lock);
    }
    pthread_mutex_unlock(&nodes_lock);
}

static caches_t *caches_create(unsigned node, gfx_t gfx, uint64_t seed)
{
    unsigned units = gfx_units(gfx), dies = gfx_dies(gfx);
    caches_t *c = calloc(1, sizeof *c + units * sizeof *c->units);
    if (!c) return NULL;
    c->dies = dies;
    c->unit_count = units;
    c->scalar_count = dies * ((units / dies + UNITS_TOGETHER - 1) / UNITS_TOGETHER);
    c->scalar = calloc(c->scalar_count, sizeof *c->scalar);
    if (!c->scalar) {
        free(c);
        return NULL;
    }
    c->node = node;
    c->probed = gfx >= GFX90A;
    c->random = seed * 0x9e3779b97f4a7c15 | 1; // neighbours begin far from each other
    pthread_mutex_init(&c->lock, NULL);
    for (unsigned k = 0; k < c->unit_count; k++) c->units[k].end = &c->units[k].oldest;
    return c;
}

static void caches_destroy(caches_t *c)
{
    flush(c);
    while (c->spare) {
        access_t *a = c->spare;
        c->spare = a->next;
        free(a);
    }
    pthread_mutex_destroy(&c->lock);
    free(c->scalar);
    free(c);
}

caches_t *caches_join(unsigned node, gfx_t gfx, uint64_t seed)
{
    if (node >= NODES) return NULL;
    pthread_mutex_lock(&nodes_lock);
    if (!of_node[node]) {
        of_node[node] = caches_create(node, gfx, seed);
        map_on_removal(memory_leaves);
    }
    caches_t *c = of_node[node];
    if (c) c->users++;
    pthread_mutex_unlock(&nodes_lock);
    return c;
}

void caches_leave(caches_t *c)
{
    pthread_mutex_lock(&nodes_lock);
    if (--c->users == 0) {
        of_node[c->node] = NULL;
        caches_destroy(c);
    }
    pthread_mutex_unlock(&nodes_lock);
}

unsigned caches_any_unit(caches_t *c)
{
    pthread_mutex_lock(&c->lock);
    unsigned unit = (unsigned)random_below(&c->random, c->unit_count);
    pthread_mutex_unlock(&c->lock);
    return unit;
}

access_t *caches_prepare(caches_t *c)
{
    pthread_mutex_lock(&c->lock);
    access_t *a = c->spare;
    if (a) c->spare = a->next;
    pthread_mutex_unlock(&c->lock);
    return a ? a : malloc(sizeof *a);
}

void caches_issue(caches_t *c, const wave_t *wave, access_t *a)
{
    a->wave = wave;
    a->performed = false;
    a->next = NULL;
    a->low = UINT64_MAX;
    a->high = 0;
    EACH_ACTIVE_LANE(a->lanes)
    {
        if (a->address[l] < a->low) a->low = a->address[l];
        if (a->address[l] + a->size > a->high) a->high = a->address[l] + a->size;
    }
    pthread_mutex_lock(&c->lock);
    unit_t *unit = &c->units[wave->unit];
    *unit->end = a;
    unit->end = &a->next;
    pthread_mutex_unlock(&c->lock);
}

// Performs one of the operations of a unit; false when there is none.
static bool perform_one(caches_t *c, unit_t *unit)
{
    unsigned count = 0;
    for (access_t *a = unit->oldest; a; a = a->next) count += !a->performed;
    if (!count) return false;
    uint64_t chosen = random_below(&c->random, count);
    access_t *a = unit->oldest;
    while (a->performed || chosen--) a = a->next;
    perform(c, unit, a);
    return true;
}

static void perform_any(caches_t *c)
{
    unsigned count = c->unit_count, first = (unsigned)random_below(&c->random, count), k = 0;
    while (k < count && !perform_one(c, &c->units[(first + k) % count])) k++;
    if (k < count) sweep(c, &c->units[(first + k) % count]);
}

access_t *caches_complete(caches_t *c, const wave_t *wave, unsigned most)
{
    access_t **oldest = NULL, *taken = NULL;
    unsigned count = 0;
    pthread_mutex_lock(&c->lock);
    unit_t *unit = &c->units[wave->unit];
    for (access_t **link = &unit->oldest; *link; link = &(*link)->next) {
        if ((*link)->wave != wave) continue;
        if (!count++) oldest = link;
    }
    if (count > most) {
        // The wave waits for several, in any order.
        if (random_below(&c->random, 2)) perform_one(c, unit);
        perform(c, unit, *oldest);
        taken = unlink_at(unit, oldest);
    }
    pthread_mutex_unlock(&c->lock);
    return taken;
}

void caches_recycle(caches_t *c, access_t *a)
{
    pthread_mutex_lock(&c->lock);
    spare(c, a);
    pthread_mutex_unlock(&c->lock);
}

void caches_end(caches_t *c, const wave_t *wave)
{
    pthread_mutex_lock(&c->lock);
    unit_t *unit = &c->units[wave->unit];
    for (access_t *a = unit->oldest; a; a = a->next) {
        if (a->wave != wave) continue;
        a->wave = NULL;
        if (a->kind == ACCESS_LOAD) a->performed = true;
    }
    sweep(c, unit);
    pthread_mutex_unlock(&c->lock);
}

bool caches_tick(caches_t *c)
{
    enum { PERFORM_ONCE_IN = 4, FORGET_ONCE_IN = 16, TURN_ONCE_IN = 4 };
    pthread_mutex_lock(&c->lock);
    if (random_below(&c->random, PERFORM_ONCE_IN) == 0) perform_any(c);
    if (random_below(&c->random, FORGET_ONCE_IN) == 0) {
        c->units[random_below(&c->random, c->unit_count)]
            .l1.lines[random_below(&c->random, UPPER_LINES)]
            .tag = 0;
    }
    bool turn = random_below(&c->random, TURN_ONCE_IN) == 0;
    pthread_mutex_unlock(&c->lock);
    return turn;
}

void caches_settle(caches_t *c, unsigned unit)
{
    pthread_mutex_lock(&c->lock);
    perform_left(c, &c->units[unit], false);
    scalar_write_all(c, scalar_of(c, unit));
    pthread_mutex_unlock(&c->lock);
}

void caches_drop_l1(caches_t *c, unsigned unit)
{
    pthread_mutex_lock(&c->lock);
    upper_drop(&c->units[unit].l1);
    pthread_mutex_unlock(&c->lock);
}

void caches_drop_l2(caches_t *c)
{
    pthread_mutex_lock(&c->lock);
    l2_drop_all(c);
    pthread_mutex_unlock(&c->lock);
}

void caches_drop_scalar(caches_t *c, unsigned unit)
{
    pthread_mutex_lock(&c->lock);
    scalar_drop_all(c, scalar_of(c, unit));
    pthread_mutex_unlock(&c->lock);
}

void caches_write_scalar(caches_t *c, unsigned unit)
{
    pthread_mutex_lock(&c->lock);
    scalar_write_all(c, scalar_of(c, unit));
    pthread_mutex_unlock(&c->lock);
}

// The place for a line in a scalar cache.
static line_t *scalar_line(caches_t *c, upper_t *upper, uint64_t address)
{
    line_t *line = line_at(upper->lines, UPPER_LINES, address);
    if (!line_is(line, address)) {
        scalar_line_write(c, line);
        hold(upper->held, UPPER_LINES, address);
        line->valid = 0;
        line->tag = address / LINE;
    }
    return line;
}

void caches_scalar_read(caches_t *c, unsigned unit, uint64_t address, void *out, size_t size)
{
    upper_t *upper = &c->scalar[scalar_of(c, unit)];
    pthread_mutex_lock(&c->lock);
    for (size_t done = 0, step; done < size; done += step) {
        step = in_line(address + done, size - done);
        scalar_line(c, upper, address + done);
        upper_read(c, upper, address + done, (uint8_t *)out + done, step);
    }
    pthread_mutex_unlock(&c->lock);
}

void caches_scalar_write(caches_t *c, unsigned unit, uint64_t address, const void *from,
                         size_t size)
{
    upper_t *upper = &c->scalar[scalar_of(c, unit)];
    pthread_mutex_lock(&c->lock);
    for (size_t done = 0, step; done < size; done += step) {
        step = in_line(address + done, size - done);
        line_t *line = scalar_line(c, upper, address + done);
        memcpy(line->bytes + (address + done) % LINE, (const uint8_t *)from + done, step);
        line->valid |= mask_of(address + done, step);
        line->dirty |= mask_of(address + done, step);
    }
    pthread_mutex_unlock(&c->lock);
}

void caches_fetch(caches_t *c, uint64_t address, void *out, size_t size)
{
    pthread_mutex_lock(&c->lock);
    for (size_t done = 0, step; done < size; done += step) {
        step = in_line(address + done, size - done);
        l2_read(c, address + done, (uint8_t *)out + done, step);
    }
    pthread_mutex_unlock(&c->lock);
}

void caches_flush(caches_t *c)
{
    pthread_mutex_lock(&c->lock);
    flush(c);
    pthread_mutex_unlock(&c->lock);
}

void node_acquire(unsigned node, scope_t scope)
{
    caches_t *c = of_node[node];
    if (!c) return;
    pthread_mutex_lock(&c->lock);
    acquire(c, scope);
    pthread_mutex_unlock(&c->lock);
}

void node_release(unsigned node, scope_t scope)
{
    caches_t *c = of_node[node];
    if (!c) return;
    pthread_mutex_lock(&c->lock);
    release(c, scope);
    pthread_mutex_unlock(&c->lock);
}

void node_settle(unsigned node)
{
    node_release(node, SCOPE_AGENT);
}

void node_forget(void)
{
    pthread_mutex_init(&nodes_lock, NULL);
    memset(of_node, 0, sizeof of_node);
}
