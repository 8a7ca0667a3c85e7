// SPDX-License-Identifier: Apache-2.0
#include "hip.h"

HIP(hipStreamCreateWithPriority, void **stream, unsigned flags, int priority)
{
    FORWARD(cuStreamCreateWithPriority(stream, flags, priority));
}

HIP(hipStreamDestroy, void *stream)
{
    FORWARD(cuStreamDestroy_v2(stream));
}

HIP(hipDeviceSynchronize, void)
{
    FORWARD_PLAINLY(cuCtxSynchronize());
}

HIP(hipStreamSynchronize, void *stream)
{
    FORWARD_PLAINLY(cuStreamSynchronize(stream));
}

HIP(hipStreamWaitEvent, void *stream, void *event, unsigned flags)
{
    FORWARD_PLAINLY(cuStreamWaitEvent(stream, event, flags));
}

HIP(hipEventCreateWithFlags, void **event, unsigned flags)
{
    FORWARD(cuEventCreate(event, flags));
}

HIP(hipEventDestroy, void *event)
{
    FORWARD(cuEventDestroy_v2(event));
}

HIP(hipEventRecord, void *event, void *stream)
{
    FORWARD_PLAINLY(cuEventRecord(event, stream));
}

HIP(hipEventQuery, void *event)
{
    FORWARD_PLAINLY(cuEventQuery(event));
}

HIP(hipEventSynchronize, void *event)
{
    FORWARD_PLAINLY(cuEventSynchronize(event));
}

HIP(hipLaunchHostFunc, void *stream, void (*function)(void *user), void *user)
{
    FORWARD(cuLaunchHostFunc(stream, function, user));
}
