// SPDX-License-Identifier: Apache-2.0
// Scalar loads, stores and atomics, cache control, clocks.
#include "amd/base.h"
#include "amd/isa/access.h"

static uint64_t address(const wave_t *w, const insn_t *i, uint64_t base)
{
    uint64_t offset = (uint64_t)(int64_t)i->offset + (i->has_scalar ? w->s[i->scalar] : 0);
    return (base + offset) & ~(uint64_t)3;
}

// A buffer resource has its stride and flags above the 48 bits of the address.
static uint64_t buffer_address(const wave_t *w, const insn_t *i)
{
    return address(w, i, wave_s64(w, i->address) & 0xffffffffffff);
}

uint64_t scalar_memory_address(const wave_t *w, const insn_t *i)
{
    bool buffer = !strncmp(i->op->name, "s_buffer", 8);
    return buffer ? buffer_address(w, i) : address(w, i, wave_s64(w, i->address));
}

static const insn_t *transfer(wave_t *w, const insn_t *i, uint64_t from, bool store)
{
    unsigned count = i->op->detail;
    const span_t *span = isa_span(w->isa, from, 4 * count);
    if (!span) return wave_memory_fault(w, i, -1, from);
    uint32_t *memory = (uint32_t *)(span->host + (from - span->base));
    if (i->dst + count > SGPR_COUNT) return run_unknown(w, i);
    for (unsigned k = 0; k < count; k++) {
        if (store) {
            __atomic_store_n(&memory[k], w->s[i->dst + k], __ATOMIC_RELAXED);
        } else {
            w->s[i->dst + k] = __atomic_load_n(&memory[k], __ATOMIC_RELAXED);
        }
    }
    return insn_next(i);
}

static const insn_t *run_load(wave_t *w, const insn_t *i)
{
    return transfer(w, i, address(w, i, wave_s64(w, i->address)), false);
}

static const insn_t *run_store(wave_t *w, const insn_t *i)
{
    w->stores_pending = true;
    return transfer(w, i, address(w, i, wave_s64(w, i->address)), true);
}

static const insn_t *run_buffer_load(wave_t *w, const insn_t *i)
{
    return transfer(w, i, buffer_address(w, i), false);
}

static const insn_t *run_buffer_store(wave_t *w, const insn_t *i)
{
    w->stores_pending = true;
    return transfer(w, i, buffer_address(w, i), true);
}

// The place of an atomic of so many bytes; NULL after a fault. detail tells addresses of buffers.
static void *atomic_place(wave_t *w, const insn_t *i, unsigned size)
{
    uint64_t base = wave_s64(w, i->address) & (i->op->detail ? 0xffffffffffff : ~0ull);
    uint64_t at = address(w, i, base);
    const span_t *span = at % size ? NULL : isa_span(w->isa, at, size);
    if (span) return span->host + (at - span->base);
    wave_memory_fault(w, i, -1, at);
    return NULL;
}

#define X32(n)          w->s[i->dst + (n)]
#define X64(n)          wave_s64(w, i->dst + (n))
#define RETURN32(value) w->s[i->dst] = (value)
#define RETURN64(value) wave_set_s64(w, i->dst, (value))
#define DEFINE_ATOMIC(name, bits, call)                                                            \
    static const insn_t *run_##name(wave_t *w, const insn_t *i)                                    \
    {                                                                                              \
        void *p = atomic_place(w, i, bits / 8);                                                    \
        if (!p) return NULL;                                                                       \
        uint##bits##_t old = call;                                                                 \
        if (i->returns) RETURN##bits(old);                                                         \
        return insn_next(i);                                                                       \
    }
#define DEFINE_INTEGER(name, ignored)                                                              \
    DEFINE_ATOMIC(name##32, 32, atomic_##name##32(p, X32(0)))                                      \
    DEFINE_ATOMIC(name##64, 64, atomic_##name##64(p, X64(0)))
ATOMIC_INTEGER_OPS(DEFINE_INTEGER)
DEFINE_ATOMIC(cmpswap32, 32, atomic_cmpswap32(p, X32(0), X32(1)))
DEFINE_ATOMIC(cmpswap64, 64, atomic_cmpswap64(p, X64(0), X64(2)))

// Of the shader, at the 1000 MHz that the topology tells.
static const insn_t *run_time(wave_t *w, const insn_t *i)
{
    wave_set_s64(w, i->dst, clock_ns());
    return insn_next(i);
}

static const insn_t *run_realtime(wave_t *w, const insn_t *i)
{
    wave_set_s64(w, i->dst, gfx_ticks(w->isa->gfx, clock_ns()));
    return insn_next(i);
}

static const insn_t *run_cache(wave_t *w, const insn_t *i)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return insn_next(i);
}

#define ROW(name, run, count) {name, run, NULL, TYPE_NONE, {TYPE_NONE}, 0, count}
#define ROW_ATOMIC(name, ignored)                                                                  \
    ROW("s_atomic_" #name, run_##name##32, 0), ROW("s_atomic_" #name "_x2", run_##name##64, 0),    \
        ROW("s_buffer_atomic_" #name, run_##name##32, 1),                                          \
        ROW("s_buffer_atomic_" #name "_x2", run_##name##64, 1),

static const op_t ops[] = {
    ATOMIC_INTEGER_OPS(ROW_ATOMIC) ROW_ATOMIC(cmpswap, ) ROW("s_load_dword", run_load, 1),
    ROW("s_load_dwordx2", run_load, 2),
    ROW("s_load_dwordx4", run_load, 4),
    ROW("s_load_dwordx8", run_load, 8),
    ROW("s_load_dwordx16", run_load, 16),
    ROW("s_store_dword", run_store, 1),
    ROW("s_store_dwordx2", run_store, 2),
    ROW("s_store_dwordx4", run_store, 4),
    ROW("s_buffer_load_dword", run_buffer_load, 1),
    ROW("s_buffer_load_dwordx2", run_buffer_load, 2),
    ROW("s_buffer_load_dwordx4", run_buffer_load, 4),
    ROW("s_buffer_load_dwordx8", run_buffer_load, 8),
    ROW("s_buffer_load_dwordx16", run_buffer_load, 16),
    ROW("s_buffer_store_dword", run_buffer_store, 1),
    ROW("s_buffer_store_dwordx2", run_buffer_store, 2),
    ROW("s_buffer_store_dwordx4", run_buffer_store, 4),
    ROW("s_memtime", run_time, 0),
    ROW("s_memrealtime", run_realtime, 0),
    ROW("s_dcache_inv", run_cache, 0),
    ROW("s_dcache_wb", run_cache, 0),
    ROW("s_dcache_inv_vol", run_cache, 0),
    ROW("s_dcache_wb_vol", run_cache, 0),
    ROW("s_dcache_discard", run_cache, 0),
    ROW("s_dcache_discard_x2", run_cache, 0),
};
const op_list_t scalar_memory_ops = {ops, sizeof ops / sizeof *ops};
