// SPDX-License-Identifier: Apache-2.0
#include "kit/pending.h"

#include <pthread.h>

#include <keel/base.h>

#include "base/futex.h"
#include "unit.h"

enum { THREADS = 3, ROUNDS = 20000 };

static void test_shares(void **state)
{
    (void)state;
    pending_t pending = {0};
    pending_begin(&pending);
    pending_begin(&pending); // it has its share already
    assert_false(pending_has_any(&pending));
    assert_true(pending_is_over(&pending));
    // Two that end while the walk goes on.
    pending_add(&pending);
    pending_add(&pending);
    assert_true(pending_has_any(&pending));
    assert_false(pending_end(&pending));
    assert_true(pending_has_any(&pending));
    assert_false(pending_end(&pending));
    assert_true(pending_is_over(&pending));
    // Those that are not begun after all, alone and beside another.
    pending_add(&pending);
    pending_drop(&pending);
    assert_false(pending_has_any(&pending));
    pending_add(&pending);
    pending_add(&pending);
    pending_drop(&pending);
    assert_true(pending_has_any(&pending));
    // The walk can go no further, and who ends the last goes on.
    assert_false(pending_is_over(&pending));
    assert_true(pending_end(&pending));
    pending_begin(&pending);
    assert_true(pending_is_over(&pending));
    // It is passed to an operation whose end is its own.
    assert_true(pending_end(&pending));
}

// A walk that begins an operation on each thread, which then ends; the thread that goes on finds
// all of them done.
typedef struct place_t {
    pending_t pending;
    _Atomic uint32_t begun[THREADS]; // rounds
    uint32_t done[THREADS];          // by the threads; plain, for tools to look at
    _Atomic uint32_t over;
    _Atomic bool early; // a thread went on too early
} place_t;

typedef struct worker_t {
    place_t *place;
    int number;
} worker_t;

// Polls for as long as it takes when all threads have a processor, then sleeps.
static void await(_Atomic uint32_t *word, uint32_t value)
{
    uint32_t now;
    for (int i = 0; i < 1000 && atomic_load(word) != value; i++) cpu_relax();
    while ((now = atomic_load(word)) != value) futex_wait(word, now, KEEL_FOREVER);
}

static void publish(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store(word, value);
    futex_wake(word, 1);
}

static void go_on(place_t *place, uint32_t round)
{
    for (int i = 0; i < THREADS; i++)
        if (place->done[i] != round) atomic_store(&place->early, true);
    publish(&place->over, round);
}

static void *work(void *arg)
{
    const worker_t *worker = arg;
    place_t *place = worker->place;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        await(&place->begun[worker->number], round);
        place->done[worker->number] = round;
        if (pending_end(&place->pending)) go_on(place, round);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    place_t place = {0};
    worker_t workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){&place, i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        pending_begin(&place.pending);
        for (int i = 0; i < THREADS; i++) {
            pending_add(&place.pending);
            publish(&place.begun[i], round);
            if (round % 8 == 0) { // what ends early
                pending_add(&place.pending);
                pending_drop(&place.pending);
            }
        }
        if (pending_is_over(&place.pending)) go_on(&place, round);
        await(&place.over, round);
    }
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_false(atomic_load(&place.early));
    assert_false(pending_has_any(&place.pending));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
