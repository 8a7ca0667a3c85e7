// SPDX-License-Identifier: Apache-2.0
#include "metal/device.h"

#include "metal/buffer.h"
#include "metal/counter.h"
#include "metal/dispatch.h"
#include "metal/event.h"
#include "metal/foundation.h"
#include "metal/indirect.h"
#include "metal/library.h"
#include "metal/queue.h"
#include "metal/residency.h"
#include "metal/resident.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { DEVICES = 8, OUTSTANDING = 64 };
static const unsigned long max_buffer = 4ul << 30;

static device_t *devices[DEVICES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

// We keep one reference to each, which is no object of the program's.
static void make_devices(void)
{
    runtime_start();
    for (unsigned i = 0; i < settings()->devices; i++) {
        devices[i] = object_new(&MTLDevice);
        devices[i]->index = i;
        pthread_mutex_init(&devices[i]->lock, NULL);
    }
    atomic_fetch_sub(&MTLDevice.live, settings()->devices);
}

void device_queue_begins(device_t *device)
{
    pthread_mutex_lock(&device->lock);
    if (device->queues++ == 0) device->handlers = worker_start();
    pthread_mutex_unlock(&device->lock);
}

void device_queue_ends(device_t *device)
{
    pthread_mutex_lock(&device->lock);
    if (--device->queues == 0) {
        worker_close(device->handlers);
        device->handlers = NULL;
    }
    pthread_mutex_unlock(&device->lock);
}

void *MTLCreateSystemDefaultDevice(void)
{
    pthread_once(&once, make_devices);
    return settings()->devices ? object_retain(devices[0]) : NULL;
}

void *devices_all(void)
{
    pthread_once(&once, make_devices);
    return array_new((void *const *)devices, settings()->devices);
}

static void *device_name(device_t *self, sel_t cmd)
{
    char name[32];
    snprintf(name, sizeof name, "Software Metal %u", self->index);
    if (settings()->virtual_gpu) snprintf(name, sizeof name, "Apple Paravirtual device");
    return object_autorelease(string_new(name));
}

static uint64_t device_registry(device_t *self, sel_t cmd)
{
    return 0x6d65746c00u + self->index;
}

static bool device_unified(device_t *self, sel_t cmd)
{
    return !settings()->discrete;
}

static unsigned long device_allocated(device_t *self, sel_t cmd)
{
    return buffers_size();
}

static unsigned long device_max_buffer(device_t *self, sel_t cmd)
{
    return max_buffer;
}

static extent_t device_max_threads(device_t *self, sel_t cmd)
{
    return (extent_t){1024, 1024, 1024};
}

// MTLGPUFamily: Apple's from 1001 on, Mac 2, Metal 3.
static bool device_family(device_t *self, sel_t cmd, long family)
{
    unsigned long newest = settings()->family;
    if (family == 2002 && on_ios) return false;
    if (family == 2002 || family == 5001) return newest >= 7;
    return !settings()->discrete && family > 1000 && (unsigned long)family <= 1000 + newest;
}

static unsigned long device_tier(device_t *self, sel_t cmd)
{
    return settings()->tier - 1;
}

static void *device_queue_most(device_t *self, sel_t cmd, unsigned long most)
{
    if (most == 0) misuse(self, cmd, "a queue of no command buffers");
    return queue_new(self, most > 64000 ? 64000 : (unsigned)most);
}

static void *device_queue(device_t *self, sel_t cmd)
{
    return queue_new(self, OUTSTANDING);
}

static void *device_buffer(device_t *self, sel_t cmd, unsigned long length, unsigned long options)
{
    if (length > max_buffer) return NULL;
    return buffer_new(self, cmd, length, options);
}

static void *device_buffer_bytes(device_t *self, sel_t cmd, const void *bytes, unsigned long length,
                                 unsigned long options)
{
    if (!bytes) misuse(self, cmd, "NULL where bytes must be");
    if (length > max_buffer) return NULL;
    buffer_t *buffer = buffer_new(self, cmd, length, options);
    if (!buffer) return NULL;
    object_t *const shown[] = {&buffer->object};
    resident_open(shown, 1);
    memcpy(buffer->gpu, bytes, length);
    resident_close(shown, 1);
    if (buffer->storage == STORAGE_MANAGED) memcpy(buffer->host, bytes, length);
    buffer_settled(buffer, (range_t){0, length});
    return buffer;
}

static void *device_buffer_wrap(device_t *self, sel_t cmd, void *memory, unsigned long length,
                                unsigned long options, const block_t *deallocator)
{
    range_t range = {(unsigned long)memory, length};
    buffer_t *buffer = buffer_wrap(self, cmd, range, options);
    if (buffer && deallocator) buffer->free_host = block_copy(self, cmd, deallocator, BLOCK_MEMORY);
    return buffer;
}

static void *device_event(device_t *self, sel_t cmd)
{
    return event_new(&MTLEvent);
}

static void *device_shared_event(device_t *self, sel_t cmd)
{
    return event_new(&MTLSharedEvent);
}

static void *device_fence(device_t *self, sel_t cmd)
{
    return object_new(&MTLFence);
}

static uint64_t device_working_set(device_t *self, sel_t cmd)
{
    return 8ull << 30;
}

static unsigned long device_group_memory(device_t *self, sel_t cmd)
{
    return GROUP_MEMORY;
}

static void *device_library(device_t *self, sel_t cmd, string_t *source, options_t *options,
                            void **error)
{
    object_check(self, cmd, source, &NSString);
    if (options) object_check(self, cmd, options, &MTLCompileOptions);
    return library_compile(source->text, !options || options->fast, error);
}

// Apple's compiler makes these. Ours is the text itself, behind the mark.
static void *device_library_of_data(device_t *self, sel_t cmd, data_t *data, void **error)
{
    static const char mark[] = "MTLB";
    object_check(self, cmd, data, &OS_dispatch_data);
    if (strncmp(data->bytes, mark, sizeof mark - 1) == 0)
        return library_compile(data->bytes + sizeof mark - 1, false, error);
    if (error)
        *error = object_autorelease(
            error_new("MTLLibraryErrorDomain", 1, "The data is not formatted as a MetalLib file"));
    return NULL;
}

static void *device_pipeline(device_t *self, sel_t cmd, function_t *function, void **error)
{
    object_check(self, cmd, function, &MTLFunction);
    return pipeline_new(function, error);
}

static void *device_pipeline_of(device_t *self, sel_t cmd, pipeline_descriptor_t *descriptor,
                                unsigned long options, void *reflection, void **error)
{
    object_check(self, cmd, descriptor, &MTLComputePipelineDescriptor);
    if (options || reflection) misuse(self, cmd, "no reflection is known here");
    if (!descriptor->function) misuse(self, cmd, "the descriptor has no function");
    pipeline_t *pipeline = pipeline_new(descriptor->function, error);
    if (pipeline) pipeline->indirect = descriptor->indirect;
    return pipeline;
}

static method_t device_methods[] = {
    METHOD("name", device_name),
    METHOD("registryID", device_registry),
    METHOD("hasUnifiedMemory", device_unified),
    METHOD("maxBufferLength", device_max_buffer),
    METHOD("currentAllocatedSize", device_allocated),
    METHOD("recommendedMaxWorkingSetSize", device_working_set),
    METHOD("maxThreadgroupMemoryLength", device_group_memory),
    METHOD("maxThreadsPerThreadgroup", device_max_threads),
    METHOD("supportsFamily:", device_family),
    METHOD("argumentBuffersSupport", device_tier),
    METHOD_MAY_FAIL("newCommandQueue", device_queue),
    METHOD_MAY_FAIL("newCommandQueueWithMaxCommandBufferCount:", device_queue_most),
    METHOD_MAY_FAIL("newBufferWithLength:options:", device_buffer),
    METHOD_MAY_FAIL("newBufferWithBytes:length:options:", device_buffer_bytes),
    METHOD_MAY_FAIL("newBufferWithBytesNoCopy:length:options:deallocator:", device_buffer_wrap),
    METHOD_MAY_FAIL("newLibraryWithSource:options:error:", device_library),
    METHOD_MAY_FAIL("newLibraryWithData:error:", device_library_of_data),
    METHOD_MAY_FAIL("newComputePipelineStateWithFunction:error:", device_pipeline),
    METHOD_MAY_FAIL("newComputePipelineStateWithDescriptor:options:reflection:error:",
                    device_pipeline_of),
    METHOD_MAY_FAIL("newIndirectCommandBufferWithDescriptor:maxCommandCount:options:",
                    device_indirect),
    METHOD_MAY_FAIL("newFence", device_fence),
    METHOD_MAY_FAIL("newEvent", device_event),
    METHOD_MAY_FAIL("newSharedEvent", device_shared_event),
    METHOD_MAY_FAIL("newResidencySetWithDescriptor:error:", device_residency),
    METHOD("supportsCounterSampling:", device_supports_sampling),
    METHOD("counterSets", device_counter_sets),
    METHOD_MAY_FAIL("newCounterSampleBufferWithDescriptor:error:", device_samples),
    METHOD("sampleTimestamps:gpuTimestamp:", device_timestamps),
    METHODS_END};
class_t MTLDevice = {.name = "MTLDevice", .size = sizeof(device_t), .methods = device_methods};
