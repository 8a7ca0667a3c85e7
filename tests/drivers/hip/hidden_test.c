// SPDX-License-Identifier: Apache-2.0
// Bare code objects of other compilers, whose kernels have hidden arguments behind their own: HIP
// fills them in. Those of hipcc come in a bundle.
#include <keel/keel.h>

#include "executable/tools.h"

// Where clang puts them, by the version of the code object: three offsets of the grid in 4, and in
// 5 the number of groups and, behind three such numbers, the size of one.
static const char source[] =
    "kernel void hidden(global uint *out, uint k)\n"
    "{ size_t i = __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +\n"
    "             __builtin_amdgcn_workitem_id_x();\n"
    "#if VERSION == 4\n"
    "  constant ulong *at = (constant ulong *)__builtin_amdgcn_implicitarg_ptr();\n"
    "  out[i] = k + i + (uint)(at[0] + at[1] + at[2]);\n"
    "#else\n"
    "  constant uint *at = (constant uint *)__builtin_amdgcn_implicitarg_ptr();\n"
    "  out[i] = k + i + (at[0] - 3) + (((constant ushort *)at)[6] - 64);\n"
    "#endif\n"
    "}\n";

static const char source_hip[] =
    "#include <hip/hip_runtime.h>\n"
    "extern \"C\" __global__ void hidden(unsigned *out, unsigned k)\n"
    "{ unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  const unsigned long *at = (const unsigned long *)__builtin_amdgcn_implicitarg_ptr();\n"
    "  out[i] = k + i + (gridDim.x - 3) + (unsigned)(at[0] + at[1] + at[2]); }\n";

enum { GROUPS = 3, SIZE = 64, K = 1000 };

static keel_device_t *device;

static void ok(keel_status_t status)
{
    if (status) {
        keel_status_print(status, stderr);
        fail();
    }
}

static void compile(int version)
{
    tools_need("clang-19 ld.lld-19");
    tools_write("k.cl", source, sizeof source - 1);
    tools_run("clang-19 -x cl -cl-std=CL2.0 -Xclang -finclude-default-header -nogpulib -O2 "
              "--target=amdgcn-amd-amdhsa -mcpu=gfx90a -DVERSION=%d -mcode-object-version=%d k.cl "
              "-o k.hsaco",
              version, version);
}

static void run(keel_executable_t *executable)
{
    uint8_t block[512]; // what is hidden is not for the caller to give
    keel_entry_t entry;
    keel_buffer_options_t options = {.size = 4 * GROUPS * SIZE, .memory = KEEL_MEMORY_HOST_VISIBLE};
    keel_buffer_t *out = NULL;
    keel_point_t done;
    uint32_t words[GROUPS * SIZE];
    ok(keel_buffer_create(device, &options, &out));
    ok(keel_executable_entry(executable, "hidden", &entry));
    keel_entry_info_t info;
    ok(keel_entry_info(entry, &info));
    assert_in_range(info.constants, 12 + 1, sizeof block);
    memset(block, 0xff, sizeof block);
    memcpy(block + 8, &(uint32_t){K}, 4);
    keel_patch_t patch = {0, keel_whole(out)};
    keel_op_t op =
        keel_op_dispatch(entry, keel_groups(GROUPS, 1, 1), block, info.constants, KEEL_NO_BINDINGS);
    op.as.dispatch.group_size = keel_groups(SIZE, 1, 1);
    op.as.dispatch.raw = true;
    op.as.dispatch.patches = &patch;
    op.as.dispatch.patch_count = 1;
    ok(keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS, op, &done));
    ok(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    ok(keel_buffer_read(out, 0, words, sizeof words));
    for (uint32_t i = 0; i < GROUPS * SIZE; i++) assert_int_equal(words[i], K + i);
    keel_buffer_release(out);
}

static keel_status_t load(keel_executable_t **executable)
{
    keel_executable_options_t options = {.name = "hidden"};
    void *data = tools_read("k.hsaco", &options.size);
    options.data = data;
    keel_status_t status = keel_executable_load(device, &options, executable);
    free(data);
    return status;
}

static void test_version(int version)
{
    keel_executable_t *executable = NULL;
    compile(version);
    keel_status_t status = load(&executable);
    if (status && version == 5) { // HIP 5.2 knows none
        print_message("%s\n", keel_status_message(status));
        keel_status_release(status);
        skip();
    }
    ok(status);
    run(executable);
    keel_executable_release(executable);
}

static void test_version_4(void **state)
{
    (void)state;
    test_version(4);
}

static void test_version_5(void **state)
{
    (void)state;
    test_version(5);
}

static void test_hipcc(void **state)
{
    (void)state;
    keel_executable_t *executable = NULL;
    tools_need("hipcc");
    tools_write("k.hip", source_hip, sizeof source_hip - 1);
    tools_run(
        "hipcc --genco --offload-arch=gfx90a -O2 -mcode-object-version=4 -x hip k.hip -o k.hsaco");
    ok(load(&executable));
    run(executable);
    keel_executable_release(executable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hipcc),
        cmocka_unit_test(test_version_4),
        cmocka_unit_test(test_version_5),
    };
    keel_status_t status = keel_device_open("hip://0", NULL, &device);
    if (status) {
        printf("%s\n", keel_status_message(status));
        keel_status_release(status);
        return 77;
    }
    int failed = cmocka_run_group_tests(tests, tools_begin, tools_end);
    keel_device_release(device);
    return failed;
}
