// SPDX-License-Identifier: Apache-2.0
// The part of HSA's runtime that facts use, declared here: handles are words of 8 bytes, and
// packets have the layout of HSA 1.1.
#ifndef TESTS_HARDWARE_FACTS_ROCM_HSA_H_
#define TESTS_HARDWARE_FACTS_ROCM_HSA_H_

#include "tests/hardware/facts/facts.h"

typedef struct hsa_handle_t {
    uint64_t handle;
} hsa_handle_t; // agent, signal, pool, executable, symbol, reader

typedef struct hsa_queue_t {
    uint32_t type, features;
    void *base_address;
    hsa_handle_t doorbell_signal;
    uint32_t size, reserved;
    uint64_t id;
} hsa_queue_t;

typedef struct hsa_dispatch_t {
    uint16_t header, setup, workgroup[3], reserved0;
    uint32_t grid[3], private_size, group_size;
    uint64_t kernel_object;
    void *kernarg;
    uint64_t reserved2;
    hsa_handle_t completion;
} hsa_dispatch_t;

typedef struct hsa_barrier_t {
    uint16_t header, reserved0;
    uint32_t reserved1;
    hsa_handle_t signals[5];
    uint64_t reserved2;
    hsa_handle_t completion;
} hsa_barrier_t;

_Static_assert(sizeof(hsa_dispatch_t) == 64 && sizeof(hsa_barrier_t) == 64, "packets");

enum {
    HSA_INVALID_ARGUMENT = 0x1001,
    HSA_NOT_INITIALIZED = 0x100b,
    HSA_INVALID_SYMBOL_NAME = 0x1013,
    HSA_ILLEGAL_INSTRUCTION = 42,
    HSA_SYSTEM_TIMESTAMP = 2,
    HSA_SYSTEM_TIMESTAMP_FREQUENCY = 3,
    HSA_AGENT_NAME = 0,
    HSA_AGENT_QUEUE_MAX_SIZE = 14,
    HSA_AGENT_DEVICE = 17,
    HSA_POOL_SEGMENT = 0,
    HSA_POOL_GLOBAL_FLAGS = 1,
    HSA_POOL_KERNARG = 1,
    HSA_POOL_FINE = 2,
    HSA_POOL_COARSE = 4,
    HSA_KERNEL_OBJECT = 22,
    HSA_KERNEL_KERNARG_SIZE = 11,
    HSA_KERNEL_GROUP_SIZE = 13,
    HSA_KERNEL_PRIVATE_SIZE = 14,
    HSA_BELOW = 2, // a condition of a wait
    HSA_PACKET_INVALID = 1,
    HSA_PACKET_DISPATCH = 2,
    HSA_PACKET_BARRIER_AND = 3,
    HSA_PACKET_BARRIER_OR = 5,
    HSA_PACKET_BARRIER_BIT = 1 << 8,
    HSA_PACKET_FENCES = 2 << 9 | 2 << 11, // acquire and release for the system
};

typedef int (*hsa_agent_fn)(hsa_handle_t agent, void *user);
typedef int (*hsa_pool_fn)(hsa_handle_t pool, void *user);
typedef void (*hsa_queue_fn)(int status, hsa_queue_t *queue, void *user);
typedef bool (*hsa_signal_fn)(int64_t value, void *user);

#define HSA_FUNCTIONS(F)                                                                           \
    F(int, hsa_init, (void))                                                                       \
    F(int, hsa_shut_down, (void))                                                                  \
    F(int, hsa_system_get_info, (int, void *))                                                     \
    F(int, hsa_iterate_agents, (hsa_agent_fn, void *))                                             \
    F(int, hsa_agent_get_info, (hsa_handle_t, int, void *))                                        \
    F(int, hsa_amd_agent_iterate_memory_pools, (hsa_handle_t, hsa_pool_fn, void *))                \
    F(int, hsa_amd_memory_pool_get_info, (hsa_handle_t, int, void *))                              \
    F(int, hsa_amd_memory_pool_allocate, (hsa_handle_t, size_t, uint32_t, void **))                \
    F(int, hsa_amd_memory_pool_free, (void *))                                                     \
    F(int, hsa_amd_agents_allow_access,                                                            \
      (uint32_t, const hsa_handle_t *, const uint32_t *, const void *))                            \
    F(int, hsa_amd_memory_lock, (void *, size_t, hsa_handle_t *, int, void **))                    \
    F(int, hsa_amd_memory_unlock, (void *))                                                        \
    F(int, hsa_amd_memory_async_copy,                                                              \
      (void *, hsa_handle_t, const void *, hsa_handle_t, size_t, uint32_t, const hsa_handle_t *,   \
       hsa_handle_t))                                                                              \
    F(int, hsa_signal_create, (int64_t, uint32_t, const hsa_handle_t *, hsa_handle_t *))           \
    F(int, hsa_signal_destroy, (hsa_handle_t))                                                     \
    F(int64_t, hsa_signal_load_scacquire, (hsa_handle_t))                                          \
    F(void, hsa_signal_store_screlease, (hsa_handle_t, int64_t))                                   \
    F(void, hsa_signal_subtract_screlease, (hsa_handle_t, int64_t))                                \
    F(int64_t, hsa_signal_wait_scacquire, (hsa_handle_t, int, int64_t, uint64_t, int))             \
    F(int, hsa_amd_signal_async_handler, (hsa_handle_t, int, int64_t, hsa_signal_fn, void *))      \
    F(int, hsa_queue_create,                                                                       \
      (hsa_handle_t, uint32_t, uint32_t, hsa_queue_fn, void *, uint32_t, uint32_t,                 \
       hsa_queue_t **))                                                                            \
    F(int, hsa_queue_destroy, (hsa_queue_t *))                                                     \
    F(uint64_t, hsa_queue_add_write_index_relaxed, (const hsa_queue_t *, uint64_t))                \
    F(uint64_t, hsa_queue_load_read_index_scacquire, (const hsa_queue_t *))                        \
    F(int, hsa_amd_profiling_set_profiler_enabled, (hsa_queue_t *, int))                           \
    F(int, hsa_amd_profiling_get_dispatch_time, (hsa_handle_t, hsa_handle_t, uint64_t *))          \
    F(int, hsa_code_object_reader_create_from_file, (int, hsa_handle_t *))                         \
    F(int, hsa_executable_create_alt, (int, int, const char *, hsa_handle_t *))                    \
    F(int, hsa_executable_load_agent_code_object,                                                  \
      (hsa_handle_t, hsa_handle_t, hsa_handle_t, const char *, hsa_handle_t *))                    \
    F(int, hsa_executable_freeze, (hsa_handle_t, const char *))                                    \
    F(int, hsa_executable_get_symbol_by_name,                                                      \
      (hsa_handle_t, const char *, const hsa_handle_t *, hsa_handle_t *))                          \
    F(int, hsa_executable_symbol_get_info, (hsa_handle_t, int, void *))

typedef struct hsa_t {
#define HSA_MEMBER(result, name, parameters) result(*name) parameters;
    HSA_FUNCTIONS(HSA_MEMBER)
#undef HSA_MEMBER
} hsa_t;

#endif
