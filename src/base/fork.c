// SPDX-License-Identifier: Apache-2.0
#include "base/fork.h"

#include <pthread.h>

uint32_t fork_count_; // written in the child only, which has one thread then

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fork_child(void)
{
    fork_count_++;
}

static void fork_register(void)
{
    pthread_atfork(NULL, NULL, fork_child);
}

uint32_t fork_generation(void)
{
    pthread_once(&once, fork_register);
    return fork_count_;
}
