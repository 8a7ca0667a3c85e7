// SPDX-License-Identifier: Apache-2.0
// Code objects that clang makes, and what llvm-readelf says of them.
#include "executable/hsaco.h"

#include "tools.h"

static const char source[] =
    "typedef struct { char tag; double value; } pair_t;\n"
    "kernel void saxpy(global float *y, global const float *restrict x, float a, char b, long n)\n"
    "{ y[n] = x[n] * a + b + ((constant int *)__builtin_amdgcn_implicitarg_ptr())[n]; }\n"
    "kernel __attribute__((reqd_work_group_size(8, 4, 2)))\n"
    "void grouped(pair_t p, local int *scratch, read_only image2d_t image, sampler_t s,\n"
    "             global int *out)\n"
    "{ local int tile[256]; tile[out[0]] = 3; scratch[out[1]] = out[2];\n"
    "  __builtin_amdgcn_s_barrier();\n"
    "  out[1] = tile[out[3]] + (int)p.value + __builtin_amdgcn_workgroup_size_x(); }\n";

// Compiles to k.hsaco and k.txt.
static void compile_by(const char *version, const char *processor, const char *flags)
{
    char programs[64];
    snprintf(programs, sizeof programs, "clang-%s ld.lld-%s llvm-readelf-19", version, version);
    tools_need(programs);
    tools_write("k.cl", source, sizeof source - 1);
    tools_run("clang-%s -x cl -cl-std=CL2.0 -Xclang -finclude-default-header -nogpulib -O2 "
              "--target=amdgcn-amd-amdhsa -mcpu=%s %s k.cl -o k.hsaco 2>/dev/null",
              version, processor, flags);
    tools_run("llvm-readelf-19 --notes k.hsaco >k.txt");
}

static void compile(const char *processor, const char *flags)
{
    compile_by("19", processor, flags);
}

// The value of the n-th `key` in a text of "key: value" lines.
static uint32_t value_of(const char *text, const char *key, uint32_t n)
{
    for (;; n--) {
        text = strstr(text, key);
        if (!text) fail_msg("there is no %s", key);
        text += strlen(key);
        if (!n) return (uint32_t)strtoul(text + strspn(text, ": "), NULL, 10);
    }
}

// The lines about a kernel, terminated in place.
static char *kernel_find(char *text, const char *name)
{
    char line[64];
    snprintf(line, sizeof line, ".name:           %s\n", name);
    char *at = strstr(text, line);
    assert_non_null(at);
    while (strncmp(at, "\n  - .", 6) != 0) at--;
    char *end = strstr(at + 1, "\n  - .");
    if (end) *end = 0;
    return at;
}

static void entry_compare(const image_info_t *info, const char *listing, const char *name)
{
    char *copy = strdup(listing);
    assert_non_null(copy);
    const char *text = kernel_find(copy, name);
    const keel_image_entry_info_t *entry = entry_named(info, name);
    assert_int_equal(entry->param_size, value_of(text, ".kernarg_segment_size", 0));
    assert_int_equal(entry->local_memory, value_of(text, ".group_segment_fixed_size", 0));
    assert_int_equal(entry->private_memory, value_of(text, ".private_segment_fixed_size", 0));
    assert_int_equal(entry->wave_size, value_of(text, ".wavefront_size", 0));
    assert_int_equal(entry->scalar_registers, value_of(text, ".sgpr_count", 0));
    assert_int_equal(entry->vector_registers, value_of(text, ".vgpr_count", 0));
    assert_int_equal(entry->max_group_size, value_of(text, ".max_flat_workgroup_size", 0));
    for (uint32_t i = 0; i < entry->param_count; i++) {
        const keel_image_param_t *param = &entry->params[i];
        char kind[80];
        assert_int_equal(param->offset, value_of(text, ".offset", i));
        assert_int_equal(param->size, value_of(text, ".size", i));
        snprintf(kind, sizeof kind, ".value_kind:     %s\n", param->type);
        assert_non_null(strstr(text, kind));
        assert_int_equal(!strncmp(param->type, "hidden_", 7), param->kind == KEEL_PARAM_HIDDEN);
    }
    uint32_t count = 0;
    for (const char *at = text; (at = strstr(at, ".value_kind")); at++) count++;
    assert_int_equal(entry->param_count, count);
    free(copy);
}

typedef struct build_t {
    const char *processor, *flags, *target, *version;
} build_t;

// Compiles it, and holds what is read against what llvm-readelf reads.
static void build_try(const char *compiler, const build_t *build)
{
    compile_by(compiler, build->processor, build->flags);
    size_t size, length;
    char *data = tools_read("k.hsaco", &size), *listing = tools_read("k.txt", &length);
    image_info_t info;
    read_well(image_read(data, size, &info));
    assert_int_equal(info.kind, KEEL_IMAGE_HSACO);
    assert_string_equal(info.target, build->target);
    assert_string_equal(info.version, build->version);
    assert_int_equal(info.entry_count, 2);
    entry_compare(&info, listing, "saxpy");
    entry_compare(&info, listing, "grouped");
    image_info_finish(&info);
    free(data);
    free(listing);
}

static void test_every_target(void **state)
{
    (void)state;
    static const build_t builds[] = {
        {"gfx900", "", "gfx900", "5"},
        {"gfx90a", "-mcode-object-version=4", "gfx90a", "4"},
        {"gfx90a:sramecc+:xnack-", "", "gfx90a:sramecc+:xnack-", "5"},
        {"gfx942", "-mcode-object-version=6", "gfx942", "6"},
        {"gfx1100", "", "gfx1100", "5"},
        {"gfx1100", "-mwavefrontsize64", "gfx1100", "5"},
        {"gfx1201", "", "gfx1201", "5"},
    };
    for (size_t i = 0; i < sizeof builds / sizeof builds[0]; i++) build_try("19", &builds[i]);
}

// The code objects of version 3, which clang 19 no longer makes, had no amdhsa.target and other
// bits for features. HIP's clang makes them.
static void test_of_older_tools(void **state)
{
    (void)state;
    static const build_t builds[] = {
        {"gfx900", "-mcode-object-version=3", "gfx900:xnack+", "3"},
        {"gfx900:xnack-", "-mcode-object-version=3", "gfx900", "3"},
        {"gfx906:sramecc+:xnack+", "-mcode-object-version=3", "gfx906:sramecc+:xnack+", "3"},
        {"gfx90a", "-mcode-object-version=4", "gfx90a", "4"},
        {"gfx1030", "-mcode-object-version=4", "gfx1030", "4"},
    };
    for (size_t i = 0; i < sizeof builds / sizeof builds[0]; i++) build_try("15", &builds[i]);
    compile_by("15", "gfx900", "-mcode-object-version=2");
    size_t size;
    char *data = tools_read("k.hsaco", &size);
    image_info_t info;
    read_badly(hsaco_read(data, size, &info), KEEL_UNSUPPORTED, "version 2");
    free(data);
}

static void test_parameters(void **state)
{
    (void)state;
    static const keel_param_kind_t kinds[] = {KEEL_PARAM_VALUE, KEEL_PARAM_LOCAL, KEEL_PARAM_OPAQUE,
                                              KEEL_PARAM_OPAQUE, KEEL_PARAM_POINTER};
    compile("gfx90a", "");
    size_t size;
    char *data = tools_read("k.hsaco", &size);
    image_info_t info;
    read_well(hsaco_read(data, size, &info));
    const keel_image_entry_info_t *grouped = entry_named(&info, "grouped");
    assert_true(grouped->param_count >= 5);
    for (int i = 0; i < 5; i++) assert_int_equal(grouped->params[i].kind, kinds[i]);
    assert_int_equal(grouped->params[2].access, KEEL_ACCESS_READ);
    assert_int_equal(grouped->group_size[0], 8);
    assert_int_equal(grouped->group_size[1], 4);
    assert_int_equal(grouped->group_size[2], 2);
    const keel_image_entry_info_t *saxpy = entry_named(&info, "saxpy");
    assert_int_equal(saxpy->params[0].kind, KEEL_PARAM_POINTER);
    assert_int_equal(saxpy->params[1].access, KEEL_ACCESS_READ);
    assert_int_equal(saxpy->group_size[0], KEEL_UNSAID);
    assert_true(saxpy->param_count > 5); // for it asks for the implicit ones
    assert_string_equal(saxpy->params[5].type, "hidden_block_count_x");
    assert_int_equal(saxpy->params[5].kind, KEEL_PARAM_HIDDEN);
    const keel_image_param_t *own = &saxpy->params[4];
    assert_int_equal(image_given_size(saxpy), own->offset + own->size);
    assert_in_range(saxpy->param_size, own->offset + own->size + 1, 4096);
    assert_int_equal(image_given_size(&(keel_image_entry_info_t){.param_size = 24}), 24);
    image_info_finish(&info);
    free(data);
}

static char *bytes_find(char *data, size_t size, const char *text)
{
    for (size_t i = 0; i + strlen(text) <= size; i++)
        if (!memcmp(data + i, text, strlen(text))) return data + i;
    fail_msg("there is no %s", text);
    return NULL;
}

// The same by hand, where there is no such clang.
static void test_version_3(void **state)
{
    (void)state;
    compile("gfx906", "-mcode-object-version=4");
    size_t size;
    char *data = tools_read("k.hsaco", &size);
    data[8] = 1;
    memcpy(bytes_find(data, size, "amdhsa.target"), "amdhsa.strget", 13);
    memcpy(data + 48, "\x2f\x03\x00\x00", 4);
    image_info_t info;
    read_well(hsaco_read(data, size, &info));
    assert_string_equal(info.target, "gfx906:sramecc+:xnack+");
    assert_string_equal(info.version, "3");
    assert_int_equal(info.entry_count, 2);
    image_info_finish(&info);
    data[48] = (char)0xf0;
    read_badly(hsaco_read(data, size, &info), KEEL_UNSUPPORTED, "unknown number 0xf0");
    data[8] = 0;
    read_badly(hsaco_read(data, size, &info), KEEL_UNSUPPORTED, "version 2");
    free(data);
}

// Newer compilers have another name for the architecture, and one for the environment that is none.
static const char newer[] = ".amdgpu_metadata\n"
                            "---\n"
                            "amdhsa.kernels: []\n"
                            "amdhsa.target: amdgpu9.0a-amd-amdhsa-unknown-gfx90a:xnack-\n"
                            "amdhsa.version: [1, 2]\n"
                            "...\n"
                            ".end_amdgpu_metadata\n";

static void test_newer_names(void **state)
{
    (void)state;
    tools_need("clang-19 ld.lld-19");
    tools_write("k.s", newer, sizeof newer - 1);
    tools_run("clang-19 -x assembler --target=amdgcn-amd-amdhsa -mcpu=gfx90a:xnack- k.s "
              "-o k.hsaco");
    size_t size;
    char *data = tools_read("k.hsaco", &size);
    image_info_t info;
    read_well(hsaco_read(data, size, &info));
    assert_string_equal(info.target, "gfx90a:xnack-");
    image_info_finish(&info);
    free(data);
}

static void test_damaged(void **state)
{
    (void)state;
    compile("gfx900", "");
    size_t size;
    char *data = tools_read("k.hsaco", &size);
    image_info_t info;
    char *name = bytes_find(data, size, "\xa5.name");
    name[1] = 'x';
    read_badly(hsaco_read(data, size, &info), KEEL_CORRUPT, "without a name");
    name[1] = '.';
    char *kind = bytes_find(data, size, ".value_kind");
    kind[1] = 'x';
    read_badly(hsaco_read(data, size, &info), KEEL_CORRUPT, "without .value_kind");
    kind[1] = 'v';
    char *offset = bytes_find(data, size, ".offset\x10");
    offset[7] = 12;
    read_badly(hsaco_read(data, size, &info), KEEL_CORRUPT, "overlap");
    offset[7] = (char)0xc0;
    read_badly(hsaco_read(data, size, &info), KEEL_CORRUPT, "nil where a number belongs");
    bytes_find(data, size, "AMDGPU")[0] = 'X';
    read_badly(hsaco_read(data, size, &info), KEEL_CORRUPT, "no note");
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_target),   cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_of_older_tools), cmocka_unit_test(test_version_3),
        cmocka_unit_test(test_newer_names),    cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, tools_begin, tools_end);
}
