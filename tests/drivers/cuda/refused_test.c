// SPDX-License-Identifier: Apache-2.0
// A wait that the vendor refuses to put on a stream, on the CUDA driver in software, whose copies
// take 200 ms: the submission fails, and what it would have waited for goes on.
#include <stdlib.h>

#include "drivers/cuda/device.h"

enum { SIZE = 4096, SLOW_NS = 200 * MS };

static void nothing_is_reached_early(void **state)
{
    (void)state;
    keel_queue_t *queue = NULL;
    setenv("KEEL_SIM_CUDA", "slow=200000,fail=cuStreamWaitEvent:1:2", 1);
    keel_device_t *device = device_open("");
    assert_null(keel_queue_create(device, NULL, &queue));
    keel_buffer_t *from = buffer_create(device, SIZE, KEEL_MEMORY_HOST_VISIBLE);
    keel_buffer_t *to = buffer_create(device, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    keel_buffer_t *other = buffer_create(device, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
    uint64_t start = keel_now_ns();
    keel_point_t copied, refused;
    assert_null(keel_queue_copy(keel_device_queue(device, 0), KEEL_NO_WAITS, keel_whole(from),
                                keel_whole(to), &copied));
    assert_null(keel_queue_fill(queue, KEEL_AFTER(copied), keel_whole(other), 1, 4, &refused));
    keel_status_t status = keel_wait(&refused, 1, KEEL_ALL, KEEL_FOREVER);
    assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
    keel_status_release(status);
    ok(copied);
    assert_true(keel_now_ns() - start >= SLOW_NS);
    keel_buffer_release(from), keel_buffer_release(to), keel_buffer_release(other);
    keel_queue_release(queue);
    keel_device_release(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_reached_early)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
