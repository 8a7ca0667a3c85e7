// SPDX-License-Identifier: Apache-2.0
#include "graphs/env.h"
#include "graphs/stage.h"

#include <string.h>

extern const unsigned char keel_embed_graph_kernels[];
extern const uint64_t keel_embed_graph_kernels_size;
extern const unsigned char keel_embed_graph_host_kernels[];
extern const uint64_t keel_embed_graph_host_kernels_size;

// A plain queue, an urgent one, one for transfers, and a slow one on the last node.
keel_status_t env_queues(const env_device_t *device, keel_queue_t **queues)
{
    const keel_caps_t *caps = keel_device_caps(device->device);
    keel_queue_options_t options[MAX_QUEUES] = {
        [0] = {.name = "plain"},
        [1] = {.priority = caps->max_priority, .name = "urgent"},
        [TRANSFER_QUEUE] = {.name = "transfer"},
        [3] = {.priority = caps->min_priority, .node = caps->nodes - 1, .name = "slow"},
    };
    if (caps->queue_families & 1u << KEEL_QUEUE_TRANSFER)
        options[TRANSFER_QUEUE].family = KEEL_QUEUE_TRANSFER;
    for (size_t i = 0; i < MAX_QUEUES; i++)
        if (!queues[i]) KEEL_TRY(keel_queue_create(device->device, &options[i], &queues[i]));
    return NULL;
}

static keel_status_t pools_open(env_device_t *device)
{
    keel_pool_options_t options[POOLS] = {
        [0] = {.name = "first"},
        [1] = {.name = "any size"},
        [2] = {.name = "blocks", .block_size = SPACE_SIZE},
        [TIGHT_POOL] = {.name = "tight", .block_size = SPACE_SIZE, .limit = SPACE_SIZE},
    };
    if (!(keel_device_caps(device->device)->bits & KEEL_CAP_QUEUE_ALLOCA)) return NULL;
    for (size_t i = 0; i < POOLS; i++) {
        options[i].memory = stage_memory(device, i);
        KEEL_TRY(keel_pool_create(device->device, &options[i], &device->pools[i]));
    }
    return NULL;
}

static keel_status_t kernels_load(env_device_t *device)
{
    keel_executable_options_t options = {.data = keel_embed_graph_kernels,
                                         .size = (size_t)keel_embed_graph_kernels_size,
                                         .name = "graph kernels"};
    keel_executable_options_t of_host = {.data = keel_embed_graph_host_kernels,
                                         .size = (size_t)keel_embed_graph_host_kernels_size,
                                         .name = "graph kernels of the host"};
    KEEL_TRY(keel_executable_load(device->device, &options, &device->executable));
    if (keel_device_caps(device->device)->bits & KEEL_CAP_KERNEL_STATUS)
        KEEL_TRY(keel_executable_load(device->device, &of_host, &device->host_executable));
    for (size_t i = 0; i < OP_KINDS; i++) {
        keel_executable_t *from = i == OP_ABORT ? device->host_executable : device->executable;
        if (op_infos[i].traits & TRAIT_KERNEL && from)
            KEEL_TRY(keel_executable_entry(from, op_infos[i].name, &device->entries[i]));
    }
    return NULL;
}

static keel_status_t device_open(env_device_t *device, const char *uri)
{
    KEEL_TRY(keel_device_open(uri, NULL, &device->device));
    if (!(keel_device_caps(device->device)->bits & KEEL_CAP_EXECUTES))
        return KEEL_ERROR(KEEL_UNSUPPORTED, "%s executes nothing: there is nothing to compare",
                          uri);
    device->queues[0] = keel_queue_retain(keel_device_queue(device->device, 0));
    KEEL_TRY(env_queues(device, device->queues));
    KEEL_TRY(stage_open(device));
    KEEL_TRY(pools_open(device));
    return kernels_load(device);
}

keel_status_t env_open(env_t *env, const char *const *uris, size_t count)
{
    keel_status_t status = NULL;
    memset(env, 0, sizeof *env);
    while (!status && env->count < count) {
        pthread_mutex_init(&env->devices[env->count].stage_mutex, NULL);
        status = device_open(&env->devices[env->count], uris[env->count]);
        env->count++;
    }
    if (status) env_close(env);
    return status;
}

void env_close(env_t *env)
{
    for (size_t i = 0; i < env->count; i++) {
        env_device_t *device = &env->devices[i];
        stage_close(device);
        keel_executable_release(device->executable);
        keel_executable_release(device->host_executable);
        for (size_t j = 0; j < POOLS; j++) keel_pool_release(device->pools[j]);
        for (size_t j = 0; j < MAX_QUEUES; j++) keel_queue_release(device->queues[j]);
        keel_device_release(device->device);
    }
    memset(env, 0, sizeof *env);
}

void env_traits(const env_t *env, device_traits_t *traits)
{
    for (size_t i = 0; i < env->count; i++) {
        const keel_caps_t *caps = keel_device_caps(env->devices[i].device);
        traits[i].uri = keel_device_info(env->devices[i].device)->uri;
        traits[i].nodes = (uint8_t)caps->nodes;
        traits[i].bits = caps->bits;
    }
}
