// SPDX-License-Identifier: Apache-2.0
// What of ROCm's runtime (ROCR) a tool needs, declared anew: AMD's header for tools is C++, and it
// describes one version, while this library meets them all.
#ifndef KEEL_SRC_CAPTURE_HSA_ABI_H_
#define KEEL_SRC_CAPTURE_HSA_ABI_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Handles are structs of one 64-bit number there, which are passed as the number is.
typedef uint64_t hsa_agent_t, hsa_signal_t, hsa_executable_t, hsa_symbol_t;

// 0: success.
typedef uint32_t hsa_status_t;

typedef struct hsa_queue_t {
    uint32_t type, features;
    void *base;
    hsa_signal_t doorbell;
    uint32_t size, reserved;
    uint64_t id;
} hsa_queue_t;

typedef struct hsa_time_t {
    uint64_t start, end; // ticks of the system's clock
} hsa_time_t;

enum {
    HSA_SYSTEM_TIMESTAMP_FREQUENCY = 3,
    HSA_AGENT_NAME = 0,
    HSA_AGENT_DEVICE = 17,
    HSA_DEVICE_GPU = 1,
    HSA_SYMBOL_TYPE = 0,
    HSA_SYMBOL_NAME_LENGTH = 1,
    HSA_SYMBOL_NAME = 2,
    HSA_SYMBOL_KERNEL_OBJECT = 22,
    HSA_SYMBOL_IS_KERNEL = 1,
    HSA_SIGNAL_GPU_ONLY = 1, // completing it raises no interrupt
};

// A packet of a queue. Of all kinds the first two bytes are the header and the last eight the
// completion signal.
typedef struct hsa_packet_t {
    uint16_t header, setup;
    uint16_t group[3], reserved;
    uint32_t grid[3];
    uint32_t private_size, group_size;
    uint64_t kernel, arguments, reserved2;
    hsa_signal_t signal;
} hsa_packet_t;
_Static_assert(sizeof(hsa_packet_t) == 64, "a packet has 64 bytes");

// The header: a type in the lower byte, the barrier bit, and the scopes of two fences.
enum {
    HSA_PACKET_INVALID = 1,
    HSA_PACKET_DISPATCH = 2,
    HSA_PACKET_BARRIER_AND = 3,
    HSA_HEADER_TYPE = 0xff,
    HSA_HEADER_BARRIER = 1 << 8,
    HSA_HEADER_RELEASE = 3 << 11,
};

typedef void (*hsa_writer_fn)(const void *packets, uint64_t count);
typedef void (*hsa_packets_fn)(const void *packets, uint64_t count, uint64_t index, void *data,
                               hsa_writer_fn writer);
typedef void (*hsa_error_fn)(hsa_status_t status, hsa_queue_t *queue, void *data);
typedef hsa_status_t (*hsa_agent_fn)(hsa_agent_t agent, void *data);
typedef hsa_status_t (*hsa_symbol_fn)(hsa_executable_t executable, hsa_symbol_t symbol, void *data);

// A function with parameters that one of these lists has: the runtime's longer ones, and ours in
// their place.
#define HSA_FUNCTION(name, parameters) hsa_status_t name parameters
#define HSA_QUEUE_CREATE                                                                           \
    (hsa_agent_t agent, uint32_t size, uint32_t type, hsa_error_fn error, void *data,              \
     uint32_t private_size, uint32_t group_size, hsa_queue_t **queue)
#define HSA_COPY                                                                                   \
    (void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent, size_t size,        \
     uint32_t wait_count, const hsa_signal_t *waits, hsa_signal_t signal)
#define HSA_COPY_ON_ENGINE                                                                         \
    (void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent, size_t size,        \
     uint32_t wait_count, const hsa_signal_t *waits, hsa_signal_t signal, uint32_t engine,         \
     bool force)
#define HSA_COPY_RECT                                                                              \
    (const void *to, const void *to_offset, const void *from, const void *from_offset,             \
     const uint32_t range[3], hsa_agent_t agent, uint32_t direction, uint32_t wait_count,          \
     const hsa_signal_t *waits, hsa_signal_t signal)

typedef void (*hsa_fn)(void);
typedef struct hsa_version_t {
    uint32_t major, size, step, reserved; // size: of the whole table, in bytes
} hsa_version_t;
typedef struct hsa_table_t {
    hsa_version_t version;
    hsa_fn slots[];
} hsa_table_t;
typedef struct hsa_tables_t {
    hsa_version_t version;
    hsa_table_t *core, *amd; // others follow
} hsa_tables_t;

#endif
