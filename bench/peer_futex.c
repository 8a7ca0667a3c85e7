// SPDX-License-Identifier: Apache-2.0
// The floor of everything that wakes a thread: two threads and a futex each, nothing else.
#include "rig.h"

#if defined(__linux__) && !KEEL_PORTABLE

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct futex_t {
    setting_t setting;
    _Alignas(64) _Atomic uint32_t there; // signalled by the first thread, waited for by the second
    _Alignas(64) _Atomic uint32_t back;  // the other way
    _Alignas(64) _Atomic uint64_t start; // one way: when the wake was begun
    tally_t *tally;
} futex_t;

static void futex_signal(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void futex_block(_Atomic uint32_t *word, uint32_t value)
{
    uint32_t seen;
    while ((seen = atomic_load_explicit(word, memory_order_acquire)) != value)
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static keel_status_t futex_begin(const setting_t *setting, void **state)
{
    if (setting->job.place != PLACE_FREE && place_cpu(1) < 0)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "needs two processors");
    futex_t *self = aligned_alloc(64, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *self = (futex_t){.setting = *setting};
    // Its second thread stands for the worker.
    if (setting->job.place == PLACE_BESIDE) self->setting.job.place = PLACE_APART;
    *state = self;
    return NULL;
}

static void *pingpong_second(void *user)
{
    futex_t *self = user;
    place_second(self->setting.job.place);
    for (uint32_t i = 1; i <= self->setting.job.samples; i++) {
        futex_block(&self->there, i);
        futex_signal(&self->back, i);
    }
    return NULL;
}

static keel_status_t pingpong_round(void *state, tally_t *tally)
{
    futex_t *self = state;
    uint32_t legs = self->setting.job.legs ? self->setting.job.legs : 1;
    pthread_t second;
    self->there = self->back = 0;
    place_first(self->setting.job.place);
    if (pthread_create(&second, NULL, pingpong_second, self))
        return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "no thread");
    for (uint32_t i = 1; i <= self->setting.job.samples; i++) {
        uint64_t start = keel_now_ns();
        futex_signal(&self->there, i);
        futex_block(&self->back, i);
        tally_add(tally, (double)(keel_now_ns() - start) / legs);
    }
    pthread_join(second, NULL);
    place_pin(-1);
    return NULL;
}

// One way: the second thread says that it is about to block, the first gives it time to do so.
static void *wake_second(void *user)
{
    futex_t *self = user;
    place_second(self->setting.job.place);
    for (uint32_t i = 1; i <= self->setting.job.samples; i++) {
        atomic_store_explicit(&self->back, i, memory_order_release);
        futex_block(&self->there, i);
        tally_add(self->tally, (double)(keel_now_ns() - self->start));
    }
    return NULL;
}

static keel_status_t wake_round(void *state, tally_t *tally)
{
    futex_t *self = state;
    pthread_t second;
    self->there = self->back = 0;
    self->tally = tally;
    place_first(self->setting.job.place);
    if (pthread_create(&second, NULL, wake_second, self))
        return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "no thread");
    for (uint32_t i = 1; i <= self->setting.job.samples; i++) {
        place_until(&self->setting.job, &self->back, i);
        self->start = keel_now_ns();
        futex_signal(&self->there, i);
    }
    pthread_join(second, NULL);
    place_pin(-1);
    return NULL;
}

static void futex_end(void *state)
{
    free(state);
}

#else

static keel_status_t futex_begin(const setting_t *setting, void **state)
{
    return KEEL_ERROR(KEEL_UNSUPPORTED, "no futex on this system");
}

#define pingpong_round NULL
#define wake_round     NULL
#define futex_end      NULL

#endif

const side_t peer_pingpong = {"futex", futex_begin, pingpong_round, futex_end};
const side_t peer_wake = {"futex", futex_begin, wake_round, futex_end};
