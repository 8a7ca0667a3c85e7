// SPDX-License-Identifier: Apache-2.0
// Descriptors that a CUDA device does not take, on the CUDA driver in software.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/cuda/device.h"

static cuda_symbols_t real, *table;
static CUresult answer; // of whoever is asked to import something

static CUresult import_memory(CUmemGenericAllocationHandle *handle, void *shareable,
                              CUmemAllocationHandleType type)
{
    (void)handle;
    (void)shareable;
    (void)type;
    return answer;
}

static CUresult import_semaphore(CUexternalSemaphore *semaphore,
                                 const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc)
{
    (void)semaphore;
    (void)desc;
    return answer;
}

static int setup(void **state)
{
    (void)state;
    setenv("KEEL_SIM_CUDA", "leaks=2", 1);
    table = symbols_open(&real);
    if (!table) return 1;
    table->cuMemImportFromShareableHandle = import_memory;
    table->cuImportExternalSemaphore = import_semaphore;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    *table = real;
    return 0;
}

static void refused(keel_status_t status, keel_code_t code, const char *words)
{
    char text[1024];
    assert_int_equal(keel_status_code(status), code);
    keel_status_format(status, text, sizeof text);
    if (!strstr(text, words)) fail_msg("'%s' is not in: %s", words, text);
    keel_status_release(status);
}

static void refuses(keel_device_t *device, CUresult result, keel_code_t code, const char *words)
{
    int fd = open("/dev/null", O_RDWR);
    keel_buffer_t *buffer = NULL;
    keel_semaphore_t *semaphore = NULL;
    keel_external_t memory = {.kind = KEEL_EXTERNAL_FD, .handle.fd = fd, .size = 4096};
    keel_external_semaphore_t external = {.handle.fd = fd};
    answer = result;
    refused(keel_buffer_import(device, &memory, NULL, &buffer), code, words);
    refused(keel_semaphore_import(device, &external, NULL, &semaphore), code, words);
    assert_null(buffer);
    assert_null(semaphore);
    assert_int_equal(close(fd), 0); // still ours
}

// The error says what CUDA says, whatever that is; the device is none the worse for it.
static void test_cuda_is_quoted(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    keel_point_t done;
    refuses(device, CUDA_ERROR_INVALID_VALUE, KEEL_INVALID_ARGUMENT, "CUDA_ERROR_INVALID_VALUE");
    refuses(device, CUDA_ERROR_UNKNOWN, KEEL_INVALID_ARGUMENT, "CUDA_ERROR_UNKNOWN");
    refuses(device, CUDA_ERROR_UNKNOWN, KEEL_INVALID_ARGUMENT, "external->handle.fd is no");
    assert_null(
        keel_queue_signal(keel_device_queue(device, 0), KEEL_NO_WAITS, KEEL_NO_SIGNALS, &done));
    ok(done);
    keel_device_release(device);
}

// That is no fault of the descriptor's.
static void test_no_memory(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    refuses(device, CUDA_ERROR_OUT_OF_MEMORY, KEEL_RESOURCE_EXHAUSTED, "CUDA_ERROR_OUT_OF_MEMORY");
    keel_device_release(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_is_quoted),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
