// SPDX-License-Identifier: Apache-2.0
// compiled_test CONTAINER DIRECTORY: the kernels of the kernel language as `keel cc` made them,
// loaded and run by ROCm's own runtime on each GPU.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executable/container.h"
#include "hsa.h"
#include "language.h"

typedef struct user_t {
    gpu_t gpu; // with the code of the container
    hsa_queue_t *queue;
} user_t;

static void *shared_alloc(size_t size)
{
    return memory_alloc(hsa_host_memory, size);
}

static void shared_free(void *memory)
{
    HSA(hsa_amd_memory_pool_free(memory));
}

static bool launch(void *user, const char *symbol, const uint32_t groups[2],
                   const uint32_t group[2], const void *arguments, size_t size)
{
    user_t *u = user;
    kernel_t kernel = kernel_find(&u->gpu, symbol);
    hsa_signal_t done = signal_make(1);
    hsa_kernel_dispatch_packet_t packet = dispatch_make(&kernel, 1, arguments, size, done);
    packet.setup = 2;
    packet.workgroup_size_x = (uint16_t)group[0];
    packet.workgroup_size_y = (uint16_t)group[1];
    packet.grid_size_x = groups[0] * group[0];
    packet.grid_size_y = groups[1] * group[1];
    packet_push(u->queue, &packet, DISPATCH_HEADER);
    signal_wait(done);
    return true;
}

// The code object for a GPU, to be freed; NULL if the container has none.
static void *image_for(const char *path, const char *target, size_t *size)
{
    source_t source;
    container_t container;
    void *bytes = NULL;
    keel_status_t status = source_open(path, &source);
    if (!status) status = container_read(&source, &container);
    CHECK(!status);
    for (uint32_t i = 0; i < container.image_count && !bytes; i++) {
        if (strcmp(container.images[i].target, target) != 0) continue;
        *size = container.images[i].size;
        bytes = malloc(*size);
        CHECK(!container_image_read(&container, &source, i, bytes));
    }
    container_finish(&container);
    source_finish(&source);
    return bytes;
}

static hsa_executable_t code_load(hsa_agent_t agent, const void *bytes, size_t size)
{
    hsa_code_object_reader_t reader;
    hsa_executable_t code;
    HSA(hsa_code_object_reader_create_from_memory(bytes, size, &reader));
    HSA(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL,
                                  &code));
    HSA(hsa_executable_load_agent_code_object(code, agent, reader, NULL, NULL));
    HSA(hsa_executable_freeze(code, NULL));
    HSA(hsa_code_object_reader_destroy(reader));
    return code;
}

// Returns how much is wrong, or -1 if there is no code for it.
static int gpu_try(const gpu_t *gpu, const char *path)
{
    char target[64];
    size_t size;
    HSA(hsa_agent_get_info(gpu->agent, HSA_AGENT_INFO_NAME, target));
    void *bytes = image_for(path, target, &size);
    if (!bytes) return -1;
    user_t user = {*gpu, queue_make(gpu)};
    user.gpu.code = code_load(gpu->agent, bytes, size);
    int wrong = (int)language_run(&(language_gpu_t){shared_alloc, shared_free, launch, &user});
    printf("%s: %d wrong\n", target, wrong);
    HSA(hsa_queue_destroy(user.queue));
    HSA(hsa_executable_destroy(user.gpu.code));
    free(bytes);
    return wrong;
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    hsa_open(argv[2]);
    int wrong = 0, missing = 0;
    for (unsigned k = 0; k < hsa_gpu_count; k++) {
        int here = gpu_try(&hsa_gpus[k], argv[1]);
        missing |= here < 0;
        wrong += here > 0 ? here : 0;
    }
    hsa_close();
    if (missing) printf("%s has no code for one of the GPUs\n", argv[1]);
    return wrong ? 1 : missing ? 77 : 0;
}
