// SPDX-License-Identifier: Apache-2.0
// A function is a few instructions that keep what it was given, ask forward_enter, and jump to the
// real one; so nothing has to be known of its parameters.
#include "forward/forward.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "forward/ledger.h"
#include "forward/rules.h"

// Hidden, not static: the instructions name them.
#define SITE(name, flags)                                                                          \
    extern call_site_t site_##name;                                                                \
    __attribute__((visibility("hidden"))) call_site_t site_##name = {#name, CALL_##flags, 0, NULL, \
                                                                     NULL};
#define NAME(name, flags)             SITE(name, flags)
#define OWN(name, flags)              SITE(name, flags)
#define MAKE(name, flags, kind, made) SITE(name, flags)
#define RELEASE(name, kind)           SITE(name, WORKS)
#include FORWARD_NAMES
#include FORWARD_RELEASES
#undef NAME
#undef OWN
#undef MAKE
#undef RELEASE

static call_site_t *const sites[] = {
#define NAME(name, flags)             &site_##name,
#define OWN(name, flags)              &site_##name,
#define MAKE(name, flags, kind, made) &site_##name,
#define RELEASE(name, kind)           &site_##name,
#include FORWARD_NAMES
#include FORWARD_RELEASES
#undef NAME
#undef OWN
#undef MAKE
#undef RELEASE
};

enum { SITES = sizeof sites / sizeof *sites };

static void *library;

static void reals_find(void)
{
    const char *given = rules_library();
    library = given ? dlopen(given, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (given && !library) abort();
    for (size_t i = 0; forward.files[i] && !library; i++)
        library = dlopen(forward.files[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) abort();
    for (int i = 0; i < SITES; i++) sites[i]->real = dlsym(library, sites[i]->name);
}

void *forward_find(const char *name)
{
    return dlsym(library, name);
}

__attribute__((used)) next_t forward_enter(call_site_t *site)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, reals_find);
    if (site == forward.opens) rules_read(sites, SITES);
    bool loses;
    int error = rules_strike(site, &loses);
    if (loses && forward.lose) forward.lose();
    if (!error && !site->real) error = forward.missing;
    return (next_t){error ? NULL : site->real, error};
}

// Some take a size as well. The others do not look at it.
#define RELEASE(name, kind)                                                                        \
    __attribute__((visibility("default"))) int name(void *what, size_t size);                      \
    int name(void *what, size_t size)                                                              \
    {                                                                                              \
        next_t next = forward_enter(&site_##name);                                                 \
        int (*real)(void *, size_t);                                                               \
        memcpy(&real, &site_##name.real, sizeof real);                                             \
        ledger_remove(kind, (uintptr_t)what);                                                      \
        int error = real(what, size);                                                              \
        return next.error ? (int)next.error : error;                                               \
    }
#include FORWARD_RELEASES
#undef RELEASE

int forward_make(call_site_t *site, const uint64_t words[8])
{
    int (*real)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
    next_t next = forward_enter(site);
    if (!next.real) return (int)next.error;
    memcpy(&real, &next.real, sizeof real);
    return real(words[0], words[1], words[2], words[3], words[4], words[5], words[6], words[7]);
}

#define NAME(name, flags)
#define OWN(name, flags)
#define MAKE(name, flags, kind, made)                                                              \
    int own_##name(const uint64_t words[8]);                                                       \
    int own_##name(const uint64_t words[8])                                                        \
    {                                                                                              \
        int error = forward_make(&site_##name, words);                                             \
        if (!error) ledger_add(&site_##name, kind, made);                                          \
        return error;                                                                              \
    }
#include FORWARD_NAMES
#undef NAME
#undef OWN
#undef MAKE

// The site of a call comes in a register that no parameter uses. What the folder itself defines
// gets its parameters as eight words in memory.
#if defined __aarch64__
#define STUB(name)                                                                                 \
    __asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name ":\n"                    \
            "adrp x17, site_" #name "\nadd x17, x17, :lo12:site_" #name "\nb forward_jump\n"       \
            ".size " #name ", . - " #name "\n");
#define OWN_STUB(name)                                                                             \
    __asm__(".text\n.hidden own_" #name "\n.globl " #name "\n.type " #name ", %function\n" #name   \
            ":\n"                                                                                  \
            "stp x29, x30, [sp, #-80]!\nmov x29, sp\n"                                             \
            "stp x0, x1, [sp, #16]\nstp x2, x3, [sp, #32]\n"                                       \
            "stp x4, x5, [sp, #48]\nstp x6, x7, [sp, #64]\n"                                       \
            "add x0, sp, #16\nbl own_" #name "\n"                                                  \
            "ldp x29, x30, [sp], #80\nret\n"                                                       \
            ".size " #name ", . - " #name "\n");
__asm__(".text\n.hidden forward_enter\n"
        "forward_jump:\n"
        "stp x29, x30, [sp, #-96]!\n"
        "mov x29, sp\n"
        "stp x0, x1, [sp, #16]\nstp x2, x3, [sp, #32]\n"
        "stp x4, x5, [sp, #48]\nstp x6, x7, [sp, #64]\n"
        "mov x0, x17\n"
        "bl forward_enter\n"
        "mov x16, x0\nmov x17, x1\n"
        "ldp x0, x1, [sp, #16]\nldp x2, x3, [sp, #32]\n"
        "ldp x4, x5, [sp, #48]\nldp x6, x7, [sp, #64]\n"
        "ldp x29, x30, [sp], #96\n"
        "cbz x16, 1f\n"
        "br x16\n"
        "1: mov w0, w17\n"
        "ret\n");
#else
#define STUB(name)                                                                                 \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"                    \
            "lea site_" #name "(%rip), %rax\njmp forward_jump\n"                                   \
            ".size " #name ", . - " #name "\n");
#define OWN_STUB(name)                                                                             \
    __asm__(".text\n.hidden own_" #name "\n.globl " #name "\n.type " #name ", @function\n" #name   \
            ":\n"                                                                                  \
            "sub $8, %rsp\npushq 24(%rsp)\npushq 24(%rsp)\n"                                       \
            "push %r9\npush %r8\npush %rcx\npush %rdx\npush %rsi\npush %rdi\n"                     \
            "mov %rsp, %rdi\ncall own_" #name "\n"                                                 \
            "add $72, %rsp\nret\n"                                                                 \
            ".size " #name ", . - " #name "\n");
__asm__(".text\n.hidden forward_enter\n"
        "forward_jump:\n"
        "push %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\npush %rax\n"
        "mov %rax, %rdi\n"
        "call forward_enter\n"
        "mov %rax, %r11\nmov %rdx, %rax\n"
        "pop %r10\npop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\n"
        "test %r11, %r11\n"
        "jz 1f\n"
        "jmp *%r11\n"
        "1: ret\n");
#endif

#define NAME(name, flags)             STUB(name)
#define OWN(name, flags)              OWN_STUB(name)
#define MAKE(name, flags, kind, made) OWN_STUB(name)
#include FORWARD_NAMES
#undef NAME
#undef OWN
#undef MAKE
