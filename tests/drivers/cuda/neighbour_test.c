// SPDX-License-Identifier: Apache-2.0
// A CUDA device that another library of the process uses as well, on the CUDA driver in software.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "drivers/cuda/device.h"

enum { SIZE = 1 << 20 };

static const cuda_symbols_t *symbols;
static CUresult (*launch_host_function)(CUstream stream, void (*call)(void *), void *user);
static CUcontext context; // the other library's, which is the primary one

static int setup(void **state)
{
    (void)state;
    setenv("KEEL_SIM_CUDA", "memory=64M,devices=2", 1);
    if (cuda_symbols_open(CUDA_LIBRARY, &symbols)) return 1;
    void *library = dlopen(CUDA_LIBRARY, RTLD_NOW);
    *(void **)&launch_host_function = library ? dlsym(library, "cuLaunchHostFunc") : NULL;
    if (!launch_host_function) return 1;
    return symbols->cuDevicePrimaryCtxRetain(&context, 0) || symbols->cuCtxSetCurrent(context);
}

static int teardown(void **state)
{
    (void)state;
    return symbols->cuCtxSetCurrent(NULL) || symbols->cuDevicePrimaryCtxRelease(0);
}

// The second of the two.
static keel_device_t *device_open_other(void)
{
    keel_device_t *device = NULL;
    assert_null(device_try_open("1", "", &device));
    return device;
}

// Work of the other library's that takes until it is told to end.
static _Atomic bool busy;

static void hold(void *user)
{
    (void)user;
    held_wait(&busy);
}

typedef struct shared_t {
    CUstream stream;       // that both use
    keel_device_t *device; // whose first queue it is
    keel_queue_t *queue;   // another
} shared_t;

static void shared_open(shared_t *shared)
{
    char options[64];
    assert_int_equal(symbols->cuStreamCreateWithPriority(&shared->stream, 1, 0), 0);
    snprintf(options, sizeof options, "&stream=%p", (void *)shared->stream);
    shared->device = device_open(options);
    assert_null(keel_queue_create(shared->device, NULL, &shared->queue));
}

static void shared_hold(const shared_t *shared)
{
    atomic_store(&busy, true);
    assert_int_equal(launch_host_function(shared->stream, hold, NULL), 0);
}

static void shared_close(const shared_t *shared)
{
    atomic_store(&busy, false);
    keel_queue_release(shared->queue);
    keel_device_release(shared->device);
    assert_int_equal(symbols->cuStreamSynchronize(shared->stream), 0);
    assert_int_equal(symbols->cuStreamDestroy(shared->stream), 0);
}

static void alloca_and_back(keel_queue_t *queue)
{
    keel_buffer_t *buffer = NULL;
    keel_point_t done;
    assert_null(keel_queue_alloca(queue, NULL, 1 << 20, &buffer, &done));
    ok(done);
    assert_null(keel_queue_dealloca(queue, KEEL_NO_WAITS, buffer, &done));
    ok(done);
    keel_buffer_release(buffer);
}

// Also memory that was freed on the shared stream before goes back.
static void test_trim_does_not_wait(void **state)
{
    (void)state;
    shared_t shared;
    shared_open(&shared);
    alloca_and_back(keel_device_queue(shared.device, 0));
    alloca_and_back(shared.queue);
    shared_hold(&shared);
    uint64_t start = keel_now_ns();
    keel_pool_t *pool = keel_device_pool(shared.device, 0);
    assert_null(keel_pool_trim(pool, 0));
    assert_true(keel_now_ns() - start < PATIENCE_NS / 2); // what is held takes twice that
    keel_pool_stats_t stats;
    keel_pool_stats(pool, &stats);
    assert_int_equal(stats.reserved, 0);
    shared_close(&shared);
}

// It fails at once, for nothing of Keel's gives memory back.
static void test_alloca_does_not_wait(void **state)
{
    (void)state;
    shared_t shared;
    keel_buffer_options_t options = {.size = 40 << 20};
    keel_buffer_t *large = NULL, *buffer = NULL;
    keel_point_t done;
    shared_open(&shared);
    assert_null(keel_buffer_create(shared.device, &options, &large));
    shared_hold(&shared);
    uint64_t start = keel_now_ns();
    assert_null(keel_queue_alloca(shared.queue, NULL, 30 << 20, &buffer, &done));
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
    assert_true(keel_now_ns() - start < PATIENCE_NS / 2); // what is held takes twice that
    assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
    keel_status_release(status);
    keel_buffer_release(buffer);
    keel_buffer_release(large);
    shared_close(&shared);
}

static CUresult event_create_fails(CUevent *event, unsigned flags)
{
    (void)event, (void)flags;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

// A stream that a queue could not be made of is the next one's.
static void test_failed_queue_leaves_stream(void **state)
{
    (void)state;
    cuda_symbols_t *table = (cuda_symbols_t *)(uintptr_t)symbols, real = *symbols;
    CUstream streams[2]; // the first is that of the device's own queue
    keel_queue_t *queue = NULL;
    char options[64];
    for (int i = 0; i < 2; i++)
        assert_int_equal(symbols->cuStreamCreateWithPriority(&streams[i], 1, 0), 0);
    snprintf(options, sizeof options, "&stream=%p,%p", (void *)streams[0], (void *)streams[1]);
    keel_device_t *device = device_open(options);
    table->cuEventCreate = event_create_fails;
    keel_status_t status = keel_queue_create(device, NULL, &queue);
    table->cuEventCreate = real.cuEventCreate;
    assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
    keel_status_release(status);
    assert_null(keel_queue_create(device, NULL, &queue));
    keel_buffer_t *buffer = buffer_create(device, FILLED, KEEL_MEMORY_DEVICE_LOCAL);
    assert_ptr_equal(stream_of(queue, buffer), streams[1]);
    keel_buffer_release(buffer);
    keel_queue_release(queue);
    keel_device_release(device);
    for (int i = 0; i < 2; i++) assert_int_equal(symbols->cuStreamDestroy(streams[i]), 0);
}

// What the device stands on has gone: it is lost, by the call that showed it, and the thread that
// submits is not held up.
static void is_lost(keel_device_t *device, keel_buffer_t *buffer)
{
    keel_point_t done;
    char text[1024];
    uint64_t start = keel_now_ns();
    keel_status_t status = keel_queue_fill(keel_device_queue(device, 0), KEEL_NO_WAITS,
                                           keel_whole(buffer), 7, 4, &done);
    assert_true(keel_now_ns() - start < SECOND_NS / 2);
    if (!status) status = keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
    assert_int_equal(keel_status_code(status), KEEL_DEVICE_LOST);
    keel_status_format(status, text, sizeof text);
    assert_non_null(strstr(text, "CUDA_ERROR_INVALID_"));
    assert_null(strstr(text, "does not say"));
    keel_status_release(status);
    keel_buffer_release(buffer);
    keel_device_release(device);
}

static void test_stream_is_destroyed(void **state)
{
    (void)state;
    CUstream stream = NULL;
    char options[64];
    assert_int_equal(symbols->cuStreamCreateWithPriority(&stream, 1, 0), 0);
    snprintf(options, sizeof options, "&stream=%p", (void *)stream);
    keel_device_t *device = device_open(options);
    keel_buffer_t *buffer = buffer_create(device, SIZE, KEEL_MEMORY_HOST_VISIBLE);
    assert_int_equal(symbols->cuStreamDestroy(stream), 0);
    is_lost(device, buffer);
    keel_status_t status = device_try_open("0", options, &device);
    assert_int_equal(keel_status_code(status), KEEL_INVALID_ARGUMENT);
    keel_status_release(status);
}

static void test_device_is_reset(void **state)
{
    (void)state;
    CUresult (*reset)(CUdevice device) = NULL;
    void *library = dlopen(CUDA_LIBRARY, RTLD_NOW);
    *(void **)&reset = dlsym(library, "cuDevicePrimaryCtxReset_v2");
    keel_device_t *device = device_open_other();
    keel_buffer_t *buffer = buffer_create(device, SIZE, KEEL_MEMORY_HOST_VISIBLE);
    assert_int_equal(reset(1), 0);
    is_lost(device, buffer);
    dlclose(library);
}

static char *map_pages(void)
{
    void *pages = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    return pages;
}

static keel_status_t import(keel_device_t *device, void *pages, uint64_t size,
                            keel_buffer_t **buffer)
{
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = pages, .size = size};
    return keel_buffer_import(device, &external, NULL, buffer);
}

// The device can write there, to every quarter of the pages.
static void works(keel_device_t *device, keel_buffer_t *buffer, const char *pages, int value)
{
    uint64_t size = keel_buffer_size(buffer);
    for (uint64_t at = 0; at < size; at += SIZE / 4) {
        keel_point_t done;
        assert_null(keel_queue_fill(keel_device_queue(device, 0), KEEL_NO_WAITS,
                                    keel_span(buffer, at, SIZE / 4), (uint32_t)value, 1, &done));
        ok(done);
    }
    for (uint64_t i = 0; i < size; i += 64) assert_int_equal(pages[i], value);
}

// What another library has page-locked can be imported, and stays locked.
static void test_locked_pages_stay(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    char *pages = map_pages();
    keel_buffer_t *buffer = NULL;
    CUdeviceptr address = 0;
    assert_int_equal(symbols->cuMemHostRegister(pages, SIZE, 3), 0);
    assert_null(import(device, pages, SIZE, &buffer));
    works(device, buffer, pages, 5);
    keel_buffer_release(buffer);
    assert_int_equal(symbols->cuMemHostGetDevicePointer(&address, pages, 0), 0);
    keel_device_release(device);
    assert_int_equal(symbols->cuMemHostUnregister(pages), 0);
    munmap(pages, SIZE);
}

static void test_pages_locked_in_part(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    char *pages = map_pages();
    keel_buffer_t *buffer = NULL;
    for (int end = 0; end < 2; end++) {
        char *part = pages + (end ? SIZE / 2 : 0);
        assert_int_equal(symbols->cuMemHostRegister(part, SIZE / 2, 3), 0);
        keel_status_t status = import(device, pages, SIZE, &buffer);
        assert_int_equal(keel_status_code(status), KEEL_FAILED_PRECONDITION);
        assert_non_null(strstr(keel_status_message(status), "a part of the memory"));
        keel_status_release(status);
        assert_int_equal(symbols->cuMemHostUnregister(part), 0);
    }
    assert_null(import(device, pages, SIZE, &buffer)); // nothing was left behind
    works(device, buffer, pages, 6);
    keel_buffer_release(buffer);
    keel_device_release(device);
    munmap(pages, SIZE);
}

// Imports bytes of a page that the other library has locked in part.
static void small_import(keel_device_t *device, char *bytes, bool locked)
{
    keel_buffer_t *buffer = NULL;
    keel_point_t done;
    keel_status_t status = import(device, bytes, 20, &buffer);
    assert_int_equal(keel_status_code(status), locked ? KEEL_OK : KEEL_FAILED_PRECONDITION);
    if (status) assert_non_null(strstr(keel_status_message(status), "it must be all"));
    keel_status_release(status);
    if (!locked) return;
    memset(bytes, 0, 20);
    assert_null(keel_queue_fill(keel_device_queue(device, 0), KEEL_NO_WAITS, keel_whole(buffer), 9,
                                1, &done));
    ok(done);
    for (int i = 0; i < 20; i++) assert_int_equal(bytes[i], 9);
    keel_buffer_release(buffer);
}

// Memory of the other library's need not be whole pages; of its pages, it is what can be imported.
static void test_bytes_that_are_locked(void **state)
{
    (void)state;
    keel_device_t *device = device_open(""), *second = device_open_other();
    char *pages = map_pages();
    void *small = NULL;
    keel_buffer_t *held = NULL;
    assert_int_equal(symbols->cuMemHostRegister(pages + 100, 200, 3), 0);
    assert_int_equal(symbols->cuMemHostAlloc(&small, 64, 3), 0);
    for (int again = 0; again < 2; again++) { // the second time with a neighbour on the page
        small_import(device, pages + 100, true);
        small_import(second, pages + 280, true);
        small_import(device, pages + 281, false);
        small_import(device, pages + 99, false);
        small_import(device, pages + 1000, false);
        small_import(device, small, true);
        small_import(second, (char *)small + 44, true);
        if (!again) assert_null(import(device, pages + 200, 10, &held));
    }
    keel_buffer_release(held);
    assert_int_equal(symbols->cuMemHostUnregister(pages + 100), 0); // it is still locked
    assert_int_equal(symbols->cuMemFreeHost(small), 0);
    small_import(device, pages + 99, true);
    keel_device_release(device);
    keel_device_release(second);
    munmap(pages, SIZE);
}

// The device has 64 MiB; memory of the host's may be larger.
static void test_more_than_the_device_has(void **state)
{
    (void)state;
    enum { MORE = 80 << 20 };
    keel_device_t *device = device_open("");
    void *pages = mmap(NULL, MORE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    keel_buffer_t *buffer = NULL;
    assert_null(import(device, pages, MORE, &buffer));
    keel_buffer_release(buffer);
    munmap(pages, MORE);
    keel_buffer_options_t options = {.size = MORE, .memory = KEEL_MEMORY_HOST_VISIBLE};
    assert_null(keel_buffer_create(device, &options, &buffer));
    keel_buffer_release(buffer);
    options.memory = 0;
    keel_status_t status = keel_buffer_create(device, &options, &buffer);
    assert_int_equal(keel_status_code(status), KEEL_OUT_OF_RANGE);
    assert_non_null(strstr(keel_status_message(status), "options->size"));
    keel_status_release(status);
    keel_device_release(device);
}

// Two devices import the same pages, in part; the one that locked them goes first.
static void test_pages_of_two_devices(void **state)
{
    (void)state;
    keel_device_t *first = device_open_other(), *second = device_open("");
    char *pages = map_pages();
    keel_buffer_t *x = NULL, *y = NULL;
    assert_null(import(first, pages, SIZE / 2, &x));
    assert_null(import(second, pages + SIZE / 4, SIZE / 2, &y));
    works(first, x, pages, 7);
    keel_buffer_release(x);
    keel_device_release(first);
    works(second, y, pages + SIZE / 4, 8);
    keel_buffer_release(y);
    assert_int_equal(symbols->cuMemHostRegister(pages, SIZE, 3), 0); // all of it is unlocked
    assert_int_equal(symbols->cuMemHostUnregister(pages), 0);
    keel_device_release(second);
    munmap(pages, SIZE);
}

static CUresult (*event_query)(CUevent event);
static _Atomic uint32_t looks; // of the keeper, at events

static CUresult event_look(CUevent event)
{
    CUresult result = event_query(event);
    if (thread_is("keel-keeper")) atomic_fetch_add(&looks, 1);
    return result;
}

// A stream of the other library's is captured in the mode that forbids most, as PyTorch does it,
// while Keel works: its threads look after what is in flight, the application polls, submits and
// makes memory. None of that spoils the capture, and none of it fails.
static void test_captures_stay_whole(void **state)
{
    (void)state;
    void *library = dlopen(CUDA_LIBRARY, RTLD_NOW), *graph = NULL;
    int (*begin)(CUstream stream, int mode) = NULL, (*end)(CUstream stream, void **graph) = NULL;
    *(void **)&begin = dlsym(library, "cuStreamBeginCapture_v2");
    *(void **)&end = dlsym(library, "cuStreamEndCapture");
    cuda_symbols_t *table = (cuda_symbols_t *)(uintptr_t)symbols;
    CUstream captured;
    CUevent event;
    shared_t shared;
    event_query = symbols->cuEventQuery;
    table->cuEventQuery = event_look;
    shared_open(&shared);
    assert_int_equal(symbols->cuStreamCreateWithPriority(&captured, 1, 0), 0);
    assert_int_equal(symbols->cuEventCreate(&event, 0), 0);
    keel_buffer_options_t options = {.size = 4096, .memory = KEEL_MEMORY_HOST_VISIBLE};
    keel_buffer_t *buffer = NULL, *second = NULL;
    keel_point_t first, last;
    assert_null(keel_buffer_create(shared.device, &options, &buffer));
    shared_hold(&shared);
    assert_null(keel_queue_fill(keel_device_queue(shared.device, 0), KEEL_NO_WAITS,
                                keel_whole(buffer), 1, 4, &first));
    assert_int_equal(begin(captured, 0), 0);
    uint32_t before = atomic_load(&looks);
    await(atomic_load(&looks) > before + 1); // one may have been under way
    assert_null(keel_queue_fill(shared.queue, KEEL_NO_WAITS, keel_whole(buffer), 2, 4, &last));
    ok(last);
    assert_null(keel_buffer_create(shared.device, &options, &second));
    assert_int_equal(end(captured, &graph), 0);
    assert_int_equal(symbols->cuGraphDestroy(graph), 0);
    // What Keel did not do: the same call without a word about captures.
    assert_int_equal(begin(captured, 0), 0);
    assert_int_equal(event_query(event), 900);
    assert_int_equal(end(captured, &graph), 901);
    atomic_store(&busy, false);
    ok(first);
    keel_buffer_release(buffer), keel_buffer_release(second);
    assert_int_equal(symbols->cuEventDestroy(event), 0);
    assert_int_equal(symbols->cuStreamDestroy(captured), 0);
    shared_close(&shared);
    table->cuEventQuery = event_query;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trim_does_not_wait),
        cmocka_unit_test(test_alloca_does_not_wait),
        cmocka_unit_test(test_failed_queue_leaves_stream),
        cmocka_unit_test(test_locked_pages_stay),
        cmocka_unit_test(test_pages_locked_in_part),
        cmocka_unit_test(test_bytes_that_are_locked),
        cmocka_unit_test(test_pages_of_two_devices),
        cmocka_unit_test(test_more_than_the_device_has),
        cmocka_unit_test(test_captures_stay_whole),
        cmocka_unit_test(test_stream_is_destroyed),
        cmocka_unit_test(test_device_is_reset),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
