// SPDX-License-Identifier: Apache-2.0
#include "metal/send.h"

#if defined(__aarch64__)
// x0 to x7 and q0 to q7 hold arguments, x8 where a struct is to go.
__asm__(".text\n"
        ".globl objc_msgSend\n"
        ".type objc_msgSend, %function\n"
        "objc_msgSend:\n"
        "    stp x29, x30, [sp, #-224]!\n"
        "    mov x29, sp\n"
        "    stp x0, x1, [sp, #16]\n"
        "    stp x2, x3, [sp, #32]\n"
        "    stp x4, x5, [sp, #48]\n"
        "    stp x6, x7, [sp, #64]\n"
        "    str x8, [sp, #80]\n"
        "    stp q0, q1, [sp, #96]\n"
        "    stp q2, q3, [sp, #128]\n"
        "    stp q4, q5, [sp, #160]\n"
        "    stp q6, q7, [sp, #192]\n"
        "    mov w2, #0\n"
        "    bl runtime_find\n"
        "    mov x16, x0\n"
        "    ldp x0, x1, [sp, #16]\n"
        "    ldp x2, x3, [sp, #32]\n"
        "    ldp x4, x5, [sp, #48]\n"
        "    ldp x6, x7, [sp, #64]\n"
        "    ldr x8, [sp, #80]\n"
        "    ldp q0, q1, [sp, #96]\n"
        "    ldp q2, q3, [sp, #128]\n"
        "    ldp q4, q5, [sp, #160]\n"
        "    ldp q6, q7, [sp, #192]\n"
        "    ldp x29, x30, [sp], #224\n"
        "    br x16\n"
        ".size objc_msgSend, . - objc_msgSend\n"
        ".globl send_nil\n"
        ".hidden send_nil\n"
        ".type send_nil, %function\n"
        "send_nil:\n"
        "    mov x0, #0\n"
        "    mov x1, #0\n"
        "    movi v0.2d, #0\n"
        "    ret\n"
        ".size send_nil, . - send_nil\n");
#elif defined(__x86_64__)
// rdi, rsi, rdx, rcx, r8, r9 and xmm0 to xmm7 hold arguments, rax how many of the latter. With
// _stret, rdi holds where the struct is to go, and receiver and selector come after it.
#define SEND(name, self, selector, by_struct)                                                      \
    __asm__(".text\n"                                                                              \
            ".globl " name "\n"                                                                    \
            ".type " name ", @function\n" name ":\n"                                               \
            "    push %rbp\n"                                                                      \
            "    mov %rsp, %rbp\n"                                                                 \
            "    sub $192, %rsp\n"                                                                 \
            "    mov %rdi, (%rsp)\n"                                                               \
            "    mov %rsi, 8(%rsp)\n"                                                              \
            "    mov %rdx, 16(%rsp)\n"                                                             \
            "    mov %rcx, 24(%rsp)\n"                                                             \
            "    mov %r8, 32(%rsp)\n"                                                              \
            "    mov %r9, 40(%rsp)\n"                                                              \
            "    mov %rax, 48(%rsp)\n"                                                             \
            "    movups %xmm0, 64(%rsp)\n"                                                         \
            "    movups %xmm1, 80(%rsp)\n"                                                         \
            "    movups %xmm2, 96(%rsp)\n"                                                         \
            "    movups %xmm3, 112(%rsp)\n"                                                        \
            "    movups %xmm4, 128(%rsp)\n"                                                        \
            "    movups %xmm5, 144(%rsp)\n"                                                        \
            "    movups %xmm6, 160(%rsp)\n"                                                        \
            "    movups %xmm7, 176(%rsp)\n"                                                        \
            "    mov " self "(%rsp), %rdi\n"                                                       \
            "    mov " selector "(%rsp), %rsi\n"                                                   \
            "    mov $" by_struct ", %edx\n"                                                       \
            "    call runtime_find\n"                                                              \
            "    mov %rax, %r11\n"                                                                 \
            "    mov (%rsp), %rdi\n"                                                               \
            "    mov 8(%rsp), %rsi\n"                                                              \
            "    mov 16(%rsp), %rdx\n"                                                             \
            "    mov 24(%rsp), %rcx\n"                                                             \
            "    mov 32(%rsp), %r8\n"                                                              \
            "    mov 40(%rsp), %r9\n"                                                              \
            "    mov 48(%rsp), %rax\n"                                                             \
            "    movups 64(%rsp), %xmm0\n"                                                         \
            "    movups 80(%rsp), %xmm1\n"                                                         \
            "    movups 96(%rsp), %xmm2\n"                                                         \
            "    movups 112(%rsp), %xmm3\n"                                                        \
            "    movups 128(%rsp), %xmm4\n"                                                        \
            "    movups 144(%rsp), %xmm5\n"                                                        \
            "    movups 160(%rsp), %xmm6\n"                                                        \
            "    movups 176(%rsp), %xmm7\n"                                                        \
            "    leave\n"                                                                          \
            "    jmp *%r11\n"                                                                      \
            ".size " name ", . - " name "\n")
SEND("objc_msgSend", "0", "8", "0");
SEND("objc_msgSend_stret", "8", "16", "1");
__asm__(".globl send_nil\n"
        ".hidden send_nil\n"
        ".type send_nil, @function\n"
        "send_nil:\n"
        "    xor %eax, %eax\n"
        "    xor %edx, %edx\n"
        "    xorps %xmm0, %xmm0\n"
        "    ret\n"
        ".size send_nil, . - send_nil\n");
#else
#error "sim/metal knows how to send messages on aarch64 and x86-64 only"
#endif
