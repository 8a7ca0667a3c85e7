// SPDX-License-Identifier: Apache-2.0
#include "capture/guard.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void guard_enter(void)
{
    pthread_mutex_lock(&lock);
}

void guard_leave(void)
{
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void guard_load(void)
{
    pthread_atfork(guard_enter, guard_leave, guard_leave);
}
