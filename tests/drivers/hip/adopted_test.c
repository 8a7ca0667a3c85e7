// SPDX-License-Identifier: Apache-2.0
// Streams of the application as queues of hip://0. Run on two software GPUs (keel sim).
#include <keel/keel.h>
#include <stdio.h>
#include <string.h>

#include "drivers/hip/symbols.h"
#include "ok.h"
#include "unit.h"

static const hip_symbols_t *hip;
static hipStream_t streams[2]; // one of each device

static int streams_open(void **state)
{
    (void)state;
    OK(hip_symbols_open(NULL, &hip));
    for (int i = 1; i >= 0; i--) {
        assert_int_equal(hip->hipSetDevice(i), hipSuccess);
        assert_int_equal(hip->hipStreamCreateWithPriority(&streams[i], hipStreamNonBlocking, 0),
                         hipSuccess);
    }
    return 0;
}

static int streams_close(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) assert_int_equal(hip->hipStreamDestroy(streams[i]), hipSuccess);
    return 0;
}

static keel_status_t open_with(const void *stream, keel_device_t **device)
{
    char uri[64];
    *device = NULL;
    snprintf(uri, sizeof uri, "hip://0?stream=%p", stream);
    return keel_device_open(uri, NULL, device);
}

// The application's own wait for its stream covers what Keel has put there.
static void test_work_goes_to_the_stream(void **state)
{
    (void)state;
    enum { SIZE = 4096 };
    const keel_buffer_options_t options = {
        .size = SIZE, .memory = KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_DEVICE_VISIBLE};
    keel_device_t *device;
    keel_buffer_t *buffer = NULL;
    keel_point_t filled;
    void *data = NULL;
    OK(open_with(streams[0], &device));
    OK(keel_buffer_create(device, &options, &buffer));
    OK(keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS,
                      keel_op_fill(keel_whole(buffer), 7, 1), &filled));
    assert_int_equal(hip->hipStreamSynchronize(streams[0]), hipSuccess);
    OK(keel_buffer_map(buffer, 0, KEEL_WHOLE, KEEL_ACCESS_READ, &data));
    assert_int_equal(((const char *)data)[SIZE - 1], 7);
    keel_buffer_unmap(buffer);
    OK(keel_wait(KEEL_POINTS(filled), KEEL_ALL, KEEL_FOREVER));
    keel_buffer_release(buffer);
    keel_device_release(device);
}

static void refused(const void *stream, const char *words)
{
    keel_device_t *device;
    keel_status_t status = open_with(stream, &device);
    if (keel_status_code(status) != KEEL_INVALID_ARGUMENT ||
        !strstr(keel_status_message(status), words))
        fail_msg("%p: %s", stream, keel_status_message(status));
    assert_null(device);
    keel_status_release(status);
}

static void test_other_streams_are_refused(void **state)
{
    (void)state;
    refused(streams[1], "another device than 0");
    refused((const void *)(uintptr_t)1, "default streams");
    refused((const void *)(uintptr_t)2, "default streams");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work_goes_to_the_stream),
        cmocka_unit_test(test_other_streams_are_refused),
    };
    return cmocka_run_group_tests(tests, streams_open, streams_close);
}
