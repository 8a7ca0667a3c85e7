// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

void thread_set_name(pthread_t thread, const char *name)
{
#if defined(__linux__) && !KEEL_PORTABLE
    pthread_setname_np(thread, name);
#else
    (void)thread, (void)name;
#endif
}

bool thread_detach(void *(*fn)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, fn, argument) != 0) return false;
    pthread_detach(thread);
    return true;
}
