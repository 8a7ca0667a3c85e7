// SPDX-License-Identifier: Apache-2.0
// The frame of a driver's abi_test.c, which compares sizes, offsets and values of the driver's own
// declarations (abi_ours.c) with those of the vendor's header. ABI_DEF names what is compared; it
// is not defined where the header is not installed.
#include "unit.h"

#ifdef ABI_DEF
extern const unsigned long long abi_ours[];
static const unsigned long long abi_theirs[] = {
#define SIZE(type)          sizeof(type),
#define OFFSET(type, field) offsetof(type, field),
#define VALUE(name)         (unsigned long long)(name),
#include ABI_DEF
};
static const char *const abi_names[] = {
#define SIZE(type)          "sizeof " #type,
#define OFFSET(type, field) #type "." #field,
#define VALUE(name)         #name,
#include ABI_DEF
};

static void test_layouts_and_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof abi_names / sizeof *abi_names; i++) {
        if (abi_ours[i] != abi_theirs[i]) print_error("%s differs\n", abi_names[i]);
        assert_int_equal(abi_ours[i], abi_theirs[i]);
    }
}
#else
static void test_layouts_and_values(void **state)
{
    (void)state;
    skip(); // the header is not here
}
#endif
