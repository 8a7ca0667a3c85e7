// SPDX-License-Identifier: Apache-2.0
// What the adaptor makes of what HIP says of a device that is refused, or that has failed, and of a
// kernel that it does not find. A HIP of a few functions says it.
#include <string.h>

#include "drivers/hip/hip.h"
#include "unit.h"

static hipError_t query_result, get_result, set_result, found_result;
static int current;     // device of the thread
static bool has_failed; // a call has, and hipGetLastError was not called since

static hipError_t ends(hipError_t result)
{
    has_failed |= result != hipSuccess;
    return result;
}

static hipError_t event_query(hipEvent_t event)
{
    (void)event;
    return ends(query_result);
}

static hipError_t get_device(int *device)
{
    if (get_result == hipSuccess) *device = current;
    return ends(get_result);
}

static hipError_t set_device(int device)
{
    if (set_result == hipSuccess) current = device;
    return ends(set_result);
}

static hipError_t get_function(hipFunction_t *function, hipModule_t module, const char *name)
{
    (void)module, (void)name;
    *function = NULL;
    return ends(found_result);
}

static hipError_t exchange(hipStreamCaptureMode *mode)
{
    (void)mode;
    return hipSuccess;
}

static hip_text_t no_text(hipError_t error)
{
    (void)error;
    return NULL;
}

static hipError_t last_error(void)
{
    has_failed = false;
    return hipSuccess;
}

static const hip_symbols_t symbols = {
    .hipEventQuery = event_query,
    .hipGetDevice = get_device,
    .hipSetDevice = set_device,
    .hipModuleGetFunction = get_function,
    .hipThreadExchangeStreamCaptureMode = exchange,
    .hipGetErrorName = no_text,
    .hipGetErrorString = no_text,
    .hipGetLastError = last_error,
};
static stream_vendor_t vendor = {.symbols = &symbols, .device = 1};
static stream_api_t api;

static int setup(void **state)
{
    (void)state;
    hip_fill_device(&api);
    query_result = get_result = set_result = found_result = hipSuccess;
    current = 1;
    has_failed = false;
    return 0;
}

// From HIP 7 on what was stored by a kernel that has gone wrong looks as if it were there.
static void test_query_of_a_failed_device(void **state)
{
    (void)state;
    bool over = false;
    assert_null(api.event_query(&vendor, NULL, &over));
    assert_true(over);
    get_result = hipErrorInvalidKernelFile;
    keel_status_t status = api.event_query(&vendor, NULL, &over);
    assert_int_equal(keel_status_code(status), KEEL_DEVICE_LOST);
    assert_false(over);
    keel_status_release(status);
    query_result = hipErrorNotReady;
    assert_null(api.event_query(&vendor, NULL, &over));
    assert_false(over);
    assert_false(has_failed);
}

// The thread keeps the device that it had, and a look for errors finds none.
static void test_device_is_refused(void **state)
{
    (void)state;
    stream_before_t before = {0};
    current = 0;
    set_result = hipErrorInvalidDevice;
    api.enter(&vendor, &before);
    assert_false(has_failed);
    set_result = hipSuccess;
    current = 0;
    api.leave(&before);
    assert_int_equal(current, 0);
    api.enter(&vendor, &before);
    assert_int_equal(current, 1);
    set_result = hipErrorInvalidDevice;
    api.leave(&before); // says that the thread keeps it
    assert_int_equal(current, 1);
    assert_false(has_failed);
    set_result = hipSuccess;
    get_result = hipErrorInvalidDevice;
    api.enter(&vendor, &before);
    assert_false(has_failed);
    api.leave(&before);
}

static void refused(hipError_t result, keel_code_t code, bool by_name)
{
    stream_function_h function;
    uint32_t local_memory;
    found_result = result;
    keel_status_t status = api.module_function(&vendor, NULL, "mul", &function, &local_memory);
    assert_int_equal(keel_status_code(status), code);
    assert_int_equal(strstr(keel_status_message(status), "no kernel 'mul'") != NULL, by_name);
    keel_status_release(status);
}

static void test_kernel_is_not_found(void **state)
{
    (void)state;
    refused(hipErrorNotFound, KEEL_NOT_FOUND, true);
    refused(hipErrorOutOfMemory, KEEL_RESOURCE_EXHAUSTED, false);
    refused(hipErrorLaunchFailure, KEEL_DEVICE_LOST, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_query_of_a_failed_device, setup),
        cmocka_unit_test_setup(test_device_is_refused, setup),
        cmocka_unit_test_setup(test_kernel_is_not_found, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
