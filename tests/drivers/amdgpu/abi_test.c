// SPDX-License-Identifier: Apache-2.0
// Compares drivers/amdgpu/host/base/symbols.h with the vendor's own headers, where these are
// installed: the types of all functions here, sizes, offsets and values by way of abi_ours.c.
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
#define OPTIONAL                       SYMBOL
#include "drivers/amdgpu/host/base/symbols.def"
#undef OPTIONAL
#undef SYMBOL

#define ABI_DEF "drivers/amdgpu/abi.def"
#endif
#include "drivers/abi.h"

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts_and_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
