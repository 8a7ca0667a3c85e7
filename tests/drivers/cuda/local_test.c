// SPDX-License-Identifier: Apache-2.0
// Workgroup memory that a dispatch has on top of its kernel's, which shows in no result of a kernel
// that does not know of it: on the CUDA driver in software, looks at what nodes of graphs are
// given.
#include "drivers/cuda/device.h"

extern const unsigned char keel_embed_conformance_kernels[];
extern const uint64_t keel_embed_conformance_kernels_size;

enum { MORE = 1000 };

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
static uint32_t given; // to the last one made

static CUresult node_add(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                         const CUDA_KERNEL_NODE_PARAMS *params)
{
    given = params->sharedMemBytes;
    return real.cuGraphAddKernelNode(node, graph, before, count, params);
}

typedef struct place_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_buffer_t *out, *grid;
} place_t;

static int setup(void **state)
{
    static place_t place;
    const uint32_t groups[] = {1, 1, 1};
    keel_executable_options_t options = {.name = "kernels"};
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    place.device = device_open("");
    options.data = keel_embed_conformance_kernels;
    options.size = keel_embed_conformance_kernels_size;
    if (keel_executable_load(place.device, &options, &place.kernels)) return 1;
    place.out = buffer_create(place.device, 4096, KEEL_MEMORY_HOST_VISIBLE);
    place.grid = buffer_create(place.device, sizeof groups, KEEL_MEMORY_HOST_VISIBLE);
    if (keel_buffer_write(place.grid, 0, groups, sizeof groups)) return 1;
    symbols->cuGraphAddKernelNode = node_add;
    *state = &place;
    return 0;
}

static int teardown(void **state)
{
    place_t *place = *state;
    keel_buffer_release(place->out), keel_buffer_release(place->grid);
    keel_executable_release(place->kernels);
    keel_device_release(place->device);
    *symbols = real;
    return 0;
}

static keel_op_t dispatch(const place_t *place, uint32_t more)
{
    keel_entry_t local;
    assert_null(keel_executable_entry(place->kernels, "local", &local));
    static keel_ref_t binding;
    binding = keel_whole(place->out);
    keel_op_t op =
        keel_op_dispatch(local, keel_groups(1, 1, 1), NULL, 0, (keel_refs_t){&binding, 1});
    op.as.dispatch.local_memory = more;
    return op;
}

static void gives(const place_t *place, keel_op_t op, uint32_t expected)
{
    keel_recording_t *recording = NULL;
    keel_point_t done;
    given = UINT32_MAX;
    assert_null(keel_recording_create(place->device, NULL, &recording));
    assert_null(keel_recording_add(recording, &op, 1));
    assert_null(keel_recording_end(recording));
    assert_null(keel_queue_run(keel_device_queue(place->device, 0), KEEL_NO_WAITS,
                               keel_op_execute(recording, KEEL_NO_BINDINGS), &done));
    ok(done);
    assert_int_equal(given, expected);
    keel_recording_release(recording);
}

static void test_direct(void **state)
{
    const place_t *place = *state;
    gives(place, dispatch(place, 0), 0);
    gives(place, dispatch(place, MORE), MORE);
}

// The form of the kernel that takes its grid from memory.
static void test_indirect(void **state)
{
    const place_t *place = *state;
    keel_op_t op =
        keel_op_indirect(dispatch(place, MORE), KEEL_COUNTS_STATIC, keel_whole(place->grid));
    gives(place, op, MORE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct),
        cmocka_unit_test(test_indirect),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
