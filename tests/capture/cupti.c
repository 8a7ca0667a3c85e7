// SPDX-License-Identifier: Apache-2.0
// Compiled only: our declarations of CUPTI and NVTX, and the software CUPTI's, beside the vendor's.
#include <cupti.h>
#include <nvtx3/nvToolsExt.h>
#include <stdint.h>

// The vendor's enumerators have names of ours.
#define CUPTI_SUCCESS KEEL_CUPTI_SUCCESS
#include "capture/cuda/abi.h"
#undef CUPTI_SUCCESS

#define SAME(ours, field, theirs, other)                                                           \
    _Static_assert(offsetof(ours, field) == offsetof(theirs, other), #ours " " #field);            \
    _Static_assert(sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->other), #ours " " #field)
#define NUMBER(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)

SAME(cupti_call_t, site, CUpti_CallbackData, callbackSite);
SAME(cupti_call_t, result, CUpti_CallbackData, functionReturnValue);
SAME(cupti_call_t, correlation, CUpti_CallbackData, correlationId);
NUMBER(CUPTI_CALL_BEGINS, CUPTI_API_ENTER);
NUMBER(CUPTI_CALL_ENDS, CUPTI_API_EXIT);

SAME(cupti_kernel_t, device, CUpti_ActivityKernel9, deviceId);
SAME(cupti_kernel_t, context, CUpti_ActivityKernel9, contextId);
SAME(cupti_kernel_t, stream, CUpti_ActivityKernel9, streamId);
SAME(cupti_kernel_t, start, CUpti_ActivityKernel9, start);
SAME(cupti_kernel_t, end, CUpti_ActivityKernel9, end);
SAME(cupti_kernel_t, correlation, CUpti_ActivityKernel9, correlationId);
SAME(cupti_kernel_t, graph_node, CUpti_ActivityKernel9, graphNodeId);
SAME(cupti_kernel_t, graph, CUpti_ActivityKernel9, graphId);
SAME(cupti_kernel_t, grid[0], CUpti_ActivityKernel9, gridX);
SAME(cupti_kernel_t, grid[2], CUpti_ActivityKernel9, gridZ);
SAME(cupti_kernel_t, block[0], CUpti_ActivityKernel9, blockX);
SAME(cupti_kernel_t, block[2], CUpti_ActivityKernel9, blockZ);
SAME(cupti_kernel_t, static_shared, CUpti_ActivityKernel9, staticSharedMemory);
SAME(cupti_kernel_t, dynamic_shared, CUpti_ActivityKernel9, dynamicSharedMemory);
SAME(cupti_kernel_t, name, CUpti_ActivityKernel9, name);
SAME(cupti_kernel_t, device, CUpti_ActivityKernel10, deviceId);
SAME(cupti_kernel_t, context, CUpti_ActivityKernel10, contextId);
SAME(cupti_kernel_t, stream, CUpti_ActivityKernel10, streamId);
SAME(cupti_kernel_t, start, CUpti_ActivityKernel10, start);
SAME(cupti_kernel_t, end, CUpti_ActivityKernel10, end);
SAME(cupti_kernel_t, correlation, CUpti_ActivityKernel10, correlationId);
SAME(cupti_kernel_t, graph_node, CUpti_ActivityKernel10, graphNodeId);
SAME(cupti_kernel_t, graph, CUpti_ActivityKernel10, graphId);
SAME(cupti_kernel_t, grid[0], CUpti_ActivityKernel10, gridX);
SAME(cupti_kernel_t, grid[2], CUpti_ActivityKernel10, gridZ);
SAME(cupti_kernel_t, block[0], CUpti_ActivityKernel10, blockX);
SAME(cupti_kernel_t, block[2], CUpti_ActivityKernel10, blockZ);
SAME(cupti_kernel_t, static_shared, CUpti_ActivityKernel10, staticSharedMemory);
SAME(cupti_kernel_t, dynamic_shared, CUpti_ActivityKernel10, dynamicSharedMemory);
SAME(cupti_kernel_t, name, CUpti_ActivityKernel10, name);
SAME(cupti_copy_t, device, CUpti_ActivityMemcpy5, deviceId);
SAME(cupti_copy_t, context, CUpti_ActivityMemcpy5, contextId);
SAME(cupti_copy_t, stream, CUpti_ActivityMemcpy5, streamId);
SAME(cupti_copy_t, start, CUpti_ActivityMemcpy5, start);
SAME(cupti_copy_t, end, CUpti_ActivityMemcpy5, end);
SAME(cupti_copy_t, correlation, CUpti_ActivityMemcpy5, correlationId);
SAME(cupti_copy_t, graph_node, CUpti_ActivityMemcpy5, graphNodeId);
SAME(cupti_copy_t, graph, CUpti_ActivityMemcpy5, graphId);
SAME(cupti_copy_t, copy_kind, CUpti_ActivityMemcpy5, copyKind);
SAME(cupti_copy_t, bytes, CUpti_ActivityMemcpy5, bytes);
SAME(cupti_copy_t, device, CUpti_ActivityMemcpy6, deviceId);
SAME(cupti_copy_t, context, CUpti_ActivityMemcpy6, contextId);
SAME(cupti_copy_t, stream, CUpti_ActivityMemcpy6, streamId);
SAME(cupti_copy_t, start, CUpti_ActivityMemcpy6, start);
SAME(cupti_copy_t, end, CUpti_ActivityMemcpy6, end);
SAME(cupti_copy_t, correlation, CUpti_ActivityMemcpy6, correlationId);
SAME(cupti_copy_t, graph_node, CUpti_ActivityMemcpy6, graphNodeId);
SAME(cupti_copy_t, graph, CUpti_ActivityMemcpy6, graphId);
SAME(cupti_copy_t, copy_kind, CUpti_ActivityMemcpy6, copyKind);
SAME(cupti_copy_t, bytes, CUpti_ActivityMemcpy6, bytes);
SAME(cupti_peer_copy_t, device, CUpti_ActivityMemcpyPtoP4, deviceId);
SAME(cupti_peer_copy_t, context, CUpti_ActivityMemcpyPtoP4, contextId);
SAME(cupti_peer_copy_t, stream, CUpti_ActivityMemcpyPtoP4, streamId);
SAME(cupti_peer_copy_t, start, CUpti_ActivityMemcpyPtoP4, start);
SAME(cupti_peer_copy_t, end, CUpti_ActivityMemcpyPtoP4, end);
SAME(cupti_peer_copy_t, correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
SAME(cupti_peer_copy_t, graph_node, CUpti_ActivityMemcpyPtoP4, graphNodeId);
SAME(cupti_peer_copy_t, graph, CUpti_ActivityMemcpyPtoP4, graphId);
SAME(cupti_peer_copy_t, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
SAME(cupti_set_t, device, CUpti_ActivityMemset4, deviceId);
SAME(cupti_set_t, context, CUpti_ActivityMemset4, contextId);
SAME(cupti_set_t, stream, CUpti_ActivityMemset4, streamId);
SAME(cupti_set_t, start, CUpti_ActivityMemset4, start);
SAME(cupti_set_t, end, CUpti_ActivityMemset4, end);
SAME(cupti_set_t, correlation, CUpti_ActivityMemset4, correlationId);
SAME(cupti_set_t, graph_node, CUpti_ActivityMemset4, graphNodeId);
SAME(cupti_set_t, graph, CUpti_ActivityMemset4, graphId);
SAME(cupti_set_t, bytes, CUpti_ActivityMemset4, bytes);
SAME(cupti_memory_t, operation, CUpti_ActivityMemory4, memoryOperationType);
SAME(cupti_memory_t, memory_kind, CUpti_ActivityMemory4, memoryKind);
SAME(cupti_memory_t, bytes, CUpti_ActivityMemory4, bytes);
SAME(cupti_memory_t, time, CUpti_ActivityMemory4, timestamp);
SAME(cupti_memory_t, device, CUpti_ActivityMemory4, deviceId);

NUMBER(CUPTI_KIND_COPY, CUPTI_ACTIVITY_KIND_MEMCPY);
NUMBER(CUPTI_KIND_SET, CUPTI_ACTIVITY_KIND_MEMSET);
NUMBER(CUPTI_KIND_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
NUMBER(CUPTI_KIND_PEER_COPY, CUPTI_ACTIVITY_KIND_MEMCPY2);
NUMBER(CUPTI_KIND_MEMORY, CUPTI_ACTIVITY_KIND_MEMORY2);
NUMBER(CUPTI_TAKEN, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
NUMBER(CUPTI_DRIVER_API, CUPTI_CB_DOMAIN_DRIVER_API);
NUMBER(CUPTI_RUNTIME_API, CUPTI_CB_DOMAIN_RUNTIME_API);
NUMBER(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
NUMBER(CUPTI_MEMORY_ALLOCATED, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
NUMBER(CUPTI_MEMORY_RELEASED, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
NUMBER(CUPTI_MEMORY_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
NUMBER(CUPTI_MEMORY_MANAGED, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);

// A function of ours may take what the vendor's takes; enumerations are numbers of 32 bits.
#define FUNCTION(name, symbol, parameters)                                                         \
    _Static_assert(sizeof(&symbol) == sizeof(void *), #symbol);
#include "capture/cuda/functions.def"

// NVTX. Its own names are macros that stand in the way.
#include "capture/cuda/nvtx.h"
SAME(nvtx_attributes_t, size, nvtxEventAttributes_t, size);
SAME(nvtx_attributes_t, message_type, nvtxEventAttributes_t, messageType);
SAME(nvtx_attributes_t, message, nvtxEventAttributes_t, message);
SAME(nvtx_callbacks_t, get_table, NvtxExportTableCallbacks, GetModuleFunctionTable);
NUMBER(NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
NUMBER(NVTX_MODULE_CORE, NVTX_CB_MODULE_CORE);
NUMBER(NVTX_MODULE_DOMAINS, NVTX_CB_MODULE_CORE2);
NUMBER(NVTX_MARK_A, NVTX_CBID_CORE_MarkA);
NUMBER(NVTX_RANGE_START_EX, NVTX_CBID_CORE_RangeStartEx);
NUMBER(NVTX_RANGE_POP, NVTX_CBID_CORE_RangePop);
NUMBER(NVTX_DOMAIN_RANGE_POP, NVTX_CBID_CORE2_DomainRangePop);
NUMBER(NVTX_DOMAIN_REGISTER_A, NVTX_CBID_CORE2_DomainRegisterStringA);
NUMBER(NVTX_DOMAIN_CREATE_W, NVTX_CBID_CORE2_DomainCreateW);
NUMBER(NVTX_TEXT, NVTX_MESSAGE_TYPE_ASCII);
NUMBER(NVTX_WIDE_TEXT, NVTX_MESSAGE_TYPE_UNICODE);
NUMBER(NVTX_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
