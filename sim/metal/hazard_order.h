// SPDX-License-Identifier: Apache-2.0
// What hazard_order.c tells hazard_memory.c of works. All of it is under one lock.
#ifndef SIM_METAL_HAZARD_ORDER_H_
#define SIM_METAL_HAZARD_ORDER_H_

#include "metal/hazard.h"

void hazard_lock(void);
void hazard_unlock(void);

// Works have numbers from 1 on.
unsigned work_current(void); // of this thread; 0: none
const char *work_name(unsigned work);
unsigned work_batch(unsigned work);
// Whether it comes before the current one; before what the host does now; before `batch` was
// committed.
bool work_is_before(unsigned work);
bool work_is_seen(unsigned work);
bool work_is_older(unsigned work, unsigned batch);
// Whether the host has told the command buffer anything since it was committed, by an event.
bool batch_is_told(unsigned batch);

void touches_settle(void); // the current work ends

// What is watched of the host: a command buffer is committed, its works have ended, or the host is
// about to see it; it is gone.
void watch_begin(unsigned batch);
void watch_settle(unsigned batch);
void watch_check(unsigned batch);
void watch_end(unsigned batch);

#endif
