// SPDX-License-Identifier: Apache-2.0
// Kernels whose speed is measured, and whose results are checked.
#include <stdint.h>

#define KERNEL __attribute__((amdgpu_kernel, visibility("protected")))
#define LOCAL  __attribute__((address_space(3), loader_uninitialized))

static inline uint32_t lane_in_group(void)
{
    return __builtin_amdgcn_workitem_id_x();
}

static inline uint32_t group_id(void)
{
    return __builtin_amdgcn_workgroup_id_x();
}

static inline void group_barrier(void)
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

KERNEL void vadd(const float *a, const float *b, float *c, uint32_t count)
{
    uint32_t n = group_id() * 256 + lane_in_group();
    if (n < count) c[n] = a[n] + b[n];
}

KERNEL void integer_loop(uint32_t *out, uint32_t rounds)
{
    uint32_t n = group_id() * 256 + lane_in_group(), x = n, y = n * 2654435761u;
    for (uint32_t k = 0; k < rounds; k++) {
        x = (x ^ y) + (y >> 3);
        y = (y & x) - (x << 5);
        x += y ^ 0x9e3779b9;
        y = y < x ? y + 7 : y ^ x;
    }
    out[n] = x + y;
}

enum { TILE = 16 };
LOCAL float tile_a[TILE][TILE];
LOCAL float tile_b[TILE][TILE];

// c = a b for square matrices; groups of 256 lanes make a tile each.
KERNEL void matmul(const float *a, const float *b, float *c, uint32_t size)
{
    uint32_t tiles = size / TILE, row = lane_in_group() / TILE, column = lane_in_group() % TILE;
    uint32_t y = group_id() / tiles * TILE + row, x = group_id() % tiles * TILE + column;
    float sum = 0;
    for (uint32_t t = 0; t < size; t += TILE) {
        tile_a[row][column] = a[y * size + t + column];
        tile_b[row][column] = b[(t + row) * size + x];
        group_barrier();
        for (uint32_t k = 0; k < TILE; k++) sum += tile_a[row][k] * tile_b[k][column];
        group_barrier();
    }
    c[y * size + x] = sum;
}

// A scheduler: one lane takes tasks out of a ring, does them, counts their successors down and puts
// those that are ready into the ring.
enum { KIND_ADD, KIND_XOR, KIND_MOVE, KIND_FILL };

typedef struct {
    uint32_t kind, value;
    uint32_t target, source; // numbers of words
    uint32_t waits;          // for so many others
    uint32_t successor_count;
    uint32_t successors[2]; // numbers of tasks
} task_t;

typedef struct {
    uint64_t head, tail, done;
    uint32_t ring[1024];
} ready_t;

static void task_do(const task_t *task, uint32_t *words)
{
    switch (task->kind) {
    case KIND_ADD: words[task->target] += words[task->source] + task->value; break;
    case KIND_XOR: words[task->target] ^= words[task->source] * task->value; break;
    case KIND_MOVE: words[task->target] = words[task->source]; break;
    default:
        for (uint32_t k = 0; k < 4; k++) words[task->target + k] = task->value;
        break;
    }
}

KERNEL void scheduler(task_t *tasks, ready_t *ready, uint32_t *words, uint64_t count)
{
    if (lane_in_group() != 0) return;
    while (__atomic_load_n(&ready->done, __ATOMIC_ACQUIRE) < count) {
        uint64_t head = __atomic_fetch_add(&ready->head, 1, __ATOMIC_RELAXED);
        if (head >= __atomic_load_n(&ready->tail, __ATOMIC_ACQUIRE)) return;
        const task_t *task = &tasks[ready->ring[head % 1024]];
        task_do(task, words);
        for (uint32_t k = 0; k < task->successor_count; k++) {
            uint32_t next = task->successors[k];
            if (__atomic_fetch_sub(&tasks[next].waits, 1, __ATOMIC_ACQ_REL) != 1) continue;
            uint64_t tail = __atomic_load_n(&ready->tail, __ATOMIC_RELAXED);
            ready->ring[tail % 1024] = next;
            __atomic_store_n(&ready->tail, tail + 1, __ATOMIC_RELEASE);
        }
        __atomic_fetch_add(&ready->done, 1, __ATOMIC_RELEASE);
    }
}
