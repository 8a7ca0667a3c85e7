// SPDX-License-Identifier: Apache-2.0
// What launch.c keeps of a queue and of a device.
#ifndef KEEL_SRC_DRIVERS_STREAM_RUN_LAUNCH_H_
#define KEEL_SRC_DRIVERS_STREAM_RUN_LAUNCH_H_

#include "drivers/stream/run/run.h"

// Slots of a queue; graphs that a device keeps, and those it makes room for, at most.
enum { LAUNCH_SLOTS = 16, LAUNCH_GRAPHS = 32, LAUNCH_ROOM = 32 };

// A graph of one launch, in the hands of one thread at a time.
typedef struct launch_graph_t {
    stream_graph_h graph; // owned, as is `exec`
    stream_node_h node;
    stream_exec_h exec; // NULL: there is none
} launch_graph_t;

// For launches of a queue that differ in their arguments alone.
typedef struct launch_slot_t {
    uint64_t hash;        // of such launches
    uint64_t last;        // of the last that came here; it has the slot if it comes again
    bool refused;         // the vendor lets no graph do them
    launch_graph_t graph; // none: there is none left
} launch_slot_t;

struct stream_launch_slots_t {
    launch_slot_t list[LAUNCH_SLOTS];
    uint32_t unloads; // of the device when they came
};

// Graphs that no queue has.
struct stream_launch_pool_t {
    _Atomic uint32_t count; // written with the device's lock, which guards the list
    launch_graph_t list[LAUNCH_GRAPHS];
};

#endif
