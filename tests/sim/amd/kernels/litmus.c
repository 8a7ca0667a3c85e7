// SPDX-License-Identifier: Apache-2.0
// Litmus tests of weak memory: small kernels in which two waves share memory, rightly and with a
// fence taken out or of too narrow a scope. Two workgroups of 64 items, or one of 128, are the two
// sides. What they share lies in lines of its own.
#include "device.h"

// Words from the beginning of the shared memory; weak_test.c knows them too.
enum { X = 0, Y = 64, MEET = 128, OUT = 192, RING = 320, RING_SIZE = 4, TURNS = 20, PAIRS = 1024 };

#define WORKGROUP __MEMORY_SCOPE_WRKGRP, "workgroup"
#define AGENT     __MEMORY_SCOPE_DEVICE, "agent"
#define SYSTEM    __MEMORY_SCOPE_SYSTEM, ""

#define RELEASE(name) __builtin_amdgcn_fence(__ATOMIC_RELEASE, name)
#define ACQUIRE(name) __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, name)
#define BOTH(name)    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, name)
#define NOTHING(name) __asm__ volatile("" ::: "memory") // only the compiler keeps the order

#define LOAD(p)     __scoped_atomic_load_n(p, __ATOMIC_RELAXED, scope)
#define STORE(p, v) __scoped_atomic_store_n(p, v, __ATOMIC_RELAXED, scope)

// One lane of each side goes on, and knows which side it is.
#define ONE_LANE                                                                                   \
    if (lane_in_group() % 64) return;
#define SIDES ONE_LANE uint32_t side = group_id() + lane_in_group() / 64;

// In a vector register, so that what it is the index of is not loaded by a scalar instruction.
static uint32_t zero(void)
{
    uint32_t value;
    __asm__ volatile("v_mov_b32 %0, 0" : "=v"(value));
    return value;
}

// Waits for the other side, for the time after so many.
static void meet(uint32_t *m, uint32_t before)
{
    __scoped_atomic_fetch_add(m + MEET, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
    while (__scoped_atomic_load_n(m + MEET, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE) <
           2 * before + 2) {
        continue;
    }
}

// The other side has the line of X, then learns that it has changed.
#define MESSAGE(name, before, after, scope_number, scope_name)                                     \
    KERNEL void message_##name(uint32_t *m)                                                        \
    {                                                                                              \
        enum { scope = scope_number };                                                             \
        SIDES                                                                                      \
        if (side == 0) {                                                                           \
            meet(m, 0);                                                                            \
            m[X] = 42;                                                                             \
            before(scope_name);                                                                    \
            STORE(m + Y, 1);                                                                       \
            return;                                                                                \
        }                                                                                          \
        m[OUT + 1] = m[X + zero()];                                                                \
        meet(m, 0);                                                                                \
        while (!LOAD(m + Y)) continue;                                                             \
        after(scope_name);                                                                         \
        m[OUT] = m[X];                                                                             \
    }

#if __gfx942__
// The same, but what was changed goes to the workgroup's memory without a register.
static LOCAL uint32_t copied[64];
#define COPIED(name, before, after, scope_number, scope_name)                                      \
    KERNEL void copied_##name(uint32_t *m)                                                         \
    {                                                                                              \
        enum { scope = scope_number };                                                             \
        SIDES                                                                                      \
        if (side == 0) {                                                                           \
            meet(m, 0);                                                                            \
            m[X] = 42;                                                                             \
            before(scope_name);                                                                    \
            STORE(m + Y, 1);                                                                       \
            return;                                                                                \
        }                                                                                          \
        m[OUT + 1] = m[X + zero()];                                                                \
        meet(m, 0);                                                                                \
        while (!LOAD(m + Y)) continue;                                                             \
        after(scope_name);                                                                         \
        __builtin_amdgcn_global_load_lds((GLOBAL_AT uint32_t *)(m + X), &copied[0], 4, 0, 0);      \
        __builtin_amdgcn_s_waitcnt(0);                                                             \
        m[OUT] = *(volatile LOCAL_AT uint32_t *)copied;                                            \
    }
#endif

// Each side stores, then looks what the other has stored: one of them sees it. OUT has a bit for
// each turn.
#define STORES(name, fence, ignored, scope_number, scope_name)                                     \
    KERNEL void stores_##name(uint32_t *m)                                                         \
    {                                                                                              \
        enum { scope = scope_number };                                                             \
        SIDES                                                                                      \
        uint32_t seen = 0;                                                                         \
        for (uint32_t n = 0; n < TURNS; n++) {                                                     \
            uint32_t *mine = m + PAIRS + 64 * n + 32 * side;                                       \
            uint32_t *other = m + PAIRS + 64 * n + 32 * !side;                                     \
            meet(m, n);                                                                            \
            STORE(mine, 1);                                                                        \
            fence(scope_name);                                                                     \
            seen |= LOAD(other) << n;                                                              \
        }                                                                                          \
        m[OUT + 64 * side] = seen;                                                                 \
    }

// Each side loads, then stores what the other loads: not both see it.
#define LOADS(name, fence, ignored, scope_number, scope_name)                                      \
    KERNEL void loads_##name(uint32_t *m)                                                          \
    {                                                                                              \
        enum { scope = scope_number };                                                             \
        SIDES                                                                                      \
        uint32_t seen = 0;                                                                         \
        for (uint32_t n = 0; n < TURNS; n++) {                                                     \
            uint32_t *mine = m + PAIRS + 64 * n + 32 * side;                                       \
            uint32_t *other = m + PAIRS + 64 * n + 32 * !side;                                     \
            meet(m, n);                                                                            \
            uint32_t loaded = LOAD(mine);                                                          \
            fence(scope_name);                                                                     \
            STORE(other, 1);                                                                       \
            seen |= loaded << n;                                                                   \
        }                                                                                          \
        m[OUT + 64 * side] = seen;                                                                 \
    }

// A ring of words, with a count of those put in and one of those taken out. OUT counts wrong ones.
#define QUEUE(name, before, after, scope_number, scope_name)                                       \
    KERNEL void queue_##name(uint32_t *m)                                                          \
    {                                                                                              \
        enum { scope = scope_number };                                                             \
        SIDES                                                                                      \
        uint32_t wrong = 0;                                                                        \
        for (uint32_t n = 0; n < TURNS; n++) {                                                     \
            if (side == 0) {                                                                       \
                while (n - LOAD(m + Y) >= RING_SIZE) continue;                                     \
                after(scope_name);                                                                 \
                m[RING + n % RING_SIZE] = 1000 + n;                                                \
                before(scope_name);                                                                \
                STORE(m + X, n + 1);                                                               \
            } else {                                                                               \
                while (LOAD(m + X) <= n) continue;                                                 \
                after(scope_name);                                                                 \
                wrong += m[RING + n % RING_SIZE] != 1000 + n;                                      \
                before(scope_name);                                                                \
                STORE(m + Y, n + 1);                                                               \
            }                                                                                      \
        }                                                                                          \
        if (side) m[OUT] = wrong;                                                                  \
    }

// Both sides count X up under a lock.
#define LOCK(name, before, after, scope_number, scope_name)                                        \
    KERNEL void lock_##name(uint32_t *m)                                                           \
    {                                                                                              \
        enum { scope = scope_number };                                                             \
        ONE_LANE                                                                                   \
        for (uint32_t n = 0; n < TURNS; n++) {                                                     \
            uint32_t none = 0;                                                                     \
            while (!__scoped_atomic_compare_exchange_n(m + Y, &none, 1, 0, __ATOMIC_RELAXED,       \
                                                       __ATOMIC_RELAXED, scope)) {                 \
                none = 0;                                                                          \
                continue;                                                                          \
            }                                                                                      \
            after(scope_name);                                                                     \
            m[X] += 1;                                                                             \
            before(scope_name);                                                                    \
            STORE(m + Y, 0);                                                                       \
        }                                                                                          \
    }

// Name, kind, the two fences. A scope's macro becomes two arguments.
#define EXPAND(kind, name, before, after, ...) kind(name, before, after, __VA_ARGS__)
#define PAIRED(kind)                                                                               \
    EXPAND(kind, workgroup, RELEASE, ACQUIRE, WORKGROUP)                                           \
    EXPAND(kind, agent, RELEASE, ACQUIRE, AGENT)                                                   \
    EXPAND(kind, system, RELEASE, ACQUIRE, SYSTEM)                                                 \
    EXPAND(kind, unreleased, NOTHING, ACQUIRE, AGENT)                                              \
    EXPAND(kind, unacquired, RELEASE, NOTHING, AGENT)                                              \
    EXPAND(kind, unreleased_system, NOTHING, ACQUIRE, SYSTEM)                                      \
    EXPAND(kind, unacquired_system, RELEASE, NOTHING, SYSTEM)
#define FENCED(kind)                                                                               \
    EXPAND(kind, workgroup, BOTH, , WORKGROUP)                                                     \
    EXPAND(kind, agent, BOTH, , AGENT)                                                             \
    EXPAND(kind, system, BOTH, , SYSTEM)                                                           \
    EXPAND(kind, unfenced, NOTHING, , AGENT)                                                       \
    EXPAND(kind, unfenced_system, NOTHING, , SYSTEM)
PAIRED(MESSAGE)
#if __gfx942__
PAIRED(COPIED)
#endif
PAIRED(QUEUE)
PAIRED(LOCK)
FENCED(STORES)
FENCED(LOADS)

// From one GPU to another, one after the other.
#define ACROSS(name, before, after, scope_number, scope_name)                                      \
    KERNEL void put_##name(uint32_t *m)                                                            \
    {                                                                                              \
        enum { scope = scope_number };                                                             \
        if (lane_in_group()) return;                                                               \
        m[X] = 42;                                                                                 \
        before(scope_name);                                                                        \
        STORE(m + Y, 1);                                                                           \
    }                                                                                              \
    KERNEL void get_##name(uint32_t *m)                                                            \
    {                                                                                              \
        enum { scope = scope_number };                                                             \
        if (lane_in_group()) return;                                                               \
        m[OUT] = LOAD(m + Y);                                                                      \
        after(scope_name);                                                                         \
        m[OUT + 64] = m[X];                                                                        \
    }
EXPAND(ACROSS, agent, RELEASE, ACQUIRE, AGENT)
EXPAND(ACROSS, system, RELEASE, ACQUIRE, SYSTEM)
