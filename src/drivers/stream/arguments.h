// SPDX-License-Identifier: Apache-2.0
// Blocks of arguments of the built-in kernels that change a graph while it runs, beside those that
// every device has (builtin/arguments.h). Device code includes this header too.
#ifndef KEEL_SRC_DRIVERS_STREAM_ARGUMENTS_H_
#define KEEL_SRC_DRIVERS_STREAM_ARGUMENTS_H_

#include "builtin/arguments.h"

enum { STREAM_REBIND_GROUP = 64 }; // items in a group of STREAM_REBIND

// As builtin_counts_t, and gives a launch of the graph that grid. One that is too large, or has a
// zero in it, disables the launch.
typedef struct stream_grid_args_t {
    builtin_counts_t counts;
    uint64_t node; // as graph_updatable gave it
} stream_grid_args_t;

// Gives launches of a graph new arguments, with an item for each, in any number of groups.
typedef struct stream_rebind_args_t {
    uint64_t table, count; // of stream_rebind_t
} stream_rebind_args_t;

typedef struct stream_rebind_t {
    uint64_t node; // as graph_updatable gave it
    uint64_t arguments, size;
} stream_rebind_t;

// Reads a value and sets a condition to whether it is `match`, or with `differs` whether it is not.
// For a loop `rounds` counts how often; when `most` is passed, the condition is 0 and `number` is
// written to `failed`, `most` behind it, unless something failed before.
typedef struct stream_branch_args_t {
    uint64_t value;     // u32
    uint64_t condition; // as graph_condition gave it
    uint64_t rounds;    // u32, set to 0 when `first`; 0: not a loop that is counted
    uint64_t failed;    // 4 u32
    uint32_t match, differs;
    uint32_t most, number;
    uint32_t first, reserved;
} stream_branch_args_t;

#endif
