// SPDX-License-Identifier: Apache-2.0
// Hidden arguments on hip://: HIP fills them in, whatever the caller has there, or nothing.
#include "drivers/hidden.h"

static void run(keel_executable_t *executable)
{
    for (int i = 0; i < 2; i++) {
        hidden_t h;
        hidden_begin(&h, executable, i ? HIDDEN_MORE : 0);
        hidden_run(&h, h.op);
        keel_buffer_release(h.out);
    }
    keel_executable_release(executable);
}

static void test_version_4(void **state)
{
    (void)state;
    keel_executable_t *executable = NULL;
    hidden_compile(4);
    OK(hidden_load(&executable));
    run(executable);
}

static void test_version_5(void **state)
{
    (void)state;
    keel_executable_t *executable = NULL;
    hidden_compile(5);
    keel_status_t status = hidden_load(&executable);
    if (status) { // HIP 5.2 knows none
        print_message("%s\n", keel_status_message(status));
        keel_status_release(status);
        skip();
    }
    run(executable);
}

static void test_hipcc(void **state)
{
    (void)state;
    keel_executable_t *executable = NULL;
    hidden_compile_hip();
    OK(hidden_load(&executable));
    run(executable);
}

static void test_file(void **state)
{
    (void)state;
    keel_executable_t *executable = NULL;
    OK(hidden_load(&executable));
    run(executable);
}

// With a file, that alone: tests/drivers/generic.cl, compiled.
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hipcc),
        cmocka_unit_test(test_version_4),
        cmocka_unit_test(test_version_5),
    };
    const struct CMUnitTest given[] = {cmocka_unit_test(test_file)};
    if (!hidden_open("hip://0")) return 77;
    if (argc > 1) hidden_file = argv[1];
    int failed = argc > 1 ? cmocka_run_group_tests(given, NULL, NULL)
                          : cmocka_run_group_tests(tests, tools_begin, tools_end);
    keel_device_release(device);
    return failed;
}
