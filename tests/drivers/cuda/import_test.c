// SPDX-License-Identifier: Apache-2.0
// Descriptors and addresses that a CUDA device does not take, on the CUDA driver in software.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drivers/cuda/device.h"

static cuda_symbols_t real, *table;
static CUresult answer;   // of the device that is asked to import something
static uint32_t readings; // memory that was to be page-locked for reading alone

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

static CUresult host_register(void *data, size_t size, unsigned int flags)
{
    readings += flags & CU_MEMHOSTREGISTER_READ_ONLY ? 1 : 0;
    return real.cuMemHostRegister(data, size, flags);
}

static int setup(void **state)
{
    (void)state;
    setenv("KEEL_SIM_CUDA", "leaks=2", 1);
    table = symbols_open(&real);
    if (!table) return 1;
    table->cuMemImportFromShareableHandle = import_memory;
    table->cuImportExternalSemaphore = import_semaphore;
    table->cuMemHostRegister = host_register;
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
    keel_external_buffer_t memory = {.kind = KEEL_EXTERNAL_FD, .handle.fd = fd, .size = 4096};
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

enum { SIZE = 1000 };

static keel_status_t import(keel_device_t *device, uint64_t address, uint64_t size)
{
    keel_buffer_t *buffer = NULL;
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_DEVICE, .handle.device = address, .size = size};
    keel_status_t status = keel_buffer_import(device, &external, NULL, &buffer);
    keel_buffer_release(buffer);
    return status;
}

// All of an allocation and parts of it are taken, and not a byte more.
static void takes(keel_device_t *device, uint64_t address)
{
    char words[64];
    snprintf(words, sizeof words, "0x%llx", (unsigned long long)address + 8);
    assert_null(import(device, address, SIZE));
    assert_null(import(device, address + 8, SIZE - 8));
    assert_null(import(device, address + SIZE - 1, 1));
    assert_null(import(device, address + SIZE, 0));
    refused(import(device, address + 8, SIZE - 7), KEEL_OUT_OF_RANGE, words);
    refused(import(device, address + 8, SIZE - 7), KEEL_OUT_OF_RANGE, "993 bytes");
    refused(import(device, address + SIZE, 1), KEEL_INVALID_ARGUMENT, "external->handle.device");
    refused(import(device, address - 1, 2), KEEL_INVALID_ARGUMENT, "external->handle.device");
}

static void test_allocations(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    CUcontext context = NULL;
    CUdeviceptr address = 0, managed = 0;
    void *pinned = NULL;
    assert_int_equal(real.cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(real.cuCtxSetCurrent(context), 0);
    assert_int_equal(real.cuMemAlloc(&address, SIZE), 0);
    assert_int_equal(real.cuMemAllocManaged(&managed, SIZE, CU_MEM_ATTACH_GLOBAL), 0);
    assert_int_equal(real.cuMemHostAlloc(&pinned, SIZE, 0), 0);
    takes(device, address);
    takes(device, managed);
    takes(device, (uintptr_t)pinned);
    assert_int_equal(real.cuMemFree(address), 0);
    refused(import(device, address, 1), KEEL_INVALID_ARGUMENT, "external->handle.device");
    assert_int_equal(real.cuMemFree(managed), 0);
    assert_int_equal(real.cuMemFreeHost(pinned), 0);
    assert_int_equal(real.cuCtxSetCurrent(NULL), 0);
    assert_int_equal(real.cuDevicePrimaryCtxRelease(0), 0);
    keel_device_release(device);
}

// Two allocations side by side are not one; nor does the end of all addresses hide that there is
// nothing.
static void test_elsewhere(void **state)
{
    (void)state;
    static char own[64];
    keel_device_t *device = device_open("");
    keel_buffer_t *x[2] = {buffer_create(device, 4096, 0), buffer_create(device, 4096, 0)};
    uint64_t at[2];
    for (int i = 0; i < 2; i++) assert_null(keel_buffer_address(x[i], &at[i]));
    uint64_t low = at[0] < at[1] ? at[0] : at[1], high = at[0] < at[1] ? at[1] : at[0];
    refused(import(device, low, high - low + 1), KEEL_OUT_OF_RANGE, "one allocation");
    refused(import(device, (uintptr_t)own, 64), KEEL_INVALID_ARGUMENT, "64 bytes");
    refused(import(device, UINT64_MAX - 7, 64), KEEL_INVALID_ARGUMENT, "0xfffffffffffffff8");
    for (int i = 0; i < 2; i++) keel_buffer_release(x[i]);
    keel_device_release(device);
}

// A reservation counts as a whole, however many pieces of memory are mapped there.
static void test_reservation(void **state)
{
    (void)state;
    keel_device_t *device = device_open("");
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle memory[2];
    CUdeviceptr address = 0;
    size_t unit = 2 << 20;
    assert_int_equal(real.cuMemAddressReserve(&address, 2 * unit, 0, 0, 0), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(real.cuMemCreate(&memory[i], unit, &properties, 0), 0);
        assert_int_equal(real.cuMemMap(address + i * unit, unit, 0, memory[i], 0), 0);
    }
    assert_int_equal(real.cuMemSetAccess(address, 2 * unit, &access, 1), 0);
    assert_null(import(device, address + unit - 8, 16));
    assert_null(import(device, address, 2 * unit));
    refused(import(device, address, 2 * unit + 1), KEEL_OUT_OF_RANGE, "one allocation");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(real.cuMemUnmap(address + i * unit, unit), 0);
        assert_int_equal(real.cuMemRelease(memory[i]), 0);
    }
    assert_int_equal(real.cuMemAddressFree(address, 2 * unit), 0);
    keel_device_release(device);
}

enum { FILE_SIZE = 3 << 20 }; // less than 2 MiB would not hang a card

static keel_status_t import_constant(keel_device_t *device, void *memory, uint64_t size,
                                     keel_buffer_t **buffer)
{
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = memory, .size = size};
    keel_buffer_options_t options = {.access = KEEL_ACCESS_READ};
    readings = 0;
    return keel_buffer_import(device, &external, &options, buffer);
}

// A card never returns from page-locking a private mapping of a file for reading, so that is not
// tried; for writing it is, and for a shared one, which can be copied from.
static void test_constant_file(void **state)
{
    (void)state;
    char path[] = "/tmp/keel-import-XXXXXX", where[64];
    int fd = mkstemp(path);
    assert_true(fd >= 0 && unlink(path) == 0 && ftruncate(fd, FILE_SIZE) == 0);
    assert_int_equal(pwrite(fd, "weights", 7, FILE_SIZE - 7), 7);
    keel_device_t *device = device_open("");
    keel_buffer_t *x = NULL, *y = buffer_create(device, FILE_SIZE, KEEL_MEMORY_HOST_VISIBLE);
    void *memory = mmap(NULL, FILE_SIZE, PROT_READ, MAP_PRIVATE, fd, 0);
    snprintf(where, sizeof where, "external->handle.host is %p: of the 3145728 bytes", memory);
    refused(import_constant(device, memory, FILE_SIZE, &x), KEEL_UNSUPPORTED, where);
    refused(import_constant(device, memory, 1, &x), KEEL_UNSUPPORTED, "MAP_SHARED");
    assert_int_equal(readings, 0);
    assert_int_equal(mprotect(memory, FILE_SIZE, PROT_READ | PROT_WRITE), 0);
    assert_null(import_constant(device, memory, FILE_SIZE, &x));
    keel_buffer_release(x);
    assert_int_equal(readings, 0);
    assert_ptr_equal(mmap(memory, FILE_SIZE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0), memory);
    assert_null(import_constant(device, memory, FILE_SIZE, &x));
    assert_int_equal(readings, 1);
    keel_point_t done;
    char seen[8] = "";
    assert_null(keel_queue_copy(keel_device_queue(device, 0), KEEL_NO_WAITS, keel_whole(x),
                                keel_whole(y), &done));
    ok(done);
    assert_null(keel_buffer_read(y, FILE_SIZE - 7, seen, 7));
    assert_string_equal(seen, "weights");
    keel_buffer_release(x), keel_buffer_release(y);
    keel_device_release(device);
    munmap(memory, FILE_SIZE);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_is_quoted), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_allocations),    cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_reservation),    cmocka_unit_test(test_constant_file),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
