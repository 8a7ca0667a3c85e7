// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kit/timeline.h"
#include "kit/wait.h"
#include "unit.h"

static keel_semaphore_t *timeline_make(void)
{
    keel_semaphore_t *s = aligned_alloc(64, sizeof *s);
    memset(s, 0, sizeof *s);
    timeline_init(s, 0);
    return s;
}

static void timeline_free(keel_semaphore_t *s)
{
    keel_status_release(atomic_load(&s->failure));
    free(s);
}

static keel_status_t wait_for(keel_semaphore_t *s, uint64_t value, uint64_t spin_ns)
{
    wait_t wait;
    wait_entry_t entry = {.point = keel_point(s, value)};
    wait_begin(&wait, KEEL_ALL, &entry, 1);
    wait_sleep(&wait, KEEL_FOREVER, spin_ns);
    return wait_end(&wait, NULL);
}

typedef struct pair_t {
    keel_semaphore_t *ping, *pong;
    uint64_t rounds;
    uint64_t spin_ns;
} pair_t;

static void *pong_main(void *argument)
{
    pair_t *pair = argument;
    for (uint64_t i = 1; i <= pair->rounds; i++) {
        if (wait_for(pair->ping, i, pair->spin_ns)) abort();
        if (timeline_signal(pair->pong, i)) abort();
    }
    return NULL;
}

// A lost wake-up hangs this, and the test runner's time limit tells.
static void ping_pong(uint64_t rounds, uint64_t spin_ns)
{
    pair_t pair = {timeline_make(), timeline_make(), rounds, spin_ns};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, pong_main, &pair), 0);
    for (uint64_t i = 1; i <= rounds; i++) {
        assert_null(timeline_signal(pair.ping, i));
        assert_null(wait_for(pair.pong, i, spin_ns));
    }
    pthread_join(thread, NULL);
    timeline_free(pair.ping);
    timeline_free(pair.pong);
}

static void test_ping_pong_asleep(void **state)
{
    (void)state;
    ping_pong(20000, 0);
}

static void test_ping_pong_spinning(void **state)
{
    (void)state;
    ping_pong(20000, 5000);
}

static void test_only_grows(void **state)
{
    (void)state;
    keel_semaphore_t *s = timeline_make();
    assert_null(timeline_signal(s, 5));
    keel_status_t status = timeline_signal(s, 5);
    assert_int_equal(keel_status_code(status), KEEL_FAILED_PRECONDITION);
    keel_status_release(status);
    assert_int_equal(timeline_poll(s, 5, NULL), POINT_REACHED);
    assert_int_equal(timeline_poll(s, 6, NULL), POINT_PENDING);
    timeline_free(s);
}

static void test_failure_freezes_the_value(void **state)
{
    (void)state;
    keel_semaphore_t *s = timeline_make();
    assert_null(timeline_signal(s, 2));
    keel_status_t first = KEEL_ERROR(KEEL_ABORTED, "first");
    timeline_fail(s, first);
    timeline_fail(s, KEEL_ERROR(KEEL_IO, "second"));
    keel_status_t status = timeline_signal(s, 3);
    assert_ptr_equal(status, first);
    keel_status_release(status);
    assert_int_equal(timeline_poll(s, 2, NULL), POINT_REACHED);
    assert_int_equal(timeline_poll(s, 3, NULL), POINT_FAILED);
    status = wait_for(s, 3, 0);
    assert_ptr_equal(status, first);
    keel_status_release(status);
    timeline_free(s);
}

typedef struct crowd_t {
    keel_semaphore_t *semaphore;
    uint64_t last;
} crowd_t;

static void *crowd_main(void *argument)
{
    crowd_t *crowd = argument;
    for (uint64_t value = 1; value <= crowd->last; value++)
        if (wait_for(crowd->semaphore, value, 0)) abort();
    return NULL;
}

static void test_many_waiters_on_one_value(void **state)
{
    (void)state;
    enum { THREADS = 8 };
    crowd_t crowd = {timeline_make(), 2000};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_main, &crowd), 0);
    for (uint64_t value = 1; value <= crowd.last; value++)
        assert_null(timeline_signal(crowd.semaphore, value));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    timeline_free(crowd.semaphore);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ping_pong_asleep),
        cmocka_unit_test(test_ping_pong_spinning),
        cmocka_unit_test(test_only_grows),
        cmocka_unit_test(test_failure_freezes_the_value),
        cmocka_unit_test(test_many_waiters_on_one_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
