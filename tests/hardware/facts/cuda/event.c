// SPDX-License-Identifier: Apache-2.0
// Events: what a record means, and what is left when one is destroyed.
#include "cuda.h"

static void never_recorded(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUevent event = cuda_event();
    RETURNS(CUDA_SUCCESS, cu.cuEventQuery(event));
    RETURNS(CUDA_SUCCESS, cu.cuEventSynchronize(event));
    RETURNS(CUDA_SUCCESS, cu.cuStreamWaitEvent(stream, event, 0));
    RETURNS(CUDA_SUCCESS, cu.cuStreamSynchronize(stream));
}

static void query_is_not_ready(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUevent event = cuda_event();
    gate_t gate = gate_close(stream);
    CU(cu.cuEventRecord(event, stream));
    RETURNS(CUDA_ERROR_NOT_READY, cu.cuEventQuery(event));
    gate_open(&gate);
    CU(cu.cuEventSynchronize(event));
    RETURNS(CUDA_SUCCESS, cu.cuEventQuery(event));
}

// What comes behind an event does not hold it up.
static void comes_in_time(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUevent event = cuda_event();
    CU(cu.cuEventRecord(event, stream));
    gate_t gate = gate_close(stream);
    RETURNS(CUDA_SUCCESS, cu.cuEventSynchronize(event));
    RETURNS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(stream));
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(stream));
}

// A wait means the record that was the latest when it was enqueued.
static void recorded_again(void)
{
    cuda_begin();
    CUstream first = cuda_stream(), second = cuda_stream();
    CUevent event = cuda_event();
    gate_t early = gate_close(first);
    CU(cu.cuEventRecord(event, first));
    CU(cu.cuStreamWaitEvent(second, event, 0));
    gate_t late = gate_close(first);
    CU(cu.cuEventRecord(event, first));
    RETURNS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(second));
    gate_open(&early);
    RETURNS(CUDA_SUCCESS, cu.cuStreamSynchronize(second));
    RETURNS(CUDA_ERROR_NOT_READY, cu.cuEventQuery(event));
    gate_open(&late);
    CU(cu.cuStreamSynchronize(first));
}

static void destroyed_in_flight(void)
{
    cuda_begin();
    CUstream first = cuda_stream(), second = cuda_stream();
    uint32_t *list = cuda_words();
    CUevent event = cuda_event();
    gate_t gate = gate_close(first);
    LAUNCH("append", first, cuda_at(list), 1);
    CU(cu.cuEventRecord(event, first));
    CU(cu.cuStreamWaitEvent(second, event, 0));
    LAUNCH("append", second, cuda_at(list), 2);
    CU(cu.cuEventDestroy_v2(event)); // returns, or the gate stays closed
    RETURNS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(second));
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(second));
    REQUIRE(list[0] == 2 && list[1] == 1 && list[2] == 2);
}

static void sleep_call(void *event)
{
    CU(cu.cuEventSynchronize(event));
}

static void sleeper_waits(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUevent event;
    CU(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC));
    gate_t gate = gate_close(stream);
    CU(cu.cuEventRecord(event, stream));
    REQUIRE(fact_waits(&(fact_try_t){sleep_call, event, gate_open, &gate}, FACT_SHORT_MS));
}

static void no_times(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUevent plain = cuda_event(), timed;
    float ms;
    CU(cu.cuEventCreate(&timed, CU_EVENT_DEFAULT));
    CU(cu.cuEventRecord(plain, stream));
    CU(cu.cuEventRecord(timed, stream));
    CU(cu.cuStreamSynchronize(stream));
    RETURNS(CUDA_ERROR_INVALID_HANDLE, cu.cuEventElapsedTime(&ms, plain, timed));
}

static void elapsed(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUevent start, end;
    float ms = -1;
    CU(cu.cuEventCreate(&start, CU_EVENT_DEFAULT));
    CU(cu.cuEventCreate(&end, CU_EVENT_DEFAULT));
    CU(cu.cuEventRecord(start, stream));
    gate_t gate = gate_close(stream);
    CU(cu.cuEventRecord(end, stream));
    RETURNS(CUDA_ERROR_NOT_READY, cu.cuEventElapsedTime(&ms, start, end));
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(stream));
    CU(cu.cuEventElapsedTime(&ms, start, end));
    REQUIRE(ms >= 0);
}

static void other_context(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUcontext other;
    CU(cu.cuCtxCreate_v2(&other, 0, 0));
    CUevent event = cuda_event();
    RETURNS(CUDA_ERROR_INVALID_HANDLE, cu.cuEventRecord(event, stream));
    CUstream theirs = cuda_stream();
    CU(cu.cuEventRecord(event, theirs));
    RETURNS(CUDA_SUCCESS, cu.cuStreamWaitEvent(stream, event, 0));
    CU(cu.cuStreamSynchronize(stream));
}

static void many_in_flight(void)
{
    cuda_begin();
    enum { COUNT = 3000 };
    static CUevent events[COUNT];
    CUstream stream = cuda_stream();
    for (int i = 0; i < COUNT; i++) events[i] = cuda_event();
    gate_t gate = gate_close(stream);
    for (int i = 0; i < COUNT; i++) CU(cu.cuEventRecord(events[i], stream));
    for (int i = 0; i < COUNT; i++) RETURNS(CUDA_ERROR_NOT_READY, cu.cuEventQuery(events[i]));
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(stream));
    for (int i = 0; i < COUNT; i++) RETURNS(CUDA_SUCCESS, cu.cuEventQuery(events[i]));
}

const fact_t cuda_event_facts[] = {
    {"event.never_recorded", "an event that was never recorded is over, for a stream as well",
     "CUDA driver API, cuEventRecord", never_recorded, HOLDS, HOLDS, NULL},
    {"event.query_is_not_ready", "an event's query says whether it has come",
     "CUDA driver API, cuEventQuery", query_is_not_ready, HOLDS, HOLDS, NULL},
    {"event.comes_in_time", "an event comes while a kernel behind it runs",
     "CUDA driver API, cuEventRecord; docs/stream.md, Points", comes_in_time, HOLDS, HOLDS, NULL},
    {"event.recorded_again", "a wait means the latest record before it, whatever comes later",
     "CUDA driver API, cuStreamWaitEvent", recorded_again, HOLDS, HOLDS, NULL},
    {"event.destroyed_in_flight", "to destroy an event does not wait, and waits for it go on",
     "CUDA driver API, cuEventDestroy; " H200, destroyed_in_flight, HOLDS, HOLDS, NULL},
    {"event.sleeper_waits", "a thread sleeps in cuEventSynchronize until the event has come",
     "CUDA driver API, CU_EVENT_BLOCKING_SYNC", sleeper_waits, HOLDS, HOLDS, NULL},
    {"event.no_times", "an event without times has none", "CUDA driver API, cuEventElapsedTime",
     no_times, HOLDS, HOLDS, NULL},
    {"event.elapsed", "times of events grow in the order of their stream",
     "CUDA driver API, cuEventElapsedTime", elapsed, HOLDS, HOLDS, NULL},
    {"event.other_context", "an event is recorded in streams of its context alone; any may wait",
     "CUDA driver API, cuEventRecord and cuStreamWaitEvent", other_context, HOLDS, HOLDS, NULL},
    {"event.many_in_flight", "3000 events are in flight in one stream, and each can be asked", H200,
     many_in_flight, HOLDS, HOLDS, NULL},
    {0},
};
