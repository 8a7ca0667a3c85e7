// SPDX-License-Identifier: Apache-2.0
// Memory: what addresses tell, what can be locked, and what can be shared.
#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Both ends of an allocation tell where it begins and how long it is.
static void require_range(uint64_t base, size_t size)
{
    const uint64_t ends[] = {base, base + size / 2, base + size - 1};
    for (int i = 0; i < 3; i++) {
        CUdeviceptr start = 0;
        size_t length = 0;
        RETURNS(CUDA_SUCCESS,
                cu.cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, ends[i]));
        RETURNS(CUDA_SUCCESS,
                cu.cuPointerGetAttribute(&length, CU_POINTER_ATTRIBUTE_RANGE_SIZE, ends[i]));
        if (start != base || length != size)
            fact_untrue(__LINE__, "%zu bytes at %#llx are said to be %zu at %#llx", size,
                        (unsigned long long)base, length, start);
    }
}

static int type_of(uint64_t address)
{
    unsigned type = 0;
    CU(cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
    return (int)type;
}

static void ranges(void)
{
    cuda_begin();
    CUdeviceptr start;
    size_t length, size;
    CUdeviceptr memory = cuda_memory(1000), managed, variable;
    void *locked;
    require_range(memory, 1000);
    REQUIRE(type_of(memory) == CU_MEMORYTYPE_DEVICE);
    CU(cu.cuMemGetAddressRange_v2(&start, &length, memory + 999));
    REQUIRE(start == memory && length == 1000);
    CU(cu.cuMemHostAlloc(&locked, 5000, 0));
    require_range(cuda_at(locked), 5000);
    REQUIRE(type_of(cuda_at(locked)) == CU_MEMORYTYPE_HOST);
    CU(cu.cuMemAllocManaged(&managed, 3000, CU_MEM_ATTACH_GLOBAL));
    require_range(managed, 3000);
    CU(cu.cuModuleGetGlobal_v2(&variable, &size, cuda_load(), "variable"));
    REQUIRE(size == 12);
    require_range(variable, size);
}

static void strangers(void)
{
    cuda_begin();
    static char own[4096];
    CUdeviceptr memory = cuda_memory(4096), start;
    RETURNS(CUDA_ERROR_INVALID_VALUE,
            cu.cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, cuda_at(own)));
    CU(cu.cuMemFree_v2(memory));
    RETURNS(CUDA_ERROR_INVALID_VALUE,
            cu.cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory));
}

static void aligned(void)
{
    cuda_begin();
    for (size_t size = 1; size < 5000; size = size * 3 + 1) REQUIRE(cuda_memory(size) % 256 == 0);
}

static void none_is_no_size(void)
{
    cuda_begin();
    CUdeviceptr memory;
    RETURNS(CUDA_ERROR_INVALID_VALUE, cu.cuMemAlloc_v2(&memory, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cu.cuMemAllocManaged(&memory, 0, CU_MEM_ATTACH_GLOBAL));
    RETURNS(CUDA_SUCCESS, cu.cuMemFree_v2(0));
}

static void too_much(void)
{
    cuda_begin();
    size_t available, total;
    CUdeviceptr memory;
    CU(cu.cuMemGetInfo_v2(&available, &total));
    RETURNS(CUDA_ERROR_OUT_OF_MEMORY, cu.cuMemAlloc_v2(&memory, total + total / 2));
    RETURNS(CUDA_SUCCESS, cu.cuMemAlloc_v2(&memory, 4096)); // the context is as before
    RETURNS(CUDA_SUCCESS, cu.cuCtxSynchronize());
}

static void info(void)
{
    cuda_begin();
    enum { SIZE = 64 << 20 };
    size_t before, during, after, total;
    CU(cu.cuMemGetInfo_v2(&before, &total));
    CUdeviceptr memory = cuda_memory(SIZE);
    CU(cu.cuMemGetInfo_v2(&during, &total));
    CU(cu.cuMemFree_v2(memory));
    CU(cu.cuMemGetInfo_v2(&after, &total));
    fact_say("%zu MiB of %zu MiB were free", before >> 20, total >> 20);
    REQUIRE(before - during >= SIZE && after - during >= SIZE);
}

static void *pages(size_t size, int rights)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(memory != MAP_FAILED);
    memset(memory, 1, size);
    NEED(mprotect(memory, size, rights) == 0);
    return memory;
}

static void registered(void)
{
    cuda_begin();
    char *memory = pages(65536, PROT_READ | PROT_WRITE);
    CUstream stream = cuda_stream();
    CUdeviceptr address = 0, fill = cuda_memory(4096);
    RETURNS(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cu.cuMemHostUnregister(memory));
    RETURNS(CUDA_SUCCESS, cu.cuMemHostRegister_v2(memory, 65536, CU_MEMHOSTREGISTER_PORTABLE));
    RETURNS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
            cu.cuMemHostRegister_v2(memory, 65536, CU_MEMHOSTREGISTER_PORTABLE));
    RETURNS(CUDA_SUCCESS, cu.cuMemHostGetDevicePointer_v2(&address, memory, 0));
    REQUIRE(address == cuda_at(memory) ||
            !cuda_attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM));
    CU(cu.cuMemsetD8Async(fill, 9, 4096, stream));
    CU(cu.cuMemcpyAsync(address + 100, fill, 4096, stream));
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(memory[99] == 1 && memory[100] == 9 && memory[4195] == 9 && memory[4196] == 1);
    RETURNS(CUDA_SUCCESS, cu.cuMemHostUnregister(memory));
}

// A page is locked once: another range that shares one is refused.
static void registered_in_part(void)
{
    cuda_begin();
    char *memory = pages(65536, PROT_READ | PROT_WRITE);
    RETURNS(CUDA_SUCCESS, cu.cuMemHostRegister_v2(memory, 32768, 0));
    RETURNS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
            cu.cuMemHostRegister_v2(memory + 16384, 32768, 0));
    RETURNS(CUDA_SUCCESS, cu.cuMemHostRegister_v2(memory + 32768, 32768, 0));
}

static void read_only(void)
{
    cuda_begin();
    if (!cuda_attribute(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED))
        fact_skip("the device cannot lock memory for reading");
    void *memory = pages(3 << 20, PROT_READ);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cu.cuMemHostRegister_v2(memory, 3 << 20, 0));
    RETURNS(CUDA_SUCCESS, cu.cuMemHostRegister_v2(memory, 3 << 20, CU_MEMHOSTREGISTER_READ_ONLY));
    RETURNS(CUDA_SUCCESS, cu.cuMemHostUnregister(memory));
}

static void *file_mapping(size_t size)
{
    FILE *file = tmpfile();
    NEED(file && ftruncate(fileno(file), (off_t)size) == 0);
    void *memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fileno(file), 0);
    NEED(memory != MAP_FAILED);
    return memory;
}

static void private_file_refused(void)
{
    cuda_begin();
    void *memory = file_mapping(65536);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cu.cuMemHostRegister_v2(memory, 65536, 0));
}

static void private_file_large(void)
{
    cuda_begin();
    void *memory = file_mapping(2 << 20);
    RETURNS(CUDA_SUCCESS, cu.cuMemHostRegister_v2(memory, 2 << 20, CU_MEMHOSTREGISTER_READ_ONLY));
}

static void managed(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUdeviceptr address;
    unsigned is = 0;
    CU(cu.cuMemAllocManaged(&address, 4096, CU_MEM_ATTACH_GLOBAL));
    volatile uint32_t *words = (volatile uint32_t *)(uintptr_t)address;
    words[0] = 0;
    words[1] = 0;
    LAUNCH("append", stream, address, 8);
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(words[0] == 1 && words[1] == 8);
    CU(cu.cuPointerGetAttribute(&is, CU_POINTER_ATTRIBUTE_IS_MANAGED, address));
    REQUIRE(is == 1);
}

static const CUmemAllocationProp shareable = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
};

static size_t granularity(void)
{
    size_t unit;
    if (!cuda_attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
        fact_skip("the device exports no descriptors");
    CU(cu.cuMemGetAllocationGranularity(&unit, &shareable, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    return unit;
}

static CUdeviceptr map_new(CUmemGenericAllocationHandle handle, size_t size)
{
    CUdeviceptr address;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CU(cu.cuMemAddressReserve(&address, size, 0, 0, 0));
    CU(cu.cuMemMap(address, size, 0, handle, 0));
    CU(cu.cuMemSetAccess(address, size, &access, 1));
    return address;
}

static void units(void)
{
    cuda_begin();
    size_t unit = granularity();
    CUmemGenericAllocationHandle handle;
    fact_say("%zu KiB", unit >> 10);
    REQUIRE(unit && (unit & (unit - 1)) == 0);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cu.cuMemCreate(&handle, unit - 4096, &shareable, 0));
    RETURNS(CUDA_SUCCESS, cu.cuMemCreate(&handle, unit, &shareable, 0));
    require_range(map_new(handle, unit), unit);
}

// The same memory at two addresses, by way of a descriptor; released while it is mapped.
static void shared(void)
{
    cuda_begin();
    size_t unit = granularity();
    CUmemGenericAllocationHandle handle, imported;
    CUstream stream = cuda_stream();
    uint32_t *back = cuda_words();
    int fd = -1;
    CU(cu.cuMemCreate(&handle, unit, &shareable, 0));
    CU(cu.cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    NEED(fd >= 0);
    CU(cu.cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)(unsigned)fd,
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CUdeviceptr first = map_new(handle, unit), second = map_new(imported, unit);
    CU(cu.cuMemRelease(handle));
    CU(cu.cuMemRelease(imported));
    NEED(close(fd) == 0);
    REQUIRE(first != second);
    CU(cu.cuMemsetD32Async(first, 77, unit / 4, stream));
    CU(cu.cuMemcpyAsync(cuda_at(back), second + unit - 4, 4, stream));
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(back[0] == 77);
}

static void descriptor_is_no_file(void)
{
    cuda_begin();
    size_t unit = granularity();
    CUmemGenericAllocationHandle handle;
    int fd = -1;
    CU(cu.cuMemCreate(&handle, unit, &shareable, 0));
    CU(cu.cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    REQUIRE(mmap(NULL, unit, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
}

// A descriptor does not say how much there is; a card notices when it is mapped, or made
// accessible.
static void more_than_there_is(void)
{
    cuda_begin();
    size_t unit = granularity();
    CUmemGenericAllocationHandle handle, imported;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr address;
    int fd = -1;
    CU(cu.cuMemCreate(&handle, unit, &shareable, 0));
    CU(cu.cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CU(cu.cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)(unsigned)fd,
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CU(cu.cuMemAddressReserve(&address, 2 * unit, 0, 0, 0));
    CUresult error = cu.cuMemMap(address, 2 * unit, 0, imported, 0);
    if (!error) error = cu.cuMemSetAccess(address, 2 * unit, &access, 1);
    REQUIRE(error == CUDA_ERROR_NOT_SUPPORTED);
    RETURNS(CUDA_SUCCESS, cu.cuCtxSynchronize());
}

const fact_t cuda_memory_facts[] = {
    {"memory.ranges", "any byte of an allocation tells its start and its exact size", H200, ranges,
     HOLDS, HOLDS, NULL},
    {"memory.strangers", "other addresses, and those of freed memory, tell nothing", H200,
     strangers, HOLDS, HOLDS, NULL},
    {"memory.aligned", "memory of cuMemAlloc begins at a multiple of 256",
     "CUDA C++ programming guide, device memory accesses", aligned, HOLDS, HOLDS, NULL},
    {"memory.none_is_no_size", "no bytes cannot be had, and no address may be freed",
     "CUDA driver API, cuMemAlloc", none_is_no_size, HOLDS, HOLDS, NULL},
    {"memory.too_much", "an allocation that is too large fails, and all goes on",
     "CUDA driver API, cuMemAlloc", too_much, HOLDS, HOLDS, NULL},
    {"memory.info", "cuMemGetInfo knows of an allocation as soon as it is made or freed",
     H200 " (gpu.trim_gives_memory_back)", info, HOLDS, HOLDS, NULL},
    {"memory.registered", "locked memory has the host's address, and is locked once",
     "CUDA driver API, cuMemHostRegister", registered, HOLDS, HOLDS, NULL},
    {"memory.registered_in_part", "ranges that share a page are not locked both",
     "src/kit/pages.h; CUDA driver API, cuMemHostRegister", registered_in_part, HOLDS, HOLDS, NULL},
    {"memory.read_only", "what cannot be written is locked with a flag that says so", H200,
     read_only, HOLDS, HOLDS, NULL},
    {"memory.private_file_refused",
     "a private mapping of a file for reading is not locked without that flag", H200,
     private_file_refused, HOLDS, HOLDS, NULL},
    {"memory.private_file_large", "with it, one of 2 MiB is", H200, private_file_large, HOLDS,
     NOT_RUN, "a card never returns from the call, which is why Keel refuses such mappings"},
    {"memory.managed", "host and device use managed memory in turns", H200 " (gpu.managed_memory)",
     managed, HOLDS, HOLDS, NULL},
    {"memory.units", "memory to be exported comes in units, each with its exact size",
     "CUDA driver API, cuMemCreate; " H200, units, HOLDS, HOLDS, NULL},
    {"memory.shared", "a descriptor leads to the same memory, which lives as long as it is mapped",
     "CUDA driver API, cuMemRelease; " H200 " (card.c: shared)", shared, HOLDS, HOLDS, NULL},
    {"memory.descriptor_is_no_file", "the host cannot map such a descriptor", H200,
     descriptor_is_no_file, HOLDS, HOLDS, NULL},
    {"memory.more_than_there_is", "to map more than there is, is not supported", H200,
     more_than_there_is, HOLDS, HOLDS, NULL},
    {0},
};
