// SPDX-License-Identifier: Apache-2.0
// Within the generator. An action is drafted first, with what it does and no order; then edges are
// added, and actions of their own where an edge needs them, until it is ordered after all that it
// has memory in common with; then it is placed at the end of the graph.
#ifndef GRAPHS_GENERATOR_H_
#define GRAPHS_GENERATOR_H_

#include "graphs/check.h"
#include "graphs/generate.h"
#include "graphs/order.h"
#include "graphs/random.h"

enum {
    CELL_SIZE = 32,   // control words: four for branches, at 16 three for counts
    CELL_COUNTS = 16, //
    CELLS = SPACE_SIZE / CELL_SIZE,
    SLOT_SIZE = 40,  // what a recording's data slots are at least bound to
    RESERVE = 14,    // actions that one draft may need for its edges
    THE_DRAFT = 255, // in place of the number it will get
    THE_DRAFT_CELL = 127,
};

typedef enum pool_state_t { POOL_NEW, POOL_LIVE, POOL_GONE } pool_state_t;

typedef struct generator_t {
    random_t random;
    const generate_options_t *options;
    graph_t *graph;
    order_t order;
    check_t check; // for what is tried
    accesses_t accesses[MAX_ACTIONS];
    uint8_t devices[MAX_DEVICES]; // those of the graph
    size_t device_count;
    uint32_t bits; // of keel_cap_t that they all have
    uint8_t threads;
    bool tight;                       // all pools are tight ones, and much used
    uint8_t control[MAX_DEVICES];     // the space that holds a device's cells
    int8_t cells[MAX_DEVICES][CELLS]; // the action that last wrote the whole cell, or -1
    bool reads_cell[MAX_RECORDINGS];  // the last slot is a cell that must have been written
    bool has_cell[MAX_RECORDINGS];    // the last slot is a cell
    uint8_t pool_states[MAX_SPACES];  // pool_state_t
    uint8_t pool_actions[MAX_SPACES]; // that changed it
    uint8_t pool_allocas[MAX_SPACES]; // that gave it its memory
    bool shot[MAX_RECORDINGS];        // used up
    bool aborts[MAX_RECORDINGS];      // holds a kernel that fails
    uint64_t failing;                 // actions that fail by themselves
    uint64_t fences;                  // submissions that stand for all before them on their queues
    action_t draft;
    uint64_t draft_firm; // actions it must be a certain successor of
    bool draft_fails;
    bool draft_pool; // changes a pool
    uint8_t draft_cells_read, draft_cells_written;
} generator_t;

// Appends operations to the draft; fewer than wished if there is no room.
void draft_ops(generator_t *generator, uint32_t count);
// Appends an operation, after a barrier if it races with those since the last.
bool list_add(generator_t *generator, op_t *ops, uint8_t *count, size_t most, const op_t *op,
              const span_t *table);
// A random operation on memory (fill, update, copy or kernel) with random spans of `device`.
bool memory_op(generator_t *generator, uint8_t device, bool kernels, op_t *op);
void kernel_grid(generator_t *generator, op_t *op);
op_t op_make(op_kind_t kind);

// A random number for what is given, of a place in the graph. It takes nothing from the generator's
// own numbers: with parameters or without, a seed makes the same graph otherwise.
static inline uint32_t given_random(const generator_t *generator, size_t index, size_t at)
{
    return (uint32_t)random_mix(generator->graph->seed << 16 | index << 8 | at);
}

void recording_generate(generator_t *generator, size_t index);

// Orders the draft and puts it into the graph. Returns its number; a host action for which there is
// no room is forgotten.
size_t draft_place(generator_t *generator);
// A point on a semaphore that the draft may signal next, knowing all before; false if none offers.
bool signal_choose(generator_t *generator, size_t knower, point_t *point);
// Lets a submission signal it.
void signal_add(generator_t *generator, size_t index, point_t point);

void schedule_generate(generator_t *generator);

#endif
