// SPDX-License-Identifier: Apache-2.0
// What the driver uses of Foundation's and Metal's interfaces, as their reference describes it, for
// checking the driver's table of messages where Apple's headers are not: messages.sh. On a Mac the
// real ones take its place.
#ifndef TESTS_MACOS_INTERFACES_H_
#define TESTS_MACOS_INTERFACES_H_

typedef unsigned long NSUInteger;
typedef long NSInteger;
#ifdef __aarch64__
typedef _Bool BOOL;
#else
typedef signed char BOOL;
#endif
typedef struct NSRange {
    NSUInteger location, length;
} NSRange;
typedef struct MTLSize {
    NSUInteger width, height, depth;
} MTLSize;
typedef NSUInteger MTLResourceOptions, MTLCommandBufferStatus, MTLDispatchType, MTLBarrierScope;
typedef NSUInteger MTLResourceUsage, MTLCounterSamplingPoint, MTLStorageMode;
typedef NSUInteger MTLIndirectCommandType;

@class NSString;
@protocol MTLCommandBuffer;
@protocol MTLBuffer;
@protocol MTLDevice;

__attribute__((objc_root_class))
@interface NSObject
+ (instancetype)new;
- (instancetype)retain;
- (oneway void)release;
- (BOOL)respondsToSelector:(SEL)selector;
@end
@interface NSString : NSObject
+ (instancetype)stringWithUTF8String:(const char *)text;
- (const char *)UTF8String;
@end
@interface NSError : NSObject
- (NSInteger)code;
- (NSString *)localizedDescription;
@end
@interface NSArray : NSObject
- (NSUInteger)count;
- (id)objectAtIndex:(NSUInteger)index;
@end
@interface NSData : NSObject
- (const void *)bytes;
@end
@interface MTLCompileOptions : NSObject
- (void)setFastMathEnabled:(BOOL)fast;
@end

typedef void (^MTLCommandBufferHandler)(id<MTLCommandBuffer> buffer);

@protocol MTLFence
@end
@protocol MTLEvent
@end
@protocol MTLSharedEvent;
@interface MTLSharedEventListener : NSObject
@end
typedef void (^MTLSharedEventNotificationBlock)(id<MTLSharedEvent> event, unsigned long long value);
@protocol MTLSharedEvent <MTLEvent>
- (unsigned long long)signaledValue;
- (void)setSignaledValue:(unsigned long long)value;
- (void)notifyListener:(MTLSharedEventListener *)listener
               atValue:(unsigned long long)value
                 block:(MTLSharedEventNotificationBlock)block;
@end
@protocol MTLAllocation
@end
@protocol MTLResource <MTLAllocation>
- (id<MTLDevice>)device;
- (MTLStorageMode)storageMode;
@end
@interface MTLResidencySetDescriptor : NSObject
@end
@protocol MTLResidencySet
- (void)addAllocation:(id<MTLAllocation>)allocation;
- (void)removeAllocation:(id<MTLAllocation>)allocation;
- (void)commit;
@end
@protocol MTLBuffer <MTLResource>
- (NSUInteger)length;
- (void *)contents;
- (unsigned long long)gpuAddress;
- (void)didModifyRange:(NSRange)range __attribute__((availability(ios, unavailable)));
@end
@protocol MTLCounterSet
- (NSString *)name;
@end
@protocol MTLCounterSampleBuffer
- (NSData *)resolveCounterRange:(NSRange)range;
@end
@interface MTLCounterSampleBufferDescriptor : NSObject
- (void)setCounterSet:(id<MTLCounterSet>)set;
- (void)setSampleCount:(NSUInteger)count;
@end
@interface MTLComputePassSampleBufferAttachmentDescriptor : NSObject
- (void)setSampleBuffer:(id<MTLCounterSampleBuffer>)samples;
- (void)setStartOfEncoderSampleIndex:(NSUInteger)index;
- (void)setEndOfEncoderSampleIndex:(NSUInteger)index;
@end
@interface MTLComputePassSampleBufferAttachmentDescriptorArray : NSObject
- (MTLComputePassSampleBufferAttachmentDescriptor *)objectAtIndexedSubscript:(NSUInteger)index;
@end
@interface MTLComputePassDescriptor : NSObject
+ (MTLComputePassDescriptor *)computePassDescriptor;
- (void)setDispatchType:(MTLDispatchType)type;
- (MTLComputePassSampleBufferAttachmentDescriptorArray *)sampleBufferAttachments;
@end
@interface MTLBlitPassDescriptor : NSObject
+ (MTLBlitPassDescriptor *)blitPassDescriptor;
@end
@protocol MTLArgumentEncoder
- (NSUInteger)encodedLength;
- (void)setArgumentBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset;
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index;
@end
@protocol MTLFunction
- (NSUInteger)functionType;
- (id<MTLArgumentEncoder>)newArgumentEncoderWithBufferIndex:(NSUInteger)index;
@end
@protocol MTLLibrary
- (NSArray *)functionNames;
- (id<MTLFunction>)newFunctionWithName:(NSString *)name;
@end
@protocol MTLComputePipelineState
- (NSUInteger)maxTotalThreadsPerThreadgroup;
- (NSUInteger)threadExecutionWidth;
- (NSUInteger)staticThreadgroupMemoryLength;
@end

@protocol MTLCommandEncoder
- (void)endEncoding;
@end
@protocol MTLBlitCommandEncoder <MTLCommandEncoder>
- (void)updateFence:(id<MTLFence>)fence;
- (void)waitForFence:(id<MTLFence>)fence;
- (void)fillBuffer:(id<MTLBuffer>)buffer range:(NSRange)range value:(unsigned char)value;
- (void)copyFromBuffer:(id<MTLBuffer>)source
          sourceOffset:(NSUInteger)from
              toBuffer:(id<MTLBuffer>)target
     destinationOffset:(NSUInteger)to
                  size:(NSUInteger)size;
- (void)synchronizeResource:(id<MTLResource>)resource
    __attribute__((availability(ios, unavailable)));
- (void)resolveCounters:(id<MTLCounterSampleBuffer>)samples
                inRange:(NSRange)range
      destinationBuffer:(id<MTLBuffer>)target
      destinationOffset:(NSUInteger)offset;
@end
@interface MTLComputePipelineDescriptor : NSObject
- (void)setComputeFunction:(id<MTLFunction>)function;
- (void)setSupportIndirectCommandBuffers:(BOOL)indirect;
@end
@interface MTLIndirectCommandBufferDescriptor : NSObject
- (void)setCommandTypes:(MTLIndirectCommandType)types;
- (void)setInheritBuffers:(BOOL)inherits;
- (void)setInheritPipelineState:(BOOL)inherits;
- (void)setMaxKernelBufferBindCount:(NSUInteger)count;
@end
@protocol MTLIndirectComputeCommand
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state;
- (void)setKernelBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index;
- (void)setBarrier;
- (void)concurrentDispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)threads;
@end
@protocol MTLIndirectCommandBuffer <MTLResource>
- (id<MTLIndirectComputeCommand>)indirectComputeCommandAtIndex:(NSUInteger)index;
@end

@protocol MTLComputeCommandEncoder <MTLCommandEncoder>
- (void)updateFence:(id<MTLFence>)fence;
- (void)waitForFence:(id<MTLFence>)fence;
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state;
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index;
- (void)setBytes:(const void *)bytes length:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)useResource:(id<MTLResource>)resource usage:(MTLResourceUsage)usage;
- (void)useResources:(const id<MTLResource> *)resources
               count:(NSUInteger)count
               usage:(MTLResourceUsage)usage;
- (void)executeCommandsInBuffer:(id<MTLIndirectCommandBuffer>)commands withRange:(NSRange)range;
- (void)executeCommandsInBuffer:(id<MTLIndirectCommandBuffer>)commands
                 indirectBuffer:(id<MTLBuffer>)buffer
           indirectBufferOffset:(NSUInteger)offset;
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope;
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)threads;
- (void)dispatchThreadgroupsWithIndirectBuffer:(id<MTLBuffer>)buffer
                          indirectBufferOffset:(NSUInteger)offset
                         threadsPerThreadgroup:(MTLSize)threads;
@end

@protocol MTLCommandBuffer
- (void)commit;
- (void)waitUntilCompleted;
- (void)addCompletedHandler:(MTLCommandBufferHandler)block;
- (MTLCommandBufferStatus)status;
- (NSError *)error;
- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(unsigned long long)value;
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(unsigned long long)value;
- (double)GPUStartTime;
- (double)GPUEndTime;
- (id<MTLBlitCommandEncoder>)blitCommandEncoder;
- (id<MTLBlitCommandEncoder>)blitCommandEncoderWithDescriptor:(MTLBlitPassDescriptor *)pass;
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDescriptor:
    (MTLComputePassDescriptor *)pass;
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type;
@end
@protocol MTLCommandQueue
- (void)addResidencySet:(id<MTLResidencySet>)set;
- (id<MTLCommandBuffer>)commandBufferWithUnretainedReferences;
@end

@protocol MTLCaptureScope
- (void)setLabel:(NSString *)label;
- (void)beginScope;
- (void)endScope;
@end
@interface MTLCaptureManager : NSObject
+ (MTLCaptureManager *)sharedCaptureManager;
- (id<MTLCaptureScope>)newCaptureScopeWithCommandQueue:(id<MTLCommandQueue>)queue;
@end

@protocol MTLDevice
- (NSString *)name;
- (unsigned long long)registryID;
- (BOOL)hasUnifiedMemory;
- (NSUInteger)maxBufferLength;
- (NSUInteger)currentAllocatedSize;
- (unsigned long long)recommendedMaxWorkingSetSize;
- (NSUInteger)maxThreadgroupMemoryLength;
- (MTLSize)maxThreadsPerThreadgroup;
- (BOOL)supportsFamily:(NSInteger)family;
- (NSUInteger)argumentBuffersSupport;
- (id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)most;
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options;
- (id<MTLBuffer>)newBufferWithBytesNoCopy:(void *)memory
                                   length:(NSUInteger)length
                                  options:(MTLResourceOptions)options
                              deallocator:(void (^)(void *memory, NSUInteger length))block;
- (id<MTLFence>)newFence;
- (id<MTLSharedEvent>)newSharedEvent;
- (BOOL)supportsCounterSampling:(MTLCounterSamplingPoint)point;
- (NSArray *)counterSets;
- (id<MTLResidencySet>)newResidencySetWithDescriptor:(MTLResidencySetDescriptor *)descriptor
                                               error:(NSError **)error;
- (id<MTLCounterSampleBuffer>)newCounterSampleBufferWithDescriptor:
                                  (MTLCounterSampleBufferDescriptor *)descriptor
                                                             error:(NSError **)error;
- (void)sampleTimestamps:(unsigned long long *)host gpuTimestamp:(unsigned long long *)gpu;
- (id<MTLLibrary>)newLibraryWithSource:(NSString *)source
                               options:(MTLCompileOptions *)options
                                 error:(NSError **)error;
- (id<MTLLibrary>)newLibraryWithData:(NSObject *)data error:(NSError **)error;
- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)function
                                                             error:(NSError **)error;
- (id<MTLComputePipelineState>)newComputePipelineStateWithDescriptor:
                                   (MTLComputePipelineDescriptor *)descriptor
                                                             options:(NSUInteger)options
                                                          reflection:(id *)reflection
                                                               error:(NSError **)error;
- (id<MTLIndirectCommandBuffer>)newIndirectCommandBufferWithDescriptor:
                                    (MTLIndirectCommandBufferDescriptor *)descriptor
                                                       maxCommandCount:(NSUInteger)most
                                                               options:(MTLResourceOptions)options;
@end

#endif
