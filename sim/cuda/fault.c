// SPDX-License-Identifier: Apache-2.0
#include "cuda/fault.h"

#include "cuda/arena.h"

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>

static struct sigaction before_segv, before_bus;
static _Thread_local sigjmp_buf *guard;
static _Thread_local uint64_t guard_address;

static void on_fault(int number, siginfo_t *info, void *frame)
{
    uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
    if (guard) {
        sigjmp_buf *target = guard;
        guard = NULL;
        guard_address = address;
        siglongjmp(*target, 1);
    }
    if (arena_owns(address)) {
        char text[256];
        arena_describe(address, text, sizeof text);
        complain("the host touched memory of a device at %#llx: %s", (unsigned long long)address,
                 text);
    }
    // The instruction faults once more, and the handler that was there before decides.
    sigaction(number, number == SIGBUS ? &before_bus : &before_segv, NULL);
}

void fault_init(void)
{
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    sigaction(SIGSEGV, &action, &before_segv);
    sigaction(SIGBUS, &action, &before_bus);
}

bool fault_guard(void (*body)(void *user), void *user, uint64_t *out_address)
{
    sigjmp_buf point;
    if (sigsetjmp(point, 0)) {
        *out_address = guard_address;
        return false;
    }
    guard = &point;
    body(user);
    guard = NULL;
    return true;
}
