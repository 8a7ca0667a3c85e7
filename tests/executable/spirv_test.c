// SPDX-License-Identifier: Apache-2.0
// Modules that glslang and spirv-as make.
#include "executable/spirv.h"

#include "tools.h"

static const char shader[] =
    "#version 450\n"
    "layout(local_size_x = 8, local_size_y = 4, local_size_z = 2) in;\n"
    "layout(push_constant) uniform Push { vec3 a; float b; mat4 m; float tail[3]; } push;\n"
    "layout(set = 1, binding = 3) readonly buffer In { float x[]; } source;\n"
    "layout(set = 0, binding = 7) writeonly buffer Out { uint n; float y[]; };\n"
    "layout(set = 0, binding = 2) buffer Both { float z[]; } both[4];\n"
    "layout(set = 0, binding = 1) uniform Config { vec4 c; } config;\n"
    "layout(set = 2, binding = 0, rgba8) uniform readonly image2D picture;\n"
    "layout(set = 2, binding = 1) uniform sampler2D texture_;\n"
    "layout(set = 2, binding = 2) uniform samplerBuffer texels;\n"
    "layout(set = 3, binding = 0) buffer Unused { float u[]; } unused_;\n"
    "shared float tile[64];\n"
    "shared uint counter;\n"
    "float helper(uint i) { return both[2].z[i]; }\n"
    "void main() {\n"
    "  uint i = gl_GlobalInvocationID.x;\n"
    "  tile[gl_LocalInvocationIndex] = source.x[i]; atomicAdd(counter, 1u); barrier();\n"
    "  y[i] = helper(i) + config.c.x + imageLoad(picture, ivec2(i)).x + texture(texture_, "
    "vec2(0)).x\n"
    "       + texelFetch(texels, 0).x + tile[0] + push.b + push.m[0][0] + push.tail[2];\n"
    "}\n";

typedef struct expected_t {
    uint32_t set, binding, count, access;
    const char *type, *name;
} expected_t;

static const expected_t expected[] = {
    {0, 1, 1, KEEL_ACCESS_READ, "uniform buffer", "config"},
    {0, 2, 4, KEEL_ACCESS_ALL, "storage buffer", "both"},
    {0, 7, 1, KEEL_ACCESS_WRITE, "storage buffer", "Out"},
    {1, 3, 1, KEEL_ACCESS_READ, "storage buffer", "source"},
    {2, 0, 1, KEEL_ACCESS_READ, "storage image", "picture"},
    {2, 1, 1, KEEL_ACCESS_READ, "combined image sampler", "texture_"},
    {2, 2, 1, KEEL_ACCESS_READ, "uniform texel buffer", "texels"},
};
enum { EXPECTED = sizeof expected / sizeof expected[0] };

static void shader_check(const void *data, size_t size, const char *version)
{
    image_info_t info;
    read_well(image_read(data, size, &info));
    assert_int_equal(info.kind, KEEL_IMAGE_SPIRV);
    assert_string_equal(info.target, "spirv");
    assert_string_equal(info.version, version);
    assert_int_equal(info.entry_count, 1);
    const keel_image_entry_info_t *entry = entry_named(&info, "main");
    assert_int_equal(entry->group_size[0], 8);
    assert_int_equal(entry->group_size[1], 4);
    assert_int_equal(entry->group_size[2], 2);
    assert_int_equal(entry->constants, 80 + 3 * 4);
    assert_int_equal(entry->local_memory, 64 * 4 + 4);
    assert_int_equal(entry->binding_count, EXPECTED);
    for (size_t i = 0; i < EXPECTED; i++) {
        const keel_image_binding_t *binding = &entry->bindings[i];
        assert_int_equal(binding->set, expected[i].set);
        assert_int_equal(binding->binding, expected[i].binding);
        assert_int_equal(binding->count, expected[i].count);
        assert_int_equal(binding->access, expected[i].access);
        assert_string_equal(binding->type, expected[i].type);
        assert_string_equal(binding->name, expected[i].name);
    }
    image_info_finish(&info);
}

static void bytes_swap(char *data, size_t size)
{
    for (size_t i = 0; i + 4 <= size; i += 4) {
        char word[4] = {data[i + 3], data[i + 2], data[i + 1], data[i]};
        memcpy(data + i, word, 4);
    }
}

// Before 1.4, from 1.4 on, and with blocks as Vulkan 1.0 marked them.
static void test_from_glslang(void **state)
{
    (void)state;
    static const struct {
        const char *environment, *version;
    } builds[] = {{"vulkan1.0", "1.0"}, {"vulkan1.1", "1.3"}, {"vulkan1.2", "1.5"}};
    tools_need("glslangValidator");
    tools_write("k.comp", shader, sizeof shader - 1);
    for (size_t i = 0; i < sizeof builds / sizeof builds[0]; i++) {
        tools_run("glslangValidator --target-env %s k.comp -o k.spv >/dev/null",
                  builds[i].environment);
        size_t size;
        char *data = tools_read("k.spv", &size);
        shader_check(data, size, builds[i].version);
        bytes_swap(data, size);
        shader_check(data, size, builds[i].version);
        free(data);
    }
}

// Two entries that share a function, a kernel of OpenCL's, sizes from constants.
static const char assembly[] =
    "OpCapability Shader\n"
    "OpCapability Kernel\n"
    "OpCapability Addresses\n"
    "OpMemoryModel Physical64 GLSL450\n"
    "OpEntryPoint GLCompute %one \"one\"\n"
    "OpEntryPoint GLCompute %two \"two\"\n"
    "OpEntryPoint Fragment %one \"pixel\"\n"
    "OpEntryPoint Kernel %kernel \"kernel\"\n"
    "OpExecutionMode %one LocalSize 64 1 1\n"
    "OpExecutionMode %two LocalSize 32 2 1\n"
    "OpName %a \"a\"\nOpName %b \"b\"\n"
    "OpDecorate %block Block\nOpMemberDecorate %block 0 Offset 0\n"
    "OpDecorate %array ArrayStride 4\n"
    "OpDecorate %a DescriptorSet 0\nOpDecorate %a Binding 0\n"
    "OpDecorate %b DescriptorSet 0\nOpDecorate %b Binding 1\nOpDecorate %b NonWritable\n"
    "%void = OpTypeVoid\n"
    "%uint = OpTypeInt 32 0\n"
    "%char = OpTypeInt 8 0\n"
    "%array = OpTypeRuntimeArray %uint\n"
    "%block = OpTypeStruct %array\n"
    "%pointer = OpTypePointer StorageBuffer %block\n"
    "%element = OpTypePointer StorageBuffer %uint\n"
    "%global = OpTypePointer CrossWorkgroup %uint\n"
    "%local = OpTypePointer Workgroup %uint\n"
    "%sampler = OpTypeSampler\n"
    "%plain = OpTypeFunction %void\n"
    "%taking = OpTypeFunction %void %global %char %local %sampler\n"
    "%zero = OpConstant %uint 0\n"
    "%a = OpVariable %pointer StorageBuffer\n"
    "%b = OpVariable %pointer StorageBuffer\n"
    "%shared = OpFunction %void None %plain\n%l0 = OpLabel\n"
    "%p0 = OpAccessChain %element %a %zero %zero\nOpStore %p0 %zero\nOpReturn\nOpFunctionEnd\n"
    "%one = OpFunction %void None %plain\n%l1 = OpLabel\n"
    "%c1 = OpFunctionCall %void %shared\nOpReturn\nOpFunctionEnd\n"
    "%two = OpFunction %void None %plain\n%l2 = OpLabel\n"
    "%c2 = OpFunctionCall %void %shared\n"
    "%p2 = OpAccessChain %element %b %zero %zero\n%v2 = OpLoad %uint %p2\n"
    "OpReturn\nOpFunctionEnd\n"
    "%kernel = OpFunction %void None %taking\n"
    "%k0 = OpFunctionParameter %global\n%k1 = OpFunctionParameter %char\n"
    "%k2 = OpFunctionParameter %local\n%k3 = OpFunctionParameter %sampler\n"
    "%l3 = OpLabel\nOpReturn\nOpFunctionEnd\n";

static void test_entries_of_a_module(void **state)
{
    (void)state;
    tools_need("spirv-as");
    tools_write("k.asm", assembly, sizeof assembly - 1);
    tools_run("spirv-as --target-env spv1.3 k.asm -o k.spv");
    size_t size;
    char *data = tools_read("k.spv", &size);
    image_info_t info;
    read_well(spirv_read(data, size, &info));
    assert_int_equal(info.entry_count, 3); // the fragment shader is none for us
    const keel_image_entry_info_t *one = entry_named(&info, "one"),
                                  *two = entry_named(&info, "two");
    assert_int_equal(one->group_size[0], 64);
    assert_int_equal(two->group_size[1], 2);
    assert_int_equal(one->binding_count, 1);
    assert_string_equal(one->bindings[0].name, "a");
    assert_int_equal(one->bindings[0].access, KEEL_ACCESS_ALL);
    assert_int_equal(two->binding_count, 2);
    assert_string_equal(two->bindings[1].name, "b");
    assert_int_equal(two->bindings[1].access, KEEL_ACCESS_READ);

    static const struct {
        keel_param_kind_t kind;
        uint32_t offset, size;
    } params[] = {
        {KEEL_PARAM_POINTER, 0, 8},
        {KEEL_PARAM_VALUE, 8, 1},
        {KEEL_PARAM_LOCAL, 16, 8},
        {KEEL_PARAM_OPAQUE, 24, 8},
    };
    const keel_image_entry_info_t *kernel = entry_named(&info, "kernel");
    assert_int_equal(kernel->param_count, 4);
    assert_int_equal(kernel->param_size, 32);
    assert_int_equal(kernel->group_size[0], KEEL_UNSAID);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(kernel->params[i].kind, params[i].kind);
        assert_int_equal(kernel->params[i].offset, params[i].offset);
        assert_int_equal(kernel->params[i].size, params[i].size);
    }
    image_info_finish(&info);
    free(data);
}

static void test_size_from_constants(void **state)
{
    (void)state;
    tools_need("glslangValidator");
    static const char text[] = "#version 450\nlayout(local_size_x_id = 0, local_size_y = 3) in;\n"
                               "void main() { }\n";
    tools_write("k.comp", text, sizeof text - 1);
    tools_run("glslangValidator --target-env vulkan1.1 k.comp -o k.spv >/dev/null");
    size_t size;
    char *data = tools_read("k.spv", &size);
    image_info_t info;
    read_well(spirv_read(data, size, &info));
    assert_int_equal(info.entries[0].group_size[0], 1);
    assert_int_equal(info.entries[0].group_size[1], 3);
    assert_int_equal(info.entries[0].group_size[2], 1);
    image_info_finish(&info);
    free(data);
}

static void test_damaged(void **state)
{
    (void)state;
    enum { MAGIC = 0x07230203 };
    static const struct {
        uint32_t words[12];
        uint32_t count;
        const char *message;
    } bad[] = {
        {{MAGIC, 0x10300, 0, 9, 0}, 4, "cut off"},
        {{MAGIC + 1, 0x10300, 0, 9, 0}, 5, "does not begin"},
        {{MAGIC, 0x10300, 0, 9, 0, 0}, 6, "has 0 words"},
        {{MAGIC, 0x10300, 0, 9, 0, 3 << 16 | 5, 1}, 7, "has 3 words"},
        {{MAGIC, 0x10300, 0, 9, 0, 1 << 16 | 19}, 6, "too short"},
        {{MAGIC, 0x10300, 0, 9, 0, 2 << 16 | 19, 1, 2 << 16 | 19, 1}, 9, "defined twice"},
        {{MAGIC, 0x10300, 0, 9, 0, 4 << 16 | 15, 5, 1, 0}, 9, "has no function"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        image_info_t info;
        read_badly(spirv_read(bad[i].words, bad[i].count * 4, &info), KEEL_CORRUPT, bad[i].message);
    }
    image_info_t info;
    read_well(spirv_read(bad[0].words, 20, &info)); // nothing in it is fine
    assert_int_equal(info.entry_count, 0);
    image_info_finish(&info);
}

// Structs of structs of structs: sizes are found once for each, not for each way to it.
static void test_nested_structs(void **state)
{
    (void)state;
    tools_need("spirv-as");
    char text[16384];
    size_t used = (size_t)snprintf(text, sizeof text,
                                   "OpCapability Shader\nOpMemoryModel Logical GLSL450\n"
                                   "OpEntryPoint GLCompute %%main \"main\"\n"
                                   "%%void = OpTypeVoid\n%%s0 = OpTypeInt 32 0\n");
    for (int i = 1; i <= 64; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used,
                             "%%s%d = OpTypeStruct %%s%d %%s%d %%s%d\n", i, i - 1, i - 1, i - 1);
    snprintf(text + used, sizeof text - used,
             "%%p = OpTypePointer Workgroup %%s64\n%%f = OpTypeFunction %%void\n"
             "%%v = OpVariable %%p Workgroup\n"
             "%%main = OpFunction %%void None %%f\n%%l = OpLabel\n%%x = OpLoad %%s64 %%v\n"
             "OpReturn\nOpFunctionEnd\n");
    tools_write("k.asm", text, strlen(text));
    tools_run("spirv-as --target-env spv1.3 k.asm -o k.spv");
    size_t size;
    char *data = tools_read("k.spv", &size);
    image_info_t info;
    read_well(spirv_read(data, size, &info));
    assert_int_equal(info.entries[0].local_memory, UINT32_MAX - 1); // more than can be said
    image_info_finish(&info);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_glslang),        cmocka_unit_test(test_entries_of_a_module),
        cmocka_unit_test(test_size_from_constants), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_nested_structs),
    };
    return cmocka_run_group_tests(tests, tools_begin, tools_end);
}
