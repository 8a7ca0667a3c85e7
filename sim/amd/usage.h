// SPDX-License-Identifier: Apache-2.0
// What the software GPU itself takes of the processor: its threads, and what it does inside of
// calls of the program. Told at the program's end if KEEL_SIM_LOG has "time" in it; else only
// threads are noted. Any thread may call any of it.
#ifndef SIM_AMD_USAGE_H_
#define SIM_AMD_USAGE_H_

#include <pthread.h>
#include <stdint.h>

// pthread_create for a thread of the software GPU.
int usage_thread(pthread_t *thread, void *(*run)(void *), void *argument);

// Around what a call of the program does here.
uint64_t usage_begin(void);
void usage_end(uint64_t begin);

// Writes the line, if it is wanted.
void usage_tell(void);

// Forgets everything, in a process that was forked off another.
void usage_forget(void);

#endif
