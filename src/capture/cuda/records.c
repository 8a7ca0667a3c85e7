// SPDX-License-Identifier: Apache-2.0
#include "capture/cuda/records.h"

#include <string.h>

#include "capture/cuda/calls.h"
#include "capture/cuda/cupti.h"
#include "capture/cuda/streams.h"
#include "trace/name.h"
#include "trace/trace.h"

static uint32_t clock_number; // trace_device_clock_t
static double memory[64];     // bytes in use of each device

void records_begin(uint32_t clock)
{
    clock_number = TRACE_DEVICE_NS + clock;
}

// What a GPU did.
typedef struct work_t {
    trace_op_t op;
    uint32_t name;
    uint64_t start, end;
    stream_key_t stream;
    uint32_t correlation, graph;
    uint64_t graph_node;
} work_t;

// The record to be filled with what the operation was and to be put; NULL: it is lost, or was not
// over when CUPTI had to give it.
static trace_record_t *work_take(const work_t *work)
{
    uint32_t queue = streams_queue(work->stream);
    if (!work->end) {
        trace_lose_many(1);
        return NULL;
    }
    if (work->graph_node) {
        trace_record_t *node = trace_take_always();
        if (!node) return NULL;
        node->id = work->graph_node;
        node->submission = work->graph;
        trace_put(node, TRACE_NODE);
    }
    trace_record_t *record = trace_take_always();
    if (!record) return NULL;
    record->flags = trace_flags(work->op, clock_number);
    record->name = work->name;
    record->start = work->start;
    record->end = work->end;
    record->id = queue;
    record->submission = work->correlation ? calls_number(work->correlation) : 0;
    return record;
}

// Of one dimension; of more than can be told, as many as can be.
static uint32_t items(int32_t groups, int32_t size)
{
    uint64_t count = (uint64_t)(uint32_t)groups * (uint32_t)size;
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

// What records of kernels, copies and sets have in common.
#define WORK(op_, of)                                                                              \
    (work_t)                                                                                       \
    {                                                                                              \
        .op = (op_), .start = (of)->start, .end = (of)->end,                                       \
        .stream = {(of)->device, (of)->context, (of)->stream}, .correlation = (of)->correlation,   \
        .graph = (of)->graph, .graph_node = (of)->graph_node                                       \
    }

static void add_kernel(const cupti_kernel_t *kernel)
{
    work_t work = WORK(TRACE_OP_DISPATCH, kernel);
    work.name = trace_name(kernel->name ? kernel->name : "a kernel");
    trace_record_t *record = work_take(&work);
    if (!record) return;
    for (int i = 0; i < 3; i++) record->shape.grid[i] = items(kernel->grid[i], kernel->block[i]);
    record->shape.group_x = (uint32_t)kernel->block[0];
    record->shape.group_y = (uint16_t)kernel->block[1];
    record->shape.group_z = (uint16_t)kernel->block[2];
    record->shape.group_bytes = (uint32_t)(kernel->static_shared + kernel->dynamic_shared);
    trace_put(record, TRACE_GPU);
}

static void add_bytes(const work_t *work, uint64_t bytes, trace_copy_t kind)
{
    trace_record_t *record = work_take(work);
    if (!record) return;
    record->a[0] = bytes;
    record->a[1] = kind;
    trace_put(record, TRACE_GPU);
}

static void add_copy(const cupti_copy_t *copy)
{
    // From host, device and array, in the order of CUPTI's numbers.
    static const uint8_t kinds[] = {TRACE_COPY_OTHER,     TRACE_COPY_TO_DEVICE, TRACE_COPY_TO_HOST,
                                    TRACE_COPY_TO_DEVICE, TRACE_COPY_TO_HOST,   TRACE_COPY_WITHIN,
                                    TRACE_COPY_WITHIN,    TRACE_COPY_WITHIN,    TRACE_COPY_WITHIN,
                                    TRACE_COPY_HOST,      TRACE_COPY_ACROSS};
    bool known = copy->copy_kind < sizeof kinds;
    add_bytes(&WORK(TRACE_OP_COPY, copy), copy->bytes,
              known ? kinds[copy->copy_kind] : TRACE_COPY_OTHER);
}

static void add_peer_copy(const cupti_peer_copy_t *copy)
{
    add_bytes(&WORK(TRACE_OP_COPY, copy), copy->bytes, TRACE_COPY_ACROSS);
}

static void add_set(const cupti_set_t *set)
{
    add_bytes(&WORK(TRACE_OP_COPY, set), set->bytes, TRACE_COPY_SET);
}

// How much of a device's memory is in use, as a counter.
static void add_memory(const cupti_memory_t *change)
{
    double *used = &memory[change->device % (sizeof memory / sizeof *memory)];
    if (change->memory_kind != CUPTI_MEMORY_DEVICE && change->memory_kind != CUPTI_MEMORY_MANAGED)
        return;
    if (change->operation == CUPTI_MEMORY_ALLOCATED)
        *used += (double)change->bytes;
    else if (change->operation == CUPTI_MEMORY_RELEASED)
        *used -= (double)change->bytes;
    if (*used < 0) *used = 0; // it was allocated before recording began
    uint32_t name = streams_memory(change->device);
    trace_record_t *record = trace_take_always();
    if (!record) return;
    record->flags = trace_flags(TRACE_OP_OTHER, clock_number);
    record->name = name;
    record->start = record->end = change->time;
    memcpy(&record->a[0], used, sizeof *used);
    trace_put(record, TRACE_COUNT);
}

static void record_add(const cupti_record_t *record)
{
    const void *data = record;
    switch ((cupti_kind_t)record->kind) {
    case CUPTI_KIND_KERNEL: add_kernel(data); break;
    case CUPTI_KIND_COPY: add_copy(data); break;
    case CUPTI_KIND_PEER_COPY: add_peer_copy(data); break;
    case CUPTI_KIND_SET: add_set(data); break;
    case CUPTI_KIND_MEMORY: add_memory(data); break;
    }
}

void records_add(buffer_t *buffer)
{
    cupti_record_t *record = NULL;
    while (cupti.next_record(buffer->bytes, buffer->used, &record) == CUPTI_SUCCESS && record)
        record_add(record);
    if (buffer->dropped) trace_lose_many(buffer->dropped);
}
