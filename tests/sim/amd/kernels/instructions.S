// SPDX-License-Identifier: Apache-2.0
// Each case of instructions.def as a piece of code. The kernel `run` loads its registers, jumps to a
// piece, and stores what it left. Arguments: inputs, outputs, address of the piece. This assembler
// has no mark for the end of an instruction but the end of the line, which the preprocessor cannot
// make: the build turns each \n that comes out of it into one.
#define CASE(name, code, inputs, scalars, results, masks) PIECE(name, code)
#define LANES(name, code, inputs, scalars, result)        PIECE(name, code)
#define TEXT(...)                                         __VA_ARGS__
#define STRIP(...)                                        __VA_ARGS__
#define PIECE(name, code)                                                                          \
    .globl case_##name \n .protected case_##name \n case_##name: \n STRIP code \n s_branch finish

    .text
    .globl run
    .p2align 8
    .type run, @function
run:
    s_load_dwordx4 s[16:19], s[0:1], 0x0
    s_load_dwordx2 s[20:21], s[0:1], 0x10
    s_waitcnt lgkmcnt(0)
    s_load_dwordx8 s[24:31], s[16:17], 0x0
    s_waitcnt lgkmcnt(0)
    v_mbcnt_lo_u32_b32 v6, -1, 0
    v_mbcnt_hi_u32_b32 v6, -1, v6
    v_mov_b32 v0, s24
    v_mov_b32 v1, s25
    v_mov_b32 v2, s26
    v_mov_b32 v3, s27
    v_mov_b32 v4, 0x55555555
    v_mov_b32 v5, 0x66666666
    s_mov_b64 s[4:5], s[28:29]
    s_mov_b64 vcc, s[30:31]
    s_mov_b64 s[8:9], 0
    s_mov_b32 m0, -1
    s_cmp_lg_u32 0, 0
    s_setpc_b64 s[20:21]

finish:
    s_cselect_b32 s22, 1, 0
    s_mov_b64 s[10:11], exec
    s_mov_b64 exec, -1
    v_lshlrev_b32 v7, 3, v6
    global_store_dwordx2 v7, v[4:5], s[18:19]
    v_mov_b32 v0, vcc_lo
    v_mov_b32 v1, vcc_hi
    v_mov_b32 v2, s8
    v_mov_b32 v3, s9
    v_mov_b32 v7, 0
    global_store_dwordx4 v7, v[0:3], s[18:19] offset:512
    v_mov_b32 v0, s10
    v_mov_b32 v1, s11
    v_mov_b32 v2, s22
    global_store_dwordx3 v7, v[0:2], s[18:19] offset:528
    s_endpgm

#ifdef GFX908
#include "instructions_gfx908.def"
#else
#include "instructions.def"
#endif
#ifdef GFX942
#include "instructions_gfx942.def"
#endif

    .rodata
    .p2align 6
    .amdhsa_kernel run
        .amdhsa_user_sgpr_kernarg_segment_ptr 1
        .amdhsa_next_free_vgpr 16
        .amdhsa_next_free_sgpr 48
#ifndef GFX908
        .amdhsa_accum_offset 16
#endif
        .amdhsa_group_segment_fixed_size 1024
        .amdhsa_float_denorm_mode_32 3
    .end_amdhsa_kernel
    .protected run
