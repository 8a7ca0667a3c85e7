// SPDX-License-Identifier: Apache-2.0
// A libamdhip64 that forwards to the machine's own, which it opens by its usual names, and lets
// calls fail on demand (rules.h). A function is a few instructions that keep what it was given, ask
// hip_enter, and jump to the real one; so nothing has to be known of its parameters.
#include "hip/rules.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// Hidden, not static: the instructions name them.
#define SITE(name, flags)                                                                          \
    extern call_site_t site_##name;                                                                \
    __attribute__((visibility("hidden"))) call_site_t site_##name = {#name, CALL_##flags, 0, NULL, \
                                                                     NULL};
#define NAME(name, flags) SITE(name, flags)
#define RELEASE(name)     SITE(name, WORKS)
#include "hip/names.def"
#include "hip/releases.def"
#undef NAME
#undef RELEASE

static call_site_t *const sites[] = {
#define NAME(name, flags) &site_##name,
#define RELEASE(name)     &site_##name,
#include "hip/names.def"
#include "hip/releases.def"
#undef NAME
#undef RELEASE
};

enum { SITES = sizeof sites / sizeof *sites };

static void *real_synchronize; // NULL: there is none

static void reals_find(void)
{
    static const char *const files[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
    const char *given = rules_library();
    void *library = given ? dlopen(given, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (given && !library) abort();
    for (size_t i = 0; i < sizeof files / sizeof *files && !library; i++)
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) abort();
    for (int i = 0; i < SITES; i++) sites[i]->real = dlsym(library, sites[i]->name);
    real_synchronize = dlsym(library, "hipDeviceSynchronize");
}

// Where to go on; NULL: nowhere, and the error is returned.
typedef struct next_t {
    void *real;
    long error;
} next_t;

// A device that is lost does nothing any more, while the one below still has work, which writes
// memory that the program may give back at once: that work comes to its end first.
static void device_rest(void)
{
    int (*synchronize)(void);
    memcpy(&synchronize, &real_synchronize, sizeof synchronize);
    if (synchronize) synchronize();
}

next_t hip_enter(call_site_t *site);
__attribute__((used, visibility("hidden"))) next_t hip_enter(call_site_t *site)
{
    enum { NOT_SUPPORTED = 801 };
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, reals_find);
    if (site == &site_hipGetDeviceCount) rules_read(sites, SITES);
    bool loses;
    int error = rules_strike(site, &loses);
    if (loses) device_rest();
    if (!error && !site->real) error = NOT_SUPPORTED;
    return (next_t){error ? NULL : site->real, error};
}

// Some take a size as well. The others do not look at it.
#define RELEASE(name)                                                                              \
    __attribute__((visibility("default"))) int name(void *what, size_t size);                      \
    int name(void *what, size_t size)                                                              \
    {                                                                                              \
        next_t next = hip_enter(&site_##name);                                                     \
        int (*real)(void *, size_t);                                                               \
        memcpy(&real, &site_##name.real, sizeof real);                                             \
        int error = real(what, size);                                                              \
        return next.error ? (int)next.error : error;                                               \
    }
#include "hip/releases.def"
#undef RELEASE

// The site of a call comes in a register that no parameter uses.
#if defined __aarch64__
#define STUB(name)                                                                                 \
    __asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name ":\n"                    \
            "adrp x17, site_" #name "\nadd x17, x17, :lo12:site_" #name "\nb hip_forward\n"        \
            ".size " #name ", . - " #name "\n");
__asm__(".text\n.hidden hip_enter\n"
        "hip_forward:\n"
        "stp x29, x30, [sp, #-96]!\n"
        "mov x29, sp\n"
        "stp x0, x1, [sp, #16]\nstp x2, x3, [sp, #32]\n"
        "stp x4, x5, [sp, #48]\nstp x6, x7, [sp, #64]\n"
        "mov x0, x17\n"
        "bl hip_enter\n"
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
            "lea site_" #name "(%rip), %rax\njmp hip_forward\n"                                    \
            ".size " #name ", . - " #name "\n");
__asm__(".text\n.hidden hip_enter\n"
        "hip_forward:\n"
        "push %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\npush %rax\n"
        "mov %rax, %rdi\n"
        "call hip_enter\n"
        "mov %rax, %r11\nmov %rdx, %rax\n"
        "pop %r10\npop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\n"
        "test %r11, %r11\n"
        "jz 1f\n"
        "jmp *%r11\n"
        "1: ret\n");
#endif

#define NAME(name, flags) STUB(name)
#include "hip/names.def"
#undef NAME
