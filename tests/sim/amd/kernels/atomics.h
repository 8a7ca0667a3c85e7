// SPDX-License-Identifier: Apache-2.0
// More functions for same.h: atomic operations of both sizes and every scope, on memory of all
// kinds.
#ifndef TESTS_SIM_AMD_KERNELS_ATOMICS_H_
#define TESTS_SIM_AMD_KERNELS_ATOMICS_H_

#ifdef __AMDGCN__
#define ATOMIC_FETCH(operation, place, value, order, scope)                                        \
    __scoped_atomic_fetch_##operation(place, value, __ATOMIC_##order, __MEMORY_SCOPE_##scope)
#define ATOMIC_SWAP(place, value, order, scope)                                                    \
    __scoped_atomic_exchange_n(place, value, __ATOMIC_##order, __MEMORY_SCOPE_##scope)
#define ATOMIC_COMPARE(place, expected, value, order, scope)                                       \
    __scoped_atomic_compare_exchange_n(place, expected, value, false, __ATOMIC_##order,            \
                                       __ATOMIC_RELAXED, __MEMORY_SCOPE_##scope)
#define ATOMIC_LOAD(place, order, scope)                                                           \
    __scoped_atomic_load_n(place, __ATOMIC_##order, __MEMORY_SCOPE_##scope)
#define ATOMIC_STORE(place, value, order, scope)                                                   \
    __scoped_atomic_store_n(place, value, __ATOMIC_##order, __MEMORY_SCOPE_##scope)
#else
// One thread is enough: the host's compiler has no atomic minimum.
#define FETCH_add(old, value)  ((old) + (value))
#define FETCH_sub(old, value)  ((old) - (value))
#define FETCH_and(old, value)  ((old) & (value))
#define FETCH_or(old, value)   ((old) | (value))
#define FETCH_xor(old, value)  ((old) ^ (value))
#define FETCH_nand(old, value) (~((old) & (value)))
#define FETCH_min(old, value)  ((old) < (value) ? (old) : (value))
#define FETCH_max(old, value)  ((old) > (value) ? (old) : (value))
#define ATOMIC_FETCH(operation, place, value, order, scope)                                        \
    ({                                                                                             \
        __typeof__(*(place)) fetched = *(place);                                                   \
        *(place) = FETCH_##operation(fetched, (__typeof__(fetched))(value));                       \
        fetched;                                                                                   \
    })
#define ATOMIC_SWAP(place, value, order, scope)                                                    \
    ({                                                                                             \
        __typeof__(*(place)) fetched = *(place);                                                   \
        *(place) = (value);                                                                        \
        fetched;                                                                                   \
    })
#define ATOMIC_COMPARE(place, expected, value, order, scope)                                       \
    (*(place) == *(expected) ? (*(place) = (value), true) : (*(expected) = *(place), false))
#define ATOMIC_LOAD(place, order, scope)         (*(place))
#define ATOMIC_STORE(place, value, order, scope) ((void)(*(place) = (value)))
#endif

// What every operation found there, mixed, and what is there at the end.
#define ATOMICS(type, place, signed_place, start, operand)                                         \
    ({                                                                                             \
        type found = 0, expected = (operand);                                                      \
        ATOMIC_STORE(place, start, RELEASE, SYSTEM);                                               \
        found += ATOMIC_FETCH(add, place, operand, SEQ_CST, SYSTEM);                               \
        found = found * 31 + ATOMIC_FETCH(sub, place, 77, ACQ_REL, DEVICE);                        \
        found = found * 31 + ATOMIC_FETCH(xor, place, (operand) << 1, RELAXED, WRKGRP);            \
        found = found * 31 + ATOMIC_FETCH(or, place, 0x1010, ACQUIRE, WVFRNT);                     \
        found = found * 31 + ATOMIC_FETCH(min, place, operand, RELEASE, SYSTEM);                   \
        found = found * 31 + ATOMIC_FETCH(max, place, 12345, SEQ_CST, DEVICE);                     \
        found = found * 31 + (type)ATOMIC_FETCH(min, signed_place, 99, RELAXED, DEVICE);           \
        found = found * 31 + (type)ATOMIC_FETCH(max, signed_place, -7, ACQ_REL, WRKGRP);           \
        found = found * 31 + ATOMIC_FETCH(nand, place, operand, ACQ_REL, SYSTEM);                  \
        found += ATOMIC_COMPARE(place, &expected, 5, SEQ_CST, DEVICE);                             \
        found += 2 * ATOMIC_COMPARE(place, &expected, (operand) + 9, ACQ_REL, SYSTEM);             \
        ATOMIC_FETCH(and, place, ~(type)4, RELAXED, SYSTEM);                                       \
        found = found * 31 + ATOMIC_SWAP(place, found, ACQ_REL, WRKGRP);                           \
        ATOMIC_FETCH(add, place, 3, RELEASE, DEVICE);                                              \
        found ^ ATOMIC_LOAD(place, ACQUIRE, SYSTEM);                                               \
    })

#ifdef __AMDGCN__
#define IN_GROUP __attribute__((address_space(3), loader_uninitialized))
static IN_GROUP uint32_t group_words[64];
static IN_GROUP uint64_t group_wide[64];
#define GROUP_SLOT          __builtin_amdgcn_workitem_id_x()
#define SIGNED(type, place) ((__attribute__((address_space(3))) type *)(place))
#else
static uint32_t group_words[1];
static uint64_t group_wide[1];
#define GROUP_SLOT          0
#define SIGNED(type, place) ((type *)(place))
#endif

static void atomics_memory(const item_t *in, answer_t *out)
{
    out->t = ATOMICS(uint32_t, &out->s, (int32_t *)&out->s, in->a, in->b);
    uint64_t wide = ATOMICS(uint64_t, &out->r, (int64_t *)&out->r, in->x, in->y);
    out->t ^= (uint32_t)(wide ^ wide >> 32);
}

static void atomics_group(const item_t *in, answer_t *out)
{
    unsigned slot = GROUP_SLOT;
    out->s =
        ATOMICS(uint32_t, &group_words[slot], SIGNED(int32_t, &group_words[slot]), in->a, in->b);
    out->r = ATOMICS(uint64_t, &group_wide[slot], SIGNED(int64_t, &group_wide[slot]), in->x, in->y);
    out->t = group_words[slot] ^ (uint32_t)group_wide[slot];
}

static void atomics_private(const item_t *in, answer_t *out)
{
    uint32_t word;
    uint64_t wide;
    out->s = ATOMICS(uint32_t, &word, (int32_t *)&word, in->a, in->b);
    out->r = ATOMICS(uint64_t, &wide, (int64_t *)&wide, in->x, in->y);
    out->t = word ^ (uint32_t)wide;
}

static void atomics_float(const item_t *in, answer_t *out)
{
    typedef float float_word_t __attribute__((may_alias));
    typedef double double_word_t __attribute__((may_alias));
    float_word_t *single = (float_word_t *)&out->s;
    double_word_t *wide = (double_word_t *)&out->r;
    *single = to_float(in->a);
    *wide = to_double(in->x);
    float found = ATOMIC_FETCH(add, single, to_float(in->b), RELAXED, DEVICE);
    double more = ATOMIC_FETCH(add, wide, to_double(in->y), SEQ_CST, SYSTEM);
    ATOMIC_FETCH(add, single, 1.5f, RELAXED, WRKGRP);
    ATOMIC_FETCH(sub, wide, 2.5, RELAXED, DEVICE);
    out->t = float_word(found) ^ (uint32_t)double_words(more);
}

#define ATOMIC(X)                                                                                  \
    X(atomics_memory)                                                                              \
    X(atomics_group)                                                                               \
    X(atomics_private)                                                                             \
    X(atomics_float)

#endif
