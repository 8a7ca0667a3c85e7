// SPDX-License-Identifier: Apache-2.0
// Submissions that come from many threads and are issued in their order, by one thread at
// a time, the issuer: a thread that puts one in and finds no issuer becomes it.
// It goes on until nothing is left. Other threads leave theirs to it, and no thread waits.
#ifndef KEEL_SRC_KIT_INBOX_H_
#define KEEL_SRC_KIT_INBOX_H_

#include "base/thread.h"
#include "kit/submission.h"

// All zero: empty, and no issuer.
typedef struct inbox_t {
    // NULL: there is no issuer. Else what came meanwhile, newest first, and the inbox itself in
    // place of one before the oldest.
    _Atomic(keel_submission_t *) newest;
    keel_submission_t *taken;  // oldest first; the issuer's
    _Atomic(const void *) who; // what the issuer calls itself; NULL: it does not, or there is none
} inbox_t;

static inline keel_submission_t *inbox_end(inbox_t *inbox)
{
    return (keel_submission_t *)(void *)inbox; // only its address is used
}

// True if there was no issuer: then the caller is, and has the submission, which is not in there.
static inline bool inbox_put(inbox_t *inbox, keel_submission_t *submission)
{
    keel_submission_t *before = atomic_load_explicit(&inbox->newest, memory_order_relaxed);
    keel_submission_t *after;
    do {
        submission->next = before;
        after = __builtin_expect(!before, 1) ? inbox_end(inbox) : submission;
        // acq_rel: what belongs to the issuer goes from one to the next, and so do
        // submissions. seq_cst: for those who then look at something else, while others change
        // that and look whether anybody is at it (inbox_is_taken).
    } while (!atomic_compare_exchange_weak_explicit(&inbox->newest, &before, after,
                                                    memory_order_seq_cst, memory_order_relaxed));
    return __builtin_expect(!before, 1);
}

// The next one, for the issuer. NULL: there is none, and the caller is the issuer no more.
static inline keel_submission_t *inbox_take(inbox_t *inbox)
{
    if (!inbox->taken) {
        keel_submission_t *end = inbox_end(inbox), *newest = end;
        // release: pairs with inbox_put.
        if (atomic_compare_exchange_strong_explicit(&inbox->newest, &newest, NULL,
                                                    memory_order_release, memory_order_relaxed))
            return NULL;
        newest = atomic_exchange_explicit(&inbox->newest, end, memory_order_acquire);
        while (newest != end) {
            keel_submission_t *older = newest->next;
            newest->next = inbox->taken;
            inbox->taken = newest;
            newest = older;
        }
    }
    keel_submission_t *submission = inbox->taken;
    inbox->taken = submission->next;
    return submission;
}

// Has it taken before all others; for the issuer.
static inline void inbox_put_back(inbox_t *inbox, keel_submission_t *submission)
{
    submission->next = inbox->taken;
    inbox->taken = submission;
}

// Makes the caller the issuer, if there is none.
static inline bool inbox_claim(inbox_t *inbox)
{
    keel_submission_t *nobody = NULL;
    // seq_cst: as inbox_put.
    return atomic_compare_exchange_strong(&inbox->newest, &nobody, inbox_end(inbox));
}

// And not be any more. False if something came meanwhile: then he still is, and passes it on.
static inline bool inbox_unclaim(inbox_t *inbox)
{
    keel_submission_t *came = inbox_take(inbox);
    if (came) inbox_put_back(inbox, came);
    return !came;
}

// The issuer names itself while it may call other code, so that this code knows its caller.
static inline void inbox_set_ours(inbox_t *inbox, bool ours)
{
    atomic_store_explicit(&inbox->who, ours ? thread_mark() : NULL, memory_order_relaxed);
}

static inline bool inbox_is_ours(const inbox_t *inbox)
{
    // relaxed: it is the caller who wrote what makes this true.
    return atomic_load_explicit(&inbox->who, memory_order_relaxed) == thread_mark();
}

static inline bool inbox_is_taken(const inbox_t *inbox)
{
    return atomic_load(&inbox->newest);
}

#endif
