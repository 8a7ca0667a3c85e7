// SPDX-License-Identifier: Apache-2.0
// Signals that ask the program to end, which it does when it has cleared up.
#ifndef TOOLS_CC_INTERRUPT_H_
#define TOOLS_CC_INTERRUPT_H_

#include <signal.h>
#include <stdbool.h>

// From now on they are noted, but for those that are ignored.
void interrupt_catch(void);

// Whether one came.
bool interrupt_came(void);

// While they are held they come in interrupt_wait alone, which sleeps until one comes or a child
// ends. `before` is the mask to go back to, and that of children.
void interrupt_hold(sigset_t *before);
void interrupt_wait(const sigset_t *before);

// What they did before, they do again; one that came ends the process.
void interrupt_end(void);

#endif
