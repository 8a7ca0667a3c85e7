// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <signal.h>

#include "unit.h"

static volatile sig_atomic_t caught;

static void catch (int number)
{
    caught = number;
}

static void *raise_both(void *unused)
{
    raise(SIGUSR1);
    raise(SIGABRT);
    return unused;
}

// A host call that fails an assertion, say, reaches the program's handler; what other threads may
// take does not interrupt the library.
static void takes_what_it_causes(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = catch}, before[2];
    sigaction(SIGABRT, &action, &before[0]);
    sigaction(SIGUSR1, &action, &before[1]);
    pthread_t thread;
    assert_int_equal(thread_start(&thread, "own", raise_both, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(caught, SIGABRT);
    sigaction(SIGABRT, &before[0], NULL);
    sigaction(SIGUSR1, &before[1], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(takes_what_it_causes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
