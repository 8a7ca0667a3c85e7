// SPDX-License-Identifier: Apache-2.0
// All classes that there are.
#ifndef SIM_METAL_CLASSES_H_
#define SIM_METAL_CLASSES_H_

#include "metal/runtime.h"

extern class_t NSObject, NSString, NSError, NSArray;
extern class_t OS_dispatch_queue, OS_dispatch_data;
extern class_t MTLDevice, MTLBuffer, MTLEvent, MTLSharedEvent, MTLSharedEventListener;
extern class_t MTLCommandQueue, MTLCommandBuffer, MTLFence;
extern class_t MTLBlitCommandEncoder, MTLComputeCommandEncoder;
extern class_t MTLResidencySet, MTLComputePassDescriptor, MTLBlitPassDescriptor;
extern class_t MTLLibrary, MTLFunction, MTLComputePipelineState, MTLCompileOptions;
extern class_t MTLArgumentEncoder, MTLComputePipelineDescriptor;

// Those that have class methods make themselves known.
void foundation_add(void);
void event_add(void);
void library_add(void);
void indirect_add(void);
void counter_add(void);
void capture_add(void);
void residency_add_classes(void);

// Makes all of them known. Called once, before the first message.
void classes_add(void);
// Does so if it was not done: for functions that are not messages.
void runtime_start(void);

#endif
