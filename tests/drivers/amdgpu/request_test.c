// SPDX-License-Identifier: Apache-2.0
// What the GPU asks the host for: host calls, files and signals of semaphores that are not the
// device's. It waits by itself, and asks when the time has come. Run on the software GPU (keel
// sim).
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "drivers/amdgpu/host/scheduler/scheduler.h"
#include "drivers/amdgpu/setup.h"

static amdgpu_scheduler_t *scheduler_of(const setup_t *s)
{
    return amdgpu_device(s->device)->scheduler;
}

static keel_point_t at(const setup_t *s, uint64_t value)
{
    return keel_point(s->semaphore, value);
}

// Waits for a value of the semaphore, and signals the next one.
static keel_point_t link_submit(const setup_t *s, uint64_t value, keel_op_t op)
{
    keel_point_t done;
    OK(keel_queue_submit(s->queue, KEEL_POINTS(at(s, value)), &op, 1, KEEL_POINTS(at(s, value + 1)),
                         &done));
    return done;
}

// What the GPU has waiting asks for that, of the submission that came last; and no thread waits for
// the semaphore in its place.
static void waiting_check(const setup_t *s, uint32_t request)
{
    amdgpu_scheduler_t *scheduler = scheduler_of(s);
    lock_enter(&scheduler->lock);
    assert_non_null(scheduler->runs);
    assert_int_equal(scheduler->runs->record->request, request);
    lock_leave(&scheduler->lock);
    const cell_t *cell = amdgpu_cell_of(s->semaphore, s->device);
    assert_int_equal(PROTOCOL_LOAD(&cell->awaited, __ATOMIC_RELAXED), PROTOCOL_NOBODY);
}

static keel_status_t count(void *user, keel_host_call_t *call)
{
    (void)call;
    atomic_fetch_add((_Atomic uint32_t *)user, 1);
    return NULL;
}

// The GPU waits, asks for the call, and is woken by its signal.
static void test_a_call_is_asked_for(void **state)
{
    (void)state;
    setup_t s;
    _Atomic uint32_t calls = 0;
    setup_open(&s, "amdgpu://0", 0);
    link_submit(&s, 1, keel_op_fill(word(&s, 0), 3, 4));
    link_submit(&s, 2, keel_op_host_call(count, &calls));
    waiting_check(&s, REQUEST_WORK);
    link_submit(&s, 3, keel_op_fill(word(&s, 1), 4, 4));
    waiting_check(&s, REQUEST_NONE);
    assert_int_equal(atomic_load(&calls), 0);
    OK(keel_semaphore_signal(s.semaphore, 1));
    OK(keel_wait(KEEL_POINTS(at(&s, 4)), KEEL_ALL, KEEL_FOREVER));
    assert_int_equal(atomic_load(&calls), 1);
    const uint32_t *words = map(&s);
    assert_int_equal(words[0], 3);
    assert_int_equal(words[1], 4);
    keel_buffer_unmap(s.buffer);
    setup_close(&s);
}

// The file gets what the GPU has written before, and the GPU reads it from there.
static void test_files_are_asked_for(void **state)
{
    (void)state;
    char path[] = "/tmp/keel-request-XXXXXX";
    setup_t s;
    keel_file_t *file;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    setup_open(&s, "amdgpu://0", 0);
    OK(keel_file_open(s.device, path, KEEL_FILE_READ | KEEL_FILE_WRITE, &file));
    link_submit(&s, 1, keel_op_fill(word(&s, 0), 0x1234567, 4));
    link_submit(&s, 2, keel_op_write(word(&s, 0), file, 0));
    waiting_check(&s, REQUEST_WORK);
    link_submit(&s, 3, keel_op_read(file, 0, word(&s, 1)));
    waiting_check(&s, REQUEST_WORK);
    link_submit(&s, 4, keel_op_copy(word(&s, 1), word(&s, 2)));
    OK(keel_semaphore_signal(s.semaphore, 1));
    OK(keel_wait(KEEL_POINTS(at(&s, 5)), KEEL_ALL, KEEL_FOREVER));
    assert_int_equal(map(&s)[2], 0x1234567);
    keel_buffer_unmap(s.buffer);
    keel_file_release(file);
    setup_close(&s);
    close(fd);
    unlink(path);
}

// A semaphore of another device: the host is told at once, though the GPU has more to do and no
// thread waits for a point of its own.
static void test_a_signal_is_asked_for(void **state)
{
    (void)state;
    setup_t s;
    keel_device_t *cpu;
    keel_semaphore_t *other;
    setup_open(&s, "amdgpu://0", 0);
    const scheduler_t *shared = scheduler_of(&s)->controls[0].shared;
    OK(keel_device_open("cpu://", NULL, &cpu));
    OK(keel_semaphore_create(cpu, NULL, &other));
    const keel_point_t outside = keel_point(other, 1);
    const keel_op_t op = keel_op_fill(word(&s, 0), 3, 4);
    link_submit(&s, 5, op); // waits all the time
    OK(keel_queue_submit(s.queue, KEEL_POINTS(at(&s, 1)), &op, 1, KEEL_POINTS(outside), NULL));
    waiting_check(&s, REQUEST_SIGNALS);
    uint64_t told = __atomic_load_n(&shared->told, __ATOMIC_ACQUIRE);
    OK(keel_semaphore_signal(s.semaphore, 1));
    OK(keel_wait(KEEL_POINTS(outside), KEEL_ALL, KEEL_FOREVER));
    while (__atomic_load_n(&shared->told, __ATOMIC_ACQUIRE) == told) sched_yield();
    OK(keel_semaphore_signal(s.semaphore, 5));
    OK(keel_wait(KEEL_POINTS(at(&s, 6)), KEEL_ALL, KEEL_FOREVER));
    keel_semaphore_release(other);
    keel_device_release(cpu);
    setup_close(&s);
}

// What the call waits for fails: the host is not asked, and what waits for the call fails on the
// GPU, all with the cause.
static void test_nothing_is_asked_for_behind_a_failure(void **state)
{
    (void)state;
    setup_t s;
    _Atomic uint32_t calls = 0;
    setup_open(&s, "amdgpu://0", 0);
    const scheduler_t *shared = scheduler_of(&s)->controls[0].shared;
    const keel_point_t points[] = {
        link_submit(&s, 1, keel_op_host_call(count, &calls)),
        link_submit(&s, 2, keel_op_fill(word(&s, 0), 3, 4)),
        link_submit(&s, 3, keel_op_host_call(count, &calls)),
    };
    waiting_check(&s, REQUEST_WORK);
    uint64_t issued = __atomic_load_n(&shared->issued, __ATOMIC_ACQUIRE);
    OK(keel_semaphore_fail(s.semaphore, KEEL_ERROR(KEEL_ABORTED, "enough")));
    for (int i = 0; i < 3; i++) {
        keel_status_t status = keel_wait(KEEL_POINTS(points[i]), KEEL_ALL, KEEL_FOREVER);
        assert_int_equal(keel_status_code(status), KEEL_ABORTED);
        assert_non_null(strstr(keel_status_message(status), "enough"));
        keel_status_release(status);
    }
    assert_int_equal(atomic_load(&calls), 0);
    assert_int_equal(__atomic_load_n(&shared->issued, __ATOMIC_ACQUIRE), issued);
    setup_close(&s);
}

// Cancelled, a call that waits on the GPU is not made, nor one that is left when the device goes.
static void test_calls_that_wait_can_be_given_up(void **state)
{
    (void)state;
    setup_t s;
    keel_cancel_t was;
    _Atomic uint32_t calls = 0;
    setup_open(&s, "amdgpu://0", 0);
    keel_point_t done = link_submit(&s, 1, keel_op_host_call(count, &calls));
    waiting_check(&s, REQUEST_WORK);
    OK(keel_queue_cancel(done, &was));
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
    assert_int_equal(keel_status_code(status), KEEL_CANCELLED);
    keel_status_release(status);
    keel_semaphore_release(s.semaphore);
    OK(keel_semaphore_create(s.device, NULL, &s.semaphore));
    link_submit(&s, 1, keel_op_host_call(count, &calls));
    waiting_check(&s, REQUEST_WORK);
    setup_close(&s);
    assert_int_equal(atomic_load(&calls), 0);
}

int main(void)
{
    if (!getenv("KEEL_SIM_GPUS")) return 77; // to be run by keel sim
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_is_asked_for),
        cmocka_unit_test(test_files_are_asked_for),
        cmocka_unit_test(test_a_signal_is_asked_for),
        cmocka_unit_test(test_nothing_is_asked_for_behind_a_failure),
        cmocka_unit_test(test_calls_that_wait_can_be_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
