// SPDX-License-Identifier: Apache-2.0
// Copies between devices by their ways: between two GPUs of a library, between GPUs of two
// libraries, and between a GPU and the memory of cpu://, which is locked once.
#include <keel/driver/driver.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/cuda/device.h"
#include "kit/across.h"

enum { SIZE = 1 << 20 };

static cuda_symbols_t *symbols, real;
static _Atomic uint32_t peer_copies, locks, unlocks;

static CUresult copy_count(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, size_t size, CUstream stream)
{
    atomic_fetch_add(&peer_copies, 1);
    return real.cuMemcpyPeerAsync(to, to_context, from, from_context, size, stream);
}

static CUresult lock_count(void *pointer, size_t size, unsigned int flags)
{
    atomic_fetch_add(&locks, 1);
    return real.cuMemHostRegister(pointer, size, flags);
}

static CUresult unlock_count(void *pointer)
{
    CUresult result = real.cuMemHostUnregister(pointer);
    atomic_fetch_add(&unlocks, 1);
    return result;
}

static int setup(void **state)
{
    (void)state;
    setenv("KEEL_SIM_CUDA", "memory=64M,devices=2", 1);
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    symbols->cuMemcpyPeerAsync = copy_count;
    symbols->cuMemHostRegister = lock_count;
    symbols->cuMemHostUnregister = unlock_count;
    return 0;
}

static keel_device_t *device_at(const char *uri)
{
    keel_device_t *device = NULL;
    assert_null(keel_device_open(uri, NULL, &device));
    return device;
}

static void copy(keel_device_t *by, keel_buffer_t *from, keel_buffer_t *to)
{
    keel_point_t done;
    assert_null(keel_queue_copy(keel_device_queue(by, 0), KEEL_NO_WAITS, keel_whole(from),
                                keel_whole(to), &done));
    ok(done);
}

static void fill(keel_device_t *by, keel_buffer_t *buffer, uint32_t pattern)
{
    keel_point_t done;
    assert_null(keel_queue_fill(keel_device_queue(by, 0), KEEL_NO_WAITS, keel_whole(buffer),
                                pattern, 4, &done));
    ok(done);
}

// There and back through the other device, by queues of both.
static void carry(keel_device_t *here, keel_device_t *there)
{
    keel_device_t *cpu = device_at("cpu://inline");
    keel_buffer_t *x = buffer_create(here, 5 * SIZE, 0), *y = buffer_create(there, 5 * SIZE, 0);
    keel_buffer_t *seen = buffer_create(cpu, 5 * SIZE, 0);
    uint32_t word = 0;
    for (uint32_t round = 1; round < 3; round++) {
        fill(here, x, round);
        copy(round % 2 ? here : there, x, y);
        fill(here, x, 0);
        copy(round % 2 ? there : here, y, x);
        copy(here, x, seen);
        assert_null(keel_buffer_read(seen, 5 * SIZE - 4, &word, 4));
        assert_int_equal(word, round);
    }
    keel_buffer_release(x), keel_buffer_release(y), keel_buffer_release(seen);
    keel_device_release(cpu);
}

// The vendor copies, in one piece, whichever device is asked.
static void test_two_of_a_library(void **state)
{
    (void)state;
    keel_device_t *first = device_open(""), *second = NULL;
    assert_null(device_try_open("1", "", &second));
    assert_int_equal(device_reach(first, second), KEEL_REACH_PEER);
    atomic_store(&peer_copies, 0);
    carry(first, second);
    assert_int_equal(atomic_load(&peer_copies), 4);
    keel_device_release(first), keel_device_release(second);
}

// A copy of the library is another one: what the first has, the second does not know.
static void test_two_libraries(void **state)
{
    (void)state;
    char path[] = "/tmp/keel-across-XXXXXX", command[512], uri[128];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(command, sizeof command, "cp '%s' '%s'", CUDA_LIBRARY, path);
    assert_int_equal(system(command), 0);
    snprintf(uri, sizeof uri, "cuda://0?lib=%s", path);
    keel_device_t *first = device_open(""), *second = device_at(uri);
    assert_int_equal(device_reach(first, second), KEEL_REACH_STAGED);
    atomic_store(&peer_copies, 0);
    carry(first, second);
    assert_int_equal(atomic_load(&peer_copies), 0);
    keel_device_release(first), keel_device_release(second);
    unlink(path);
}

// Memory of cpu:// is locked by the first copy, and unlocked with its buffer.
static void test_locked_once(void **state)
{
    (void)state;
    keel_device_t *gpu = device_open(""), *cpu = device_at("cpu://?threads=1");
    keel_buffer_t *x = buffer_create(gpu, SIZE, 0), *y = buffer_create(cpu, SIZE, 0);
    assert_int_equal(device_reach(gpu, cpu), KEEL_REACH_HOST);
    atomic_store(&locks, 0);
    atomic_store(&unlocks, 0);
    for (int i = 0; i < 5; i++) {
        copy(gpu, x, y);
        copy(cpu, y, x);
    }
    assert_int_equal(atomic_load(&locks), 1);
    assert_int_equal(atomic_load(&unlocks), 0);
    keel_buffer_release(y);
    await(atomic_load(&unlocks) == 1);
    keel_buffer_release(x);
    keel_device_release(gpu), keel_device_release(cpu);
}

// Small buffers of cpu:// share pages, which are locked once, with the first of them.
static void test_shared_pages(void **state)
{
    (void)state;
    enum { COUNT = 40, ODD = 3000 };
    keel_device_t *gpu = device_open(""), *cpu = device_at("cpu://?threads=1");
    keel_buffer_t *x = buffer_create(gpu, ODD, 0), *y[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) y[i] = buffer_create(cpu, ODD, 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t word = 0;
        fill(gpu, x, i);
        copy(gpu, x, y[i]);
        assert_null(keel_buffer_read(y[i], ODD - 4, &word, 4));
        assert_int_equal(word, i);
        copy(gpu, y[i], x);
    }
    for (uint32_t i = 0; i < COUNT; i++) keel_buffer_release(y[i]);
    keel_buffer_release(x);
    keel_device_release(gpu), keel_device_release(cpu);
}

// The GPU closes first: the buffer stays, and can be copied by the next one.
static void test_unlocked_by_the_close(void **state)
{
    (void)state;
    keel_device_t *cpu = device_at("cpu://?threads=1");
    keel_buffer_t *y = buffer_create(cpu, SIZE, 0);
    for (uint32_t i = 0; i < 3; i++) {
        keel_device_t *gpu = device_open("");
        keel_buffer_t *x = buffer_create(gpu, SIZE, 0);
        atomic_store(&locks, 0);
        atomic_store(&unlocks, 0);
        copy(gpu, x, y);
        keel_buffer_release(x);
        keel_device_release(gpu);
        assert_int_equal(atomic_load(&locks), 1);
        assert_int_equal(atomic_load(&unlocks), 1);
    }
    keel_buffer_release(y);
    keel_device_release(cpu);
}

static _Atomic bool refuses;

static CUresult lock_refuse(void *pointer, size_t size, unsigned int flags)
{
    return atomic_load(&refuses) ? CUDA_ERROR_INVALID_VALUE : lock_count(pointer, size, flags);
}

// What cannot be locked goes through staging.
static void test_not_locked(void **state)
{
    (void)state;
    keel_device_t *gpu = device_open(""), *cpu = device_at("cpu://?threads=1");
    symbols->cuMemHostRegister = lock_refuse;
    atomic_store(&refuses, true);
    carry(gpu, cpu);
    carry(cpu, gpu);
    atomic_store(&refuses, false);
    symbols->cuMemHostRegister = lock_count;
    keel_device_release(gpu), keel_device_release(cpu);
}

static void lose_nothing(keel_device_t *device)
{
    (void)device;
}

// The GPU that the copy needs is lost: the copy fails with that, and the processor works on.
static void test_lost(void **state)
{
    (void)state;
    keel_device_t *gpu = device_open(""), *cpu = device_at("cpu://?threads=1");
    keel_buffer_t *x = buffer_create(gpu, SIZE, 0), *y = buffer_create(cpu, SIZE, 0);
    keel_point_t done;
    keel_device_lose(gpu, KEEL_ERROR(KEEL_DEVICE_LOST, "on purpose"), lose_nothing);
    assert_null(keel_queue_copy(keel_device_queue(cpu, 0), KEEL_NO_WAITS, keel_whole(x),
                                keel_whole(y), &done));
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
    assert_int_equal(keel_status_code(status), KEEL_DEVICE_LOST);
    keel_status_release(status);
    fill(cpu, y, 3);
    keel_buffer_release(x), keel_buffer_release(y);
    keel_device_release(gpu), keel_device_release(cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_of_a_library),
        cmocka_unit_test(test_two_libraries),
        cmocka_unit_test(test_locked_once),
        cmocka_unit_test(test_shared_pages),
        cmocka_unit_test(test_unlocked_by_the_close),
        cmocka_unit_test(test_not_locked),
        cmocka_unit_test(test_lost),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
