// SPDX-License-Identifier: Apache-2.0
// A kernel that stores where nothing is: who learns of it, and what is left.
#include "cuda.h"

enum { NOWHERE = 0x10 };

// Puts a wild store on a stream behind a gate.
static gate_t fault(CUstream stream)
{
    gate_t gate = gate_close(stream);
    LAUNCH("poke", stream, NOWHERE, 1);
    return gate;
}

// Until the device has come to it, without a call that would report it: to make an event does not.
static void let_it_happen(gate_t gate)
{
    gate_open(&gate);
    fact_nap(300); // what has not happened by then makes the fact true for another reason
}

static void synchronise_reports(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    gate_t gate = fault(stream);
    gate_open(&gate);
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(stream));
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(stream));
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamQuery(stream));
}

static void all_calls_fail(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUevent event = cuda_event();
    CUdeviceptr memory = cuda_memory(64), more;
    gate_t gate = fault(stream);
    CU(cu.cuEventRecord(event, stream));
    gate_open(&gate);
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(stream));
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemAlloc_v2(&more, 64));
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemFree_v2(memory));
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemsetD8Async(memory, 1, 64, stream));
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuEventRecord(event, stream));
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuEventQuery(event));
}

static void query_reports(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUevent event = cuda_event();
    gate_t gate = fault(stream);
    CU(cu.cuEventRecord(event, stream));
    gate_open(&gate);
    CUresult error = CUDA_ERROR_NOT_READY;
    for (int i = 0; i < 20000 && error == CUDA_ERROR_NOT_READY; i++) {
        error = cu.cuEventQuery(event);
        fact_nap(1);
    }
    REQUIRE(error == CUDA_ERROR_ILLEGAL_ADDRESS);
}

static CUresult slept;

static void sleep_call(void *event)
{
    slept = cu.cuEventSynchronize(event);
}

static void sleeper_learns(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUevent event;
    CU(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC));
    gate_t gate = fault(stream);
    CU(cu.cuEventRecord(event, stream));
    NEED(fact_waits(&(fact_try_t){sleep_call, event, gate_open, &gate}, FACT_SHORT_MS));
    REQUIRE(slept == CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void enqueues_go_on(void)
{
    cuda_begin();
    CUstream stream = cuda_stream(), other = cuda_stream();
    CUdeviceptr memory = cuda_memory(64);
    let_it_happen(fault(stream));
    RETURNS(CUDA_SUCCESS, cu.cuMemsetD8Async(memory, 1, 64, stream));
    RETURNS(CUDA_SUCCESS, cu.cuMemsetD8Async(memory, 1, 64, other));
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(other));
}

static uint32_t called;

static void host_fn(void *user)
{
    __atomic_store_n(&called, 1, __ATOMIC_RELEASE);
}

// What stands behind the store, and could tell of its end.
static void nothing_comes_after(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    uint32_t *words = cuda_words();
    gate_t gate = fault(stream);
    LAUNCH("poke", stream, cuda_at(&words[0]), 1);
    CU(cu.cuStreamWriteValue32_v2(stream, cuda_at(&words[1]), 1, 0));
    CU(cu.cuLaunchHostFunc(stream, host_fn, NULL));
    gate_open(&gate);
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(stream));
    fact_nap(100);
    REQUIRE(words[0] == 0 && words[1] == 0 && __atomic_load_n(&called, __ATOMIC_ACQUIRE) == 0);
}

static void other_streams_end(void)
{
    cuda_begin();
    CUstream stream = cuda_stream(), other = cuda_stream();
    uint32_t *word = cuda_words();
    gate_t gate = fault(stream);
    CUevent event = cuda_event();
    CU(cu.cuEventRecord(event, stream));
    CU(cu.cuStreamWaitEvent(other, event, 0));
    LAUNCH("poke", other, cuda_at(word), 1);
    gate_open(&gate);
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(other));
    REQUIRE(*word == 0);
}

static void bad_calls_do_not_stick(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUdeviceptr memory;
    RETURNS(CUDA_ERROR_INVALID_VALUE, cu.cuMemAlloc_v2(&memory, 0));
    RETURNS(CUDA_ERROR_NOT_FOUND, cu.cuModuleGetFunction(&(CUfunction){0}, cuda_load(), "nobody"));
    RETURNS(CUDA_SUCCESS, cu.cuStreamSynchronize(stream));
    RETURNS(CUDA_SUCCESS, cu.cuCtxSynchronize());
}

// A host can let its context go after an error, and this process gets a new one.
static void context_ends(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    gate_t gate = fault(stream);
    gate_open(&gate);
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(stream));
    cu.cuCtxSetCurrent(NULL);
    cu.cuDevicePrimaryCtxRelease_v2(0);
    CUcontext context;
    RETURNS(CUDA_SUCCESS, cu.cuDevicePrimaryCtxRetain(&context, 0));
    RETURNS(CUDA_SUCCESS, cu.cuCtxSetCurrent(context));
    RETURNS(CUDA_SUCCESS, cu.cuCtxSynchronize());
}

const fact_t cuda_error_facts[] = {
    {"error.synchronise_reports", "a synchronise reports a wild store, and so does each later one",
     H200, synchronise_reports, HOLDS, HOLDS, NULL},
    {"error.all_calls_fail", "once a call has reported it, all calls of the context return it",
     "CUDA driver API, CUDA_ERROR_ILLEGAL_ADDRESS", all_calls_fail, HOLDS, HOLDS, NULL},
    {"error.query_reports", "the query of an event behind it returns the error, never success",
     H200, query_reports, HOLDS, HOLDS, NULL},
    {"error.sleeper_learns", "a thread that sleeps in cuEventSynchronize returns with the error",
     H200, sleeper_learns, HOLDS, HOLDS, NULL},
    {"error.enqueues_go_on", "until a call has reported it, work is enqueued as if all were well",
     "docs/sim.md", enqueues_go_on, HOLDS, DIFFERS,
     "300 ms after the fault an H200 returns it from the next enqueue"},
    {"error.nothing_comes_after", "no kernel, write or host function behind it runs", H200,
     nothing_comes_after, HOLDS, HOLDS, NULL},
    {"error.other_streams_end", "nor what waits for it on other streams", H200, other_streams_end,
     HOLDS, HOLDS, NULL},
    {"error.bad_calls_do_not_stick", "an error of a call's arguments is that call's alone",
     "CUDA driver API, CUresult", bad_calls_do_not_stick, HOLDS, HOLDS, NULL},
    {"error.context_ends", "the context can be let go, and a new primary context works",
     "docs/sim.md", context_ends, HOLDS, DIFFERS, "on an H200 the error stays with the process"},
    {0},
};
