// SPDX-License-Identifier: Apache-2.0
// A bell wakes who sleeps, and a ring between two looks is not lost. Where one of them is not so,
// the test sleeps for a day.
#include "sim/amd/wait.h"

#include <pthread.h>
#include <stdio.h>

static const uint64_t day_ns = 86400ull * 1000000000;

// A wait that began long ago, and has seen the bell as it is now.
static patience_t patience_old(const bell_t *bell)
{
    return (patience_t){.since = 1, .bell = bell, .seen = atomic_load(&bell->rings)};
}

static void *sleeper_main(void *argument)
{
    bell_t *bell = argument;
    patience_t patience = patience_old(bell);
    bell_wait(bell, &patience, day_ns);
    return NULL;
}

int main(void)
{
    bell_t bell = {0};
    patience_t patience = patience_old(&bell);
    bell_ring(&bell);
    bell_wait(&bell, &patience, day_ns);
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleeper_main, &bell)) return 1;
    while (!atomic_load(&bell.sleepers)) continue;
    bell_ring(&bell);
    pthread_join(thread, NULL);
    printf("%u rings, %u sleepers\n", atomic_load(&bell.rings), atomic_load(&bell.sleepers));
    return atomic_load(&bell.sleepers) != 0;
}
