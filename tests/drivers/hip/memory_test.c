// SPDX-License-Identifier: Apache-2.0
// A range that was mapped and may not be accessed is mapped no more, but on a release that does not
// survive that. Memory of the host is HIP's own only where there is one GPU. A HIP of a few
// functions says what was called.
#include <string.h>

#include "drivers/hip/hip.h"
#include "drivers/hip/releases.h"
#include "unit.h"

enum { REFUSED = 20000 }; // bytes that are not registered

static int mapped; // ranges
static hipError_t access_result;

static hipError_t map(void *address, size_t size, size_t offset,
                      hipMemGenericAllocationHandle_t handle, unsigned long long flags)
{
    (void)address, (void)size, (void)offset, (void)handle, (void)flags;
    mapped++;
    return hipSuccess;
}

static hipError_t unmap(void *address, size_t size)
{
    (void)address, (void)size;
    mapped--;
    return hipSuccess;
}

static hipError_t set_access(void *address, size_t size, const hipMemAccessDesc *access,
                             size_t count)
{
    (void)address, (void)size, (void)access, (void)count;
    return access_result;
}

static hip_text_t no_text(hipError_t error)
{
    (void)error;
    return NULL;
}

static hipError_t last_error(void)
{
    return hipSuccess;
}

// Ranges that are mapped after a map whose access ends so.
static int mapped_after(int version, hipError_t result)
{
    const hip_symbols_t symbols = {
        .release = hip_release_find(version),
        .hipMemMap = map,
        .hipMemUnmap = unmap,
        .hipMemSetAccess = set_access,
        .hipGetErrorName = no_text,
        .hipGetErrorString = no_text,
        .hipGetLastError = last_error,
    };
    stream_vendor_t vendor = {.symbols = &symbols};
    stream_api_t api = {0};
    hip_fill_memory(&api);
    mapped = 0;
    access_result = result;
    keel_status_t status = api.shared_map(&vendor, 1 << 21, 1 << 21, 1);
    assert_int_equal(status != NULL, result != hipSuccess);
    keel_status_release(status);
    return mapped;
}

static void test_refused(void **state)
{
    (void)state;
    static const int versions[] = {50731921, 60443484, 70051831, 70151831};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        bool stays = versions[i] / 10000000 == 6;
        assert_int_equal(mapped_after(versions[i], hipSuccess), 1);
        assert_int_equal(mapped_after(versions[i], hipErrorInvalidValue), stays);
        assert_int_equal(mapped_after(versions[i], hipErrorOutOfMemory), 0);
    }
}

static int allocated, registered;
static hipError_t register_error; // for that many
static char whole[4096];

static hipError_t host_malloc(void **data, size_t size, unsigned flags)
{
    (void)size, (void)flags;
    allocated++;
    *data = whole;
    return hipSuccess;
}

static hipError_t host_free(void *data)
{
    assert_ptr_equal(data, whole);
    allocated--;
    return hipSuccess;
}

static hipError_t host_register(void *data, size_t size, unsigned flags)
{
    (void)flags;
    memset(data, 1, size);
    registered++;
    return size == REFUSED ? register_error : hipSuccess;
}

static hipError_t host_unregister(void *data)
{
    (void)data;
    registered--;
    return hipSuccess;
}

static void test_host_memory(void **state)
{
    (void)state;
    const hip_symbols_t symbols = {
        .hipHostMalloc = host_malloc,
        .hipHostFree = host_free,
        .hipHostRegister = host_register,
        .hipHostUnregister = host_unregister,
        .hipGetErrorName = no_text,
        .hipGetErrorString = no_text,
        .hipGetLastError = last_error,
    };
    stream_api_t api = {0};
    hip_fill_memory(&api);
    for (int devices = 1; devices <= 2; devices++) {
        stream_vendor_t vendor = {.symbols = &symbols, .devices = devices};
        void *data = NULL;
        assert_null(api.alloc_host(&vendor, 10000, &data));
        assert_int_equal(allocated, devices == 1);
        assert_int_equal(registered, devices == 2);
        api.free_host(&vendor, data);
        assert_int_equal(allocated, 0);
        assert_int_equal(registered, 0);
    }
    stream_vendor_t vendor = {.symbols = &symbols, .devices = 2};
    void *data = NULL;
    static const hipError_t errors[] = {hipErrorOutOfMemory, hipErrorInvalidValue};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        register_error = errors[i];
        keel_status_t status = api.alloc_host(&vendor, REFUSED, &data);
        assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
        keel_status_release(status);
    }
    keel_status_t status = api.alloc_host(&vendor, UINT64_MAX, &data);
    assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
    keel_status_release(status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
