// SPDX-License-Identifier: Apache-2.0
// Kernels in MSL, out of a container: what they compute, what Metal is told, what is refused.
#include "drivers/metal/image.h"

enum { COUNT = 1000, GROUP = 64, ROUNDS = 10 };

static const char source[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "struct scale_block {\n"
    "    uint groups[3], zero;\n"
    "    ulong addresses[2], lengths[2];\n"
    "    uint count;\n"
    "    float by;\n"
    "};\n"
    "kernel void scale(constant scale_block &b [[buffer(0)]], uint i [[thread_position_in_grid]])\n"
    "{\n"
    "    device const float *x = (device const float *)b.addresses[0];\n"
    "    device float *y = (device float *)b.addresses[1];\n"
    "    if (i < b.count) y[i] = y[i] + b.by * x[i];\n"
    "}\n"
    "struct grid_block { uint groups[3], zero; ulong addresses[1], lengths[1]; };\n"
    "kernel void grid(constant grid_block &b [[buffer(0)]])\n"
    "{\n"
    "    device uint *out = (device uint *)b.addresses[0];\n"
    "    for (uint i = 0; i < 3; i++) out[i] = i + 2;\n"
    "}\n"
    "kernel void tell(constant grid_block &b [[buffer(0)]],\n"
    "                 uint3 g [[threadgroup_position_in_grid]])\n"
    "{\n"
    "    device uint *out = (device uint *)b.addresses[0];\n"
    "    out[g.x + b.groups[0] * (g.y + b.groups[1] * g.z)] = b.groups[2] * 100 + g.z;\n"
    "}\n";

typedef struct scale_t {
    uint32_t count;
    float by;
} scale_t;

static const keel_binding_info_t bindings[] = {
    {"x", KEEL_ACCESS_READ},
    {"y", KEEL_ACCESS_READ | KEEL_ACCESS_WRITE},
};

static keel_image_entry_t entry(const char *name, uint32_t group, uint32_t count)
{
    return (keel_image_entry_t){
        .info = {.name = name,
                 .group_size = {group, 1, 1},
                 .bindings = count,
                 .constants = count == 2 ? sizeof(scale_t) : 0,
                 .fixed_size = true},
        .bindings = bindings,
        .abi = KEEL_ABI_DIRECT,
    };
}

static keel_executable_t *load(keel_device_t *device)
{
    keel_image_entry_t entries[] = {entry("scale", GROUP, 2), entry("grid", 1, 1),
                                    entry("tell", 1, 1)};
    keel_executable_t *executable = NULL;
    keel_status_t status = load_text(device, source, entries, 3, &executable);
    if (status) fail_msg("%s", keel_status_message(status));
    return executable;
}

static void write_floats(keel_buffer_t *buffer, float first, float step)
{
    float values[COUNT];
    for (int i = 0; i < COUNT; i++) values[i] = first + step * (float)i;
    assert_null(keel_buffer_write(buffer, 0, values, sizeof values));
}

// The same kernel, again and again, each after the one before: a recording that is replayed.
static void replayed(void)
{
    keel_device_t *device = device_open();
    keel_executable_t *executable = load(device);
    keel_buffer_t *x = buffer_create(device, COUNT * 4), *y = buffer_create(device, COUNT * 4);
    write_floats(x, 0, 1);
    write_floats(y, 5, 0);
    const scale_t constants = {COUNT, 2};
    keel_op_t one =
        keel_op_dispatch(find(executable, "scale"), keel_groups((COUNT + GROUP - 1) / GROUP, 1, 1),
                         &constants, sizeof constants, KEEL_BIND(x, y));
    keel_recording_t *recording = NULL;
    assert_null(keel_recording_create(device, NULL, &recording));
    for (int i = 0; i < ROUNDS; i++) {
        keel_op_t ops[] = {one, keel_op_barrier()};
        assert_null(keel_recording_add(recording, ops, 2));
    }
    assert_null(keel_recording_end(recording));
    ok(submit(device, KEEL_NO_WAITS, keel_op_execute(recording, KEEL_NO_BINDINGS)));
    float values[COUNT];
    assert_null(keel_buffer_read(y, 0, values, sizeof values));
    for (int i = 0; i < COUNT; i++) assert_true(values[i] == 5 + 2 * (float)i * ROUNDS);
    assert_int_equal(sim_sent("commit"), 1);
    assert_int_equal(sim_sent("setComputePipelineState:"), 1);
    assert_int_equal(sim_sent("useResource:usage:"), 2);
    assert_int_equal(sim_sent("memoryBarrierWithScope:"), ROUNDS - 1);
    assert_int_equal(sim_sent("setBytes:length:atIndex:"), ROUNDS);
    assert_int_equal(sim_sent("dispatchThreadgroups:threadsPerThreadgroup:"), ROUNDS);
    assert_int_equal(sim_sent("setBuffer:offset:atIndex:"), 0);
    keel_recording_release(recording);
    keel_buffer_release(x);
    keel_buffer_release(y);
    keel_executable_release(executable);
    device_close(device);
}

// Each dispatch writes another buffer than the one before: one message for each that the encoder
// has not seen, and none when it comes again.
static void rebound(void)
{
    enum { BUFFERS = 4 };
    keel_device_t *device = device_open();
    keel_executable_t *executable = load(device);
    keel_buffer_t *x = buffer_create(device, COUNT * 4), *y[BUFFERS];
    for (int i = 0; i < BUFFERS; i++) y[i] = buffer_create(device, COUNT * 4);
    const scale_t constants = {COUNT, 2};
    keel_recording_t *recording = NULL;
    assert_null(keel_recording_create(device, NULL, &recording));
    for (int i = 0; i < ROUNDS; i++) {
        keel_op_t op = keel_op_dispatch(find(executable, "scale"), keel_groups(16, 1, 1),
                                        &constants, sizeof constants, KEEL_BIND(x, y[i % BUFFERS]));
        assert_null(keel_recording_add(recording, &op, 1));
    }
    assert_null(keel_recording_end(recording));
    for (int round = 1; round <= 2; round++) {
        uint64_t before = sim_sent("useResource:usage:");
        ok(submit(device, KEEL_NO_WAITS, keel_op_execute(recording, KEEL_NO_BINDINGS)));
        assert_int_equal(sim_sent("useResource:usage:") - before, 1 + BUFFERS);
        assert_int_equal(sim_sent("setBytes:length:atIndex:"), round * ROUNDS);
        assert_int_equal(sim_sent("dispatchThreadgroups:threadsPerThreadgroup:"), round * ROUNDS);
        assert_int_equal(sim_sent("setBuffer:offset:atIndex:"), 0);
        assert_int_equal(sim_sent("commit"), round);
    }
    keel_recording_release(recording);
    for (int i = 0; i < BUFFERS; i++) keel_buffer_release(y[i]);
    keel_buffer_release(x);
    keel_executable_release(executable);
    device_close(device);
}

// Kernels that bind many buffers: in a block, and in an argument buffer.
enum { MANY = 40 };

static const char many_source[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "struct many_block { uint groups[3], zero; ulong addresses[40], lengths[40]; uint add; };\n"
    "kernel void many(constant many_block &b [[buffer(0)]], uint i [[thread_position_in_grid]])\n"
    "{\n"
    "    *(device uint *)b.addresses[i] += b.add;\n"
    "}\n";
static const char many_bound_source[] =
    "};\n"
    "kernel void many(constant many_arguments &a [[buffer(0)]], constant uint &add [[buffer(1)]],\n"
    "                 uint i [[thread_position_in_grid]])\n"
    "{\n"
    "    *(&a.x0)[i] += add;\n"
    "}\n";

static bool is_bound;      // the second of these
static const char *chosen; // device

static keel_executable_t *many_load(keel_device_t *device)
{
    enum { TEXT = 4096 };
    keel_binding_info_t infos[MANY];
    for (int i = 0; i < MANY; i++) infos[i] = bindings[1];
    keel_image_entry_t one = {.info = {.name = "many",
                                       .group_size = {MANY, 1, 1},
                                       .bindings = MANY,
                                       .constants = sizeof(uint32_t),
                                       .fixed_size = true},
                              .bindings = infos,
                              .abi = is_bound ? KEEL_ABI_BOUND : KEEL_ABI_DIRECT};
    char text[TEXT] = "#include <metal_stdlib>\nstruct many_arguments {\n";
    for (int i = 0; i < MANY; i++)
        snprintf(text + strlen(text), TEXT - strlen(text), "device uint *x%d [[id(%d)]];\n", i, i);
    strcat(text, many_bound_source);
    keel_executable_t *executable = NULL;
    keel_status_t status = load_text(device, is_bound ? text : many_source, &one, 1, &executable);
    if (status) fail_msg("%s", keel_status_message(status));
    return executable;
}

// Messages of so many dispatches, each behind the one before, of which each binds other buffers
// than the one before in `changed` places.
static uint64_t many_counted(keel_device_t *device, keel_entry_t entry, keel_buffer_t **x,
                             uint32_t rounds, uint32_t changed)
{
    keel_recording_t *recording = NULL;
    assert_null(keel_recording_create(device, NULL, &recording));
    for (uint32_t i = 0; i < rounds; i++) {
        keel_ref_t refs[MANY];
        for (uint32_t k = 0; k < MANY; k++)
            refs[k] = keel_whole(x[k < changed ? MANY + (i * changed + k) % (2 * MANY) : k]);
        keel_op_t ops[] = {
            keel_op_dispatch(entry, keel_groups(1, 1, 1), &i, sizeof i, (keel_refs_t){refs, MANY}),
            keel_op_barrier()};
        assert_null(keel_recording_add(recording, ops, 2));
    }
    assert_null(keel_recording_end(recording));
    uint64_t before = sim_messages();
    ok(submit(device, KEEL_NO_WAITS, keel_op_execute(recording, KEEL_NO_BINDINGS)));
    keel_recording_release(recording);
    return sim_messages() - before;
}

static uint64_t rewritten; // messages of a dispatch for which an argument buffer is encoded again

// A dispatch more costs three messages at most, however many buffers it binds, and one for each
// that is another one.
static void many(void)
{
    keel_device_t *device = NULL;
    keel_buffer_t *x[3 * MANY];
    assert_null(device_try_open(chosen, &device));
    keel_executable_t *executable = many_load(device);
    keel_entry_t entry = find(executable, "many");
    for (int i = 0; i < 3 * MANY; i++) {
        const uint32_t zero = 0;
        x[i] = buffer_create(device, 4);
        assert_null(keel_buffer_write(x[i], 0, &zero, sizeof zero));
    }
    uint64_t few = many_counted(device, entry, x, ROUNDS, 0);
    assert_in_range(many_counted(device, entry, x, 3 * ROUNDS, 0) - few, 1, 3 * 2 * ROUNDS);
    few = many_counted(device, entry, x, ROUNDS, 2);
    assert_in_range(many_counted(device, entry, x, 3 * ROUNDS, 2) - few, 1,
                    (3 + 2 + rewritten) * 2 * ROUNDS);
    uint32_t sum = 0, expected = 0;
    for (uint32_t i = 0; i < 3 * ROUNDS; i++) expected += 2 * i * (i < ROUNDS ? 2 : 1);
    assert_null(keel_buffer_read(x[MANY - 1], 0, &sum, sizeof sum));
    assert_int_equal(sum, expected);
    for (int i = 0; i < 3 * MANY; i++) keel_buffer_release(x[i]);
    keel_executable_release(executable);
    device_close(device);
}

// Work between two dispatches of a kernel takes the place of its argument buffer, which is set
// again.
static void between(void)
{
    keel_device_t *device = device_open();
    is_bound = true;
    keel_executable_t *bound = many_load(device);
    is_bound = false;
    keel_executable_t *direct = many_load(device);
    keel_buffer_t *x = buffer_create(device, 4), *y = buffer_create(device, 16);
    const uint32_t zero = 0, one = 1, ten = 10;
    uint32_t sum = 0;
    assert_null(keel_buffer_write(x, 0, &zero, sizeof zero));
    keel_ref_t refs[MANY];
    for (uint32_t k = 0; k < MANY; k++) refs[k] = keel_whole(k ? y : x);
    const keel_refs_t all = {refs, MANY};
    keel_op_t by_one = keel_op_dispatch(find(bound, "many"), keel_groups(1, 1, 1), &one, 4, all);
    keel_op_t by_ten = keel_op_dispatch(find(direct, "many"), keel_groups(1, 1, 1), &ten, 4, all);
    keel_op_t ops[] = {by_one,
                       keel_op_barrier(),
                       keel_op_fill(keel_span(y, 1, 3), 1, 1),
                       keel_op_barrier(),
                       by_one,
                       keel_op_barrier(),
                       by_ten,
                       keel_op_barrier(),
                       by_one,
                       keel_op_barrier(),
                       by_one};
    keel_point_t done;
    assert_null(keel_queue_submit(keel_device_queue(device, 0), KEEL_NO_WAITS, ops, 11,
                                  KEEL_NO_SIGNALS, &done));
    ok(done);
    assert_null(keel_buffer_read(x, 0, &sum, sizeof sum));
    assert_int_equal(sum, 14);
    keel_buffer_release(x);
    keel_buffer_release(y);
    keel_executable_release(direct);
    keel_executable_release(bound);
    device_close(device);
}

static void test_between(void **state)
{
    (void)state;
    run_with("", between);
    run_with("tier=1", between);
}

static void test_many(void **state)
{
    (void)state;
    is_bound = false;
    chosen = "0?indirect=0";
    run_with("", many);
    run_with("residency=1", many);
    chosen = "0?indirect=0&residency=1";
    run_with("residency=1", many);
    is_bound = true;
    run_with("residency=1", many);
    chosen = "0?indirect=0";
    rewritten = 1; // the addresses
    run_with("", many);
    rewritten = MANY + 4;
    run_with("tier=1", many);
}

static uint64_t sets; // that Metal makes

// Imports the buffer's memory by its address, and lets go of the import, or of the buffer.
static void alias_drop(keel_device_t *device, keel_buffer_t **buffer, bool import)
{
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_DEVICE};
    keel_buffer_t *alias = NULL;
    assert_null(keel_buffer_export(*buffer, &external));
    assert_null(keel_buffer_import(device, &external, NULL, &alias));
    keel_buffer_release(import ? alias : *buffer);
    if (!import) *buffer = alias;
}

// By a residency set no encoder names anything; also a buffer that was made when the queue was
// there already is seen, one that shares its memory with another that is gone too, and one that is
// gone is kept by nothing.
static void by_sets(void)
{
    keel_device_t *device = NULL;
    assert_null(device_try_open("0?residency=1", &device));
    keel_executable_t *executable = load(device);
    for (int round = 0; round < 3; round++) {
        keel_buffer_t *x = buffer_create(device, COUNT * 4), *y = buffer_create(device, COUNT * 4);
        unsigned alive = sim_objects("MTLBuffer");
        alias_drop(device, &x, true);
        alias_drop(device, &y, false);
        write_floats(x, 0, 1);
        write_floats(y, 5, 0);
        const scale_t constants = {COUNT, 2};
        ok(submit(device, KEEL_NO_WAITS,
                  keel_op_dispatch(find(executable, "scale"),
                                   keel_groups((COUNT + GROUP - 1) / GROUP, 1, 1), &constants,
                                   sizeof constants, KEEL_BIND(x, y))));
        float values[COUNT];
        assert_null(keel_buffer_read(y, 0, values, sizeof values));
        for (int i = 0; i < COUNT; i++) assert_true(values[i] == 5 + 2 * (float)i);
        keel_buffer_release(x);
        keel_buffer_release(y);
        while (sim_objects("MTLBuffer") != alive - 2) sched_yield(); // the GPU lets go of its own
    }
    assert_int_equal(sim_sent("addResidencySet:") > 0, sets);
    assert_int_equal(sim_sent("useResource:usage:"), sets ? 0 : 6);
    keel_executable_release(executable);
    device_close(device);
}

static void test_by_sets(void **state)
{
    (void)state;
    sets = 1;
    run_with("residency=1", by_sets);
    sets = 0;
    run_with("residency=1 fail=newResidencySetWithDescriptor:error:/1", by_sets);
}

// Counts that a kernel before writes. One of no groups is left out.
static void counted(void)
{
    keel_device_t *device = device_open();
    keel_executable_t *executable = load(device);
    keel_buffer_t *counts = buffer_create(device, 12), *out = buffer_create(device, 24 * 4);
    keel_op_t tell =
        keel_op_dispatch(find(executable, "tell"), keel_groups(1, 1, 1), NULL, 0, KEEL_BIND(out));
    keel_op_t none = tell;
    none.as.dispatch.groups = keel_groups(1, 0, 1);
    keel_op_t ops[] = {
        keel_op_dispatch(find(executable, "grid"), keel_groups(1, 1, 1), NULL, 0,
                         KEEL_BIND(counts)),
        none,
        keel_op_barrier(),
        keel_op_indirect(tell, KEEL_COUNTS_DYNAMIC, keel_whole(counts)),
    };
    keel_point_t done;
    assert_null(keel_queue_submit(keel_device_queue(device, 0), KEEL_NO_WAITS, ops, 4,
                                  KEEL_NO_SIGNALS, &done));
    ok(done);
    uint32_t values[24];
    assert_null(keel_buffer_read(out, 0, values, sizeof values));
    for (uint32_t i = 0; i < 24; i++) assert_int_equal(values[i], 400 + i / 6);
    assert_int_equal(sim_sent("dispatchThreadgroups:threadsPerThreadgroup:"), 2);
    keel_buffer_release(counts);
    keel_buffer_release(out);
    keel_executable_release(executable);
    device_close(device);
}

// A kernel that asks Metal for the grid: the GPU reads the counts, and the host has no part in it.
static const char launched_source[] =
    "// keel cc: kernels are called keel_NAME\n"
    "// keel grid: the launch's\n"
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "struct grid_block { uint groups[3], zero; ulong addresses[1], lengths[1]; };\n"
    "kernel void keel_grid(constant grid_block &b [[buffer(0)]])\n"
    "{\n"
    "    device uint *out = (device uint *)b.addresses[0];\n"
    "    for (uint i = 0; i < 3; i++) out[i] = i + 2;\n"
    "}\n"
    "kernel void keel_tell(constant grid_block &b [[buffer(0)]],\n"
    "                      uint3 g [[threadgroup_position_in_grid]],\n"
    "                      uint3 n [[threadgroups_per_grid]])\n"
    "{\n"
    "    device uint *out = (device uint *)b.addresses[0];\n"
    "    out[g.x + n.x * (g.y + n.y * g.z)] = n.z * 100 + g.z;\n"
    "}\n";

static void launched(void)
{
    keel_device_t *device = device_open();
    keel_image_entry_t entries[] = {entry("grid", 1, 1), entry("tell", 1, 1)};
    keel_executable_t *executable = NULL;
    assert_null(load_text(device, launched_source, entries, 2, &executable));
    keel_buffer_t *counts = buffer_create(device, 16), *out = buffer_create(device, 24 * 4);
    keel_op_t tell =
        keel_op_dispatch(find(executable, "tell"), keel_groups(1, 1, 1), NULL, 0, KEEL_BIND(out));
    keel_op_t ops[] = {
        keel_op_dispatch(find(executable, "grid"), keel_groups(1, 1, 1), NULL, 0,
                         KEEL_BIND(counts)),
        keel_op_barrier(),
        keel_op_indirect(tell, KEEL_COUNTS_DYNAMIC, keel_span(counts, 0, 12)),
        keel_op_barrier(),
        keel_op_fill(keel_span(counts, 4, 4), 0, 4),
        keel_op_barrier(),
        keel_op_indirect(tell, KEEL_COUNTS_DYNAMIC, keel_span(counts, 0, 12)), // of no groups
    };
    keel_point_t done;
    assert_null(keel_queue_submit(keel_device_queue(device, 0), KEEL_NO_WAITS, ops, 7,
                                  KEEL_NO_SIGNALS, &done));
    ok(done);
    uint32_t values[24];
    assert_null(keel_buffer_read(out, 0, values, sizeof values));
    for (uint32_t i = 0; i < 24; i++) assert_int_equal(values[i], 400 + i / 6);
    assert_int_equal(sim_sent("commit"), 1);
    assert_int_equal(sim_sent("dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:"
                              "threadsPerThreadgroup:"),
                     2);
    const uint32_t many[] = {1 << 16, 1 << 15, 2};
    assert_null(keel_buffer_write(counts, 0, many, sizeof many));
    keel_point_t failed =
        submit(device, KEEL_NO_WAITS,
               keel_op_indirect(tell, KEEL_COUNTS_DYNAMIC, keel_span(counts, 0, 12)));
    keel_status_t status = wait_for(failed);
    assert_int_equal(keel_status_code(status), KEEL_OUT_OF_RANGE);
    keel_status_release(status);
    keel_buffer_release(counts);
    keel_buffer_release(out);
    keel_executable_release(executable);
    device_close(device);
}

static void refuses(keel_device_t *device, const char *text, keel_image_entry_t what,
                    keel_code_t code, const char *words)
{
    keel_executable_t *executable = NULL;
    keel_status_t status = load_text(device, text, &what, 1, &executable);
    char message[4096];
    keel_status_format(status, message, sizeof message);
    if (keel_status_code(status) != code || !strstr(message, words)) fail_msg("%s", message);
    keel_status_release(status);
}

static void refused(void)
{
    keel_device_t *device = device_open();
    refuses(device, "\nkernel void k() { wrong; }", entry("k", 1, 1), KEEL_CORRUPT,
            "program_source:2");
    refuses(device, source, entry("missing", 1, 1), KEEL_CORRUPT, "the text has no such kernel");
    refuses(device, source, entry("grid", 1025, 1), KEEL_UNSUPPORTED, "1024 at most");
    refuses(device, "// keel cc:\n// keel variable: x 4 8\n// keel values: 00\n", entry("k", 1, 1),
            KEEL_CORRUPT, "of its variables that is damaged");
    device_close(device);
}

// A library that was compiled before: of the software Metal it is the text behind Metal's mark.
static void compiled(void)
{
    keel_device_t *device = device_open();
    char library[sizeof source + 4];
    snprintf(library, sizeof library, "MTLB%s", source);
    keel_image_entry_t one = entry("grid", 1, 1);
    container_input_t input = {KEEL_IMAGE_METALLIB, "metallib", library, strlen(library), &one, 1};
    keel_executable_t *executable = NULL;
    assert_null(load_image(device, input, &executable));
    keel_buffer_t *out = buffer_create(device, 12);
    ok(submit(
        device, KEEL_NO_WAITS,
        keel_op_dispatch(find(executable, "grid"), keel_groups(1, 1, 1), NULL, 0, KEEL_BIND(out))));
    uint32_t words[3];
    assert_null(keel_buffer_read(out, 0, words, sizeof words));
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(words[i], i + 2);
    assert_int_equal(sim_sent("newLibraryWithData:error:"), 1);
    keel_buffer_release(out);
    keel_executable_release(executable);
    input.data = "none of Metal's";
    input.size = 15;
    keel_status_t status = load_image(device, input, &executable);
    char message[1024];
    keel_status_format(status, message, sizeof message);
    if (!strstr(message, "not formatted as a MetalLib file")) fail_msg("%s", message);
    keel_status_release(status);
    device_close(device);
}

// Pipelines of one image are made once, variables for each executable of it.
static const char variable_source[] =
    "// keel cc: kernels are called keel_NAME\n"
    "// keel grid: the launch's\n"
    "// keel variable: n 0 4\n"
    "// keel values: 07000000\n"
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "struct count_block { uint groups[3], zero; ulong addresses[1], lengths[1]; };\n"
    "kernel void keel_count(constant count_block &b [[buffer(0)]], device uint *n [[buffer(1)]])\n"
    "{\n"
    "    *(device uint *)b.addresses[0] = ++*n;\n"
    "}\n";

static uint32_t count(keel_device_t *device, keel_executable_t *executable)
{
    keel_buffer_t *out = buffer_create(device, 4);
    uint32_t value = 0;
    ok(submit(device, KEEL_NO_WAITS,
              keel_op_dispatch(find(executable, "count"), keel_groups(1, 1, 1), NULL, 0,
                               KEEL_BIND(out))));
    assert_null(keel_buffer_read(out, 0, &value, sizeof value));
    keel_buffer_release(out);
    return value;
}

static void shared(void)
{
    keel_device_t *device = device_open();
    keel_image_entry_t one = entry("count", 1, 1);
    keel_executable_t *a = NULL, *b = NULL;
    assert_null(load_text(device, variable_source, &one, 1, &a));
    uint64_t libraries = sim_sent("newLibraryWithSource:options:error:");
    uint64_t pipelines = sim_sent("newComputePipelineStateWithFunction:error:");
    assert_null(load_text(device, variable_source, &one, 1, &b));
    assert_int_equal(sim_sent("newLibraryWithSource:options:error:"), libraries);
    assert_int_equal(sim_sent("newComputePipelineStateWithFunction:error:"), pipelines);
    assert_int_equal(count(device, a), 8);
    assert_int_equal(count(device, a), 9);
    keel_executable_release(a);
    assert_int_equal(count(device, b), 8);
    keel_executable_release(b);
    assert_null(load_text(device, variable_source, &one, 1, &a)); // it was forgotten
    assert_int_equal(sim_sent("newLibraryWithSource:options:error:"), libraries + 1);
    keel_executable_release(a);
    device_close(device);
}

static void test_shared(void **state)
{
    (void)state;
    run_with("", shared);
}

static void test_compiled(void **state)
{
    (void)state;
    run_with("", compiled);
}

static void test_replayed(void **state)
{
    (void)state;
    run_with("", replayed);
}

static void test_rebound(void **state)
{
    (void)state;
    run_with("", rebound);
}

static void test_counted(void **state)
{
    (void)state;
    run_with("", counted);
}

static void test_launched(void **state)
{
    (void)state;
    run_with("", launched);
}

static void test_refused(void **state)
{
    (void)state;
    run_with("", refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replayed), cmocka_unit_test(test_rebound),
        cmocka_unit_test(test_counted),  cmocka_unit_test(test_launched),
        cmocka_unit_test(test_compiled), cmocka_unit_test(test_by_sets),
        cmocka_unit_test(test_shared),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_many),     cmocka_unit_test(test_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
