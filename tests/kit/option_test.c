// SPDX-License-Identifier: Apache-2.0
#include "kit/option.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "unit.h"

enum { MOST = 2 };

typedef struct options_t {
    const char *path;
    void *one, *several[MOST];
    uint8_t word, said;
} options_t;

static const option_t table[] = {
    {"path", OPTION_PATH, offsetof(options_t, path), 0, {0}},
    {"one", OPTION_HANDLES, offsetof(options_t, one), 1, {0}},
    {"several", OPTION_HANDLES, offsetof(options_t, several), MOST, {0}},
    {"word", OPTION_WORD, offsetof(options_t, word), 0, {"no", "yes"}},
    {"said", OPTION_WORD, offsetof(options_t, said), 0, {NULL, "first", "second"}},
};

static keel_status_t read_one(const char *key, const char *value, options_t *options)
{
    struct keel_uri_option_t option = {key, value};
    keel_uri_t uri = {.options = &option, .option_count = 1};
    *options = (options_t){0};
    return options_read(&uri, table, sizeof table / sizeof *table, options);
}

static void test_good(void **state)
{
    (void)state;
    options_t o;
    assert_null(read_one("path", "/lib/x", &o));
    assert_string_equal(o.path, "/lib/x");
    assert_null(read_one("one", "0x10", &o));
    assert_ptr_equal(o.one, (void *)16);
    assert_null(read_one("several", "17", &o));
    assert_ptr_equal(o.several[0], (void *)17);
    assert_null(o.several[1]);
    assert_null(read_one("several", "17,0x12", &o));
    assert_ptr_equal(o.several[1], (void *)18);
    assert_null(o.path);
    assert_null(read_one("word", "yes", &o));
    assert_int_equal(o.word, 1);
    assert_null(read_one("word", "no", &o));
    assert_int_equal(o.word, 0);
    assert_null(read_one("said", "first", &o));
    assert_int_equal(o.said, 1);
    assert_null(read_one("said", "second", &o));
    assert_int_equal(o.said, 2);
}

static void test_bad(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *says;
    } rows[] = {
        {"path", "", "option path is ''; it is a path"},
        {"one", "", "option one is ''; it must be a handle, as 0x..."},
        {"one", "0", "option one is '0'; it must be a handle"},
        {"one", "-1", "option one is '-1'; it must be a handle"},
        {"one", "1,2", "option one is '1,2'; it must be a handle"},
        {"one", "0x10000000000000000", "it must be a handle"},
        {"several", "1,2,3", "it must be 1 to 2 handles, as 0x...,0x..."},
        {"several", "17,0x11", "option several is '17,0x11', which has 0x11 twice"},
        {"several", "1,", "option several is '1,'"},
        {"several", "1;2", "option several is '1;2'"},
        {"word", "maybe", "option word is 'maybe'; it must be no or yes"},
        {"word", "", "option word is ''"},
        {"said", "third", "option said is 'third'; it must be first or second"},
        {"other", "1", "no option 'other'; it has: path, one, several, word, said"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        options_t o;
        keel_status_t status = read_one(rows[i].key, rows[i].value, &o);
        assert_int_equal(keel_status_code(status), KEEL_INVALID_ARGUMENT);
        if (!strstr(keel_status_message(status), rows[i].says))
            fail_msg("row %zu: %s", i, keel_status_message(status));
        keel_status_release(status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good), cmocka_unit_test(test_bad)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
