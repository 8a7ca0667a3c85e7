// SPDX-License-Identifier: Apache-2.0
// Memory instructions on weak memory; caches.h says what that is. They take the place of those of
// memory.c, scalar_memory.c and scalar.c when code is decoded.
#include "amd/isa/access.h"
#include "amd/isa/caches.h"

typedef void load_fn(uint32_t (*v)[LANES], unsigned l, const uint8_t *p);
typedef void store_fn(uint32_t (*v)[LANES], unsigned l, uint8_t *p);

#define DEFINE_LOAD(name, bytes, action)                                                           \
    static void name(uint32_t(*v)[LANES], unsigned l, const uint8_t *p)                            \
    {                                                                                              \
        action;                                                                                    \
    }
#define DEFINE_STORE(name, bytes, action)                                                          \
    static void name(uint32_t(*v)[LANES], unsigned l, uint8_t *p)                                  \
    {                                                                                              \
        action;                                                                                    \
    }
PLAIN_LOADS(DEFINE_LOAD)
HALF_LOADS(DEFINE_LOAD)
STORES(DEFINE_STORE)

#define X32(n) x[n]
#define X64(n) (x[n] | (uint64_t)x[(n) + 1] << 32)
#define DEFINE_CHANGE(name, bits, call)                                                            \
    static uint64_t name(void *p, const uint32_t *x)                                               \
    {                                                                                              \
        return call;                                                                               \
    }
#define DEFINE_INTEGER(name, ignored)                                                              \
    DEFINE_CHANGE(change_##name, 32, atomic_##name##32(p, X32(0)))                                 \
    DEFINE_CHANGE(change_##name##_x2, 64, atomic_##name##64(p, X64(0)))
ATOMIC_INTEGER_OPS(DEFINE_INTEGER)
#define DEFINE_OTHER(name, bits, call) DEFINE_CHANGE(change_##name, bits, call)
OTHER_ATOMICS(DEFINE_OTHER)

static const struct {
    const char *name;
    load_fn *load;
} loads[] = {
#define ROW(name, bytes, action) {#name, name},
    PLAIN_LOADS(ROW) HALF_LOADS(ROW)
#undef ROW
};

static const struct {
    const char *name;
    store_fn *store;
} stores[] = {
#define ROW(name, bytes, action) {#name, name},
    STORES(ROW)
#undef ROW
};

static const struct {
    const char *name;
    change_fn *change;
} changes[] = {
#define ROW_INTEGER(name, ignored)                                                                 \
    {"atomic_" #name, change_##name}, {"atomic_" #name "_x2", change_##name##_x2},
#define ROW(name, bits, call) {#name, change_##name},
    ATOMIC_INTEGER_OPS(ROW_INTEGER) OTHER_ATOMICS(ROW)
#undef ROW
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static bool begins(const char *name, const char *prefix)
{
    return !strncmp(name, prefix, strlen(prefix));
}

static change_fn *change_of(const op_t *op)
{
    for (size_t k = 0; k < COUNT(changes); k++) {
        if (!strcmp(changes[k].name, op->name)) return changes[k].change;
    }
    return NULL;
}

// Registers of a lane from what was read; operations that are not in the table move words.
static void lane_load(const op_t *op, uint32_t (*v)[LANES], unsigned l, const uint32_t *data)
{
    for (size_t k = 0; k < COUNT(loads); k++) {
        if (strcmp(loads[k].name, op->name)) continue;
        loads[k].load(v, l, (const uint8_t *)data);
        return;
    }
    for (unsigned k = 0; k < memory_size(op) / 4; k++) v[k][l] = data[k];
}

static void lane_store(const op_t *op, uint32_t (*v)[LANES], unsigned l, uint32_t *data)
{
    for (size_t k = 0; k < COUNT(stores); k++) {
        if (strcmp(stores[k].name, op->name)) continue;
        stores[k].store(v, l, (uint8_t *)data);
        return;
    }
    for (unsigned k = 0; k < memory_size(op) / 4; k++) data[k] = v[k][l];
}

// Bits of an instruction of a GPU that says coherence by scopes: sc0, which is where others have
// glc, and sc1. Both together mean the whole system.
static bool has_sc1(const insn_t *i)
{
    return i->raw[0] >> (i->segment == ENC_MUBUF ? 15 : 25) & 1;
}

static bool is_system(const insn_t *i)
{
    return has_sc1(i) && i->returns;
}

static bool goes_past_l1(const wave_t *w, const insn_t *i)
{
    return w->isa->target->scopes ? has_sc1(i) : i->returns;
}

// Lanes that touch memory, and not LDS or scratch, which no other unit sees.
static uint64_t memory_lanes(const wave_t *w, const insn_t *i, const uint64_t *address)
{
    uint64_t exec = wave_exec(w), lanes = exec;
    if (i->segment == ENC_GLOBAL) return exec;
    EACH_ACTIVE_LANE(exec)
    {
        uint32_t upper = (uint32_t)(address[l] >> 32);
        bool lds = upper == APERTURE_LDS && i->segment == ENC_FLAT;
        if (lds || upper == APERTURE_SCRATCH) lanes &= ~(1ull << l);
    }
    return lanes;
}

// False after a fault.
static bool lanes_check(wave_t *w, const insn_t *i, const access_t *a)
{
    EACH_ACTIVE_LANE(a->lanes)
    {
        uint64_t at = a->address[l];
        if (a->change && memory_misaligned(w, i, (unsigned)l, at, a->size)) return false;
        if (isa_span(w->isa, at, a->size)) continue;
        wave_memory_fault(w, i, (int)l, at);
        return false;
    }
    return true;
}

// Lanes in LDS and scratch do at once what the instruction is. False after a fault.
static bool own_lanes_run(wave_t *w, const insn_t *i, uint64_t others)
{
    uint64_t exec = wave_exec(w);
    if (exec == others) return true;
    wave_set_s64(w, SGPR_EXEC, exec & ~others);
    bool good = i->op->run(w, i) != NULL;
    wave_set_s64(w, SGPR_EXEC, exec);
    return good;
}

static bool is_lds(const op_t *op)
{
    return begins(op->name, "load_lds") || begins(op->name, "store_lds");
}

// Where the words of lanes are in the workgroup's memory. False after a fault.
static bool words_check(wave_t *w, const insn_t *i, access_t *a)
{
    if (!is_lds(i->op)) return true;
    EACH_ACTIVE_LANE(a->lanes)
    {
        const uint8_t *word = memory_lds_word(w, i, l);
        if (!word) return false;
        a->words = (uint32_t)(word - w->lds - 4 * l);
        memcpy(a->data[l], word, 4); // a store takes it from there
    }
    return true;
}

static void lanes_take(wave_t *w, const insn_t *i, access_t *a)
{
    if (is_lds(i->op)) return;
    uint32_t(*v)[LANES] = &w->v[i->data[0]];
    unsigned operands = a->change && begins(i->op->name, "atomic_cmpswap") ? 2 : 1;
    EACH_ACTIVE_LANE(a->lanes)
    {
        if (a->kind == ACCESS_STORE) lane_store(i->op, v, (unsigned)l, a->data[l]);
        for (unsigned k = 0; a->change && k < operands * a->size / 4; k++) a->data[l][k] = v[k][l];
    }
}

// Goes on with the next instruction, now or when others have had their turn.
static const insn_t *go_on(wave_t *w, const insn_t *i)
{
    if (!caches_tick(w->isa->caches)) return insn_next(i);
    return wave_leave(w, insn_next(i), WAVE_RUNNING);
}

static const insn_t *issue(wave_t *w, const insn_t *i, access_kind_t kind, change_fn *change)
{
    caches_t *caches = w->isa->caches;
    access_t *a = caches_prepare(caches);
    if (!a) return wave_fault(w, i, FAULT_APERTURE, "memory of the host is short");
    memory_addresses(w, i, a->address);
    a->kind = kind;
    a->past_l1 = goes_past_l1(w, i);
    a->size = (uint8_t)memory_size(i->op);
    a->dst = i->dst;
    a->op = memory_without_lds(i->op);
    a->change = change;
    a->returns = i->returns;
    a->to_lds = kind == ACCESS_LOAD && is_lds(i->op);
    a->lanes = memory_lanes(w, i, a->address);
    bool good = own_lanes_run(w, i, a->lanes) && lanes_check(w, i, a) && words_check(w, i, a);
    if (!good) {
        caches_recycle(caches, a);
        return NULL;
    }
    lanes_take(w, i, a);
    w->stored |= kind != ACCESS_LOAD && a->lanes;
    caches_issue(caches, w, a); // without lanes, too: s_waitcnt counts it
    return go_on(w, i);
}

static const insn_t *run_load(wave_t *w, const insn_t *i)
{
    return issue(w, i, ACCESS_LOAD, NULL);
}

static const insn_t *run_store(wave_t *w, const insn_t *i)
{
    return issue(w, i, ACCESS_STORE, NULL);
}

static const insn_t *run_atomic(wave_t *w, const insn_t *i)
{
    return issue(w, i, ACCESS_ATOMIC, change_of(i->op));
}

// Writes the registers of an operation that is complete.
static void finish(wave_t *w, const access_t *a)
{
    if (a->kind == ACCESS_WRITE_BACK) return; // which has none
    uint32_t word[1][LANES], (*v)[LANES] = a->to_lds ? word : &w->v[a->dst];
    EACH_ACTIVE_LANE(a->lanes)
    {
        if (a->kind == ACCESS_LOAD) lane_load(a->op, v, (unsigned)l, a->data[l]);
        for (unsigned k = 0; a->returns && a->change && k < a->size / 4u; k++) {
            v[k][l] = a->data[l][k];
        }
        if (a->to_lds) memcpy(w->lds + (uint32_t)(a->words + 4 * l), &word[0][l], 4);
    }
}

static void wait_until(wave_t *w, unsigned most)
{
    caches_t *caches = w->isa->caches;
    access_t *a;
    while ((a = caches_complete(caches, w, most))) {
        finish(w, a);
        caches_recycle(caches, a);
    }
}

void weak_complete(wave_t *w)
{
    wait_until(w, 0);
}

static const insn_t *run_waitcnt(wave_t *w, const insn_t *i)
{
    wait_until(w, (i->raw[0] & 15) | (i->raw[0] >> 14 & 3) << 4);
    return go_on(w, i);
}

static const insn_t *run_end(wave_t *w, const insn_t *i)
{
    caches_end(w->isa->caches, w);
    return i->op->run(w, i);
}

static const insn_t *run_drop_l1(wave_t *w, const insn_t *i)
{
    caches_drop_l1(w->isa->caches, w->unit);
    return insn_next(i);
}

static const insn_t *run_drop_l2(wave_t *w, const insn_t *i)
{
    caches_drop_l2(w->isa->caches);
    return insn_next(i);
}

// Of a GPU with scopes: at agent scope, or at that of the system.
static const insn_t *run_drop(wave_t *w, const insn_t *i)
{
    if (has_sc1(i)) caches_drop_l1(w->isa->caches, w->unit);
    if (is_system(i)) caches_drop_l2(w->isa->caches);
    return insn_next(i);
}

static const insn_t *run_write_back(wave_t *w, const insn_t *i)
{
    if (w->isa->target->scopes && !is_system(i)) return insn_next(i);
    access_t *a = caches_prepare(w->isa->caches);
    if (!a) return wave_fault(w, i, FAULT_APERTURE, "memory of the host is short");
    a->kind = ACCESS_WRITE_BACK;
    a->lanes = 0;
    a->change = NULL;
    caches_issue(w->isa->caches, w, a);
    return insn_next(i);
}

// False after a fault.
static bool scalar_check(wave_t *w, const insn_t *i, uint64_t address, unsigned count)
{
    if (!isa_span(w->isa, address, 4 * count)) {
        wave_memory_fault(w, i, -1, address);
        return false;
    }
    if (i->dst + count <= SGPR_COUNT) return true;
    run_unknown(w, i);
    return false;
}

static const insn_t *run_scalar_load(wave_t *w, const insn_t *i)
{
    unsigned count = i->op->detail;
    uint64_t address = scalar_memory_address(w, i);
    if (!scalar_check(w, i, address, count)) return NULL;
    caches_scalar_read(w->isa->caches, w->unit, address, &w->s[i->dst], 4ull * count);
    return insn_next(i);
}

static const insn_t *run_scalar_store(wave_t *w, const insn_t *i)
{
    unsigned count = i->op->detail;
    uint64_t address = scalar_memory_address(w, i);
    if (!scalar_check(w, i, address, count)) return NULL;
    caches_scalar_write(w->isa->caches, w->unit, address, &w->s[i->dst], 4ull * count);
    return insn_next(i);
}

static const insn_t *run_scalar_drop(wave_t *w, const insn_t *i)
{
    caches_drop_scalar(w->isa->caches, w->unit);
    return insn_next(i);
}

static const insn_t *run_scalar_write(wave_t *w, const insn_t *i)
{
    caches_write_scalar(w->isa->caches, w->unit);
    return insn_next(i);
}

// An instruction that no cache knows: it works on memory, with nothing in any cache.
static const insn_t *run_through(wave_t *w, const insn_t *i)
{
    caches_flush(w->isa->caches);
    return i->op->run(w, i);
}

static bool is_in(const op_t *op, const op_list_t *list)
{
    return op >= list->ops && op < list->ops + list->count;
}

static run_fn *vector_run(const op_t *op)
{
    if (begins(op->name, "load_")) return run_load;
    if (begins(op->name, "store_")) return run_store;
    if (change_of(op)) return run_atomic;
    if (begins(op->name, "wbinvl1")) return run_drop_l1;
    if (begins(op->name, "invl2")) return run_drop_l2;
    if (begins(op->name, "wbl2")) return run_write_back;
    if (!strcmp(op->name, "inv")) return run_drop;
    return run_through;
}

static run_fn *scalar_run(const op_t *op)
{
    if (begins(op->name, "s_load") || begins(op->name, "s_buffer_load")) return run_scalar_load;
    if (begins(op->name, "s_store") || begins(op->name, "s_buffer_store")) return run_scalar_store;
    if (begins(op->name, "s_dcache_inv")) return run_scalar_drop;
    if (begins(op->name, "s_dcache_wb")) return run_scalar_write;
    return begins(op->name, "s_mem") ? op->run : run_through;
}

run_fn *weak_run(const insn_t *i)
{
    if (is_in(i->op, &memory_ops)) return vector_run(i->op);
    if (is_in(i->op, &scalar_memory_ops)) return scalar_run(i->op);
    if (!strcmp(i->op->name, "s_waitcnt")) return run_waitcnt;
    return begins(i->op->name, "s_endpgm") ? run_end : i->op->run;
}
