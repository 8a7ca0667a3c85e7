// SPDX-License-Identifier: Apache-2.0
// cooperative_test DIRECTORY: hipLaunchCooperativeKernel, for which HIP wants a kernel that the
// program was linked with: the test registers one as code that hipcc compiled does.
#include <hip/hip_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HIP(call)                                                                                  \
    do {                                                                                           \
        hipError_t error = (call);                                                                 \
        if (error == hipSuccess) break;                                                            \
        printf("line %d: %s: %s\n", __LINE__, #call, hipGetErrorString(error));                    \
        exit(1);                                                                                   \
    } while (0)

// What hipcc's programs call before main.
typedef struct {
    uint32_t magic, version;
    const void *bundle;
    void *unused;
} wrapper_t;
void **__hipRegisterFatBinary(const wrapper_t *wrapper);
// As many parameters as the vendor's interface has.
#define FUNCTION_PARAMETERS                                                                        \
    void **modules, const void *function, char *name, const char *device, unsigned threads,        \
        void *thread, void *block, void *block_size, void *grid, int *wave
void __hipRegisterFunction(FUNCTION_PARAMETERS);

// A bundle of code objects, as clang makes it: a number of parts, then for each of them where it
// is, its size, and its target's name, preceded by the name's length.
static void *bundle_make(const char *path, const char *target)
{
    enum { PLACE = 4096 };
    const char *names[2] = {"host-x86_64-unknown-linux--", NULL};
    char name[128];
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) return NULL;
    uint64_t size = (uint64_t)ftell(file);
    uint8_t *bundle = aligned_alloc(PLACE, (PLACE + size + PLACE - 1) / PLACE * PLACE),
            *at = bundle;
    rewind(file);
    if (!bundle || fread(bundle + PLACE, 1, size, file) != size) return NULL;
    fclose(file);
    snprintf(name, sizeof name, "hipv4-amdgcn-amd-amdhsa--%s", target);
    names[1] = name;
    memcpy(at, "__CLANG_OFFLOAD_BUNDLE__\2\0\0\0\0\0\0\0", 32);
    at += 32;
    for (unsigned k = 0; k < 2; k++) {
        const uint64_t numbers[3] = {PLACE, k ? size : 0, strlen(names[k])};
        memcpy(at, numbers, sizeof numbers);
        memcpy(at + sizeof numbers, names[k], numbers[2]);
        at += sizeof numbers + numbers[2];
    }
    return bundle;
}

// Stands for the kernel on the host.
static void all_meet(void) {}

static hipError_t launch(uint32_t groups, void **arguments)
{
    return hipLaunchCooperativeKernel((const void *)all_meet, (dim3){groups, 1, 1},
                                      (dim3){64, 1, 1}, arguments, 0, NULL);
}

// How much is wrong when so many groups meet.
static unsigned run(uint32_t groups)
{
    uint32_t *memory, *seen, *host = calloc(groups + 1, sizeof *host), wrong = 0;
    HIP(hipMalloc((void **)&memory, (groups + 1) * sizeof *memory));
    HIP(hipMemset(memory, 0, (groups + 1) * sizeof *memory));
    seen = memory + 1;
    void *arguments[] = {&memory, &groups, &seen};
    HIP(launch(groups, arguments));
    HIP(hipMemcpy(host, memory, (groups + 1) * sizeof *host, hipMemcpyDeviceToHost));
    for (uint32_t k = 1; k <= groups; k++) wrong += host[k] != groups;
    wrong += host[0] != 3 * groups;
    HIP(hipFree(memory));
    free(host);
    return wrong;
}

int main(int argc, char **argv)
{
    hipDeviceProp_t properties;
    char path[1024], target[64];
    if (argc != 2) return 2;
    HIP(hipGetDeviceProperties(&properties, 0));
    snprintf(target, sizeof target, "%.*s", (int)strcspn(properties.gcnArchName, ":"),
             properties.gcnArchName);
    snprintf(path, sizeof path, "%s/%s-O2-queue.hsaco", argv[1], target);
    const wrapper_t wrapper = {0x48495046, 1, bundle_make(path, target), NULL};
    if (!wrapper.bundle) return 2;
    void **modules = __hipRegisterFatBinary(&wrapper);
    char name[] = "all_meet";
    __hipRegisterFunction(modules, (const void *)all_meet, name, name, ~0u, NULL, NULL, NULL, NULL,
                          NULL);
    if (!properties.cooperativeLaunch) return 1;
    // As many groups as HIP thinks the GPU holds, and one more.
    int most;
    HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&most, (const void *)all_meet, 64, 0));
    most *= properties.multiProcessorCount;
    unsigned wrong = run(1) + run(7) + run((uint32_t)most);
    wrong += launch((uint32_t)most + 1, NULL) != hipErrorCooperativeLaunchTooLarge;
    printf("%s, up to %d groups: %u wrong\n", target, most, wrong);
    return wrong != 0;
}
