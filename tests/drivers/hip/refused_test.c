// SPDX-License-Identifier: Apache-2.0
// What HIP refuses, and the odd things that it may say of a device, on the HIP that forwards to
// libcuda: its functions are exchanged for some that do so, while no device is open, whose threads
// would call them.
#include <keel/keel.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/hip/symbols.h"
#include "unit.h"

#define URI(number) "hip://" #number "?lib=" HIP_LIBRARY

static hip_symbols_t *symbols; // as the driver has them

static int library_open(void **state)
{
    (void)state;
    const hip_symbols_t *found = NULL;
    setenv("KEEL_SIM_CUDA", "devices=2", 1);
    keel_status_t status = hip_symbols_open(HIP_LIBRARY, &found);
    if (status) fail_msg("%s", keel_status_message(status));
    symbols = (hip_symbols_t *)(uintptr_t)found;
    return 0;
}

static void says(keel_status_t status, keel_code_t code, const char *words)
{
    if (keel_status_code(status) != code || !strstr(keel_status_message(status), words))
        fail_msg("%s\ndoes not say: %s", keel_status_message(status), words);
    keel_status_release(status);
}

static void ok(keel_status_t status)
{
    if (status) fail_msg("%s", keel_status_message(status));
}

static hipError_t refuse(int device)
{
    (void)device;
    return hipErrorInvalidDevice;
}

static hipError_t forget(int *device)
{
    (void)device;
    return hipErrorInvalidDevice;
}

// The thread has device 0. What is meant for device 1 must not go there.
static void no_call_goes_to_another_device(void **state)
{
    (void)state;
    keel_device_t *device;
    hipError_t (*real)(int device) = symbols->hipSetDevice;
    symbols->hipSetDevice = refuse;
    says(keel_device_open(URI(1), NULL, &device), KEEL_NOT_FOUND, "hipSetDevice");
    symbols->hipSetDevice = real;
    ok(keel_device_open(URI(1), NULL, &device));
    keel_device_release(device);
}

// A thread that does not know which device it has gets the right one.
static void a_device_that_is_not_known_is_set(void **state)
{
    (void)state;
    keel_device_t *device;
    hipError_t (*real)(int *device) = symbols->hipGetDevice;
    symbols->hipGetDevice = forget;
    ok(keel_device_open(URI(1), NULL, &device));
    keel_device_release(device);
    symbols->hipGetDevice = real;
    int current = 0;
    assert_int_equal(symbols->hipGetDevice(&current), hipSuccess);
    assert_int_equal(current, 1);
    assert_int_equal(symbols->hipSetDevice(0), hipSuccess);
}

static hipError_t (*get_device)(int *device);
static hipError_t (*set_device)(int device);
static _Atomic bool failed; // the GPU: HIP 7 then has this for all calls

static hipError_t get_device_of_failed(int *device)
{
    return atomic_load(&failed) ? hipErrorInvalidKernelFile : get_device(device);
}

static hipError_t set_device_of_failed(int device)
{
    return atomic_load(&failed) ? hipErrorInvalidKernelFile : set_device(device);
}

// Whatever the word for it means elsewhere.
static void a_device_that_is_refused_later_is_lost(void **state)
{
    (void)state;
    keel_device_t *device;
    keel_buffer_t *buffer;
    const keel_buffer_options_t options = {.size = 64};
    get_device = symbols->hipGetDevice;
    set_device = symbols->hipSetDevice;
    symbols->hipGetDevice = get_device_of_failed;
    symbols->hipSetDevice = set_device_of_failed;
    ok(keel_device_open(URI(1), NULL, &device));
    atomic_store(&failed, true);
    says(keel_buffer_create(device, &options, &buffer), KEEL_DEVICE_LOST, ""); // or the keeper saw
    atomic_store(&failed, false);
    says(keel_buffer_create(device, &options, &buffer), KEEL_DEVICE_LOST, "is lost");
    keel_device_release(device);
    symbols->hipGetDevice = get_device;
    symbols->hipSetDevice = set_device;
}

static hipError_t (*attribute)(int *value, hipDeviceAttribute_t what, int device);

static hipError_t without_depth(int *value, hipDeviceAttribute_t what, int device)
{
    if (what != hipDeviceAttributeMaxBlockDimZ) return attribute(value, what, device);
    *value = 0;
    return hipSuccess;
}

static void a_device_without_groups_is_not_opened(void **state)
{
    (void)state;
    keel_device_t *device;
    attribute = symbols->hipDeviceGetAttribute;
    symbols->hipDeviceGetAttribute = without_depth;
    says(keel_device_open(URI(0), NULL, &device), KEEL_UNSUPPORTED, "0 items in dimension 2");
    symbols->hipDeviceGetAttribute = attribute;
}

static int peer_copies;
static hipError_t (*copy_peer)(void *target, int to, const void *source, int from, size_t size,
                               hipStream_t stream);

static hipError_t count_copy(void *target, int to, const void *source, int from, size_t size,
                             hipStream_t stream)
{
    peer_copies++;
    return copy_peer(target, to, source, from, size, stream);
}

// A link that goes one way is none.
static hipError_t one_way(int *can, int device, int peer)
{
    *can = device < peer;
    return hipSuccess;
}

// Copies a word from device 0 to device 1, on a queue of the latter.
static int copies_between(void)
{
    enum { BOTH = KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_DEVICE_VISIBLE };
    const keel_buffer_options_t mine = {.size = 4}, seen = {.size = 4, .memory = BOTH};
    keel_device_t *devices[2];
    keel_buffer_t *buffers[2], *read;
    uint32_t word = 0;
    ok(keel_device_open(URI(0), NULL, &devices[0]));
    ok(keel_device_open(URI(1), NULL, &devices[1]));
    for (int i = 0; i < 2; i++) ok(keel_buffer_create(devices[i], &mine, &buffers[i]));
    ok(keel_buffer_create(devices[1], &seen, &read));
    keel_queue_t *first = keel_device_queue(devices[0], 0);
    keel_queue_t *second = keel_device_queue(devices[1], 0);
    keel_point_t filled, copied, done;
    peer_copies = 0;
    ok(keel_queue_run(first, KEEL_NO_WAITS, keel_op_fill(keel_whole(buffers[0]), 7, 4), &filled));
    ok(keel_queue_run(second, KEEL_POINTS(filled),
                      keel_op_copy(keel_whole(buffers[0]), keel_whole(buffers[1])), &copied));
    ok(keel_queue_run(second, KEEL_POINTS(copied),
                      keel_op_copy(keel_whole(buffers[1]), keel_whole(read)), &done));
    ok(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    ok(keel_buffer_read(read, 0, &word, sizeof word));
    assert_int_equal(word, 7);
    keel_buffer_release(read);
    for (int i = 0; i < 2; i++) keel_buffer_release(buffers[i]);
    for (int i = 0; i < 2; i++) keel_device_release(devices[i]);
    return peer_copies;
}

static void devices_without_a_link_copy_by_the_host(void **state)
{
    (void)state;
    hipError_t (*can)(int *can, int device, int peer) = symbols->hipDeviceCanAccessPeer;
    copy_peer = symbols->hipMemcpyPeerAsync;
    symbols->hipMemcpyPeerAsync = count_copy;
    assert_int_equal(copies_between(), 1);
    symbols->hipDeviceCanAccessPeer = one_way;
    assert_int_equal(copies_between(), 0);
    symbols->hipDeviceCanAccessPeer = can;
    symbols->hipMemcpyPeerAsync = copy_peer;
}

static size_t left;

static hipError_t memory_left(size_t *free, size_t *total)
{
    *free = *total = left;
    return hipSuccess;
}

static hipError_t load_nothing(hipModule_t *module, const void *data)
{
    (void)module, (void)data;
    return hipErrorSharedObjectInitFailed;
}

// HIP's error says that it does not know the code.
static void code_without_memory_is_told_from_unknown_code(void **state)
{
    (void)state;
    keel_device_t *device;
    hipError_t (*load)(hipModule_t *module, const void *data) = symbols->hipModuleLoadData;
    hipError_t (*memory)(size_t *free, size_t *total) = symbols->hipMemGetInfo;
    symbols->hipModuleLoadData = load_nothing;
    symbols->hipMemGetInfo = memory_left;
    left = 1 << 20;
    says(keel_device_open(URI(0), NULL, &device), KEEL_RESOURCE_EXHAUSTED, "1048576 left");
    left = 0;
    says(keel_device_open(URI(0), NULL, &device), KEEL_RESOURCE_EXHAUSTED, "device has 0 left");
    left = 64 << 20;
    says(keel_device_open(URI(0), NULL, &device), KEEL_UNSUPPORTED, "no kernels of its own for");
    symbols->hipModuleLoadData = load;
    symbols->hipMemGetInfo = memory;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_call_goes_to_another_device),
        cmocka_unit_test(a_device_that_is_not_known_is_set),
        cmocka_unit_test(a_device_that_is_refused_later_is_lost),
        cmocka_unit_test(a_device_without_groups_is_not_opened),
        cmocka_unit_test(devices_without_a_link_copy_by_the_host),
        cmocka_unit_test(code_without_memory_is_told_from_unknown_code),
    };
    return cmocka_run_group_tests(tests, library_open, NULL);
}
