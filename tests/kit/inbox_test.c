// SPDX-License-Identifier: Apache-2.0
#include "kit/inbox.h"

#include <pthread.h>

#include "unit.h"

enum { THREADS = 4, ROUNDS = 40, EACH = 10000 };

typedef struct place_t {
    inbox_t inbox;
    uint64_t last[THREADS]; // of each thread, what was taken last; written by the thread that works
                            // the inbox off
    uint64_t taken;
    _Atomic uint32_t at_it; // threads
    pthread_barrier_t start;
} place_t;

typedef struct sender_t {
    place_t *place;
    keel_submission_t submissions[EACH];
    uint64_t number;
} sender_t;

static sender_t senders[THREADS];

// Only the first thread works the inbox off, and finds the others in their order.
static void test_order(void **state)
{
    (void)state;
    inbox_t inbox = {0};
    keel_submission_t s[4];
    assert_false(inbox_is_taken(&inbox));
    assert_true(inbox_put(&inbox, &s[0]));
    assert_true(inbox_is_taken(&inbox));
    for (int i = 1; i < 4; i++) assert_false(inbox_put(&inbox, &s[i]));
    inbox_put_back(&inbox, &s[0]);
    for (int i = 0; i < 4; i++) {
        assert_ptr_equal(inbox_take(&inbox), &s[i]);
        inbox_put_back(&inbox, &s[i]); // before those that are left
        assert_ptr_equal(inbox_take(&inbox), &s[i]);
    }
    assert_false(inbox_put(&inbox, &s[0]));
    assert_ptr_equal(inbox_take(&inbox), &s[0]);
    assert_null(inbox_take(&inbox));
    assert_false(inbox_is_taken(&inbox));
    assert_true(inbox_claim(&inbox));
    assert_false(inbox_claim(&inbox));
    assert_false(inbox_put(&inbox, &s[1]));
    assert_ptr_equal(inbox_take(&inbox), &s[1]);
    assert_null(inbox_take(&inbox));
}

// Who claims it gives it up, unless something came.
static void test_claim(void **state)
{
    (void)state;
    inbox_t inbox = {0};
    keel_submission_t s;
    assert_true(inbox_claim(&inbox));
    assert_false(inbox_claim(&inbox));
    assert_true(inbox_unclaim(&inbox));
    assert_true(inbox_claim(&inbox));
    assert_false(inbox_put(&inbox, &s));
    assert_false(inbox_unclaim(&inbox));
    assert_ptr_equal(inbox_take(&inbox), &s);
    assert_true(inbox_unclaim(&inbox));
    assert_false(inbox_is_taken(&inbox));
}

static void submission_note(place_t *place, const keel_submission_t *submission)
{
    uint64_t thread = submission->id % THREADS, number = submission->id / THREADS;
    assert_int_equal(number, place->last[thread] + 1);
    place->last[thread] = number;
    place->taken++;
}

// All at a time: after a round nothing is left in there.
static void *send(void *argument)
{
    sender_t *sender = argument;
    place_t *place = sender->place;
    for (uint64_t i = 0; i < ROUNDS * EACH; i++) {
        if (i % EACH == 0) pthread_barrier_wait(&place->start);
        keel_submission_t *s = &sender->submissions[i % EACH];
        s->id = (i + 1) * THREADS + sender->number;
        if (!inbox_put(&place->inbox, s)) continue;
        do {
            assert_int_equal(atomic_fetch_add(&place->at_it, 1), 0);
            inbox_set_ours(&place->inbox, true);
            submission_note(place, s);
            assert_true(inbox_is_ours(&place->inbox));
            inbox_set_ours(&place->inbox, false);
            atomic_fetch_sub(&place->at_it, 1);
        } while ((s = inbox_take(&place->inbox)));
        assert_false(inbox_is_ours(&place->inbox)); // another's, perhaps
    }
    return NULL;
}

// One at a time, and each thread's in its order.
static void test_threads(void **state)
{
    (void)state;
    place_t place = {.taken = 0};
    pthread_t threads[THREADS];
    assert_int_equal(pthread_barrier_init(&place.start, NULL, THREADS), 0);
    for (uint64_t i = 0; i < THREADS; i++) {
        senders[i].place = &place;
        senders[i].number = i;
        assert_int_equal(pthread_create(&threads[i], NULL, send, &senders[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&place.start);
    assert_int_equal(place.taken, THREADS * ROUNDS * EACH);
    assert_false(inbox_is_taken(&place.inbox));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_claim),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
