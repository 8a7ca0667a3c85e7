// SPDX-License-Identifier: Apache-2.0
#include "conformance/graphs/stress.h"

#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

// In a process of its own, since a hang leaves threads behind, and without its report.
static bool run_apart(const stress_options_t *options, const char *uri)
{
    int how;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout)) _exit(2);
        _exit(stress_run(options, uri) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) < 2);
    return WEXITSTATUS(how) == 0;
}

static void test_passes(void **state)
{
    (void)state;
    stress_options_t options = {.submissions = 5000, .seed = 3, .threads = 3, .limit_s = 20};
    assert_true(run_apart(&options, "cpu://?threads=2"));
    assert_true(run_apart(&options, "cpu://inline"));
    assert_false(run_apart(&options, "nowhere://"));
}

// A thread that is never answered hangs, and that is noticed.
static void test_hang(void **state)
{
    (void)state;
    stress_options_t options = {.submissions = 5000, .threads = 2, .limit_s = 0.5, .mute = true};
    assert_false(run_apart(&options, "cpu://?threads=2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_hang),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
