// SPDX-License-Identifier: Apache-2.0
// Which device library the host can work with: the one that was made of the same headers. Both
// sides work this number out, and the host compares.
#ifndef KEEL_SRC_DRIVERS_AMDGPU_DEVICE_VERSION_H_
#define KEEL_SRC_DRIVERS_AMDGPU_DEVICE_VERSION_H_

#include <keel/base.h>

#include "builtin/arguments.h"
#include "drivers/amdgpu/device/program.h"
#include "drivers/amdgpu/device/ring.h"
#include "drivers/amdgpu/device/shelf.h"

// To be counted up with changes of meaning that leave the structs as they were.
#define LIBRARY_REVISION UINT64_C(6)

// Every struct that both sides read or write, each for itself: a word that moves from one to the
// next changes the sum.
#define LIBRARY_MIX(sum, size)   (((sum) * 31 + (size)) & 0xffffffff)
#define LIBRARY_MIX4(a, b, c, d) LIBRARY_MIX(LIBRARY_MIX(LIBRARY_MIX(a, b), c), d)
#define LIBRARY_CELLS                                                                              \
    LIBRARY_MIX4(sizeof(cell_t), sizeof(cell_side_t), sizeof(cell_point_t), sizeof(wait_t))
#define LIBRARY_QUEUES                                                                             \
    LIBRARY_MIX4(sizeof(scheduler_t), sizeof(scheduler_args_t), sizeof(ring_queue_t),              \
                 sizeof(packet_t))
#define LIBRARY_RECORDS                                                                            \
    LIBRARY_MIX4(sizeof(record_t), sizeof(record_list_t), sizeof(advance_args_t),                  \
                 LIBRARY_MIX(sizeof(table_entry_t), sizeof(late_t)))
#define LIBRARY_PROGRAMS                                                                           \
    LIBRARY_MIX4(sizeof(program_t), sizeof(segment_t), sizeof(way_t), sizeof(program_command_t))
#define LIBRARY_COMMANDS                                                                           \
    LIBRARY_MIX4(sizeof(program_fill_t), sizeof(program_copy_t), sizeof(program_grid_t),           \
                 LIBRARY_MIX(sizeof(patch_t), sizeof(step_t)))
#define LIBRARY_ARGUMENTS                                                                          \
    LIBRARY_MIX4(sizeof(issue_args_t), sizeof(patch_args_t), sizeof(place_t),                      \
                 LIBRARY_MIX4(0, sizeof(builtin_timestamp_t), sizeof(builtin_fill_t),              \
                              sizeof(builtin_copy_t)))
#define LIBRARY_RING LIBRARY_MIX(sizeof(trace_ring_t), sizeof(ring_slot_t))
#define LIBRARY_SHELF                                                                              \
    LIBRARY_MIX4(sizeof(shelf_t), LIBRARY_MIX(sizeof(shelf_bin_t), sizeof(shelf_need_t)),          \
                 LIBRARY_MIX(sizeof(shelf_row_t), sizeof(shelf_side_t)), sizeof(handle_t))
#define LIBRARY_LAYOUT                                                                             \
    LIBRARY_MIX4(                                                                                  \
        LIBRARY_CELLS, LIBRARY_QUEUES, LIBRARY_MIX(LIBRARY_RECORDS, LIBRARY_RING),                 \
        LIBRARY_MIX4(LIBRARY_SHELF, LIBRARY_PROGRAMS, LIBRARY_COMMANDS, LIBRARY_ARGUMENTS))

// Of Keel, and of the library; the lower half is a sum of the sizes of what both sides share.
#define LIBRARY_VERSION                                                                            \
    (((uint64_t)KEEL_VERSION_MAJOR << 56 | (uint64_t)KEEL_VERSION_MINOR << 48 |                    \
      (uint64_t)KEEL_VERSION_PATCH << 40 | LIBRARY_REVISION << 32) |                               \
     LIBRARY_LAYOUT)

#endif
