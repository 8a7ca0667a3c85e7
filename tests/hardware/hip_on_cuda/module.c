// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "hip.h"

// The kernels that Keel brings along, for NVIDIA's GPUs.
__asm__(".section .rodata\n"
        "keel_kernels:\n"
        ".incbin \"" KEEL_KERNELS "\"\n"
        ".byte 0\n"
        ".text\n");
extern const char keel_kernels[];

// HIP finds the code for its device in a bundle. The only bundle that Keel gives it is that of its
// own kernels, which has none for NVIDIA's: these are in here.
HIP(hipModuleLoadData, void **module, const void *image)
{
    static const char bundle[] = "__CLANG_OFFLOAD_BUNDLE__";
    if (!strncmp(image, bundle, sizeof bundle - 1)) image = keel_kernels;
    FORWARD(cuModuleLoadData(module, image));
}

HIP(hipModuleUnload, void *module)
{
    FORWARD(cuModuleUnload(module));
}

// HIP lets a launch have all the dynamic memory that a group can have, and has the code on the
// device by now. CUDA is to be asked for both.
static int function_prepare(void *function)
{
    int device = 0, all = 0, fixed = 0;
    int error = cuFuncLoad(function);
    if (!error) error = cuCtxGetDevice(&device);
    if (!error)
        error = cuDeviceGetAttribute(&all, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                                     device);
    if (!error) error = cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    if (error || fixed >= all) return error;
    return cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                              all - fixed);
}

HIP(hipModuleGetFunction, void **function, void *module, const char *name)
{
    int error = here();
    if (!error) error = cuModuleGetFunction(function, module, name);
    if (!error) error = function_prepare(*function);
    return done(error);
}

HIP(hipModuleGetGlobal, void **address, size_t *size, void *module, const char *name)
{
    FORWARD(cuModuleGetGlobal_v2((uint64_t *)address, size, module, name));
}

// The numbers of attributes are CUDA's.
HIP(hipFuncGetAttribute, int *value, int attribute, void *function)
{
    FORWARD(cuFuncGetAttribute(value, attribute, function));
}

// HIP ends its list with another mark.
void **extra_make(extra_t *extra, void **hip)
{
    enum { POINTER = 1, SIZE = 2, END = 3 };
    const void *block = NULL;
    if (!hip) return NULL;
    extra->size = 0;
    for (; *hip != (void *)END; hip += 2) {
        if (*hip == (void *)POINTER) block = hip[1];
        if (*hip == (void *)SIZE) extra->size = *(size_t *)hip[1];
    }
    void *list[] = {(void *)POINTER, (void *)(uintptr_t)block, (void *)SIZE, &extra->size, NULL};
    memcpy(extra->list, list, sizeof list);
    return extra->list;
}

HIP(hipModuleLaunchKernel, void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, void *stream,
    void **parameters, void **extra)
{
    extra_t block;
    FORWARD_PLAINLY(cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                   shared, stream, parameters, extra_make(&block, extra)));
}
