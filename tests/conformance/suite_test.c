// SPDX-License-Identifier: Apache-2.0
// The conformance suite on tests that are known to be bad: it must say so of each.
#include "conformance/command.h"
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char output[100000]; // of the last run

// Runs the command, on demand in a process of its own, which ends at once: what leaks there is no
// leak of this one.
static int run_command(int argc, char **argv, bool apart)
{
    if (!apart) return conformance_main(argc, argv);
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        status = conformance_main(argc, argv);
        fflush(NULL);
        _exit(status);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run(const char *const *arguments, int count, bool apart)
{
    char *argv[16] = {(char *)"keel conformance"};
    for (int i = 0; i < count; i++) argv[i + 1] = (char *)arguments[i];
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(NULL);
    int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    int status = run_command(count + 1, argv, apart);
    fflush(NULL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    rewind(file);
    size_t length = fread(output, 1, sizeof output - 1, file);
    output[length] = 0;
    fclose(file);
    return status;
}

#define RUN_AS(apart, ...)                                                                         \
    run((const char *const[]){__VA_ARGS__},                                                        \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), (apart))
#define RUN(...) RUN_AS(false, __VA_ARGS__)

static void expect_words(const char *words)
{
    if (!strstr(output, words)) fail_msg("'%s' is not in: %s", words, output);
}

static void test_good(void **state)
{
    (void)state;
    assert_int_equal(RUN("--filter=good.*"), 0);
    assert_string_equal(output, "3 passed, 0 failed, 0 skipped\n");
}

static void test_bad(void **state)
{
    (void)state;
    static const struct {
        const char *name, *words;
    } rows[] = {
        {"check", "2 (0x2) against 3 (0x3)"},
        {"checks_nothing", "the test checked nothing"},
        {"expectation", "!the_device() does not hold"},
        {"status", "DEADLINE_EXCEEDED"},
        {"wrong_code", "not with NOT_FOUND"},
        {"no_error", "succeeded, expected NOT_FOUND"},
        {"wrong_words", "does not say 'bananas'"},
        {"thread", "user does not hold"},
        {"thread_not_joined", "user does not hold"},
        {"child", "user does not hold"},
        {"hangs", "DEADLINE_EXCEEDED"},
        {"hangs_with_children", "timed out"},
        {"crashes", "signal 9"},
        {"exits", "ended with status 0"},
        {"leaks_an_object", "semaphores 1"},
        {"leaks_a_status", "statuses 1"},
        {"leaks_a_descriptor", "descriptors 1"},
        {"leaks_a_thread", "threads 1"},
        {"row", "[i is 3]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char filter[64];
        snprintf(filter, sizeof filter, "--filter=bad.%s", rows[i].name);
        if (RUN(filter, "--timeout=4") != 1) fail_msg("%s: %s", rows[i].name, output);
        expect_words(rows[i].words);
        expect_words("0 passed, 1 failed, 0 skipped\n");
        expect_words("again: keel conformance --device='cpu://' --mode=plain --filter=bad.");
    }
}

static void test_under_a_tool(void **state)
{
    (void)state;
    assert_int_equal(RUN("--filter=bad.leaks_a_descriptor", "--under-tool"), 0);
    assert_int_equal(RUN_AS(true, "--filter=bad.leaks_an_object", "--under-tool", "--timeout=4"),
                     1);
    expect_words("left after the test:");
    // One after the other, in the same process, and each with a device of its own.
    assert_int_equal(RUN("--filter=g*.*", "--under-tool"), 0);
    expect_words("greedy.crashes_on_errors\n");
    expect_words("6 passed, 0 failed, 0 skipped\n");
    assert_int_equal(RUN("--filter=fatal.*", "--under-tool"), 0);
    expect_words("fatal.loses is left out: it loses the device, which the others need\n");
    expect_words("1 passed, 0 failed, 0 skipped\n");
    assert_int_equal(RUN("--filter=fatal.*"), 0);
    expect_words("2 passed, 0 failed, 0 skipped\n");
}

static void test_torture(void **state)
{
    (void)state;
    assert_int_equal(RUN("--filter=greedy.*"), 0);
    expect_words("3 passed, 0 failed, 0 skipped\n");
    assert_int_equal(RUN("--filter=g*.*", "--mode=torture", "--timeout=4"), 1);
    expect_words("semaphore does not hold");
    expect_words("semaphores 1");
    expect_words("signal 9");
    expect_words("--mode=torture --filter=greedy.leaks_on_errors --seed=1 --allocation=");
    expect_words("3 passed, 3 failed, 0 skipped\n");
}

static void test_fault(void **state)
{
    (void)state;
#ifdef CUDA_LIBRARY
    const char *device = "--device=cuda://0?lib=" CUDA_LIBRARY, *mode = "--mode=fault";
    const char *passes = "--filter=good.passes", *crashes = "--filter=greedy.crashes_on_errors";
    assert_int_equal(RUN(device, mode, passes, "--call=cuInit:1"), 0);
    expect_words("2 runs\n1 passed, 0 failed, 0 skipped\n");
    assert_int_equal(RUN(device, mode, passes, "--call=cuInit:1000000"), 0);
    expect_words("1 runs\n1 passed, 0 failed, 0 skipped\n");
    // Each function once, with every fault; there are dozens in making a device.
    assert_int_equal(RUN(device, mode, passes, "--each=1"), 0);
    assert_true(atoi(output) > 40 && atoi(output) < 300);
    assert_int_equal(RUN(device, mode, crashes, "--each=1"), 1);
    expect_words("signal 9");
    expect_words("--filter=greedy.crashes_on_errors --seed=1 --call=cuMem");
    assert_int_equal(RUN(device, mode, crashes, "--call=cuEventCreate:1"), 0);
    assert_int_equal(RUN(device, mode, crashes, "--each=none"), 2);
    assert_int_equal(RUN(device, mode, passes, "--samples=5", "--each=1"), 0);
    expect_words("6 runs\n");
#else
    skip();
#endif
}

static void test_shuffle(void **state)
{
    (void)state;
    assert_int_equal(RUN("--filter=good.passes", "--mode=shuffle", "--runs=5"), 0);
    expect_words("5 runs\n1 passed, 0 failed, 0 skipped\n");
    assert_int_equal(RUN("--filter=bad.check", "--mode=shuffle", "--runs=2", "--seed=7"), 1);
    expect_words("--seed=8 --runs=1");
}

static void test_in_time(void **state)
{
    (void)state;
    assert_int_equal(RUN("--filter=g*.*", "--seconds=0.000001"), 0);
    expect_words("6 tests, from good.");
    expect_words(" on, were left out when time was up\n0 passed, 0 failed, 0 skipped\n");
    assert_int_equal(RUN("--filter=g*.*", "--mode=torture", "--seconds=0.000001"), 0);
    expect_words("0 runs, then time was up\n6 tests, from good.");
    assert_int_equal(RUN("--filter=good.passes", "--mode=shuffle", "--seconds=10000"), 0);
    expect_words("3 runs\n1 passed, 0 failed, 0 skipped\n");
}

// Puts the tests that passed in the last run there, sorted.
static size_t passed_names(char names[][64], size_t room)
{
    size_t count = 0;
    for (const char *at = output; count < room && (at = strstr(at, "passed  ")); at++)
        count += sscanf(at, "passed  %63s", names[count]) == 1;
    qsort(names, count, sizeof names[0], (int (*)(const void *, const void *))strcmp);
    return count;
}

static void run_two_tests(int seed, char names[2][64])
{
    char option[32];
    snprintf(option, sizeof option, "--seed=%d", seed);
    assert_int_equal(RUN("--filter=g*.*", "--tests=2", option, "-v"), 0);
    expect_words("4 tests were left to other seeds\n2 passed, 0 failed, 0 skipped\n");
    assert_int_equal(passed_names(names, 2), 2);
}

static void test_some_tests(void **state)
{
    (void)state;
    bool differ = false;
    char first[2][64];
    run_two_tests(1, first);
    for (int seed = 2; seed <= 8; seed++) {
        char names[2][64], again[2][64];
        run_two_tests(seed, names);
        run_two_tests(seed, again);
        assert_memory_equal(names[0], again[0], strlen(names[0]) + 1);
        assert_memory_equal(names[1], again[1], strlen(names[1]) + 1);
        assert_memory_equal(names[0], "good.", 5); // one of each area
        assert_memory_equal(names[1], "greedy.", 7);
        differ |= strcmp(names[0], first[0]) != 0;
    }
    assert_true(differ);
    assert_int_equal(RUN("--filter=good.*", "--tests=1000"), 0);
    assert_string_equal(output, "3 passed, 0 failed, 0 skipped\n");
    assert_int_equal(RUN("--device=null://", "--filter=[cg]*.*", "--tests=1"), 0);
    expect_words("1 passed, 0 failed, 1 skipped\n");
    assert_int_equal(RUN("--tests=none"), 2);
}

// The seeds together find what is to be found, and each finds the same again.
static void test_some_failures(void **state)
{
    (void)state;
    int found = 0;
    for (int seed = 1; seed <= 200 && !found; seed++) {
        char option[32];
        snprintf(option, sizeof option, "--seed=%d", seed);
        found = RUN("--filter=greedy.c*", "--mode=torture", "--samples=2", option);
        expect_words("3 runs\n");
        assert_int_equal(
            RUN("--filter=greedy.c*", "--mode=torture", "--samples=2", option, "-j", "3"), found);
    }
    assert_int_equal(found, 1);
    expect_words("signal 9");
    expect_words("--mode=torture --filter=greedy.crashes_on_errors --seed=");
    assert_int_equal(RUN("--device=null://", "--filter=choosy.*", "--mode=torture", "--samples=2"),
                     0);
    expect_words("0 passed, 0 failed, 2 skipped\n");
    assert_int_equal(RUN("--samples=0"), 2);
}

static int run_expecting(const char *device, const char *filter, const char *lines)
{
    char path[] = "/tmp/keel-suite-XXXXXX", option[64];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_true(write(fd, lines, strlen(lines)) == (ssize_t)strlen(lines));
    close(fd);
    snprintf(option, sizeof option, "--expect=%s", path);
    int status = RUN(device, filter, option);
    unlink(path);
    return status;
}

static void test_expectations(void **state)
{
    (void)state;
    const char *null = "--device=null://", *cpu = "--device=cpu://", *needs = "--filter=choosy.n*";
    assert_int_equal(RUN(null, "--filter=choosy.*"), 0);
    expect_words("0 passed, 0 failed, 2 skipped\n");
    assert_int_equal(run_expecting(null, needs, "unsupported choosy.* GROUP_SIZE because\n"), 0);
    assert_int_equal(run_expecting(null, needs, "# nothing\n"), 1);
    expect_words("does not say so");
    assert_int_equal(run_expecting(null, needs, "unsupported choosy.* EXECUTES because\n"), 1);
    assert_int_equal(run_expecting(cpu, needs, "unsupported choosy.* EXECUTES because\n"), 1);
    expect_words("says it cannot");
    assert_int_equal(run_expecting(cpu, needs, "unsupported nobody.* EXECUTES because\n"), 2);
    assert_int_equal(run_expecting(cpu, needs, "unsupported choosy.* MAGIC because\n"), 2);
    assert_int_equal(run_expecting(cpu, needs, "unsupported choosy.* EXECUTES\n"), 2);
}

static void test_expectations_of_options(void **state)
{
    (void)state;
    const char *one = "--device=cpu://?nodes=1&threads=1", *other = "--device=cpu://?threads=10";
    const char *needs = "--filter=choosy.n*", *null = "--device=null://";
    const char *lines = "with threads=1 unsupported choosy.* GROUP_SIZE because\n";
    assert_int_equal(run_expecting(one, needs, lines), 1);
    expect_words("says it cannot");
    assert_int_equal(run_expecting(other, needs, lines), 0);
    assert_int_equal(run_expecting("--device=cpu://", needs, lines), 0);
    assert_int_equal(run_expecting(null, needs, lines), 1);
    expect_words("does not say so");
    assert_int_equal(run_expecting(one, needs, "with threads=1\n"), 2);
    lines = "with threads= unsupported choosy.* GROUP_SIZE because\n"; // whatever its value
    assert_int_equal(run_expecting(other, needs, lines), 1);
    expect_words("says it cannot");
    assert_int_equal(run_expecting("--device=cpu://", needs, lines), 0);
}

static void test_expectations_of_capabilities(void **state)
{
    (void)state;
    const char *null = "--device=null://", *cpu = "--device=cpu://", *needs = "--filter=choosy.n*";
    const char *lines = "without EXECUTES unsupported choosy.* GROUP_SIZE because\n";
    assert_int_equal(run_expecting(null, needs, lines), 0);
    assert_int_equal(run_expecting(cpu, needs, lines), 0);
    lines = "with EXECUTES unsupported choosy.* GROUP_SIZE because\n";
    assert_int_equal(run_expecting(null, needs, lines), 1);
    expect_words("does not say so");
    assert_int_equal(run_expecting(cpu, needs, lines), 1);
    expect_words("says it cannot");
    lines = "without NODES unsupported choosy.* GROUP_SIZE because\n"; // a NEED_ of the suite's
    assert_int_equal(run_expecting(null, needs, lines), 0);
    lines = "with NODES unsupported choosy.* GROUP_SIZE because\n";
    assert_int_equal(run_expecting(null, needs, lines), 1);
    expect_words("does not say so");
    lines = "with MAGIC unsupported choosy.* GROUP_SIZE because\n";
    assert_int_equal(run_expecting(cpu, needs, lines), 2);
    expect_words("MAGIC is neither a capability nor an option");
}

static void test_usage(void **state)
{
    (void)state;
    assert_int_equal(RUN("--mode=sideways"), 2);
    assert_int_equal(RUN("--seed=many"), 2);
    assert_int_equal(RUN("something"), 2);
    assert_int_equal(RUN("--filter=nobody.*"), 2);
    assert_int_equal(RUN("--device=nothing://", "--filter=good.*"), 2);
    expect_words("NOT_FOUND");
    assert_int_equal(RUN("--help"), 0);
    assert_int_equal(RUN("--list", "--filter=choosy.n*"), 0);
    expect_words("GROUP_SIZE EXECUTES");
    assert_int_equal(RUN("--json", "--filter=bad.check"), 1);
    expect_words("\"name\": \"bad.check\", \"outcome\": \"failed\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_under_a_tool),
        cmocka_unit_test(test_torture),
        cmocka_unit_test(test_fault),
        cmocka_unit_test(test_shuffle),
        cmocka_unit_test(test_in_time),
        cmocka_unit_test(test_some_tests),
        cmocka_unit_test(test_some_failures),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_expectations),
        cmocka_unit_test(test_expectations_of_options),
        cmocka_unit_test(test_expectations_of_capabilities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
