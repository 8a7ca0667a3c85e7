// SPDX-License-Identifier: Apache-2.0
// Libraries of the system. LD_LIBRARY_PATH has libkeel_broken.so, which is empty.
#include "kit/library.h"

#include <string.h>

#include "unit.h"

static keel_status_t fill_nothing(void *handle, void *table)
{
    (void)handle, (void)table;
    return NULL;
}

static void opens(library_kind_t *kind, const char *words)
{
    const void *table;
    kind->name = "thing";
    kind->size = 1;
    kind->fill = fill_nothing;
    keel_status_t status = library_open(kind, NULL, &table);
    if (keel_status_code(status) != KEEL_NOT_FOUND || !strstr(keel_status_message(status), words))
        fail_msg("%s", keel_status_message(status));
    keel_status_release(status);
}

static void test_the_first_that_is_missing_is_named(void **state)
{
    (void)state;
    static library_kind_t kind = {.files = {"libkeel_none.so.2", "libkeel_none.so.1"}};
    opens(&kind, "no thing can be opened here: ");
    opens(&kind, "libkeel_none.so.2");
}

// Of a library that is there, and cannot be opened, the reason is told, wherever it stands.
static void test_what_one_lacks_that_is_there_is_told(void **state)
{
    (void)state;
#if !defined(__GLIBC__)
    skip(); // other loaders tell of both in the same words
#endif
    static library_kind_t kind = {
        .files = {"libkeel_none.so.2", "libkeel_broken.so", "libkeel_none.so.1"}};
    opens(&kind, "/libkeel_broken.so: file too short");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_that_is_missing_is_named),
        cmocka_unit_test(test_what_one_lacks_that_is_there_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
