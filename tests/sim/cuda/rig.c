// SPDX-License-Identifier: Apache-2.0
#include "rig.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

const char *rig_kernels;
static unsigned passed, failed;
static int said_fd, real_stderr;

// In the child: the library's complaints go to a file that can be looked at.
static void catch_stderr(void)
{
    said_fd = memfd_create("stderr", MFD_CLOEXEC);
    real_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    if (said_fd < 0 || real_stderr < 0 || dup2(said_fd, STDERR_FILENO) < 0) _exit(3);
}

static size_t said_read(char *out, size_t size)
{
    ssize_t count = pread(said_fd, out, size - 1, 0);
    out[count < 0 ? 0 : count] = '\0';
    return count < 0 ? 0 : (size_t)count;
}

bool rig_said(const char *text)
{
    static char all[65536];
    said_read(all, sizeof all);
    return strstr(all, text) != NULL;
}

static int run(const char *settings, rig_test_fn test)
{
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) return -1;
    if (child == 0) {
        alarm(60);
        setenv("KEEL_SIM_CUDA", settings, 1);
        catch_stderr();
        test();
        fflush(NULL);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

static void count(const char *name, const char *settings, bool good, int status)
{
    passed += good;
    failed += !good;
    if (!good) fprintf(stderr, "FAILED %s (%s), status %#x\n", name, settings, status);
}

void rig_run(const char *name, const char *settings, rig_test_fn test)
{
    int status = run(settings, test);
    count(name, settings, WIFEXITED(status) && WEXITSTATUS(status) == 0, status);
}

void rig_run_dying(const char *name, const char *settings, rig_test_fn test, int signal)
{
    int status = run(settings, test);
    // A sanitizer turns the signal into an exit.
    bool sanitized = WIFEXITED(status) && WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 9;
    count(name, settings, (WIFSIGNALED(status) && WTERMSIG(status) == signal) || sanitized, status);
}

int rig_result(void)
{
    printf("%u passed, %u failed\n", passed, failed);
    return failed || !passed;
}

_Noreturn static void fail(const char *file, int line, const char *text)
{
    static char all[65536];
    dprintf(real_stderr, "%s:%d: %s\n", file, line, text);
    if (said_read(all, sizeof all)) dprintf(real_stderr, "%s", all);
    _exit(9);
}

void rig_check(bool good, const char *what, const char *file, int line)
{
    char text[500];
    if (good) return;
    snprintf(text, sizeof text, "not true: %s", what);
    fail(file, line, text);
}

void rig_result_check(CUresult got, CUresult wanted, const char *what, const char *file, int line)
{
    char text[500];
    if (got == wanted) return;
    snprintf(text, sizeof text, "%s returned %d and not %d", what, (int)got, (int)wanted);
    fail(file, line, text);
}

CUcontext rig_context(void)
{
    CUcontext context;
    CU(cuInit(0));
    CU(cuDevicePrimaryCtxRetain(&context, 0));
    CU(cuCtxSetCurrent(context));
    return context;
}

CUmodule rig_module(void)
{
    static CUmodule module;
    if (!module) CU(cuModuleLoad(&module, rig_kernels));
    return module;
}

CUfunction rig_kernel(const char *name)
{
    CUfunction function;
    CU(cuModuleGetFunction(&function, rig_module(), name));
    return function;
}

void rig_launch(const char *name, unsigned blocks, CUstream stream, const uint64_t params[3])
{
    void *pointers[3];
    for (int i = 0; i < 3; i++) pointers[i] = (void *)(uintptr_t)&params[i];
    CU(cuLaunchKernel(rig_kernel(name), blocks, 1, 1, 32, 1, 1, 0, stream, pointers, NULL));
}

void rig_pass(void)
{
    CUstream stream;
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    rig_launch("empty", 1, stream, (uint64_t[3]){0});
    CU(cuStreamSynchronize(stream));
    CU(cuStreamDestroy_v2(stream));
}

gate_t rig_gate(void)
{
    void *word;
    CU(cuMemHostAlloc(&word, 64, 0));
    *(uint32_t *)word = 0;
    return (gate_t){(uintptr_t)word};
}

void rig_gate_close(gate_t gate, CUstream stream)
{
    rig_launch("wait", 1, stream, (uint64_t[3]){gate.word});
}

void rig_gate_open(gate_t gate)
{
    __atomic_store_n((uint32_t *)(uintptr_t)gate.word, 1, __ATOMIC_RELEASE);
}
