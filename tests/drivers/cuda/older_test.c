// SPDX-License-Identifier: Apache-2.0
// Kernels whose block of arguments was laid out by an older compiler, on the CUDA driver in
// software: they are refused, and what to do is said.
#include <keel/keel.h>

#include "executable/packed.h"

static void older_blocks_are_refused(void **state)
{
    (void)state;
    keel_image_entry_t entry = sample_entries[0];
    entry.abi = KEEL_ABI_OLDER;
    const container_input_t image = {KEEL_IMAGE_PTX, "nvptx:sm_0", "// ptx\n", 7, &entry, 1};
    const container_options_t options = {.producer = "a test"};
    keel_executable_options_t load = {0};
    void *bytes;
    OK(container_write(&options, &image, 1, &bytes, &load.size));
    load.data = bytes;
    keel_device_t *device = NULL;
    keel_executable_t *executable = NULL;
    OK(keel_device_open("cuda://0?lib=" CUDA_LIBRARY, NULL, &device));
    expect_failure(keel_executable_load(device, &load, &executable), KEEL_UNSUPPORTED,
                   "compile it again");
    assert_null(executable);
    keel_device_release(device);
    mem_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(older_blocks_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
