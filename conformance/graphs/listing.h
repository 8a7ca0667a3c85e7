// SPDX-License-Identifier: Apache-2.0
// Graphs as text: a line per object and per action, in the logical order.
//
//     device 0 cpu://
//     space 1 buffer device=0 size=256
//     semaphore 0 device=0 initial=3
//     recording 0 device=0 slots=2 : fill $0+0:16 k=171,1; barrier; scale $1+0:8 k=5 groups=1,1,1
//     4 t1 n6 submit q0.1 wait=@2,s0:5 signal=s1:2 after=3 : copy b0+0:16 b1+8:16; execute r0 b0+..
//
// t is the thread, n the turn, q device and queue, @2 the own point of action 2, s0:5 a point of a
// semaphore, both with /ended if a failure will do, @2/up_to all of that queue so far, b1+8:16
// sixteen bytes of space 1 from byte 8, $0 a slot. What follows # is a comment.
#ifndef GRAPHS_LISTING_H_
#define GRAPHS_LISTING_H_

#include "graphs/graph.h"

#include <stdio.h>

// `note`, if not NULL, writes what is to stand behind action `index`.
typedef void (*listing_note_fn)(void *user, size_t index, FILE *file);
void graph_print(const graph_t *graph, listing_note_fn note, void *user, FILE *file);
void action_print(const graph_t *graph, size_t index, FILE *file);

// Reads what graph_print wrote. False with a message about the line that is wrong.
bool graph_parse(const char *text, graph_t *graph, char *message, size_t size);

#endif
