// SPDX-License-Identifier: Apache-2.0
// Knowing that one is the child of a fork. Threads, and with them all devices, stayed behind in the
// parent; locks may be held by threads that no longer exist, so the child must not take any of an
// object made before.
#ifndef KEEL_SRC_BASE_FORK_H_
#define KEEL_SRC_BASE_FORK_H_

#include <stdbool.h>
#include <stdint.h>

extern uint32_t fork_count_; // of forks between the first use of the library and this process

// To be remembered in objects when they are made.
uint32_t fork_generation(void);

// Whether an object of that generation was made by this process.
static inline bool fork_is_ours(uint32_t generation)
{
    return generation == fork_count_;
}

#endif
