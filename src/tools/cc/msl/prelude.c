// SPDX-License-Identifier: Apache-2.0
// What stands before the kernels of a text.
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tools/cc/msl/msl.h"
#include "tools/cc/msl/text.h"

// As text, in lines that format.c makes.
#define MSL(...) #__VA_ARGS__ "\n",

static const char *const functions[] = {
    MSL(inline void keel_barrier() {
        threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    })
        MSL(
            inline ulong keel_ballot(uint p) {
                return ulong(simd_vote::vote_t(simd_ballot(p != 0)));
            } inline uint keel_shuffle(uint x, uint from, uint lanes) {
                return simd_shuffle(x, ushort(from & (lanes - 1)));
            })
            MSL(
                inline ulong keel_high(ulong a, ulong b) {
                    ulong low = (a & 0xffffffffu) * (b & 0xffffffffu);
                    ulong one = (a >> 32) * (b & 0xffffffffu) + (low >> 32);
                    ulong two = (a & 0xffffffffu) * (b >> 32) + (one & 0xffffffffu);
                    return (a >> 32) * (b >> 32) + (one >> 32) + (two >> 32);
                } inline ulong keel_swap(ulong x) {
                    ulong y = 0;
                    for (uint i = 0; i < 64; i += 8) y = y << 8 | (x >> i & 255);
                    return y;
                } inline uint keel_funnel_left(uint a, uint b, uint n) {
                    return n & 31 ? a << (n & 31) | b >> (32 - (n & 31)) : a;
                } inline ulong keel_funnel_left(ulong a, ulong b, ulong n) {
                    return n & 63 ? a << (n & 63) | b >> (64 - (n & 63)) : a;
                } inline uint keel_funnel_right(uint a, uint b, uint n) {
                    return n & 31 ? a << (32 - (n & 31)) | b >> (n & 31) : b;
                } inline ulong keel_funnel_right(ulong a, ulong b, ulong n) {
                    return n & 63 ? a << (64 - (n & 63)) | b >> (n & 63) : b;
                })
                MSL(
                    template <class P> ushort keel_get_ushort(P p) {
                        return ushort(p[0] | p[1] << 8);
                    } template <class P>
                    uint keel_get_uint(P p) {
                        return uint(p[0]) | uint(p[1]) << 8 | uint(p[2]) << 16 | uint(p[3]) << 24;
                    } template <class P>
                    ulong keel_get_ulong(P p) {
                        return ulong(keel_get_uint(p)) | ulong(keel_get_uint(p + 4)) << 32;
                    } template <class P>
                    void keel_put_ushort(P p, ushort x) {
                        p[0] = uchar(x);
                        p[1] = uchar(x >> 8);
                    } template <class P>
                    void keel_put_uint(P p, uint x) {
                        for (uint i = 0; i < 4; i++) p[i] = uchar(x >> 8 * i);
                    } template <class P>
                    void keel_put_ulong(P p, ulong x) {
                        for (uint i = 0; i < 8; i++) p[i] = uchar(x >> 8 * i);
                    })
                    MSL(
                        template <class T, class F> void keel_copy(T to, F from, ulong n) {
                            if (ulong(to) <= ulong(from)) {
                                for (ulong i = 0; i < n; i++) to[i] = from[i];
                            } else {
                                for (ulong i = n; i > 0; i--) to[i - 1] = from[i - 1];
                            }
                        } template <class T>
                        void keel_set(T to, uint x, ulong n) {
                            for (ulong i = 0; i < n; i++) to[i] = uchar(x);
                        })
                        MSL(
                            template <class P>
                            uint keel_atomic_compare(P p, uint expected, uint x) {
                                uint old = expected;
                                while (!atomic_compare_exchange_weak_explicit(
                                    p, &old, x, memory_order_relaxed, memory_order_relaxed)) {
                                    if (old != expected) break;
                                }
                                return old;
                            } template <class P>
                            float keel_atomic_fadd(P p, float x) {
                                uint old = atomic_load_explicit(p, memory_order_relaxed);
                                while (!atomic_compare_exchange_weak_explicit(
                                    p, &old, as_type<uint>(as_type<float>(old) + x),
                                    memory_order_relaxed, memory_order_relaxed)) {
                                }
                                return as_type<float>(old);
                            } template <class P>
                            float keel_atomic_fmin(P p, float x) {
                                uint old = atomic_load_explicit(p, memory_order_relaxed);
                                while (x < as_type<float>(old) &&
                                       !atomic_compare_exchange_weak_explicit(
                                           p, &old, as_type<uint>(x), memory_order_relaxed,
                                           memory_order_relaxed)) {
                                }
                                return as_type<float>(old);
                            } template <class P>
                            float keel_atomic_fmax(P p, float x) {
                                uint old = atomic_load_explicit(p, memory_order_relaxed);
                                while (x > as_type<float>(old) &&
                                       !atomic_compare_exchange_weak_explicit(
                                           p, &old, as_type<uint>(x), memory_order_relaxed,
                                           memory_order_relaxed)) {
                                }
                                return as_type<float>(old);
                            })};

static const char *const doubles[] = {
#include "tools/cc/msl/double.inc"
};

// A fence is a part of MSL from version 3.2 on.
static const char fence[] = "inline void keel_fence() {\n"
                            "#if defined(__METAL_VERSION__) && __METAL_VERSION__ >= 320\n"
                            "atomic_thread_fence(mem_flags::mem_device | "
                            "mem_flags::mem_threadgroup, memory_order_seq_cst, "
                            "thread_scope_device);\n"
                            "#endif\n"
                            "}\n";

// Whether the kernels call one of the functions that a text defines. Texts define several that
// belong together; their names begin alike, or are looked for one by one.
static bool is_called(const char *text, const char *code)
{
    static const char mark[] = "keel_";
    for (const char *at = text; (at = strstr(at, mark)); at += sizeof mark) {
        size_t length = strcspn(at, "( ");
        char name[64];
        if (length >= sizeof name || at[length] != '(') continue;
        snprintf(name, sizeof name, "%.*s(", (int)length, at);
        if (strstr(code, name)) return true;
    }
    return false;
}

void prelude_write(text_t *out, const char *code)
{
    text_add(out, "#include <metal_stdlib>\nusing namespace metal;\n");
    text_add(out, "#if defined(__METAL_VERSION__) && __METAL_VERSION__ >= 320\n"
                  "#pragma METAL fp contract(off)\n#endif\n");
    if (is_called(fence, code)) text_add(out, "%s", fence);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (is_called(functions[i], code)) text_add(out, "%s", functions[i]);
    if (!strstr(code, "keel_double_")) return;
    for (size_t i = 0; i < sizeof doubles / sizeof doubles[0]; i++) text_add(out, "%s", doubles[i]);
}
