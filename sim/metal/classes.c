// SPDX-License-Identifier: Apache-2.0
#include "metal/classes.h"

void classes_add(void)
{
    foundation_add();
    class_add(&OS_dispatch_queue);
    event_add();
    class_add(&MTLDevice);
    class_add(&MTLBuffer);
    class_add(&MTLCommandQueue);
    class_add(&MTLCommandBuffer);
    class_add(&MTLFence);
    class_add(&MTLBlitCommandEncoder);
    class_add(&MTLComputeCommandEncoder);
    library_add();
    indirect_add();
    counter_add();
    capture_add();
    residency_add_classes();
    class_add(&MTLLibrary);
    class_add(&MTLFunction);
    class_add(&MTLArgumentEncoder);
    class_add(&MTLComputePipelineState);
}
