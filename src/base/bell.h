// SPDX-License-Identifier: Apache-2.0
// A bell in memory of several processes: a word to sleep on until another process has news. It is
// zero at first. Ringing it costs a system call only if a thread may be asleep.
//
//     bell_ring                              a thread that sleeps
//       news, written before                   expected = bell_listen
//       if the bit "listens" is set:           look for news
//         clear it and count, wake all         sleep while the bell is as expected
//
// Both sides write, then look at the other's word, all sequentially consistent, so no news is
// missed. A process that dies asleep leaves the bit behind, which costs the next ring a wake-up. A
// process that breaks these rules can make others miss news or wake for nothing: sleep with a
// deadline.
#ifndef KEEL_SRC_BASE_BELL_H_
#define KEEL_SRC_BASE_BELL_H_

#include "base/futex.h"

typedef _Atomic uint32_t bell_t;

#define BELL_LISTENS UINT32_C(1) // the bits above count rings

// Returns what the word is until the next ring.
static inline uint32_t bell_listen(bell_t *bell)
{
    return atomic_fetch_or(bell, BELL_LISTENS) | BELL_LISTENS;
}

static inline void bell_ring(bell_t *bell)
{
    uint32_t word = atomic_load(bell);
    if (!(word & BELL_LISTENS)) return;
    // Clears the bit and counts. If it fails, another has rung.
    atomic_compare_exchange_strong(bell, &word, word + BELL_LISTENS);
    futex_wake_shared(bell);
}

#endif
