// SPDX-License-Identifier: Apache-2.0
// Uses of an executable: commands, and the buffers of its global variables. It stays until its last
// reference and its last use have gone. keel_executable_t says why uses have counts of their own.
#ifndef KEEL_SRC_KIT_EXECUTABLE_H_
#define KEEL_SRC_KIT_EXECUTABLE_H_

#include <keel/driver/object.h>

// The caller has a reference.
static inline void executable_use(keel_executable_t *executable)
{
    // relaxed: the caller's reference keeps it.
    atomic_fetch_add_explicit(&executable->uses_begun, 1, memory_order_relaxed);
}

static inline void executable_unuse(keel_executable_t *executable)
{
    // acq_rel: all uses come before the end. From -1 to 0: this is the last one, and the last
    // reference went before it.
    if (atomic_fetch_add_explicit(&executable->uses_ended, 1, memory_order_acq_rel) == UINT64_MAX)
        executable->destroy(executable);
}

#endif
