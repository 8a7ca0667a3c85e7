// SPDX-License-Identifier: Apache-2.0
// Whether a call ends in a failed assertion. Built without assertions there is nothing to see:
// callers skip then.
#ifndef KEEL_TESTS_MEMORY_ABORTS_H_
#define KEEL_TESTS_MEMORY_ABORTS_H_

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// Makes the call in a child, with the assertion's message and core file suppressed.
static inline bool aborts(void (*call)(void *), void *argument)
{
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) abort();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        if (!freopen("/dev/null", "w", stderr)) _exit(2);
        call(argument);
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child) abort();
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#endif
