// SPDX-License-Identifier: Apache-2.0
// libamdhip64 as this driver knows it: the part of its interface that is used, under the vendor's
// own names, and the table of its functions. No header of the vendor's is needed to build; a test
// compares this file with the real one where that is installed.
#ifndef KEEL_SRC_DRIVERS_HIP_SYMBOLS_H_
#define KEEL_SRC_DRIVERS_HIP_SYMBOLS_H_

#include <keel/status.h>
#include <stddef.h>
#include <stdint.h>

typedef int hipDevice_t;
typedef void *hipDeviceptr_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphNode *hipGraphNode_t;
typedef struct hipGraphExec *hipGraphExec_t;
typedef struct ihipMemGenericAllocationHandle *hipMemGenericAllocationHandle_t;
typedef const char *hip_text_t; // not the vendor's

typedef struct hipUUID_t {
    char bytes[16];
} hipUUID;

typedef enum hipError_t {
    hipSuccess = 0,
    hipErrorInvalidValue = 1,
    hipErrorOutOfMemory = 2,
    hipErrorNotInitialized = 3,
    hipErrorDeinitialized = 4,
    hipErrorInvalidConfiguration = 9,
    hipErrorInvalidDevicePointer = 17,
    hipErrorNoDevice = 100,
    hipErrorInvalidDevice = 101,
    hipErrorInvalidImage = 200,
    hipErrorInvalidContext = 201,
    hipErrorNoBinaryForGpu = 209,
    hipErrorECCNotCorrectable = 214,
    hipErrorInvalidKernelFile = 218,
    hipErrorInvalidSource = 300,
    hipErrorSharedObjectInitFailed = 303,
    hipErrorInvalidHandle = 400,
    hipErrorNotFound = 500,
    hipErrorNotReady = 600,
    hipErrorIllegalAddress = 700,
    hipErrorLaunchOutOfResources = 701,
    hipErrorLaunchTimeOut = 702,
    hipErrorContextIsDestroyed = 709,
    hipErrorAssert = 710,
    hipErrorHostMemoryAlreadyRegistered = 712,
    hipErrorLaunchFailure = 719,
    hipErrorNotSupported = 801,
    hipErrorUnknown = 999,
    hipErrorRuntimeMemory = 1052,
    hipErrorRuntimeOther = 1053,
} hipError_t;

typedef enum hipDeviceAttribute_t {
    hipDeviceAttributeConcurrentManagedAccess = 9,
    hipDeviceAttributeMaxBlockDimX = 26,
    hipDeviceAttributeMaxBlockDimY = 27,
    hipDeviceAttributeMaxBlockDimZ = 28,
    hipDeviceAttributeMaxGridDimX = 29,
    hipDeviceAttributeMaxGridDimY = 30,
    hipDeviceAttributeMaxGridDimZ = 31,
    hipDeviceAttributeMaxThreadsPerBlock = 56,
    hipDeviceAttributeMultiprocessorCount = 63,
    hipDeviceAttributeMaxSharedMemoryPerBlock = 74,
    hipDeviceAttributeWarpSize = 87,
    hipDeviceAttributeVirtualMemoryManagementSupported = 89, // not known to HIP 5.2
    hipDeviceAttributeWallClockRate = 10017,                 // not known to HIP 5.2
} hipDeviceAttribute_t;

typedef enum hipFunction_attribute {
    HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
} hipFunction_attribute;

enum {
    hipStreamNonBlocking = 1,
    hipEventBlockingSync = 1,
    hipEventDisableTiming = 2,
    hipHostMallocPortable = 1,
    hipHostMallocMapped = 2,
    hipHostMallocCoherent = 0x40000000,
    hipHostRegisterPortable = 1,
    hipHostRegisterMapped = 2,
    hipMemAttachGlobal = 1,
};

#define HIP_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define HIP_LAUNCH_PARAM_BUFFER_SIZE    ((void *)2)
#define HIP_LAUNCH_PARAM_END            ((void *)3)

typedef enum hipStreamCaptureMode { hipStreamCaptureModeRelaxed = 2 } hipStreamCaptureMode;
typedef enum hipMemAllocationGranularity_flags {
    hipMemAllocationGranularityMinimum = 0,
} hipMemAllocationGranularity_flags;
typedef enum hipMemLocationType { hipMemLocationTypeDevice = 1 } hipMemLocationType;
typedef enum hipMemAllocationType { hipMemAllocationTypePinned = 1 } hipMemAllocationType;
typedef enum hipMemAllocationHandleType {
    hipMemHandleTypePosixFileDescriptor = 1,
} hipMemAllocationHandleType;
typedef enum hipMemAccessFlags { hipMemAccessFlagsProtReadWrite = 3 } hipMemAccessFlags;
typedef enum hipMemcpyKind { hipMemcpyDefault = 4 } hipMemcpyKind;

typedef struct dim3 {
    uint32_t x, y, z;
} dim3;

typedef struct hipKernelNodeParams {
    dim3 blockDim;
    void **extra;
    void *func;
    dim3 gridDim;
    void **kernelParams;
    unsigned int sharedMemBytes;
} hipKernelNodeParams;

typedef struct hipMemLocation {
    hipMemLocationType type;
    int id;
} hipMemLocation;

typedef struct hipMemAllocationProp { // another one before HIP 5.3
    hipMemAllocationType type;
    hipMemAllocationHandleType requestedHandleType;
    hipMemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
    } allocFlags;
} hipMemAllocationProp;

typedef struct hipMemAccessDesc {
    hipMemLocation location;
    hipMemAccessFlags flags;
} hipMemAccessDesc;

typedef struct hipMemsetParams {
    void *dst;
    unsigned int elementSize;
    size_t height, pitch;
    unsigned int value;
    size_t width;
} hipMemsetParams;

typedef struct hip_release_t hip_release_t;

// Of HSA, on which HIP stands: whose memory is at an address.
typedef enum {
    HSA_EXT_POINTER_TYPE_UNKNOWN = 0,
    HSA_EXT_POINTER_TYPE_LOCKED = 2,
} hsa_amd_pointer_type_t;

typedef struct hsa_amd_pointer_info_s {
    uint32_t size;
    hsa_amd_pointer_type_t type;
    void *agentBaseAddress;
    void *hostBaseAddress;
    size_t sizeInBytes;
    void *userData;
    uint64_t agentOwner;
    uint32_t global_flags;
} hsa_amd_pointer_info_t;

// The last three are for a list of agents, and NULL.
typedef int hsa_amd_pointer_info_fn(const void *address, hsa_amd_pointer_info_t *info, void *alloc,
                                    uint32_t *count, void *agents);

typedef struct hip_symbols_t {
    int version;                  // as the library counts: 50221153 is HIP 5.2
    uint32_t missing;             // bits of stream_feature_t: features that lack a function
    const hip_release_t *release; // what is special about it
    hipError_t (*properties)(void *properties, int device); // its hipGetDeviceProperties
    hsa_amd_pointer_info_fn *origin;                        // NULL: it stands on no HSA
#define SYMBOL(type, name, feature_, parameters) type(*name) parameters;
#include "drivers/hip/symbols.def"
#undef SYMBOL
} hip_symbols_t;

// Opens libamdhip64, at `path` or where the system keeps it, and looks everything up, as
// library_open does (kit/library.h). KEEL_UNSUPPORTED also if it is too old; the message says what
// to do.
keel_status_t hip_symbols_open(const char *path, const hip_symbols_t **symbols) KEEL_MUST_USE;

// The error of a call, NULL for hipSuccess. Here the vendor's errors become Keel's; what ends the
// device is KEEL_DEVICE_LOST. Other users of the thread do not find the error by hipGetLastError.
keel_status_t hip_status_make(const hip_symbols_t *symbols, hipError_t result,
                              const char *call) KEEL_COLD;

// The same for hipGetDevice, hipSetDevice and hipGetDeviceCount, which fail if no device is there,
// or one has failed: HIP 7 then has one error for all calls, whatever that means elsewhere. So it
// is KEEL_DEVICE_LOST, but for errors that say that there is no such device, or no memory.
keel_status_t hip_status_entered(const hip_symbols_t *symbols, hipError_t result,
                                 const char *call) KEEL_COLD;

// What hipSetDevice said when the thread entered a device (api.h). If it refused, the thread has
// another device than its calls are meant for, and none is made.
extern _Thread_local hipError_t hip_refused;

// Calls a function of the table by its name, for a status of Keel's.
#define HIP_CALL(symbols_, name, ...)                                                              \
    (__builtin_expect(hip_refused != hipSuccess, 0)                                                \
         ? hip_status_entered((symbols_), hip_refused, "hipSetDevice")                             \
         : hip_status((symbols_), (symbols_)->name(__VA_ARGS__), #name))

// The same for one that is meant for no device but that of the handle it gets.
#define HIP_CALL_ANYWHERE(symbols_, name, ...)                                                     \
    hip_status((symbols_), (symbols_)->name(__VA_ARGS__), #name)

static inline keel_status_t hip_status(const hip_symbols_t *symbols, hipError_t result,
                                       const char *call)
{
    if (__builtin_expect(result == hipSuccess, 1)) return NULL;
    return hip_status_make(symbols, result, call);
}

#endif
