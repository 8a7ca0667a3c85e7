// SPDX-License-Identifier: Apache-2.0
// A memory fault ends the devices of the GPU that it is of, and no other. Run on two software GPUs
// (keel sim).
#include <keel/keel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ok.h"
#include "unit.h"

enum { BYTES = 4096 };

static keel_device_t *gpu_open(const char *uri)
{
    keel_device_t *device = NULL;
    OK(keel_device_open(uri, NULL, &device));
    return device;
}

// A buffer over memory of another GPU, which this one may not use.
static keel_buffer_t *buffer_astray(keel_device_t *device, keel_buffer_t *there, uint64_t *address)
{
    keel_buffer_t *buffer = NULL;
    OK(keel_buffer_address(there, address));
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_DEVICE, .handle.device = *address, .size = BYTES};
    OK(keel_buffer_import(device, &external, NULL, &buffer));
    return buffer;
}

static keel_status_t fill(keel_device_t *device, keel_buffer_t *buffer)
{
    keel_point_t done;
    KEEL_TRY(keel_queue_fill(keel_device_queue(device, 0), KEEL_NO_WAITS, keel_whole(buffer), 1, 1,
                             &done));
    return keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
}

static void lost(keel_status_t status, const char *says)
{
    char text[1024];
    assert_int_equal(keel_status_code(status), KEEL_DEVICE_LOST);
    keel_status_format(status, text, sizeof text);
    if (!strstr(text, says)) print_error("%s\n", text);
    assert_non_null(strstr(text, says));
    keel_status_release(status);
}

static void test_a_fault_ends_the_devices_of_one_gpu(void **state)
{
    (void)state;
    keel_device_t *device = gpu_open("amdgpu://0"), *twin = gpu_open("amdgpu://0");
    keel_device_t *other = gpu_open("amdgpu://1");
    const keel_buffer_options_t options = {.size = BYTES};
    keel_buffer_t *there = NULL, *beside = NULL;
    uint64_t address = 0;
    char text[64];
    OK(keel_buffer_create(other, &options, &there));
    OK(keel_buffer_create(twin, &options, &beside));
    keel_buffer_t *astray = buffer_astray(device, there, &address);
    snprintf(text, sizeof text, "memory fault of the GPU at address 0x%llx",
             (unsigned long long)address);
    lost(fill(device, astray), text);
    lost(fill(device, astray), text);
    lost(fill(twin, beside), text);
    OK(fill(other, there));
    keel_buffer_release(astray);
    keel_buffer_release(beside);
    keel_buffer_release(there);
    keel_device_release(device);
    keel_device_release(twin);
    keel_device_release(other);
}

int main(void)
{
    const char *gpus = getenv("KEEL_SIM_GPUS");
    if (!gpus || !strchr(gpus, ',')) return 77; // to be run by keel sim
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fault_ends_the_devices_of_one_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
