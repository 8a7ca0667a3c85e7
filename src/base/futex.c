// SPDX-License-Identifier: Apache-2.0
#include "base/futex.h"

#include <keel/base.h>

#if defined(__linux__) && !KEEL_PORTABLE

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    struct timespec deadline = {(time_t)(deadline_ns / 1000000000u),
                                (long)(deadline_ns % 1000000000u)};
    // Of the two waits this is the one whose timeout is absolute and on the monotonic clock.
    long result =
        syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected,
                deadline_ns == KEEL_FOREVER ? NULL : &deadline, NULL, FUTEX_BITSET_MATCH_ANY);
    return result == 0 || errno != ETIMEDOUT;
}

void futex_wake(_Atomic uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

void futex_wake_shared(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

// The kernel's struct futex_waitv, flags and number of the call: its headers before 5.16 have none.
typedef struct waitv_t {
    uint64_t expected, address;
    uint32_t flags, reserved;
} waitv_t;

enum { WAITV_32 = 2, WAITV_PRIVATE = 128, WAITV_CALL = 449 };

bool futex_wait_any(const futex_word_t *words, uint32_t count, uint64_t deadline_ns)
{
    waitv_t list[FUTEX_WORDS];
    struct timespec deadline = {(time_t)(deadline_ns / 1000000000u),
                                (long)(deadline_ns % 1000000000u)};
    for (uint32_t i = 0; i < count; i++)
        list[i] = (waitv_t){words[i].expected, (uintptr_t)words[i].word,
                            words[i].shared ? WAITV_32 : WAITV_32 | WAITV_PRIVATE, 0};
    long result = syscall(WAITV_CALL, list, count, 0,
                          deadline_ns == KEEL_FOREVER ? NULL : &deadline, CLOCK_MONOTONIC);
    // EAGAIN: one is not as expected. EFAULT: its memory is gone.
    return result >= 0 || errno == EAGAIN || errno == ETIMEDOUT || errno == EINTR ||
           errno == EFAULT;
}

#else

#include <pthread.h>
#include <time.h>

// Sleepers are found by a hash of the word's address; sharing a bucket costs spurious wake-ups and
// nothing else.
enum { BUCKETS = 64 };

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} buckets[BUCKETS];

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void buckets_init(void)
{
    for (int i = 0; i < BUCKETS; i++) {
        pthread_mutex_init(&buckets[i].mutex, NULL);
        pthread_cond_init(&buckets[i].changed, NULL);
    }
}

static unsigned bucket_of(const void *word)
{
    pthread_once(&once, buckets_init);
    return (unsigned)(((uintptr_t)word >> 3) * 0x9E3779B97F4A7C15u >> 58);
}

bool futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    unsigned b = bucket_of(word);
    bool in_time = true;
    pthread_mutex_lock(&buckets[b].mutex);
    if (atomic_load(word) == expected) {
        if (deadline_ns == KEEL_FOREVER) {
            pthread_cond_wait(&buckets[b].changed, &buckets[b].mutex);
        } else {
            // Condition variables keep the wall clock where they cannot be given another.
            uint64_t now = keel_now_ns(), left = deadline_ns > now ? deadline_ns - now : 0;
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            uint64_t ns = (uint64_t)until.tv_nsec + left % 1000000000u;
            until.tv_sec += (time_t)(left / 1000000000u + ns / 1000000000u);
            until.tv_nsec = (long)(ns % 1000000000u);
            if (left) pthread_cond_timedwait(&buckets[b].changed, &buckets[b].mutex, &until);
            in_time = keel_now_ns() < deadline_ns;
        }
    }
    pthread_mutex_unlock(&buckets[b].mutex);
    return in_time;
}

void futex_wake(_Atomic uint32_t *word, int count)
{
    (void)count; // others may sleep in the same bucket, so all must look
    unsigned b = bucket_of(word);
    pthread_mutex_lock(&buckets[b].mutex);
    pthread_cond_broadcast(&buckets[b].changed);
    pthread_mutex_unlock(&buckets[b].mutex);
}

bool futex_wait_any(const futex_word_t *words, uint32_t count, uint64_t deadline_ns)
{
    (void)words, (void)count, (void)deadline_ns;
    return false;
}

void futex_wake_shared(_Atomic uint32_t *word)
{
    (void)word; // there is no memory of several processes (shared_page.h)
}

#endif
