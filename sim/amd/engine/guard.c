// SPDX-License-Identifier: Apache-2.0
// A GPU's own memory cannot be touched by the host: its pages have no rights. This says so before
// the signal that such an access raises takes its course.
#include <pthread.h>
#include <signal.h>

#include "amd/engine/engine.h"

static void segment_fault(int number, siginfo_t *info, void *context)
{
    unsigned node;
    uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
    if (memory_is_hidden(address, &node)) {
        log_line(LOG_ERROR, "the host touched 0x%llx, memory of the GPU at node %u that it may not",
                 (unsigned long long)address, node);
    }
    signal(number, SIG_DFL); // and it happens again, without this
}

static void start(void)
{
    struct sigaction old, action = {.sa_sigaction = segment_fault, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    // A program with a handler of its own keeps it.
    if (sigaction(SIGSEGV, NULL, &old) || old.sa_flags & SA_SIGINFO || old.sa_handler != SIG_DFL) {
        return;
    }
    sigaction(SIGSEGV, &action, NULL);
}

void guard_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
}
