// SPDX-License-Identifier: Apache-2.0
// Ways to open a CUDA device, on the CUDA driver in software.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/cuda/device.h"

static const cuda_symbols_t *symbols;

static int setup(void **state)
{
    (void)state;
    setenv("KEEL_SIM_CUDA", "devices=2,leaks=2", 1); // a test that leaves something behind aborts
    return cuda_symbols_open(CUDA_LIBRARY, &symbols) != NULL;
}

static void refuses(keel_code_t code, const char *part, const char *which, const char *options)
{
    keel_device_t *device = NULL;
    keel_status_t status = device_try_open(which, options, &device);
    assert_int_equal(keel_status_code(status), code);
    assert_non_null(strstr(keel_status_message(status), part));
    assert_null(device);
    keel_status_release(status);
}

static void refuses_library(keel_code_t code, const char *part, const char *path)
{
    keel_device_t *device = NULL;
    char uri[128];
    snprintf(uri, sizeof uri, "cuda://0?lib=%s", path);
    keel_status_t status = keel_device_open(uri, NULL, &device);
    assert_int_equal(keel_status_code(status), code);
    assert_non_null(strstr(keel_status_message(status), part));
    keel_status_release(status);
}

static void works(keel_device_t *device)
{
    keel_buffer_t *buffer = buffer_create(device, 64, KEEL_MEMORY_HOST_VISIBLE);
    keel_point_t done;
    char bytes[64];
    assert_null(keel_queue_fill(keel_device_queue(device, 0), KEEL_NO_WAITS, keel_whole(buffer), 7,
                                1, &done));
    ok(done);
    assert_null(keel_buffer_read(buffer, 0, bytes, 64));
    assert_int_equal(bytes[63], 7);
    keel_buffer_release(buffer);
}

static void opens(const char *which, const char *options)
{
    keel_device_t *device = NULL;
    assert_null(device_try_open(which, options, &device));
    works(device);
    keel_device_release(device);
}

static void test_by_number_uuid_and_address(void **state)
{
    (void)state;
    CUuuid uuid;
    char name[64] = "GPU-", address[64];
    assert_int_equal(symbols->cuDeviceGetUuid(&uuid, 0), 0);
    for (int i = 0; i < 16; i++)
        snprintf(name + strlen(name), sizeof name - strlen(name), "%s%02x",
                 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", (unsigned char)uuid.bytes[i]);
    assert_int_equal(symbols->cuDeviceGetPCIBusId(address, sizeof address, 0), 0);
    opens("", "");
    opens("0", "");
    opens(name, "");
    opens(address, "&commands=stream&alloc=sync&serial=1");
    char longer[80] = "0000"; // as nvidia-smi writes it
    opens(strcat(longer, address), "");
    opens(memcpy(name, "MIG", 3), ""); // a part of a GPU, of which CUDA knows no more than this
}

// As CUDA says it, and the URI takes what it says.
static void test_info(void **state)
{
    (void)state;
    CUuuid uuid;
    keel_device_t *device = NULL;
    assert_null(device_try_open("0000:02:00.0", "", &device));
    const keel_device_info_t *info = keel_device_info(device);
    assert_int_equal(symbols->cuDeviceGetUuid(&uuid, 1), 0);
    assert_true(info->has_uuid);
    assert_memory_equal(info->uuid, uuid.bytes, sizeof info->uuid);
    assert_string_equal(info->pci, "0000:02:00.0");
    assert_string_equal(info->hardware, "Software GPU 1");
    assert_string_equal(info->vendor, "NVIDIA");
    assert_string_equal(info->api, "CUDA 13.0");
    assert_string_equal(info->target, "nvptx:sm_0");
    keel_device_release(device);
}

// Two GPUs of one library are peers; one of them and the processor meet in memory of the host.
static void test_reach(void **state)
{
    (void)state;
    keel_device_t *first = device_open(""), *second = NULL, *host = NULL;
    keel_reach_t reach;
    assert_null(device_try_open("1", "", &second));
    assert_null(keel_device_open("cpu://inline", NULL, &host));
    assert_null(keel_device_reach(first, second, &reach));
    assert_int_equal(reach.how, KEEL_REACH_PEER);
    assert_null(keel_device_reach(second, host, &reach));
    assert_int_equal(reach.how, KEEL_REACH_HOST);
    keel_device_release(host);
    keel_device_release(second);
    keel_device_release(first);
}

static void test_what_is_not_there(void **state)
{
    (void)state;
    refuses(KEEL_NOT_FOUND, "cuda://99", "99", "");
    refuses(KEEL_NOT_FOUND, "UUID", "GPU-nothing", "");
    refuses(KEEL_INVALID_ARGUMENT, "graph or stream", "0", "&commands=fast");
    refuses(KEEL_INVALID_ARGUMENT, "no option 'speed'", "0", "&speed=11");
    refuses(KEEL_INVALID_ARGUMENT, "handle", "0", "&context=mine");
    refuses(KEEL_INVALID_ARGUMENT, "handle", "0", "&context=1,2");
    refuses(KEEL_INVALID_ARGUMENT, "handle", "0", "&stream=-5");
    refuses(KEEL_INVALID_ARGUMENT, "handle", "0", "&stream=1,");
    refuses(KEEL_INVALID_ARGUMENT, "handle", "0", "&stream=,1");
    refuses(KEEL_INVALID_ARGUMENT, "handle", "0", "&stream=1;1");
    refuses(KEEL_INVALID_ARGUMENT, "8 handles", "0", "&stream=1,3,4,5,6,7,8,9,10");
    refuses(KEEL_INVALID_ARGUMENT, "0x7 twice", "0", "&stream=7,0x7");
    refuses_library(KEEL_NOT_FOUND, "no NVIDIA driver", "/nowhere/libcuda.so");
    refuses_library(KEEL_INVALID_ARGUMENT, "option lib", "");
    refuses_library(KEEL_UNSUPPORTED, "no libcuda", "libm.so.6");
}

// The caller's context and stream are used and stay the caller's, and his current context is left
// as it was.
static void test_adopts_context_and_stream(void **state)
{
    (void)state;
    CUcontext context = NULL, current = NULL;
    CUstream stream = NULL;
    char options[128];
    assert_int_equal(symbols->cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(symbols->cuCtxSetCurrent(context), 0);
    assert_int_equal(symbols->cuStreamCreateWithPriority(&stream, 1, 0), 0);
    assert_int_equal(symbols->cuCtxSetCurrent(NULL), 0);
    snprintf(options, sizeof options, "&context=%p&stream=%p", (void *)context, (void *)stream);
    opens("0", options);
    assert_int_equal(symbols->cuCtxGetCurrent(&current), 0);
    assert_null(current);
    assert_int_equal(symbols->cuCtxSetCurrent(context), 0);
    assert_int_equal(symbols->cuStreamSynchronize(stream), 0);
    assert_int_equal(symbols->cuStreamDestroy(stream), 0);
    assert_int_equal(symbols->cuCtxSetCurrent(NULL), 0);
    assert_int_equal(symbols->cuDevicePrimaryCtxRelease(0), 0);
}

// Queues have them in the order in which both come; a later one has a stream of its own.
static void test_adopts_streams(void **state)
{
    (void)state;
    CUcontext context = NULL;
    CUstream streams[3];
    keel_device_t *device = NULL;
    keel_queue_t *queues[3] = {0};
    char options[128];
    assert_int_equal(symbols->cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(symbols->cuCtxSetCurrent(context), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(symbols->cuStreamCreateWithPriority(&streams[i], 1, 0), 0);
    snprintf(options, sizeof options, "&stream=%p,%p,%p", (void *)streams[0], (void *)streams[1],
             (void *)streams[2]);
    assert_null(device_try_open("0", options, &device));
    for (int i = 0; i < 3; i++) assert_null(keel_queue_create(device, NULL, &queues[i]));
    keel_buffer_t *buffer = buffer_create(device, FILLED, KEEL_MEMORY_DEVICE_LOCAL);
    assert_ptr_equal(stream_of(keel_device_queue(device, 0), buffer), streams[0]);
    assert_ptr_equal(stream_of(queues[0], buffer), streams[1]);
    assert_ptr_equal(stream_of(queues[1], buffer), streams[2]);
    CUstream own = stream_of(queues[2], buffer);
    assert_non_null(own);
    for (int i = 0; i < 3; i++) assert_ptr_not_equal(own, streams[i]);
    works(device);
    keel_buffer_release(buffer);
    for (int i = 0; i < 3; i++) keel_queue_release(queues[i]);
    keel_device_release(device);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(symbols->cuStreamSynchronize(streams[i]), 0); // they are still there
        assert_int_equal(symbols->cuStreamDestroy(streams[i]), 0);
    }
    assert_int_equal(symbols->cuCtxSetCurrent(NULL), 0);
    assert_int_equal(symbols->cuDevicePrimaryCtxRelease(0), 0);
}

// Of the default streams the legacy one is the same for all threads; the other is another for each,
// so what it runs in order for one is in no order with what it runs for another.
static void test_default_streams(void **state)
{
    (void)state;
    opens("0", "&stream=0x1");
    refuses(KEEL_INVALID_ARGUMENT, "each thread", "0", "&stream=0x2");
    refuses(KEEL_INVALID_ARGUMENT, "each thread", "0", "&stream=0x1,0x2");
}

// Of another device's context.
static void test_a_stream_from_elsewhere(void **state)
{
    (void)state;
    CUcontext context = NULL;
    CUstream stream = NULL;
    char options[64];
    assert_int_equal(symbols->cuDevicePrimaryCtxRetain(&context, 1), 0);
    assert_int_equal(symbols->cuCtxSetCurrent(context), 0);
    assert_int_equal(symbols->cuStreamCreateWithPriority(&stream, 1, 0), 0);
    snprintf(options, sizeof options, "&stream=%p", (void *)stream);
    refuses(KEEL_INVALID_ARGUMENT, "give context=0x...", "0", options);
    assert_int_equal(symbols->cuStreamDestroy(stream), 0);
    assert_int_equal(symbols->cuCtxSetCurrent(NULL), 0);
    assert_int_equal(symbols->cuDevicePrimaryCtxRelease(1), 0);
}

static CUresult refuse_code(CUmodule *module, const void *image, unsigned int count,
                            CUjit_option *options, void **values)
{
    for (unsigned int i = 0; i < count; i++)
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) strcpy(values[i], "line 7: no such instruction");
    return CUDA_ERROR_INVALID_PTX;
}

// What the compiler says of code that it refuses, the error says too.
static void test_compiler_is_quoted(void **state)
{
    (void)state;
    cuda_symbols_t real, *table = symbols_open(&real);
    table->cuModuleLoadDataEx = refuse_code;
    refuses(KEEL_CORRUPT, "line 7: no such instruction", "0", "");
    *table = real;
}

static keel_status_t release(void *device, keel_host_call_t *call)
{
    (void)call;
    keel_device_release(device);
    return NULL;
}

// On a thread of the one the other is closed, and leaves nothing behind.
static void test_one_device_closes_another(void **state)
{
    (void)state;
    keel_device_t *first = device_open(""), *second = NULL;
    keel_point_t done;
    assert_null(device_try_open("1", "", &second));
    works(second);
    assert_null(keel_queue_run(keel_device_queue(first, 0), KEEL_NO_WAITS,
                               keel_op_host_call(release, second), &done));
    ok(done);
    keel_device_release(first);
}

static void *open_slowly(void *path)
{
    const cuda_symbols_t *none = NULL;
    keel_status_t status = cuda_symbols_open(path, &none);
    keel_code_t code = keel_status_code(status);
    keel_status_release(status);
    return (void *)(uintptr_t)code;
}

// A library that takes long to open holds up no thread that opens another one.
static void test_a_slow_library(void **state)
{
    (void)state;
    char folder[] = "/tmp/keel-open-XXXXXX", pipe[64];
    const cuda_symbols_t *before = NULL, *again = NULL;
    pthread_t thread;
    void *code = NULL;
    assert_null(cuda_symbols_open(CUDA_LIBRARY, &before));
    assert_non_null(mkdtemp(folder));
    snprintf(pipe, sizeof pipe, "%s/libcuda.so", folder);
    assert_int_equal(mkfifo(pipe, 0600), 0); // opened when a thread writes to it
    assert_int_equal(pthread_create(&thread, NULL, open_slowly, pipe), 0);
    int fd = -1;
    while (fd < 0) { // until it is at it
        fd = open(pipe, O_WRONLY | O_NONBLOCK);
        if (fd < 0) nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
    }
    assert_null(cuda_symbols_open(CUDA_LIBRARY, &again)); // it reads now, until the end
    assert_ptr_equal(before, again);
    close(fd);
    assert_int_equal(pthread_join(thread, &code), 0);
    assert_int_equal((uintptr_t)code, KEEL_NOT_FOUND);
    unlink(pipe);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_number_uuid_and_address),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_reach),
        cmocka_unit_test(test_what_is_not_there),
        cmocka_unit_test(test_adopts_context_and_stream),
        cmocka_unit_test(test_adopts_streams),
        cmocka_unit_test(test_default_streams),
        cmocka_unit_test(test_a_stream_from_elsewhere),
        cmocka_unit_test(test_compiler_is_quoted),
        cmocka_unit_test(test_one_device_closes_another),
        cmocka_unit_test(test_a_slow_library),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
