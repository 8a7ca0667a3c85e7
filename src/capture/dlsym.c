// SPDX-License-Identifier: Apache-2.0
// Our dlsym, for programs that open HIP or CUDA at run time and look their functions up. Whatever
// is none of those goes on to the C library's dlsym by a jump: what that finds may depend on who
// calls it, which it tells by the address that it returns to. C has no means to ensure a jump.
#include <dlfcn.h>
#include <stddef.h>

#include "capture/cuda/driver.h"
#include "capture/hip/real.h"
#include "capture/library.h"

// What dlsym is to return; NULL: what the C library's does; DLSYM_MISSING: NULL.
void *dlsym_choose(void *handle, const char *name);

void *dlsym_choose(void *handle, const char *name)
{
    dlsym_find();
    // The next one after a caller is asked for by libraries that stand before a runtime as this one
    // does.
    if (handle == RTLD_NEXT || !name) return NULL;
    void *chosen = hip_dlsym_choose(handle, name);
    return chosen ? chosen : cuda_dlsym_choose(handle, name);
}

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        "dlsym:\n"
        "    .cfi_startproc\n"
        "    push %rdi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    push %rsi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    sub $8, %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    call dlsym_choose\n"
        "    add $8, %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    pop %rsi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    pop %rdi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    test %rax, %rax\n"
        "    jnz 1f\n"
        "    jmp *dlsym_real(%rip)\n"
        "1:  cmp $-1, %rax\n"
        "    jne 2f\n"
        "    xor %eax, %eax\n"
        "2:  ret\n"
        "    .cfi_endproc\n"
        ".size dlsym, . - dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, %function\n"
        "dlsym:\n"
        "    .cfi_startproc\n"
        "    stp x29, x30, [sp, #-32]!\n"
        "    .cfi_def_cfa_offset 32\n"
        "    .cfi_offset 29, -32\n"
        "    .cfi_offset 30, -24\n"
        "    mov x29, sp\n"
        "    stp x0, x1, [sp, #16]\n"
        "    bl dlsym_choose\n"
        "    mov x2, x0\n"
        "    ldp x0, x1, [sp, #16]\n"
        "    ldp x29, x30, [sp], #32\n"
        "    .cfi_def_cfa_offset 0\n"
        "    .cfi_restore 29\n"
        "    .cfi_restore 30\n"
        "    cbnz x2, 1f\n"
        "    adrp x16, dlsym_real\n"
        "    ldr x16, [x16, :lo12:dlsym_real]\n"
        "    br x16\n"
        "1:  cmn x2, #1\n"
        "    csel x0, xzr, x2, eq\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size dlsym, . - dlsym\n");
#endif
