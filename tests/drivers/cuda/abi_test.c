// SPDX-License-Identifier: Apache-2.0
// Compares drivers/cuda/symbols.h with the vendor's own header, where that is installed: the types
// of all functions here, sizes, offsets and values by way of abi_ours.c.
#if __has_include(<cuda.h>) && __has_include(<cudaTypedefs.h>)
#include <cuda.h>
#include <cudaTypedefs.h>

#define SYMBOL(name, version, needs, feature, parameters)                                          \
    _Static_assert(__builtin_types_compatible_p(PFN_##name##_v##version, CUresult(*) parameters),  \
                   #name);
#include "drivers/cuda/symbols.def"
#undef SYMBOL

#define ABI_DEF "drivers/cuda/abi.def"
#endif
#include "drivers/abi.h"

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts_and_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
