// SPDX-License-Identifier: Apache-2.0
// Calls whose answer is that this GPU cannot, or that there is nothing to do.
#include "amd/engine/engine.h"

// The debugger's interface.
HSAKMT_STATUS hsaKmtRuntimeEnable(void *debug, bool setup)
{
    return HSAKMT_STATUS_NOT_SUPPORTED;
}
HSAKMT_STATUS hsaKmtRuntimeDisable(void)
{
    return HSAKMT_STATUS_SUCCESS;
}

// Faults that are retried, and memory that migrates with them.
HSAKMT_STATUS hsaKmtGetXNACKMode(HSAint32 *out)
{
    *out = 0;
    return HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtSetXNACKMode(HSAint32 enable)
{
    return enable ? HSAKMT_STATUS_NOT_SUPPORTED : HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtSVMSetAttr(void *address, HSAuint64 size, unsigned count,
                               HSA_SVM_ATTRIBUTE *all)
{
    return HSAKMT_STATUS_NOT_SUPPORTED;
}

HSAKMT_STATUS hsaKmtSVMGetAttr(void *address, HSAuint64 size, unsigned count,
                               HSA_SVM_ATTRIBUTE *all)
{
    return HSAKMT_STATUS_NOT_SUPPORTED;
}

// Traps end a dispatch without the handler, and caches are not modelled.
HSAKMT_STATUS hsaKmtSetTrapHandler(HSAuint32 node, void *code, HSAuint64 code_size, void *data,
                                   HSAuint64 data_size)
{
    return HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtSetMemoryPolicy(HSAuint32 node, HSAuint32 policy, HSAuint32 alternate,
                                    void *address, HSAuint64 size)
{
    return HSAKMT_STATUS_SUCCESS;
}

// Memory of other processes and of graphics.
HSAKMT_STATUS hsaKmtShareMemory(void *address, HSAuint64 size, HsaSharedMemoryHandle *out)
{
    return HSAKMT_STATUS_NOT_SUPPORTED;
}

HSAKMT_STATUS hsaKmtRegisterSharedHandle(const HsaSharedMemoryHandle *handle, void **address,
                                         HSAuint64 *size)
{
    return HSAKMT_STATUS_NOT_SUPPORTED;
}

HSAKMT_STATUS hsaKmtRegisterSharedHandleToNodes(const HsaSharedMemoryHandle *handle, void **address,
                                                HSAuint64 *size, HSAuint64 count, HSAuint32 *nodes)
{
    return HSAKMT_STATUS_NOT_SUPPORTED;
}

HSAKMT_STATUS hsaKmtRegisterGraphicsHandleToNodes(HSAuint64 handle, HsaGraphicsResourceInfo *out,
                                                  HSAuint64 count, HSAuint32 *nodes)
{
    return HSAKMT_STATUS_NOT_SUPPORTED;
}

// Synchronisation of all workgroups of a grid.
HSAKMT_STATUS hsaKmtAllocQueueGWS(HSA_QUEUEID queue, HSAuint32 count, HSAuint32 *first)
{
    return HSAKMT_STATUS_NOT_SUPPORTED;
}
