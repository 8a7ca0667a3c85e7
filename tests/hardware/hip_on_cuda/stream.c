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

HIP(hipStreamSynchronize, void *stream)
{
    FORWARD(cuStreamSynchronize(stream));
}

HIP(hipStreamWaitEvent, void *stream, void *event, unsigned flags)
{
    FORWARD(cuStreamWaitEvent(stream, event, flags));
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
    FORWARD(cuEventRecord(event, stream));
}

HIP(hipEventQuery, void *event)
{
    FORWARD(cuEventQuery(event));
}

HIP(hipEventSynchronize, void *event)
{
    FORWARD(cuEventSynchronize(event));
}

HIP(hipLaunchHostFunc, void *stream, void (*function)(void *user), void *user)
{
    FORWARD(cuLaunchHostFunc(stream, function, user));
}
