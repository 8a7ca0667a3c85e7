// SPDX-License-Identifier: Apache-2.0
#include "kit/option.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "unit.h"

enum { MOST = 2 };

typedef struct options_t {
    const char *path;
    void *one, *several[MOST];
    uint8_t word, said;
    const char *text;
    uint32_t few;
    uint64_t many;
    bool given;
} options_t;

static const keel_option_t table[] = {
    {"path", KEEL_OPTION_PATH, .offset = offsetof(options_t, path)},
    {"one", KEEL_OPTION_HANDLES, .offset = offsetof(options_t, one), .most = 1},
    {"several", KEEL_OPTION_HANDLES, .offset = offsetof(options_t, several), .most = MOST},
    {"word", KEEL_OPTION_WORD, .offset = offsetof(options_t, word), .words = {"no", "yes"}},
    {"said", KEEL_OPTION_WORD, .offset = offsetof(options_t, said),
     .words = {NULL, "first", "second"}},
    {"text", KEEL_OPTION_TEXT, .offset = offsetof(options_t, text)},
    {"few", KEEL_OPTION_U32, .offset = offsetof(options_t, few), .least = 2, .most = 9},
    {"many", KEEL_OPTION_U64, .offset = offsetof(options_t, many), .most = UINT64_MAX,
     .given = offsetof(options_t, given)},
};

static keel_status_t read_one(const char *key, const char *value, options_t *options)
{
    struct keel_uri_option_t option = {key, value};
    keel_uri_t uri = {.text = "some://2?x", .which = "2", .options = &option, .option_count = 1};
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
    assert_null(read_one("text", "", &o));
    assert_string_equal(o.text, "");
    assert_null(read_one("few", "2", &o));
    assert_int_equal(o.few, 2);
    assert_false(o.given);
    assert_null(read_one("few", "009", &o));
    assert_int_equal(o.few, 9);
    assert_null(read_one("many", "18446744073709551615", &o));
    assert_true(o.many == UINT64_MAX && o.given);
    assert_null(read_one("many", "0", &o));
    assert_true(o.many == 0 && o.given);
}

// What is not given keeps its value, and a device may have only a part of the table.
static void test_part(void **state)
{
    (void)state;
    struct keel_uri_option_t option = {"many", "7"};
    keel_uri_t uri = {.text = "some://", .which = "", .options = &option, .option_count = 1};
    options_t o = {.few = 5, .many = 6};
    size_t count = sizeof table / sizeof *table;
    assert_null(options_read(&uri, table + count - 2, 2, &o));
    assert_int_equal(o.few, 5);
    assert_int_equal(o.many, 7);
    option.key = "text";
    keel_status_t status = options_read(&uri, table + count - 2, 2, &o);
    assert_string_equal(keel_status_message(status),
                        "some:// has no option 'text'; it has: few, many");
    keel_status_release(status);
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
        {"few", "1", "option few is '1'; it must be a number from 2 to 9"},
        {"few", "10", "option few is '10'; it must be a number from 2 to 9"},
        {"few", "4294967298", "it must be a number from 2 to 9"}, // which is 2 in 32 bits
        {"few", "", "option few is ''; it must be a number"},
        {"few", "3x", "option few is '3x'; it must be a number"},
        {"few", " 3", "option few is ' 3'; it must be a number"},
        {"few", "+3", "option few is '+3'; it must be a number"},
        {"many", "-1", "it must be a number from 0 to 18446744073709551615"},
        {"many", " -1", "it must be a number from 0 to 18446744073709551615"},
        {"many", "18446744073709551616", "it must be a number from 0 to"},
        {"other", "1", "some://2 has no option 'other'; it has: path, one, several, word, said, "},
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good), cmocka_unit_test(test_part),
                                       cmocka_unit_test(test_bad)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
