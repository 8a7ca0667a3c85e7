// SPDX-License-Identifier: Apache-2.0
// Hidden arguments on amdgpu://: the driver fills them in, whatever the caller has there, or
// nothing. Once where the host writes the packet, and in recordings, whose packets the GPU writes:
// with the block known, and with all behind the buffer's address a parameter of the execution.
#include "drivers/hidden.h"

static void recording_run(const hidden_t *h, const void *parameters, size_t size)
{
    keel_recording_t *recording = NULL;
    OK(keel_recording_create(device, NULL, &recording));
    OK(keel_recording_add(recording, &h->op, 1));
    OK(keel_recording_end(recording));
    hidden_run(h, keel_op_execute_with(recording, KEEL_NO_BINDINGS, parameters, size));
    keel_recording_release(recording);
}

static void clear(const hidden_t *h)
{
    OK(keel_buffer_write(h->out, 0, (uint32_t[HIDDEN_GROUPS * HIDDEN_SIZE]){0},
                         4 * HIDDEN_GROUPS * HIDDEN_SIZE));
}

static void run_with(uint32_t more)
{
    keel_executable_t *executable = NULL;
    hidden_t h;
    OK(hidden_load(&executable));
    hidden_begin(&h, executable, more);
    hidden_run(&h, h.op);
    clear(&h);
    recording_run(&h, NULL, 0);
    clear(&h);
    h.patches[1] = (keel_patch_t){8, keel_parameter(8, h.size - 8)};
    h.op.as.dispatch.patch_count = 2;
    h.op.as.dispatch.constants = NULL;
    recording_run(&h, h.block, h.size);
    keel_buffer_release(h.out);
    keel_executable_release(executable);
}

static void run(void)
{
    run_with(0);
    run_with(HIDDEN_MORE);
}

static void test_version_4(void **state)
{
    (void)state;
    hidden_compile(4);
    run();
}

static void test_version_5(void **state)
{
    (void)state;
    hidden_compile(5);
    run();
}

static void test_hipcc(void **state)
{
    (void)state;
    hidden_compile_hip();
    run();
}

static void test_file(void **state)
{
    (void)state;
    run();
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
    if (!hidden_open("amdgpu://0")) return 77;
    if (argc > 1) hidden_file = argv[1];
    int failed = argc > 1 ? cmocka_run_group_tests(given, NULL, NULL)
                          : cmocka_run_group_tests(tests, tools_begin, tools_end);
    keel_device_release(device);
    return failed;
}
