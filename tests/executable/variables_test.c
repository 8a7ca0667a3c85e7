// SPDX-License-Identifier: Apache-2.0
#include "executable/variables.h"

#include "tools.h"

#define HEAD ".version 8.0\n.target sm_70\n.address_size 64\n"

static bool text_has(const char *text)
{
    return image_has_variables(text, strlen(text));
}

static void test_ptx(void **state)
{
    (void)state;
    static const char *const without[] = {
        HEAD,
        HEAD
        ".visible .entry a(.param .u64 p) { ld.global.u32 %r1, [p]; st.global.v4.u32 [p], x; }",
        HEAD ".entry a() {ld.const.f32 %f1, [p];@%p atom.relaxed.gpu.global.add.u32 %r, [p], 1;}",
        HEAD
        ".entry a() { cp.async.bulk.shared::cluster.global.x [a], [b]; prefetch.global.L2 [a]; }",
        HEAD "// .global .u32 a;\n/* .const .u32 a; */ .extern .shared .align 16 .b8 tile[];",
        HEAD ".shared .u32 a; .file 1 \".global .u32\"\n.section .debug_str { .b8 1 }",
    };
    static const char *const with[] = {
        HEAD ".global .u32 a;",
        HEAD ".visible .global .align 4 .b8 a[16] = {1};",
        HEAD ".visible.global .u32 a;",
        HEAD ".visible/**/.global .u32 a;",
        HEAD ".entry a() { ret; }.const .u32 a;",
        HEAD ".entry a() { .global .u32 a; }",
        HEAD ".extern .global .texref t;",
        HEAD ".tex .u32 t;",
        HEAD "/* an end that is missing",
    };
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++)
        if (text_has(without[i])) fail_msg("a variable is seen in %s", without[i]);
    for (size_t i = 0; i < sizeof with / sizeof with[0]; i++)
        if (!text_has(with[i])) fail_msg("no variable is seen in %s", with[i]);
}

static bool file_has(const char *name)
{
    size_t size;
    char *data = tools_read(name, &size);
    bool has = image_has_variables(data, size);
    free(data);
    return has;
}

static void test_cubin(void **state)
{
    (void)state;
    assert_false(file_has(TESTS_DATA "/large.sm_90.cubin"));
    assert_true(file_has(TESTS_DATA "/native.sm_90a.cubin"));
    assert_true(file_has(TESTS_DATA "/native.sm_75.cubin"));
    assert_true(file_has(TESTS_DATA "/native.sm_120.cubin"));
    assert_true(file_has(TESTS_DATA "/older.11.8.sm_70.cubin"));
    assert_true(file_has(TESTS_DATA "/native.lz4.fatbin")); // is not looked into
}

static const char kernel[] = "#include <keel/kernel.h>\n"
                             "KEEL_KERNEL(k, KEEL_GROUP(64), KEEL_OUT(uint32_t, out))\n"
                             "{ KEEL_ITEMS { out[keel_global_id(0)] = 1; } }\n";
static const char global[] = "#include <keel/kernel.h>\n"
                             "KEEL_GLOBAL(uint32_t, word, 1);\n"
                             "KEEL_KERNEL(k, KEEL_GROUP(64), KEEL_OUT(uint32_t, out))\n"
                             "{ KEEL_ITEMS { out[keel_global_id(0)] = word[0]; } }\n";
static const char constant[] = "#include <keel/kernel.h>\n"
                               "KEEL_EXECUTABLE_CONSTANT(uint32_t, word) = 3;\n"
                               "KEEL_KERNEL(k, KEEL_GROUP(64), KEEL_OUT(uint32_t, out))\n"
                               "{ KEEL_ITEMS { out[keel_global_id(0)] = word; } }\n";
static const char hidden[] = "#include <keel/kernel.h>\n"
                             "static uint32_t word;\n"
                             "KEEL_KERNEL(k, KEEL_GROUP(64), KEEL_OUT(uint32_t, out))\n"
                             "{ KEEL_ITEMS { out[keel_global_id(0)] = word++; } }\n";

// `keel cc` takes the records of kernels out of PTX.
static bool compiled_has(const char *source, const char *compiler)
{
    tools_write("k.c", source, strlen(source));
    tools_run("%s -std=gnu2x -O2 -fvisibility=hidden -I%s/../../include k.c -o k.o && "
              "if grep -aq '^[.]version' k.o; then sed -i /keel_record_/d k.o; fi",
              compiler, TESTS_DATA);
    return file_has("k.o");
}

// As `keel cc` calls the compilers.
static void compiler_try(const char *compiler)
{
    assert_false(compiled_has(kernel, compiler));
    assert_true(compiled_has(global, compiler));
    assert_true(compiled_has(constant, compiler));
    assert_true(compiled_has(hidden, compiler));
}

static void test_host(void **state)
{
    (void)state;
    tools_need("cc");
    compiler_try("cc -shared -fPIC -nostartfiles");
    compiler_try("cc -shared -fPIC -nostartfiles -I" SOURCE_DIR "/sim "
                 "'-DKEEL_ENTRY_HEADER=\"cuda/entries.h\"'");
    compiler_try("cc -shared -fPIC -nostartfiles -Wl,-z,norelro");
    assert_true(compiled_has(kernel, "cc -shared -fPIC")); // of the system's start files
}

static void test_gpu(void **state)
{
    (void)state;
    tools_need("clang-19 ld.lld-19");
    compiler_try("clang-19 --target=amdgcn-amd-amdhsa -mcpu=gfx90a -ffreestanding -nogpulib");
    compiler_try("clang-19 --target=nvptx64-nvidia-cuda -march=sm_70 -ffreestanding -nogpulib -S");
    compiler_try("clang-19 --target=x86_64-linux-gnu -ffreestanding -nostdlib -fuse-ld=lld "
                 "-shared -fPIC");
}

static void test_other_bytes(void **state)
{
    (void)state;
    assert_true(image_has_variables("", 0));
    assert_true(text_has("something else"));
    assert_true(image_has_variables("\177ELF", 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ptx), cmocka_unit_test(test_cubin),       cmocka_unit_test(test_host),
        cmocka_unit_test(test_gpu), cmocka_unit_test(test_other_bytes),
    };
    return cmocka_run_group_tests(tests, tools_begin, tools_end);
}
