// SPDX-License-Identifier: Apache-2.0
// Our dlsym, for programs that open HIP at run time and look its functions up. Whatever is not
// HIP's goes on to the C library's dlsym by a jump: what that finds may depend on who calls it,
// which it tells by the address that it returns to. C has no means to ensure a jump.
#include <dlfcn.h>
#include <stdint.h>

#include "capture/hip/real.h"
#include "capture/mode.h"
#include "trace/trace.h"

// What dlsym is to return; NULL: what the C library's does; MISSING: NULL.
#define MISSING ((void *)(intptr_t)-1)
void *hip_dlsym_choose(void *handle, const char *name);

void *hip_dlsym_choose(void *handle, const char *name)
{
    hip_dlsym_find();
    // The next one after a caller is asked for by libraries that stand before HIP as this one does.
    if (handle == RTLD_NEXT || !name || !trace_is_on() || !capture_mode()->calls) return NULL;
    hip_index_t index = hip_index(name);
    if (index == HIP_COUNT) return NULL;
    hip_fn found = (hip_fn)hip_dlsym(handle, name);
    if (!found) return NULL;
    // Ours is found in the place of HIP's; a HIP that does not have it must seem not to.
    if (found == hip_ours[index]) return hip_real(index) ? (void *)found : MISSING;
    return (void *)hip_catch(name, found);
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
        "    call hip_dlsym_choose\n"
        "    add $8, %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    pop %rsi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    pop %rdi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    test %rax, %rax\n"
        "    jnz 1f\n"
        "    jmp *hip_dlsym(%rip)\n"
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
        "    bl hip_dlsym_choose\n"
        "    mov x2, x0\n"
        "    ldp x0, x1, [sp, #16]\n"
        "    ldp x29, x30, [sp], #32\n"
        "    .cfi_def_cfa_offset 0\n"
        "    .cfi_restore 29\n"
        "    .cfi_restore 30\n"
        "    cbnz x2, 1f\n"
        "    adrp x16, hip_dlsym\n"
        "    ldr x16, [x16, :lo12:hip_dlsym]\n"
        "    br x16\n"
        "1:  cmn x2, #1\n"
        "    csel x0, xzr, x2, eq\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size dlsym, . - dlsym\n");
#endif
