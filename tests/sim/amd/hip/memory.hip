// SPDX-License-Identifier: Apache-2.0
// Memory: copies, that of the host, of peers, managed, virtual, in the order of streams.
#include "programs.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

enum { COUNT = 3000 };

static int attribute(hipDeviceAttribute_t which)
{
    int value = 0, current = 0;
    HIP(hipGetDevice(&current));
    HIP(hipDeviceGetAttribute(&value, which, current));
    return value;
}

static bool all_are(const unsigned *data, size_t count, unsigned first)
{
    for (size_t n = 0; n < count; n++) {
        if (data[n] != first + n) return false;
    }
    return true;
}

// Page-locked memory of the host.
class host_memory
{
  public:
    host_memory(size_t count, unsigned flags = hipHostMallocDefault)
    {
        HIP(hipHostMalloc((void **)&data_, count * sizeof *data_, flags));
        for (size_t n = 0; n < count; n++) data_[n] = (unsigned)n;
    }
    host_memory(const host_memory &) = delete;
    host_memory &operator=(const host_memory &) = delete;
    ~host_memory() { (void)hipHostFree(data_); }
    operator unsigned *() const { return data_; }

  private:
    unsigned *data_ = nullptr;
};

PROGRAM(copies)
{
    std::vector<unsigned> in = count_up(COUNT, 5);
    device<unsigned> a(in), b(COUNT);
    HIP(hipMemcpy(b, a, a.bytes(), hipMemcpyDeviceToDevice));
    HIP(hipMemcpy(b + 10, in.data(), 5 * sizeof(unsigned), hipMemcpyDefault));
    std::vector<unsigned> got = b.read();
    for (size_t n = 0; n < COUNT; n++) CHECK(got[n] == (n < 10 || n >= 15 ? 5 + n : n - 5));
    // Odd sizes at odd places.
    for (size_t size : {1, 3, 7, 61, 1027}) {
        std::vector<unsigned char> bytes(2100, 0xee);
        HIP(hipMemset(b, 0x11, b.bytes()));
        HIP(hipMemcpy((char *)(unsigned *)b + size, in.data(), size, hipMemcpyHostToDevice));
        HIP(hipMemcpy(bytes.data() + 1, b, 2 * size + 1, hipMemcpyDeviceToHost));
        CHECK(bytes[0] == 0xee && bytes[size] == 0x11 && bytes[2 * size + 1] == 0x11);
        CHECK(!memcmp(&bytes[1 + size], in.data(), size) && bytes[2 * size + 2] == 0xee);
    }
}

PROGRAM(fills)
{
    device<unsigned> data(std::vector<unsigned>(COUNT, 0));
    unsigned char *bytes = (unsigned char *)(unsigned *)data;
    HIP(hipMemset(bytes + 1, 0x5a, 30)); // of less than 7 bytes here HIP 5.2 makes very many
    HIP(hipMemsetD16((hipDeviceptr_t)(bytes + 100), 0x1234, 3));
    HIP(hipMemsetD32((hipDeviceptr_t)(bytes + 200), 77, COUNT - 50));
    HIP(hipMemsetAsync(bytes + 40, 0xff, 1, 0));
    std::vector<unsigned> got = data.read();
    CHECK(got[0] == 0x5a5a5a00 && got[7] == 0x005a5a5a && got[10] == 0xff);
    CHECK(got[25] == 0x12341234 && got[26] == 0x1234 && got[27] == 0);
    for (size_t n = 50; n < COUNT; n++) CHECK(got[n] == 77);
}

// A rectangle inside of wider rows, and a box.
PROGRAM(rectangles)
{
    enum { PITCH = 64, WIDTH = 40, ROWS = 12, LAYERS = 3 };
    std::vector<unsigned char> host(PITCH * ROWS * LAYERS), back(host.size());
    for (size_t k = 0; k < host.size(); k++) host[k] = (unsigned char)(k * 7);
    unsigned char *wide;
    size_t pitch = 0;
    int images;
    HIP(hipDeviceGetAttribute(&images, hipDeviceAttributeImageSupport, 0));
#ifdef __aarch64__
    bool needs_images = true; // whatever HIP: Debian builds the runtime without them
#else
    bool needs_images = HIP_VERSION_MAJOR < 6;
#endif
    if (needs_images && !images) throw skipped{"HIP finds no pitch where there are no images"};
    HIP(hipMallocPitch((void **)&wide, &pitch, WIDTH, ROWS));
    HIP(hipMemcpy2D(wide, pitch, host.data(), PITCH, WIDTH, ROWS, hipMemcpyHostToDevice));
    HIP(hipMemset2D(wide, pitch, 0x77, 8, 4));
    HIP(hipMemcpy2D(back.data(), PITCH, wide, pitch, WIDTH, ROWS, hipMemcpyDeviceToHost));
    HIP(hipFree(wide));
    for (size_t y = 0; y < ROWS; y++) {
        for (size_t x = 0; x < PITCH; x++) {
            unsigned want = x >= WIDTH ? 0 : x < 8 && y < 4 ? 0x77 : host[y * PITCH + x];
            CHECK(back[y * PITCH + x] == want);
        }
    }
    hipPitchedPtr box;
    HIP(hipMalloc3D(&box, make_hipExtent(WIDTH, ROWS, LAYERS)));
    hipMemcpy3DParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(host.data(), PITCH, PITCH, ROWS);
    copy.dstPtr = box;
    copy.extent = make_hipExtent(WIDTH, ROWS, LAYERS);
    copy.kind = hipMemcpyHostToDevice;
    HIP(hipMemcpy3D(&copy));
    std::fill(back.begin(), back.end(), (unsigned char)0);
    copy.srcPtr = box;
    copy.dstPtr = make_hipPitchedPtr(back.data(), PITCH, PITCH, ROWS);
    copy.kind = hipMemcpyDeviceToHost;
    HIP(hipMemcpy3D(&copy));
    HIP(hipFree(box.ptr));
    for (size_t k = 0; k < host.size(); k++) CHECK(back[k] == (k % PITCH < WIDTH ? host[k] : 0));
}

PROGRAM(host_pages)
{
    for (unsigned flags : {(unsigned)hipHostMallocDefault, (unsigned)hipHostMallocNonCoherent,
                           (unsigned)(hipHostMallocMapped | hipHostMallocCoherent),
                           (unsigned)hipHostMallocPortable}) {
        host_memory memory(COUNT, flags);
        unsigned *seen = nullptr;
        HIP(hipHostGetDevicePointer((void **)&seen, memory, 0));
        LAUNCH(add, COUNT / 100, 100, 0, seen, COUNT, 9);
        HIP(hipDeviceSynchronize());
        CHECK(all_are(memory, COUNT, 9));
    }
}

static __global__ void answer(unsigned *question, unsigned *reply)
{
    for (unsigned n = 1; n <= 3; n++) {
        while (__hip_atomic_load(question, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) != n) {
            __builtin_amdgcn_s_sleep(4);
        }
        __hip_atomic_store(reply, 10 * n, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
    }
}

// Host and kernel speak with each other while it runs.
PROGRAM(host_signals)
{
    host_memory words(2, hipHostMallocCoherent);
    words[0] = words[1] = 0;
    LAUNCH(answer, 1, 1, 0, words, words + 1);
    for (unsigned n = 1; n <= 3; n++) {
        __atomic_store_n(&words[0], n, __ATOMIC_RELEASE);
        while (__atomic_load_n(&words[1], __ATOMIC_ACQUIRE) != 10 * n) {
            CHECK(hipStreamQuery(0) == hipErrorNotReady || words[1] == 10 * n);
        }
    }
    HIP(hipDeviceSynchronize());
}

PROGRAM(registered)
{
    unsigned *memory = (unsigned *)aligned_alloc(4096, 16384), *seen = nullptr;
    std::unique_ptr<unsigned, void (*)(void *)> owner(memory, free);
    for (unsigned n = 0; n < COUNT; n++) memory[n] = n;
    HIP(hipHostRegister(memory, 16384, hipHostRegisterDefault));
    HIP(hipHostGetDevicePointer((void **)&seen, memory, 0));
    LAUNCH(add, COUNT / 100, 100, 0, seen, COUNT, 4);
    HIP(hipDeviceSynchronize());
    CHECK(all_are(memory, COUNT, 4));
    HIP(hipHostUnregister(memory));
    CHECK(hipHostUnregister(memory) != hipSuccess);
}

PROGRAM(managed)
{
    unsigned *data = nullptr;
    HIP(hipMallocManaged((void **)&data, COUNT * sizeof *data));
    std::unique_ptr<unsigned, hipError_t (*)(void *)> owner(data, hipFree);
    for (unsigned n = 0; n < COUNT; n++) data[n] = n;
    for (unsigned round = 1; round <= 3; round++) {
        LAUNCH(add, COUNT / 100, 100, 0, data, COUNT, 1);
        HIP(hipDeviceSynchronize());
        CHECK(all_are(data, COUNT, round));
    }
}

PROGRAM(pointers)
{
    device<unsigned> memory(COUNT);
    host_memory host(COUNT);
    unsigned local = 0;
    hipDeviceptr_t base = nullptr;
    size_t size = 0, before = 0, after = 0, total = 0;
    hipPointerAttribute_t about;
    HIP(hipPointerGetAttributes(&about, (unsigned *)memory + 7));
    CHECK(about.device == 0 && about.devicePointer == (unsigned *)memory + 7);
    HIP(hipPointerGetAttributes(&about, host));
    CHECK(about.hostPointer == (unsigned *)host);
    HIP(hipMemGetAddressRange(&base, &size, (hipDeviceptr_t)((unsigned *)memory + 99)));
    CHECK(base == (hipDeviceptr_t)(unsigned *)memory && size == memory.bytes());
    HIP(hipMemGetInfo(&before, &total));
    {
        device<char> large((size_t)64 << 20);
        HIP(hipMemGetInfo(&after, &total));
    }
    CHECK(before - after >= (size_t)64 << 20 && before <= total);
    CHECK(hipMemcpy(memory, &local, memory.bytes() + 4096, hipMemcpyDeviceToDevice) != hipSuccess);
    (void)hipGetLastError();
    unsigned *much = nullptr;
    CHECK(hipMalloc((void **)&much, (size_t)1 << 45) == hipErrorOutOfMemory);
    (void)hipGetLastError();
}

PROGRAM(pools)
{
    if (HIP_VERSION_MAJOR * 100 + HIP_VERSION_MINOR < 507 &&
        !attribute(hipDeviceAttributeMemoryPoolsSupported)) {
        throw skipped{"this HIP has no pools"};
    }
    std::vector<unsigned> in = count_up(COUNT), out(COUNT);
    stream order;
    hipMemPool_t pool;
    uint64_t keep = UINT64_MAX;
    HIP(hipDeviceGetDefaultMemPool(&pool, 0));
    HIP(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &keep));
    for (unsigned round = 1; round <= 4; round++) {
        unsigned *data = nullptr;
        HIP(hipMallocAsync((void **)&data, COUNT * sizeof *data, order));
        HIP(hipMemcpyAsync(data, in.data(), COUNT * sizeof *data, hipMemcpyHostToDevice, order));
        LAUNCH(add, COUNT / 100, 100, order, data, COUNT, round);
        HIP(hipMemcpyAsync(out.data(), data, COUNT * sizeof *data, hipMemcpyDeviceToHost, order));
        HIP(hipFreeAsync(data, order));
        HIP(hipStreamSynchronize(order));
        CHECK(all_are(out.data(), COUNT, round));
    }
    HIP(hipMemPoolTrimTo(pool, 0));
}

static __global__ void gather(const unsigned *from, unsigned *to, unsigned count)
{
    if (global_index() < count) to[global_index()] = from[count - 1 - global_index()];
}

// A kernel of one GPU reads the other's memory, and copies go between them.
PROGRAM(peers)
{
    int count = 0, can = 0;
    HIP(hipGetDeviceCount(&count));
    if (count < 2) throw skipped{"there is one GPU"};
    HIP(hipDeviceCanAccessPeer(&can, 1, 0));
    CHECK(can);
    device<unsigned> near_memory(count_up(COUNT, 100));
    HIP(hipSetDevice(1));
    struct back_again {
        ~back_again() { (void)hipSetDevice(0); }
    } again;
    device<unsigned> far_memory(COUNT), copied(COUNT);
    HIP(hipDeviceEnablePeerAccess(0, 0));
    LAUNCH(gather, COUNT / 100, 100, 0, near_memory, far_memory, COUNT);
    HIP(hipMemcpyPeer(copied, 1, near_memory, 0, copied.bytes()));
    HIP(hipDeviceSynchronize());
    std::vector<unsigned> far = far_memory.read();
    for (unsigned n = 0; n < COUNT; n++) CHECK(far[n] == 100 + COUNT - 1 - n);
    CHECK(all_are(copied.read().data(), COUNT, 100));
    HIP(hipDeviceDisablePeerAccess(0));
}

PROGRAM(virtual_memory)
{
#if HIP_VERSION_MAJOR >= 6
    if (!attribute(hipDeviceAttributeVirtualMemoryManagementSupported)) {
        throw skipped{"the device says that it has none"};
    }
    hipMemAllocationProp kind = {};
    hipMemAccessDesc access = {};
    hipMemGenericAllocationHandle_t handles[2];
    size_t least = 0;
    void *place = nullptr;
    kind.type = hipMemAllocationTypePinned;
    kind.location.type = hipMemLocationTypeDevice;
    HIP(hipMemGetAllocationGranularity(&least, &kind, hipMemAllocationGranularityRecommended));
    const size_t page = std::max(least, (size_t)1 << 16); // both are powers of two
    HIP(hipMemAddressReserve(&place, 2 * page, 0, nullptr, 0));
    access.location = kind.location;
    access.flags = hipMemAccessFlagsProtReadWrite;
    for (size_t n = 0; n < 2; n++) {
        HIP(hipMemCreate(&handles[n], page, &kind, 0));
        HIP(hipMemMap((char *)place + n * page, page, 0, handles[n], 0));
    }
    HIP(hipMemSetAccess(place, 2 * page, &access, 1));
    // The kernel works across the seam of the two; HIP copies only in one of them.
    enum { HALF = COUNT / 2, BYTES = HALF * sizeof(unsigned) };
    unsigned *upper = (unsigned *)((char *)place + page), *data = upper - HALF;
    std::vector<unsigned> in = count_up(COUNT), out(COUNT);
    HIP(hipMemcpy(data, in.data(), BYTES, hipMemcpyHostToDevice));
    HIP(hipMemcpy(upper, in.data() + HALF, BYTES, hipMemcpyHostToDevice));
    LAUNCH(add, COUNT / 100, 100, 0, data, COUNT, 6);
    HIP(hipMemcpy(out.data(), data, BYTES, hipMemcpyDeviceToHost));
    HIP(hipMemcpy(out.data() + HALF, upper, BYTES, hipMemcpyDeviceToHost));
    CHECK(all_are(out.data(), COUNT, 6));
    for (size_t n = 0; n < 2; n++) {
        HIP(hipMemUnmap((char *)place + n * page, page));
        HIP(hipMemRelease(handles[n]));
    }
    HIP(hipMemAddressFree(place, 2 * page));
#else
    throw skipped{"HIP has it from version 6 on"};
#endif
}
