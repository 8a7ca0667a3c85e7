// SPDX-License-Identifier: Apache-2.0
// What vector memory instructions do with one lane, for those that do it at once and for those on
// weak memory.
#ifndef SIM_AMD_ISA_ACCESS_H_
#define SIM_AMD_ISA_ACCESS_H_

#include "amd/isa/atomic.h"

static inline uint16_t peek16(const uint8_t *p)
{
    uint16_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static inline void poke16(uint8_t *p, uint32_t value)
{
    uint16_t half = (uint16_t)value;
    memcpy(p, &half, sizeof half);
}

// Name, bytes, and what is done with register v, its lane l, and memory at p.
#define PLAIN_LOADS(X)                                                                             \
    X(load_ubyte, 1, v[0][l] = *p)                                                                 \
    X(load_sbyte, 1, v[0][l] = (uint32_t)(int8_t)*p)                                               \
    X(load_ushort, 2, v[0][l] = peek16(p))                                                         \
    X(load_sshort, 2, v[0][l] = (uint32_t)(int16_t)peek16(p))

#define HALF_LOADS(X)                                                                              \
    X(load_ubyte_d16, 1, v[0][l] = (v[0][l] & 0xffff0000) | *p)                                    \
    X(load_ubyte_d16_hi, 1, v[0][l] = (v[0][l] & 0xffff) | (uint32_t)*p << 16)                     \
    X(load_sbyte_d16, 1, v[0][l] = (v[0][l] & 0xffff0000) | (uint16_t)(int8_t)*p)                  \
    X(load_sbyte_d16_hi, 1, v[0][l] = (v[0][l] & 0xffff) | (uint32_t)(int8_t)*p << 16)             \
    X(load_short_d16, 2, v[0][l] = (v[0][l] & 0xffff0000) | peek16(p))                             \
    X(load_short_d16_hi, 2, v[0][l] = (v[0][l] & 0xffff) | (uint32_t)peek16(p) << 16)

#define STORES(X)                                                                                  \
    X(store_byte, 1, *p = (uint8_t)v[0][l])                                                        \
    X(store_byte_d16_hi, 1, *p = (uint8_t)(v[0][l] >> 16))                                         \
    X(store_short, 2, poke16(p, v[0][l]))                                                          \
    X(store_short_d16_hi, 2, poke16(p, v[0][l] >> 16))

// Atomics besides those of ATOMIC_INTEGER_OPS: name, bits, and what is done to memory at p with
// operands X32(n) or X64(n), which are n words behind the first.
#define OTHER_ATOMICS(X)                                                                           \
    X(atomic_cmpswap, 32, atomic_cmpswap32(p, X32(0), X32(1)))                                     \
    X(atomic_cmpswap_x2, 64, atomic_cmpswap64(p, X64(0), X64(2)))                                  \
    X(atomic_add_f32, 32, atomic_add_f32(p, X32(0)))                                               \
    X(atomic_pk_add_f16, 32, atomic_pk_add_f16_32(p, X32(0)))                                      \
    X(atomic_pk_add_bf16, 32, atomic_pk_add_bf16_32(p, X32(0)))                                    \
    X(atomic_add_f64, 64, atomic_add_f64(p, X64(0)))                                               \
    X(atomic_min_f64, 64, atomic_min_f64(p, X64(0)))                                               \
    X(atomic_max_f64, 64, atomic_max_f64(p, X64(0)))

// The address of every lane, active or not.
void memory_addresses(wave_t *w, const insn_t *i, uint64_t *out);

// Bytes that an operation of memory_ops touches in each lane; 0 for those on caches.
unsigned memory_size(const op_t *op);

// True after a fault: an atomic of a lane is not aligned.
bool memory_misaligned(wave_t *w, const insn_t *i, unsigned lane, uint64_t address, unsigned size);

// Where the word of a lane is that goes between memory and the workgroup's memory without a
// register; NULL after a fault.
uint8_t *memory_lds_word(wave_t *w, const insn_t *i, uint64_t l);

// The address of a scalar memory instruction.
uint64_t scalar_memory_address(const wave_t *w, const insn_t *i);

#endif
