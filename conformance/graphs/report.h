// SPDX-License-Identifier: Apache-2.0
// What is said about a graph that failed.
#ifndef GRAPHS_REPORT_H_
#define GRAPHS_REPORT_H_

#include "graphs/child.h"

#include <stdio.h>

// The page's graph as a listing that --replay reads, with what was expected and seen of each
// action, and the complaints.
void failure_print(const page_t *page, FILE *file);

// Makes the page's graph, which has failed once, as small as it can in `seconds`, and leaves on the
// page the last failure of that.
void failure_minimise(page_t *page, const job_t *job, double seconds, FILE *file);

#endif
