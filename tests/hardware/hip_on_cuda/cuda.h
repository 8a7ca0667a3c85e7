// SPDX-License-Identifier: Apache-2.0
// libcuda, as far as HIP's functions become its own. Handles are pointers here: nothing looks into
// them.
#ifndef HIP_ON_CUDA_CUDA_H_
#define HIP_ON_CUDA_CUDA_H_

#include <stddef.h>
#include <stdint.h>

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_INVALID_DEVICE = 101,

    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
    CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 89,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,

    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
    CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_MEMORYTYPE_UNIFIED = 4,
};

typedef struct cuda_copy_t { // CUDA_MEMCPY3D
    size_t source_x, source_y, source_z, source_lod;
    int source_type;
    const void *source_host;
    uint64_t source;
    void *source_array, *reserved_source;
    size_t source_pitch, source_height;
    size_t target_x, target_y, target_z, target_lod;
    int target_type;
    void *target_host;
    uint64_t target;
    void *target_array, *reserved_target;
    size_t target_pitch, target_height;
    size_t width, height, depth;
} cuda_copy_t;

typedef struct cuda_fill_t { // CUDA_MEMSET_NODE_PARAMS
    uint64_t target;
    size_t pitch;
    unsigned value, element;
    size_t width, height;
} cuda_fill_t;

typedef struct cuda_kernel_t { // CUDA_KERNEL_NODE_PARAMS
    void *function;
    unsigned grid[3], block[3], shared;
    void **parameters, **extra;
    void *kernel, *context;
} cuda_kernel_t;

int cuInit(unsigned flags);
int cuGetErrorName(int error, const char **text);
int cuGetErrorString(int error, const char **text);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetCount(int *count);
int cuDeviceGetName(char *name, int size, int device);
int cuDeviceGetUuid_v2(void *uuid, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceCanAccessPeer(int *can, int device, int peer);
int cuDeviceGetPCIBusId(char *text, int size, int device);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxGetCurrent(void **context);
int cuCtxSetCurrent(void *context);
int cuCtxGetDevice(int *device);
int cuCtxEnablePeerAccess(void *peer, unsigned flags);
int cuCtxGetStreamPriorityRange(int *least, int *greatest);
int cuThreadExchangeStreamCaptureMode(int *mode);

int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority);
int cuStreamDestroy_v2(void *stream);
int cuCtxSynchronize(void);
int cuStreamSynchronize(void *stream);
int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
int cuEventCreate(void **event, unsigned flags);
int cuEventDestroy_v2(void *event);
int cuEventRecord(void *event, void *stream);
int cuEventQuery(void *event);
int cuEventSynchronize(void *event);
int cuLaunchHostFunc(void *stream, void (*function)(void *user), void *user);

int cuMemAlloc_v2(uint64_t *address, size_t size);
int cuMemFree_v2(uint64_t address);
int cuMemHostAlloc(void **data, size_t size, unsigned flags);
int cuMemFreeHost(void *data);
int cuMemHostGetDevicePointer_v2(uint64_t *address, void *data, unsigned flags);
int cuMemHostRegister_v2(void *data, size_t size, unsigned flags);
int cuMemHostUnregister(void *data);
int cuMemAllocManaged(uint64_t *address, size_t size, unsigned flags);
int cuPointerGetAttribute(void *value, int attribute, uint64_t address);
int cuMemGetInfo_v2(size_t *available, size_t *total);
int cuDeviceGetDefaultMemPool(void **pool, int device);
int cuMemPoolSetAttribute(void *pool, int attribute, void *value);
int cuMemAllocAsync(uint64_t *address, size_t size, void *stream);
int cuMemFreeAsync(uint64_t address, void *stream);
// Properties and rights, which HIP has with the same layout and values.
int cuMemGetAllocationGranularity(size_t *bytes, const void *properties, int option);
int cuMemCreate(uint64_t *handle, size_t size, const void *properties, unsigned long long flags);
int cuMemRelease(uint64_t handle);
int cuMemExportToShareableHandle(void *descriptor, uint64_t handle, int type,
                                 unsigned long long flags);
int cuMemImportFromShareableHandle(uint64_t *handle, void *descriptor, int type);
int cuMemAddressReserve(uint64_t *address, size_t size, size_t alignment, uint64_t near,
                        unsigned long long flags);
int cuMemAddressFree(uint64_t address, size_t size);
int cuMemMap(uint64_t address, size_t size, size_t offset, uint64_t handle,
             unsigned long long flags);
int cuMemUnmap(uint64_t address, size_t size);
int cuMemSetAccess(uint64_t address, size_t size, const void *access, size_t count);
int cuMemcpyAsync(uint64_t target, uint64_t source, size_t size, void *stream);
int cuMemcpyPeerAsync(uint64_t target, void *to, uint64_t source, void *from, size_t size,
                      void *stream);
int cuMemsetD8Async(uint64_t target, unsigned char value, size_t count, void *stream);
int cuMemsetD16Async(uint64_t target, unsigned short value, size_t count, void *stream);
int cuMemsetD32Async(uint64_t target, unsigned value, size_t count, void *stream);

int cuModuleLoadData(void **module, const void *image);
int cuModuleUnload(void *module);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuModuleGetGlobal_v2(uint64_t *address, size_t *size, void *module, const char *name);
int cuFuncGetAttribute(int *value, int attribute, void *function);
int cuFuncSetAttribute(void *function, int attribute, int value);
int cuFuncLoad(void *function);
int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                   void *stream, void **parameters, void **extra);

int cuGraphCreate(void **graph, unsigned flags);
int cuGraphDestroy(void *graph);
int cuGraphAddKernelNode_v2(void **node, void *graph, void *const *after, size_t count,
                            const cuda_kernel_t *kernel);
int cuGraphAddMemcpyNode(void **node, void *graph, void *const *after, size_t count,
                         const cuda_copy_t *copy, void *context);
int cuGraphAddMemsetNode(void **node, void *graph, void *const *after, size_t count,
                         const cuda_fill_t *fill, void *context);
int cuGraphAddEmptyNode(void **node, void *graph, void *const *after, size_t count);
int cuGraphAddDependencies(void *graph, void *const *from, void *const *to, size_t count);
int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags);
int cuGraphExecDestroy(void *exec);
int cuGraphLaunch(void *exec, void *stream);
int cuGraphUpload(void *exec, void *stream);
int cuGraphExecKernelNodeSetParams_v2(void *exec, void *node, const cuda_kernel_t *kernel);
int cuGraphExecMemcpyNodeSetParams(void *exec, void *node, const cuda_copy_t *copy, void *context);
int cuGraphExecMemsetNodeSetParams(void *exec, void *node, const cuda_fill_t *fill, void *context);

#endif
