// SPDX-License-Identifier: Apache-2.0
// external_test KERNELS: timeline semaphores of another API.
#include "rig.h"
#include "sim/cuda/external.h"
#include "tests/asleep.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc_of(int fd)
{
    return (CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC){
        .type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD, .handle.fd = fd};
}

// Of a copy of the descriptor, which is the driver's then.
static CUexternalSemaphore import(int fd)
{
    CUexternalSemaphore semaphore = NULL;
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc = desc_of(dup(fd));
    CU(cuImportExternalSemaphore(&semaphore, &desc));
    return semaphore;
}

static void signal_to(CUexternalSemaphore semaphore, uint64_t value, CUstream stream)
{
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS params = {.params.fence.value = value};
    CU(cuSignalExternalSemaphoresAsync(&semaphore, &params, 1, stream));
}

static void wait_for(CUexternalSemaphore semaphore, uint64_t value, CUstream stream)
{
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS params = {.params.fence.value = value};
    CU(cuWaitExternalSemaphoresAsync(&semaphore, &params, 1, stream));
}

static uint64_t value_of(int fd)
{
    uint64_t value = UINT64_MAX;
    CHECK(simSemaphoreValue(fd, &value) == 0);
    return value;
}

static void test_the_other_side(void)
{
    int fd = simSemaphoreCreate(5);
    uint64_t value;
    CHECK(fd >= 0 && value_of(fd) == 5);
    CHECK(simSemaphoreSignal(fd, 9) == 0 && value_of(fd) == 9);
    CHECK(simSemaphoreSignal(fd, 9) == -1 && value_of(fd) == 9);
    pid_t child = fork();
    if (child == 0) _exit(simSemaphoreSignal(fd, 12) == 0 ? 0 : 1);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(value_of(fd) == 12);
    close(fd);
    CHECK(simSemaphoreValue(fd, &value) == -1);
}

static void test_import(void)
{
    rig_context();
    CUexternalSemaphore semaphore = NULL;
    int fd = simSemaphoreCreate(0), file = open("/dev/null", O_RDWR);
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc = desc_of(fd);
    desc.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
    FAILS(CUDA_ERROR_NOT_SUPPORTED, cuImportExternalSemaphore(&semaphore, &desc));
    desc = desc_of(fd);
    desc.flags = 1;
    FAILS(CUDA_ERROR_INVALID_VALUE, cuImportExternalSemaphore(&semaphore, &desc));
    desc = desc_of(file);
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuImportExternalSemaphore(&semaphore, &desc));
    CHECK(fcntl(file, F_GETFD) >= 0); // refused, so still ours
    close(file);
    desc = desc_of(file);
    FAILS(CUDA_ERROR_OPERATING_SYSTEM, cuImportExternalSemaphore(&semaphore, &desc));
    desc = desc_of(fd);
    CU(cuImportExternalSemaphore(&semaphore, &desc));
    CHECK(fcntl(fd, F_GETFD) == -1); // taken over
    CU(cuDestroyExternalSemaphore(semaphore));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuDestroyExternalSemaphore(semaphore));
}

static void test_signal_and_wait(void)
{
    rig_context();
    int fd = simSemaphoreCreate(0);
    CUexternalSemaphore semaphore = import(fd);
    gate_t gate = rig_gate();
    rig_module(); // before anything is parked
    CUstream a, b;
    CU(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    CU(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    wait_for(semaphore, 3, b); // before anybody has signalled it
    wait_for(semaphore, 7, b);
    rig_gate_close(gate, a);
    signal_to(semaphore, 4, a);
    rig_pass();
    CHECK(value_of(fd) == 0); // not before the work in front of it
    rig_gate_open(gate);
    CU(cuStreamSynchronize(a));
    CHECK(value_of(fd) == 4);
    rig_pass();
    FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(b));
    CHECK(simSemaphoreSignal(fd, 10) == 0);
    CU(cuStreamSynchronize(b));
    CU(cuDestroyExternalSemaphore(semaphore));
    CU(cuStreamDestroy_v2(a));
    CU(cuStreamDestroy_v2(b));
    close(fd);
}

static void test_another_context(void)
{
    CUcontext primary = rig_context(), other, popped;
    int fd = simSemaphoreCreate(0);
    CUexternalSemaphore semaphore = import(fd);
    CUstream stream;
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS params = {.params.fence.value = 1};
    CU(cuCtxCreate_v2(&other, 0, 0));
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuWaitExternalSemaphoresAsync(&semaphore, &params, 1, stream));
    CUexternalSemaphore again = import(fd);
    wait_for(again, 1, stream); // parks it
    CU(cuCtxPopCurrent_v2(&popped));
    CHECK(popped == other);
    rig_module(); // what loads code waits for its own context alone
    CU(cuCtxSynchronize());
    CU(cuCtxSetCurrent(primary));
    CHECK(simSemaphoreSignal(fd, 1) == 0);
    CU(cuCtxSetCurrent(other));
    CU(cuStreamSynchronize(stream));
    CU(cuDestroyExternalSemaphore(again));
    CU(cuStreamDestroy_v2(stream));
    CU(cuCtxDestroy_v2(other));
    CU(cuCtxSetCurrent(primary));
    CU(cuDestroyExternalSemaphore(semaphore));
    close(fd);
}

static void *signal_late(void *user)
{
    asleep(getpid());
    CHECK(simSemaphoreSignal(*(int *)user, 1) == 0);
    return NULL;
}

// Loading code, and the end of a context, wait for streams that are parked.
static void test_parked(void)
{
    rig_context();
    CUcontext context;
    int fd = simSemaphoreCreate(0);
    pthread_t thread;
    CUstream stream;
    CU(cuCtxCreate_v2(&context, 0, 0));
    CUexternalSemaphore semaphore = import(fd);
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    wait_for(semaphore, 1, stream);
    CU(cuStreamDestroy_v2(stream)); // which does not
    CHECK(value_of(fd) == 0);
    CHECK(pthread_create(&thread, NULL, signal_late, &fd) == 0);
    CU(cuCtxDestroy_v2(context));
    CHECK(value_of(fd) == 1);
    pthread_join(thread, NULL);
    close(fd);
}

static void test_a_value_must_grow(void)
{
    rig_context();
    int fd = simSemaphoreCreate(5);
    CUexternalSemaphore semaphore = import(fd);
    signal_to(semaphore, 5, NULL);
    FAILS(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
    CHECK(rig_said("signalled to 5 and is at 5 already"));
}

static void test_destroyed_too_early(void)
{
    rig_context();
    CUexternalSemaphore semaphore = import(simSemaphoreCreate(0));
    wait_for(semaphore, 1, NULL);
    cuDestroyExternalSemaphore(semaphore);
}

static void test_loss(void)
{
    rig_context();
    int fd = simSemaphoreCreate(0);
    CUexternalSemaphore semaphore = import(fd);
    wait_for(semaphore, 1, NULL);
    FAILS(CUDA_ERROR_UNKNOWN, cuCtxSynchronize()); // the call that loses the device
    cuDestroyExternalSemaphore(semaphore);
    CHECK(value_of(fd) == 0);
    close(fd);
}

int main(int count, char **arguments)
{
    if (count < 2) return 2;
    rig_kernels = arguments[1];
    RUN("", test_the_other_side);
    RUN("leaks=2", test_import);
    RUN("leaks=2", test_signal_and_wait);
    RUN("seed=1", test_signal_and_wait);
    RUN("", test_another_context);
    RUN("", test_parked);
    RUN("", test_a_value_must_grow);
    rig_run_dying("test_destroyed_too_early", "", test_destroyed_too_early, SIGABRT);
    RUN("lose=6", test_loss);
    return rig_result();
}
