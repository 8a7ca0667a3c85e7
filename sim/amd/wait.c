// SPDX-License-Identifier: Apache-2.0
#include "amd/wait.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "amd/base.h"

bell_t memory_bell;

// To sleep and to be woken takes about as long as these; a processor that turns for so long loses
// little, and gives no other thread its place, which it might not get back for milliseconds.
enum { SPIN_NS = 30000, SLEEP_MIN_NS = 20000 };

// The word and the number of sleepers are written and read in one order by all threads, so that
// either the sleeper sees the ring or the ringer sees the sleeper.
void bell_ring(bell_t *bell)
{
    atomic_fetch_add(&bell->rings, 1);
    if (!atomic_load(&bell->sleepers)) return;
    syscall(SYS_futex, &bell->rings, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

// Linux wakes a thread up to 50 us late unless it asks for less, which is longer than most sleeps
// here.
static void be_punctual(void)
{
    static _Thread_local bool asked;
    if (!asked) prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
    asked = true;
}

static void bell_sleep(bell_t *bell, unsigned seen, uint64_t ns)
{
    struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    be_punctual();
    atomic_fetch_add(&bell->sleepers, 1);
    syscall(SYS_futex, &bell->rings, FUTEX_WAIT_PRIVATE, seen, &time, NULL, 0);
    atomic_fetch_sub(&bell->sleepers, 1);
}

void bell_wait(bell_t *bell, patience_t *patience, uint64_t limit_ns)
{
    uint64_t now = clock_ns();
    if (!patience->since) patience->since = now;
    uint64_t waited = now - patience->since, ns = waited / 8;
    if (ns < SLEEP_MIN_NS) ns = SLEEP_MIN_NS;
    if (ns > limit_ns) ns = limit_ns;
    if (patience->bell == bell && waited >= SPIN_NS) bell_sleep(bell, patience->seen, ns);
    patience->bell = bell;
    patience->seen = atomic_load(&bell->rings);
}
