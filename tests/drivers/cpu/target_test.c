// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/target.h"

#include <stdio.h>
#include <string.h>

#include <keel/driver/image.h>

#include "base/processor.h"

#include "unit.h"

#if defined(__aarch64__)
enum { LEVELS = 3 };
#define LISTED_AS "Features" // in /proc/cpuinfo; an emulator may show that of another machine
#else
enum { LEVELS = 4 };
#define LISTED_AS "flags"
#endif

static void test_own_target_is_exact(void **state)
{
    (void)state;
    for (uint32_t level = 1; level <= LEVELS; level++) {
        char name[64];
        cpu_target_name(level, name, sizeof name);
        assert_int_equal(cpu_target_rank(level, name), KEEL_RANK_EXACT);
    }
}

// A higher level is better, as far as the processor has it.
static void test_order(void **state)
{
    (void)state;
    for (uint32_t has = 1; has <= LEVELS; has++) {
        uint32_t last = 0;
        for (uint32_t wants = 1; wants <= LEVELS; wants++) {
            char name[64];
            cpu_target_name(wants, name, sizeof name);
            uint32_t rank = cpu_target_rank(has, name);
            if (wants > has) assert_int_equal(rank, 0);
            if (wants <= has) assert_true(rank > last);
            if (wants < has) assert_true(rank < KEEL_RANK_EXACT && rank >= KEEL_RANK_COMPATIBLE);
            last = rank;
        }
    }
}

static void test_others(void **state)
{
    (void)state;
    static const char *const others[] = {"",
                                         "gfx90a",
                                         "nvptx:sm_70",
                                         "x86_64",
                                         "aarch64",
                                         "mips-linux",
                                         "spirv",
                                         "x86_64-linux:v1",
                                         "x86_64-linux:v9",
                                         "aarch64-linux:",
                                         "aarch64-linux:sme"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(cpu_target_rank(LEVELS, others[i]), 0);
}

// Whether the system lists a feature of the processor; -1 if it lists none.
static int system_says(const char *feature)
{
    char line[8192];
    int says = -1;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && says < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, LISTED_AS, strlen(LISTED_AS)) == 0) says = strstr(line, feature) != NULL;
    if (file) fclose(file);
    return says;
}

static void test_this_processor(void **state)
{
    (void)state;
    uint32_t level = processor_level();
    assert_true(level >= 1 && level <= LEVELS);
    if (system_says("") < 0) skip();
#if defined(__x86_64__)
    assert_int_equal(level >= 3, system_says(" avx2"));
    assert_int_equal(level >= 4, system_says(" avx512vl"));
#elif !KEEL_PORTABLE
    assert_int_equal(level >= 2, system_says(" sve"));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_target_is_exact),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_this_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
