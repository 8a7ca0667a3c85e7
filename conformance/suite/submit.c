// SPDX-License-Identifier: Apache-2.0
// Submitting and waiting.
#include "suite/fixture.h"

#include "suite/run.h"

#include <sched.h>
#include <stdio.h>

uint64_t patience(void)
{
    return (uint64_t)(limit_of(run_settings(), NULL) * 0.6e9);
}

keel_point_t submit_all(keel_points_t waits, const keel_op_t *ops, size_t count)
{
    keel_point_t done = keel_point(NULL, 0);
    TRY(keel_queue_submit(the_queue(), waits, ops, count, KEEL_NO_SIGNALS, &done));
    return done;
}

keel_point_t submit_after(keel_points_t waits, keel_op_t op)
{
    return submit_all(waits, &op, 1);
}

keel_point_t submit(keel_op_t op)
{
    return submit_all(KEEL_NO_WAITS, &op, 1);
}

keel_point_t queue_hold(keel_queue_t *queue, keel_buffer_t *words, uint32_t ms)
{
    uint32_t k[] = {0, 2, ms * 1000};
    keel_op_t op = op_kernel("await", 1, k, sizeof k, KEEL_BIND(words));
    keel_point_t held = keel_point(NULL, 0);
    TRY(keel_queue_run(queue, KEEL_NO_WAITS, op, &held));
    return held;
}

void reach_(const char *file, int line, keel_point_t point)
{
    char call[64];
    snprintf(call, sizeof call, "waiting for value %llu", (unsigned long long)point.value);
    check_ok(file, line, call, keel_wait(KEEL_POINTS(point), KEEL_ALL, patience()));
}

void reach_polling_(const char *file, int line, keel_points_t points, keel_wait_mode_t mode)
{
    uint64_t deadline = keel_now_ns() + patience();
    keel_status_t status;
    while (keel_status_code(status = keel_wait(points, mode, 0)) == KEEL_DEADLINE_EXCEEDED &&
           keel_now_ns() < deadline) {
        keel_status_release(status);
        sched_yield();
    }
    check_ok(file, line, "polling", status);
}

void reach_failure_(const char *file, int line, keel_point_t point, keel_code_t code,
                    const char *part)
{
    char call[64];
    snprintf(call, sizeof call, "waiting for value %llu", (unsigned long long)point.value);
    check_error(file, line, call, keel_wait(KEEL_POINTS(point), KEEL_ALL, patience()), code, part);
}

bool ended(keel_point_t point)
{
    keel_status_t status = keel_wait(KEEL_POINTS(point), KEEL_ALL, 0);
    bool over = keel_status_code(status) != KEEL_DEADLINE_EXCEEDED;
    keel_status_release(status);
    return over;
}

bool pending(keel_point_t point)
{
    return !ended(point) || faulted();
}

uint64_t value_of(keel_semaphore_t *semaphore)
{
    uint64_t value = 0;
    TRY(keel_semaphore_value(semaphore, &value));
    return value;
}
