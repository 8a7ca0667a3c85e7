// SPDX-License-Identifier: Apache-2.0
// Sleeping on a word of memory. Linux has it; elsewhere (or with KEEL_PORTABLE) a table of
// condition variables stands in.
#ifndef KEEL_SRC_BASE_FUTEX_H_
#define KEEL_SRC_BASE_FUTEX_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// Sleeps while *word is `expected`, until woken or until the deadline (keel_now_ns; KEEL_FOREVER:
// none). May also return for no reason: test your condition again. False only if the deadline has
// passed.
bool futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns);

// Wakes up to `count` sleepers. The word itself is not touched, so its owner may be gone already.
void futex_wake(_Atomic uint32_t *word, int count);

// A word that futex_wait_any sleeps on.
typedef struct futex_word_t {
    _Atomic uint32_t *word;
    uint32_t expected;
    bool shared; // it lies in memory of several processes
} futex_word_t;

enum { FUTEX_WORDS = 128 }; // that one thread can sleep on

// As futex_wait, for as long as all of up to FUTEX_WORDS words are as expected. False: the system
// cannot do that (Linux can from 5.16 on). A word whose memory is gone meanwhile does no harm.
bool futex_wait_any(const futex_word_t *words, uint32_t count, uint64_t deadline_ns);

// Wakes all that sleep on a shared word, in every process.
void futex_wake_shared(_Atomic uint32_t *word);

static inline void cpu_relax(void)
{
#if defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); // what `yield` promises and does not do on most cores
#elif defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

#endif
