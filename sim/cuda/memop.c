// SPDX-License-Identifier: Apache-2.0
// Memory operations of streams: words written, and waited for.
#include "cuda/memop.h"

#include "cuda/arena.h"
#include "cuda/call.h"
#include "cuda/engine.h"

#include <stdlib.h>
#include <string.h>

static bool is_wide(CUstreamBatchMemOpType operation)
{
    return operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
           operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

static bool is_wait(CUstreamBatchMemOpType operation)
{
    return operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
           operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

static bool flags_valid(const CUstreamBatchMemOpParams *op)
{
    if (is_wait(op->operation)) return op->waitValue.flags <= CU_STREAM_WAIT_VALUE_NOR;
    return op->writeValue.flags <= CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
}

static CUresult op_check(const CUstreamBatchMemOpParams *op, moment_t moment, const char *maker)
{
    switch (op->operation) {
    case CU_STREAM_MEM_OP_BARRIER: return CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: break;
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
    uint64_t address = op->waitValue.address, size = is_wide(op->operation) ? 8 : 4;
    if (!flags_valid(op) || address % size) return CUDA_ERROR_INVALID_VALUE;
    if (!arena_check(address, size, moment, maker)) return CUDA_ERROR_INVALID_VALUE;
    // Memory that moves cannot be used for this.
    if (arena_find(address)->kind == RANGE_MANAGED) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

bool memops_check(const memop_work_t *memops, moment_t moment, const char *maker)
{
    for (unsigned i = 0; i < memops->count; i++) {
        if (op_check(&memops->ops[i], moment, maker) != CUDA_SUCCESS) return false;
    }
    return true;
}

CUresult memop_work(work_t *out, unsigned count, const CUstreamBatchMemOpParams *ops)
{
    if (count == 0 || count > 256 || !ops) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        CUresult error = op_check(&ops[i], WHEN_ENQUEUED, call_name());
        if (error) return error;
    }
    *out = (work_t){.kind = WORK_MEMOPS, .maker = call_name(), .memops = {.count = count}};
    out->memops.ops = malloc(count * sizeof *ops);
    if (!out->memops.ops) return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(out->memops.ops, ops, count * sizeof *ops);
    return CUDA_SUCCESS;
}

static bool is_satisfied(const CUstreamBatchMemOpParams *op)
{
    void *bytes = arena_bytes(op->waitValue.address);
    bool wide = is_wide(op->operation);
    uint64_t wanted = wide ? op->waitValue.value64 : op->waitValue.value;
    uint64_t now = wide ? __atomic_load_n((uint64_t *)bytes, __ATOMIC_ACQUIRE)
                        : __atomic_load_n((uint32_t *)bytes, __ATOMIC_ACQUIRE);
    switch (op->waitValue.flags) {
    case CU_STREAM_WAIT_VALUE_EQ: return now == wanted;
    case CU_STREAM_WAIT_VALUE_AND: return (now & wanted) != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
        return wide ? ~(now | wanted) != 0 : (uint32_t)~(now | wanted) != 0;
    default: return wide ? (int64_t)(now - wanted) >= 0 : (int32_t)(uint32_t)(now - wanted) >= 0;
    }
}

static void op_write(const CUstreamBatchMemOpParams *op)
{
    void *bytes = arena_bytes(op->writeValue.address);
    if (is_wide(op->operation)) {
        __atomic_store_n((uint64_t *)bytes, op->writeValue.value64, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n((uint32_t *)bytes, op->writeValue.value, __ATOMIC_RELEASE);
    }
}

void memops_run(const memop_work_t *memops, CUcontext context)
{
    for (unsigned i = 0; i < memops->count; i++) {
        const CUstreamBatchMemOpParams *op = &memops->ops[i];
        if (op->operation == CU_STREAM_MEM_OP_BARRIER) continue;
        if (!is_wait(op->operation)) {
            op_write(op);
            continue;
        }
        // The word may be anybody's, so there is nothing to sleep on.
        for (unsigned us = 1; !is_satisfied(op); us = us < 100 ? us * 2 : us) {
            if (__atomic_load_n(&context->error, __ATOMIC_ACQUIRE)) return;
            sleep_us(us);
        }
    }
}

static CUresult memop(call_t *call, CUstream handle, unsigned count,
                      const CUstreamBatchMemOpParams *ops)
{
    work_t work;
    CUstream stream = stream_of(call->context, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    CUresult error = memop_work(&work, count, ops);
    return error ? error : stream_work(stream, &work);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *ops,
                               unsigned int flags)
{
    CALL(CALL_CONTEXT);
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    return memop(&call, stream, count, ops);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                unsigned int flags)
{
    CALL(CALL_CONTEXT);
    CUstreamBatchMemOpParams op = {0};
    op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    op.waitValue.address = address;
    op.waitValue.value = value;
    op.waitValue.flags = flags;
    return memop(&call, stream, 1, &op);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                unsigned int flags)
{
    CALL(CALL_CONTEXT);
    CUstreamBatchMemOpParams op = {0};
    op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
    op.waitValue.address = address;
    op.waitValue.value64 = value;
    op.waitValue.flags = flags;
    return memop(&call, stream, 1, &op);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                 unsigned int flags)
{
    CALL(CALL_CONTEXT);
    CUstreamBatchMemOpParams op = {0};
    op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    op.writeValue.address = address;
    op.writeValue.value = value;
    op.writeValue.flags = flags;
    return memop(&call, stream, 1, &op);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                 unsigned int flags)
{
    CALL(CALL_CONTEXT);
    CUstreamBatchMemOpParams op = {0};
    op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    op.writeValue.address = address;
    op.writeValue.value64 = value;
    op.writeValue.flags = flags;
    return memop(&call, stream, 1, &op);
}
