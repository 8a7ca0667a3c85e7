// SPDX-License-Identifier: Apache-2.0
// The slots of a vendor's table (stream_api_t), for code that treats all of them alike: each list
// calls SLOT(name, feature) for each slot of a part. An adaptor names its functions as the slots,
// and fills in a part by STREAM_FILL.
#ifndef KEEL_SRC_DRIVERS_STREAM_SLOTS_H_
#define KEEL_SRC_DRIVERS_STREAM_SLOTS_H_

#define STREAM_FILL(name, feature) api->name = name;

#define STREAM_DEVICE_SLOTS(SLOT)                                                                  \
    SLOT(enter, STREAM_REQUIRED)                                                                   \
    SLOT(leave, STREAM_REQUIRED)                                                                   \
    SLOT(close_device, STREAM_REQUIRED)                                                            \
    SLOT(memory, STREAM_REQUIRED)                                                                  \
    SLOT(stream_create, STREAM_REQUIRED)                                                           \
    SLOT(stream_destroy, STREAM_REQUIRED)                                                          \
    SLOT(stream_drain, STREAM_REQUIRED)                                                            \
    SLOT(event_create, STREAM_REQUIRED)                                                            \
    SLOT(event_destroy, STREAM_REQUIRED)                                                           \
    SLOT(event_record, STREAM_REQUIRED)                                                            \
    SLOT(event_query, STREAM_REQUIRED)                                                             \
    SLOT(event_sync, STREAM_REQUIRED)                                                              \
    SLOT(stream_wait, STREAM_REQUIRED)                                                             \
    SLOT(launch, STREAM_REQUIRED)                                                                  \
    SLOT(image_rank, STREAM_REQUIRED)                                                              \
    SLOT(module_load, STREAM_REQUIRED)                                                             \
    SLOT(module_unload, STREAM_REQUIRED)                                                           \
    SLOT(module_function, STREAM_REQUIRED)                                                         \
    SLOT(module_global, STREAM_REQUIRED)                                                           \
    SLOT(function_allow, STREAM_REQUIRED)                                                          \
    SLOT(builtin_image, STREAM_REQUIRED)                                                           \
    SLOT(builtin_names, STREAM_REQUIRED)

#define STREAM_MEMORY_SLOTS(SLOT)                                                                  \
    SLOT(alloc_device, STREAM_REQUIRED)                                                            \
    SLOT(free_device, STREAM_REQUIRED)                                                             \
    SLOT(alloc_host, STREAM_REQUIRED)                                                              \
    SLOT(free_host, STREAM_REQUIRED)                                                               \
    SLOT(allocation, STREAM_REQUIRED)                                                              \
    SLOT(host_address, STREAM_REQUIRED)                                                            \
    SLOT(host_register, STREAM_REQUIRED)                                                           \
    SLOT(host_unregister, STREAM_REQUIRED)                                                         \
    SLOT(fill, STREAM_REQUIRED)                                                                    \
    SLOT(copy, STREAM_REQUIRED)

#define STREAM_GRAPH_SLOTS(SLOT)                                                                   \
    SLOT(graph_create, STREAM_GRAPHS)                                                              \
    SLOT(graph_destroy, STREAM_GRAPHS)                                                             \
    SLOT(graph_launch, STREAM_GRAPHS)                                                              \
    SLOT(graph_copy, STREAM_GRAPHS)                                                                \
    SLOT(graph_fill, STREAM_GRAPHS)                                                                \
    SLOT(graph_join, STREAM_GRAPHS)                                                                \
    SLOT(graph_order, STREAM_GRAPHS)                                                               \
    SLOT(graph_instantiate, STREAM_GRAPHS)                                                         \
    SLOT(exec_destroy, STREAM_GRAPHS)                                                              \
    SLOT(exec_run, STREAM_GRAPHS)                                                                  \
    SLOT(exec_set_launch, STREAM_GRAPHS)                                                           \
    SLOT(exec_set_copy, STREAM_GRAPHS)                                                             \
    SLOT(exec_set_fill, STREAM_GRAPHS)                                                             \
    SLOT(exec_upload, STREAM_UPLOAD)

#define STREAM_PEER_SLOTS(SLOT)                                                                    \
    SLOT(peers, STREAM_PEERS)                                                                      \
    SLOT(copy_peer, STREAM_PEERS)

#define STREAM_MANAGED_SLOTS(SLOT) SLOT(alloc_managed, STREAM_MANAGED)

#define STREAM_POOL_SLOTS(SLOT)                                                                    \
    SLOT(pool_create, STREAM_POOLS)                                                                \
    SLOT(pool_destroy, STREAM_POOLS)                                                               \
    SLOT(pool_alloc, STREAM_POOLS)                                                                 \
    SLOT(pool_free, STREAM_POOLS)                                                                  \
    SLOT(pool_reserved, STREAM_POOLS)                                                              \
    SLOT(pool_trim, STREAM_POOLS)

#define STREAM_SHARED_SLOTS(SLOT)                                                                  \
    SLOT(shared_granularity, STREAM_SHARED)                                                        \
    SLOT(shared_create, STREAM_SHARED)                                                             \
    SLOT(shared_export, STREAM_SHARED)                                                             \
    SLOT(shared_import, STREAM_SHARED)                                                             \
    SLOT(shared_release, STREAM_SHARED)                                                            \
    SLOT(shared_reserve, STREAM_SHARED)                                                            \
    SLOT(shared_unreserve, STREAM_SHARED)                                                          \
    SLOT(shared_map, STREAM_SHARED)                                                                \
    SLOT(shared_unmap, STREAM_SHARED)

#define STREAM_OUTSIDE_SLOTS(SLOT)                                                                 \
    SLOT(beside, STREAM_OUTSIDE)                                                                   \
    SLOT(stream_call, STREAM_OUTSIDE)                                                              \
    SLOT(outside_import, STREAM_OUTSIDE)                                                           \
    SLOT(outside_destroy, STREAM_OUTSIDE)                                                          \
    SLOT(outside_signal, STREAM_OUTSIDE)                                                           \
    SLOT(outside_wait, STREAM_OUTSIDE)

#define STREAM_ARGUMENT_SLOTS(SLOT) SLOT(function_arguments, STREAM_ARGUMENTS)

#define STREAM_CONDITION_SLOTS(SLOT)                                                               \
    SLOT(graph_condition, STREAM_CONDITIONS)                                                       \
    SLOT(graph_branch, STREAM_CONDITIONS)

#define STREAM_UPDATABLE_SLOTS(SLOT) SLOT(graph_updatable, STREAM_UPDATABLE)

// All but `driver`.
#define STREAM_SLOTS(SLOT)                                                                         \
    STREAM_DEVICE_SLOTS(SLOT)                                                                      \
    STREAM_MEMORY_SLOTS(SLOT)                                                                      \
    STREAM_GRAPH_SLOTS(SLOT)                                                                       \
    STREAM_PEER_SLOTS(SLOT)                                                                        \
    STREAM_MANAGED_SLOTS(SLOT)                                                                     \
    STREAM_POOL_SLOTS(SLOT)                                                                        \
    STREAM_SHARED_SLOTS(SLOT)                                                                      \
    STREAM_OUTSIDE_SLOTS(SLOT)                                                                     \
    STREAM_ARGUMENT_SLOTS(SLOT)                                                                    \
    STREAM_CONDITION_SLOTS(SLOT)                                                                   \
    STREAM_UPDATABLE_SLOTS(SLOT)

#endif
