// SPDX-License-Identifier: Apache-2.0
// Shaders in SPIR-V, as glslang makes them: SPIRV-Cross makes MSL of them, and their sets become
// one argument buffer. The same for such kernels in MSL.
#include "base/memory.h"
#include "drivers/metal/device.h"
#include "executable/container.h"
#include "executable/tools.h"

enum { COUNT = 1000, GROUP = 64, GROUPS = (COUNT + GROUP - 1) / GROUP, OFFSET = 256 };

// Sets and numbers in no order, one set left out, one block that is not used.
static const char shader[] =
    "#version 450\n"
    "layout(local_size_x = 64) in;\n"
    "layout(set = 2, binding = 5) buffer C { float c[]; };\n"
    "layout(set = 0, binding = 3) readonly buffer A { float a[]; };\n"
    "layout(set = 0, binding = 1) buffer None { float none[]; };\n"
    "layout(set = 3, binding = 1) uniform U { float add; };\n"
    "layout(set = 2, binding = 0) readonly buffer B { float b[]; };\n"
    "layout(push_constant) uniform P { uint n; float scale; };\n"
    "shared float tile[64];\n"
    "void main()\n"
    "{\n"
    "    uint i = gl_GlobalInvocationID.x, at = gl_LocalInvocationIndex;\n"
    "    tile[at] = i < n ? a[i] : 0.0;\n"
    "    barrier();\n"
    "    if (i < n) c[i] = tile[63u - at] + scale * b[i] + add * float(gl_NumWorkGroups.x);\n"
    "}\n";

// Asks for the lengths of what is bound.
static const char lengths[] =
    "#version 450\n"
    "layout(local_size_x = 32) in;\n"
    "layout(set = 0, binding = 0) readonly buffer A { uint a[]; };\n"
    "layout(set = 1, binding = 0) buffer C { uint c[]; };\n"
    "void main()\n"
    "{\n"
    "    uint i = gl_GlobalInvocationID.x;\n"
    "    if (i < c.length()) c[i] = i < a.length() ? a[i] : a.length() * 1000u + c.length();\n"
    "}\n";

// Which thread of its sub-group each one is.
static const char lanes[] = "#version 450\n"
                            "#extension GL_KHR_shader_subgroup_basic : require\n"
                            "layout(local_size_x = 64) in;\n"
                            "layout(set = 0, binding = 0) buffer C { uint c[]; };\n"
                            "void main() { c[gl_GlobalInvocationID.x] = gl_SubgroupInvocationID * "
                            "100u + gl_SubgroupSize; }\n";

static const char picture[] = "#version 450\n"
                              "layout(local_size_x = 1) in;\n"
                              "layout(set = 0, binding = 0, r32f) uniform image2D p;\n"
                              "void main() { imageStore(p, ivec2(0), vec4(1)); }\n";

// Metal has no such numbers.
static const char twice[] = "#version 450\n"
                            "layout(local_size_x = 1) in;\n"
                            "layout(set = 0, binding = 0) buffer C { double c[]; };\n"
                            "void main() { c[0] = c[1] * c[2]; }\n";

// One buffer as two types.
static const char aliased[] = "#version 450\n"
                              "layout(local_size_x = 1) in;\n"
                              "layout(set = 0, binding = 0) buffer A { float a[]; };\n"
                              "layout(set = 0, binding = 0) buffer B { uint b[]; };\n"
                              "layout(set = 0, binding = 1) buffer C { float c[]; };\n"
                              "void main() { c[0] = a[0] + float(b[1]); }\n";

static void *module_data;
static size_t module_size;

static void shader_compile(const char *text)
{
    tools_need("glslangValidator");
    tools_write("k.comp", text, strlen(text));
    tools_run("glslangValidator --target-env vulkan1.1 k.comp -o k.spv >/dev/null");
    free(module_data);
    module_data = tools_read("k.spv", &module_size);
}

// Whether SPIRV-Cross is here, without which there is nothing to try.
static void cross_need(void)
{
    void *handle = dlopen("libspirv-cross-c-shared.so.0", RTLD_NOW);
    if (handle) return;
    print_message("needs libspirv-cross-c-shared.so.0\n");
    skip();
}

static keel_status_t module_load(keel_device_t *device, keel_executable_t **executable)
{
    keel_executable_options_t options = {.data = module_data, .size = module_size};
    return keel_executable_load(device, &options, executable);
}

static keel_executable_t *loaded(keel_device_t *device)
{
    keel_executable_t *executable = NULL;
    keel_status_t status = module_load(device, &executable);
    if (status) fail_msg("%s", keel_status_message(status));
    return executable;
}

static void entry_check(keel_entry_t entry)
{
    static const char *const names[] = {"A", "B", "C", "U"};
    keel_entry_info_t info;
    keel_binding_info_t bindings[4];
    assert_null(keel_entry_info(entry, &info));
    assert_null(keel_entry_bindings(entry, 4, bindings));
    assert_int_equal(info.bindings, 4);
    assert_int_equal(info.constants, 8);
    assert_int_equal(info.group_size[0], GROUP);
    assert_true(info.fixed_size && !info.raw);
    assert_int_equal(info.local_memory, 64 * 4);
    for (int i = 0; i < 4; i++) assert_string_equal(bindings[i].name, names[i]);
}

static void floats_check(const float *c)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t other = i / GROUP * GROUP + 63 - i % GROUP;
        float a = other < COUNT ? (float)other : 0, b = (float)(i % 7);
        if (c[i] != a + 2 * b + 0.5f * GROUPS) fail_msg("%u: %f", i, (double)c[i]);
    }
}

// All four lie in one buffer, at offsets of their own.
static void run_shader(keel_device_t *device, keel_executable_t *executable)
{
    enum { SIZE = COUNT * 4, ROOM = (SIZE + OFFSET - 1) / OFFSET * OFFSET };
    keel_buffer_options_t options = {.size = 4 * ROOM, .memory = KEEL_MEMORY_HOST_COHERENT};
    keel_buffer_t *all = NULL;
    assert_null(keel_buffer_create(device, &options, &all));
    float values[2][COUNT], add = 0.5f, result[COUNT];
    for (int i = 0; i < COUNT; i++) {
        values[0][i] = (float)i;
        values[1][i] = (float)(i % 7);
    }
    assert_null(keel_buffer_write(all, 0, values[0], SIZE));
    assert_null(keel_buffer_write(all, ROOM, values[1], SIZE));
    assert_null(keel_buffer_write(all, 3 * ROOM, &add, sizeof add));
    const struct {
        uint32_t n;
        float scale;
    } constants = {COUNT, 2};
    const keel_ref_t refs[] = {keel_span(all, 0, SIZE), keel_span(all, ROOM, SIZE),
                               keel_span(all, 2 * ROOM, SIZE), keel_span(all, 3 * ROOM, 16)};
    keel_op_t one = keel_op_dispatch(find(executable, "main"), keel_groups(GROUPS, 1, 1),
                                     &constants, sizeof constants, (keel_refs_t){refs, 4});
    ok(submit(device, KEEL_NO_WAITS, one));
    assert_null(keel_buffer_read(all, 2 * ROOM, result, SIZE));
    floats_check(result);
    keel_buffer_release(all);
}

static void by_addresses(void)
{
    keel_device_t *device = device_open();
    keel_executable_t *executable = loaded(device);
    entry_check(find(executable, "main"));
    run_shader(device, executable);
    assert_int_equal(sim_sent("setBytes:length:atIndex:"), 2); // addresses, constants
    assert_int_equal(sim_sent("newArgumentEncoderWithBufferIndex:"), 0);
    keel_executable_release(executable);
    device_close(device);
}

// One encoder serves all dispatches.
static void by_encoders(void)
{
    keel_device_t *device = device_open();
    keel_executable_t *executable = loaded(device);
    for (int i = 0; i < 3; i++) run_shader(device, executable);
    assert_int_equal(sim_sent("newArgumentEncoderWithBufferIndex:"), 1);
    assert_int_equal(sim_sent("setArgumentBuffer:offset:"), 3);
    keel_executable_release(executable);
    device_close(device);
}

// Dispatches of a recording, one behind the other, which become indirect commands on a GPU of
// tier 2.
static void replay(keel_device_t *device, keel_op_t op)
{
    keel_recording_t *recording = NULL;
    assert_null(keel_recording_create(device, NULL, &recording));
    for (int i = 0; i < 4; i++)
        assert_null(keel_recording_add(recording, (keel_op_t[]){op, keel_op_barrier()}, 2));
    assert_null(keel_recording_end(recording));
    assert_null(keel_recording_prepare(recording, keel_device_queue(device, 0)));
    ok(submit(device, KEEL_NO_WAITS, keel_op_execute(recording, KEEL_NO_BINDINGS)));
    keel_recording_release(recording);
}

static void lengths_check(keel_buffer_t *c)
{
    uint32_t words[30];
    assert_null(keel_buffer_read(c, 0, words, sizeof words));
    for (uint32_t i = 0; i < 30; i++) assert_int_equal(words[i], i < 10 ? 7 * i : 10030);
    memset(words, 0, sizeof words);
    assert_null(keel_buffer_write(c, 0, words, sizeof words));
}

static int indirect; // stretches of indirect commands that are expected

static void with_lengths(void)
{
    keel_device_t *device = device_open();
    keel_executable_t *executable = loaded(device);
    keel_buffer_t *a = buffer_create(device, 40), *c = buffer_create(device, 120);
    uint32_t words[10];
    for (uint32_t i = 0; i < 10; i++) words[i] = 7 * i;
    assert_null(keel_buffer_write(a, 0, words, 40));
    keel_op_t op =
        keel_op_dispatch(find(executable, "main"), keel_groups(2, 1, 1), NULL, 0, KEEL_BIND(a, c));
    ok(submit(device, KEEL_NO_WAITS, op));
    lengths_check(c);
    replay(device, op);
    lengths_check(c);
    assert_int_equal(sim_sent("executeCommandsInBuffer:withRange:"), indirect);
    keel_buffer_release(a);
    keel_buffer_release(c);
    keel_executable_release(executable);
    device_close(device);
}

static void lanes_check(uint32_t size)
{
    keel_device_t *device = device_open();
    keel_executable_t *executable = loaded(device);
    keel_buffer_t *c = buffer_create(device, 64 * 4);
    uint32_t words[64];
    ok(submit(
        device, KEEL_NO_WAITS,
        keel_op_dispatch(find(executable, "main"), keel_groups(1, 1, 1), NULL, 0, KEEL_BIND(c))));
    assert_null(keel_buffer_read(c, 0, words, sizeof words));
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(words[i], i % size * 100 + size);
    keel_buffer_release(c);
    keel_executable_release(executable);
    device_close(device);
}

static void lanes_newer(void)
{
    lanes_check(32);
}

// A family without functions of SIMD-groups: each thread is a sub-group of its own.
static void lanes_older(void)
{
    lanes_check(1);
}

static void refused_with(keel_device_t *device, keel_code_t code, const char *words)
{
    keel_executable_t *executable = NULL;
    keel_status_t status = module_load(device, &executable);
    char message[2048];
    keel_status_format(status, message, sizeof message);
    if (keel_status_code(status) != code || !strstr(message, words)) fail_msg("%s", message);
    keel_status_release(status);
    keel_device_release(device);
}

static void refused_picture(void)
{
    refused_with(device_open(), KEEL_UNSUPPORTED, "binds a storage image at 0 of set 0");
}

static void refused_without(void)
{
    keel_device_t *device = NULL;
    assert_null(keel_device_open("metal://0?cross=/nowhere&lib=" METAL_LIBRARY, NULL, &device));
    refused_with(device, KEEL_UNSUPPORTED, "with the help of SPIRV-Cross");
}

static void refused_double(void)
{
    refused_with(device_open(), KEEL_UNSUPPORTED, "SPIRV-Cross makes no MSL of 'main': ");
}

static void refused_aliased(void)
{
    refused_with(device_open(), KEEL_UNSUPPORTED, "several variables at 0 of set 0");
}

// A container with such a module, beside what the device does not take.
static void contained(void)
{
    keel_device_t *device = device_open();
    keel_image_entry_t entry = {
        .info = {.name = "main", .group_size = {GROUP, 1, 1}, .constants = 8, .fixed_size = true},
        .abi = KEEL_ABI_BOUND};
    container_input_t inputs[] = {
        {KEEL_IMAGE_PTX, "nvptx:sm_70", "text", 4, &entry, 1},
        {KEEL_IMAGE_SPIRV, "spirv", module_data, module_size, &entry, 1},
    };
    void *bytes = NULL;
    size_t size = 0;
    assert_null(container_write(&(container_options_t){0}, inputs, 2, &bytes, &size));
    keel_executable_options_t options = {.data = bytes, .size = size};
    keel_executable_t *executable = NULL;
    assert_null(keel_executable_load(device, &options, &executable));
    mem_free(bytes);
    run_shader(device, executable);
    keel_executable_release(executable);
    device_close(device);
}

// MSL with an argument buffer, and more constants than an encoder takes.
static const char text[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "struct arguments { device const uint *x [[id(0)]]; device uint *y [[id(1)]]; };\n"
    "struct constants { uint words[2000]; };\n"
    "kernel void add(constant arguments &a [[buffer(0)]], constant constants &k [[buffer(1)]],\n"
    "                uint i [[thread_position_in_grid]])\n"
    "{\n"
    "    a.y[i] = a.x[i] + k.words[i];\n"
    "}\n";

static void by_hand(void)
{
    enum { WORDS = 2000 };
    static uint32_t words[WORDS], result[WORDS];
    static const keel_binding_info_t bindings[] = {{"x", KEEL_ACCESS_READ},
                                                   {"y", KEEL_ACCESS_WRITE}};
    keel_device_t *device = device_open();
    keel_image_entry_t entry = {.info = {.name = "add",
                                         .group_size = {50, 1, 1},
                                         .bindings = 2,
                                         .constants = sizeof words,
                                         .fixed_size = true},
                                .bindings = bindings,
                                .abi = KEEL_ABI_BOUND};
    container_input_t input = {KEEL_IMAGE_MSL, "msl", text, sizeof text - 1, &entry, 1};
    void *bytes = NULL;
    size_t size = 0;
    assert_null(container_write(&(container_options_t){0}, &input, 1, &bytes, &size));
    keel_executable_options_t options = {.data = bytes, .size = size};
    keel_executable_t *executable = NULL;
    keel_status_t status = keel_executable_load(device, &options, &executable);
    if (status) fail_msg("%s", keel_status_message(status));
    mem_free(bytes);
    keel_buffer_t *x = buffer_create(device, sizeof words),
                  *y = buffer_create(device, sizeof words);
    for (uint32_t i = 0; i < WORDS; i++) words[i] = 3 * i;
    assert_null(keel_buffer_write(x, 0, words, sizeof words));
    ok(submit(device, KEEL_NO_WAITS,
              keel_op_dispatch(find(executable, "add"), keel_groups(WORDS / 50, 1, 1), words,
                               sizeof words, KEEL_BIND(x, y))));
    assert_null(keel_buffer_read(y, 0, result, sizeof result));
    for (uint32_t i = 0; i < WORDS; i++) assert_int_equal(result[i], 6 * i);
    keel_buffer_release(x);
    keel_buffer_release(y);
    keel_executable_release(executable);
    device_close(device);
}

static void test_shader(void **state)
{
    (void)state;
    cross_need();
    shader_compile(shader);
    run_with("", by_addresses);
    run_with("residency=1 seed=3", by_addresses);
    run_with("discrete=1", contained);
}

static void test_tier_1(void **state)
{
    (void)state;
    cross_need();
    shader_compile(shader);
    run_with("tier=1 residency=1", by_encoders);
    shader_compile(lengths);
    indirect = 0;
    run_with("tier=1 residency=1", with_lengths);
}

static void test_lengths(void **state)
{
    (void)state;
    cross_need();
    shader_compile(lengths);
    indirect = 1;
    run_with("residency=1 hazards=1", with_lengths);
}

static void test_families(void **state)
{
    (void)state;
    cross_need();
    shader_compile(lanes);
    run_with("", lanes_newer);
    run_with("family=5", lanes_older);
}

static void test_refused(void **state)
{
    (void)state;
    shader_compile(picture);
    run_with("", refused_picture);
    shader_compile(shader);
    run_with("", refused_without);
    cross_need();
    shader_compile(twice);
    run_with("", refused_double);
    shader_compile(aliased);
    run_with("", refused_aliased);
}

static void test_by_hand(void **state)
{
    (void)state;
    run_with("residency=1", by_hand);
    run_with("tier=1 residency=1", by_hand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shader),  cmocka_unit_test(test_tier_1),
        cmocka_unit_test(test_lengths), cmocka_unit_test(test_families),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_by_hand),
    };
    int failed = cmocka_run_group_tests(tests, tools_begin, tools_end);
    free(module_data);
    return failed;
}
