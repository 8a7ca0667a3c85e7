// SPDX-License-Identifier: Apache-2.0
// Compares what was seen of a graph with what its verdict and the model say.
#ifndef GRAPHS_JUDGE_H_
#define GRAPHS_JUDGE_H_

#include "graphs/run.h"
#include "graphs/verdict.h"

// What a complaint is about.
typedef enum complaint_t {
    COMPLAINT_RUN = 1,       // a hang, a crash, a call refused
    COMPLAINT_ACTION = 2,    // an action's outcome
    COMPLAINT_SEMAPHORE = 4, //
    COMPLAINT_CAUSE = 8,     // the reason of a failure
    COMPLAINT_MEMORY = 16,   //
    COMPLAINT_LEFT = 32,     // objects
} complaint_t;

typedef struct judgement_t {
    verdict_t verdict;
    uint32_t kinds;        // of complaint_t; 0 if there is nothing to complain of
    uint64_t complained;   // about these actions
    char complaints[2000]; // a line each
} judgement_t;

// True if there is nothing to complain of. The graph must be one that graph_check accepts.
bool graph_judge(const graph_t *graph, const outcome_t *outcome, judgement_t *judgement);

#endif
