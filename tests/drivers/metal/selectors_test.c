// SPDX-License-Identifier: Apache-2.0
// Each row of the driver's table of messages names a class that has the method: a misspelt selector
// is seen here, also where no test sends it.
#include "device.h"

#include "drivers/metal/base/messages.h"

typedef bool (*understands_fn)(const char *class, const char *selector);

static void look(understands_fn understands, const char *class, const char *selector)
{
    if (!understands(class, selector)) fail_msg("%s has no method %s", class, selector);
}

static void test_rows(void **state)
{
    (void)state;
    void *handle = dlopen(METAL_LIBRARY, RTLD_NOW);
    assert_non_null(handle);
    understands_fn understands;
    *(void **)&understands = sim_symbol("simMetalUnderstands");
    assert_false(understands("MTLBuffer", "contens"));
    assert_false(understands("MTLBufer", "contents"));
    static const struct {
        const char *class, *selector;
    } rows[] = {
#define X(result, name, receiver, selector, parameters, arguments) {#receiver, selector},
#define LARGE                                                      X
#include "drivers/metal/base/selectors.def"
#undef LARGE
#undef X
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].class, "MTLCommandEncoder") != 0) {
            look(understands, rows[i].class, rows[i].selector);
        } else { // what all encoders have
            look(understands, "MTLBlitCommandEncoder", rows[i].selector);
            look(understands, "MTLComputeCommandEncoder", rows[i].selector);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
