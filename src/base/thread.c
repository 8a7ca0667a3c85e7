// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <signal.h>
#include <unistd.h>

THREAD_LOCAL char thread_mark_;

uint64_t thread_number(void)
{
#if defined(__linux__) && !KEEL_PORTABLE
    return (uint64_t)gettid();
#else
    return (uint64_t)(uintptr_t)thread_mark(); // unique while the thread lives
#endif
}

void thread_own_name(char name[16])
{
    name[0] = 0;
#if defined(__linux__) && !KEEL_PORTABLE
    pthread_getname_np(pthread_self(), name, 16);
#endif
}

void thread_set_name(pthread_t thread, const char *name)
{
#if defined(__linux__) && !KEEL_PORTABLE
    pthread_setname_np(thread, name);
#else
    (void)thread, (void)name; // there is no portable way from outside of the thread
#endif
}

// The system's default may be less than a kernel of the host may take (keel/host_kernel.h).
static int thread_create(pthread_t *thread, void *(*fn)(void *), void *argument)
{
    enum { STACK_LEAST = 4 << 20 };
    pthread_attr_t attributes;
    size_t stack;
    int error = pthread_attr_init(&attributes);
    if (error) return error;
    if (!pthread_attr_getstacksize(&attributes, &stack) && stack < STACK_LEAST)
        pthread_attr_setstacksize(&attributes, STACK_LEAST);
    error = pthread_create(thread, &attributes, fn, argument);
    pthread_attr_destroy(&attributes);
    return error;
}

int thread_start(pthread_t *thread, const char *name, void *(*fn)(void *), void *argument)
{
    static const int own[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    sigset_t others, before;
    sigfillset(&others);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) sigdelset(&others, own[i]);
    pthread_sigmask(SIG_SETMASK, &others, &before); // a thread begins with the mask of its creator
    int error = thread_create(thread, fn, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error && name) thread_set_name(*thread, name);
    return error;
}

bool thread_detach(const char *name, void *(*fn)(void *), void *argument)
{
    pthread_t thread;
    if (thread_start(&thread, name, fn, argument) != 0) return false;
    pthread_detach(thread);
    return true;
}
