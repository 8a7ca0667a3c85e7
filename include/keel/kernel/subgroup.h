// SPDX-License-Identifier: Apache-2.0
// Part of <keel/kernel.h>: sub-groups, the items that a machine runs in step: 32 or 64 on GPUs, 1
// on a processor. A kernel that is right for any size is right everywhere. Inside regions, where
// all items of the sub-group pass. A group that uses them has a multiple of 64 items, so that no
// sub-group lacks some: in the body of a kernel another group does not compile, for any target. In
// a helper function the compiler cannot know the group.
//
//   keel_subgroup_size()             uint32_t: keel_caps_t.subgroup_size of the device
//   keel_subgroup_item()             which of them this is
//   keel_subgroup_shuffle(x, item)   the x of another item
//   keel_subgroup_add(x)  keel_subgroup_min(x)  keel_subgroup_max(x)     over all, to all
//   keel_subgroup_scan(x)            the sum of the x of this item and of those before it
//   keel_subgroup_any(p)  keel_subgroup_all(p)
//   keel_subgroup_ballot(p)          uint64_t: bit i is set if p holds for item i
//
// x is float, double or an integer of 32 or 64 bits.
//
// Floats are added as a tree: the result differs between sizes by its rounding.
#ifndef KEEL_KERNEL_SUBGROUP_H_
#define KEEL_KERNEL_SUBGROUP_H_

// Nothing, if the kernel's group is made of whole sub-groups.
#define KEEL_WHOLE_                                                                                \
    (void)sizeof(struct {                                                                          \
        _Static_assert(_Generic(keel_ragged, char(*)[2]: 0, default: 1),                           \
                       "a group with sub-group operations has a multiple of 64 items: all items "  \
                       "of a sub-group take part, and it has up to 64");                           \
        char none;                                                                                 \
    })

#if KEEL_HOST

KEEL_INLINE_ uint32_t keel_subgroup_size(void)
{
    return 1;
}

#define keel_subgroup_item()           0u
#define keel_subgroup_shuffle(x, item) (KEEL_WHOLE_, (void)(item), KEEL_ALONE_(x))
#define keel_subgroup_add(x)           (KEEL_WHOLE_, KEEL_ALONE_(x))
#define keel_subgroup_min(x)           (KEEL_WHOLE_, KEEL_ALONE_(x))
#define keel_subgroup_max(x)           (KEEL_WHOLE_, KEEL_ALONE_(x))
#define keel_subgroup_scan(x)          (KEEL_WHOLE_, KEEL_ALONE_(x))
#define keel_subgroup_ballot(p)        (KEEL_WHOLE_, (uint64_t)!!(p))
#define keel_subgroup_any(p)           (KEEL_WHOLE_, !!(p))
#define keel_subgroup_all(p)           (KEEL_WHOLE_, !!(p))

// x, of a type that a GPU takes.
#define KEEL_ALONE_(x)                                                                             \
    _Generic((x), float: (x), double: (x), int32_t: (x), uint32_t: (x), int64_t: (x), uint64_t: (x))

#else

#if KEEL_NVPTX

KEEL_INLINE_ uint32_t keel_subgroup_size(void)
{
    return 32;
}

KEEL_INLINE_ uint32_t keel_subgroup_item(void)
{
    return __nvvm_read_ptx_sreg_laneid();
}

KEEL_INLINE_ uint32_t keel_shuffle_(uint32_t x, uint32_t item)
{
    return (uint32_t)__nvvm_shfl_sync_idx_i32(0xffffffffu, (int)x, (int)item, 31);
}

KEEL_INLINE_ uint64_t keel_ballot_(int p)
{
    return (uint32_t)__nvvm_vote_ballot_sync(0xffffffffu, p);
}

#elif KEEL_MSL

__attribute__((const)) uint32_t keel_msl_lanes(void);
__attribute__((const)) uint32_t keel_msl_lane(void);
__attribute__((convergent)) uint32_t keel_msl_shuffle(uint32_t x, uint32_t item);
__attribute__((convergent)) uint64_t keel_msl_ballot(uint32_t p);

KEEL_INLINE_ uint32_t keel_subgroup_size(void)
{
    return keel_msl_lanes();
}

KEEL_INLINE_ uint32_t keel_subgroup_item(void)
{
    return keel_msl_lane();
}

KEEL_INLINE_ uint32_t keel_shuffle_(uint32_t x, uint32_t item)
{
    return keel_msl_shuffle(x, item);
}

KEEL_INLINE_ uint64_t keel_ballot_(int p)
{
    return keel_msl_ballot((uint32_t)p);
}

#else

// Lanes of a wave, as clang has them unless it is told otherwise; then it refuses the ballot below.
// Its own macro for them is gone in clang 22.
#if defined(__GFX10__) || defined(__GFX11__) || defined(__GFX12__)
#define KEEL_WAVE_ 32
#else
#define KEEL_WAVE_ 64
#endif

KEEL_INLINE_ uint32_t keel_subgroup_size(void)
{
    return KEEL_WAVE_;
}

KEEL_INLINE_ uint32_t keel_subgroup_item(void)
{
    uint32_t low = __builtin_amdgcn_mbcnt_lo(~0u, 0);
    return KEEL_WAVE_ == 64 ? __builtin_amdgcn_mbcnt_hi(~0u, low) : low;
}

KEEL_INLINE_ uint32_t keel_shuffle_(uint32_t x, uint32_t item)
{
    return (uint32_t)__builtin_amdgcn_ds_bpermute((int)(item * 4), (int)x);
}

KEEL_INLINE_ uint64_t keel_ballot_(int p)
{
#if KEEL_WAVE_ == 64
    return __builtin_amdgcn_ballot_w64(p);
#else
    return __builtin_amdgcn_ballot_w32(p);
#endif
}

#endif

#define KEEL_SUBGROUP_(name, type)                                                                 \
    KEEL_INLINE_ type keel_shuffle_##name(type x, uint32_t item)                                   \
    {                                                                                              \
        uint32_t words[sizeof(type) / 4];                                                          \
        __builtin_memcpy(words, &x, sizeof x);                                                     \
        for (unsigned i = 0; i < sizeof(type) / 4; i++) words[i] = keel_shuffle_(words[i], item);  \
        __builtin_memcpy(&x, words, sizeof x);                                                     \
        return x;                                                                                  \
    }                                                                                              \
    KEEL_INLINE_ type keel_add_##name(type x)                                                      \
    {                                                                                              \
        for (uint32_t i = keel_subgroup_size() / 2; i; i /= 2)                                     \
            x += keel_shuffle_##name(x, keel_subgroup_item() ^ i);                                 \
        return x;                                                                                  \
    }                                                                                              \
    KEEL_INLINE_ type keel_min_##name(type x)                                                      \
    {                                                                                              \
        for (uint32_t i = keel_subgroup_size() / 2; i; i /= 2) {                                   \
            type y = keel_shuffle_##name(x, keel_subgroup_item() ^ i);                             \
            x = y < x ? y : x;                                                                     \
        }                                                                                          \
        return x;                                                                                  \
    }                                                                                              \
    KEEL_INLINE_ type keel_max_##name(type x)                                                      \
    {                                                                                              \
        for (uint32_t i = keel_subgroup_size() / 2; i; i /= 2) {                                   \
            type y = keel_shuffle_##name(x, keel_subgroup_item() ^ i);                             \
            x = y > x ? y : x;                                                                     \
        }                                                                                          \
        return x;                                                                                  \
    }                                                                                              \
    KEEL_INLINE_ type keel_scan_##name(type x)                                                     \
    {                                                                                              \
        uint32_t item = keel_subgroup_item();                                                      \
        for (uint32_t i = 1; i < keel_subgroup_size(); i *= 2) {                                   \
            type y = keel_shuffle_##name(x, item - i);                                             \
            x = item >= i ? (type)(x + y) : x;                                                     \
        }                                                                                          \
        return x;                                                                                  \
    }

KEEL_SUBGROUP_(float, float)
KEEL_SUBGROUP_(double, double)
KEEL_SUBGROUP_(signed, int32_t)
KEEL_SUBGROUP_(unsigned, uint32_t)
KEEL_SUBGROUP_(signed_long, int64_t)
KEEL_SUBGROUP_(unsigned_long, uint64_t)

#define KEEL_SUBGROUP_OF_(name, x)                                                                 \
    _Generic((x),                                                                                  \
        float: keel_##name##_float,                                                                \
        double: keel_##name##_double,                                                              \
        int32_t: keel_##name##_signed,                                                             \
        uint32_t: keel_##name##_unsigned,                                                          \
        int64_t: keel_##name##_signed_long,                                                        \
        uint64_t: keel_##name##_unsigned_long)
#define keel_subgroup_shuffle(x, item) (KEEL_WHOLE_, KEEL_SUBGROUP_OF_(shuffle, x)(x, item))
#define keel_subgroup_add(x)           (KEEL_WHOLE_, KEEL_SUBGROUP_OF_(add, x)(x))
#define keel_subgroup_min(x)           (KEEL_WHOLE_, KEEL_SUBGROUP_OF_(min, x)(x))
#define keel_subgroup_max(x)           (KEEL_WHOLE_, KEEL_SUBGROUP_OF_(max, x)(x))
#define keel_subgroup_scan(x)          (KEEL_WHOLE_, KEEL_SUBGROUP_OF_(scan, x)(x))
#define keel_subgroup_ballot(p)        (KEEL_WHOLE_, keel_ballot_((p) ? 1 : 0))
#define keel_subgroup_any(p)           (KEEL_WHOLE_, keel_ballot_((p) ? 1 : 0) != 0)
#define keel_subgroup_all(p)           (KEEL_WHOLE_, keel_ballot_((p) ? 0 : 1) == 0)

#endif

#endif
