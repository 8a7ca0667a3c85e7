// SPDX-License-Identifier: Apache-2.0
// Recordings as graphs.
//
// A recording has one instance per queue it is executed on. An instance is one graph, or several in
// a row for a very long recording, with a node for each command that works; commands between
// barriers lie side by side. What a node works on may change from one execution to the next, by the
// binding table, by parameters or by late allocations: the nodes that it touches are changed then,
// and if the vendor refuses that, the graphs are made anew. Parameters that the device reads itself
// (counts, values of blocks, the bytes of updates) have a place in the instance's memory, to which
// they are copied in front of the run. Where many dispatches may change, the device
// itself gives them their arguments, in front of the run, and the host only writes these down. A
// copy or fill that is refused a second time, as one between memory of the host and of the device
// in turns is, becomes a kernel, whose parameters can always be changed.
//
// graph.c keeps instances and runs them, build.c makes their graphs, work.c knows what each node
// does, rebind.c has the device change them, and execute.c decides what becomes a graph.
#ifndef KEEL_SRC_DRIVERS_STREAM_GRAPH_GRAPH_H_
#define KEEL_SRC_DRIVERS_STREAM_GRAPH_GRAPH_H_

#include "drivers/stream/run/run.h"

typedef enum graph_role_t {
    GRAPH_COMMAND, // what the command says
    GRAPH_COUNTS,  // looks at the grid of a dispatch
    GRAPH_GRID,    // gives a dispatch its grid
    GRAPH_BRANCH,  // sets the condition of a block
} graph_role_t;

typedef enum graph_kind_t {
    GRAPH_NOTHING, // no bytes, no groups
    GRAPH_LAUNCH,
    GRAPH_COPY,
    GRAPH_FILL,
} graph_kind_t;

// What a branch's node sets, and by what.
typedef struct graph_branch_t {
    uint64_t condition;
    uint32_t match;
    bool differs, first, loop;
} graph_branch_t;

typedef struct graph_node_t {
    const keel_command_t *command;
    uint32_t number; // of the command, from 1
    uint8_t role;    // graph_role_t
    uint8_t kind;    // graph_kind_t
    bool changes;    // works on slots or late allocations
    uint32_t piece;
    stream_node_h node;
    uint64_t handle; // by which the device changes it; 0: the host does
    union {
        graph_branch_t branch;
        uint64_t updatable; // GRAPH_GRID: the handle of the launch
        uint64_t staging;   // updates: where the bytes are
    } extra;
} graph_node_t;

// What a slot holds.
typedef struct graph_slot_t {
    bound_t span;
    bool changed; // since the nodes were last changed
} graph_slot_t;

typedef struct graph_piece_t {
    stream_graph_h graph;
    stream_exec_h exec;
    uint64_t room; // on a stream
} graph_piece_t;

typedef struct stream_prepared_t stream_prepared_t;

typedef struct graph_instance_t {
    struct graph_instance_t *next;
    const stream_queue_t *_Atomic queue; // whose it is, not looked into; NULL: it has gone
    keel_recording_t *recording;         // borrowed: it owns the instance
    stream_device_t *device;             // borrowed
    graph_piece_t *pieces;
    uint32_t piece_count, piece_capacity;
    bool moves;        // works on slots or late allocations, which may lie elsewhere each time
    bool late_changed; // one of the latter does
    bool all_changed;  // and so does all that slots hold
    bool stale;        // all nodes are to be changed
    bool guessed;      // they work on what is not theirs
    bool updatable;    // has launches that the device changes: grids, arguments or both
    bool fresh;        // and is to be uploaded first
    bool reports;      // has nodes that may find something out
    bool fronted;      // something is to be done in front of each run: for them, or parameters
    // Up to here is what every run looks at.
    graph_node_t *nodes;
    uint32_t node_count, node_capacity, late_count;
    uint32_t rebound;              // nodes that the device gives their arguments
    uint64_t arguments;            // bytes of these, in all
    graph_slot_t *slots;           // [slots] what the nodes work on now
    uint8_t *refusals;             // [commands] of changes of a copy or fill, up to GRAPH_STUBBORN
    uint64_t *late;                // [late_count] and where the late allocations were
    keel_buffer_t **buffers;       // [late_count] these; borrowed from the recording
    unsigned char *parameters;     // that the nodes have now; NULL: none has any
    uint64_t memory;               // of the device: report, anywhere, rounds of loops, parameters
    block_t *updates;              // the bytes of updates
    const keel_command_t *culprit; // of the last error in building or changing
} graph_instance_t;

// In the instance's memory.
enum {
    GRAPH_REPORT = 0,  // 4 u32
    GRAPH_ROUNDS = 64, // u32 per depth of loops
    GRAPH_ANYWHERE = 256,
    GRAPH_PARAMETERS = GRAPH_ANYWHERE + BIND_ANYWHERE, // those of the run, if it reads any
};

enum { GRAPH_STUBBORN = 2 }; // refusals after which a kernel does it

// graph.c
keel_status_t stream_graph_run(stream_run_t *run, const keel_cmd_execute_t *c, stream_step_t *step);
keel_status_t stream_graph_prepare(keel_recording_t *recording, stream_queue_t *queue);
void stream_graphs_orphan(stream_device_t *device, const stream_queue_t *queue); // it is gone
void stream_recording_discard(keel_recording_t *recording);

// Whether the device itself reads parameters, in the instance's memory.
static inline bool graph_reads_parameters(const graph_instance_t *instance)
{
    const keel_parameter_need_t *need = instance->recording->parameters;
    return need && need->read;
}

// build.c
// Makes the graphs of an instance, for what the context says. Errors name the command.
keel_status_t graph_build(graph_instance_t *instance, const stream_context_t *context);
void graph_unbuild(graph_instance_t *instance); // also half-made ones

// work.c
typedef struct graph_work_t {
    graph_kind_t kind;
    stream_launch_t launch;
    bound_copy_t copy;
    bound_fill_t fill;
    union {
        builtin_fill_t fill;
        builtin_copy_t copy;
        builtin_counts_t counts;
        stream_grid_args_t grid;
        stream_branch_args_t branch;
        builtin_timestamp_t timestamp;
    } own;
    stream_arguments_t arguments;
} graph_work_t;
keel_status_t graph_work_make(const graph_instance_t *instance, const stream_context_t *context,
                              const graph_node_t *node, graph_work_t *work);
keel_status_t graph_work_add(const graph_instance_t *instance, const stream_place_t *place,
                             const graph_work_t *work, stream_node_h *node);
keel_status_t graph_work_set(const graph_instance_t *instance, const graph_node_t *node,
                             const graph_work_t *work);

// rebind.c: launches that the device gives their arguments.
// Whether it is worth it for a recording.
bool graph_rebind_pays(const stream_device_t *device, const keel_commands_t *commands);
// Has the device change the node from now on, if it can; if not, the host does.
keel_status_t graph_rebind_offer(graph_instance_t *instance, graph_node_t *node,
                                 const graph_work_t *work);
// New arguments: as many as are added, all at once in front of the next run.
typedef struct graph_rebinder_t {
    stream_rebind_t *table; // in the run's staging
    uint64_t address;       // of it, for the device
    uint64_t end;           // bytes of it, and of the arguments behind it
    uint32_t count;
} graph_rebinder_t;
keel_status_t graph_rebind_begin(stream_run_t *run, const graph_instance_t *instance,
                                 graph_rebinder_t *rebinder);
void graph_rebind_add(graph_rebinder_t *rebinder, const graph_node_t *node,
                      const stream_launch_t *launch);
keel_status_t graph_rebind_end(stream_run_t *run, graph_instance_t *instance,
                               const graph_rebinder_t *rebinder);

// execute.c
// Issues a recording, as a graph or command by command. Unless *step says that it is done, the next
// call goes on with it. Errors name the command. The issuer's.
keel_status_t stream_execute(stream_run_t *run, const keel_cmd_execute_t *c, stream_step_t *step);
keel_status_t stream_recording_prepare(keel_recording_t *recording, keel_queue_t *queue);

#endif
