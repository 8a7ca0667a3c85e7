// SPDX-License-Identifier: Apache-2.0
// Vector loads, stores and atomics: flat, global, scratch and buffer instructions.
//
// Scratch is interleaved as the hardware does: word n of lane l is at 256 n + 4 l. It is addressed
// here by lane offsets below the scratch aperture, whatever the instruction.
#include "amd/base.h"
#include "amd/isa/access.h"

enum { SCRATCH_STRIDE = 4 * LANES };

static const uint64_t scratch_aperture = (uint64_t)APERTURE_SCRATCH << 32;

static void flat_addresses(const wave_t *w, const insn_t *i, uint64_t *out)
{
    const uint32_t *low = w->v[i->address], *high = w->v[i->address + 1];
    uint64_t offset = (uint64_t)(int64_t)i->offset;
    EACH_LANE out[l] = (low[l] | (uint64_t)high[l] << 32) + offset;
}

static void global_addresses(const wave_t *w, const insn_t *i, uint64_t *out)
{
    if (!i->has_scalar) {
        flat_addresses(w, i, out);
        return;
    }
    const uint32_t *low = w->v[i->address];
    uint64_t base = wave_s64(w, i->scalar) + (uint64_t)(int64_t)i->offset;
    EACH_LANE out[l] = base + low[l];
}

static void scratch_addresses(const wave_t *w, const insn_t *i, uint64_t *out)
{
    const uint32_t *vector = w->v[i->address];
    uint32_t base = (uint32_t)i->offset + (i->has_scalar ? w->s[i->scalar] : 0);
    EACH_LANE out[l] = scratch_aperture | (uint32_t)(base + (i->has_vector ? vector[l] : 0));
}

static uint32_t buffer_scalar(const wave_t *w, const insn_t *i)
{
    return i->src[0].from == FROM_SCALAR     ? w->s[i->src[0].index]
           : i->src[0].from == FROM_CONSTANT ? (uint32_t)i->value[0].bits
                                             : w->scc;
}

static void buffer_addresses(wave_t *w, const insn_t *i, uint64_t *out)
{
    const uint32_t *resource = &w->s[i->address];
    uint64_t base = wave_s64(w, i->address) & 0xffffffffffff;
    uint32_t stride = resource[1] >> 16 & 0x3fff;
    bool interleaved = resource[1] >> 31;
    uint32_t scalar = buffer_scalar(w, i);
    const uint32_t *index = w->v[i->data[1]], *vector = w->v[i->data[1] + i->has_index];
    uint32_t slot = (uint32_t)((base + scalar - w->scratch_base) / LANES);
    EACH_LANE
    {
        uint32_t offset = (uint32_t)i->offset + (i->has_vector ? vector[l] : 0);
        out[l] = interleaved
                     ? scratch_aperture | (uint32_t)(slot + offset)
                     : base + scalar + offset + (i->has_index ? (uint64_t)stride * index[l] : 0);
    }
}

// So many words, or what is in the upper half of detail.
unsigned memory_size(const op_t *op)
{
    return op->detail & 0xff ? 4u * op->detail : op->detail >> 8;
}

// The active lanes that stay inside of a buffer: below its number of records, which are bytes
// unless records have a size and the lane an index.
static uint64_t buffer_inside(const wave_t *w, const insn_t *i)
{
    const uint32_t *resource = &w->s[i->address];
    const uint32_t *index = w->v[i->data[1]], *vector = w->v[i->data[1] + i->has_index];
    uint64_t exec = wave_exec(w), inside = 0, records = resource[2];
    bool counted = i->has_index && resource[1] >> 16 & 0x3fff;
    EACH_ACTIVE_LANE(exec)
    {
        uint64_t end = (uint64_t)buffer_scalar(w, i) + (uint32_t)i->offset +
                       (i->has_vector ? vector[l] : 0) + memory_size(i->op);
        inside |= (uint64_t)(counted ? index[l] < records : end <= records) << l;
    }
    return inside;
}

uint8_t *memory_lds_word(wave_t *w, const insn_t *i, uint64_t l)
{
    int64_t at = (int64_t)(w->s[SGPR_M0] & 0xffff) + i->offset + 4 * (int64_t)l;
    if (at >= 0 && at + 4 <= w->lds_size) return w->lds + at;
    wave_fault(w, i, FAULT_APERTURE, "lane %u: byte %lld of %u of the workgroup's memory",
               (unsigned)l, (long long)at, w->lds_size);
    return NULL;
}

// Lanes that load get zero instead. False after a fault.
static bool load_zero(wave_t *w, const insn_t *i, uint64_t lanes)
{
    bool load = !strncmp(i->op->name, "load", 4), atomic = !strncmp(i->op->name, "atomic", 6);
    bool to_lds = !strncmp(i->op->name, "load_lds", 8);
    unsigned words = (memory_size(i->op) + 3) / 4;
    if (!load && !(atomic && i->returns)) return true;
    EACH_ACTIVE_LANE(lanes)
    {
        uint8_t *word = to_lds ? memory_lds_word(w, i, l) : NULL;
        if (to_lds && !word) return false;
        if (word) memset(word, 0, 4);
        for (unsigned k = 0; k < words && !to_lds; k++) w->v[i->dst + k][l] = 0;
    }
    return true;
}

// Outside of a buffer loads give zero, and stores and atomics do nothing.
const insn_t *run_buffer(wave_t *w, const insn_t *i)
{
    if (w->s[i->address + 2] == UINT32_MAX) return i->plain(w, i); // scratch has no end of its own
    uint64_t exec = wave_exec(w), inside = buffer_inside(w, i);
    if (inside == exec) return i->plain(w, i);
    if (!load_zero(w, i, exec & ~inside)) return NULL;
    wave_set_s64(w, SGPR_EXEC, inside);
    const insn_t *next = inside ? i->plain(w, i) : insn_next(i);
    wave_set_s64(w, SGPR_EXEC, exec);
    return next;
}

void memory_addresses(wave_t *w, const insn_t *i, uint64_t *out)
{
    switch ((encoding_t)i->segment) {
    case ENC_FLAT: flat_addresses(w, i, out); break;
    case ENC_GLOBAL: global_addresses(w, i, out); break;
    case ENC_SCRATCH: scratch_addresses(w, i, out); break;
    default: buffer_addresses(w, i, out); break;
    }
}

// The memory that the lane before this one touched.
typedef struct {
    uint64_t base, room; // addresses base to base + room inclusive are good for this access
    uint8_t *host;
    bool refuses; // no atomic operation comes there
} nearby_t;

// Atomic operations on memory of the host that no cache keeps go by the link, if that carries them.
static bool span_refuses(const span_t *span)
{
    return !sim_settings()->atomics && !span->home && !span->coarse;
}

typedef struct {
    uint8_t *p; // NULL after a fault
    uint32_t stride;
} place_t;

static place_t place_far(wave_t *w, const insn_t *i, unsigned l, uint64_t address, unsigned size,
                         nearby_t *nearby)
{
    uint32_t upper = (uint32_t)(address >> 32), lower = (uint32_t)address;
    *nearby = (nearby_t){0};
    if (upper == APERTURE_SCRATCH && i->segment != ENC_GLOBAL) {
        uint64_t word = lower / 4, byte = lower % 4;
        if (byte + (size < 4 ? size : 4) > 4) {
            wave_fault(w, i, FAULT_MEMORY, "lane %u: byte %u of its own memory is not aligned", l,
                       lower);
            return (place_t){0};
        }
        if ((uint64_t)lower + size <= w->scratch_size) {
            return (place_t){w->scratch + SCRATCH_STRIDE * word + 4 * l + byte, SCRATCH_STRIDE};
        }
        wave_fault(w, i, FAULT_APERTURE, "lane %u: byte %u of %u of its own memory", l, lower,
                   w->scratch_size);
        return (place_t){0};
    }
    if (upper == APERTURE_LDS && i->segment == ENC_FLAT) {
        if ((uint64_t)lower + size <= w->lds_size) return (place_t){w->lds + lower, 4};
        wave_fault(w, i, FAULT_APERTURE, "lane %u: byte %u of %u of the workgroup's memory", l,
                   lower, w->lds_size);
        return (place_t){0};
    }
    const span_t *span = isa_span(w->isa, address, size);
    if (!span) {
        wave_memory_fault(w, i, (int)l, address);
        return (place_t){0};
    }
    *nearby = (nearby_t){span->base, span->size - size, span->host, span_refuses(span)};
    return (place_t){span->host + (address - span->base), 4};
}

static inline place_t place(wave_t *w, const insn_t *i, unsigned l, uint64_t address, unsigned size,
                            nearby_t *nearby)
{
    uint64_t offset = address - nearby->base;
    if (nearby->host && offset <= nearby->room) return (place_t){nearby->host + offset, 4};
    return place_far(w, i, l, address, size, nearby);
}

static inline void poke32(uint8_t *p, uint32_t value)
{
    memcpy(p, &value, sizeof value);
}
static inline void poke64(uint8_t *p, uint64_t value)
{
    memcpy(p, &value, sizeof value);
}

// Where all lanes are active and touch one word after the other, as they do in most kernels: the
// first of these words.
static uint8_t *consecutive(wave_t *w, const uint64_t *address)
{
    if (wave_exec(w) != ~0ull) return NULL;
    uint64_t base = address[0], differs = 0;
    for (unsigned l = 0; l < LANES; l++) differs |= (address[l] - base) ^ 4 * l;
    if (differs) return NULL;
    const span_t *span = isa_span(w->isa, base, 4 * LANES);
    return span ? span->host + (base - span->base) : NULL;
}

#define DEFINE_ACCESS(name, bytes, first, action)                                                  \
    static const insn_t *run_##name(wave_t *w, const insn_t *i)                                    \
    {                                                                                              \
        uint64_t address[LANES];                                                                   \
        uint32_t(*v)[LANES] = &w->v[first];                                                        \
        nearby_t nearby = {0};                                                                     \
        memory_addresses(w, i, address);                                                           \
        EACH_ACTIVE_LANE(wave_exec(w))                                                             \
        {                                                                                          \
            place_t at = place(w, i, (unsigned)l, address[l], bytes, &nearby);                     \
            uint8_t *p = at.p;                                                                     \
            if (!p) return NULL;                                                                   \
            action;                                                                                \
        }                                                                                          \
        return insn_next(i);                                                                       \
    }
#define DEFINE_LOAD(name, bytes, action) DEFINE_ACCESS(name, bytes, i->dst, action)
#define DEFINE_STORE(name, bytes, action)                                                          \
    DEFINE_ACCESS(name, bytes, i->data[0], action; w->stores_pending = true)
PLAIN_LOADS(DEFINE_LOAD)
HALF_LOADS(DEFINE_LOAD)
STORES(DEFINE_STORE)

// Loads that go to the workgroup's memory, and the store that comes from there.
#define DEFINE_LDS(name, bytes, action)                                                            \
    static const insn_t *run_lds_##name(wave_t *w, const insn_t *i)                                \
    {                                                                                              \
        uint64_t address[LANES];                                                                   \
        uint32_t v[1][LANES];                                                                      \
        nearby_t nearby = {0};                                                                     \
        memory_addresses(w, i, address);                                                           \
        EACH_ACTIVE_LANE(wave_exec(w))                                                             \
        {                                                                                          \
            uint8_t *p = place(w, i, (unsigned)l, address[l], bytes, &nearby).p;                   \
            uint8_t *word = p ? memory_lds_word(w, i, l) : NULL;                                   \
            if (!word) return NULL;                                                                \
            action;                                                                                \
        }                                                                                          \
        return insn_next(i);                                                                       \
    }
#define DEFINE_TO_LDS(name, bytes, action) DEFINE_LDS(name, bytes, action; poke32(word, v[0][l]))
PLAIN_LOADS(DEFINE_TO_LDS)
DEFINE_TO_LDS(load_dword, 4, v[0][l] = peek32(p))
DEFINE_LDS(store_dword, 4, v[0][l] = peek32(word); poke32(p, v[0][l]); w->stores_pending = true)

// A pair of words that is aligned is loaded and stored in one piece: that is how 64-bit values are
// shared with others.
static inline void load_words(uint32_t (*v)[LANES], uint64_t l, place_t at, unsigned words)
{
    if (words == 2 && at.stride == 4) {
        uint64_t value = peek64(at.p);
        v[0][l] = (uint32_t)value;
        v[1][l] = (uint32_t)(value >> 32);
        return;
    }
    for (unsigned k = 0; k < words; k++) v[k][l] = peek32(at.p + (size_t)at.stride * k);
}

static inline void store_words(uint32_t (*v)[LANES], uint64_t l, place_t at, unsigned words)
{
    if (words == 2 && at.stride == 4) {
        poke64(at.p, v[0][l] | (uint64_t)v[1][l] << 32);
        return;
    }
    for (unsigned k = 0; k < words; k++) poke32(at.p + (size_t)at.stride * k, v[k][l]);
}

static const insn_t *run_load_words(wave_t *w, const insn_t *i)
{
    uint64_t address[LANES];
    unsigned words = i->op->detail;
    // The loaded words may replace the address, so that has been computed for all lanes before.
    memory_addresses(w, i, address);
    uint8_t *all = words == 1 ? consecutive(w, address) : NULL;
    if (all) {
        memcpy(w->v[i->dst], all, sizeof w->v[0]);
        return insn_next(i);
    }
    nearby_t nearby = {0};
    EACH_ACTIVE_LANE(wave_exec(w))
    {
        place_t at = place(w, i, (unsigned)l, address[l], 4 * words, &nearby);
        if (!at.p) return NULL;
        load_words(&w->v[i->dst], l, at, words);
    }
    return insn_next(i);
}

static const insn_t *run_store_words(wave_t *w, const insn_t *i)
{
    uint64_t address[LANES];
    unsigned words = i->op->detail;
    w->stores_pending = true;
    memory_addresses(w, i, address);
    uint8_t *all = words == 1 ? consecutive(w, address) : NULL;
    if (all) {
        memcpy(all, w->v[i->data[0]], sizeof w->v[0]);
        return insn_next(i);
    }
    nearby_t nearby = {0};
    EACH_ACTIVE_LANE(wave_exec(w))
    {
        place_t at = place(w, i, (unsigned)l, address[l], 4 * words, &nearby);
        if (!at.p) return NULL;
        store_words(&w->v[i->data[0]], l, at, words);
    }
    return insn_next(i);
}

bool memory_misaligned(wave_t *w, const insn_t *i, unsigned lane, uint64_t address, unsigned size)
{
    if (address % size == 0) return false;
    wave_fault(w, i, FAULT_MEMORY, "lane %u: address 0x%llx is not aligned for an atomic", lane,
               (unsigned long long)address);
    return true;
}

// In a lane's own memory the words of a pair lie apart. No other lane sees them, so a copy will do.
static uint8_t *pair_take(uint64_t *copy, place_t at)
{
    *copy = peek32(at.p) | (uint64_t)peek32(at.p + at.stride) << 32;
    return (uint8_t *)copy;
}

static void pair_return(uint64_t copy, place_t at)
{
    poke32(at.p, (uint32_t)copy);
    poke32(at.p + at.stride, (uint32_t)(copy >> 32));
}

#define X32(k) v[k][l]
#define X64(k) (v[k][l] | (uint64_t)v[(k) + 1][l] << 32)
#define RETURN32(value)                                                                            \
    uint32_t old = (value);                                                                        \
    if (i->returns) w->v[i->dst][l] = old
#define RETURN64(value)                                                                            \
    uint64_t old = (value);                                                                        \
    if (i->returns) {                                                                              \
        w->v[i->dst][l] = (uint32_t)old;                                                           \
        w->v[i->dst + 1][l] = (uint32_t)(old >> 32);                                               \
    }

#define DEFINE_ATOMIC(name, bits, call)                                                            \
    static const insn_t *run_##name(wave_t *w, const insn_t *i)                                    \
    {                                                                                              \
        uint64_t address[LANES], own;                                                              \
        uint32_t(*v)[LANES] = &w->v[i->data[0]];                                                   \
        nearby_t nearby = {0};                                                                     \
        memory_addresses(w, i, address);                                                           \
        EACH_ACTIVE_LANE(wave_exec(w))                                                             \
        {                                                                                          \
            if (memory_misaligned(w, i, (unsigned)l, address[l], bits / 8)) return NULL;           \
            place_t at = place(w, i, (unsigned)l, address[l], bits / 8, &nearby);                  \
            if (!at.p) return NULL;                                                                \
            if (nearby.refuses) {                                                                  \
                RETURN##bits(0);                                                                   \
                continue;                                                                          \
            }                                                                                      \
            bool apart = bits == 64 && at.stride != 4;                                             \
            uint8_t *p = apart ? pair_take(&own, at) : at.p;                                       \
            RETURN##bits(call);                                                                    \
            if (apart) pair_return(own, at);                                                       \
        }                                                                                          \
        return insn_next(i);                                                                       \
    }
#define DEFINE_INTEGER(name, ignored)                                                              \
    DEFINE_ATOMIC(name##32, 32, atomic_##name##32(p, X32(0)))                                      \
    DEFINE_ATOMIC(name##64, 64, atomic_##name##64(p, X64(0)))
ATOMIC_INTEGER_OPS(DEFINE_INTEGER)
OTHER_ATOMICS(DEFINE_ATOMIC)

// There are no caches unless memory is weak; what orders them orders the host's memory.
static const insn_t *run_cache(wave_t *w, const insn_t *i)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return insn_next(i);
}

#define PLAIN(name, run, words)  {name, run, NULL, TYPE_NONE, {TYPE_NONE}, 0, words},
#define BYTES(n)                 ((n) << 8)
#define ROW(name, bytes, action) PLAIN(#name, run_##name, BYTES(bytes))
#define ROW_INTEGER(name, ignored)                                                                 \
    PLAIN("atomic_" #name, run_##name##32, BYTES(4))                                               \
    PLAIN("atomic_" #name "_x2", run_##name##64, BYTES(8))

// Loads that can go to the workgroup's memory come first, then these in the same order.
enum { TO_LDS = 5 };

#define ROW_ATOMIC(name, bits, call) PLAIN(#name, run_##name, BYTES(bits / 8))

static const op_t ops[] = {
    PLAIN_LOADS(ROW) PLAIN("load_dword", run_load_words, 1)                               //
    PLAIN("load_lds_ubyte", run_lds_load_ubyte, BYTES(1))                                 //
    PLAIN("load_lds_sbyte", run_lds_load_sbyte, BYTES(1))                                 //
    PLAIN("load_lds_ushort", run_lds_load_ushort, BYTES(2))                               //
    PLAIN("load_lds_sshort", run_lds_load_sshort, BYTES(2))                               //
    PLAIN("load_lds_dword", run_lds_load_dword, BYTES(4))                                 //
    PLAIN("store_lds_dword", run_lds_store_dword, BYTES(4))                               //
    HALF_LOADS(ROW) STORES(ROW) ATOMIC_INTEGER_OPS(ROW_INTEGER)                           //
    PLAIN("load_dwordx2", run_load_words, 2)                                              //
    PLAIN("load_dwordx3", run_load_words, 3) PLAIN("load_dwordx4", run_load_words, 4)     //
    PLAIN("store_dword", run_store_words, 1) PLAIN("store_dwordx2", run_store_words, 2)   //
    PLAIN("store_dwordx3", run_store_words, 3) PLAIN("store_dwordx4", run_store_words, 4) //
    OTHER_ATOMICS(ROW_ATOMIC)                                                             //
    PLAIN("wbinvl1", run_cache, 0) PLAIN("wbinvl1_vol", run_cache, 0)                     //
    PLAIN("wbl2", run_cache, 0) PLAIN("invl2", run_cache, 0) PLAIN("inv", run_cache, 0)};
const op_list_t memory_ops = {ops, sizeof ops / sizeof *ops};

const op_t *memory_with_lds(const op_t *op)
{
    if (op < ops + TO_LDS) return op + TO_LDS;
    return op->run == run_lds_store_dword ? op : NULL;
}

const op_t *memory_without_lds(const op_t *op)
{
    return op >= ops + TO_LDS && op < ops + 2 * TO_LDS ? op - TO_LDS : op;
}
