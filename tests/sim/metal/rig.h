// SPDX-License-Identifier: Apache-2.0
// What the tests of the software Metal are written with. Each test runs in a process of its own,
// under settings of its own, with a pool and the first device.
#ifndef TESTS_SIM_METAL_RIG_H_
#define TESTS_SIM_METAL_RIG_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void *id;

typedef struct extent_t {
    size_t width, height, depth;
} extent_t;
typedef struct range_t {
    size_t location, length;
} range_t;

// A block of a program in C, that carries one pointer.
typedef struct block_t {
    void *isa;
    int flags, reserved;
    void (*invoke)(void);
    const void *shape;
    void *user;
} block_t;

// X(result, name, selector, parameters, arguments)
#define MESSAGES(X)                                                                                \
    X(id, retain, retain, (), ())                                                                  \
    X(void, release, release, (), ())                                                              \
    X(id, autorelease, autorelease, (), ())                                                        \
    X(id, new, new, (), ())                                                                        \
    X(void, set_fast, setFastMathEnabled:, (, bool fast), (, fast))                                \
    X(id, alloc, alloc, (), ())                                                                    \
    X(bool, responds, respondsToSelector:, (, id selector), (, selector))                          \
    X(id, string, stringWithUTF8String:, (, const char *text), (, text))                           \
    X(const char *, utf8, UTF8String, (), ())                                                      \
    X(long, code, code, (), ())                                                                    \
    X(id, text, localizedDescription, (), ())                                                      \
    X(size_t, count, count, (), ())                                                                \
    X(id, at, objectAtIndex:, (, size_t index), (, index))                                         \
    X(id, name, name, (), ())                                                                      \
    X(id, new_queue, newCommandQueueWithMaxCommandBufferCount:, (, size_t most), (, most))         \
    X(id, new_buffer, newBufferWithLength:options:, (, size_t length, size_t options),             \
      (, length, options))                                                                         \
    X(id, new_wrap, newBufferWithBytesNoCopy:length:options:deallocator:,                          \
      (, void *memory, size_t length, size_t options, block_t *block),                             \
      (, memory, length, options, block))                                                          \
    X(id, new_event, newSharedEvent, (), ())                                                       \
    X(void *, contents, contents, (), ())                                                          \
    X(uint64_t, address, gpuAddress, (), ())                                                       \
    X(void, did_modify, didModifyRange:, (, range_t range), (, range))                             \
    X(uint64_t, value, signaledValue, (), ())                                                      \
    X(void, set_value, setSignaledValue:, (, uint64_t value), (, value))                           \
    X(bool, wait_value, waitUntilSignaledValue:timeoutMS:, (, uint64_t value, uint64_t ms),        \
      (, value, ms))                                                                               \
    X(void, notify, notifyListener:atValue:block:,                                                 \
      (, id listener, uint64_t value, block_t *block), (, listener, value, block))                 \
    X(id, init_queue, initWithDispatchQueue:, (, id queue), (, queue))                             \
    X(id, command, commandBuffer, (), ())                                                          \
    X(id, command_unretained, commandBufferWithUnretainedReferences, (), ())                       \
    X(void, enqueue, enqueue, (), ())                                                              \
    X(void, commit, commit, (), ())                                                                \
    X(void, wait, waitUntilCompleted, (), ())                                                      \
    X(size_t, status, status, (), ())                                                              \
    X(id, error, error, (), ())                                                                    \
    X(double, start_time, GPUStartTime, (), ())                                                    \
    X(double, end_time, GPUEndTime, (), ())                                                        \
    X(void, on_completed, addCompletedHandler:, (, block_t * block), (, block))                    \
    X(void, wait_event, encodeWaitForEvent:value:, (, id event, uint64_t value), (, event, value)) \
    X(void, signal_event, encodeSignalEvent:value:, (, id event, uint64_t value),                  \
      (, event, value))                                                                            \
    X(id, blit, blitCommandEncoder, (), ())                                                        \
    X(void, end, endEncoding, (), ())                                                              \
    X(void, fill, fillBuffer:range:value:, (, id buffer, range_t range, uint8_t value),            \
      (, buffer, range, value))                                                                    \
    X(void, copy, copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:,                    \
      (, id from, size_t from_offset, id to, size_t to_offset, size_t size),                       \
      (, from, from_offset, to, to_offset, size))                                                  \
    X(void, synchronize, synchronizeResource:, (, id buffer), (, buffer))                          \
    X(id, new_library, newLibraryWithSource:options:error:, (, id source, id options, id * error), \
      (, source, options, error))                                                                  \
    X(void, use, useResource:usage:, (, id resource, size_t usage), (, resource, usage))           \
    X(id, new_function, newFunctionWithName:, (, id name), (, name))                               \
    X(id, new_pipeline, newComputePipelineStateWithFunction:error:, (, id function, id * error),   \
      (, function, error))                                                                         \
    X(void, set_function, setComputeFunction:, (, id function), (, function))                      \
    X(void, set_indirect, setSupportIndirectCommandBuffers:, (, bool indirect), (, indirect))      \
    X(id, new_pipeline_of, newComputePipelineStateWithDescriptor:options:reflection:error:,        \
      (, id descriptor, size_t options, void *reflection, id *error),                              \
      (, descriptor, options, reflection, error))                                                  \
    X(id, new_indirect, newIndirectCommandBufferWithDescriptor:maxCommandCount:options:,           \
      (, id descriptor, size_t most, size_t options), (, descriptor, most, options))               \
    X(void, set_types, setCommandTypes:, (, size_t types), (, types))                              \
    X(void, set_bound, setMaxKernelBufferBindCount:, (, size_t most), (, most))                    \
    X(void, inherit_buffers, setInheritBuffers:, (, bool inherits), (, inherits))                  \
    X(void, inherit_pipeline, setInheritPipelineState:, (, bool inherits), (, inherits))           \
    X(id, command_at, indirectComputeCommandAtIndex:, (, size_t index), (, index))                 \
    X(void, reset_range, resetWithRange:, (, range_t range), (, range))                            \
    X(void, reset, reset, (), ())                                                                  \
    X(void, set_kernel_buffer, setKernelBuffer:offset:atIndex:,                                    \
      (, id buffer, size_t offset, size_t index), (, buffer, offset, index))                       \
    X(void, set_barrier, setBarrier, (), ())                                                       \
    X(void, dispatch_concurrently, concurrentDispatchThreadgroups:threadsPerThreadgroup:,          \
      (, extent_t groups, extent_t threads), (, groups, threads))                                  \
    X(void, execute, executeCommandsInBuffer:withRange:, (, id commands, range_t range),           \
      (, commands, range))                                                                         \
    X(void, execute_counted, executeCommandsInBuffer:indirectBuffer:indirectBufferOffset:,         \
      (, id commands, id range, size_t offset), (, commands, range, offset))                       \
    X(id, new_set, newResidencySetWithDescriptor:error:, (, id descriptor, id * error),            \
      (, descriptor, error))                                                                       \
    X(void, add_allocation, addAllocation:, (, id allocation), (, allocation))                     \
    X(void, remove_allocation, removeAllocation:, (, id allocation), (, allocation))               \
    X(void, add_set, addResidencySet:, (, id set), (, set))                                        \
    X(bool, supports_family, supportsFamily:, (, long family), (, family))                         \
    X(bool, supports_sampling, supportsCounterSampling:, (, size_t point), (, point))              \
    X(id, counter_sets, counterSets, (), ())                                                       \
    X(void, set_counter_set, setCounterSet:, (, id set), (, set))                                  \
    X(void, set_sample_count, setSampleCount:, (, size_t count), (, count))                        \
    X(id, new_samples, newCounterSampleBufferWithDescriptor:error:, (, id descriptor, id * error), \
      (, descriptor, error))                                                                       \
    X(id, blit_pass, blitPassDescriptor, (), ())                                                   \
    X(id, attachments, sampleBufferAttachments, (), ())                                            \
    X(id, attachment, objectAtIndexedSubscript:, (, size_t index), (, index))                      \
    X(void, set_samples, setSampleBuffer:, (, id samples), (, samples))                            \
    X(void, set_first_sample, setStartOfEncoderSampleIndex:, (, size_t index), (, index))          \
    X(void, set_last_sample, setEndOfEncoderSampleIndex:, (, size_t index), (, index))             \
    X(id, blit_of, blitCommandEncoderWithDescriptor:, (, id pass), (, pass))                       \
    X(void, resolve, resolveCounters:inRange:destinationBuffer:destinationOffset:,                 \
      (, id samples, range_t range, id target, size_t offset), (, samples, range, target, offset)) \
    X(size_t, width, threadExecutionWidth, (), ())                                                 \
    X(id, compute, computeCommandEncoder, (), ())                                                  \
    X(id, new_fence, newFence, (), ())                                                             \
    X(void, update_fence, updateFence:, (, id fence), (, fence))                                   \
    X(void, wait_fence, waitForFence:, (, id fence), (, fence))                                    \
    X(void, set_pipeline, setComputePipelineState:, (, id pipeline), (, pipeline))                 \
    X(void, set_buffer, setBuffer:offset:atIndex:, (, id buffer, size_t offset, size_t index),     \
      (, buffer, offset, index))                                                                   \
    X(void, set_offset, setBufferOffset:atIndex:, (, size_t offset, size_t index),                 \
      (, offset, index))                                                                           \
    X(void, set_bytes, setBytes:length:atIndex:,                                                   \
      (, const void *bytes, size_t length, size_t index), (, bytes, length, index))                \
    X(void, set_group, setThreadgroupMemoryLength:atIndex:, (, size_t length, size_t index),       \
      (, length, index))                                                                           \
    X(bool, unified, hasUnifiedMemory, (), ())                                                     \
    X(size_t, allocated, currentAllocatedSize, (), ())                                             \
    X(id, compute_type, computeCommandEncoderWithDispatchType:, (, size_t type), (, type))         \
    X(void, barrier, memoryBarrierWithScope:, (, size_t scope), (, scope))                         \
    X(void, dispatch_indirect,                                                                     \
      dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup:,          \
      (, id counts, size_t offset, extent_t threads), (, counts, offset, threads))                 \
    X(void, dispatch, dispatchThreadgroups:threadsPerThreadgroup:,                                 \
      (, extent_t groups, extent_t threads), (, groups, threads))

// What the library exports, opened by name.
typedef struct metal_t {
    void (*objc_msgSend)(void);
    void (*objc_msgSend_stret)(void); // NULL where there is none
    id (*sel_registerName)(const char *name);
    id (*objc_getClass)(const char *name);
    void *(*objc_autoreleasePoolPush)(void);
    void (*objc_autoreleasePoolPop)(void *pool);
    id (*MTLCreateSystemDefaultDevice)(void);
    id (*MTLCopyAllDevices)(void);
    id (*dispatch_queue_create)(const char *label, void *attributes);
    void (*dispatch_release)(id queue);
    uint64_t (*simMetalMessages)(void);
    unsigned (*simMetalObjects)(const char *name);
    void *stack_block, *global_block;
} metal_t;
extern metal_t metal;

#define UNWRAP(...) __VA_ARGS__
#define X(result, name, selector, parameters, arguments)                                           \
    static inline result m_##name(id self UNWRAP parameters)                                       \
    {                                                                                              \
        return ((result(*)(id, id UNWRAP parameters))metal.objc_msgSend)(                          \
            self, metal.sel_registerName(#selector) UNWRAP arguments);                             \
    }
MESSAGES(X)
#undef X

// maxThreadsPerThreadgroup, sent as the architecture wants it, or as it must not be.
extent_t rig_max_threads(id device, bool right);

// A block on the stack with helpers; it lives as long as the caller's scope.
enum { SIGNATURE = 1 << 30, HELPERS = 1 << 25 };
block_t rig_block(void (*invoke)(void), void *user, const char *signature);
#define FOR_COMMAND "v16@?0@8"
#define FOR_EVENT   "v24@?0@8Q16"
// How many copies of blocks are alive.
int rig_blocks(void);

typedef void (*rig_test_fn)(id device);
// Runs a test with KEEL_SIM_METAL set so. It must end, and all objects must be released.
void rig_run(const char *name, const char *settings, rig_test_fn test);
// Runs a test in which the library must end the process, with these words in its last line.
void rig_run_dying(const char *name, const char *settings, rig_test_fn test, const char *words);
// Opens the library, runs all tests; the exit status for main.
int rig_main(int argc, char **argv, void (*all)(void));

#define RUN(settings, test)              rig_run(#test, (settings), (test))
#define DIES(words, test)                rig_run_dying(#test, "", (test), (words))
#define DIES_WITH(settings, words, test) rig_run_dying(#test, (settings), (test), (words))

void rig_check(bool good, const char *what, const char *file, int line);
#define CHECK(condition) rig_check((condition), #condition, __FILE__, __LINE__)
// Whether the library has written a line with this in it to standard error.
bool rig_said(const char *text);
// How many objects the cache of compiled MSL holds; all tests of a program share it.
unsigned rig_cached(void);

// A count that another thread raises, and this one waits for.
typedef struct rig_count_t rig_count_t;
rig_count_t *rig_count_new(void);
void rig_count_raise(rig_count_t *count);
void rig_count_wait(rig_count_t *count, unsigned value);
void rig_count_free(rig_count_t *count);

#endif
