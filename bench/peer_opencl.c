// SPDX-License-Identifier: Apache-2.0
// The same through OpenCL on the processor (PoCL), found at run time: nothing is linked, and the
// few declarations needed are written here.
#include "rig.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef void *cl_object_t; // platform, device, context, queue, program, kernel, event

enum { CL_PLATFORM_NAME_ = 0x0902, CL_DEVICE_TYPE_CPU_ = 1 << 1 };

#define OPENCL_FUNCTIONS(X)                                                                        \
    X(clGetPlatformIDs, (uint32_t, cl_object_t *, uint32_t *))                                     \
    X(clGetPlatformInfo, (cl_object_t, uint32_t, size_t, void *, size_t *))                        \
    X(clGetDeviceIDs, (cl_object_t, uint64_t, uint32_t, cl_object_t *, uint32_t *))                \
    X(clBuildProgram, (cl_object_t, uint32_t, const cl_object_t *, const char *, void *, void *))  \
    X(clEnqueueNDRangeKernel, (cl_object_t, cl_object_t, uint32_t, const size_t *, const size_t *, \
                               const size_t *, uint32_t, const cl_object_t *, cl_object_t *))      \
    X(clFlush, (cl_object_t))                                                                      \
    X(clFinish, (cl_object_t))                                                                     \
    X(clReleaseKernel, (cl_object_t))                                                              \
    X(clReleaseProgram, (cl_object_t))                                                             \
    X(clReleaseCommandQueue, (cl_object_t))                                                        \
    X(clReleaseContext, (cl_object_t))

#define OPENCL_MAKERS(X)                                                                           \
    X(clCreateContext,                                                                             \
      (const intptr_t *, uint32_t, const cl_object_t *, void *, void *, int32_t *))                \
    X(clCreateCommandQueue, (cl_object_t, cl_object_t, uint64_t, int32_t *))                       \
    X(clCreateProgramWithSource,                                                                   \
      (cl_object_t, uint32_t, const char **, const size_t *, int32_t *))                           \
    X(clCreateKernel, (cl_object_t, const char *, int32_t *))

static struct {
#define FUNCTION(name, parameters) int32_t(*name) parameters;
#define MAKER(name, parameters)    cl_object_t(*name) parameters;
    OPENCL_FUNCTIONS(FUNCTION)
    OPENCL_MAKERS(MAKER)
} cl;

static keel_status_t symbols_load(void)
{
    static bool loaded;
    if (loaded) return NULL;
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return KEEL_ERROR(KEEL_UNSUPPORTED, "no OpenCL");
#define LOAD(name, parameters)                                                                     \
    *(void **)&cl.name = dlsym(library, #name);                                                    \
    if (!cl.name) return KEEL_ERROR(KEEL_UNSUPPORTED, "libOpenCL has no " #name);
    OPENCL_FUNCTIONS(LOAD)
    OPENCL_MAKERS(LOAD)
    loaded = true;
    return NULL;
}

typedef struct opencl_t {
    job_t job;
    cl_object_t device, context, queue, program, kernel;
} opencl_t;

static keel_status_t device_find(cl_object_t *device)
{
    cl_object_t platforms[8];
    uint32_t count = 0;
    if (cl.clGetPlatformIDs(8, platforms, &count)) count = 0;
    for (uint32_t i = 0; i < count && i < 8; i++) {
        char name[128] = "";
        cl.clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME_, sizeof name, name, NULL);
        if (strncmp(name, "Portable Computing Language", 27)) continue;
        if (!cl.clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU_, 1, device, NULL)) return NULL;
    }
    return KEEL_ERROR(KEEL_UNSUPPORTED, "no OpenCL for the processor (PoCL)");
}

static void opencl_end(void *state)
{
    opencl_t *self = state;
    if (self->kernel) cl.clReleaseKernel(self->kernel);
    if (self->program) cl.clReleaseProgram(self->program);
    if (self->queue) cl.clReleaseCommandQueue(self->queue);
    if (self->context) cl.clReleaseContext(self->context);
    free(self);
}

static keel_status_t kernel_make(opencl_t *self)
{
    const char *source = "__kernel void empty_kernel(void) {}";
    int32_t error = 0;
    self->context = cl.clCreateContext(NULL, 1, &self->device, NULL, NULL, &error);
    if (!error) self->queue = cl.clCreateCommandQueue(self->context, self->device, 0, &error);
    if (!error)
        self->program = cl.clCreateProgramWithSource(self->context, 1, &source, NULL, &error);
    if (!error) error = cl.clBuildProgram(self->program, 1, &self->device, "", NULL, NULL);
    if (!error) self->kernel = cl.clCreateKernel(self->program, "empty_kernel", &error);
    return error ? KEEL_ERROR(KEEL_UNSUPPORTED, "OpenCL fails with %d", error) : NULL;
}

static keel_status_t opencl_begin(const setting_t *setting, void **state)
{
    if (setting->threads) return KEEL_ERROR(KEEL_UNSUPPORTED, "uses all processors or none");
    KEEL_TRY(symbols_load());
    opencl_t *self = calloc(1, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    self->job = setting->job;
    KEEL_TRY(device_find(&self->device));
    return kernel_make(self);
}

// `repeat` kernels on a queue that runs them in order, each handed to the device at once if
// `flush`.
static keel_status_t opencl_run(opencl_t *self, tally_t *tally, bool flush)
{
    size_t global = self->job.groups, local = 1;
    for (uint32_t s = 0; s < self->job.samples; s++) {
        int32_t error = 0;
        uint64_t start = keel_now_ns();
        for (uint32_t i = 0; i < self->job.repeat && !error; i++) {
            error = cl.clEnqueueNDRangeKernel(self->queue, self->kernel, 1, NULL, &global, &local,
                                              0, NULL, NULL);
            if (flush && !error) error = cl.clFlush(self->queue);
        }
        if (!error) error = cl.clFinish(self->queue);
        if (error) return KEEL_ERROR(KEEL_ABORTED, "OpenCL fails with %d", error);
        tally_add(tally, (double)(keel_now_ns() - start) / self->job.repeat);
    }
    return NULL;
}

static keel_status_t replay_round(void *state, tally_t *tally)
{
    return opencl_run(state, tally, false);
}

static keel_status_t chain_round(void *state, tally_t *tally)
{
    return opencl_run(state, tally, true);
}

const side_t opencl_replay = {"PoCL", opencl_begin, replay_round, opencl_end};
const side_t opencl_chain = {"PoCL", opencl_begin, chain_round, opencl_end};
