// SPDX-License-Identifier: Apache-2.0
// Semaphores of several processes (kit/shared.h): what a process does that breaks the rules, and
// the thread that watches. The other process is this one, with a mapping of its own.
#include "kit/shared.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <keel/keel.h>

#include "base/shared_page.h"
#include "unit.h"

// The page, as its layout is.
typedef struct raw_t {
    _Atomic uint64_t magic, value;
    _Atomic uint32_t bell, cause, code;
    _Alignas(8) char text[SHARED_TEXT];
} raw_t;

enum { CLAIMED = 1, WRITTEN = 2 }; // of `cause`
static const uint64_t FAILED = UINT64_C(1) << 63;

typedef struct rig_t {
    keel_device_t *device;
    keel_semaphore_t *s;
    raw_t *raw;
    int fd;
} rig_t;

static int setup(void **state)
{
    static rig_t rig;
    keel_semaphore_options_t options = {.initial = 5, .name = "s", .shared = true};
    keel_external_semaphore_t external = {.kind = KEEL_SEMAPHORE_SHARED_FD};
    *state = &rig;
    assert_null(keel_device_open("cpu://inline", NULL, &rig.device));
    assert_null(keel_semaphore_create(rig.device, &options, &rig.s));
    assert_null(keel_semaphore_export(rig.s, &external));
    rig.fd = external.handle.fd;
    rig.raw = mmap(NULL, sizeof *rig.raw, PROT_READ | PROT_WRITE, MAP_SHARED, rig.fd, 0);
    assert_ptr_not_equal(rig.raw, MAP_FAILED);
    assert_int_equal(atomic_load(&rig.raw->value), 5);
    return 0;
}

static int teardown(void **state)
{
    rig_t *rig = *state;
    munmap(rig->raw, sizeof *rig->raw);
    close(rig->fd);
    keel_semaphore_release(rig->s);
    keel_device_release(rig->device);
    return 0;
}

static void assert_fails(keel_status_t status, keel_code_t code, const char *part)
{
    assert_int_equal(keel_status_code(status), code);
    if (!strstr(keel_status_message(status), part)) fail_msg("%s", keel_status_message(status));
    keel_status_release(status);
}

static keel_status_t wait_for(keel_semaphore_t *semaphore, uint64_t value)
{
    return keel_wait(KEEL_POINTS(keel_point(semaphore, value)), KEEL_ALL, KEEL_FOREVER);
}

static keel_point_t submit_behind(const rig_t *rig, uint64_t value)
{
    keel_point_t done = {0};
    assert_null(keel_queue_signal(keel_device_queue(rig->device, 0),
                                  KEEL_AFTER(keel_point(rig->s, value)), KEEL_NO_SIGNALS, &done));
    return done;
}

static void memory_cannot_shrink(void **state)
{
    const rig_t *rig = *state;
    assert_int_equal(ftruncate(rig->fd, 0), -1);
    assert_int_equal(errno, EPERM);
}

// It fails for this process, and for those that look later.
static void lowered(void **state)
{
    const rig_t *rig = *state;
    uint64_t value = 0;
    keel_semaphore_t *other = NULL;
    keel_external_semaphore_t external = {KEEL_SEMAPHORE_SHARED_FD, {rig->fd}};
    assert_null(keel_semaphore_import(rig->device, &external, NULL, &other));
    keel_point_t done = submit_behind(rig, 6);
    atomic_store(&rig->raw->value, 3);
    assert_fails(wait_for(rig->s, 6), KEEL_ABORTED, "lowered semaphore 's' from 5 to 3");
    assert_fails(wait_for(done.semaphore, done.value), KEEL_ABORTED, "lowered");
    assert_fails(keel_semaphore_value(rig->s, &value), KEEL_ABORTED, "lowered");
    assert_int_equal(value, 5);
    assert_fails(keel_semaphore_signal(other, 9), KEEL_ABORTED, "lowered");
    keel_semaphore_release(other);
}

static void wild_value(void **state)
{
    const rig_t *rig = *state;
    uint64_t value = 0;
    atomic_store(&rig->raw->value, FAILED - 1);
    assert_null(wait_for(rig->s, FAILED - 1));
    assert_null(keel_semaphore_value(rig->s, &value));
    assert_int_equal(value, FAILED - 1);
    assert_fails(keel_semaphore_signal(rig->s, FAILED - 1), KEEL_FAILED_PRECONDITION, "reached");
}

// A process that died over it, or never meant to.
static void no_cause(void **state)
{
    const rig_t *rig = *state;
    atomic_store(&rig->raw->cause, CLAIMED);
    strcpy(rig->raw->text, "half a sent");
    atomic_fetch_or(&rig->raw->value, FAILED);
    assert_fails(wait_for(rig->s, 6), KEEL_ABORTED, "it left no cause");
    assert_null(wait_for(rig->s, 5));
}

static void bad_cause(void **state)
{
    const rig_t *rig = *state;
    memset(rig->raw->text, 'x', SHARED_TEXT); // and no end
    rig->raw->text[3] = '\n';
    rig->raw->text[4] = 0x1b;
    atomic_store(&rig->raw->code, 12345);
    atomic_store(&rig->raw->cause, WRITTEN);
    atomic_fetch_or(&rig->raw->value, FAILED);
    assert_fails(wait_for(rig->s, 6), KEEL_INTERNAL, "xxx  xxx");
}

static void cause_of_success(void **state)
{
    const rig_t *rig = *state;
    strcpy(rig->raw->text, "all is well");
    atomic_store(&rig->raw->cause, WRITTEN);
    atomic_fetch_or(&rig->raw->value, FAILED);
    assert_fails(wait_for(rig->s, 6), KEEL_INTERNAL, "all is well");
}

// Another cause came first: the failure is made all the same.
static void second_cause(void **state)
{
    const rig_t *rig = *state;
    atomic_store(&rig->raw->cause, CLAIMED);
    assert_null(keel_semaphore_fail(rig->s, KEEL_ERROR(KEEL_IO, "mine")));
    assert_true(atomic_load(&rig->raw->value) & FAILED);
    assert_fails(wait_for(rig->s, 6), KEEL_IO, "mine");
}

typedef struct vandal_t {
    raw_t *raw;
    size_t first, count; // of words of 32 bits
    atomic_bool stop;
} vandal_t;

static void *vandal_main(void *user)
{
    vandal_t *vandal = user;
    _Atomic uint32_t *words = (_Atomic uint32_t *)(void *)vandal->raw;
    uint32_t random = 1;
    while (!atomic_load(&vandal->stop)) {
        random = random * 1664525 + 1013904223;
        atomic_store(&words[vandal->first + (random >> 8) % vandal->count], random);
        if (random >> 28 == 0) sched_yield();
    }
    return NULL;
}

// Uses all there is while the page changes; what comes is not known, but that it comes.
static void use(const rig_t *rig, uint64_t turn)
{
    uint64_t value;
    keel_point_t point = keel_point(rig->s, turn % 4 ? turn : UINT64_C(1) << 62);
    keel_external_semaphore_t external = {KEEL_SEMAPHORE_SHARED_FD, {rig->fd}};
    keel_semaphore_t *other = NULL;
    keel_status_release(keel_semaphore_value(rig->s, &value));
    keel_status_release(keel_semaphore_signal(rig->s, turn));
    keel_status_release(keel_wait(KEEL_POINTS(point), KEEL_ALL, turn % 64 ? 0 : 1000000));
    keel_status_release(keel_queue_signal(keel_device_queue(rig->device, 0), KEEL_POINTS(point),
                                          KEEL_NO_SIGNALS, NULL));
    keel_status_release(keel_semaphore_import(rig->device, &external, NULL, &other));
    if (turn % 512 == 0) keel_status_release(keel_semaphore_fail(rig->s, KEEL_ERROR(KEEL_IO, "x")));
    keel_semaphore_release(other);
}

static void page_is_scribbled_on(void **state)
{
    // All of it, all but the magic, and the bell alone, by which the watcher is kept awake.
    const size_t parts[][2] = {{0, sizeof(raw_t) / 4}, {2, sizeof(raw_t) / 4 - 2}, {4, 1}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        assert_int_equal(setup(state), 0);
        const rig_t *rig = *state;
        vandal_t vandal = {.raw = rig->raw, .first = parts[i][0], .count = parts[i][1]};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, vandal_main, &vandal), 0);
        for (uint64_t turn = 6; turn < 2000; turn++) use(rig, turn);
        atomic_store(&vandal.stop, true);
        pthread_join(thread, NULL);
        teardown(state);
    }
}

// How many threads of this process have the watcher's name.
static int watchers(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    const struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        if (fgets(name, sizeof name, file)) count += strcmp(name, "keel-shared\n") == 0;
        fclose(file);
    }
    if (folder) closedir(folder);
    return count;
}

static void watchers_come_to(int count)
{
    while (watchers() != count) usleep(1000); // the test's time limit ends it
}

// One thread for all, while something waits.
static void one_watcher(void **state)
{
    const rig_t *rig = *state;
    keel_semaphore_options_t options = {.shared = true};
    keel_semaphore_t *second = NULL;
    assert_null(keel_semaphore_create(rig->device, &options, &second));
    assert_null(keel_semaphore_signal(rig->s, 6));
    assert_null(wait_for(rig->s, 6));
    watchers_come_to(0); // those of the tests before, too
    keel_point_t done = submit_behind(rig, 7), also;
    assert_null(keel_queue_signal(keel_device_queue(rig->device, 0),
                                  KEEL_AFTER(keel_point(second, 1)), KEEL_NO_SIGNALS, &also));
    watchers_come_to(1);
    assert_null(keel_semaphore_signal(rig->s, 7));
    assert_null(keel_semaphore_signal(second, 1));
    assert_null(wait_for(done.semaphore, done.value));
    assert_null(wait_for(also.semaphore, also.value));
    watchers_come_to(0);
    keel_semaphore_release(second);
}

// A process releases its semaphore and closes the device while the watcher still looks at it: the
// others keep theirs.
static void closed_behind_it(void **state)
{
    enum { ROUNDS = 500 };
    const rig_t *rig = *state;
    keel_external_semaphore_t external = {KEEL_SEMAPHORE_SHARED_FD, {rig->fd}};
    for (uint64_t value = 6; value < 6 + ROUNDS; value++) {
        keel_device_t *device = NULL;
        keel_semaphore_t *mine = NULL;
        keel_point_t done;
        assert_null(keel_device_open("cpu://inline", NULL, &device));
        assert_null(keel_semaphore_import(device, &external, NULL, &mine));
        assert_null(keel_queue_signal(keel_device_queue(device, 0),
                                      KEEL_AFTER(keel_point(mine, value)), KEEL_NO_SIGNALS, &done));
        assert_null(keel_semaphore_signal(rig->s, value));
        assert_null(wait_for(done.semaphore, done.value)); // the watcher has ended it
        keel_semaphore_release(mine);
        keel_device_release(device);
        assert_int_equal(atomic_load(&rig->raw->value), value);
    }
}

int main(void)
{
    if (!shared_page_is_supported()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_cannot_shrink, setup, teardown),
        cmocka_unit_test_setup_teardown(lowered, setup, teardown),
        cmocka_unit_test_setup_teardown(wild_value, setup, teardown),
        cmocka_unit_test_setup_teardown(no_cause, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_cause, setup, teardown),
        cmocka_unit_test_setup_teardown(cause_of_success, setup, teardown),
        cmocka_unit_test_setup_teardown(second_cause, setup, teardown),
        cmocka_unit_test(page_is_scribbled_on),
        cmocka_unit_test_setup_teardown(one_watcher, setup, teardown),
        cmocka_unit_test_setup_teardown(closed_behind_it, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
