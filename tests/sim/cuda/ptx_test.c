// SPDX-License-Identifier: Apache-2.0
// ptx_test: texts of PTX, instruction by instruction.
#include "rig.h"

#include <stdio.h>
#include <string.h>

static CUresult text_load(CUmodule *module, const char *body, char log[200])
{
    char text[4096];
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)200};
    snprintf(text, sizeof text,
             "// by hand\n.version 6.0\n.target sm_52\n.address_size 64\n"
             ".visible .entry k(.param .u64 out, .param .u64 a, .param .b8 b[8])\n"
             "{ .reg .b64 %%rd<8>; .reg .b32 %%r<8>; .reg .b16 %%rs<4>; .reg .pred %%p<4>;\n"
             "  .reg .b64 %%SP;\n"
             "  ld.param.u64 %%rd1, [out]; ld.param.u64 %%rd2, [a]; ld.param.u64 %%rd3, [b];\n"
             "  cvt.u32.u64 %%r1, %%rd2; cvt.u32.u64 %%r2, %%rd3; mov.u64 %%rd4, 0;\n"
             "%s\n"
             "  st.global.u64 [%%rd1], %%rd4; ret; }\n",
             body);
    return cuModuleLoadDataEx(module, text, 2, options, values);
}

// What the body leaves in %rd4.
static uint64_t result(const char *body, uint64_t a, uint64_t b)
{
    CUmodule module;
    CUfunction function;
    CUdeviceptr out;
    uint64_t got = 0;
    char log[200] = "";
    CUresult error = text_load(&module, body, log);
    if (error) printf("%s: %s\n", body, log);
    CU(error);
    CU(cuModuleGetFunction(&function, module, "k"));
    CU(cuMemAlloc_v2(&out, 8));
    void *params[] = {&out, &a, &b};
    CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CU(cuMemcpyDtoH_v2(&got, out, 8));
    CU(cuMemFree_v2(out));
    CU(cuModuleUnload(module));
    return got;
}

#define M1 UINT64_MAX

static void test_instructions(void)
{
    static const struct {
        const char *body;
        uint64_t a, b, wanted;
    } rows[] = {
        {"add.s64 %rd4, %rd2, %rd3;", 5, M1, 4},
        {"add.u32 %r3, %r1, %r2; cvt.u64.u32 %rd4, %r3;", 0xffffffff, 2, 1},
        {"sub.s32 %r3, %r1, %r2; cvt.s64.s32 %rd4, %r3;", 3, 5, (uint64_t)-2},
        {"mul.lo.s64 %rd4, %rd2, -3;", 5, 0, (uint64_t)-15},
        {"mul.wide.u32 %rd4, %r1, %r2;", 0xffffffff, 0xffffffff, 0xfffffffe00000001},
        {"mul.wide.s32 %rd4, %r1, %r2;", (uint32_t)-2, 3, (uint64_t)-6},
        {"mul.hi.u64 %rd4, %rd2, %rd3;", M1, M1, M1 - 1},
        {"mul.hi.s32 %r3, %r1, %r2; cvt.s64.s32 %rd4, %r3;", 0x80000000, 2, M1},
        {"mad.lo.s32 %r3, %r1, %r2, 7; cvt.u64.u32 %rd4, %r3;", 5, 6, 37},
        {"mad.wide.u32 %rd4, %r1, %r2, %rd3;", 0x10000, 0x10000, 0x100010000},
        {"div.u64 %rd4, %rd2, %rd3;", 17, 5, 3},
        {"div.s32 %r3, %r1, %r2; cvt.s64.s32 %rd4, %r3;", (uint32_t)-17, 5, (uint64_t)-3},
        {"rem.u32 %r3, %r1, %r2; cvt.u64.u32 %rd4, %r3;", 17, 5, 2},
        {"min.s32 %r3, %r1, %r2; cvt.s64.s32 %rd4, %r3;", (uint32_t)-1, 1, M1},
        {"max.u32 %r3, %r1, %r2; cvt.u64.u32 %rd4, %r3;", 0xffffffff, 1, 0xffffffff},
        {"and.b64 %rd4, %rd2, %rd3;", 12, 10, 8},
        {"or.b64 %rd4, %rd2, %rd3;", 12, 10, 14},
        {"xor.b64 %rd4, %rd2, %rd3;", 12, 10, 6},
        {"not.b32 %r3, %r1; cvt.u64.u32 %rd4, %r3;", 0, 0, 0xffffffff},
        {"neg.s64 %rd4, %rd2;", 5, 0, (uint64_t)-5},
        {"shl.b32 %r3, %r1, 4; cvt.u64.u32 %rd4, %r3;", 0xf0000001, 0, 0x10},
        {"shl.b64 %rd4, %rd2, 64;", 1, 0, 0},
        {"shr.u32 %r3, %r1, 4; cvt.u64.u32 %rd4, %r3;", 0xf0000000, 0, 0x0f000000},
        {"shr.s32 %r3, %r1, %r2; cvt.s64.s32 %rd4, %r3;", 0x80000000, 99, M1},
        {"cvt.u64.u16 %rd4, %rs1;", 0, 0, 0},
        {"cvt.u16.u64 %rs1, %rd2; cvt.s64.s16 %rd4, %rs1;", 0xffff, 0, M1},
        {"setp.lt.s32 %p1, %r1, %r2; selp.u64 %rd4, 1, 2, %p1;", (uint32_t)-1, 0, 1},
        {"setp.lt.u32 %p1, %r1, %r2; selp.u64 %rd4, 1, 2, %p1;", (uint32_t)-1, 0, 2},
        {"setp.ge.u64 %p1, %rd2, %rd3; not.pred %p2, %p1; selp.u64 %rd4, 1, 2, %p2;", 4, 4, 2},
        {"setp.eq.s64 %p1, %rd2, 4; setp.ne.s64 %p2, %rd3, 4; and.pred %p3, %p1, %p2;\n"
         "  xor.pred %p3, %p3, %p1; selp.b64 %rd4, 1, 2, %p3;",
         4, 5, 2},
        {"setp.gt.u64 %p1, %rd2, %rd3; @%p1 mov.u64 %rd4, 7;", 4, 3, 7},
        {"setp.le.u64 %p1, %rd2, %rd3; @!%p1 bra $far; mov.u64 %rd4, 7;\n$far:", 4, 3, 0},
        {"$again: setp.eq.u64 %p1, %rd2, 0; @%p1 bra $over; add.u64 %rd4, %rd4, %rd2;\n"
         "  sub.u64 %rd2, %rd2, 1; bra.uni $again; $over:",
         10, 0, 55},
        {"st.global.u64 [%rd1], %rd2; atom.global.cas.b32 %r3, [%rd1], 5, 6;\n"
         "  atom.cas.b64 %rd3, [%rd1+0], 5, 7; ld.global.u64 %rd4, [%rd1]; membar.gl;",
         5, 0, 6},
        {"st.global.v2.u32 [%rd1], {%r1, %r2}; cvta.to.global.u64 %rd1, %rd1;\n"
         "  ld.global.v4.u16 {%rs0, %rs1, %rs2, %rs3}, [%rd1]; cvt.u64.u16 %rd4, %rs2;",
         1, 9, 9},
        {"st.global.u8 [%rd1], %rd2; ld.global.s8 %r3, [%rd1]; cvt.s64.s32 %rd4, %r3;", 255, 0, M1},
        {"mov.b64 %rd5, a; ld.param.u64 %rd4, [%rd5];", 11, 0, 11},
        {"{ .local .align 4 .b8 mine[12]; mov.u64 %SP, mine; cvta.local.u64 %SP, %SP;\n"
         "  st.local.u32 [%SP+8], %r1; ld.u32 %r3, [%SP+8]; } cvt.u64.u32 %rd4, %r3;",
         3, 0, 3},
        {"mov.u32 %r3, %ntid.x; mov.u32 %r4, %nctaid.z; add.s32 %r3, %r3, %r4;\n"
         "  mov.u32 %r4, %tid.y; add.s32 %r3, %r3, %r4; cvt.u64.u32 %rd4, %r3;",
         0, 0, 2},
    };
    rig_context();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t got = result(rows[i].body, rows[i].a, rows[i].b);
        if (got != rows[i].wanted)
            printf("%s: %#llx, not %#llx\n", rows[i].body, (unsigned long long)got,
                   (unsigned long long)rows[i].wanted);
        CHECK(got == rows[i].wanted);
    }
    CHECK(result("mov.u64 %rd4, %globaltimer;", 0, 0) > 0);
}

// Each is refused when it is loaded, and the log says where and what.
static void test_refused(void)
{
    static const struct {
        const char *body, *said;
    } rows[] = {
        {"bar.sync 0;", "line 10: this device does not know 'bar.sync'"},
        {"add.f32 %r3, %r1, %r2;", "'add.f32'"},
        {"add.sat.s32 %r3, %r1, %r2;", "'add.sat.s32'"},
        {"ld.shared.u32 %r3, [%rd1];", "'ld.shared.u32'"},
        {"ld.volatile.u32 %r3, [%rd1];", "'ld.volatile.u32'"},
        {"mov.u32 %r9, 0;", "'%r9'"},
        {"mov.u32 %r3, %laneid;", "'%laneid'"},
        {"mov.u32 3, %r1;", "'3' is no register"},
        {"bra $nowhere;", "'$nowhere'"},
        {"call.uni malloc, (a);", "'malloc'"},
        {"mov.u32 %r3, %r1", "';' was expected before 'st.global.u64'"},
        {".reg .b32 %x<2000>;", "too many registers"},
        {"{ ret;", "the text ends too early"},
    };
    rig_context();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUmodule module;
        char log[200] = "";
        FAILS(CUDA_ERROR_INVALID_PTX, text_load(&module, rows[i].body, log));
        if (!strstr(log, rows[i].said)) printf("%s: %s\n", rows[i].body, log);
        CHECK(strstr(log, rows[i].said) != NULL);
    }
}

// All threads of all blocks, with the sizes that the text asks for.
static void test_threads(void)
{
    static const char text[] =
        ".version 6.0 .target sm_52 .address_size 64\n"
        ".visible .entry each(.param .u64 out) .reqntid 4, 2, 1 {\n"
        "  .reg .b32 %r<9>; .reg .b64 %rd<5>;\n"
        "  mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ctaid.x;\n"
        "  mad.lo.s32 %r4, %r2, 4, %r1; mad.lo.s32 %r4, %r3, 8, %r4;\n"
        "  ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd1, %rd1, %rd2;\n"
        "  st.global.u32 [%rd1], %r4;\n"
        "}\n";
    CUmodule module;
    CUfunction function;
    CUdeviceptr out;
    uint32_t words[24];
    rig_context();
    CU(cuModuleLoadData(&module, text));
    CU(cuModuleGetFunction(&function, module, "each"));
    CU(cuMemAlloc_v2(&out, sizeof words));
    void *params[] = {&out};
    FAILS(CUDA_ERROR_INVALID_VALUE,
          cuLaunchKernel(function, 3, 1, 1, 8, 1, 1, 0, NULL, params, NULL));
    CU(cuLaunchKernel(function, 3, 1, 1, 4, 2, 1, 0, NULL, params, NULL));
    CU(cuMemcpyDtoH_v2(words, out, sizeof words));
    for (uint32_t i = 0; i < 24; i++) CHECK(words[i] == i);
}

static void end_badly(const char *body, CUresult wanted, const char *said)
{
    CUmodule module;
    CUfunction function;
    uint64_t zero = 0;
    char log[200];
    rig_context();
    CU(text_load(&module, body, log));
    CU(cuModuleGetFunction(&function, module, "k"));
    void *params[] = {&zero, &zero, &zero};
    CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    FAILS(wanted, cuCtxSynchronize());
    CHECK(rig_said(said));
}

static void test_trap(void)
{
    end_badly("trap;", CUDA_ERROR_LAUNCH_FAILED, "kernel k, block (0, 0, 0): trapped");
}

static void test_fault(void)
{
    end_badly("", CUDA_ERROR_ILLEGAL_ADDRESS, "kernel k, block (0, 0, 0): touched 0");
}

static void test_misaligned(void)
{
    end_badly("ld.param.v2.u32 {%r3, %r4}, [a+4];", CUDA_ERROR_MISALIGNED_ADDRESS,
              "no multiple of what it took there");
}

int main(void)
{
    RUN("", test_instructions);
    RUN("", test_refused);
    RUN("", test_threads);
    RUN("", test_trap);
    RUN("", test_fault);
    RUN("", test_misaligned);
    return rig_result();
}
