// SPDX-License-Identifier: Apache-2.0
// Compares drivers/cuda/symbols.h with the vendor's own header, where that is installed: the types
// of all functions here, sizes, offsets and values by way of abi_ours.c.
#include "unit.h"

#if __has_include(<cuda.h>) && __has_include(<cudaTypedefs.h>)
#include <cuda.h>
#include <cudaTypedefs.h>

#define SYMBOL(name, version, needs, feature, parameters)                                          \
    _Static_assert(__builtin_types_compatible_p(PFN_##name##_v##version, CUresult(*) parameters),  \
                   #name);
#include "drivers/cuda/symbols.def"
#undef SYMBOL

extern const unsigned long long abi_ours[];
static const unsigned long long abi_theirs[] = {
#define SIZE(type)          sizeof(type),
#define OFFSET(type, field) offsetof(type, field),
#define VALUE(name)         (unsigned long long)(name),
#include "drivers/cuda/abi.def"
};
static const char *const names[] = {
#define SIZE(type)          "sizeof " #type,
#define OFFSET(type, field) #type "." #field,
#define VALUE(name)         #name,
#include "drivers/cuda/abi.def"
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
    skip(); // there is no cuda.h here
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts_and_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
