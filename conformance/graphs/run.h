// SPDX-License-Identifier: Apache-2.0
// Runs a graph on real devices and tells what it saw.
#ifndef GRAPHS_RUN_H_
#define GRAPHS_RUN_H_

#include "graphs/env.h"
#include "graphs/graph.h"

typedef enum seen_state_t {
    SEEN_NOTHING, // the action was not begun
    SEEN_BEGUN,
    SEEN_REACHED, // submission: its point; others: the call succeeded
    SEEN_FAILED,
} seen_state_t;

// A status as far as it matters.
typedef struct cause_t {
    keel_code_t code;
    uint64_t numbers; // the injected failures that it quotes, by action
    char text[200];
} cause_t;

typedef struct seen_t {
    uint8_t state;             // seen_state_t
    cause_t cause;             // if it failed
    uint8_t bytes[SPACE_SIZE]; // a peek's
} seen_t;

typedef struct outcome_t {
    seen_t actions[MAX_ACTIONS];
    struct {
        bool failed;
        uint64_t value;
        cause_t cause;
    } semaphores[MAX_SEMAPHORES];
    bool readable[MAX_SPACES];
    uint8_t memory[MAX_SPACES][SPACE_SIZE];
    char problem[1000]; // what no graph explains: a call refused, a hang
    char left[200];     // objects that should be gone
} outcome_t;

typedef struct run_options_t {
    double limit_s; // a graph that takes longer hangs
    // For the tests of this tester: the submission `skip_action` waits for nothing.
    bool skip;
    size_t skip_action;
} run_options_t;

// False if the process is of no more use: something hangs. `outcome->problem` then says what is
// still pending.
bool run_graph(env_t *env, const graph_t *graph, const run_options_t *options, outcome_t *outcome);

#endif
