// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hip.h"

enum { DEVICES = 16 };

static _Thread_local int current; // the thread's device
static _Thread_local int last;    // its last error

// Errors have CUDA's numbers, but for some that HIP does not have.
static int error_of(int error)
{
    switch (error) {
    case 220: // NVLink
    case 226: // contained
    case 46:  // unavailable
    case 721: // memory of tensors
    case 810: // MPS
    case 911: return hipErrorUnknown;
    case 221: // no compiler
    case 222: return hipErrorNoBinaryForGpu;
    case 714: // stack
    case 715: // instruction
    case 716: // alignment
    case 717: // address space
    case 718: return hipErrorLaunchFailure;
    default: return error;
    }
}

int done(int error)
{
    if (__builtin_expect(error != CUDA_SUCCESS, 0)) last = error = error_of(error);
    return error;
}

HIP(hipGetLastError, void)
{
    int error = last;
    last = hipSuccess;
    return error;
}

// The words are CUDA's.
#define TEXT(name, function)                                                                       \
    __attribute__((visibility("default"))) const char *name(int error);                            \
    const char *name(int error)                                                                    \
    {                                                                                              \
        const char *text = NULL;                                                                   \
        (void)function(error, &text);                                                              \
        return text;                                                                               \
    }
TEXT(hipGetErrorName, cuGetErrorName)
TEXT(hipGetErrorString, cuGetErrorString)

HIP(hipInit, unsigned flags)
{
    return done(cuInit(flags));
}

int hip_major(void)
{
    const char *release = getenv("HIP_ON_CUDA_RELEASE");
    int major = release ? atoi(release) : 6;
    return major >= 5 && major <= 7 ? major : 0;
}

HIP(hipRuntimeGetVersion, int *version)
{
    int major = hip_major();
    if (!major) return done(CUDA_ERROR_INVALID_VALUE);
    static const int versions[] = {50731921, 60443483, 70152802};
    *version = versions[major - 5];
    return hipSuccess;
}

HIP(hipGetDeviceCount, int *count)
{
    return done(cuDeviceGetCount(count));
}

HIP(hipDeviceGetName, char *name, int size, int device)
{
    return done(cuDeviceGetName(name, size, device));
}

HIP(hipDeviceGetUuid, void *uuid, int device)
{
    return done(cuDeviceGetUuid_v2(uuid, device));
}

HIP(hipDeviceTotalMem, size_t *bytes, int device)
{
    return done(cuDeviceTotalMem_v2(bytes, device));
}

HIP(hipDeviceGetPCIBusId, char *address, int size, int device)
{
    return done(cuDeviceGetPCIBusId(address, size, device));
}

HIP(hipDeviceCanAccessPeer, int *can, int device, int peer)
{
    return done(cuDeviceCanAccessPeer(can, device, peer));
}

// Attributes by HIP's numbers.
static const struct {
    int hip, cuda;
} attributes[] = {
    {9, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
    {24, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
    {26, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X},
    {27, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y},
    {28, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z},
    {29, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X},
    {30, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y},
    {31, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z},
    {56, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {63, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {74, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
    {87, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {88, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    {89, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED},
};

HIP(hipDeviceGetAttribute, int *value, int attribute, int device)
{
    enum { CLOCK_RATE = 10017, CLOCK_KHZ = 1000000 }; // %globaltimer counts nanoseconds
    if (attribute == CLOCK_RATE) {
        *value = CLOCK_KHZ;
        return hipSuccess;
    }
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (attributes[i].hip == attribute)
            return done(cuDeviceGetAttribute(value, attributes[i].cuda, device));
    return done(CUDA_ERROR_INVALID_VALUE);
}

// Of the struct only the target is filled in: a text of 256 bytes.
static int properties_fill(char *properties, size_t size, size_t target, int device)
{
    int major = 0, minor = 0;
    int error = cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    if (!error)
        error = cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    if (error) return done(error);
    memset(properties, 0, size);
    snprintf(properties + target, 256, "nvptx:sm_%d", major * 10 + minor);
    return hipSuccess;
}

HIP(hipGetDeviceProperties, void *properties, int device) // up to 5
{
    return properties_fill(properties, 792, 396, device);
}

HIP(hipGetDevicePropertiesR0600, void *properties, int device) // from 6 on
{
    return properties_fill(properties, 1472, 1160, device);
}

HIP(hipGetDevice, int *device)
{
    *device = current;
    return hipSuccess;
}

HIP(hipSetDevice, int device)
{
    int count = 0;
    int error = cuDeviceGetCount(&count);
    if (!error && (device < 0 || device >= count || device >= DEVICES))
        error = CUDA_ERROR_INVALID_DEVICE;
    if (!error) current = device;
    return done(error);
}

int context_of(int device, void **context)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static void *contexts[DEVICES]; // under the lock until set
    *context = __atomic_load_n(&contexts[device], __ATOMIC_ACQUIRE);
    if (*context) return CUDA_SUCCESS;
    int error = CUDA_SUCCESS, handle = 0;
    pthread_mutex_lock(&lock);
    if (!contexts[device]) {
        error = cuDeviceGet(&handle, device);
        if (!error) error = cuDevicePrimaryCtxRetain(context, handle);
        if (!error) __atomic_store_n(&contexts[device], *context, __ATOMIC_RELEASE);
    }
    *context = contexts[device];
    pthread_mutex_unlock(&lock);
    return error;
}

// Others may have made another context current meanwhile.
int here(void)
{
    void *its = NULL, *now = NULL;
    int error = context_of(current, &its);
    if (!error) error = cuCtxGetCurrent(&now);
    if (!error && now != its) error = cuCtxSetCurrent(its);
    return error;
}

void *context_now(void)
{
    void *now = NULL;
    (void)cuCtxGetCurrent(&now);
    return now;
}

HIP(hipThreadExchangeStreamCaptureMode, int *mode)
{
    return done(cuThreadExchangeStreamCaptureMode(mode));
}

HIP(hipDeviceGetStreamPriorityRange, int *least, int *greatest)
{
    FORWARD(cuCtxGetStreamPriorityRange(least, greatest));
}

HIP(hipDeviceEnablePeerAccess, int peer, unsigned flags)
{
    void *context = NULL;
    int error = context_of(peer, &context);
    if (error) return done(error);
    FORWARD(cuCtxEnablePeerAccess(context, flags));
}
