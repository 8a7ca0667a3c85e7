// SPDX-License-Identifier: Apache-2.0
#include "tools/cc/interrupt.h"

#include <stddef.h>

enum { COUNT = 4 };

static const int numbers[COUNT] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
static struct sigaction actions_before[COUNT];
static volatile sig_atomic_t came;

static void on_signal(int number)
{
    if (number != SIGCHLD) came = number;
}

void interrupt_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    for (int i = 0; i < COUNT; i++) {
        sigaction(numbers[i], NULL, &actions_before[i]);
        bool ignored = actions_before[i].sa_handler == SIG_IGN && numbers[i] != SIGCHLD;
        if (!ignored) sigaction(numbers[i], &action, NULL);
    }
}

bool interrupt_came(void)
{
    return came != 0;
}

void interrupt_hold(sigset_t *before)
{
    sigset_t held;
    sigemptyset(&held);
    for (int i = 0; i < COUNT; i++) sigaddset(&held, numbers[i]);
    sigprocmask(SIG_BLOCK, &held, before);
}

void interrupt_wait(const sigset_t *before)
{
    sigsuspend(before);
}

void interrupt_end(void)
{
    for (int i = 0; i < COUNT; i++) sigaction(numbers[i], &actions_before[i], NULL);
    if (came) raise(came);
}
