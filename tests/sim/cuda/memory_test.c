// SPDX-License-Identifier: Apache-2.0
// memory_test KERNELS: allocations, copies, fills, pointer attributes, the virtual memory API.
#include "rig.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_copies(void)
{
    rig_context();
    uint8_t host[1000], back[1000];
    CUdeviceptr a, b;
    for (unsigned i = 0; i < sizeof host; i++) host[i] = (uint8_t)(i * 7);
    CU(cuMemAlloc_v2(&a, sizeof host));
    CU(cuMemAlloc_v2(&b, sizeof host));
    CHECK(a % 256 == 0 && b % 256 == 0);
    CU(cuMemcpyHtoD_v2(a, host, sizeof host));
    CU(cuMemcpyDtoD_v2(b, a, sizeof host));
    memset(back, 0, sizeof back);
    CU(cuMemcpyDtoH_v2(back, b, sizeof back));
    CHECK(!memcmp(host, back, sizeof host));
    CU(cuMemcpy(b + 10, a, 100));
    CU(cuMemcpy((uintptr_t)back, b, sizeof back));
    CHECK(!memcmp(back + 10, host, 100) && back[110] == host[110]);
    CU(cuMemcpyHtoD_v2(a, host, 0));
    CU(cuMemFree_v2(a));
    CU(cuMemFree_v2(b));
    CU(cuMemFree_v2(0));
}

// Pageable memory is read at the call, however long the stream takes, and written before it
// returns.
static void test_pageable(void)
{
    rig_context();
    CUstream stream;
    CUdeviceptr a;
    uint32_t word = 5, back = 0;
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU(cuMemAlloc_v2(&a, 4));
    gate_t gate = rig_gate();
    rig_gate_close(gate, stream);
    CU(cuMemcpyHtoDAsync_v2(a, &word, 4, stream));
    word = 6;
    rig_gate_open(gate);
    CU(cuMemcpyDtoHAsync_v2(&back, a, 4, stream));
    CHECK(back == 5);
}

static void test_planes(void)
{
    rig_context();
    enum { PITCH = 64, WIDTH = 40, ROWS = 20 };
    uint8_t host[PITCH * ROWS], back[PITCH * ROWS];
    CUdeviceptr device;
    size_t pitch;
    for (unsigned k = 0; k < sizeof host; k++) host[k] = (uint8_t)(k * 7);
    memset(back, 0, sizeof back);
    CU(cuMemAllocPitch_v2(&device, &pitch, WIDTH, ROWS, 4));
    CHECK(pitch >= WIDTH);
    CUDA_MEMCPY2D up = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = host,
                        .srcPitch = PITCH,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = device,
                        .dstPitch = pitch,
                        .WidthInBytes = WIDTH,
                        .Height = ROWS};
    CU(cuMemcpy2D_v2(&up));
    CU(cuMemsetD2D8_v2(device + 4, pitch, 0x5a, 4, ROWS));
    CUDA_MEMCPY2D down = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = device,
                          .srcPitch = pitch,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = back,
                          .dstPitch = PITCH,
                          .WidthInBytes = WIDTH,
                          .Height = ROWS};
    CU(cuMemcpy2D_v2(&down));
    for (unsigned y = 0; y < ROWS; y++) {
        CHECK(!memcmp(host + PITCH * y, back + PITCH * y, 4));
        CHECK(back[PITCH * y + 4] == 0x5a && back[PITCH * y + 7] == 0x5a);
        CHECK(!memcmp(host + PITCH * y + 8, back + PITCH * y + 8, WIDTH - 8));
        CHECK(back[PITCH * y + WIDTH] == 0);
    }
    down.srcPitch = WIDTH - 1;
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&down));
}

static void test_fills(void)
{
    rig_context();
    CUdeviceptr a;
    uint8_t back[64];
    CU(cuMemAlloc_v2(&a, sizeof back));
    CU(cuMemsetD8_v2(a, 0x11, 64));
    CU(cuMemsetD16_v2(a + 2, 0x2233, 2));
    CU(cuMemsetD32_v2(a + 8, 0x44556677, 2));
    CU(cuMemcpyDtoH_v2(back, a, sizeof back));
    CHECK(
        !memcmp(back, "\x11\x11\x33\x22\x33\x22\x11\x11\x77\x66\x55\x44\x77\x66\x55\x44\x11", 17));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD16_v2(a + 1, 0, 1));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(a + 2, 0, 1));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(a, 0, 65));
    CHECK(rig_said("cuMemsetD8_v2: 65 bytes"));
}

static void test_host_memory(void)
{
    rig_context();
    void *pinned;
    CUdeviceptr device;
    static uint32_t own[1000];
    static const uint32_t constant[1000] = {1};
    unsigned type = 0;
    CU(cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    memset(pinned, 0, 4096);
    CU(cuMemHostGetDevicePointer_v2(&device, pinned, 0));
    rig_launch("scale", 32, NULL, (uint64_t[3]){device, 1, 9});
    CU(cuCtxSynchronize());
    CHECK(((uint32_t *)pinned)[0] == 9 && ((uint32_t *)pinned)[1023] == 9);

    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer_v2(&device, own, 0));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2((void *)0x1000, 64, 0)); // nothing there
    void *read_only = (void *)(uintptr_t)constant;
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(read_only, sizeof constant, 0));
    CU(cuMemHostRegister_v2(read_only, sizeof constant, CU_MEMHOSTREGISTER_READ_ONLY));
    CU(cuMemHostUnregister(read_only));
    CU(cuMemHostRegister_v2(own, sizeof own, CU_MEMHOSTREGISTER_DEVICEMAP));
    FAILS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(own + 10, 40, 0));
    CU(cuMemHostGetDevicePointer_v2(&device, own + 1, 0));
    rig_launch("scale", 1, NULL, (uint64_t[3]){device, 1, 4});
    CU(cuCtxSynchronize());
    CHECK(own[0] == 0 && own[1] == 4 && own[32] == 4 && own[33] == 0);
    CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)own));
    CHECK(type == CU_MEMORYTYPE_HOST);
    CU(cuMemHostUnregister(own));
    FAILS(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(own));
    CU(cuMemFreeHost(pinned));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pinned));
}

static void test_managed(void)
{
    rig_context();
    CUdeviceptr managed;
    unsigned is_managed = 0;
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&managed, 128, 0));
    CU(cuMemAllocManaged(&managed, 128, CU_MEM_ATTACH_GLOBAL));
    uint32_t *words = (uint32_t *)(uintptr_t)managed;
    memset(words, 0, 128);
    rig_launch("scale", 1, NULL, (uint64_t[3]){managed, 1, 3});
    CU(cuCtxSynchronize());
    CHECK(words[31] == 3);
    CU(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed + 4));
    CHECK(is_managed == 1);
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CU(cuMemPrefetchAsync_v2(managed, 128, location, 0, NULL));
    CU(cuMemPrefetchAsync(managed, 64, 0, NULL));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(managed, 256, 0, NULL));
    CU(cuMemFree_v2(managed));
}

static void test_limits(void)
{
    rig_context();
    CUdeviceptr a, b;
    size_t free_before, free_after, total;
    CU(cuMemGetInfo_v2(&free_before, &total));
    CHECK(total == 4 << 20 && free_before == total);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&a, 0));
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&a, (4 << 20) + 1));
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&a, SIZE_MAX - 100));
    CU(cuMemAlloc_v2(&a, 3 << 20));
    CU(cuMemGetInfo_v2(&free_after, &total));
    CHECK(free_after == 1 << 20);
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&b, 2 << 20));
    CU(cuMemFree_v2(a));
    // Addresses run out long after memory would, and come round again.
    for (int i = 0; i < 200; i++) {
        CU(cuMemAlloc_v2(&b, 2 << 20));
        CU(cuMemFree_v2(b));
    }
    CU(cuMemGetInfo_v2(&free_after, &total));
    CHECK(free_after == free_before);
}

static void test_attributes(void)
{
    CUcontext context = rig_context(), owner = NULL;
    CUdeviceptr a, base = 0;
    size_t size = 0;
    int ordinal = -1;
    unsigned char mapped = 9;
    void *host;
    CU(cuMemAlloc_v2(&a, 1000));
    CU(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, a + 5));
    CU(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, a + 5));
    CU(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, a + 5));
    CU(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a + 5));
    CHECK(owner == context && base == a && size == 1000 && ordinal == 0);
    FAILS(CUDA_ERROR_INVALID_VALUE,
          cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, a));
    FAILS(CUDA_ERROR_INVALID_VALUE,
          cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, (uintptr_t)&a));
    CU(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, (uintptr_t)&a));
    CHECK(mapped == 0);
    CU(cuMemGetAddressRange_v2(&base, &size, a + 999));
    CHECK(base == a && size == 1000);
    FAILS(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(&base, &size, a + 1000));
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    CU_POINTER_ATTRIBUTE_BUFFER_ID};
    unsigned type = 7;
    unsigned long long id = 7;
    void *out[] = {&type, &id};
    CU(cuPointerGetAttributes(2, wanted, out, (uintptr_t)&a));
    CHECK(type == 0 && id == 0);
}

static CUmemAllocationProp shareable(void)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
    };
}

static CUdeviceptr map(CUmemGenericAllocationHandle handle, size_t size)
{
    CUdeviceptr address;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CU(cuMemAddressReserve(&address, size, 0, 0, 0));
    CU(cuMemMap(address, size, 0, handle, 0));
    // Mapped is not yet accessible.
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(address, 1, 1));
    CU(cuMemSetAccess(address, size, &access, 1));
    return address;
}

static void test_virtual(void)
{
    rig_context();
    CUmemAllocationProp prop = shareable();
    CUmemGenericAllocationHandle handle, imported;
    size_t unit;
    int fd = -1;
    uint32_t word = 0;
    CU(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, unit + 1, &prop, 0));
    CU(cuMemCreate(&handle, unit, &prop, 0));
    CUdeviceptr first = map(handle, unit);
    CU(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CU(cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CHECK(close(fd) == 0);
    CUdeviceptr second = map(imported, unit);
    rig_launch("poke", 1, NULL, (uint64_t[3]){first + 128, 42});
    CU(cuCtxSynchronize());
    CU(cuMemcpyDtoH_v2(&word, second + 128, 4));
    CHECK(word == 42);
    // The memory lives as long as it has a handle or a mapping.
    CU(cuMemRelease(handle));
    CU(cuMemsetD8_v2(first, 1, unit));
    CU(cuCtxSynchronize());
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(first, unit));
    CU(cuMemUnmap(first, unit));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(first, 1, 1));
    CU(cuMemAddressFree(first, unit));
    CU(cuMemcpyDtoH_v2(&word, second, 4));
    CHECK(word == 0x01010101);
    CU(cuMemUnmap(second, unit));
    CU(cuMemRelease(imported));
    CU(cuMemAddressFree(second, unit));
    size_t left, total;
    CU(cuMemGetInfo_v2(&left, &total));
    CHECK(left == total);
}

// Attributes tell of a reservation as a whole, wherever something is mapped there.
static void test_virtual_attributes(void)
{
    rig_context();
    CUmemAllocationProp prop = shareable();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address, base = 0;
    size_t unit, size = 0;
    CU(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CU(cuMemCreate(&handle, unit, &prop, 0));
    CU(cuMemAddressReserve(&address, 4 * unit, 0, 0, 0));
    for (size_t i = 1; i < 3; i++) CU(cuMemMap(address + i * unit, unit, 0, handle, 0));
    for (size_t i = 1; i < 3; i++) {
        CUdeviceptr inside = address + i * unit + 7;
        CU(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside));
        CU(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside));
        CHECK(base == address && size == 4 * unit);
    }
    FAILS(CUDA_ERROR_INVALID_VALUE,
          cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address));
    for (size_t i = 1; i < 3; i++) CU(cuMemUnmap(address + i * unit, unit));
    CU(cuMemRelease(handle));
    CU(cuMemAddressFree(address, 4 * unit));
}

// A card waits for what uses memory that is freed, but CUDA only says that it may.
static void test_freed_while_used(void)
{
    rig_context();
    static uint32_t own[1000];
    CUstream stream;
    CUdeviceptr a, b, c;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = shareable();
    void *pinned;
    size_t unit;
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU(cuMemAlloc_v2(&a, 64));
    CU(cuMemAlloc_v2(&b, 64));
    CU(cuMemAlloc_v2(&c, 64));
    CU(cuMemHostAlloc(&pinned, 64, 0));
    CU(cuMemHostRegister_v2(own, sizeof own, 0));
    CU(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CU(cuMemCreate(&handle, unit, &prop, 0));
    CUdeviceptr mapped = map(handle, unit);
    gate_t gate = rig_gate();
    rig_gate_close(gate, stream);
    CU(cuMemcpyAsync((uintptr_t)pinned, a, 64, stream));
    CU(cuMemsetD8Async((uintptr_t)(own + 10), 1, 4, stream));
    rig_launch("poke", 1, stream, (uint64_t[3]){b + 8, 1});
    CU(cuMemsetD8Async(mapped, 1, 4, stream));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(a));
    CHECK(rig_said("is still used by what cuMemcpyAsync has enqueued"));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(b));
    CHECK(rig_said("is still used by what cuLaunchKernel has enqueued"));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pinned));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(own));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(mapped, unit));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuModuleUnload(rig_module()));
    CHECK(rig_said("a kernel of the module is still to run, by what cuLaunchKernel has enqueued"));
    rig_gate_open(gate);
    CU(cuMemFree_v2(c)); // which nothing uses
    CU(cuStreamSynchronize(stream));
    CU(cuMemFree_v2(a));
    CU(cuMemFree_v2(b));
    CU(cuMemFreeHost(pinned));
    CU(cuMemHostUnregister(own));
    CU(cuMemUnmap(mapped, unit));
    CU(cuModuleUnload(rig_module()));
}

static void test_poison(void)
{
    rig_context();
    CUdeviceptr a;
    uint8_t bytes[300];
    CU(cuMemAlloc_v2(&a, sizeof bytes));
    CU(cuMemcpyDtoH_v2(bytes, a, sizeof bytes));
    for (unsigned i = 0; i < sizeof bytes; i++) CHECK(bytes[i] == 0xa5);
}

static void test_two_devices(void)
{
    CUcontext one = rig_context(), two;
    CUdeviceptr a, b;
    uint32_t word = 0;
    CU(cuDevicePrimaryCtxRetain(&two, 1));
    CU(cuMemAlloc_v2(&a, 64));
    CU(cuMemsetD32_v2(a, 5, 16));
    CU(cuCtxSynchronize());
    CU(cuCtxSetCurrent(two));
    CU(cuMemAlloc_v2(&b, 64));
    CU(cuMemcpyPeer(b, two, a, one, 64));
    CU(cuMemcpyDtoH_v2(&word, b, 4));
    CHECK(word == 5);
    CU(cuCtxEnablePeerAccess(one, 0));
    FAILS(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(one, 0));
    CU(cuCtxDisablePeerAccess(one));
    CUstream stream;
    CU(cuStreamCreate(&stream, 0));
    CU(cuCtxSetCurrent(one));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(rig_kernel("empty"), 1, 1, 1, 1, 1, 1, 0,
                                                    stream, (void *[1]){NULL}, NULL));
    CHECK(rig_said("cuLaunchKernel: empty was loaded in another context than the stream's"));
    int ordinal = -1;
    CU(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, b));
    CHECK(ordinal == 1);
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    rig_kernels = argv[1];
    RUN("", test_copies);
    RUN("slow=2000", test_copies);
    RUN("", test_pageable);
    RUN("", test_planes);
    RUN("", test_fills);
    RUN("", test_host_memory);
    RUN("", test_managed);
    RUN("memory=4M", test_limits);
    RUN("", test_attributes);
    RUN("", test_virtual);
    RUN("", test_virtual_attributes);
    RUN("", test_freed_while_used);
    RUN("poison=0xa5", test_poison);
    RUN("devices=2", test_two_devices);
    return rig_result();
}
