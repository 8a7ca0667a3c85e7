// SPDX-License-Identifier: Apache-2.0
// Raw arguments of every size that CUDA takes, on the CUDA driver in software, whose kernels look
// at the first bytes only: what is given to nodes of graphs is looked at here.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/cuda/device.h"

extern const unsigned char keel_embed_conformance_kernels[];
extern const uint64_t keel_embed_conformance_kernels_size;

enum { MOST = 32764, LAST = 0x5a };

// As conformance/kernels has it.
typedef struct block_t {
    uint32_t factor, count;
    uint64_t in, out;
    uint32_t offset;
    unsigned char more[MOST - 28];
} block_t;

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
static uint32_t whole; // blocks that were given to CUDA to their last byte

static void note(void **extra)
{
    const unsigned char *bytes = NULL;
    size_t size = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) bytes = extra[1];
        if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *(size_t *)extra[1];
    }
    whole += size > 64 && bytes[size - 1] == LAST;
}

static CUresult node_add(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                         const CUDA_KERNEL_NODE_PARAMS *params)
{
    note(params->extra);
    return real.cuGraphAddKernelNode(node, graph, after, count, params);
}

static CUresult node_set(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    note(params->extra);
    return real.cuGraphExecKernelNodeSetParams(exec, node, params);
}

typedef struct place_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_buffer_t *in, *out, *grid;
    block_t block;
    keel_patch_t patches[2];
} place_t;

static int setup(void **state)
{
    static place_t place;
    const uint32_t groups[] = {1, 1, 1}, number = 20;
    keel_executable_options_t options = {.data = keel_embed_conformance_kernels,
                                         .size = keel_embed_conformance_kernels_size};
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    place.device = device_open("");
    if (keel_executable_load(place.device, &options, &place.kernels)) return 1;
    place.in = buffer_create(place.device, 4, KEEL_MEMORY_HOST_VISIBLE);
    place.out = buffer_create(place.device, 8, KEEL_MEMORY_HOST_VISIBLE);
    place.grid = buffer_create(place.device, sizeof groups, KEEL_MEMORY_HOST_VISIBLE);
    assert_null(keel_buffer_write(place.grid, 0, groups, sizeof groups));
    assert_null(keel_buffer_write(place.in, 0, &number, sizeof number));
    symbols->cuGraphAddKernelNode = node_add;
    symbols->cuGraphExecKernelNodeSetParams = node_set;
    *state = &place;
    return 0;
}

static int teardown(void **state)
{
    place_t *place = *state;
    keel_buffer_release(place->in), keel_buffer_release(place->out);
    keel_buffer_release(place->grid);
    keel_executable_release(place->kernels);
    keel_device_release(place->device);
    *symbols = real;
    return 0;
}

// in * 2 + 2 to `out`, with a block of so many bytes.
static keel_op_t dispatch(place_t *place, keel_ref_t out, uint32_t size)
{
    keel_op_t op = {.kind = KEEL_OP_DISPATCH};
    place->block = (block_t){.factor = 2, .count = 1, .offset = 2};
    ((unsigned char *)&place->block)[size - 1] = LAST;
    place->patches[0] = (keel_patch_t){offsetof(block_t, in), keel_whole(place->in)};
    place->patches[1] = (keel_patch_t){offsetof(block_t, out), out};
    assert_null(keel_executable_entry(place->kernels, "raw", &op.as.dispatch.entry));
    op.as.dispatch.groups = keel_groups(1, 1, 1);
    op.as.dispatch.raw = true;
    op.as.dispatch.constants = &place->block;
    op.as.dispatch.constant_size = size;
    op.as.dispatch.patches = place->patches;
    op.as.dispatch.patch_count = 2;
    return op;
}

// Runs it; `which` of two numbers is to be right then.
static void runs(const place_t *place, keel_op_t op, uint32_t which)
{
    uint32_t numbers[2] = {0, 0};
    keel_point_t done;
    assert_null(keel_buffer_write(place->out, 0, numbers, sizeof numbers));
    whole = 0;
    assert_null(keel_queue_run(keel_device_queue(place->device, 0), KEEL_NO_WAITS, op, &done));
    ok(done);
    assert_null(keel_buffer_read(place->out, 0, numbers, sizeof numbers));
    assert_int_equal(numbers[which], 42);
    assert_int_equal(numbers[!which], 0);
}

static const uint32_t sizes[] = {65, 4064, 4096, 4097, 20000, MOST};

static void test_dispatched(void **state)
{
    place_t *place = *state;
    assert_int_equal(keel_device_caps(place->device)->max_arguments, MOST);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        keel_op_t op = dispatch(place, keel_span(place->out, 0, 4), sizes[i]);
        runs(place, op, 0);
        runs(place, keel_op_indirect(op, KEEL_COUNTS_STATIC, keel_whole(place->grid)), 0);
        assert_int_equal(whole, 1);
    }
}

// And changed to another address.
static void test_recorded(void **state)
{
    place_t *place = *state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        keel_recording_options_t options = {.slots = 1};
        keel_recording_t *recording = NULL;
        keel_op_t op = dispatch(place, keel_slot(0, 0, 4), sizes[i]);
        assert_null(keel_recording_create(place->device, &options, &recording));
        assert_null(keel_recording_add(recording, &op, 1));
        assert_null(keel_recording_end(recording));
        for (uint32_t which = 0; which < 2; which++) {
            keel_ref_t table[] = {keel_span(place->out, which * 4, 4)};
            runs(place, keel_op_execute(recording, keel_refs(table, 1)), which);
            assert_int_equal(whole, 1);
        }
        keel_recording_release(recording);
    }
}

static void test_too_many(void **state)
{
    place_t *place = *state;
    keel_op_t op = dispatch(place, keel_whole(place->out), MOST);
    op.as.dispatch.constant_size++;
    keel_status_t status =
        keel_queue_run(keel_device_queue(place->device, 0), KEEL_NO_WAITS, op, NULL);
    assert_int_equal(keel_status_code(status), KEEL_OUT_OF_RANGE);
    char text[512];
    keel_status_format(status, text, sizeof text);
    assert_non_null(strstr(text, "at most 32764 bytes"));
    keel_status_release(status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dispatched),
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_too_many),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
