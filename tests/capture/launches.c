// SPDX-License-Identifier: Apache-2.0
// launches DRIVER KERNELS HOW: a program that is not linked with CUDA, but opens the driver when it
// runs, and launches kernels as often as check_cuda.py says. HOW it finds functions: dlsym, asked
// (cuGetProcAddress) or asked-v2. It prints what calls return.
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/api.h"

enum { MODULES = 40 };

#define FUNCTIONS(USED)                                                                            \
    USED(cuInit)                                                                                   \
    USED(cuDevicePrimaryCtxRetain)                                                                 \
    USED(cuCtxSetCurrent)                                                                          \
    USED(cuCtxSynchronize)                                                                         \
    USED(cuModuleLoad)                                                                             \
    USED(cuModuleUnload)                                                                           \
    USED(cuModuleGetFunction)                                                                      \
    USED(cuLaunchKernel)                                                                           \
    USED(cuLaunchKernelEx)                                                                         \
    USED(cuLaunchCooperativeKernel)

#define MEMBER(name) __typeof__(name) *name;
static struct {
    FUNCTIONS(MEMBER)
} cu;
static CUcontext context;
static const char *kernels;

static void *function_find(void *driver, const char *how, const char *name)
{
    void *found = NULL;
    CUdriverProcAddressQueryResult status;
    if (strcmp(how, "dlsym") == 0) return dlsym(driver, name);
    if (strcmp(how, "asked") == 0) {
        __typeof__(cuGetProcAddress) *ask =
            (__typeof__(cuGetProcAddress) *)(uintptr_t)dlsym(driver, "cuGetProcAddress");
        return ask && ask(name, &found, 12030, 0) == CUDA_SUCCESS ? found : NULL;
    }
    __typeof__(cuGetProcAddress_v2) *ask =
        (__typeof__(cuGetProcAddress_v2) *)(uintptr_t)dlsym(driver, "cuGetProcAddress_v2");
    return ask && ask(name, &found, 12030, 1, &status) == CUDA_SUCCESS ? found : NULL;
}

static bool functions_find(void *driver, const char *how)
{
#define FIND(name)                                                                                 \
    cu.name = (__typeof__(name) *)(uintptr_t)function_find(driver, how, #name);                    \
    if (!cu.name) return false;
    FUNCTIONS(FIND)
    return true;
}

static CUmodule module_load(void)
{
    CUmodule module = NULL;
    printf("module %d\n", (int)cu.cuModuleLoad(&module, kernels));
    return module;
}

static CUfunction kernel_find(CUmodule module, const char *name)
{
    CUfunction kernel = NULL;
    printf("%s %d\n", name, (int)cu.cuModuleGetFunction(&kernel, module, name));
    return kernel;
}

static void launch(CUfunction kernel, int times, unsigned groups)
{
    for (int i = 0; i < times; i++)
        printf("%d ", (int)cu.cuLaunchKernel(kernel, groups, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    printf("\n");
}

static void launch_extended(CUfunction kernel, int times)
{
    CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, NULL, NULL, 0};
    for (int i = 0; i < times; i++)
        printf("%d ", (int)cu.cuLaunchKernelEx(&config, kernel, NULL, NULL));
    printf("\n");
}

static void *thread_run(void *kernel)
{
    printf("thread %d\n", (int)cu.cuCtxSetCurrent(context));
    launch(kernel, 3, 1);
    return NULL;
}

static void launch_by_thread(CUfunction kernel)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_run, kernel) == 0) pthread_join(thread, NULL);
}

// Calls that fail, which launch nothing.
static void launch_badly(CUfunction kernel)
{
    launch(kernel, 2, 0);
    launch(NULL, 1, 1);
    printf("%d\n", (int)cu.cuLaunchCooperativeKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL));
}

// Kernels that come after others, maybe at the addresses of these; and many at once.
static void modules_change(void)
{
    static CUmodule modules[MODULES];
    CUmodule module = module_load();
    launch(kernel_find(module, "empty"), 4, 1);
    printf("%d\n", (int)cu.cuCtxSynchronize());
    printf("%d\n", (int)cu.cuModuleUnload(module));
    module = module_load();
    launch(kernel_find(module, "small"), 2, 1);
    for (int i = 0; i < MODULES; i++) {
        modules[i] = module_load();
        launch(kernel_find(modules[i], "small"), 1, 1);
    }
    for (int i = 0; i < MODULES; i++) launch(kernel_find(modules[i], "small"), 1, 1);
}

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    kernels = argv[2];
    printf("%s\n", dlsym(RTLD_DEFAULT, "cuLaunchKernel") ? "there" : "not there");
    void *driver = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!driver || !functions_find(driver, argv[3])) return 1;
    printf("%s\n", dlsym(driver, "cuLaunchNothing") ? "there" : "not there");
    printf("%d\n", (int)cu.cuInit(0));
    printf("%d\n", (int)cu.cuDevicePrimaryCtxRetain(&context, 0));
    printf("%d\n", (int)cu.cuCtxSetCurrent(context));
    CUfunction empty = kernel_find(module_load(), "empty");
    launch(empty, 7, 1);
    launch_extended(empty, 5);
    launch_by_thread(empty);
    launch_badly(empty);
    modules_change();
    printf("%d\n", (int)cu.cuCtxSynchronize());
    return 7;
}
