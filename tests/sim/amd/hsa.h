// SPDX-License-Identifier: Apache-2.0
// A GPU through ROCm's own runtime, for tests: everything that fails ends the program with a
// message.
#ifndef TESTS_SIM_AMD_HSA_H_
#define TESTS_SIM_AMD_HSA_H_

#define LITTLEENDIAN_CPU 1 // <hsa/hsa.h> knows no aarch64
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdbool.h>

typedef struct {
    hsa_agent_t agent;
    hsa_amd_memory_pool_t memory;
    hsa_executable_t code;
} gpu_t;

typedef struct {
    uint64_t object;
    uint32_t group_size, private_size, kernarg_size;
} kernel_t;

enum { HSA_GPU_MAX = 8 };
extern gpu_t hsa_gpus[HSA_GPU_MAX];
extern unsigned hsa_gpu_count;
extern hsa_agent_t hsa_cpu;
extern hsa_amd_memory_pool_t hsa_host_memory, hsa_kernarg_memory; // fine-grained
extern hsa_amd_memory_pool_t hsa_coarse_memory;                   // of the host

void check_status(hsa_status_t status, const char *what, int line);
void check_true(bool good, const char *what, int line);
#define HSA(call)        check_status((call), #call, __LINE__)
#define CHECK(condition) check_true((condition), #condition, __LINE__)

// Starts the runtime and loads DIRECTORY/TARGET-O2-queue.hsaco on each GPU.
void hsa_open(const char *directory);
void hsa_close(void);

kernel_t kernel_find(const gpu_t *gpu, const char *name);
void *memory_alloc(hsa_amd_memory_pool_t pool, size_t size); // all GPUs may touch it
hsa_signal_t signal_make(int64_t value);                     // hsa_close destroys it
void signal_wait(hsa_signal_t signal); // until it is below 1, half a minute at most
void copy_wait(void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent,
               size_t size);

// A queue of 64 packets. When one fails, queue_failed becomes 0 and queue_status says why.
hsa_queue_t *queue_make(const gpu_t *gpu);
extern hsa_status_t queue_status;
extern hsa_signal_t queue_failed;
// Destroys it then, when the runtime's thread, which has told of it, has come to something else:
// while that still has the queue, hsa_queue_destroy may never return.
void failed_queue_destroy(hsa_queue_t *queue);

// Kernels of another queue run and end, one after the other: so could have what waits, if nothing
// held it back.
void others_pass(void);

// A test by itself: PROGRAM DIRECTORY NAME runs one, and PROGRAM DIRECTORY all, each in a process
// of its own, because some end badly on purpose. environment is NAME=VALUE or NULL. The value of
// main.
typedef struct {
    const char *name;
    void (*run)(void);
    const char *environment;
} case_t;
int cases_run(int argc, char **argv, const case_t *cases, unsigned count);

// From here on what goes to standard error is kept; log_wait waits, for some seconds, until it has
// a text in it.
void log_keep(void);
bool log_wait(const char *text);
bool log_is_empty(void);

// Puts a packet of 64 bytes, with this header, into the queue and rings.
void packet_push(hsa_queue_t *queue, const void *packet, uint16_t header);

// The same packet, to be pushed by another queue.
hsa_kernel_dispatch_packet_t dispatch_make(const kernel_t *kernel, uint32_t groups,
                                           const void *arguments, size_t size, hsa_signal_t done);
enum {
    DISPATCH_HEADER = HSA_PACKET_TYPE_KERNEL_DISPATCH | 1 << HSA_PACKET_HEADER_BARRIER |
                      HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                      HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE
};

// A dispatch over groups of 64 with these arguments; done may be 0. The arguments are copied.
void dispatch_push(hsa_queue_t *queue, const kernel_t *kernel, uint32_t groups,
                   const void *arguments, size_t size, hsa_signal_t done);

#endif
