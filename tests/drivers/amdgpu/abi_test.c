// SPDX-License-Identifier: Apache-2.0
// Compares drivers/amdgpu/host/symbols.h with the vendor's own headers, where these are installed:
// the types of all functions here, sizes, offsets and values by way of abi_ours.c.
#include "unit.h"

#if __has_include(<hsa/hsa_ext_amd.h>)
#define LITTLEENDIAN_CPU 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#pragma GCC diagnostic pop

// A function that the headers declare otherwise does not compile.
#define SYMBOL(type, name, parameters) type name parameters;
#include "drivers/amdgpu/host/symbols.def"
#undef SYMBOL

extern const unsigned long long abi_ours[];
static const unsigned long long abi_theirs[] = {
#define SIZE(type)          sizeof(type),
#define OFFSET(type, field) offsetof(type, field),
#define VALUE(name)         (unsigned long long)(name),
#include "drivers/amdgpu/abi.def"
};
static const char *const names[] = {
#define SIZE(type)          "sizeof " #type,
#define OFFSET(type, field) #type "." #field,
#define VALUE(name)         #name,
#include "drivers/amdgpu/abi.def"
};

static void test_layouts_and_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (abi_ours[i] != abi_theirs[i]) print_error("%s differs\n", names[i]);
        assert_int_equal(abi_ours[i], abi_theirs[i]);
    }
}
#else
static void test_layouts_and_values(void **state)
{
    (void)state;
    skip(); // there is no hsa_ext_amd.h here
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts_and_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
