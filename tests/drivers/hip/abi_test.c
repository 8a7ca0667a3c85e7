// SPDX-License-Identifier: Apache-2.0
// Compares drivers/hip/symbols.h with the vendor's own headers, where they are installed: the types
// of all functions here, sizes, offsets and values by way of abi_ours.c.
#if __has_include(<hip/hip_runtime_api.h>)
#define __HIP_PLATFORM_AMD__ 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <hip/hip_runtime_api.h>
#pragma GCC diagnostic pop

#include "drivers/hip/releases.h"

// A function that the header declares otherwise does not compile. One that came with a later
// release is only declared here.
typedef const char *hip_text_t;
#define SYMBOL(type, name, feature, parameters) type name parameters;
#include "drivers/hip/symbols.def"
#undef SYMBOL

#define ABI_DEF "drivers/hip/abi.def"
#endif
#include "drivers/abi.h"

#if __has_include(<hsa/hsa_ext_amd.h>)
#include <hsa/hsa_ext_amd.h>

extern const unsigned long long abi_hsa[6];

// The releases of HSA that we have seen agree on this.
static void test_pointers_of_hsa(void **state)
{
    (void)state;
    const unsigned long long theirs[] = {
        sizeof(hsa_amd_pointer_info_t),
        offsetof(hsa_amd_pointer_info_t, type),
        offsetof(hsa_amd_pointer_info_t, agentOwner),
        offsetof(hsa_amd_pointer_info_t, global_flags),
        HSA_EXT_POINTER_TYPE_UNKNOWN,
        HSA_EXT_POINTER_TYPE_LOCKED,
    };
    assert_memory_equal(abi_hsa, theirs, sizeof theirs);
}
#else
static void test_pointers_of_hsa(void **state)
{
    (void)state;
    skip();
}
#endif

#ifdef ABI_DEF
extern const unsigned long long abi_later[6];

// What HIP 5.2 does not know, or lays out otherwise: there the driver does without.
static void test_what_came_later(void **state)
{
    (void)state;
#if HIP_VERSION_MAJOR > 5 || HIP_VERSION_MINOR >= 7
    const unsigned long long theirs[] = {
        hipDeviceAttributeWallClockRate,
        hipDeviceAttributeVirtualMemoryManagementSupported,
        sizeof(hipMemAllocationProp),
        offsetof(hipMemAllocationProp, type),
        offsetof(hipMemAllocationProp, requestedHandleType),
        offsetof(hipMemAllocationProp, location),
    };
    assert_memory_equal(abi_later, theirs, sizeof theirs);
#else
    assert_true(abi_later[0] > hipDeviceAttributePhysicalMultiProcessorCount);
    assert_true(hip_release_find(HIP_VERSION_MINOR * 100000 + 50000000)->broken & STREAM_SHARED);
#endif
}

// The struct that changed with HIP 6, in the release of the header.
static void test_struct_of_the_release(void **state)
{
    (void)state;
    const hip_release_t *release =
        hip_release_find(HIP_VERSION_MAJOR * 10000000 + HIP_VERSION_MINOR * 100000);
    assert_non_null(release);
    assert_int_equal(release->properties.size, sizeof(hipDeviceProp_t));
    assert_int_equal(release->properties.target, offsetof(hipDeviceProp_t, gcnArchName));
}
#else
static void test_what_came_later(void **state)
{
    (void)state;
    skip();
}
static void test_struct_of_the_release(void **state)
{
    (void)state;
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts_and_values),
        cmocka_unit_test(test_what_came_later),
        cmocka_unit_test(test_struct_of_the_release),
        cmocka_unit_test(test_pointers_of_hsa),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
