// SPDX-License-Identifier: Apache-2.0
#include "language.h"

#include <stdio.h>
#include <string.h>

#include "conformance/language/check.h"

enum { ITEMS = 4096, BINDINGS = 2 };

// The blocks for two bindings and four bytes of constants.
typedef struct direct_t {
    uint32_t groups[3], zero;
    uint64_t bindings[2 * BINDINGS]; // addresses, lengths
    uint32_t constant;
} direct_t;
typedef struct walk_t {
    uint32_t groups[3], zero;
    uint64_t counts, table;
    uint64_t bindings[2 * BINDINGS]; // addresses, lengths
    uint32_t constant;
} walk_t;

typedef enum { DIRECT, WALK, WALK_READ } way_t; // the last reads counts and bindings from memory

typedef struct call_t {
    const char *kernel;
    uint32_t group[2], groups[2];
    void *in, *out;
    size_t in_size, out_size;
} call_t;

static bool call(const language_gpu_t *gpu, const call_t *c, way_t way)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s%s.kd", c->kernel, way == DIRECT ? "" : "$walk");
    uint64_t bindings[2 * BINDINGS] = {(uintptr_t)c->in, (uintptr_t)c->out, c->in_size,
                                       c->out_size};
    if (way == DIRECT) {
        direct_t direct = {.groups = {c->groups[0], c->groups[1], 1}, .constant = TRANSPOSED};
        memcpy(direct.bindings, bindings, sizeof bindings);
        return gpu->launch(gpu->user, symbol, c->groups, c->group, &direct, sizeof direct);
    }
    uint8_t *memory = gpu->alloc(sizeof bindings + 12);
    memcpy(memory, bindings, sizeof bindings);
    memcpy(memory + sizeof bindings, (uint32_t[]){c->groups[0], c->groups[1], 1}, 12);
    walk_t walk = {.groups = {c->groups[0], c->groups[1], 1}, .constant = TRANSPOSED};
    memcpy(walk.bindings, bindings, sizeof bindings);
    if (way == WALK_READ) {
        walk = (walk_t){.constant = TRANSPOSED,
                        .table = (uintptr_t)memory,
                        .counts = (uintptr_t)memory + sizeof bindings};
    }
    bool done = gpu->launch(gpu->user, symbol, (uint32_t[]){4, 1}, c->group, &walk, sizeof walk);
    gpu->free(memory);
    return done;
}

// Runs a kernel over items; the caller frees both.
static bool items_call(const language_gpu_t *gpu, call_t *c, const char *kernel, size_t size,
                       way_t way)
{
    *c = (call_t){.kernel = kernel,
                  .group = {64, 1},
                  .groups = {ITEMS / 64, 1},
                  .in = gpu->alloc(ITEMS * sizeof(item_t)),
                  .out = gpu->alloc(ITEMS * size),
                  .in_size = ITEMS * sizeof(item_t),
                  .out_size = ITEMS * size};
    items_make(c->in, ITEMS);
    memset(c->out, 0xff, c->out_size);
    return call(gpu, c, way);
}

static void call_free(const language_gpu_t *gpu, const call_t *c)
{
    gpu->free(c->in);
    gpu->free(c->out);
}

static unsigned numbers(const language_gpu_t *gpu, way_t way)
{
    call_t c;
    bool done = items_call(gpu, &c, "numbers", sizeof(answer_t), way);
    unsigned wrong = done ? items_judge(c.in, c.out, ITEMS) : 1;
    call_free(gpu, &c);
    done = items_call(gpu, &c, "doubles", sizeof(doubles_t), way);
    wrong += done ? doubles_judge(c.in, c.out, ITEMS) : 1;
    call_free(gpu, &c);
    done = items_call(gpu, &c, "integers", sizeof(integers_t), way);
    wrong += done ? integers_judge(c.in, c.out, ITEMS) : 1;
    call_free(gpu, &c);
    return wrong;
}

static unsigned subgroups(const language_gpu_t *gpu, way_t way)
{
    uint32_t *words = gpu->alloc(ATOMIC_ITEMS * 4);
    subgroup_t *out = gpu->alloc(ATOMIC_ITEMS * sizeof *out);
    words_make(words);
    call_t c = {"subgroups", {128, 1},         {ATOMIC_ITEMS / 128, 1},   words,
                out,         ATOMIC_ITEMS * 4, ATOMIC_ITEMS * sizeof *out};
    unsigned wrong = call(gpu, &c, way) ? subgroups_judge(words, out) : 1;
    call_free(gpu, &c);
    return wrong;
}

static unsigned atomics(const language_gpu_t *gpu, way_t way)
{
    uint32_t *words = gpu->alloc(ATOMIC_ITEMS * 4);
    tally_t *tally = gpu->alloc(sizeof *tally);
    words_make(words);
    tally_begin(tally);
    call_t c = {"atomics",        {128, 1},     {ATOMIC_ITEMS / 128, 1}, words, tally,
                ATOMIC_ITEMS * 4, sizeof *tally};
    unsigned wrong = call(gpu, &c, way) ? tally_judge(words, tally) : 1;
    gpu->free(words);
    gpu->free(tally);
    return wrong;
}

static unsigned transpose(const language_gpu_t *gpu, way_t way)
{
    size_t size = sizeof(float) * TRANSPOSED * TRANSPOSED;
    float *in = gpu->alloc(size), *out = gpu->alloc(size);
    matrix_make(in);
    call_t c = {"transpose", {16, 16}, {TRANSPOSED / 16, TRANSPOSED / 16}, in, out, size, size};
    unsigned wrong = call(gpu, &c, way) ? matrix_judge(in, out) : 1;
    gpu->free(in);
    gpu->free(out);
    return wrong;
}

unsigned language_run(const language_gpu_t *gpu)
{
    unsigned wrong = 0;
    for (way_t way = DIRECT; way <= WALK_READ; way++) {
        unsigned here =
            numbers(gpu, way) + subgroups(gpu, way) + atomics(gpu, way) + transpose(gpu, way);
        if (here) printf("%u wrong, way %d\n", here, way);
        wrong += here;
    }
    return wrong;
}
