// SPDX-License-Identifier: Apache-2.0
// A vendor's calls, as raw.c makes them. All return 0, or the vendor's error. Handles are pointers
// and addresses numbers, whatever the vendor's header says of them: both are passed alike.
#ifndef BENCH_RAW_VENDOR_H_
#define BENCH_RAW_VENDOR_H_

#include "raw.h"

typedef void *object_t; // module, function, stream, event, graph, node, instance, pool

enum {
    RAW_NOT_READY = 600,
    RAW_STREAM_NON_BLOCKING = 1,
    RAW_EVENT_BLOCKING = 1,
    RAW_EVENT_NO_TIMING = 2,
    RAW_POOL_THRESHOLD = 4,
    RAW_HOST_PORTABLE = 1,
};

typedef enum raw_copy_t { RAW_TO_DEVICE = 1, RAW_TO_HOST = 2, RAW_WITHIN = 3 } raw_copy_t;

// Which calls, and what they take: CALL(name, parameters).
#define RAW_CALLS(CALL)                                                                            \
    CALL(module_load, (object_t *, const void *))                                                  \
    CALL(module_unload, (object_t))                                                                \
    CALL(module_function, (object_t *, object_t, const char *))                                    \
    CALL(stream_create, (object_t *, uint32_t, int))                                               \
    CALL(stream_destroy, (object_t))                                                               \
    CALL(stream_sync, (object_t))                                                                  \
    CALL(stream_wait, (object_t, object_t, uint32_t))                                              \
    CALL(event_create, (object_t *, uint32_t))                                                     \
    CALL(event_destroy, (object_t))                                                                \
    CALL(event_record, (object_t, object_t))                                                       \
    CALL(event_query, (object_t))                                                                  \
    CALL(event_sync, (object_t))                                                                   \
    CALL(launch, (object_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,  \
                  object_t, void **, void **))                                                     \
    CALL(graph_create, (object_t *, uint32_t))                                                     \
    CALL(graph_destroy, (object_t))                                                                \
    CALL(graph_instantiate, (object_t *, object_t, uint64_t))                                      \
    CALL(exec_destroy, (object_t))                                                                 \
    CALL(graph_launch, (object_t, object_t))                                                       \
    CALL(alloc, (uint64_t *, size_t))                                                              \
    CALL(free, (uint64_t))                                                                         \
    CALL(host_alloc, (void **, size_t, uint32_t))                                                  \
    CALL(host_free, (void *))                                                                      \
    CALL(fill, (uint64_t, uint32_t, size_t, object_t))

// These may be missing, or the device may not have what they are for.
#define RAW_POOL_CALLS(CALL)                                                                       \
    CALL(default_pool, (object_t *, int))                                                          \
    CALL(pool_set, (object_t, int, void *))                                                        \
    CALL(pool_alloc, (uint64_t *, size_t, object_t))                                               \
    CALL(pool_free, (uint64_t, object_t))

typedef struct raw_vendor_t {
#define RAW_POINTER(name, parameters) int(*name) parameters;
    RAW_CALLS(RAW_POINTER)
    RAW_POOL_CALLS(RAW_POINTER)
#undef RAW_POINTER
    bool pools;
    bool updates; // kernels change nodes of a graph
    int ordinal;  // of the device
    // Makes the device the thread's; any thread.
    int (*enter)(void);
    int (*copy)(raw_copy_t kind, uint64_t target, uint64_t source, size_t size, object_t stream);
    // A kernel with a block of arguments, behind `after` if that is not NULL; other arguments.
    int (*node_add)(object_t *node, object_t graph, const object_t *after, object_t function,
                    void *block);
    int (*node_set)(object_t exec, object_t node, object_t function, void *block);
} raw_vendor_t;

// Finds the calls, once in a process, and opens the device of that number. KEEL_UNSUPPORTED without
// such a one.
keel_status_t raw_cuda(int ordinal, const raw_vendor_t **vendor) KEEL_MUST_USE;
keel_status_t raw_hip(int ordinal, const raw_vendor_t **vendor) KEEL_MUST_USE;

// Looks functions of a library up: names of the vendor's and where they go, ended by NULL. Returns
// the first that is missing; NULL: none is.
typedef struct raw_symbol_t {
    const char *name;
    void *place; // of a pointer to a function
} raw_symbol_t;
const char *raw_symbols_find(void *library, const raw_symbol_t *symbols);

#endif
