// SPDX-License-Identifier: Apache-2.0
// ipc_test DIRECTORY: two processes with ROCm's runtime share memory of a GPU and a signal. The
// second is this program too, with the handles as two more arguments; a kernel of it works on
// memory of the first, which the signal tells.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hsa.h"

enum { COUNT = 1024, SIZE = COUNT * sizeof(uint32_t) };

static void handle_write(const hsa_amd_ipc_memory_t *handle, char *text)
{
    for (unsigned k = 0; k < 8; k++) text += sprintf(text, "%08x", handle->handle[k]);
}

static bool handle_read(const char *text, hsa_amd_ipc_memory_t *handle)
{
    for (unsigned k = 0; k < 8; k++, text += 8) {
        if (sscanf(text, "%8x", &handle->handle[k]) != 1) return false;
    }
    return true;
}

static void second_main(const char *memory_text, const char *signal_text)
{
    hsa_amd_ipc_memory_t handle;
    hsa_amd_ipc_signal_t signal_handle;
    hsa_signal_t signal;
    void *memory;
    CHECK(handle_read(memory_text, &handle) && handle_read(signal_text, &signal_handle));
    HSA(hsa_amd_ipc_signal_attach(&signal_handle, &signal));
    CHECK(hsa_signal_load_relaxed(signal) == 7);
    HSA(hsa_amd_ipc_memory_attach(&handle, SIZE, 1, &hsa_gpus[0].agent, &memory));
    struct {
        uint32_t *data;
        uint32_t count;
    } arguments = {memory, COUNT};
    hsa_queue_t *queue = queue_make(&hsa_gpus[0]);
    kernel_t kernel = kernel_find(&hsa_gpus[0], "add_one.kd");
    hsa_signal_t done = signal_make(1);
    dispatch_push(queue, &kernel, COUNT / 64, &arguments, sizeof arguments, done);
    signal_wait(done);
    HSA(hsa_queue_destroy(queue));
    HSA(hsa_amd_ipc_memory_detach(memory));
    // It is another's; a second process that has it does not end it.
    HSA(hsa_amd_ipc_memory_attach(&handle, SIZE, 1, &hsa_gpus[0].agent, &memory));
    HSA(hsa_amd_ipc_memory_detach(memory));
    hsa_signal_store_screlease(signal, 0);
    HSA(hsa_signal_destroy(signal));
}

static void first_main(const char *program, const char *directory)
{
    uint32_t *host = memory_alloc(hsa_host_memory, SIZE);
    void *device = memory_alloc(hsa_gpus[0].memory, SIZE);
    hsa_amd_ipc_memory_t handle;
    hsa_amd_ipc_signal_t signal_handle;
    hsa_signal_t signal;
    char memory_text[65], signal_text[65];
    int status = 0;
    for (uint32_t k = 0; k < COUNT; k++) host[k] = 3 * k;
    copy_wait(device, hsa_gpus[0].agent, host, hsa_cpu, SIZE);
    HSA(hsa_amd_ipc_memory_create(device, SIZE, &handle));
    HSA(hsa_amd_signal_create(7, 0, NULL, HSA_AMD_SIGNAL_IPC, &signal));
    HSA(hsa_amd_ipc_signal_create(signal, &signal_handle));
    handle_write(&handle, memory_text);
    handle_write(&signal_handle, signal_text);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", program, directory, memory_text, signal_text, NULL);
        _exit(127);
    }
    signal_wait(signal);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    HSA(hsa_signal_destroy(signal));
    copy_wait(host, hsa_cpu, device, hsa_gpus[0].agent, SIZE);
    for (uint32_t k = 0; k < COUNT; k++) CHECK(host[k] == 3 * k + 1);
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 4) return 2;
    alarm(60);
    hsa_open(argv[1]);
    if (argc == 4) {
        second_main(argv[2], argv[3]);
    } else {
        first_main(argv[0], argv[1]);
    }
    hsa_close();
    return 0;
}
