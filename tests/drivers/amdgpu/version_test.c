// SPDX-License-Identifier: Apache-2.0
// A device library of another version is refused. Run on the software GPU (keel sim).
#include <keel/keel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "drivers/amdgpu/device/version.h"
#include "drivers/amdgpu/host/code/code.h"
#include "ok.h"
#include "unit.h"

extern const unsigned char keel_embed_amdgpu_library[];
extern const uint64_t keel_embed_amdgpu_library_size;

// The library with another version in each of its code objects.
static unsigned char *library_alter(uint64_t version, uint32_t *altered)
{
    const uint64_t ours = LIBRARY_VERSION, size = keel_embed_amdgpu_library_size;
    unsigned char *bytes = mem_alloc(size);
    assert_non_null(bytes);
    memcpy(bytes, keel_embed_amdgpu_library, size);
    *altered = 0;
    for (uint64_t i = 0; i + sizeof ours <= size; i += sizeof ours) {
        if (memcmp(bytes + i, &ours, sizeof ours) != 0) continue;
        memcpy(bytes + i, &version, sizeof version);
        ++*altered;
    }
    return bytes;
}

static void version_write(uint64_t version, char text[64])
{
    snprintf(text, 64, "version %d.%d.%d-%u with layout %08x", KEEL_VERSION_MAJOR,
             KEEL_VERSION_MINOR, KEEL_VERSION_PATCH, (unsigned)(version >> 32 & 0xff),
             (unsigned)version);
}

static void load_check(amdgpu_device_t *device, uint64_t version, keel_code_t code)
{
    uint32_t altered;
    char text[64];
    unsigned char *bytes = library_alter(version, &altered);
    assert_true(altered >= 8); // for so many GPUs, at least
    amdgpu_builtins_unload(device);
    keel_status_t status = amdgpu_library_load(device, bytes, keel_embed_amdgpu_library_size);
    version_write(version, text);
    assert_int_equal(keel_status_code(status), code);
    if (code) assert_non_null(strstr(keel_status_message(status), text));
    keel_status_release(status);
    mem_free(bytes);
}

static void test_another_version_is_refused(void **state)
{
    (void)state;
    const uint64_t ours = LIBRARY_VERSION, next = ours + (UINT64_C(1) << 32);
    keel_device_t *device = NULL;
    OK(keel_device_open("amdgpu://0?scheduler=host", NULL, &device));
    load_check(amdgpu_device(device), next, KEEL_UNSUPPORTED);
    load_check(amdgpu_device(device), next + 1, KEEL_UNSUPPORTED);
    load_check(amdgpu_device(device), ours, KEEL_OK);
    keel_device_release(device);
}

int main(void)
{
    if (!getenv("KEEL_SIM_GPUS")) return 77; // to be run by keel sim
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_version_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
