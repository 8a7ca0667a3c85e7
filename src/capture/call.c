// SPDX-License-Identifier: Apache-2.0
#include "capture/call.h"

THREAD_LOCAL call_thread_t call_thread_;

uint64_t call_first(void)
{
    enum { CALLS_LOG2 = 40 }; // of a thread
    static _Atomic uint64_t threads;
    // relaxed: nothing but the number counts.
    uint64_t thread = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed);
    return thread << CALLS_LOG2 | 1;
}
