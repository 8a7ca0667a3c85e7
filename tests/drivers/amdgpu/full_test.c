// SPDX-License-Identifier: Apache-2.0
// More packets at a time than the ring of a queue has room for. Run on the software GPU (keel sim);
// full.sh runs it also where tools watch. The argument is the device's URI; with `rings`, in place
// of that, it says whether the device opens by the options that say where rings lie.
#include <stdio.h>
#include <stdlib.h>

#include "drivers/amdgpu/host/scheduler/scheduler.h"
#include "drivers/amdgpu/setup.h"

enum { RUNS = 24, FILLS = 250 };
_Static_assert(RUNS *FILLS > AMDGPU_DEVICE_ROOM, "they are more than the scheduler's");
_Static_assert(RUNS > (int)AMDGPU_SLOTS, "and more than the host's");

static const char *uri = "amdgpu://0";

// All are let go at once; each fills words, which the next ones fill again.
static void test_what_finds_no_room_goes_on_later(void **state)
{
    (void)state;
    setup_t s;
    keel_semaphore_t *gate = NULL;
    setup_open(&s, uri, 1);
    OK(keel_semaphore_create(s.device, NULL, &gate));
    for (uint32_t i = 0; i < FILLS; i++)
        add(&s, keel_op_fill(keel_slot(0, i * sizeof i, sizeof i), i + 1, sizeof i));
    OK(keel_recording_end(s.recording));
    const keel_op_t op = keel_op_execute(s.recording, KEEL_BIND(s.buffer));
    const keel_point_t open = keel_point(gate, 1);
    keel_point_t ends[RUNS];
    for (int i = 0; i < RUNS; i++)
        OK(keel_queue_submit(s.queue, KEEL_POINTS(open), &op, 1, KEEL_NO_SIGNALS, &ends[i]));
    OK(keel_semaphore_signal(gate, 1));
    OK(keel_wait((keel_points_t){ends, RUNS}, KEEL_ALL, KEEL_FOREVER));
    const uint32_t *words = map(&s);
    for (uint32_t i = 0; i < FILLS; i++) assert_int_equal(words[i], i + 1);
    keel_buffer_unmap(s.buffer);
    keel_semaphore_release(gate);
    setup_close(&s);
}

static int rings_print(void)
{
    static const char *const options[] = {"rings=host", "rings=device"};
    for (int i = 0; i < 2; i++) {
        char with[64];
        keel_device_t *device = NULL;
        snprintf(with, sizeof with, "%s?%s", uri, options[i]);
        keel_status_t status = keel_device_open(with, NULL, &device);
        printf("%s: %s\n", options[i], status ? keel_status_message(status) : "opened");
        keel_status_release(status);
        keel_device_release(device);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (!getenv("KEEL_SIM_GPUS")) return 77; // to be run by keel sim
    if (argc > 1 && !strcmp(argv[1], "rings")) return rings_print();
    if (argc > 1) uri = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_finds_no_room_goes_on_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
