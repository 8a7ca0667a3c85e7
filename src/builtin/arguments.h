// SPDX-License-Identifier: Apache-2.0
// The kernels that drivers need themselves (kernels.c), and the block of arguments that each takes:
// raw, with addresses of the device in it. Drivers and device code include this header.
//
//   keel_timestamp   builtin_timestamp_t   1 item
//   keel_fill        builtin_fill_t        any number of groups of BUILTIN_GROUP share the work
//   keel_copy        builtin_copy_t        the same
//   keel_counts      builtin_counts_t      1 item
#ifndef KEEL_SRC_BUILTIN_ARGUMENTS_H_
#define KEEL_SRC_BUILTIN_ARGUMENTS_H_

#include <stdint.h>

enum { BUILTIN_GROUP = 256 }; // items in a group of a fill or a copy

// Writes the device's clock: nanoseconds on NVIDIA's GPUs, ticks of the constant clock on AMD's, of
// the counter of the processor on a host. If `ticks` is not 0, they are converted: that many take
// `ns` nanoseconds.
typedef struct builtin_timestamp_t {
    uint64_t target;
    uint32_t ns, ticks;
} builtin_timestamp_t;

typedef struct builtin_fill_t {
    uint64_t target, length; // bytes; multiples of the unit
    uint32_t pattern;        // repeated to 4 bytes
    uint32_t threads;        // in all groups
    uint32_t unit;           // bytes that one of them writes at a time: builtin_unit
    uint32_t reserved;
} builtin_fill_t;

// The same. Target and source do not overlap.
typedef struct builtin_copy_t {
    uint64_t target, source, length;
    uint32_t threads, unit;
} builtin_copy_t;

// The widest unit for addresses and lengths of these bits: the power of two, up to 16, that divides
// all of them. So words of up to 8 bytes at their alignment are written whole.
static inline uint32_t builtin_unit(uint64_t bits)
{
    bits |= 16;
    return (uint32_t)(bits & -bits);
}

// Looks whether a grid in memory is too large. If it is, and nothing failed before, writes `number`
// to `failed` and the grid behind it.
typedef struct builtin_counts_t {
    uint64_t counts; // 3 u32
    uint64_t failed; // 4 u32
    uint64_t most;   // groups in all
    uint32_t number;
    uint32_t most_x, most_y, most_z; // in each dimension
} builtin_counts_t;

#endif
