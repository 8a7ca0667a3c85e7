// SPDX-License-Identifier: Apache-2.0
// libhsa-runtime64 as this driver knows it: the part of its interface that is used, under the
// vendor's own names, and the table of its functions. No header of the vendor's is needed to build;
// a test compares this file with the real ones where they are installed.
#ifndef KEEL_SRC_DRIVERS_AMDGPU_HOST_BASE_SYMBOLS_H_
#define KEEL_SRC_DRIVERS_AMDGPU_HOST_BASE_SYMBOLS_H_

#include <keel/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hsa_agent_s {
    uint64_t handle;
} hsa_agent_t;
typedef struct hsa_isa_s {
    uint64_t handle;
} hsa_isa_t;
typedef struct hsa_signal_s {
    uint64_t handle;
} hsa_signal_t;
typedef struct hsa_amd_memory_pool_s {
    uint64_t handle;
} hsa_amd_memory_pool_t;
typedef struct hsa_code_object_reader_s {
    uint64_t handle;
} hsa_code_object_reader_t;
typedef struct hsa_executable_s {
    uint64_t handle;
} hsa_executable_t;
typedef struct hsa_loaded_code_object_s {
    uint64_t handle;
} hsa_loaded_code_object_t;
typedef struct hsa_executable_symbol_s {
    uint64_t handle;
} hsa_executable_symbol_t;
typedef int64_t hsa_signal_value_t;
typedef uint32_t hsa_queue_type32_t;

typedef enum {
    HSA_STATUS_SUCCESS = 0,
    HSA_STATUS_INFO_BREAK = 0x1,
    HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION = 0x29,
    HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION = 0x2a,
    HSA_STATUS_ERROR_MEMORY_FAULT = 0x2b,
    HSA_STATUS_ERROR = 0x1000,
    HSA_STATUS_ERROR_INVALID_ARGUMENT = 0x1001,
    HSA_STATUS_ERROR_INVALID_ALLOCATION = 0x1003,
    HSA_STATUS_ERROR_OUT_OF_RESOURCES = 0x1008,
    HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS = 0x100d,
    HSA_STATUS_ERROR_INVALID_ISA = 0x100f,
    HSA_STATUS_ERROR_INVALID_CODE_OBJECT = 0x1010,
    HSA_STATUS_ERROR_INVALID_SYMBOL_NAME = 0x1013,
    HSA_STATUS_ERROR_VARIABLE_UNDEFINED = 0x1015,
    HSA_STATUS_ERROR_EXCEPTION = 0x1016,
    HSA_STATUS_ERROR_INVALID_ISA_NAME = 0x1017,
    HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER = 0x1021,
} hsa_status_t;

typedef enum {
    HSA_SYSTEM_INFO_VERSION_MAJOR = 0,
    HSA_SYSTEM_INFO_VERSION_MINOR = 1,
    HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY = 3,
    HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED = 0x204, // ROCm 5.6 and later
} hsa_system_info_t;

// Those of AMD's are of another type in its header, which the function takes as well.
typedef enum {
    HSA_AGENT_INFO_NAME = 0,
    HSA_AGENT_INFO_WAVEFRONT_SIZE = 0x6,
    HSA_AGENT_INFO_WORKGROUP_MAX_DIM = 0x7,
    HSA_AGENT_INFO_WORKGROUP_MAX_SIZE = 0x8,
    HSA_AGENT_INFO_GRID_MAX_DIM = 0x9,
    HSA_AGENT_INFO_QUEUE_MAX_SIZE = 0xe,
    HSA_AGENT_INFO_DEVICE = 0x11,
    HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT = 0xa002,
    HSA_AMD_AGENT_INFO_BDFID = 0xa006,
    HSA_AMD_AGENT_INFO_PRODUCT_NAME = 0xa009,
    HSA_AMD_AGENT_INFO_DOMAIN = 0xa00f,
    HSA_AMD_AGENT_INFO_UUID = 0xa011,
    HSA_AMD_AGENT_INFO_MEMORY_AVAIL = 0xa015, // ROCm 5.3 and later, as the next
    HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY = 0xa016,
} hsa_agent_info_t;

typedef enum { HSA_DEVICE_TYPE_CPU = 0, HSA_DEVICE_TYPE_GPU = 1 } hsa_device_type_t;
typedef enum { HSA_ISA_INFO_NAME_LENGTH = 0, HSA_ISA_INFO_NAME = 1 } hsa_isa_info_t;

typedef enum {
    HSA_AMD_MEMORY_POOL_INFO_SEGMENT = 0,
    HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS = 1,
    HSA_AMD_MEMORY_POOL_INFO_SIZE = 2,
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED = 5,
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE = 18, // ROCm 6 and later
} hsa_amd_memory_pool_info_t;

typedef enum {
    HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS = 0,
    HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS = 1,
    HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO = 2, // an array, one of the next for each hop
} hsa_amd_agent_memory_pool_info_t;
typedef struct hsa_amd_memory_pool_link_info_s {
    uint32_t min_latency;
    uint32_t max_latency;
    uint32_t min_bandwidth;
    uint32_t max_bandwidth;
    bool atomic_support_32bit;
    bool atomic_support_64bit;
    bool coherent_support;
    uint32_t link_type; // an enum
    uint32_t numa_distance;
} hsa_amd_memory_pool_link_info_t;
typedef enum { HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED = 0 } hsa_amd_memory_pool_access_t;
typedef enum { HSA_AMD_SEGMENT_GLOBAL = 0, HSA_AMD_SEGMENT_GROUP = 3 } hsa_amd_segment_t;

typedef enum {
    HSA_EXT_POINTER_TYPE_UNKNOWN = 0,
    HSA_EXT_POINTER_TYPE_HSA = 1,
    HSA_EXT_POINTER_TYPE_LOCKED = 2,
} hsa_amd_pointer_type_t;

// As in the oldest release; later ones go by `size`.
typedef struct hsa_amd_pointer_info_s {
    uint32_t size;
    hsa_amd_pointer_type_t type;
    void *agentBaseAddress;
    void *hostBaseAddress;
    size_t sizeInBytes;
    void *userData;
    hsa_agent_t agentOwner;
    uint32_t global_flags;
} hsa_amd_pointer_info_t;

enum {
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT = 1,
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED = 2,
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED = 4,
};

typedef enum {
    HSA_EXECUTABLE_SYMBOL_INFO_TYPE = 0,
    HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE = 9,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE = 11,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE = 13,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE = 14,
    HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS = 21,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT = 22,
} hsa_executable_symbol_info_t;

typedef enum { HSA_SYMBOL_KIND_VARIABLE = 0 } hsa_symbol_kind_t;
typedef enum { HSA_PROFILE_FULL = 1 } hsa_profile_t;
typedef enum { HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT = 0 } hsa_default_float_rounding_mode_t;
typedef enum { HSA_QUEUE_TYPE_MULTI = 0 } hsa_queue_type_t;
typedef enum { HSA_SIGNAL_CONDITION_LT = 2 } hsa_signal_condition_t;
typedef enum { HSA_WAIT_STATE_BLOCKED = 0 } hsa_wait_state_t;
typedef enum hsa_amd_queue_priority_s {
    HSA_AMD_QUEUE_PRIORITY_LOW = 0,
    HSA_AMD_QUEUE_PRIORITY_NORMAL = 1,
    HSA_AMD_QUEUE_PRIORITY_HIGH = 2,
} hsa_amd_queue_priority_t;

typedef enum hsa_amd_event_type_s { HSA_AMD_GPU_MEMORY_FAULT_EVENT = 0 } hsa_amd_event_type_t;

// Why memory could not be used: bits.
typedef enum {
    HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT = 1 << 0,
    HSA_AMD_MEMORY_FAULT_READ_ONLY = 1 << 1,
    HSA_AMD_MEMORY_FAULT_NX = 1 << 2,
    HSA_AMD_MEMORY_FAULT_HOST_ONLY = 1 << 3,
    HSA_AMD_MEMORY_FAULT_DRAMECC = 1 << 4,
    HSA_AMD_MEMORY_FAULT_IMPRECISE = 1 << 5,
    HSA_AMD_MEMORY_FAULT_SRAMECC = 1 << 6,
} hsa_amd_memory_fault_reason_t;

typedef struct hsa_amd_gpu_memory_fault_info_s {
    hsa_agent_t agent;
    uint64_t virtual_address;
    uint32_t fault_reason_mask;
} hsa_amd_gpu_memory_fault_info_t;

typedef struct hsa_amd_event_s {
    hsa_amd_event_type_t event_type;
    hsa_amd_gpu_memory_fault_info_t memory_fault; // in a union, for the other types
} hsa_amd_event_t;

typedef enum {
    HSA_PACKET_TYPE_INVALID = 1,
    HSA_PACKET_TYPE_KERNEL_DISPATCH = 2,
    HSA_PACKET_TYPE_BARRIER_AND = 3,
} hsa_packet_type_t;

// Where the fields of a packet's header begin.
typedef enum {
    HSA_PACKET_HEADER_TYPE = 0,
    HSA_PACKET_HEADER_BARRIER = 8,
    HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE = 9,
    HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE = 11,
} hsa_packet_header_t;

typedef enum {
    HSA_FENCE_SCOPE_NONE = 0,
    HSA_FENCE_SCOPE_AGENT = 1,
    HSA_FENCE_SCOPE_SYSTEM = 2,
} hsa_fence_scope_t;

typedef struct hsa_queue_s {
    hsa_queue_type32_t type;
    uint32_t features;
    void *base_address;
    hsa_signal_t doorbell_signal;
    uint32_t size;
    uint32_t reserved1;
    uint64_t id;
} hsa_queue_t;

typedef struct hsa_kernel_dispatch_packet_s {
    uint16_t header;
    uint16_t setup; // the number of dimensions
    uint16_t workgroup_size_x;
    uint16_t workgroup_size_y;
    uint16_t workgroup_size_z;
    uint16_t reserved0;
    uint32_t grid_size_x; // work-items
    uint32_t grid_size_y;
    uint32_t grid_size_z;
    uint32_t private_segment_size;
    uint32_t group_segment_size;
    uint64_t kernel_object;
    void *kernarg_address;
    uint64_t reserved2;
    hsa_signal_t completion_signal;
} hsa_kernel_dispatch_packet_t;

typedef struct hsa_barrier_and_packet_s {
    uint16_t header;
    uint16_t reserved0;
    uint32_t reserved1;
    hsa_signal_t dep_signal[5];
    uint64_t reserved2;
    hsa_signal_t completion_signal;
} hsa_barrier_and_packet_t;

typedef struct hsa_symbols_t {
    uint32_t version;  // of HSA: major, and minor in the low 16 bits
    bool tells_faults; // the driver is told of memory faults, and HSA does not end the process
    bool exports;      // memory, as dma-bufs
    bool rings_local;  // it was told to put rings of queues into memory of GPUs
#define SYMBOL(type, name, parameters) type(*name) parameters;
#define OPTIONAL                       SYMBOL
#include "drivers/amdgpu/host/base/symbols.def"
#undef OPTIONAL
#undef SYMBOL
} hsa_symbols_t;

// Opens libhsa-runtime64, at `path` or where the system keeps it, looks everything up and starts
// it, as library_open does (kit/library.h).
keel_status_t hsa_symbols_open(const char *path, const hsa_symbols_t **symbols) KEEL_MUST_USE;

// The error of a call, NULL for success. The only place where the vendor's errors become Keel's.
keel_status_t hsa_status_make(const hsa_symbols_t *symbols, hsa_status_t result,
                              const char *call) KEEL_COLD;

// Calls a function of the table by its name, for a status of Keel's.
#define HSA_CALL(symbols_, name, ...) hsa_status((symbols_), (symbols_)->name(__VA_ARGS__), #name)

static inline keel_status_t hsa_status(const hsa_symbols_t *symbols, hsa_status_t result,
                                       const char *call)
{
    if (__builtin_expect(result == HSA_STATUS_SUCCESS, 1)) return NULL;
    return hsa_status_make(symbols, result, call);
}

#endif
