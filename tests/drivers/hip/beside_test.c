// SPDX-License-Identifier: Apache-2.0
// hip:// beside amdgpu:// in one process: both stand on HSA, and HIP must not lock what HSA has
// allocated. Run on the software GPU (keel sim), with HIP as it is and with the library that lets
// its calls fail.
#include <keel/keel.h>
#include <string.h>

#include "ok.h"
#include "unit.h"

enum { SIZE = 96 << 10 };

static keel_device_t *hip, *failing, *amdgpu;

static keel_buffer_t *make(keel_device_t *device, uint32_t memory)
{
    const keel_buffer_options_t options = {.size = SIZE, .memory = memory, .name = "made"};
    keel_buffer_t *buffer = NULL;
    OK(keel_buffer_create(device, &options, &buffer));
    return buffer;
}

static keel_status_t import(keel_device_t *device, void *data, uint32_t access,
                            keel_buffer_t **buffer)
{
    const keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = data, .size = SIZE};
    const keel_buffer_options_t options = {.access = access, .name = "imported"};
    *buffer = NULL;
    return keel_buffer_import(device, &external, &options, buffer);
}

static void test_memory_of_hsa_is_refused(void **state)
{
    (void)state;
    static const uint32_t accesses[] = {KEEL_ACCESS_READ, KEEL_ACCESS_READ | KEEL_ACCESS_WRITE};
    keel_buffer_t *made = make(amdgpu, KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_DEVICE_VISIBLE);
    keel_buffer_t *imported;
    void *data = NULL;
    OK(keel_buffer_map(made, 0, KEEL_WHOLE, KEEL_ACCESS_READ | KEEL_ACCESS_WRITE, &data));
    for (size_t i = 0; i < 2 * sizeof accesses / sizeof *accesses; i++) {
        keel_status_t status = import(i % 2 ? failing : hip, data, accesses[i / 2], &imported);
        assert_int_equal(keel_status_code(status), KEEL_FAILED_PRECONDITION);
        assert_non_null(strstr(keel_status_message(status), "HSA has allocated the memory at"));
        assert_null(imported);
        keel_status_release(status);
    }
    keel_buffer_unmap(made);
    keel_buffer_release(made);
}

static void test_memory_of_the_application_is_shared(void **state)
{
    (void)state;
    static char memory[2][SIZE];
    keel_device_t *order[] = {hip, amdgpu, hip};
    for (int i = 0; i < 2; i++) {
        keel_buffer_t *one = NULL, *other = NULL;
        OK(import(order[i], memory[i], KEEL_ACCESS_READ | KEEL_ACCESS_WRITE, &one));
        OK(import(order[i + 1], memory[i], KEEL_ACCESS_READ | KEEL_ACCESS_WRITE, &other));
        keel_buffer_release(one);
        keel_buffer_release(other);
    }
}

static bool open_both(void)
{
    keel_status_t status = keel_device_open("hip://0", NULL, &hip);
    if (!status) status = keel_device_open("hip://0?lib=" FAILING_LIBRARY, NULL, &failing);
    if (!status) status = keel_device_open("amdgpu://0", NULL, &amdgpu);
    if (!status) return true;
    print_message("%s\n", keel_status_message(status));
    keel_status_release(status);
    keel_device_release(failing);
    keel_device_release(hip);
    return false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_of_hsa_is_refused),
        cmocka_unit_test(test_memory_of_the_application_is_shared),
    };
    if (!open_both()) return 77;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    keel_device_release(amdgpu);
    keel_device_release(failing);
    keel_device_release(hip);
    return failed;
}
