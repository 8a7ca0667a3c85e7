// SPDX-License-Identifier: Apache-2.0
// Numbers of causes are used again when they are free. Run on the software GPU (keel sim).
#include <keel/keel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/amdgpu/host/scheduler/scheduler.h"
#include "ok.h"
#include "unit.h"

enum { AT_FIRST = 16, MANY = 300 }; // so many numbers there are, and come

static keel_device_t *device;
static amdgpu_scheduler_t *scheduler;

static int device_open(void **state)
{
    (void)state;
    OK(keel_device_open("amdgpu://0?scheduler=device", NULL, &device));
    scheduler = amdgpu_device(device)->scheduler;
    return 0;
}

static int device_close(void **state)
{
    (void)state;
    keel_device_release(device);
    return 0;
}

static keel_semaphore_t *semaphore_new(void)
{
    keel_semaphore_t *semaphore = NULL;
    OK(keel_semaphore_create(device, NULL, &semaphore));
    return semaphore;
}

static void semaphore_fail(keel_semaphore_t *semaphore, int number)
{
    keel_status_t why = KEEL_ERROR(KEEL_INTERNAL, "cause %d.", number);
    OK(keel_semaphore_fail(semaphore, why));
}

static void semaphore_check(keel_semaphore_t *semaphore, int number)
{
    char text[32];
    snprintf(text, sizeof text, "cause %d.", number);
    const keel_point_t point = keel_point(semaphore, 1);
    keel_status_t why = keel_wait(KEEL_POINTS(point), KEEL_ALL, KEEL_FOREVER);
    assert_non_null(why);
    bool told = false;
    for (keel_status_t s = why; s; s = keel_status_cause(s))
        told |= strstr(keel_status_message(s), text) != NULL;
    assert_true(told);
    keel_status_release(why);
}

// A submission passes the cause on, on the GPU. Others come and go, and each has its own.
static void test_the_table_stays_small(void **state)
{
    (void)state;
    keel_semaphore_t *kept = semaphore_new();
    semaphore_fail(kept, MANY);
    for (int i = 0; i < MANY; i++) {
        keel_semaphore_t *from = semaphore_new(), *to = semaphore_new();
        const keel_point_t wait = keel_point(from, 1), signal = keel_point(to, 1);
        OK(keel_queue_submit(keel_device_queue(device, 0), KEEL_POINTS(wait), NULL, 0,
                             KEEL_POINTS(signal), NULL));
        semaphore_fail(from, i);
        semaphore_check(to, i);
        OK(keel_queue_wait_idle(keel_device_queue(device, 0), KEEL_FOREVER));
        keel_semaphore_release(from);
        keel_semaphore_release(to);
    }
    // The last ones may be on their way out.
    assert_in_range(scheduler->cause_capacity, AT_FIRST, 2 * AT_FIRST);
    semaphore_check(kept, MANY);
    keel_semaphore_release(kept);
}

static void test_it_grows_where_all_are_needed(void **state)
{
    (void)state;
    keel_semaphore_t *all[MANY];
    for (int i = 0; i < MANY; i++) semaphore_fail(all[i] = semaphore_new(), i);
    for (int i = 0; i < MANY; i++) semaphore_check(all[i], i);
    assert_in_range(scheduler->cause_capacity, MANY, 2 * MANY + AT_FIRST);
    for (int i = 0; i < MANY; i++) keel_semaphore_release(all[i]);
}

// Notes so many; whether the first one's number was used for another.
static bool is_used_again(uint64_t number, keel_status_t why)
{
    lock_enter(&scheduler->lock);
    for (uint64_t i = 0; i < 4 * scheduler->cause_capacity; i++) {
        keel_status_t other = KEEL_ERROR(KEEL_INTERNAL, "another");
        amdgpu_cause_note(scheduler, other);
        keel_status_release(other);
    }
    lock_leave(&scheduler->lock);
    keel_status_t found = amdgpu_cause_get(amdgpu_device(device), number);
    keel_status_release(found);
    return found != why;
}

// A number that only a record has, which the GPU is about to read, or has written.
static void test_records_hold_their_numbers(void **state)
{
    (void)state;
    record_t record = {0};
    amdgpu_run_t run = {.record = &record};
    uint64_t *const words[] = {&record.cancel, &record.cause};
    keel_semaphore_t *lasts = semaphore_new();
    for (int i = 0; i < 2; i++) {
        keel_status_t why = KEEL_ERROR(KEEL_INTERNAL, "this one");
        lock_enter(&scheduler->lock);
        scheduler->runs = &run;
        uint64_t number = *words[i] = amdgpu_cause_note(scheduler, why);
        lock_leave(&scheduler->lock);
        assert_false(is_used_again(number, why));
        lock_enter(&scheduler->lock);
        scheduler->runs = NULL;
        *words[i] = 0;
        lock_leave(&scheduler->lock);
        assert_true(is_used_again(number, why));
        keel_status_release(why);
    }
    keel_semaphore_release(lasts);
}

int main(void)
{
    if (!getenv("KEEL_SIM_GPUS")) return 77; // to be run by keel sim
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_table_stays_small, device_open, device_close),
        cmocka_unit_test_setup_teardown(test_it_grows_where_all_are_needed, device_open,
                                        device_close),
        cmocka_unit_test_setup_teardown(test_records_hold_their_numbers, device_open, device_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
