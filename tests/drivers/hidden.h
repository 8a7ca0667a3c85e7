// SPDX-License-Identifier: Apache-2.0
// Bare code objects of other compilers, whose kernels have hidden arguments behind their own, on a
// device that runs code of gfx90a.
#ifndef KEEL_TESTS_DRIVERS_HIDDEN_H_
#define KEEL_TESTS_DRIVERS_HIDDEN_H_

#include <keel/keel.h>

#include "executable/tools.h"
#include "ok.h"

// Where clang puts them, by the version of the code object: three offsets of the grid in 4, and in
// 5 the number of groups and, behind three such numbers, the size of one, and then the offsets.
static const char hidden_source[] =
    "kernel void hidden(global uint *out, uint k)\n"
    "{ size_t i = __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +\n"
    "             __builtin_amdgcn_workitem_id_x();\n"
    "  constant ulong *at = (constant ulong *)__builtin_amdgcn_implicitarg_ptr();\n"
    "#if VERSION == 4\n"
    "  out[i] = k + i + (uint)(at[0] + at[1] + at[2]);\n"
    "#else\n"
    "  constant uint *counts = (constant uint *)at;\n"
    "  out[i] = k + i + (counts[0] - 3) + (((constant ushort *)at)[6] - 64) +\n"
    "           (uint)(at[5] + at[6] + at[7]);\n"
    "#endif\n"
    "}\n";

static const char hidden_source_hip[] =
    "#include <hip/hip_runtime.h>\n"
    "extern \"C\" __global__ void hidden(unsigned *out, unsigned k)\n"
    "{ unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  const unsigned long *at = (const unsigned long *)__builtin_amdgcn_implicitarg_ptr();\n"
    "  out[i] = k + i + (gridDim.x - 3) + (unsigned)(at[0] + at[1] + at[2]); }\n";

enum { HIDDEN_GROUPS = 3, HIDDEN_SIZE = 64, HIDDEN_K = 1000, HIDDEN_BLOCK = 512 };
enum { HIDDEN_MORE = 300 }; // than all that is hidden

static keel_device_t *device;

static inline void hidden_compile(int version)
{
    tools_need("clang-19 ld.lld-19");
    tools_write("k.cl", hidden_source, sizeof hidden_source - 1);
    tools_run("clang-19 -x cl -cl-std=CL2.0 -Xclang -finclude-default-header -nogpulib -O2 "
              "--target=amdgcn-amd-amdhsa -mcpu=gfx90a -DVERSION=%d -mcode-object-version=%d k.cl "
              "-o k.hsaco",
              version, version);
}

// Those of hipcc come in a bundle.
static inline void hidden_compile_hip(void)
{
    tools_need("hipcc");
    tools_write("k.hip", hidden_source_hip, sizeof hidden_source_hip - 1);
    tools_run(
        "hipcc --genco --offload-arch=gfx90a -O2 -mcode-object-version=4 -x hip k.hip -o k.hsaco");
}

static const char *hidden_file = "k.hsaco"; // or one that the command line names

static inline keel_status_t hidden_load(keel_executable_t **executable)
{
    keel_executable_options_t options = {.name = "hidden"};
    void *data = tools_read(hidden_file, &options.size);
    options.data = data;
    keel_status_t status = keel_executable_load(device, &options, executable);
    free(data);
    return status;
}

// A dispatch whose block is the caller's as far as the kernel's own arguments go, and, if there is
// more of it, full of ones behind them.
typedef struct hidden_t {
    uint8_t block[HIDDEN_BLOCK];
    uint32_t size; // bytes of it
    keel_buffer_t *out;
    keel_patch_t patches[2];
    keel_op_t op;
} hidden_t;

static inline void hidden_begin(hidden_t *h, keel_executable_t *executable, uint32_t more)
{
    const keel_buffer_options_t options = {.size = 4 * HIDDEN_GROUPS * HIDDEN_SIZE,
                                           .memory = KEEL_MEMORY_HOST_VISIBLE};
    keel_entry_t entry;
    keel_entry_info_t info;
    OK(keel_buffer_create(device, &options, &h->out));
    OK(keel_executable_entry(executable, "hidden", &entry));
    OK(keel_entry_info(entry, &info));
    assert_int_equal(info.constants, 12); // a pointer and a word
    h->size = info.constants + more;
    memset(h->block, 0xff, sizeof h->block);
    memcpy(h->block + 8, &(uint32_t){HIDDEN_K}, 4);
    h->patches[0] = (keel_patch_t){0, keel_whole(h->out)};
    h->op = keel_op_dispatch(entry, keel_groups(HIDDEN_GROUPS, 1, 1), h->block, h->size,
                             KEEL_NO_BINDINGS);
    h->op.as.dispatch.group_size = keel_groups(HIDDEN_SIZE, 1, 1);
    h->op.as.dispatch.raw = true;
    h->op.as.dispatch.patches = h->patches;
    h->op.as.dispatch.patch_count = 1;
}

// Runs `op`, which is the dispatch or has it.
static inline void hidden_run(const hidden_t *h, keel_op_t op)
{
    uint32_t words[HIDDEN_GROUPS * HIDDEN_SIZE];
    keel_point_t done;
    OK(keel_queue_run(keel_device_queue(device, 0), KEEL_NO_WAITS, op, &done));
    OK(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    OK(keel_buffer_read(h->out, 0, words, sizeof words));
    for (uint32_t i = 0; i < HIDDEN_GROUPS * HIDDEN_SIZE; i++)
        assert_int_equal(words[i], HIDDEN_K + i);
}

// False: there is no such device here.
static inline bool hidden_open(const char *uri)
{
    keel_status_t status = keel_device_open(uri, NULL, &device);
    if (status) printf("%s\n", keel_status_message(status));
    keel_status_release(status);
    return device;
}

#endif
