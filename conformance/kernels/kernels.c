// SPDX-License-Identifier: Apache-2.0
// The kernels of the conformance tests, for every device. Each takes its sizes from the lengths of
// its bindings. What only code of the host can do is in host.c.
#include <keel/kernel.h>

#include "clock.h"

KEEL_KERNEL(empty, KEEL_GROUP(1)) {}

// out[i] = |in[i]|, one element per work-item.
KEEL_KERNEL(abs, KEEL_GROUP(16), KEEL_IN(int32_t, in), KEEL_OUT(int32_t, out))
{
    KEEL_ITEMS {
        uint64_t i = keel_global_id(0);
        if (i < keel_count(in) && i < keel_count(out)) out[i] = in[i] < 0 ? -in[i] : in[i];
    }
}

// c[i] = a[i] + b[i].
KEEL_KERNEL(add, KEEL_GROUP(16), KEEL_IN(uint32_t, a), KEEL_IN(uint32_t, b), KEEL_OUT(uint32_t, c))
{
    KEEL_ITEMS {
        uint64_t i = keel_global_id(0);
        if (i < keel_count(c)) c[i] = a[i] + b[i];
    }
}

typedef struct scale_t {
    uint32_t factor, summand;
} scale_t;

// x[i] = x[i] * factor + summand: two of them in a row tell in which order they ran.
KEEL_KERNEL(scale, KEEL_GROUP(16), KEEL_INOUT(uint32_t, x), KEEL_CONSTANTS(scale_t, k))
{
    KEEL_ITEMS {
        uint64_t i = keel_global_id(0);
        if (i < keel_count(x)) x[i] = x[i] * k.factor + k.summand;
    }
}

typedef struct saxpy_t {
    float a;
    uint32_t count;
} saxpy_t;

KEEL_KERNEL(saxpy, KEEL_GROUP(64), KEEL_IN(float, x), KEEL_INOUT(float, y),
            KEEL_CONSTANTS(saxpy_t, k))
{
    KEEL_ITEMS {
        uint64_t i = keel_global_id(0);
        if (i < k.count) y[i] = k.a * x[i] + y[i];
    }
}

#define LINEAR_ID                                                                                  \
    (((uint64_t)keel_group_id(2) * keel_group_count(1) + keel_group_id(1)) * keel_group_count(0) + \
     keel_group_id(0))

// Each group adds 1 + its identity, in a form that tells x, y and z apart, where it belongs.
KEEL_KERNEL(identify, KEEL_GROUP(1), KEEL_INOUT(uint32_t, out))
{
    KEEL_ONCE {
        uint64_t index = LINEAR_ID;
        if (index < keel_count(out))
            out[index] +=
                1 + keel_group_id(0) + (keel_group_id(1) << 10) + (keel_group_id(2) << 20);
    }
}

typedef struct three_t {
    uint32_t words[3];
} three_t;

// Writes what a kernel is told about its dispatch: groups, group size, sizes of everything.
KEEL_KERNEL(describe, KEEL_GROUP(4, 3, 2), KEEL_OUT(uint32_t, out), KEEL_CONSTANTS(three_t, k),
            KEEL_LOCAL(uint32_t, local, 32))
{
    KEEL_ITEMS {
        if (LINEAR_ID == 0 && keel_local_index() == keel_group_items() - 1) {
            out[0] = keel_group_count(0);
            out[1] = keel_group_count(1);
            out[2] = keel_group_count(2);
            out[3] = keel_local_id(0) + 1;
            out[4] = keel_local_id(1) + 1;
            out[5] = keel_local_id(2) + 1;
            out[6] = 1;
            out[7] = sizeof k;
            out[8] = 32 * sizeof local[0];
            out[9] = (uint32_t)keel_length(out);
        }
    }
}

// Counts the groups that ran.
KEEL_KERNEL(tally, KEEL_GROUP(1), KEEL_INOUT(uint32_t, word))
{
    KEEL_ONCE {
        keel_atomic_add(word, 1u);
    }
}

// Writes dispatch counts, or any other three words.
KEEL_KERNEL(make_counts, KEEL_GROUP(1), KEEL_OUT(uint32_t, out), KEEL_CONSTANTS(three_t, k))
{
    KEEL_ONCE {
        for (unsigned i = 0; i < 3; i++) out[i] = k.words[i];
    }
}

// Of the C library of any host, whose headers need not be here. Weak, since `keel cc` refuses what
// no kernel defines.
#if KEEL_HOST
typedef struct host_time_t {
    long seconds, ns;
} host_time_t;
extern __attribute__((weak)) int clock_gettime(int clock, host_time_t *time);
#ifdef __APPLE__
enum { MONOTONIC = 6 };
#else
enum { MONOTONIC = 1 };
#endif
#endif

// MSL has no clock: there looks are counted, each as so many quarters of a nanosecond, which it
// takes at least.
static uint64_t now_ns(volatile uint64_t *looks, uint32_t quarters)
{
#if KEEL_MSL
    return (*looks += quarters) / 4;
#elif KEEL_NVPTX
    return __nvvm_read_ptx_sreg_globaltimer();
#elif KEEL_AMDGCN
    return clock_ticks() * 1000 / CLOCK_MHZ;
#else
    host_time_t time;
    clock_gettime(MONOTONIC, &time);
    return (uint64_t)time.seconds * 1000000000u + (uint64_t)time.ns;
#endif
}

// Takes so many microseconds, then counts itself.
KEEL_KERNEL(slow, KEEL_GROUP(1), KEEL_INOUT(uint32_t, word), KEEL_CONSTANTS(uint32_t, us))
{
    KEEL_ONCE {
        volatile uint64_t looks = 0;
        uint64_t end = now_ns(&looks, 1) + us * UINT64_C(1000);
        while (now_ns(&looks, 1) < end) {
        }
        keel_atomic_add(word, 1u);
    }
}

typedef struct await_t {
    uint32_t mine, theirs, us;
} await_t;

// Sets one word and waits until another is set, but not for longer than so many microseconds; then
// writes whether it was into the word behind its own.
KEEL_KERNEL(await, KEEL_GROUP(1), KEEL_INOUT(uint32_t, words), KEEL_CONSTANTS(await_t, k))
{
    KEEL_ONCE {
        enum { ATOMIC = 20 }; // of such a look
        volatile uint64_t looks = 0;
        uint64_t end = now_ns(&looks, ATOMIC) + k.us * UINT64_C(1000);
        uint32_t met = 0;
        keel_atomic_exchange(words + k.mine, 1u);
        while (!met && now_ns(&looks, ATOMIC) < end) met = keel_atomic_add(words + k.theirs, 0u);
        words[k.mine + 1] = met != 0;
    }
}

// Writes where nothing is.
typedef struct wild_t {
    uint64_t address;
} wild_t;

KEEL_KERNEL(wild, KEEL_GROUP(1), KEEL_OUT(uint32_t, word), KEEL_CONSTANTS(wild_t, k))
{
    KEEL_ONCE {
        word[0] = 1;
        *(volatile uint32_t *)(uintptr_t)k.address = 1;
    }
}

enum { LOCAL_BYTES = 1024 };

// Fills all of its local memory with something of its own, looks whether it stays, and writes the
// number of bytes that did.
KEEL_KERNEL(local, KEEL_GROUP(1), KEEL_OUT(uint32_t, out), KEEL_LOCAL(uint8_t, memory, LOCAL_BYTES))
{
    KEEL_ONCE {
        uint32_t id = (uint32_t)LINEAR_ID, good = 0;
        volatile KEEL_AT_LOCAL uint8_t *bytes = memory;
        for (uint32_t i = 0; i < LOCAL_BYTES; i++) bytes[i] = (uint8_t)(id + i);
        for (uint32_t i = 0; i < LOCAL_BYTES; i++) good += bytes[i] == (uint8_t)(id + i);
        out[id] = good;
    }
}

// The argument block of a kernel that was made elsewhere.
typedef struct raw_t {
    uint32_t factor;
    uint32_t count;
    const uint32_t *in;
    uint32_t *out;
    uint32_t offset;
} raw_t;

KEEL_RAW_KERNEL(raw, KEEL_GROUP(1), raw_t, k)
{
    KEEL_ONCE {
        for (uint32_t i = 0; i < k.count; i++) k.out[i] = k.in[i] * k.factor + k.offset;
    }
}

// Counts the groups that ran, as a kernel made elsewhere does.
typedef struct raw_tally_t {
    uint32_t *word;
} raw_tally_t;

KEEL_RAW_KERNEL(raw_tally, KEEL_GROUP(1), raw_tally_t, k)
{
    KEEL_ONCE {
        keel_atomic_add(k.word, 1u);
    }
}

// word 0 counts down, word 1 up.
KEEL_KERNEL(count_down, KEEL_GROUP(1), KEEL_INOUT(uint32_t, word))
{
    KEEL_ONCE {
        word[0]--;
        word[1]++;
    }
}

typedef struct poke_t {
    uint32_t index, value;
} poke_t;

// x[index] = value.
KEEL_KERNEL(poke, KEEL_GROUP(1), KEEL_OUT(uint32_t, x), KEEL_CONSTANTS(poke_t, k))
{
    KEEL_ONCE {
        if (k.index < keel_count(x)) x[k.index] = k.value;
    }
}

// Writes its number into each of its bindings.
#define EIGHT(n)                                                                                   \
    KEEL_OUT(uint32_t, x##n##0), KEEL_OUT(uint32_t, x##n##1), KEEL_OUT(uint32_t, x##n##2),         \
        KEEL_OUT(uint32_t, x##n##3), KEEL_OUT(uint32_t, x##n##4), KEEL_OUT(uint32_t, x##n##5),     \
        KEEL_OUT(uint32_t, x##n##6), KEEL_OUT(uint32_t, x##n##7)
#define WRITE_EIGHT(n)                                                                             \
    *x##n##0 = n * 8 + 1, *x##n##1 = n * 8 + 2, *x##n##2 = n * 8 + 3, *x##n##3 = n * 8 + 4,        \
    *x##n##4 = n * 8 + 5, *x##n##5 = n * 8 + 6, *x##n##6 = n * 8 + 7, *x##n##7 = n * 8 + 8
KEEL_KERNEL(many_bindings, KEEL_GROUP(1), EIGHT(0), EIGHT(1), EIGHT(2), EIGHT(3), EIGHT(4),
            EIGHT(5), EIGHT(6), EIGHT(7))
{
    KEEL_ONCE {
        WRITE_EIGHT(0);
        WRITE_EIGHT(1);
        WRITE_EIGHT(2);
        WRITE_EIGHT(3);
        WRITE_EIGHT(4);
        WRITE_EIGHT(5);
        WRITE_EIGHT(6);
        WRITE_EIGHT(7);
    }
}

typedef struct bytes_t {
    uint8_t bytes[256];
} bytes_t;

// Copies its constants, to any address.
KEEL_KERNEL(many_constants, KEEL_GROUP(1), KEEL_OUT(uint8_t, out), KEEL_CONSTANTS(bytes_t, k))
{
    KEEL_ONCE {
        for (uint32_t i = 0; i < sizeof k; i++) out[i] = k.bytes[i];
    }
}

typedef struct chosen_t {
    uint64_t wide;
    uint8_t narrow;
} chosen_t;

KEEL_EXECUTABLE_CONSTANT(uint32_t, chosen_word) = 5;
KEEL_EXECUTABLE_CONSTANT(chosen_t, chosen_pair) = {70, 8};

// Writes what the executable was loaded with.
KEEL_KERNEL(use_chosen, KEEL_GROUP(1), KEEL_OUT(uint32_t, out))
{
    KEEL_ONCE {
        for (uint32_t i = 0; i < chosen_word && i < keel_count(out); i++) out[i] = chosen_word;
        out[0] += (uint32_t)chosen_pair.wide + chosen_pair.narrow;
    }
}

KEEL_GLOBAL(uint32_t, shared_words, 4) = {11, 22, 33, 44};

// Adds the constant to the global and copies it.
KEEL_KERNEL(use_global, KEEL_GROUP(1), KEEL_OUT(uint32_t, out), KEEL_CONSTANTS(uint32_t, summand))
{
    KEEL_ONCE {
        for (unsigned i = 0; i < 4; i++) out[i] = shared_words[i] += summand;
    }
}
