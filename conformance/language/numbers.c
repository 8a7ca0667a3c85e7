// SPDX-License-Identifier: Apache-2.0
// Kernels that use all of <keel/kernel.h>, compiled for the host and for GPUs.
#include <keel/kernel.h>

#include "numbers.h"

KEEL_KERNEL(numbers, KEEL_GROUP(64), KEEL_IN(item_t, in), KEEL_OUT(answer_t, out))
{
    KEEL_ITEMS {
        uint64_t i = keel_global_id(0);
        if (i >= keel_count(in)) continue;
        float x = in[i].x, y = in[i].y;
        uint32_t a = in[i].a, b = in[i].b;
        out[i] = (answer_t){
            .sqrt = keel_sqrt(x),
            .exp = keel_exp(x),
            .exp2 = keel_exp2(x),
            .log = keel_log(x),
            .log2 = keel_log2(x),
            .pow = keel_pow(x, y),
            .sin = keel_sin(x),
            .cos = keel_cos(x),
            .tanh = keel_tanh(x),
            .erf = keel_erf(x),
            .rsqrt = keel_rsqrt(x),
            .fma = keel_fma(x, y, 1.0f),
            .floor = keel_floor(x),
            .ceil = keel_ceil(x),
            .trunc = keel_trunc(x),
            .rint = keel_rint(x),
            .min = keel_min(x, y),
            .max = keel_max(x, y),
            .quotient = x / y,
            .half = keel_half_of(x).bits,
            .from_half = keel_bits_of(keel_float_of_half((keel_half_t){(uint16_t)a})),
            .bfloat = keel_bfloat_of(x).bits,
            .from_bfloat = keel_bits_of(keel_float_of_bfloat((keel_bfloat_t){(uint16_t)a})),
            .dot_signed = (uint32_t)keel_dot4_signed(a, b, (int32_t)(a ^ b)),
            .dot_unsigned = keel_dot4_unsigned(a, b, a ^ b),
        };
    }
}

KEEL_KERNEL(doubles, KEEL_GROUP(64), KEEL_IN(item_t, in), KEEL_OUT(doubles_t, out))
{
    KEEL_ITEMS {
        uint64_t i = keel_global_id(0);
        if (i >= keel_count(in)) continue;
        item_t item = in[i];
        double x = double_of(&item), y = item.y;
        out[i] = (doubles_t){
            .exp = keel_exp(x),
            .exp2 = keel_exp2(x),
            .log = keel_log(x),
            .log2 = keel_log2(x),
            .sin = keel_sin(x),
            .cos = keel_cos(x),
            .pow = keel_pow(x, y),
            .power = keel_pow(positive_of(&item), x),
            .tanh = keel_tanh(x),
            .erf = keel_erf(x),
            .rsqrt = keel_rsqrt(x),
            .mad = keel_mad(x, y, 1.0f),
            .bits = keel_bits_of(x),
            .sqrt = keel_sqrt(x),
            .fma = keel_fma(x, y, 1.0),
            .floor = keel_floor(x),
            .rint = keel_rint(x),
            .min = keel_min(x, y),
            .max = keel_max(x, y),
            .clamp = keel_clamp(x, -1.0, 1.0),
            .quotient = x / y,
        };
    }
}

KEEL_KERNEL(integers, KEEL_GROUP(64), KEEL_IN(item_t, in), KEEL_OUT(integers_t, out))
{
    KEEL_ITEMS {
        uint64_t i = keel_global_id(0);
        if (i >= keel_count(in)) continue;
        item_t item = in[i];
        uint32_t x = integer_of(&item), y = item.b;
        uint64_t lx = long_of(&item), ly = (uint64_t)item.b << 32 | item.a;
        out[i] = (integers_t){
            .popcount = keel_popcount(x),
            .clz = keel_clz(x),
            .ctz = keel_ctz(x),
            .reverse = keel_reverse(x),
            .rotate = keel_rotate(x, y),
            .mulhi = keel_mulhi(x, y),
            .min = keel_min(x, y),
            .max = keel_max(x, y),
            .clamp = keel_clamp(x, 1000u, 2000000000u),
            .dot2_signed = (uint32_t)keel_dot2_signed(item.a, y, (int32_t)x),
            .dot2_unsigned = keel_dot2_unsigned(item.a, y, x),
            .long_popcount = keel_popcount(lx),
            .long_clz = keel_clz(lx),
            .long_ctz = keel_ctz(lx),
            .signed_mulhi = keel_mulhi((int32_t)x, (int32_t)y),
            .signed_min = keel_min((int32_t)x, (int32_t)y),
            .signed_max = keel_max((int32_t)x, (int32_t)y),
            .signed_clamp = keel_clamp((int32_t)x, -5, 5),
            .abs = keel_abs((int32_t)y),
            .long_reverse = keel_reverse(lx),
            .long_rotate = keel_rotate(lx, y),
            .long_mulhi = keel_mulhi(lx, ly),
            .long_min = keel_min(lx, ly),
            .long_max = keel_max(lx, ly),
            .signed_long_mulhi = keel_mulhi((int64_t)lx, (int64_t)ly),
            .signed_long_min = keel_min((int64_t)lx, (int64_t)ly),
            .signed_long_max = keel_max((int64_t)lx, (int64_t)ly),
            .long_abs = keel_abs((int64_t)ly),
        };
    }
}

KEEL_KERNEL(subgroups, KEEL_GROUP(128), KEEL_IN(uint32_t, in), KEEL_OUT(subgroup_t, out))
{
    KEEL_ITEMS {
        uint32_t x = in[keel_global_id(0)], last = keel_subgroup_size() - 1;
        out[keel_global_id(0)] = (subgroup_t){
            .size = keel_subgroup_size(),
            .item = keel_subgroup_item(),
            .shuffled = keel_subgroup_shuffle(x, last - keel_subgroup_item()),
            .scan = keel_subgroup_scan(x),
            .any = keel_subgroup_any(x % 128 == 16),
            .all = keel_subgroup_all(x % 256 != 17),
            .least = keel_subgroup_min((int32_t)x),
            .float_scan = keel_subgroup_scan((float)(x % 64)),
            .float_sum = keel_subgroup_add((float)(x % 64)),
            .ballot = keel_subgroup_ballot(x & 1),
            .long_scan = keel_subgroup_scan((uint64_t)x),
            .long_most = keel_subgroup_max(-(int64_t)x),
            .double_sum = keel_subgroup_add((double)x),
        };
    }
}

// `before`: the word that x was exchanged for.
static void add_wide(KEEL_AT_DEVICE tally_t *tally, uint32_t x, uint32_t before)
{
#if KEEL_MSL
    (void)x, (void)before;
    tally->narrow = 1;
#else
    keel_atomic_add(&tally->long_sum, (int64_t)x << 8);
    keel_atomic_min(&tally->long_least, -(int64_t)x);
    keel_atomic_max(&tally->long_most, (int64_t)x << 20);
    keel_atomic_or(&tally->long_any, (uint64_t)x << 32);
    keel_atomic_add_double(&tally->double_sum, (double)x);
    keel_atomic_add(&tally->long_sum, (int64_t)((uint64_t)before << 40));
#endif
}

KEEL_KERNEL(atomics, KEEL_GROUP(128), KEEL_IN(uint32_t, in), KEEL_INOUT(tally_t, tally),
            KEEL_LOCAL(uint32_t, sum, 1))
{
    KEEL_ONCE {
        sum[0] = 0;
    }
    KEEL_BARRIER();
    KEEL_ITEMS {
        uint32_t x = in[keel_global_id(0)];
        keel_atomic_add(&tally->sum, x);
        keel_atomic_min(&tally->least, x);
        keel_atomic_max(&tally->most, x);
        keel_atomic_and(&tally->common, x);
        keel_atomic_or(&tally->any, x);
        keel_atomic_xor(&tally->odd, x);
        keel_atomic_min(&tally->least_signed, (int32_t)x);
        keel_atomic_max(&tally->most_signed, (int32_t)x);
        keel_atomic_add_float(&tally->float_sum, (float)(x % 4));
        keel_atomic_min_float(&tally->float_least, (float)(int32_t)x);
        keel_atomic_max_float(&tally->float_most, (float)(int32_t)x);
        uint32_t seen = keel_atomic_load(&tally->first);
        while (seen < 7) {
            uint32_t found = keel_atomic_compare(&tally->first, seen, seen + 1);
            if (found == seen) break;
            seen = found;
        }
        uint32_t before = keel_atomic_exchange(&tally->swapped, x);
        add_wide(tally, x, before);
        keel_atomic_add(&sum[0], x);
        uint32_t of_subgroup = keel_subgroup_add(x), most = keel_subgroup_max(x);
        if (keel_subgroup_item() == keel_subgroup_size() - 1) {
            keel_atomic_add(&tally->subgroup_sum, of_subgroup);
            keel_atomic_max(&tally->subgroup_most, most);
        }
    }
    KEEL_BARRIER();
    KEEL_ONCE {
        keel_atomic_add(&tally->local_sum, sum[0]);
    }
}

// With as much workgroup memory as GPUs have that they do not give to everybody.
KEEL_KERNEL(reverse, KEEL_GROUP(128), KEEL_IN(uint32_t, in), KEEL_OUT(uint32_t, out),
            KEEL_LOCAL(uint32_t, words, REVERSED))
{
    uint32_t first = keel_group_id(0) * REVERSED;
    for (uint32_t i = 0; i < REVERSED; i += keel_group_items()) {
        KEEL_ITEMS {
            words[i + keel_local_id(0)] = in[first + i + keel_local_id(0)];
        }
    }
    KEEL_BARRIER();
    for (uint32_t i = 0; i < REVERSED; i += keel_group_items()) {
        KEEL_ITEMS {
            out[first + i + keel_local_id(0)] = words[REVERSED - 1 - i - keel_local_id(0)];
        }
    }
}

// Through workgroup memory, with a variable that outlives a region, on a grid of two dimensions.
typedef float row_t[17];
KEEL_KERNEL(transpose, KEEL_GROUP(16, 16), KEEL_IN(float, in), KEEL_OUT(float, out),
            KEEL_CONSTANTS(uint32_t, n), KEEL_LOCAL(row_t, tile, 16))
{
    KEEL_PRIVATE(float, bias);
    KEEL_ITEMS {
        keel_mine(bias) = (float)keel_local_index();
        tile[keel_local_id(1)][keel_local_id(0)] = in[keel_global_id(1) * n + keel_global_id(0)];
    }
    KEEL_BARRIER();
    KEEL_ITEMS {
        uint64_t x = keel_group_id(1) * keel_group_size(1) + keel_local_id(0);
        uint64_t y = keel_group_id(0) * keel_group_size(0) + keel_local_id(1);
        out[y * n + x] = tile[keel_local_id(0)][keel_local_id(1)] + keel_mine(bias);
    }
}

// Almost all the private memory that a group may have on every target.
typedef struct memory_t {
    uint32_t words[REMEMBERED];
} memory_t;

KEEL_KERNEL(remember, KEEL_GROUP(REMEMBERING), KEEL_IN(uint32_t, in), KEEL_OUT(uint32_t, out))
{
    KEEL_PRIVATE(memory_t, memory);
    KEEL_ITEMS {
        for (uint32_t i = 0; i < REMEMBERED; i++)
            keel_mine(memory).words[i] = in[(keel_global_id(0) + i) % keel_count(in)];
    }
    KEEL_BARRIER();
    KEEL_ITEMS {
        uint64_t i = keel_global_id(0);
        out[i] = keel_mine(memory).words[in[i] % REMEMBERED];
    }
}
