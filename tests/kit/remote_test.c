// SPDX-License-Identifier: Apache-2.0
// Semaphores that a device keeps itself (kit/remote.h), on the native driver: with notification,
// and polled.
#include "kit/remote.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "asleep.h"
#include "base/status.h"
#include "kit/native/native.h"
#include "unit.h"

enum { LONG_NS = 1000000 };

static const char *uri; // of the native, in this round

typedef struct rig_t {
    keel_device_t *native, *cpu;
    keel_queue_t *on_native, *on_cpu, *beside; // the last: another of the native's
    keel_semaphore_t *s, *t, *host;            // the native's, and the cpu's
} rig_t;

static keel_semaphore_t *make(keel_device_t *device)
{
    keel_semaphore_t *semaphore = NULL;
    assert_null(keel_semaphore_create(device, NULL, &semaphore));
    return semaphore;
}

static int setup(void **state)
{
    static rig_t rig;
    *state = &rig;
    assert_null(keel_device_open(uri, NULL, &rig.native));
    assert_null(keel_device_open("cpu://?threads=1", NULL, &rig.cpu));
    rig.on_native = keel_device_queue(rig.native, 0);
    rig.on_cpu = keel_device_queue(rig.cpu, 0);
    assert_null(keel_queue_create(rig.native, NULL, &rig.beside));
    rig.s = make(rig.native);
    rig.t = make(rig.native);
    rig.host = make(rig.cpu);
    return 0;
}

static int teardown(void **state)
{
    rig_t *rig = *state;
    keel_semaphore_release(rig->s);
    keel_semaphore_release(rig->t);
    keel_semaphore_release(rig->host);
    keel_queue_release(rig->beside);
    keel_device_release(rig->native);
    keel_device_release(rig->cpu);
    return 0;
}

static keel_point_t submit(keel_queue_t *queue, keel_point_t wait, keel_point_t signal)
{
    keel_point_t done;
    assert_null(keel_queue_signal(queue, keel_points(&wait, wait.semaphore ? 1 : 0),
                                  keel_points(&signal, signal.semaphore ? 1 : 0), &done));
    return done;
}

static const keel_point_t none;

static void reach(keel_semaphore_t *semaphore, uint64_t value)
{
    keel_point_t point = keel_point(semaphore, value);
    assert_null(keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER));
}

static void not_yet(keel_semaphore_t *semaphore, uint64_t value)
{
    keel_point_t point = keel_point(semaphore, value);
    keel_status_t status = keel_wait(KEEL_POINTS(point), KEEL_ALL, LONG_NS);
    assert_int_equal(keel_status_code(status), KEEL_DEADLINE_EXCEEDED);
    keel_status_release(status);
}

static void fails(keel_point_t point, keel_code_t code, const char *words)
{
    keel_status_t status = keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER);
    assert_int_equal(keel_status_code(status), code);
    if (!strstr(keel_status_message(status), words))
        fail_msg("'%s' does not say '%s'", keel_status_message(status), words);
    keel_status_release(status);
}

static void *signal_late(void *argument)
{
    keel_point_t *point = argument;
    asleep(getpid());
    assert_null(keel_semaphore_signal(point->semaphore, point->value));
    return NULL;
}

static void *signal_there_late(void *argument)
{
    keel_point_t *point = argument;
    asleep(getpid());
    native_signal_there(point->semaphore, point->value);
    return NULL;
}

static void waits_in_all_directions(void **state)
{
    rig_t *rig = *state;
    pthread_t thread;
    keel_point_t one = keel_point(rig->s, 1), two = keel_point(rig->s, 2),
                 three = keel_point(rig->s, 3), four = keel_point(rig->s, 4);
    // Host to host: before and after.
    assert_int_equal(pthread_create(&thread, NULL, signal_late, &one), 0);
    reach(rig->s, 1);
    pthread_join(thread, NULL);
    reach(rig->s, 1);
    // Host to device: the wait is there first.
    keel_point_t done = submit(rig->on_native, two, keel_point(rig->t, 1));
    not_yet(rig->t, 1);
    assert_int_equal(native_value(rig->t), 0);
    assert_null(keel_semaphore_signal(rig->s, 2));
    assert_null(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    reach(rig->t, 1);
    submit(rig->on_native, two, keel_point(rig->t, 2)); // and the signal
    // Device to host.
    reach(rig->t, 2);
    assert_int_equal(pthread_create(&thread, NULL, signal_there_late, &three), 0);
    reach(rig->s, 3);
    pthread_join(thread, NULL);
    // Device to device, submitted in the wrong order.
    done = submit(rig->beside, four, keel_point(rig->t, 3));
    submit(rig->on_native, none, four);
    assert_null(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    uint64_t value = 0;
    assert_null(keel_semaphore_value(rig->t, &value));
    assert_int_equal(value, 3);
}

// Another device goes by way of the host, either way round.
static void waits_across_devices(void **state)
{
    rig_t *rig = *state;
    enum { ROUNDS = 300 };
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        submit(rig->on_cpu, keel_point(rig->s, i), keel_point(rig->host, i));
        submit(rig->on_native, keel_point(rig->host, i), keel_point(rig->s, i + 1));
    }
    not_yet(rig->host, 1);
    native_signal_there(rig->s, 1);
    reach(rig->host, ROUNDS);
    reach(rig->s, ROUNDS + 1);
    // The cpu signals the device's, and the device the cpu's.
    submit(rig->on_native, keel_point(rig->t, 1), keel_point(rig->host, ROUNDS + 1));
    submit(rig->on_cpu, none, keel_point(rig->t, 1));
    reach(rig->host, ROUNDS + 1);
    assert_int_equal(native_value(rig->t), 1);
}

// With every lock of the host's that the two could need held by this thread, a signal of the device
// still starts what waits for it on the device.
static void device_needs_no_host(void **state)
{
    rig_t *rig = *state;
    lock_t *const locks[] = {&rig->s->lock, &rig->t->lock,
                             &keel_queue_timeline(rig->on_native)->lock,
                             &keel_queue_timeline(rig->beside)->lock};
    keel_point_t last = submit(rig->beside, keel_point(rig->s, 2), keel_point(rig->t, 1));
    submit(rig->on_native, keel_point(rig->s, 1), keel_point(rig->s, 2));
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++) lock_enter(locks[i]);
    native_signal_there(rig->s, 1);
    while (native_value(rig->t) != 1) usleep(100);
    uint64_t known = atomic_load(&rig->s->value) + atomic_load(&rig->t->value);
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++) lock_leave(locks[i]);
    assert_int_equal(known, 0); // the host had not even heard of the first
    assert_null(keel_wait(KEEL_POINTS(last), KEEL_ALL, KEEL_FOREVER));
}

typedef struct sleeper_t {
    pthread_t thread;
    keel_point_t point;
    keel_status_t status;
} sleeper_t;

static void *sleep_for(void *argument)
{
    sleeper_t *sleeper = argument;
    sleeper->status = keel_wait(KEEL_POINTS(sleeper->point), KEEL_ALL, KEEL_FOREVER);
    return NULL;
}

static void sleepers_start(sleeper_t *sleepers, int count, keel_semaphore_t *semaphore)
{
    for (int i = 0; i < count; i++) {
        sleepers[i] =
            (sleeper_t){.point = keel_point(semaphore, (uint64_t)i / 2 + 1)}; // two of each
        assert_int_equal(pthread_create(&sleepers[i].thread, NULL, sleep_for, &sleepers[i]), 0);
    }
}

static void sleepers_join(sleeper_t *sleepers, int count, keel_code_t code)
{
    for (int i = 0; i < count; i++) {
        pthread_join(sleepers[i].thread, NULL);
        assert_int_equal(keel_status_code(sleepers[i].status), code);
        keel_status_release(sleepers[i].status);
    }
}

enum { SLEEPERS = 16, VALUES = SLEEPERS / 2 };

static void tells_many_waiters(void **state)
{
    rig_t *rig = *state;
    sleeper_t sleepers[SLEEPERS];
    keel_completion_t *queue = NULL;
    keel_point_t end = keel_point(rig->s, VALUES), done[VALUES * 2];
    sleepers_start(sleepers, SLEEPERS, rig->s);
    assert_null(keel_completion_create(&queue));
    assert_null(keel_completion_add(queue, KEEL_POINTS(end), KEEL_ALL, NULL));
    for (uint64_t i = 0; i < VALUES; i++) {
        done[i] = submit(rig->on_cpu, keel_point(rig->s, i + 1), none);
        done[i + VALUES] = submit(rig->on_native, keel_point(rig->s, i + 1), none);
    }
    for (uint64_t i = 1; i <= VALUES; i++) {
        if (i % 2)
            native_signal_there(rig->s, i);
        else
            assert_null(keel_semaphore_signal(rig->s, i));
    }
    sleepers_join(sleepers, SLEEPERS, KEEL_OK);
    assert_null(keel_wait(keel_points(done, VALUES * 2), KEEL_ALL, KEEL_FOREVER));
    struct pollfd descriptor = {.fd = keel_completion_fd(queue), .events = POLLIN};
    assert_int_equal(poll(&descriptor, 1, -1), 1);
    keel_completion_release(queue);
}

// A jump of the device reaches all in between; those who gave up are no trouble.
static void tells_of_jumps(void **state)
{
    rig_t *rig = *state;
    sleeper_t sleepers[SLEEPERS];
    not_yet(rig->s, 3);
    sleepers_start(sleepers, SLEEPERS, rig->s);
    native_signal_there(rig->s, 100);
    sleepers_join(sleepers, SLEEPERS, KEEL_OK);
    size_t index = 2;
    keel_point_t points[] = {keel_point(rig->t, 1), keel_point(rig->s, 101)};
    native_signal_there(rig->s, 101);
    keel_wait_options_t options = {.index = &index};
    assert_null(keel_wait_with(keel_points(points, 2), KEEL_ANY, KEEL_FOREVER, &options));
    assert_int_equal(index, 1);
}

// What waits fails with the cause, on the host and on both devices, and so does what these signal.
static void check_failed(rig_t *rig, const char *words, sleeper_t *sleepers,
                         const keel_point_t done[2])
{
    sleepers_join(sleepers, SLEEPERS, KEEL_ABORTED);
    for (int i = 0; i < 2; i++) fails(done[i], KEEL_ABORTED, words);
    fails(keel_point(rig->t, 1), KEEL_ABORTED, words);
    fails(keel_point(rig->host, 1), KEEL_ABORTED, words);
    assert_int_equal(native_value(rig->t), SEMAPHORE_FAILED); // the device knows it, too
    uint64_t value = 0;
    keel_status_t status = keel_semaphore_value(rig->s, &value);
    assert_int_equal(keel_status_code(status), KEEL_ABORTED);
    assert_int_equal(value, 0);
    keel_status_release(status);
    status = keel_semaphore_signal(rig->s, 99);
    assert_int_equal(keel_status_code(status), KEEL_ABORTED);
    keel_status_release(status);
    assert_null(keel_semaphore_fail(rig->s, KEEL_ERROR(KEEL_INTERNAL, "too late")));
    native_signal_there(rig->s, 5); // stands still
    fails(keel_point(rig->s, 5), KEEL_ABORTED, words);
    fails(submit(rig->on_native, keel_point(rig->s, 7), none), KEEL_ABORTED, words);
    fails(submit(rig->on_cpu, keel_point(rig->s, 7), none), KEEL_ABORTED, words);
}

static void failure(rig_t *rig, bool there, const char *words)
{
    sleeper_t sleepers[SLEEPERS];
    sleepers_start(sleepers, SLEEPERS, rig->s);
    keel_point_t done[] = {submit(rig->on_native, keel_point(rig->s, 1), keel_point(rig->t, 1)),
                           submit(rig->on_cpu, keel_point(rig->s, 3), keel_point(rig->host, 1))};
    not_yet(rig->s, 1);
    keel_status_t cause = KEEL_ERROR(KEEL_ABORTED, "%s", words);
    if (there)
        native_fail_there(rig->s, cause);
    else
        assert_null(keel_semaphore_fail(rig->s, cause));
    check_failed(rig, words, sleepers, done);
}

static void fails_from_the_device(void **state)
{
    failure(*state, true, "the device gave up");
}

static void fails_from_the_host(void **state)
{
    failure(*state, false, "the host gave up");
}

// Reached points stay so, whatever comes after, and whether the host has looked before or not.
static void failure_keeps_what_was_reached(void **state)
{
    rig_t *rig = *state;
    native_signal_there(rig->s, 4);
    native_fail_there(rig->s, KEEL_ERROR(KEEL_ABORTED, "over"));
    reach(rig->s, 4);
    fails(keel_point(rig->s, 5), KEEL_ABORTED, "over");
    native_signal_there(rig->t, 4);
    assert_null(keel_semaphore_fail(rig->t, KEEL_ERROR(KEEL_ABORTED, "over")));
    reach(rig->t, 4);
    fails(keel_point(rig->t, 5), KEEL_ABORTED, "over");
}

// A submission that fails before the device has it fails its signals by the host.
static void failed_submissions_fail_their_signals(void **state)
{
    rig_t *rig = *state;
    keel_point_t done = submit(rig->on_native, keel_point(rig->host, 1), keel_point(rig->t, 1));
    keel_point_t after = submit(rig->beside, keel_point(rig->t, 1), keel_point(rig->s, 1));
    assert_null(keel_semaphore_fail(rig->host, KEEL_ERROR(KEEL_ABORTED, "upstream")));
    fails(done, KEEL_ABORTED, "upstream");
    fails(after, KEEL_ABORTED, "upstream");
    fails(keel_point(rig->s, 1), KEEL_ABORTED, "upstream");
}

static void refuses_signals_out_of_order(void **state)
{
    rig_t *rig = *state;
    native_signal_there(rig->s, 5); // which the host has not looked at
    keel_status_t status = keel_semaphore_signal(rig->s, 5);
    assert_int_equal(keel_status_code(status), KEEL_FAILED_PRECONDITION);
    assert_non_null(strstr(keel_status_message(status), "to 5: it has reached 5"));
    keel_status_release(status);
    assert_null(keel_semaphore_signal(rig->s, 6)); // it has not failed
    keel_point_t done = submit(rig->on_native, none, keel_point(rig->s, 6));
    fails(keel_point(rig->s, 7), KEEL_FAILED_PRECONDITION, "to 6: it has reached 6");
    fails(done, KEEL_FAILED_PRECONDITION, "to 6: it has reached 6");
    submit(rig->on_cpu, keel_point(NULL, 0), keel_point(rig->t, 2));
    reach(rig->t, 2);
    done = submit(rig->on_cpu, keel_point(NULL, 0), keel_point(rig->t, 1));
    fails(keel_point(rig->t, 3), KEEL_FAILED_PRECONDITION, "to 1: it has reached 2");
    fails(done, KEEL_FAILED_PRECONDITION, "to 1: it has reached 2");
}

// Signals before the one that is out of order stand, those after it fail, be they the device's or
// the host's. What waits for these on the device fails, too.
static void fails_signals_from_the_first_out_of_order(void **state)
{
    rig_t *rig = *state;
    keel_semaphore_t *u = make(rig->native), *late = make(rig->cpu);
    native_signal_there(rig->s, 5);
    keel_point_t waits[] = {submit(rig->beside, keel_point(u, 1), keel_point(u, 2)),
                            submit(rig->on_cpu, keel_point(u, 1), none)};
    keel_point_t signals[] = {keel_point(rig->host, 1), keel_point(rig->t, 1),
                              keel_point(rig->s, 5), keel_point(u, 1), keel_point(late, 1)};
    keel_point_t done;
    assert_null(keel_queue_signal(rig->on_native, KEEL_NO_WAITS, keel_points(signals, 5), &done));
    fails(done, KEEL_FAILED_PRECONDITION, "to 5: it has reached 5");
    reach(rig->host, 1);
    reach(rig->t, 1);
    fails(keel_point(rig->s, 6), KEEL_FAILED_PRECONDITION, "to 5: it has reached 5");
    fails(keel_point(u, 1), KEEL_FAILED_PRECONDITION, "to 5: it has reached 5");
    fails(keel_point(late, 1), KEEL_FAILED_PRECONDITION, "to 5: it has reached 5");
    for (int i = 0; i < 2; i++) fails(waits[i], KEEL_FAILED_PRECONDITION, "to 5: it has reached 5");
    // The semaphore had failed before: the submission is not to blame.
    assert_null(keel_wait(KEEL_POINTS(submit(rig->on_native, none, keel_point(rig->s, 1))),
                          KEEL_ALL, KEEL_FOREVER));
    keel_semaphore_release(u);
    keel_semaphore_release(late);
}

static void ends(rig_t *rig, bool lost)
{
    keel_code_t code = lost ? KEEL_DEVICE_LOST : KEEL_CANCELLED;
    const char *words = lost ? "it fell down" : "was closed";
    sleeper_t sleepers[SLEEPERS];
    sleepers_start(sleepers, SLEEPERS, rig->s);
    keel_queue_t *queue = keel_queue_retain(rig->on_native);
    keel_point_t native = submit(queue, keel_point(rig->s, 1), keel_point(rig->t, 1));
    keel_point_t mixed = submit(queue, keel_point(rig->host, 1), none);
    keel_point_t far = submit(rig->on_cpu, keel_point(rig->s, 1), none);
    not_yet(rig->s, 1);
    if (lost) native_lose(rig->native, KEEL_ERROR(KEEL_DEVICE_LOST, "it fell down"));
    if (!lost) {
        keel_device_release(rig->native);
        rig->native = NULL;
    }
    sleepers_join(sleepers, SLEEPERS, code);
    fails(native, code, words);
    fails(mixed, code, words);
    fails(far, code, words);
    fails(keel_point(rig->t, 1), code, words);
    keel_queue_release(queue);
}

static void closing_ends_all_waits(void **state)
{
    ends(*state, false);
}

static void loss_ends_all_waits(void **state)
{
    ends(*state, true);
}

static void child_has_nothing_to_wait_for(void **state)
{
    rig_t *rig = *state;
    assert_null(keel_semaphore_signal(rig->s, 3));
    pid_t child = fork();
    if (!child) {
        uint64_t value = 0;
        keel_point_t point = keel_point(rig->s, 4);
        bool good = !keel_semaphore_value(rig->s, &value) && value == 3;
        keel_status_t status = keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER);
        good = good && keel_status_code(status) == KEEL_DEVICE_LOST;
        keel_status_release(status);
        status = keel_semaphore_signal(rig->s, 4);
        good = good && keel_status_code(status) == KEEL_DEVICE_LOST;
        keel_status_release(status);
        teardown(state);
        _exit(good ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    native_signal_there(rig->s, 4);
    reach(rig->s, 4);
}

// A lost wake-up hangs this.
typedef struct pair_t {
    rig_t *rig;
    uint64_t rounds;
} pair_t;

static void *pong(void *argument)
{
    const pair_t *pair = argument;
    for (uint64_t i = 1; i <= pair->rounds; i++) {
        reach(pair->rig->s, i);
        if (i % 3 == 0)
            native_signal_there(pair->rig->t, i);
        else if (i % 3 == 1)
            assert_null(keel_semaphore_signal(pair->rig->t, i));
        else
            submit(pair->rig->on_native, none, keel_point(pair->rig->t, i));
    }
    return NULL;
}

static void loses_no_wake_up(void **state)
{
    pair_t pair = {*state, strchr(uri, '?') ? 300 : 3000};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, pong, &pair), 0);
    for (uint64_t i = 1; i <= pair.rounds; i++) {
        if (i % 2)
            native_signal_there(pair.rig->s, i);
        else
            submit(pair.rig->on_cpu, none, keel_point(pair.rig->s, i));
        reach(pair.rig->t, i);
    }
    pthread_join(thread, NULL);
}

// Semaphores come and go while the poller looks.
static void semaphores_come_and_go(void **state)
{
    rig_t *rig = *state;
    for (int i = 0; i < 300; i++) {
        keel_semaphore_t *brief = make(rig->native);
        keel_point_t point = keel_point(brief, 1), done = submit(rig->on_cpu, point, none);
        if (i % 3 == 0) submit(rig->on_native, none, point);
        if (i % 3 == 1) native_signal_there(brief, 1);
        if (i % 3 == 2) assert_null(keel_semaphore_fail(brief, KEEL_ERROR(KEEL_ABORTED, "brief")));
        keel_semaphore_release(brief);
        keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
        assert_int_equal(keel_status_code(status), i % 3 == 2 ? KEEL_ABORTED : KEEL_OK);
        keel_status_release(status);
    }
}

int main(void)
{
    assert_null(keel_driver_register(&native_driver));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(waits_in_all_directions, setup, teardown),
        cmocka_unit_test_setup_teardown(waits_across_devices, setup, teardown),
        cmocka_unit_test_setup_teardown(device_needs_no_host, setup, teardown),
        cmocka_unit_test_setup_teardown(tells_many_waiters, setup, teardown),
        cmocka_unit_test_setup_teardown(tells_of_jumps, setup, teardown),
        cmocka_unit_test_setup_teardown(fails_from_the_device, setup, teardown),
        cmocka_unit_test_setup_teardown(fails_from_the_host, setup, teardown),
        cmocka_unit_test_setup_teardown(failure_keeps_what_was_reached, setup, teardown),
        cmocka_unit_test_setup_teardown(failed_submissions_fail_their_signals, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_signals_out_of_order, setup, teardown),
        cmocka_unit_test_setup_teardown(fails_signals_from_the_first_out_of_order, setup, teardown),
        cmocka_unit_test_setup_teardown(closing_ends_all_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(loss_ends_all_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(child_has_nothing_to_wait_for, setup, teardown),
        cmocka_unit_test_setup_teardown(loses_no_wake_up, setup, teardown),
        cmocka_unit_test_setup_teardown(semaphores_come_and_go, setup, teardown),
    };
    uri = "native://";
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    uri = "native://?poll=1";
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
