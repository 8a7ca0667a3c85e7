// SPDX-License-Identifier: Apache-2.0
// What the work of this thread has touched, and cells do not tell of yet. A kernel touches a few
// bytes at a time, often in many places by turns, and the same line of bytes again and again. So
// lines are held, and settled when a work ends or another line needs the room. All of it is under
// the lock of hazards, but held_add.
#ifndef SIM_METAL_HAZARD_HELD_H_
#define SIM_METAL_HAZARD_HELD_H_

#include "metal/hazard.h"

enum { HELD_LINE = 64 }; // bytes; lines begin at multiples of it

// Called for bytes that were touched, side by side.
typedef void held_settle_fn(const char *at, size_t size, access_t access);

// Plain accesses alone. False: the bytes are not in one line that is held.
bool held_add(const char *at, size_t size, access_t access);
// Holds the line that has this byte.
void held_open(const char *at, held_settle_fn *settle);
// Settles what was touched of it, if it is held; and of all lines.
void held_settle(const char *at, held_settle_fn *settle);
void held_settle_all(held_settle_fn *settle);

#endif
