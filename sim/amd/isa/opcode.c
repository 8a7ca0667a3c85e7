// SPDX-License-Identifier: Apache-2.0
// Binds the numbers that the assembler knows to the operations that are modelled, by name.
#include <pthread.h>
#include <stdlib.h>

#include "amd/isa/state.h"

static const struct {
    uint8_t encoding;
    uint16_t number;
    const char *name;
    uint8_t targets; // bit per gfx_t
} numbers[] = {
#define OPCODE(encoding, number, name, targets) {ENC_##encoding, number, #name, targets},
#include "amd/isa/opcodes.def"
#undef OPCODE
};

enum { NUMBER_COUNT = sizeof numbers / sizeof *numbers };

static opcode_t tables[GFX_COUNT][ENC_COUNT][ENCODING_OPS];
static const op_t **index_by_name;
static size_t index_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int op_compare(const void *a, const void *b)
{
    return strcmp((*(const op_t *const *)a)->name, (*(const op_t *const *)b)->name);
}

static void index_build(void)
{
    static const op_list_t *const lists[] = {
        &scalar_ops, &scalar_memory_ops, &indexing_ops, &integer_ops,  &float_ops,
        &half_ops,   &compare_ops,       &cross_ops,    &packed_ops,   &fp8_ops,
        &matrix_ops, &memory_ops,        &lds_ops,      &lds_rare_ops, &gws_ops,
    };
    enum { LIST_COUNT = sizeof lists / sizeof *lists };
    size_t count = 0;
    for (size_t i = 0; i < LIST_COUNT; i++) count += lists[i]->count;
    index_by_name = malloc(count * sizeof(const op_t *));
    if (!index_by_name) return;
    for (size_t i = 0; i < LIST_COUNT; i++) {
        for (size_t k = 0; k < lists[i]->count; k++) {
            index_by_name[index_count++] = &lists[i]->ops[k];
        }
    }
    qsort(index_by_name, index_count, sizeof *index_by_name, op_compare);
}

static const op_t *op_find(const char *name)
{
    const op_t key = {.name = name}, *key_pointer = &key;
    const op_t **found =
        bsearch(&key_pointer, index_by_name, index_count, sizeof *index_by_name, op_compare);
    return found ? *found : NULL;
}

// Memory instructions of all segments share their operations: global_load_dword is load_dword.
static const char *name_of_operation(encoding_t encoding, const char *name)
{
    switch (encoding) {
    case ENC_FLAT:
    case ENC_GLOBAL:
    case ENC_SCRATCH:
    case ENC_MUBUF: return strchr(name, '_') + 1;
    default: return name;
    }
}

static void tables_build(void)
{
    index_build();
    for (size_t i = 0; i < NUMBER_COUNT; i++) {
        encoding_t encoding = numbers[i].encoding;
        opcode_t opcode = {numbers[i].name, op_find(name_of_operation(encoding, numbers[i].name))};
        for (unsigned gfx = 0; gfx < GFX_COUNT; gfx++) {
            if (numbers[i].targets >> gfx & 1) tables[gfx][encoding][numbers[i].number] = opcode;
        }
    }
    free(index_by_name);
    index_by_name = NULL;
    index_count = 0;
}

const opcode_t (*opcode_tables(gfx_t gfx))[ENCODING_OPS]
{
    pthread_once(&once, tables_build);
    return (const opcode_t(*)[ENCODING_OPS])tables[gfx];
}

static const target_t targets[GFX_COUNT] = {
    [GFX900] = {.name = "gfx900",
                .clock_khz = 27000,
                .granule = 4,
                .simd_waves = 10,
                .simd_rows = 256,
                .dies = 1,
                .units = 4},
    [GFX906] = {.name = "gfx906",
                .clock_khz = 25000,
                .granule = 4,
                .simd_waves = 10,
                .simd_rows = 256,
                .dies = 1,
                .units = 4},
    [GFX908] = {.name = "gfx908",
                .clock_khz = 25000,
                .granule = 4,
                .simd_waves = 10,
                .simd_rows = 256,
                .dies = 1,
                .units = 4,
                .matrices_in_acc = true},
    [GFX90A] = {.name = "gfx90a",
                .clock_khz = 25000,
                .granule = 8,
                .simd_waves = 8,
                .simd_rows = 512,
                .dies = 1,
                .units = 4,
                .packed_ids = true,
                .acc_in_memory = true,
                .row_broadcast = true},
    [GFX942] = {.name = "gfx942",
                .clock_khz = 100000,
                .granule = 8,
                .simd_waves = 8,
                .simd_rows = 512,
                .dies = 8,
                .units = 16,
                .packed_ids = true,
                .acc_in_memory = true,
                .row_broadcast = true,
                .own_scratch = true,
                .double_signs = true,
                .scopes = true},
};

const target_t *gfx_target(gfx_t gfx)
{
    return &targets[gfx];
}

gfx_t gfx_parse(const char *name, size_t length)
{
    for (unsigned gfx = 0; gfx < GFX_COUNT; gfx++) {
        const char *own = targets[gfx].name;
        if (strlen(own) == length && !strncmp(own, name, length)) return gfx;
    }
    return GFX_COUNT;
}

const char *gfx_name(gfx_t gfx)
{
    return targets[gfx].name;
}

unsigned gfx_dies(gfx_t gfx)
{
    return targets[gfx].dies;
}

unsigned gfx_clock_khz(gfx_t gfx)
{
    return targets[gfx].clock_khz;
}

uint64_t gfx_ticks(gfx_t gfx, uint64_t ns)
{
    enum { MS = 1000000 };
    return ns / MS * targets[gfx].clock_khz + ns % MS * targets[gfx].clock_khz / MS;
}

unsigned gfx_units(gfx_t gfx)
{
    return targets[gfx].units;
}

uint64_t gfx_units_all(gfx_t gfx)
{
    return ~0ull >> (UNITS_MAX - targets[gfx].units);
}
