// SPDX-License-Identifier: Apache-2.0
// What a CUDA device changes of the threads that call it, on the CUDA driver in software: nothing
// that they could see afterwards, and nothing at all where no call needs it.
#include "drivers/cuda/device.h"

enum { SIZE = FILLED, COUNT = 100 };

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
static _Thread_local uint32_t switches, exchanges, creations;
static _Thread_local CUcontext during; // a fill

static CUresult set_current(CUcontext context)
{
    switches++;
    return real.cuCtxSetCurrent(context);
}

static CUresult exchange(CUstreamCaptureMode *mode)
{
    exchanges++;
    return real.cuThreadExchangeStreamCaptureMode(mode);
}

static CUresult create_event(CUevent *event, unsigned flags)
{
    creations++;
    return real.cuEventCreate(event, flags);
}

static CUresult fill_words(CUdeviceptr target, unsigned value, size_t count, CUstream stream)
{
    assert_int_equal(real.cuCtxGetCurrent(&during), 0);
    return real.cuMemsetD32Async(target, value, count, stream);
}

static int setup(void **state)
{
    (void)state;
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    symbols->cuCtxSetCurrent = set_current;
    symbols->cuThreadExchangeStreamCaptureMode = exchange;
    symbols->cuEventCreate = create_event;
    symbols->cuMemsetD32Async = fill_words;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    *symbols = real;
    return 0;
}

typedef struct work_t {
    keel_device_t *device;
    keel_queue_t *queue;
    keel_buffer_t *buffer;
} work_t;

static void work_begin(work_t *work, const char *options)
{
    work->device = device_open(options);
    work->queue = keel_device_queue(work->device, 0);
    work->buffer = buffer_create(work->device, SIZE, KEEL_MEMORY_DEVICE_LOCAL);
}

static void work_end(const work_t *work)
{
    CUcontext current = NULL;
    keel_buffer_release(work->buffer);
    keel_device_release(work->device);
    assert_int_equal(real.cuCtxGetCurrent(&current), 0);
    assert_null(current);
}

static keel_point_t fill(const work_t *work)
{
    keel_point_t point;
    assert_null(
        keel_queue_fill(work->queue, KEEL_NO_WAITS, keel_whole(work->buffer), 1, 4, &point));
    return point;
}

static void zero(void)
{
    switches = exchanges = creations = 0;
}

// Only where an event is missing does it need more.
static void test_submissions_need_nothing(void **state)
{
    (void)state;
    work_t work;
    uint32_t quiet = 0;
    work_begin(&work, "");
    for (int i = 0; i < COUNT; i++) {
        zero();
        keel_point_t point = fill(&work);
        assert_null(during);
        assert_true(switches <= 2 * creations);
        quiet += !exchanges;
        ok(point);
    }
    assert_true(quiet > COUNT / 2); // now and then one asks what has ended
    work_end(&work);
}

static void test_allocas_need_no_context(void **state)
{
    (void)state;
    work_t work;
    work_begin(&work, "");
    zero();
    for (int i = 0; i < COUNT; i++) {
        keel_buffer_t *buffer = NULL;
        keel_point_t point;
        uint64_t size = SIZE + (i % 2 ? SIZE : 0); // or what is given back is used again
        assert_null(keel_queue_alloca(work.queue, NULL, size, &buffer, &point));
        assert_null(keel_queue_dealloca(work.queue, KEEL_AFTER(point), buffer, &point));
        keel_buffer_release(buffer);
    }
    assert_true(switches <= 2 * creations);
    assert_true(exchanges >= 2 * (COUNT - 1)); // there and back, for the free and the alloc
    assert_null(keel_queue_wait_idle(work.queue, KEEL_FOREVER));
    work_end(&work);
}

// A default stream is that of the current context.
static void test_default_streams_need_a_context(void **state)
{
    (void)state;
    work_t work;
    work_begin(&work, "&stream=0x1");
    ok(fill(&work));
    assert_non_null(during);
    work_end(&work);
}

// What calls need is known of CUDA 13.
static void test_older_drivers_get_a_context(void **state)
{
    (void)state;
    work_t work;
    int version = symbols->version;
    symbols->version = 12080;
    work_begin(&work, "");
    ok(fill(&work));
    assert_non_null(during);
    work_end(&work);
    symbols->version = version;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_submissions_need_nothing),
        cmocka_unit_test(test_allocas_need_no_context),
        cmocka_unit_test(test_default_streams_need_a_context),
        cmocka_unit_test(test_older_drivers_get_a_context),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
