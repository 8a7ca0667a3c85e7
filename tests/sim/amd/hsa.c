// SPDX-License-Identifier: Apache-2.0
#include "hsa.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

gpu_t hsa_gpus[HSA_GPU_MAX];
unsigned hsa_gpu_count;
hsa_agent_t hsa_cpu;
hsa_amd_memory_pool_t hsa_host_memory, hsa_kernarg_memory, hsa_coarse_memory;

enum { SIGNAL_MAX = 256 };
static hsa_signal_t signals[SIGNAL_MAX];
static unsigned signal_count;

void check_status(hsa_status_t status, const char *what, int line)
{
    if (status == HSA_STATUS_SUCCESS) return;
    const char *text = "?";
    hsa_status_string(status, &text);
    fprintf(stderr, "line %d: %s: %x %s\n", line, what, (unsigned)status, text);
    exit(1);
}

void check_true(bool good, const char *what, int line)
{
    if (good) return;
    fprintf(stderr, "line %d: not true: %s\n", line, what);
    exit(1);
}

static hsa_status_t agent_seen(hsa_agent_t agent, void *user)
{
    hsa_device_type_t type;
    HSA(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
    if (type == HSA_DEVICE_TYPE_CPU) hsa_cpu = agent;
    if (type == HSA_DEVICE_TYPE_GPU) hsa_gpus[hsa_gpu_count++].agent = agent;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t pool_seen(hsa_amd_memory_pool_t pool, void *user)
{
    hsa_amd_segment_t segment;
    uint32_t flags = 0;
    HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
    if (segment != HSA_AMD_SEGMENT_GLOBAL) return HSA_STATUS_SUCCESS;
    HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
    bool coarse = flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED;
    if (user) {
        if (coarse) *(hsa_amd_memory_pool_t *)user = pool; // newer runtimes have a fine one, too
    } else if (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT) {
        hsa_kernarg_memory = pool;
    } else if (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED) {
        hsa_host_memory = pool;
    } else {
        hsa_coarse_memory = pool;
    }
    return HSA_STATUS_SUCCESS;
}

static void code_load(gpu_t *gpu, const char *directory)
{
    char name[64], path[1024];
    HSA(hsa_agent_get_info(gpu->agent, HSA_AGENT_INFO_NAME, name));
    snprintf(path, sizeof path, "%s/%s-O2-queue.hsaco", directory, name);
    int file = open(path, O_RDONLY);
    CHECK(file >= 0);
    hsa_code_object_reader_t reader;
    HSA(hsa_code_object_reader_create_from_file(file, &reader));
    HSA(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL,
                                  &gpu->code));
    HSA(hsa_executable_load_agent_code_object(gpu->code, gpu->agent, reader, NULL, NULL));
    HSA(hsa_executable_freeze(gpu->code, NULL));
    HSA(hsa_code_object_reader_destroy(reader));
    close(file);
}

void hsa_open(const char *directory)
{
    HSA(hsa_init());
    HSA(hsa_iterate_agents(agent_seen, NULL));
    HSA(hsa_amd_agent_iterate_memory_pools(hsa_cpu, pool_seen, NULL));
    for (unsigned k = 0; k < hsa_gpu_count; k++) {
        gpu_t *gpu = &hsa_gpus[k];
        HSA(hsa_amd_agent_iterate_memory_pools(gpu->agent, pool_seen, &gpu->memory));
        code_load(gpu, directory);
    }
    CHECK(hsa_gpu_count > 0);
}

void hsa_close(void)
{
    for (unsigned k = 0; k < signal_count; k++) HSA(hsa_signal_destroy(signals[k]));
    for (unsigned k = 0; k < hsa_gpu_count; k++) HSA(hsa_executable_destroy(hsa_gpus[k].code));
    HSA(hsa_shut_down());
}

kernel_t kernel_find(const gpu_t *gpu, const char *name)
{
    hsa_executable_symbol_t symbol;
    kernel_t kernel;
    HSA(hsa_executable_get_symbol_by_name(gpu->code, name, &gpu->agent, &symbol));
    HSA(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
                                       &kernel.object));
    HSA(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE,
                                       &kernel.group_size));
    HSA(hsa_executable_symbol_get_info(
        symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, &kernel.private_size));
    HSA(hsa_executable_symbol_get_info(
        symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, &kernel.kernarg_size));
    return kernel;
}

void *memory_alloc(hsa_amd_memory_pool_t pool, size_t size)
{
    hsa_agent_t agents[HSA_GPU_MAX];
    void *memory;
    for (unsigned k = 0; k < hsa_gpu_count; k++) agents[k] = hsa_gpus[k].agent;
    HSA(hsa_amd_memory_pool_allocate(pool, size, 0, &memory));
    HSA(hsa_amd_agents_allow_access(hsa_gpu_count, agents, NULL, memory));
    return memory;
}

hsa_signal_t signal_make(int64_t value)
{
    CHECK(signal_count < SIGNAL_MAX);
    hsa_signal_t *signal = &signals[signal_count++];
    HSA(hsa_signal_create(value, 0, NULL, signal));
    return *signal;
}

void signal_wait(hsa_signal_t signal)
{
    uint64_t frequency;
    HSA(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency));
    CHECK(hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, 30 * frequency,
                                    HSA_WAIT_STATE_BLOCKED) < 1);
}

void copy_wait(void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent,
               size_t size)
{
    hsa_signal_t done = signal_make(1);
    HSA(hsa_amd_memory_async_copy(to, to_agent, from, from_agent, size, 0, NULL, done));
    signal_wait(done);
}

hsa_status_t queue_status;
hsa_signal_t queue_failed;

static void queue_error(hsa_status_t status, hsa_queue_t *queue, void *user)
{
    queue_status = status;
    hsa_signal_store_screlease(queue_failed, 0);
}

hsa_queue_t *queue_make(const gpu_t *gpu)
{
    hsa_queue_t *queue;
    if (!queue_failed.handle) queue_failed = signal_make(1);
    HSA(hsa_queue_create(gpu->agent, 64, HSA_QUEUE_TYPE_MULTI, queue_error, NULL, UINT32_MAX,
                         UINT32_MAX, &queue));
    return queue;
}

static bool tell_that_it_comes(hsa_signal_value_t value, void *comes)
{
    hsa_signal_store_screlease(*(const hsa_signal_t *)comes, 0);
    return false;
}

void failed_queue_destroy(hsa_queue_t *queue)
{
    hsa_signal_t now = signal_make(0), comes = signal_make(1);
    HSA(hsa_amd_signal_async_handler(now, HSA_SIGNAL_CONDITION_LT, 1, tell_that_it_comes, &comes));
    signal_wait(comes);
    HSA(hsa_queue_destroy(queue));
}

void others_pass(void)
{
    enum { KERNELS = 8 };
    hsa_queue_t *queue = queue_make(&hsa_gpus[0]);
    kernel_t kernel = kernel_find(&hsa_gpus[0], "set_word.kd");
    struct {
        uint32_t *word;
        uint32_t value;
    } arguments = {memory_alloc(hsa_host_memory, 4096), 1};
    for (unsigned k = 0; k < KERNELS; k++) {
        hsa_signal_t done = signal_make(1);
        dispatch_push(queue, &kernel, 1, &arguments, sizeof arguments, done);
        signal_wait(done);
    }
    HSA(hsa_queue_destroy(queue));
}

static FILE *kept_log;

void log_keep(void)
{
    kept_log = tmpfile();
    CHECK(kept_log != NULL && dup2(fileno(kept_log), STDERR_FILENO) == STDERR_FILENO);
}

bool log_wait(const char *text)
{
    static char kept[65536];
    for (unsigned k = 0; k < 1000; k++, usleep(10000)) {
        ssize_t length = pread(fileno(kept_log), kept, sizeof kept - 1, 0);
        kept[length < 0 ? 0 : length] = 0;
        if (strstr(kept, text)) return true;
    }
    printf("%s", kept);
    return false;
}

bool log_is_empty(void)
{
    char byte;
    return pread(fileno(kept_log), &byte, 1, 0) == 0;
}

static int run_one(const case_t *test, const char *directory)
{
    alarm(60);
    hsa_open(directory);
    test->run();
    hsa_close();
    return 0;
}

static int run_apart(const char *program, const char *directory, const case_t *test)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        if (test->environment) putenv((char *)test->environment);
        execl(program, program, directory, test->name, (char *)NULL);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

int cases_run(int argc, char **argv, const case_t *cases, unsigned count)
{
    unsigned bad = 0;
    if (argc != 2 && argc != 3) return 2;
    for (unsigned k = 0; k < count; k++) {
        if (argc == 3 && !strcmp(cases[k].name, argv[2])) return run_one(&cases[k], argv[1]);
        if (argc == 3) continue;
        int status = run_apart(argv[0], argv[1], &cases[k]);
        bool skipped = WIFEXITED(status) && WEXITSTATUS(status) == 77;
        if (status && !skipped) bad++;
        printf("%-14s %s (%x)\n", cases[k].name,
               !status   ? "ok"
               : skipped ? "skipped"
                         : "FAILED",
               (unsigned)status);
        fflush(stdout);
    }
    return bad != 0 || argc == 3;
}

void packet_push(hsa_queue_t *queue, const void *packet, uint16_t header)
{
    uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
    while (index - hsa_queue_load_read_index_scacquire(queue) >= queue->size) continue;
    uint8_t *slot = (uint8_t *)queue->base_address + 64 * (index & (queue->size - 1));
    memcpy(slot + 2, (const uint8_t *)packet + 2, 62);
    __atomic_store_n((uint16_t *)slot, header, __ATOMIC_RELEASE); // the packet is the engine's now
    hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
}

hsa_kernel_dispatch_packet_t dispatch_make(const kernel_t *kernel, uint32_t groups,
                                           const void *arguments, size_t size, hsa_signal_t done)
{
    void *kernarg = memory_alloc(hsa_kernarg_memory, kernel->kernarg_size + size);
    memcpy(kernarg, arguments, size);
    return (hsa_kernel_dispatch_packet_t){
        .header = DISPATCH_HEADER,
        .setup = 1,
        .workgroup_size_x = 64,
        .workgroup_size_y = 1,
        .workgroup_size_z = 1,
        .grid_size_x = 64 * groups,
        .grid_size_y = 1,
        .grid_size_z = 1,
        .private_segment_size = kernel->private_size,
        .group_segment_size = kernel->group_size,
        .kernel_object = kernel->object,
        .kernarg_address = kernarg,
        .completion_signal = done,
    };
}

void dispatch_push(hsa_queue_t *queue, const kernel_t *kernel, uint32_t groups,
                   const void *arguments, size_t size, hsa_signal_t done)
{
    const hsa_kernel_dispatch_packet_t packet =
        dispatch_make(kernel, groups, arguments, size, done);
    packet_push(queue, &packet, DISPATCH_HEADER);
}
