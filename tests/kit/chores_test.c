// SPDX-License-Identifier: Apache-2.0
#include "kit/chores.h"

#include <keel/base.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "unit.h"

enum { MS = 1000000, MOST = 16 };
static const uint64_t PATIENCE_NS = 20000 * (uint64_t)MS;

typedef struct place_t {
    chores_t chores;
    _Atomic bool may;       // what is answered
    _Atomic uint32_t asked; // times
    _Atomic uint32_t marks; // times with 0
    _Atomic bool grows;     // other times were not 0
    char done[MOST];        // names, in the order in which they were done
    _Atomic uint32_t done_count;
    _Atomic uint32_t wanted; // as seen when last asked
} place_t;

typedef struct note_t {
    chore_t chore;
    char name;
} note_t;

static bool place_may(void *owner, uint64_t waited)
{
    place_t *place = owner;
    atomic_fetch_add(&place->asked, 1);
    if (!waited)
        atomic_fetch_add(&place->marks, 1);
    else
        atomic_store(&place->grows, true);
    atomic_store(&place->wanted, atomic_load(&place->chores.wanted));
    return atomic_load(&place->may);
}

static void note(void *owner, chore_t *chore)
{
    place_t *place = owner;
    const note_t *own = (const note_t *)chore;
    if (own->name == 'w') chores_wait(&place->chores); // which has nothing to wait for
    place->done[atomic_load(&place->done_count)] = own->name;
    atomic_fetch_add(&place->done_count, 1);
}

static void add(place_t *place, char name, bool timed)
{
    note_t *own = mem_alloc(sizeof *own);
    assert_non_null(own);
    *own = (note_t){{.run = note, .timed = timed}, name};
    chores_add(&place->chores, &own->chore);
}

static void until(const _Atomic uint32_t *count, uint32_t value)
{
    uint64_t end = keel_now_ns() + PATIENCE_NS;
    while (atomic_load(count) < value && keel_now_ns() < end)
        nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
    assert_true(atomic_load(count) >= value);
}

static void place_init(place_t *place)
{
    memset(place, 0, sizeof *place);
    chores_init(&place->chores, "test", place_may, place);
}

static void done_is(const place_t *place, const char *names)
{
    assert_int_equal(atomic_load(&place->done_count), strlen(names));
    assert_memory_equal(place->done, names, strlen(names));
}

// In the order in which they came, each kind for itself; timed ones when it is time.
static void test_order(void **state)
{
    (void)state;
    place_t place;
    place_init(&place);
    add(&place, 'x', true), add(&place, 'y', true), add(&place, 'z', true);
    until(&place.asked, 3);
    assert_int_equal(atomic_load(&place.done_count), 0);
    assert_true(atomic_load(&place.grows)); // since it was first asked
    assert_int_equal(atomic_load(&place.marks), 1);
    add(&place, 'a', false), add(&place, 'b', false);
    until(&place.done_count, 2);
    atomic_store(&place.may, true);
    until(&place.done_count, 5);
    done_is(&place, "abxyz");
    chores_stop(&place.chores);
}

// Those that came after the first question are asked for anew.
static void test_marks(void **state)
{
    (void)state;
    place_t place;
    place_init(&place);
    add(&place, 'x', true);
    until(&place.asked, 2);
    add(&place, 'y', true);
    atomic_store(&place.may, true);
    until(&place.done_count, 2);
    done_is(&place, "xy");
    assert_int_equal(atomic_load(&place.marks), 2);
    add(&place, 'z', true);
    chores_wait(&place.chores);
    assert_int_equal(atomic_load(&place.marks), 3);
    chores_stop(&place.chores);
}

static void *allow_when_wanted(void *user)
{
    place_t *place = user;
    until(&place->wanted, 1); // a thread waits, and the deciding thread can see it
    atomic_store(&place->may, true);
    return NULL;
}

// Waiting is for both kinds, is seen, and is over when the last has been done.
static void test_wait(void **state)
{
    (void)state;
    place_t place;
    pthread_t thread;
    place_init(&place);
    chores_wait(&place.chores); // for nothing
    add(&place, 'x', true), add(&place, 'a', false), add(&place, 'y', true);
    assert_int_equal(pthread_create(&thread, NULL, allow_when_wanted, &place), 0);
    chores_wait(&place.chores);
    done_is(&place, "axy");
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&place.chores.wanted), 0);
    add(&place, 'w', true);
    chores_wait(&place.chores);
    done_is(&place, "axyw");
    chores_stop(&place.chores);
}

static bool one_is_done(void *place)
{
    return atomic_load(&((place_t *)place)->done_count) > 0;
}

// Who needs but a part of it waits for no more.
static void test_wait_for_a_part(void **state)
{
    (void)state;
    place_t place;
    place_init(&place);
    add(&place, 'x', true), add(&place, 'a', false);
    chores_wait_until(&place.chores, one_is_done, &place); // and not for x, for which it is no time
    done_is(&place, "a");
    assert_int_equal(atomic_load(&place.chores.wanted), 0);
    chores_stop(&place.chores);
}

// What is left is done, whatever it had to wait for; and what comes later, here and now.
static void test_stop(void **state)
{
    (void)state;
    place_t place;
    place_init(&place);
    add(&place, 'x', true), add(&place, 'y', true);
    until(&place.asked, 1);
    chores_stop(&place.chores);
    done_is(&place, "xy");
    add(&place, 'z', true);
    done_is(&place, "xyz");
    chores_wait(&place.chores);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order), cmocka_unit_test(test_marks),
        cmocka_unit_test(test_wait),  cmocka_unit_test(test_wait_for_a_part),
        cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
