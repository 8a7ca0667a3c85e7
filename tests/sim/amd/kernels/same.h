// SPDX-License-Identifier: Apache-2.0
// Functions that the host and the device compute alike. Each turns the four words of an item into
// two; floats are passed as their bits. Included by both sides.
#ifndef TESTS_SIM_AMD_KERNELS_SAME_H_
#define TESTS_SIM_AMD_KERNELS_SAME_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t x, y;
    uint32_t a, b;
} item_t;

typedef struct {
    uint64_t r;
    uint32_t s;
    uint32_t t;
} answer_t;

static inline float as_float(uint32_t bits)
{
    float value;
    __builtin_memcpy(&value, &bits, 4);
    return value;
}

static inline uint32_t float_word(float value)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &value, 4);
    return value != value ? 0x7fc00000 : bits;
}

static inline uint64_t double_words(double value)
{
    uint64_t bits;
    __builtin_memcpy(&bits, &value, 8);
    return value != value ? 0x7ff8000000000000 : bits;
}

// A float and a double of reasonable size from any bits.
static inline float to_float(uint32_t bits)
{
    return as_float((bits & 0x8fffffff) | 0x38000000);
}
static inline double to_double(uint64_t bits)
{
    uint64_t masked = (bits & 0x81ffffffffffffff) | 0x3e00000000000000;
    double value;
    __builtin_memcpy(&value, &masked, 8);
    return value;
}

// Keeps a call a call.
#define NOINLINE __attribute__((noinline))

static void arithmetic(const item_t *in, answer_t *out)
{
    out->r = in->x * in->y + in->a - (in->x ^ in->y);
    out->s = in->a * 2654435761u + in->b;
    out->t = (uint32_t)((int32_t)in->a >> (in->b & 31)) ^ in->a << (in->b & 15);
}

static void division(const item_t *in, answer_t *out)
{
    uint64_t d = in->y >> (in->a & 63) | 1;
    int64_t sd = (int64_t)(in->y | 1);
    out->r = in->x / d + in->x % d + (uint64_t)((int64_t)in->x / (sd == -1 ? 3 : sd));
    out->s = in->a / (in->b | 1) + in->a % (in->b | 1);
    out->t = (uint32_t)((int32_t)(in->a >> 1) % (int32_t)(in->b >> 2 | 1));
}

static void bits(const item_t *in, answer_t *out)
{
    out->r = (uint64_t)__builtin_popcountll(in->x) << 32 |
             (uint64_t)__builtin_clzll(in->y | 1) << 8 |
             (uint64_t)__builtin_ctzll(in->x | 1ull << 63);
    out->s = __builtin_bswap32(in->a) ^ (uint32_t)__builtin_clz(in->b | 1);
    out->t = (in->a >> (in->b & 31) | in->a << (-in->b & 31)) +
             (uint32_t)__builtin_ctz(in->b | 1u << 31);
}

static void wide_shift(const item_t *in, answer_t *out)
{
    unsigned n = in->a & 63;
    out->r = (in->x << n) ^ (in->y >> n) ^ (uint64_t)((int64_t)in->x >> n);
    out->s = (uint32_t)(in->x >> 32) + (uint32_t)((uint64_t)in->a * in->b >> 32);
    out->t = (uint32_t)((int64_t)(int32_t)in->a * (int32_t)in->b >> 32);
}

static void small_types(const item_t *in, answer_t *out)
{
    int8_t c = (int8_t)in->a;
    uint8_t d = (uint8_t)in->b;
    int16_t e = (int16_t)(in->a >> 8);
    uint16_t f = (uint16_t)(in->b >> 8);
    out->r = (uint64_t)(int64_t)(c * e) + (uint64_t)(d * f);
    out->s = (uint8_t)(c + d) | (uint32_t)(uint16_t)(e - f) << 16;
    out->t = (uint32_t)(c < e) + 2u * (d > f) + (uint32_t)(int16_t)(e >> (d & 7));
}

static void minimum(const item_t *in, answer_t *out)
{
    int64_t x = (int64_t)in->x, y = (int64_t)in->y;
    out->r = (uint64_t)(x < y ? x : y) ^ (in->x > in->y ? in->x : in->y);
    int32_t a = (int32_t)in->a, b = (int32_t)in->b;
    out->s = (uint32_t)(a < b ? a : b) ^ (in->a > in->b ? in->a : in->b);
    out->t = a > 0 && b < 0 ? 1 : a == b ? 2 : in->x < in->y ? 3 : 4;
}

static void collatz(const item_t *in, answer_t *out)
{
    uint32_t n = (in->a & 0xffff) + 1, steps = 0;
    while (n != 1 && steps < 300) {
        n = n & 1 ? 3 * n + 1 : n / 2;
        steps++;
    }
    out->r = n;
    out->s = steps;
    out->t = 0;
}

static void choices(const item_t *in, answer_t *out)
{
    uint32_t r = 0;
    for (unsigned k = 0; k < 8; k++) {
        switch (in->a >> 4 * k & 15) {
        case 0: r += in->b; break;
        case 1: r ^= in->b << k; break;
        case 2: r = r * 3 + 1; break;
        case 3: continue;
        case 4: r -= k; break;
        case 5: r = ~r; break;
        case 6: r >>= 1; break;
        case 7:
            if (r & 1) break;
            __attribute__((fallthrough));
        case 8: r += 7; break;
        case 9: r = r << 5 | r >> 27; break;
        default: r += k * k;
        }
    }
    out->r = 0;
    out->s = r;
    out->t = 0;
}

static void table(const item_t *in, answer_t *out)
{
    uint32_t local[16];
    for (unsigned k = 0; k < 16; k++) local[k] = in->a + k * in->b;
    for (unsigned k = 0; k < 32; k++) {
        unsigned i = (in->x >> k) & 15, j = (in->y >> k) & 15;
        uint32_t other = local[j];
        local[j] = local[i] ^ k;
        local[i] = other;
    }
    out->r = local[in->a & 15];
    out->s = local[0] + 3 * local[7] + 5 * local[15];
    out->t = 0;
}

static NOINLINE uint32_t mix(uint32_t h, uint32_t k)
{
    h ^= k * 0xcc9e2d51;
    return (h << 13 | h >> 19) * 5 + 0xe6546b64;
}

static NOINLINE uint64_t fibonacci(uint32_t n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static void calls(const item_t *in, answer_t *out)
{
    uint32_t h = in->a;
    for (unsigned k = 0; k < (in->b & 7); k++) h = mix(h, in->b + k);
    out->r = fibonacci(in->a & 7);
    out->s = h;
    out->t = 0;
}

static void single(const item_t *in, answer_t *out)
{
    float x = to_float(in->a), y = to_float(in->b), z = to_float((uint32_t)in->x);
    out->r = (uint64_t)float_word(x * y + z) << 32 | float_word(x / y);
    out->s = float_word(x + y - z);
    out->t = (uint32_t)(x < y) | (uint32_t)(x >= z) << 1 | (uint32_t)(int32_t)(x * 16) << 8;
}

static void single_any(const item_t *in, answer_t *out)
{
    float x = as_float(in->a), y = as_float(in->b);
    out->r = (uint64_t)float_word(x / y) << 32 | float_word(x * y);
    out->s = float_word(x + y);
    out->t = (uint32_t)(x < y) | (uint32_t)(x == y) << 1 | (uint32_t)(x != x) << 2;
}

static void twofold(const item_t *in, answer_t *out)
{
    double x = to_double(in->x), y = to_double(in->y);
    out->r = double_words(x / y + x * y);
    out->s = float_word((float)x) ^ (uint32_t)(int32_t)y;
    out->t = (uint32_t)(x < y) | (uint32_t)(x * y > 1.0) << 1 | (uint32_t)((double)in->a > y) << 2;
}

static void twofold_any(const item_t *in, answer_t *out)
{
    double x, y;
    __builtin_memcpy(&x, &in->x, 8);
    __builtin_memcpy(&y, &in->y, 8);
    out->r = double_words(x / y);
    out->s = (uint32_t)double_words(x + y);
    out->t = (uint32_t)double_words(x * y) ^ (uint32_t)(x >= y);
}

static void conversions(const item_t *in, answer_t *out)
{
    float f = to_float(in->a) * 1000;
    out->r = (uint64_t)(int64_t)(f * 1e6f) ^ double_words((double)(int64_t)in->x);
    out->s = float_word((float)in->b) ^ float_word((float)(int32_t)in->b);
    out->t = float_word((float)in->x) ^ (uint32_t)(int8_t)(int32_t)(f * 0.01f);
}

static void halves(const item_t *in, answer_t *out)
{
    _Float16 x = (_Float16)to_float(in->a), y = (_Float16)to_float(in->b);
    _Float16 p = x * y; // hosts may compute in single precision up to here
    _Float16 z = p + x;
    _Float16 q = x / y, four = z * (_Float16)4;
    out->r = float_word((float)z);
    out->s = float_word((float)q);
    out->t = (uint32_t)(x < y) | (uint32_t)(int32_t)four << 1;
}

static void copies(const item_t *in, answer_t *out)
{
    struct {
        uint8_t bytes[24];
    } block;
    __builtin_memcpy(&block, in, sizeof block);
    uint32_t sum = 0;
    for (unsigned k = 0; k < 24; k++) sum = sum * 31 + block.bytes[(k * 7) % 24];
    block.bytes[in->a & 15] ^= 0xff;
    out->r = 0;
    for (unsigned k = 0; k < 8; k++) out->r |= (uint64_t)block.bytes[k * 3] << 8 * k;
    out->s = sum;
    out->t = block.bytes[in->b & 15];
}

static void vectors(const item_t *in, answer_t *out)
{
    typedef uint16_t four __attribute__((vector_size(8)));
    four p, q;
    __builtin_memcpy(&p, &in->x, 8);
    __builtin_memcpy(&q, &in->y, 8);
    four r = p * q + (p ^ q) - (q >> 3);
    __builtin_memcpy(&out->r, &r, 8);
    out->s = 0;
    out->t = 0;
}

static const uint32_t small_words[4] = {3, 1, 4, 1}, large_words[4] = {~0u, 1u << 31, 1u << 30, 7};
static const uint32_t *const word_tables[2] = {small_words, large_words};

static void pointers(const item_t *in, answer_t *out)
{
    const uint32_t *words = word_tables[in->a & 1], *others = word_tables[in->b & 1];
    out->r = (uint64_t)words[in->b & 3] << 32 | others[in->x & 3];
    out->s = words == others;
    out->t = (uint32_t)(&words[in->b & 3] - words);
}

// More of them.
#include "atomics.h"
#include "floats.h"
#include "narrow.h"
#include "packed.h"
#include "words.h"

// The functions above, by name.
#define SAME(X)                                                                                    \
    X(arithmetic)                                                                                  \
    X(division)                                                                                    \
    X(bits)                                                                                        \
    X(wide_shift)                                                                                  \
    X(small_types)                                                                                 \
    X(minimum)                                                                                     \
    X(collatz)                                                                                     \
    X(choices)                                                                                     \
    X(table)                                                                                       \
    X(calls)                                                                                       \
    X(single)                                                                                      \
    X(single_any)                                                                                  \
    X(twofold)                                                                                     \
    X(twofold_any)                                                                                 \
    X(conversions)                                                                                 \
    X(halves)                                                                                      \
    X(copies)                                                                                      \
    X(vectors)                                                                                     \
    X(pointers)                                                                                    \
    PACKED(X)                                                                                      \
    ATOMIC(X)                                                                                      \
    FLOATS(X)                                                                                      \
    WORDS(X)                                                                                       \
    NARROW(X)

#endif
