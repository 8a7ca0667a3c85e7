// SPDX-License-Identifier: Apache-2.0
// `keel cc --target=msl`: the text that it makes, and what it refuses. That the text computes what
// it should is for the conformance tests, on a Metal in software.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

static char folder[] = "/tmp/keel-msl-test-XXXXXX";
static bool have_clang;

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int run(const char *command, char *text, size_t size)
{
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    text[fread(text, 1, size - 1, pipe)] = 0;
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Compiles a source, behind <keel/kernel.h>; the text, or what was said, of 64 KiB at most.
static int make(const char *source, char *text)
{
    char command[1024];
    write_file("k.c", "#include <keel/kernel.h>\n#include \"rest.c\"\n");
    write_file("rest.c", source);
    snprintf(command, sizeof command,
             "cd %s && " KEEL_CC " k.c -o k.metal --bare --target=msl -I" SOURCE_DIR
             "/include -I. 2>&1 && cat k.metal",
             folder);
    return run(command, text, 1 << 16);
}

static int set_up(void **state)
{
    if (!mkdtemp(folder)) return -1;
    char text[256];
    have_clang = run("for n in 18 19 20 21 22; do clang-$n --version && exit 0; done 2>/dev/null; "
                     "exit 1",
                     text, sizeof text) == 0;
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static void expect(const char *source, int result, const char *const words[])
{
    static char text[1 << 16];
    if (!have_clang) skip();
    int got = make(source, text);
    if (got != result) fail_msg("keel cc ended with %d, not %d: %s", got, result, text);
    for (; *words; words++)
        if (!strstr(text, *words)) fail_msg("no '%s' in: %s", *words, text);
}

#define EXPECT(source, result, ...) expect(source, result, (const char *const[]){__VA_ARGS__, NULL})
#define REFUSES(source, why)        EXPECT(source, 1, why)

static void writes_kernels(void **state)
{
    EXPECT("KEEL_KERNEL(double_it, KEEL_GROUP(32, 2), KEEL_INOUT(float, x))\n"
           "{ KEEL_ITEMS { x[keel_global_id(0)] *= 2; } }\n",
           0,
           "// keel cc:", "[[max_total_threads_per_threadgroup(64)]] kernel void keel_double_it(",
           "[[buffer(0)]]", "item.x");
}

// A loop stays a loop, and what follows it stands behind it: a barrier there is met by all threads.
static void writes_loops_and_conditions(void **state)
{
    EXPECT(
        "KEEL_KERNEL(find, KEEL_GROUP(64), KEEL_INOUT(uint32_t, x), KEEL_LOCAL(uint32_t, l, 64))\n"
        "{\n"
        "    KEEL_ITEMS {\n"
        "        uint32_t i = keel_local_id(0), n = 0;\n"
        "        for (uint32_t a = x[i]; a != 1; n++) {\n"
        "            if (a == 7) break;\n"
        "            a = a % 2 ? 3 * a + 1 : a / 2;\n"
        "            if (x[a % 64] == 9) { n += 100; break; }\n"
        "        }\n"
        "        l[i] = n;\n"
        "    }\n"
        "    KEEL_BARRIER();\n"
        "    KEEL_ITEMS { x[keel_local_id(0)] = l[63 - keel_local_id(0)]; }\n"
        "}\n",
        0, "while (true) {", "threadgroup uint4", "\n    keel_barrier();");
}

static void knows_where_pointers_point(void **state)
{
    EXPECT("static float sum(const float *p) { return p[0] + p[1]; }\n"
           "KEEL_KERNEL(sums, KEEL_GROUP(1), KEEL_INOUT(float, x), KEEL_CONSTANTS(uint32_t, n))\n"
           "{ KEEL_ONCE { float mine[4] = {x[n], x[n + 1], 1, 2}; x[0] = sum(x) + sum(mine + n % "
           "3); } }\n",
           0, "device uchar *", "thread uchar *", "constant uchar *");
    REFUSES("KEEL_KERNEL(mixed, KEEL_GROUP(1), KEEL_INOUT(float, x), KEEL_CONSTANTS(uint32_t, n))\n"
            "{ KEEL_ONCE { float mine[4]; mine[n & 3] = x[n]; volatile float *p = n > 5 ? x : mine;"
            " for (uint32_t i = 0; i < n; i++) x[i] += p[i & 3]; } }\n",
            "kernel 'mixed': a pointer points now into one kind of memory, now into another");
}

static void gives_variables_to_kernels(void **state)
{
    EXPECT("KEEL_GLOBAL(uint32_t, words, 2) = {11, 22};\n"
           "KEEL_EXECUTABLE_CONSTANT(uint16_t, tile) = 258;\n"
           "KEEL_KERNEL(use, KEEL_GROUP(1), KEEL_OUT(uint32_t, x))\n"
           "{ KEEL_ONCE { x[0] = words[1]++ + tile; } }\n",
           0, "// keel variable: words 0 8 0\n", "// keel variable: tile 16 2 1\n",
           "// keel values: 0b00000016000000000000000000000002", "[[buffer(1)]]");
}

// LLVM may also make these of wider ones, where it sees that the upper bits are 0.
static void looks_for_bits_of_short_integers(void **state)
{
    EXPECT("KEEL_KERNEL(shorts, KEEL_GROUP(1), KEEL_INOUT(uint16_t, x), KEEL_INOUT(uint8_t, y))\n"
           "{ KEEL_ONCE { x[0] = __builtin_rotateleft16(x[1], x[2]);\n"
           "x[3] = __builtin_rotateright16(x[4], x[5]);\n"
           "y[0] = __builtin_bitreverse8(y[1]); x[6] = __builtin_clzs(x[7]);\n"
           "x[8] = __builtin_ctzs(x[9]); } }\n",
           0, "% 16u) >> 16u)", "reverse_bits(uint(", ") >> 24u)", ") - 16u)", " | 65536ul))");
}

static void computes_doubles_in_software(void **state)
{
    EXPECT("KEEL_KERNEL(wide, KEEL_GROUP(1), KEEL_INOUT(double, x))\n"
           "{ KEEL_ONCE { x[0] = x[1] * x[2] + keel_sqrt(x[3]); } }\n",
           0, "keel_double_fma(", "keel_double_sqrt(");
}

static void refuses_what_metal_has_not(void **state)
{
    REFUSES("KEEL_KERNEL(k, KEEL_GROUP(1), KEEL_INOUT(uint64_t, x))\n"
            "{ KEEL_ONCE { keel_atomic_add(x, 1); } }\n",
            "kernel 'k': Metal has no atomics of 64 bits");
    REFUSES(
        "static uint32_t again(uint32_t n) { return n < 2 ? 1 : again(n - 1) ^ again(n - 2); }\n"
        "KEEL_KERNEL(k, KEEL_GROUP(1), KEEL_INOUT(uint32_t, x))\n"
        "{ KEEL_ONCE { x[0] = again(x[1]); } }\n",
        "which is not inlined: it calls itself");
    REFUSES(
        "float expf(float x);\n"
        "KEEL_KERNEL(k, KEEL_GROUP(1), KEEL_INOUT(float, x)) { KEEL_ONCE { x[0] = expf(x[0]); } "
        "}\n",
        "nothing defines 'expf': a kernel calls keel_exp");
    REFUSES(
        "typedef float four_t __attribute__((vector_size(16)));\n"
        "KEEL_KERNEL(k, KEEL_GROUP(1), KEEL_INOUT(four_t, x)) { KEEL_ONCE { x[0] += x[1]; } }\n",
        "a vector");
    REFUSES("KEEL_KERNEL(k, KEEL_GROUP(1), KEEL_OUT(float, x), KEEL_LOCAL(float, l, 9000))\n"
            "{ KEEL_ONCE { l[0] = 1; x[0] = l[0]; } }\n",
            "takes 36000 bytes of workgroup memory; a group has 32768");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_kernels),
        cmocka_unit_test(writes_loops_and_conditions),
        cmocka_unit_test(knows_where_pointers_point),
        cmocka_unit_test(gives_variables_to_kernels),
        cmocka_unit_test(looks_for_bits_of_short_integers),
        cmocka_unit_test(computes_doubles_in_software),
        cmocka_unit_test(refuses_what_metal_has_not),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
