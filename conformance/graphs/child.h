// SPDX-License-Identifier: Apache-2.0
// Graphs run in child processes, so that one that crashes or hangs ends only its own. Parent and
// child share the page that says where the child is.
#ifndef GRAPHS_CHILD_H_
#define GRAPHS_CHILD_H_

#include "graphs/generate.h"
#include "graphs/judge.h"
#include "graphs/run.h"

#include <stdatomic.h>
#include <sys/types.h>

typedef enum child_state_t {
    CHILD_RUNNING,
    CHILD_DONE,   // all graphs were as they should be
    CHILD_FAILED, // `graph` was not; the judgement says how
    CHILD_BROKEN, // no graph could be run; the judgement says why
} child_state_t;

typedef struct page_t {
    _Atomic uint64_t passed; // graphs so far
    _Atomic int state;       // child_state_t
    graph_t graph;           // the present one
    outcome_t outcome;
    judgement_t judgement;
} page_t;

// What a child is to do: graphs from seeds, or (repeat) the one on the page several times.
typedef struct job_t {
    const char *const *uris;
    size_t uri_count;
    generate_options_t generate; // devices are filled in by the child
    run_options_t run;
    bool repeat;
    uint64_t first_seed, count;
} job_t;

page_t *page_create(void);
void page_destroy(page_t *page);

// Begins the job in a child. Page and job stay as they are until it was watched or killed.
pid_t child_fork(page_t *page, const job_t *job);

// Returns when the job is through, has failed, or has not moved for longer than a graph may take;
// the page says which.
void child_watch(page_t *page, pid_t child, const job_t *job);

// Ends a child that is of no more interest.
void child_end(pid_t child);

// Begins and watches.
void child_run(page_t *page, const job_t *job);

#endif
