// SPDX-License-Identifier: Apache-2.0
// What is used of CUPTI, the tracing library of CUDA: own declarations. Records grow at their ends
// from version to version; of each this is the beginning, as it is from CUDA 12.0 on.
#ifndef KEEL_SRC_CAPTURE_CUDA_ABI_H_
#define KEEL_SRC_CAPTURE_CUDA_ABI_H_

#include <stddef.h>
#include <stdint.h>

enum {
    CUPTI_SUCCESS = 0,
    CUPTI_TAKEN = 39, // another one has subscribed
    CUPTI_OLDEST = 18,
    CUPTI_TOO_NEW = 140000,
    CUPTI_FLUSH_FORCED = 1,
};

typedef enum cupti_domain_t { CUPTI_DRIVER_API = 1, CUPTI_RUNTIME_API = 2 } cupti_domain_t;

typedef enum cupti_kind_t {
    CUPTI_KIND_COPY = 1,
    CUPTI_KIND_SET = 2,
    CUPTI_KIND_KERNEL = 10, // such that kernels may run beside each other
    CUPTI_KIND_PEER_COPY = 22,
    CUPTI_KIND_MEMORY = 49,
} cupti_kind_t;

// The alignment of 8 is what CUPTI packs its records to.
typedef struct cupti_record_t {
    uint32_t kind;
} cupti_record_t;

typedef struct cupti_kernel_t {
    uint32_t kind;
    uint8_t cache, shared;
    uint16_t registers;
    uint32_t partitioned[2];
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint32_t local_thread, local_total;
    uint32_t correlation;
    int64_t number;
    const char *name;
    void *reserved;
    uint64_t queued, submitted;
    uint8_t launch_type, carveout[2], padding;
    uint32_t shared_executed;
    uint64_t graph_node;
    uint32_t shared_limit;
    uint32_t graph;
} cupti_kernel_t;

// From CUPTI 11.1 on, copies and sets have what their graphs are at the same place.
typedef struct cupti_copy_t {
    uint32_t kind;
    uint8_t copy_kind, from_kind, to_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream;
    uint32_t correlation, runtime_correlation;
    uint32_t padding;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
} cupti_copy_t;

typedef struct cupti_peer_copy_t {
    uint32_t kind;
    uint8_t copy_kind, from_kind, to_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream;
    uint32_t from_device, from_context, to_device, to_context;
    uint32_t correlation;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
} cupti_peer_copy_t;

typedef struct cupti_set_t {
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream;
    uint32_t correlation;
    uint16_t flags, memory_kind;
    uint32_t padding;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
} cupti_set_t;

typedef struct cupti_memory_t {
    uint32_t kind;
    uint32_t operation; // cupti_memory_operation_t
    uint32_t memory_kind;
    uint32_t correlation;
    uint64_t address, bytes, time, place;
    uint32_t process, device, context, stream;
} cupti_memory_t;

enum { CUPTI_MEMORY_ALLOCATED = 1, CUPTI_MEMORY_RELEASED = 2 };
enum { CUPTI_MEMORY_DEVICE = 3, CUPTI_MEMORY_MANAGED = 5 };

typedef void (*cupti_request_fn)(uint8_t **buffer, size_t *size, size_t *record_limit);
typedef void (*cupti_complete_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                                  size_t used);

// What is told of a call at its beginning and at its end.
typedef enum cupti_site_t { CUPTI_CALL_BEGINS = 0, CUPTI_CALL_ENDS = 1 } cupti_site_t;
typedef struct cupti_call_t {
    uint32_t site; // cupti_site_t
    const char *name;
    const void *parameters;
    const int *result; // at the end
    const char *symbol;
    void *context;
    uint32_t context_number;
    uint64_t *shared; // by beginning and end
    uint32_t correlation;
} cupti_call_t;
typedef void (*cupti_callback_fn)(void *user, uint32_t domain, uint32_t function,
                                  const cupti_call_t *call);

#endif
