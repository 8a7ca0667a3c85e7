// SPDX-License-Identifier: Apache-2.0
// Part of <keel/kernel.h>: atomics on bindings and on workgroup memory, for 32- and 64-bit
// integers, signed or not. p is a pointer to one; each returns what was there before. They order
// nothing but themselves: KEEL_BARRIER() orders the group, keel_fence() the device.
//
//   keel_atomic_add(p, x)  _min  _max  _and  _or  _xor  _exchange
//   keel_atomic_compare(p, expected, x)   stores x if *p is `expected`
//   keel_atomic_load(p)  keel_atomic_store(p, x)
//   keel_atomic_add_float(p, x)           for float; the order of additions is the machine's
//   keel_atomic_add_double(p, x)          the same for double
//   keel_atomic_min_float(p, x)  _max_float    for float; neither is not a number
//   keel_fence()                          what is before it is seen before what follows it
//
// All of them see each other within a device; what the host sees during a dispatch is not defined.
//
// On memory of the host, AMD's cards before gfx942 and gfx12 do what PCI Express does: _add,
// _exchange and _compare, and with them all of float and double. _min, _max, _and, _or and _xor of
// integers have no effect there and return 0, and without PCI Express's atomic operations nothing
// has; use memory of the device.
#ifndef KEEL_KERNEL_ATOMIC_H_
#define KEEL_KERNEL_ATOMIC_H_

#if KEEL_GPU

#define KEEL_RELAXED_            __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE
#define KEEL_ATOMIC_(name, p, x) __scoped_atomic_##name((p), (x), KEEL_RELAXED_)

#define keel_atomic_add(p, x)        KEEL_ATOMIC_(fetch_add, p, x)
#define keel_atomic_and(p, x)        KEEL_ATOMIC_(fetch_and, p, x)
#define keel_atomic_or(p, x)         KEEL_ATOMIC_(fetch_or, p, x)
#define keel_atomic_xor(p, x)        KEEL_ATOMIC_(fetch_xor, p, x)
#define keel_atomic_min(p, x)        KEEL_ATOMIC_(fetch_min, p, x)
#define keel_atomic_max(p, x)        KEEL_ATOMIC_(fetch_max, p, x)
#define keel_atomic_exchange(p, x)   KEEL_ATOMIC_(exchange_n, p, x)
#define keel_atomic_store(p, x)      KEEL_ATOMIC_(store_n, p, x)
#define keel_atomic_load(p)          __scoped_atomic_load_n((p), KEEL_RELAXED_)
#define keel_atomic_add_float(p, x)  KEEL_ATOMIC_(fetch_add, p, x)
#define keel_atomic_add_double(p, x) KEEL_ATOMIC_(fetch_add, p, x)
#define keel_atomic_min_float(p, x)  KEEL_ATOMIC_(fetch_min, p, x)
#define keel_atomic_max_float(p, x)  KEEL_ATOMIC_(fetch_max, p, x)
#define keel_atomic_compare(p, expected, x)                                                        \
    ({                                                                                             \
        __typeof__((p)[0] + 0) keel_old = (expected);                                              \
        __scoped_atomic_compare_exchange_n((p), &keel_old, (x), 0, __ATOMIC_RELAXED,               \
                                           KEEL_RELAXED_);                                         \
        keel_old;                                                                                  \
    })

#if KEEL_MSL
__attribute__((convergent)) void keel_msl_fence(void);
#endif

KEEL_INLINE_ void keel_fence(void)
{
#if KEEL_MSL
    keel_msl_fence();
#elif KEEL_NVPTX
    __nvvm_membar_gl();
#else
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "agent");
#endif
}

#else

#define keel_atomic_add(p, x)      __atomic_fetch_add((p), (x), __ATOMIC_RELAXED)
#define keel_atomic_and(p, x)      __atomic_fetch_and((p), (x), __ATOMIC_RELAXED)
#define keel_atomic_or(p, x)       __atomic_fetch_or((p), (x), __ATOMIC_RELAXED)
#define keel_atomic_xor(p, x)      __atomic_fetch_xor((p), (x), __ATOMIC_RELAXED)
#define keel_atomic_exchange(p, x) __atomic_exchange_n((p), (x), __ATOMIC_RELAXED)
#define keel_atomic_store(p, x)    __atomic_store_n((p), (x), __ATOMIC_RELAXED)
#define keel_atomic_load(p)        __atomic_load_n((p), __ATOMIC_RELAXED)
#define keel_atomic_min(p, x)      KEEL_ATOMIC_CHOOSE_(p, x, <)
#define keel_atomic_max(p, x)      KEEL_ATOMIC_CHOOSE_(p, x, >)

// Stores x while it is better than what is there.
#define KEEL_ATOMIC_CHOOSE_(p, x, better)                                                          \
    ({                                                                                             \
        __typeof__(&(p)[0]) keel_at = (p);                                                         \
        __typeof__((p)[0] + 0) keel_new = (x), keel_old = keel_atomic_load(keel_at);               \
        while (keel_new better keel_old &&                                                         \
               !__atomic_compare_exchange_n(keel_at, &keel_old, keel_new, 1, __ATOMIC_RELAXED,     \
                                            __ATOMIC_RELAXED)) {                                   \
        }                                                                                          \
        keel_old;                                                                                  \
    })
#define keel_atomic_compare(p, expected, x)                                                        \
    ({                                                                                             \
        __typeof__((p)[0] + 0) keel_old = (expected);                                              \
        __atomic_compare_exchange_n((p), &keel_old, (x), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);   \
        keel_old;                                                                                  \
    })

// Numbers with a point, by their bits: stores `result` of the old value and x.
#define KEEL_ATOMIC_FLOAT_(name, type, bits_t, result)                                             \
    KEEL_INLINE_ type keel_atomic_##name(type *p, type x)                                          \
    {                                                                                              \
        bits_t *at = (bits_t *)(void *)p, old = __atomic_load_n(at, __ATOMIC_RELAXED), bits;       \
        type value;                                                                                \
        do {                                                                                       \
            __builtin_memcpy(&value, &old, sizeof value);                                          \
            type stored = (result);                                                                \
            __builtin_memcpy(&bits, &stored, sizeof bits);                                         \
        } while (                                                                                  \
            !__atomic_compare_exchange_n(at, &old, bits, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));  \
        return value;                                                                              \
    }
KEEL_ATOMIC_FLOAT_(add_float, float, uint32_t, value + x)
KEEL_ATOMIC_FLOAT_(add_double, double, uint64_t, value + x)
KEEL_ATOMIC_FLOAT_(min_float, float, uint32_t, x < value ? x : value)
KEEL_ATOMIC_FLOAT_(max_float, float, uint32_t, x > value ? x : value)

KEEL_INLINE_ void keel_fence(void)
{
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
}

#endif

#endif
