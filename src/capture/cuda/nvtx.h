// SPDX-License-Identifier: Apache-2.0
// What is used of NVTX, by which applications mark what they do: own declarations. Each library
// that uses it has its own copy of it, which asks the library that NVTX_INJECTION64_PATH names, at
// the first mark, to put its functions into tables.
#ifndef KEEL_SRC_CAPTURE_CUDA_NVTX_H_
#define KEEL_SRC_CAPTURE_CUDA_NVTX_H_

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum { NVTX_TABLE_CALLBACKS = 1, NVTX_MODULE_CORE = 1, NVTX_MODULE_DOMAINS = 5 };

typedef void (*nvtx_fn)(void);

typedef struct nvtx_callbacks_t {
    size_t size;
    // A table of pointers to places of functions, some NULL, and how many. 1 is success.
    int (*get_table)(uint32_t module, nvtx_fn ***table, unsigned *count);
} nvtx_callbacks_t;
typedef const void *(*nvtx_export_fn)(uint32_t table);

// Places in the table of the core, and in that of domains.
enum {
    NVTX_MARK_EX = 1,
    NVTX_MARK_A,
    NVTX_MARK_W,
    NVTX_RANGE_START_EX,
    NVTX_RANGE_START_A,
    NVTX_RANGE_START_W,
    NVTX_RANGE_END,
    NVTX_RANGE_PUSH_EX,
    NVTX_RANGE_PUSH_A,
    NVTX_RANGE_PUSH_W,
    NVTX_RANGE_POP,
};
enum {
    NVTX_DOMAIN_MARK_EX = 1,
    NVTX_DOMAIN_RANGE_START_EX,
    NVTX_DOMAIN_RANGE_END,
    NVTX_DOMAIN_RANGE_PUSH_EX,
    NVTX_DOMAIN_RANGE_POP,
    NVTX_DOMAIN_REGISTER_A = 10,
    NVTX_DOMAIN_REGISTER_W,
    NVTX_DOMAIN_CREATE_A,
    NVTX_DOMAIN_CREATE_W,
};

enum { NVTX_TEXT = 1, NVTX_WIDE_TEXT = 2, NVTX_REGISTERED = 3 };
typedef struct nvtx_attributes_t {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    union {
        const char *text;
        const wchar_t *wide;
        void *registered;
    } message;
} nvtx_attributes_t;

#endif
