// SPDX-License-Identifier: Apache-2.0
// `keel cc`: what it makes, for every target that a compiler is here for, and what it says when it
// makes nothing.
#include <dlfcn.h>
#include <keel/image.h>
#include <keel/keel.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "executable/container.h"
#include "executable/image.h"
#include "ok.h"
#include "sim/cuda/image.h"
#include "unit.h"

static char folder[] = "/tmp/keel-cc-test-XXXXXX";
static bool have_clang;

static const char *in_folder(const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

// Runs `keel cc ARGUMENTS` in the folder, in an environment, and gives what it printed.
static int run(const char *environment, const char *arguments, char *text, size_t size)
{
    char command[2048];
    snprintf(command, sizeof command, "cd %s && %s " KEEL_CC " -I" SOURCE_DIR "/include %s 2>&1",
             folder, environment, arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t length = fread(text, 1, size - 1, pipe);
    text[length] = 0;
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int system_in_folder(const char *command)
{
    char whole[1024];
    snprintf(whole, sizeof whole, "cd %s && %s", folder, command);
    return system(whole);
}

static void expect_both(int result, const char *environment, const char *arguments,
                        const char *words, const char *more)
{
    char text[16384];
    int got = run(environment, arguments, text, sizeof text);
    if (got != result || !strstr(text, words) || !strstr(text, more))
        fail_msg("keel cc %s ended with %d, not %d, and said, without '%s' or '%s': %s", arguments,
                 got, result, words, more, text);
}

static void expect(int result, const char *environment, const char *arguments, const char *words)
{
    expect_both(result, environment, arguments, words, "");
}

static void make(const char *arguments)
{
    expect(0, "", arguments, "");
}

static const char source[] =
    "#include <keel/kernel.h>\n"
    "typedef struct { float a; uint32_t count; } saxpy_t;\n"
    "KEEL_KERNEL(saxpy, KEEL_GROUP(64), KEEL_IN(float, x), KEEL_INOUT(float, y),\n"
    "            KEEL_CONSTANTS(saxpy_t, k))\n"
    "{\n"
    "    KEEL_ITEMS {\n"
    "        uint64_t i = keel_global_id(0);\n"
    "        if (i < k.count) y[i] = k.a * x[i] + y[i];\n"
    "    }\n"
    "}\n"
    "typedef float row_t[4];\n"
    "KEEL_KERNEL(abs, KEEL_GROUP(4, 3, 2), KEEL_OUT(int32_t, out), KEEL_LOCAL(row_t, tile, 8))\n"
    "{\n"
    "    KEEL_ITEMS { tile[0][0] = FACTOR; }\n"
    "    KEEL_BARRIER();\n"
    "    KEEL_ONCE { out[0] = (int32_t)tile[0][0]; }\n"
    "}\n"
    "typedef struct { uint32_t *out, value; } raw_t;\n"
    "KEEL_RAW_KERNEL(raw, KEEL_GROUP(1), raw_t, k) { KEEL_ONCE { *k.out = k.value; } }\n"
    "KEEL_GLOBAL(uint32_t, words, 2) = {11, 22};\n";

static int set_up(void **state)
{
    if (!mkdtemp(folder)) return -1;
    write_file("k.c", source);
    char text[256];
    have_clang = run("", "k.c -DFACTOR=2 -o probe.keel --target=gfx90a", text, sizeof text) == 0;
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static container_t contents(const char *name, source_t *from)
{
    container_t container = {0};
    OK(source_open(in_folder(name), from));
    OK(container_read(from, &container));
    return container;
}

static const keel_image_entry_t *find(const container_image_t *image, const char *name)
{
    for (uint32_t i = 0; i < image->entry_count; i++)
        if (!strcmp(image->entries[i].info.name, name)) return &image->entries[i];
    fail_msg("%s has no entry point %s", image->target, name);
    return NULL;
}

static void check_image(const container_image_t *image, uint32_t abi)
{
    const keel_image_entry_t *saxpy = find(image, "saxpy"), *e = find(image, "abs");
    bool gpu = abi == KEEL_ABI_DIRECT;
    assert_int_equal(image->entry_count, 3);
    assert_int_equal(saxpy->abi, abi);
    assert_int_equal(saxpy->info.group_size[0], 64);
    assert_int_equal(saxpy->info.constants, 8);
    assert_int_equal(saxpy->info.bindings, 2);
    assert_int_equal(saxpy->info.local_memory, 0);
    assert_int_equal(saxpy->arguments, gpu ? 16 + 2 * 16 + 8 : 0);
    assert_string_equal(saxpy->bindings[0].name, "x");
    assert_string_equal(saxpy->bindings[1].name, "y");
    assert_int_equal(saxpy->bindings[0].access, KEEL_ACCESS_READ);
    assert_int_equal(saxpy->bindings[1].access, KEEL_ACCESS_READ | KEEL_ACCESS_WRITE);
    assert_int_equal(e->info.group_size[0], 4);
    assert_int_equal(e->info.group_size[1], 3);
    assert_int_equal(e->info.group_size[2], 2);
    assert_int_equal(e->info.local_memory, 128);
    assert_int_equal(e->bindings[0].access, KEEL_ACCESS_WRITE);
    assert_int_equal(find(image, "raw")->abi, KEEL_ABI_RAW);
    assert_int_equal(find(image, "raw")->arguments, 16);
}

// Runs saxpy of a container on a device of the host.
static void run_saxpy(const char *name)
{
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_entry_t saxpy;
    keel_buffer_t *x, *y;
    struct {
        float a;
        uint32_t count;
    } k = {2.0f, 100};
    float numbers[100];
    keel_executable_options_t image = {.path = in_folder(name)};
    OK(keel_device_open("cpu://inline", NULL, &device));
    OK(keel_executable_load(device, &image, &kernels));
    OK(keel_executable_entry(kernels, "saxpy", &saxpy));
    OK(keel_buffer_create(device, &(keel_buffer_options_t){.size = sizeof numbers}, &x));
    OK(keel_buffer_create(device, &(keel_buffer_options_t){.size = sizeof numbers}, &y));
    for (int i = 0; i < 100; i++) numbers[i] = (float)i;
    OK(keel_buffer_write(x, 0, numbers, sizeof numbers));
    OK(keel_buffer_write(y, 0, numbers, sizeof numbers));
    keel_point_t done;
    OK(keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS,
                      keel_op_dispatch(saxpy, keel_groups(2, 1, 1), &k, sizeof k, KEEL_BIND(x, y)),
                      &done));
    OK(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    OK(keel_buffer_read(y, 0, numbers, sizeof numbers));
    for (int i = 0; i < 100; i++) assert_true(numbers[i] == 3.0f * (float)i);
    keel_buffer_t *words;
    uint32_t read[2];
    OK(keel_executable_global(kernels, "words", &words));
    OK(keel_buffer_read(words, 0, read, sizeof read));
    assert_int_equal(read[1], 22);
    keel_buffer_release(words);
    keel_buffer_release(x);
    keel_buffer_release(y);
    keel_executable_release(kernels);
    keel_device_release(device);
}

static void makes_kernels_of_the_host(void **state)
{
    source_t from;
    make("k.c -DFACTOR=2 -o host.keel");
    container_t container = contents("host.keel", &from);
    assert_true(container.image_count >= 2); // levels of vectors
    for (uint32_t i = 0; i < container.image_count; i++) {
        assert_int_equal(container.images[i].kind, KEEL_IMAGE_HOST);
        check_image(&container.images[i], KEEL_ABI_HOST);
    }
    container_finish(&container);
    source_finish(&from);
    run_saxpy("host.keel");
}

static void makes_kernels_of_the_host_by_cc(void **state)
{
    make("k.c -DFACTOR=2 -o cc.keel --host-cc=" HOST_CC " --compress");
    run_saxpy("cc.keel");
}

// Code for AMD knows how large its groups are.
static void check_sizes(const container_t *container, const source_t *from, uint32_t index)
{
    void *bytes = malloc(container->images[index].size);
    image_info_t info;
    OK(container_image_read(container, from, index, bytes));
    OK(image_read(bytes, container->images[index].size, &info));
    assert_int_equal(info.entry_count, 5);
    for (uint32_t i = 0; i < info.entry_count; i++) {
        const char *name = info.entries[i].name;
        uint32_t items = *name == 's' ? 64 : *name == 'a' ? 24 : 1;
        assert_int_equal(info.entries[i].max_group_size, items);
    }
    image_info_finish(&info);
    free(bytes);
}

static void makes_kernels_of_gpus(void **state)
{
    if (!have_clang) skip();
    static const struct {
        const char *target;
        uint32_t kind;
    } rows[] = {
        {"nvptx:sm_70", KEEL_IMAGE_PTX}, {"gfx900", KEEL_IMAGE_HSACO},
        {"gfx90a", KEEL_IMAGE_HSACO},    {"gfx942", KEEL_IMAGE_HSACO},
        {"gfx1100", KEEL_IMAGE_HSACO},   {"gfx1201", KEEL_IMAGE_HSACO},
    };
    source_t from;
    make("k.c -D FACTOR=2 -o gpu.keel "
         "--target=nvptx:sm_70,gfx900,gfx90a,gfx942,gfx1100,gfx1201");
    container_t container = contents("gpu.keel", &from);
    assert_int_equal(container.image_count, 6);
    for (uint32_t i = 0; i < 6; i++) {
        assert_string_equal(container.images[i].target, rows[i].target);
        assert_int_equal(container.images[i].kind, rows[i].kind);
        check_image(&container.images[i], KEEL_ABI_DIRECT);
    }
    for (uint32_t i = 1; i < 6; i++) check_sizes(&container, &from, i);
    char *ptx = malloc(container.images[0].size);
    OK(container_image_read(&container, &from, 0, ptx));
    assert_int_equal(ptx[container.images[0].size - 1], 0);
    assert_null(strstr(ptx, "keel_record_"));
    assert_non_null(strstr(ptx, ".version 8.0\n")); // whatever toolkit is installed
    assert_non_null(strstr(ptx, ".visible .entry saxpy("));
    assert_non_null(strstr(ptx, ".visible .entry saxpy$walk("));
    assert_non_null(strstr(ptx, ".reqntid 64, 1, 1\n{"));
    assert_non_null(strstr(ptx, ".reqntid 4, 3, 2\n{"));
    free(ptx);
    container_finish(&container);
    source_finish(&from);
}

// The version of PTX is that of the GPU, whatever toolkit is installed, and if none is. Sub-groups
// need one that clang does not take by itself. GPUs that the clang here does not know are left out.
static void says_the_version_of_ptx(void **state)
{
    if (!have_clang) skip();
    static const struct {
        const char *gpu, *version;
    } rows[] = {
        {"sm_70", "8.0"},   {"sm_90", "8.0"},   {"sm_90a", "8.0"},  {"sm_100", "8.6"},
        {"sm_100f", "8.8"}, {"sm_101", "8.6"},  {"sm_103", "8.8"},  {"sm_120", "8.7"},
        {"sm_120a", "8.7"}, {"sm_120f", "8.8"}, {"sm_121a", "8.8"},
    };
    write_file("lanes.c", "#include <keel/kernel.h>\n"
                          "KEEL_KERNEL(lanes, KEEL_GROUP(64), KEEL_INOUT(uint32_t, x))\n"
                          "{\n"
                          "    KEEL_ITEMS { x[keel_local_id(0)] = keel_subgroup_shuffle(1u, 3); }\n"
                          "}\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char arguments[128], text[4096], wanted[64];
        snprintf(arguments, sizeof arguments, "lanes.c -o lanes.ptx --bare --target=nvptx:%s",
                 rows[i].gpu);
        int result = run("", arguments, text, sizeof text);
        if (result && i > 2 && strstr(text, "unknown target CPU")) continue;
        if (result) fail_msg("keel cc %s said: %s", arguments, text);
        snprintf(wanted, sizeof wanted, "grep -qx '.version %s' lanes.ptx", rows[i].version);
        assert_int_equal(system_in_folder(wanted), 0);
    }
}

// More workgroup memory than NVIDIA's code may have of its own is the launch's.
static void makes_kernels_with_much_memory(void **state)
{
    if (!have_clang) skip();
    source_t from;
    write_file("much.c",
               "#include <keel/kernel.h>\n"
               "KEEL_KERNEL(much, KEEL_GROUP(64), KEEL_INOUT(float, x),\n"
               "            KEEL_LOCAL(float, tile, 20000))\n"
               "{\n"
               "    KEEL_ITEMS { tile[keel_local_id(0) * 300] = x[keel_global_id(0)]; }\n"
               "    KEEL_BARRIER();\n"
               "    KEEL_ITEMS { x[keel_global_id(0)] = tile[(63 - keel_local_id(0)) * 300]; }\n"
               "}\n");
    static const char *const levels[] = {"-O0", "-O3"};
    for (int i = 0; i < 2; i++) {
        char arguments[128];
        snprintf(arguments, sizeof arguments, "much.c %s -o much.keel --target=nvptx:sm_70",
                 levels[i]);
        make(arguments);
        container_t container = contents("much.keel", &from);
        assert_int_equal(container.images[0].entries[0].info.local_memory, 80000);
        char *ptx = malloc(container.images[0].size);
        OK(container_image_read(&container, &from, 0, ptx));
        assert_non_null(strstr(ptx, ".extern .shared .align 16 .b8 keel_launched_memory[]"));
        assert_null(strstr(ptx, "80000"));
        FILE *file = fopen(in_folder("much.ptx"), "w");
        fputs(ptx, file);
        fclose(file);
        assert_int_equal(system_in_folder("! command -v ptxas >/dev/null || "
                                          "ptxas -arch=sm_90 much.ptx -o much.cubin"),
                         0);
        free(ptx);
        container_finish(&container);
        source_finish(&from);
    }
}

static void makes_kernels_of_another_host(void **state)
{
    if (!have_clang) skip();
    source_t from;
    make("k.c -DFACTOR=2 -o hosts.keel --target=x86_64-linux:v3,aarch64-linux");
    container_t container = contents("hosts.keel", &from);
    assert_int_equal(container.image_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(container.images[i].kind, KEEL_IMAGE_HOST);
        check_image(&container.images[i], KEEL_ABI_HOST);
    }
    container_finish(&container);
    source_finish(&from);
    run_saxpy("hosts.keel");
}

#if defined(__aarch64__)
#define OWN_TARGET "aarch64-linux"
#else
#define OWN_TARGET "x86_64-linux"
#endif

static const cuda_host_entry_t *entry_of(const cuda_host_image_t *image, const char *name)
{
    for (uint32_t i = 0; i < image->entry_count; i++)
        if (!strcmp(image->entries[i].name, name)) return &image->entries[i];
    fail_msg("no entry %s", name);
    return NULL;
}

// Code of the host that is launched as on a GPU, by entry points of another header.
static void makes_kernels_with_other_entries(void **state)
{
    make("k.c -DFACTOR=2 -o other.so --target=" OWN_TARGET " --bare -I" SOURCE_DIR
         "/sim '-DKEEL_ENTRY_HEADER=\"cuda/entries.h\"'");
    void *library = dlopen(in_folder("other.so"), RTLD_NOW);
    if (!library) fail_msg("%s", dlerror());
    const cuda_host_image_t *image = dlsym(library, CUDA_HOST_IMAGE);
    assert_int_equal(image->abi, CUDA_HOST_ABI);
    assert_int_equal(image->entry_count, 5);

    float x[64], y[64] = {0};
    for (int i = 0; i < 64; i++) x[i] = (float)i;
    struct {
        uint32_t groups[3], zero;
        uint64_t counts, table, addresses[2], lengths[2];
        float a;
        uint32_t count;
    } walk = {{1, 1, 1}, 0, 0, 0, {(uintptr_t)x, (uintptr_t)y}, {sizeof x, sizeof y}, 2.0f, 64};
    const cuda_host_entry_t *entry = entry_of(image, "saxpy$walk");
    assert_int_equal(entry->threads[0], 64);
    assert_int_equal(entry->param_size, sizeof walk);
    assert_int_equal(entry->params[0].size, sizeof walk);
    cuda_host_block_t block = {{0, 0, 0}, {1, 1, 1}, {64, 1, 1}, 0, NULL};
    assert_int_equal(entry->kernel(&walk, &block), 0);
    for (int i = 0; i < 64; i++) assert_true(y[i] == 2.0f * (float)i);
    // The second of two groups has nothing to do.
    block = (cuda_host_block_t){{1, 0, 0}, {2, 1, 1}, {64, 1, 1}, 0, NULL};
    assert_int_equal(entry->kernel(&walk, &block), 0);
    assert_true(y[1] == 2.0f);
    assert_int_equal(entry_of(image, "abs")->shared_size, 128);
    dlclose(library);
}

// With what is compiled, and alone.
static void packs_images_made_elsewhere(void **state)
{
    source_t from;
    make("k.c -DFACTOR=2 -o other.so --target=" OWN_TARGET " --bare -I" SOURCE_DIR
         "/sim '-DKEEL_ENTRY_HEADER=\"cuda/entries.h\"'");
    make("k.c -DFACTOR=2 -o with.keel --target=" OWN_TARGET " --image=cubin:nvptx:sm_0=other.so");
    container_t container = contents("with.keel", &from);
    assert_int_equal(container.image_count, 2);
    check_image(&container.images[0], KEEL_ABI_HOST);
    check_image(&container.images[1], KEEL_ABI_DIRECT);
    assert_int_equal(container.images[1].kind, KEEL_IMAGE_CUBIN);
    assert_string_equal(container.images[1].target, "nvptx:sm_0");
    container_finish(&container);
    source_finish(&from);
    make("-o alone.keel --image=cubin:nvptx:sm_0=other.so");
    container = contents("alone.keel", &from);
    assert_int_equal(container.image_count, 1);
    container_finish(&container);
    source_finish(&from);
    expect(2, "", "-o x.keel --image=cubin:nvptx:sm_0", "is not KIND:TARGET=FILE");
    expect(2, "", "-o x.keel --image=elf:nvptx:sm_0=other.so", "is not KIND:TARGET=FILE");
    expect(2, "", "k.c -o x.keel --bare --target=host --image=cubin:nvptx:sm_0=other.so",
           "--bare writes one image");
    expect(1, "", "-o x.keel --image=cubin:nvptx:sm_0=nowhere.so", "nowhere.so: ");
    expect(1, "", "-o x.keel --image=cubin:nvptx:sm_0=k.c", "k.c: ");
}

static void shows_mistakes_where_they_are(void **state)
{
    write_file("bad.c", "#include <keel/kernel.h>\n"
                        "KEEL_KERNEL(bad, KEEL_GROUP(1), KEEL_OUT(float, y))\n"
                        "{\n"
                        "    KEEL_ITEMS { y[0] = nobody; }\n"
                        "}\n");
    expect(1, "", "bad.c -o bad.keel", "bad.c:4:");
    expect(1, "", "bad.c -o bad.keel --host-cc=" HOST_CC, "bad.c:4:");
    if (have_clang) expect(1, "", "bad.c -o bad.keel --target=gfx90a", "bad.c:4:");
    assert_int_not_equal(access(in_folder("bad.keel"), F_OK), 0);
    write_file("barrier.c", "#include <keel/kernel.h>\n"
                            "KEEL_KERNEL(bad, KEEL_GROUP(8), KEEL_OUT(float, y))\n"
                            "{\n"
                            "    KEEL_ITEMS {\n"
                            "        KEEL_BARRIER();\n"
                            "        y[0] = 1;\n"
                            "    }\n"
                            "}\n");
    expect(1, "", "barrier.c -o bad.keel", "barrier.c:5:");
    if (have_clang) expect(1, "", "barrier.c -o bad.keel --target=nvptx:sm_70", "barrier.c:5:");
    write_file("return.c", "#include <keel/kernel.h>\n"
                           "KEEL_KERNEL(bad, KEEL_GROUP(8), KEEL_OUT(float, y))\n"
                           "{\n"
                           "    KEEL_ITEMS {\n"
                           "        if (keel_local_id(0) == 3) return;\n"
                           "        y[keel_local_id(0)] = 1;\n"
                           "    }\n"
                           "}\n");
    expect(1, "", "return.c -o bad.keel", "return.c:5:");
    expect(1, "", "return.c -o bad.keel --host-cc=" HOST_CC, "return.c:5:");
    write_file("none.c", "#include <keel/kernel.h>\n");
    expect(1, "", "none.c -o bad.keel", "KEEL_KERNEL");
    write_file("wrong.c",
               "#include <keel/kernel.h>\n"
               "KEEL_KERNEL(wrong, KEEL_GROUP(8), KEEL_OUT(float, y), KEEL_INPUT(float, x))\n"
               "{\n"
               "    KEEL_ONCE { y[0] = 1; }\n"
               "}\n");
    expect(1, "", "wrong.c -o bad.keel", "KEEL_INPUT(float, x) is no parameter of a kernel");
    expect(1, "", "wrong.c -o bad.keel --host-cc=" HOST_CC, "wrong.c:2:");
    if (have_clang) expect(1, "", "wrong.c -o bad.keel --target=gfx900", "is no parameter");
    write_file("empty.c", "");
    expect(1, "", "empty.c -o bad.keel", "KEEL_KERNEL");
    write_file("two.c",
               "#include <keel/kernel.h>\n"
               "KEEL_KERNEL(k, KEEL_GROUP(1), KEEL_OUT(float, y)) { KEEL_ONCE { *y = 1; } }\n"
               "KEEL_KERNEL(k, KEEL_GROUP(1), KEEL_OUT(float, y)) { KEEL_ONCE { *y = 2; } }\n");
    expect(1, "", "two.c -o bad.keel", "two.c:3:");
    expect(1, "", "k.c -DFACTOR=2 -fno-such-thing -o bad.keel", "-fno-such-thing");
    assert_int_not_equal(access(in_folder("bad.keel"), F_OK), 0);
}

// A kernel that assigns an expression, in groups of some size, is refused for every target.
static void expect_refused(const char *expression, int size, const char *words)
{
    char text[1024], arguments[128];
    snprintf(text, sizeof text,
             "#include <keel/kernel.h>\n"
             "KEEL_KERNEL(wrong, KEEL_GROUP(%d), KEEL_IN(keel_half_t, h),\n"
             "            KEEL_IN(keel_bfloat_t, b), KEEL_IN(double, d), KEEL_INOUT(float, y))\n"
             "{\n"
             "    KEEL_ITEMS { y[keel_local_id(0)] = %s; }\n"
             "}\n",
             size, expression);
    write_file("wrong.c", text);
    static const char *const how[] = {OWN_TARGET, OWN_TARGET " --host-cc=" HOST_CC, "nvptx:sm_70",
                                      "gfx90a"};
    for (int i = 0; i < (have_clang ? 4 : 2); i++) {
        snprintf(arguments, sizeof arguments, "wrong.c -o bad.keel --target=%s", how[i]);
        expect_both(1, "", arguments, words, "wrong.c:5:");
    }
}

static void refuses_arithmetic_of_short_numbers(void **state)
{
    expect_refused("h[0] * 2.0f", 64, "invalid operands to binary");
    expect_refused("b[0] + b[1]", 64, "invalid operands to binary");
    expect_refused("h[0]", 64, "incompatible type");
}

static void refuses_to_narrow_doubles(void **state)
{
    expect_refused("keel_half_of(d[0]).bits", 64, "keel_half_of takes floats, and this is");
    expect_refused("keel_bfloat_of(d[0]).bits", 64, "keel_bfloat_of takes floats, and this is");
}

static void refuses_groups_of_broken_subgroups(void **state)
{
    static const char words[] = "a group with sub-group operations has a multiple of 64 items";
    expect_refused("keel_subgroup_add(y[0])", 33, words);
    expect_refused("keel_subgroup_shuffle(y[0], 1)", 32, words);
    expect_refused("keel_subgroup_any(y[0] > 1)", 96, words);
}

// The launch adds to what a kernel declares all that a group may have, so the compiler must not put
// anything else there: an array that a work-item has for itself, or what the walk keeps.
static void local_memory_is_what_is_declared(void **state)
{
    if (!have_clang) return;
    write_file("private.c",
               "#include <keel/kernel.h>\n"
               "KEEL_KERNEL(private, KEEL_GROUP(64), KEEL_IN(uint32_t, x), KEEL_OUT(uint32_t, y),\n"
               "            KEEL_LOCAL(uint32_t, tile, 64))\n"
               "{\n"
               "    KEEL_ITEMS {\n"
               "        uint32_t i = keel_local_id(0), own[6];\n"
               "        for (int k = 0; k < 6; k++) own[k] = x[k * i];\n"
               "        tile[i] = own[x[i] % 6];\n"
               "    }\n"
               "    KEEL_BARRIER();\n"
               "    KEEL_ITEMS { y[keel_global_id(0)] = tile[63 - keel_local_id(0)]; }\n"
               "}\n");
    make("private.c -o private.co --bare --target=gfx90a");
    static char bytes[1 << 16];
    keel_image_info_t *image = NULL;
    FILE *file = fopen(in_folder("private.co"), "r");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_null(keel_image_info(bytes, size, &image));
    assert_int_equal(image->entry_count, 2); // private and private$walk
    for (uint32_t i = 0; i < 2; i++) assert_int_equal(image->entries[i].local_memory, 64 * 4);
    keel_image_info_release(image);
}

// In each target's own words, in which the kernel or the function is named.
static void refuses_functions_that_nothing_defines(void **state)
{
    write_file("undefined.c",
               "#include <keel/kernel.h>\n"
               "float FUNCTION(float);\n"
               "KEEL_KERNEL(calls, KEEL_GROUP(64), KEEL_INOUT(float, x))\n"
               "{\n"
               "    KEEL_ITEMS { x[keel_local_id(0)] = FUNCTION(x[keel_local_id(0)]); }\n"
               "}\n");
    static const char *const how[] = {OWN_TARGET, OWN_TARGET " --host-cc=" HOST_CC, "nvptx:sm_70",
                                      "gfx90a"};
    for (int i = 0; i < (have_clang ? 4 : 2); i++) {
        char arguments[128];
        snprintf(arguments, sizeof arguments, "undefined.c -DFUNCTION=expf -o bad.keel --target=%s",
                 how[i]);
        expect_both(1, "", arguments, "expf", "a kernel calls keel_exp");
        snprintf(arguments, sizeof arguments, "undefined.c -DFUNCTION=mine -o bad.keel --target=%s",
                 how[i]);
        expect_both(1, "", arguments, "mine", "no code for");
    }
    // One that compilers call themselves, and one that may be missing.
    write_file("weak.h", "float mine(float) __attribute__((weak));\n");
    make("undefined.c -DFUNCTION=floorf -o good.keel --target=" OWN_TARGET);
    make("undefined.c -DFUNCTION=mine -include weak.h -o good.keel --target=" OWN_TARGET);
    write_file("undeclared.c", "#include <keel/kernel.h>\n"
                               "KEEL_KERNEL(calls, KEEL_GROUP(1), KEEL_INOUT(float, x))\n"
                               "{\n"
                               "    KEEL_ONCE { *x = tanhf(*x); }\n"
                               "}\n");
    expect_both(1, "", "undeclared.c -o bad.keel --target=" OWN_TARGET,
                "undeclared.c:4:", "a kernel calls keel_tanh instead of tanhf");
    expect_both(1, "", "undeclared.c -o bad.keel --target=" OWN_TARGET " --host-cc=" HOST_CC,
                "undeclared.c:4:", "a kernel calls keel_tanh");
    assert_int_not_equal(access(in_folder("bad.keel"), F_OK), 0);
}

static void refuses_too_much_memory(void **state)
{
    write_file("memory.c",
               "#include <keel/kernel.h>\n"
               "typedef struct { uint32_t words[PRIVATE]; } private_t;\n"
               "KEEL_KERNEL(greedy, KEEL_GROUP(1024), KEEL_INOUT(uint32_t, x),\n"
               "            KEEL_LOCAL(uint32_t, tile, SHARED))\n"
               "{\n"
               "    KEEL_PRIVATE(private_t, p);\n"
               "    uint32_t n = x[0];\n"
               "    KEEL_ITEMS {\n"
               "        for (uint32_t i = 0; i < n; i++) keel_mine(p).words[i % PRIVATE] = x[i];\n"
               "        tile[keel_local_id(0)] = x[keel_local_id(0)];\n"
               "    }\n"
               "    KEEL_BARRIER();\n"
               "    KEEL_ITEMS {\n"
               "        uint32_t i = keel_local_id(0);\n"
               "        x[i] = keel_mine(p).words[tile[1023 - i] % PRIVATE];\n"
               "    }\n"
               "}\n");
    static const struct {
        const char *arguments, *words, *more;
    } rows[] = {
        {"-DPRIVATE=2048 -DSHARED=1024 --target=" OWN_TARGET, "frame size", "1048576"},
        {"-DPRIVATE=2048 -DSHARED=1024 --target=" OWN_TARGET " --host-cc=" HOST_CC, "frame size",
         "1048576"},
        {"-DPRIVATE=1 -DSHARED=300000 --target=" OWN_TARGET,
         "kernel 'greedy' takes 1200000 bytes of workgroup memory", "a group has 1048576"},
        {"-DPRIVATE=1 -DSHARED=25000 --target=nvptx:sm_70", "kernel 'greedy' takes 100000 bytes",
         "a group has 98304"},
        {"-DPRIVATE=1 -DSHARED=60000 --target=nvptx:sm_90", "kernel 'greedy' takes 240000 bytes",
         "a group has 232448"},
        {"-DPRIVATE=1 -DSHARED=25000 --target=gfx90a", "kernel 'greedy' takes 100000 bytes",
         "a group has 65536"},
        {"-DPRIVATE=132000 -DSHARED=1024 --target=nvptx:sm_70",
         "kernel 'greedy' takes 528000 bytes", "an item has 524288"},
        {"-DPRIVATE=33000 -DSHARED=1024 --target=gfx90a", "stack frame size", "greedy"},
    };
    for (size_t i = 0; i < (have_clang ? sizeof rows / sizeof rows[0] : 3); i++) {
        char arguments[128];
        snprintf(arguments, sizeof arguments, "memory.c -o bad.keel %s", rows[i].arguments);
        expect_both(1, "", arguments, rows[i].words, rows[i].more);
    }
    assert_int_not_equal(access(in_folder("bad.keel"), F_OK), 0);
    make("memory.c -o good.keel -DPRIVATE=240 -DSHARED=262144 --target=" OWN_TARGET);
    if (have_clang) {
        make("memory.c -o good.keel -DPRIVATE=130000 -DSHARED=24000 --target=nvptx:sm_70");
        make("memory.c -o good.keel -DPRIVATE=1 -DSHARED=40000 --target=nvptx:sm_80");
    }
}

// However many compilers say it, and however often they are run.
static void expect_one_sentence(const char *first, const char *arguments)
{
    char text[16384], both[1024];
    snprintf(both, sizeof both,
             "#include <keel/kernel.h>\n"
             "typedef struct { float *y; } raw_t;\n"
             "%s { KEEL_ONCE { k.y[0] = 1; } }\n"
             "KEEL_KERNEL(other, KEEL_GROUP(1), KEEL_OUT(float, y)) { y[0] = nobody; }\n"
             "KEEL_KERNEL(twice, KEEL_GROUP(8), KEEL_OUT(float, y)) { KEEL_ONCE { y[0] = 2; } }\n",
             first);
    write_file("twice.c", both);
    assert_int_equal(run("", arguments, text, sizeof text), 1);
    const char *told = strstr(text, "twice.c:5:1: error: there is a kernel 'twice' already\n"
                                    "twice.c:3:1: note: here\n");
    if (!told || strstr(text, "redefinition") || strstr(text, "keel_body_twice") ||
        !strstr(text, "twice.c:4:"))
        fail_msg("keel cc %s said: %s", arguments, text);
}

static void shows_two_kernels_of_one_name(void **state)
{
    static const char *const firsts[] = {
        "KEEL_RAW_KERNEL(twice, KEEL_GROUP(1), raw_t, k)",
        "KEEL_KERNEL(twice, KEEL_GROUP(1), KEEL_CONSTANTS(raw_t, k))",
    };
    for (int i = 0; i < 2; i++) {
        expect_one_sentence(firsts[i], "twice.c -o x.keel");
        expect_one_sentence(firsts[i], "twice.c -o x.keel --host-cc=" HOST_CC);
        if (!have_clang) continue;
        expect_one_sentence(firsts[i], "twice.c -o x.keel --target=nvptx:sm_70");
        expect_one_sentence(firsts[i], "twice.c -o x.keel --target=gfx90a");
    }
}

// A compiler that takes its time, and notes that it runs.
static pid_t start_slowly(void)
{
    write_file("slow", "#!/bin/sh\necho $$ >>started\nexec sleep 100\n");
    assert_int_equal(chmod(in_folder("slow"), 0755), 0);
    assert_int_equal(mkdir(in_folder("tmp"), 0700), 0);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGINT, SIG_DFL);
        if (chdir(folder) == 0 && setenv("TMPDIR", "tmp", 1) == 0)
            execl("/bin/sh", "sh", "-c",
                  "exec " KEEL_CC " -I" SOURCE_DIR "/include k.c -DFACTOR=1 -o slow.keel"
                  " --host-cc=./slow",
                  NULL);
        _exit(126);
    }
    for (int i = 0; i < 3000 && access(in_folder("started"), F_OK) != 0; i++) usleep(10000);
    return pid;
}

static void leaves_nothing_when_interrupted(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        pid_t pid = start_slowly();
        int status = 0, compiler = 0;
        assert_int_equal(kill(pid, signals[i]), 0);
        assert_true(waitpid(pid, &status, 0) == pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
        FILE *started = fopen(in_folder("started"), "r");
        assert_non_null(started);
        while (fscanf(started, "%d", &compiler) == 1) assert_int_not_equal(kill(compiler, 0), 0);
        fclose(started);
        assert_int_not_equal(compiler, 0);
        assert_int_not_equal(access(in_folder("slow.keel"), F_OK), 0);
        assert_int_equal(rmdir(in_folder("tmp")), 0); // there was nothing in it
        assert_int_equal(unlink(in_folder("started")), 0);
    }
}

static void shows_a_warning_once(void **state)
{
    char text[16384];
    write_file("warn.c", "#include <keel/kernel.h>\n"
                         "KEEL_KERNEL(warn, KEEL_GROUP(1), KEEL_OUT(float, y))\n"
                         "{\n"
                         "    int unused_one;\n"
                         "    KEEL_ONCE { y[0] = 1; }\n"
                         "}\n");
    const char *targets = have_clang ? "host,nvptx:sm_70,gfx900,gfx90a" : "host";
    char arguments[128];
    snprintf(arguments, sizeof arguments, "warn.c -Wall -o warn.keel --target=%s", targets);
    assert_int_equal(run("", arguments, text, sizeof text), 0);
    const char *first = strstr(text, "warn.c:4:");
    if (!first || strstr(first + 1, "warn.c:4:")) fail_msg("not once: %s", text);
}

// What cannot be written changes nothing, and what is written is there at once and as a whole.
static void writes_all_or_nothing(void **state)
{
    struct stat before, after;
    make("k.c -DFACTOR=2 -o out.keel");
    assert_int_equal(stat(in_folder("out.keel"), &before), 0);
    expect(1, "", "k.c -o out.keel", "FACTOR");
    assert_int_equal(stat(in_folder("out.keel"), &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(symlink("out.keel", in_folder("link.keel")), 0);
    make("k.c -DFACTOR=2 -o link.keel");
    assert_int_equal(lstat(in_folder("link.keel"), &after), 0);
    assert_true(S_ISLNK(after.st_mode));
    assert_int_equal(stat(in_folder("out.keel"), &after), 0);
    assert_int_not_equal(before.st_ino, after.st_ino);
    make("k.c -DFACTOR=2 -o /dev/null");
    assert_int_equal(stat("/dev/null", &after), 0);
    assert_true(S_ISCHR(after.st_mode));
    if (access("/dev/full", W_OK) == 0) {
        expect(1, "", "k.c -DFACTOR=2 -o /dev/full", "cannot write /dev/full: No space left");
        assert_int_equal(access("/dev/full", W_OK), 0);
    }
    expect(1, "", "k.c -DFACTOR=2 -o .", "cannot write .: Is a directory");
    assert_int_equal(mkdir(in_folder("locked"), 0500), 0);
    if (geteuid() != 0) expect(1, "", "k.c -DFACTOR=2 -o locked/x.keel", "Permission denied");
    assert_int_equal(system_in_folder("test -z \"$(ls -A locked; ls | grep '\\.new$')\""), 0);
}

static void takes_any_path(void **state)
{
    assert_int_equal(system_in_folder("mkdir 'K\303\244se und \"Brot\"' && "
                                      "cp k.c 'K\303\244se und \"Brot\"/\317\200 $x.c'"),
                     0);
    make("'K\303\244se und \"Brot\"/\317\200 $x.c' -DFACTOR=2 -o 'K\303\244se und "
         "\"Brot\"/\342\202\254.keel'");
    assert_int_equal(system_in_folder("cp 'K\303\244se und \"Brot\"/\342\202\254.keel' euro.keel"),
                     0);
    run_saxpy("euro.keel");
    assert_int_equal(system_in_folder("mkdir -p a-folder-for-temporary-files-with-a-long-name"), 0);
    expect(0, "TMPDIR=$PWD/a-folder-for-temporary-files-with-a-long-name",
           "k.c -DFACTOR=2 -o long.keel", "");
    expect(1, "TMPDIR=/no/folder", "k.c -DFACTOR=2 -o x.keel", "in /no/folder: No such file");
}

static void says_what_is_missing(void **state)
{
    expect(2, "", "", "no source is given");
    expect(2, "", "k.c", "-o FILE is missing");
    expect(2, "", "k.c -o", "-o takes the name of a file");
    expect(2, "", "nothing.c -o x.keel", "cannot read nothing.c: No such file");
    expect(2, "", "k.c -o x.keel --target=", "without a target");
    expect(2, "", "k.c -o x.keel --target=host,,gfx900", "without a target");
    expect(2, "", "k.c -o x.keel --target=host,", "without a target");
    expect(2, "", "k.c k.c -o x.keel", "one source makes a container");
    expect(2, "", "k.c -o x.keel --target=host,gfx", "no target is called 'gfx'");
    expect(2, "", "k.c -o x.keel --target=sm_70", "no target is called 'sm_70'");
    expect(2, "", "k.c -o x.keel --target=nvptx:sm_70,nvptx:sm_70", "given twice");
    expect(2, "", "k.c -o x.keel -mavx", "no option is called -mavx");
    expect(1, "", "k.c -o x.keel --clang=/no/clang", "there is no program /no/clang");
    expect(1, "", "k.c -o x.keel --clang=/bin/ls", "/bin/ls is no clang of version 18 or later");
    expect(1, "PATH=/nowhere", "k.c -o x.keel --target=gfx90a", "needs clang 18 or later");
    expect(1, "PATH=/nowhere", "k.c -o x.keel", "or another C compiler, and none is on PATH");
    if (have_clang) expect(1, "", "k.c -DFACTOR=2 -o x.keel --target=gfx9999", "gfx9999");
    expect(1, "", "k.c -DFACTOR=2 -o /no/folder/x.keel", "cannot write /no/folder/x.keel");
    expect(0, "", "--help", "usage: keel cc");
}

static void says_what_it_read(void **state)
{
    make("k.c -DFACTOR=2 -o d.keel -MD -MF d.d");
    FILE *file = fopen(in_folder("d.d"), "r");
    assert_non_null(file);
    char text[8192];
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_non_null(strstr(text, "d.keel:"));
    assert_non_null(strstr(text, "keel/kernel/math.h"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_kernels_of_the_host),
        cmocka_unit_test(makes_kernels_of_the_host_by_cc),
        cmocka_unit_test(makes_kernels_of_gpus),
        cmocka_unit_test(says_the_version_of_ptx),
        cmocka_unit_test(makes_kernels_with_much_memory),
        cmocka_unit_test(makes_kernels_of_another_host),
        cmocka_unit_test(makes_kernels_with_other_entries),
        cmocka_unit_test(packs_images_made_elsewhere),
        cmocka_unit_test(shows_mistakes_where_they_are),
        cmocka_unit_test(refuses_arithmetic_of_short_numbers),
        cmocka_unit_test(refuses_to_narrow_doubles),
        cmocka_unit_test(refuses_groups_of_broken_subgroups),
        cmocka_unit_test(refuses_functions_that_nothing_defines),
        cmocka_unit_test(refuses_too_much_memory),
        cmocka_unit_test(shows_two_kernels_of_one_name),
        cmocka_unit_test(leaves_nothing_when_interrupted),
        cmocka_unit_test(local_memory_is_what_is_declared),
        cmocka_unit_test(shows_a_warning_once),
        cmocka_unit_test(writes_all_or_nothing),
        cmocka_unit_test(takes_any_path),
        cmocka_unit_test(says_what_is_missing),
        cmocka_unit_test(says_what_it_read),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
