// SPDX-License-Identifier: Apache-2.0
#include "core/uri.h"

#include <stdio.h>
#include <string.h>

#include "unit.h"

static void test_parts(void **state)
{
    (void)state;
    uri_t uri;
    assert_null(uri_parse("cuda://GPU-7?commands=graph&lib=/a/b=c", &uri));
    assert_string_equal(uri.driver, "cuda");
    assert_string_equal(uri.parts.which, "GPU-7");
    assert_int_equal(uri.parts.option_count, 2);
    assert_string_equal(uri.parts.options[0].key, "commands");
    assert_string_equal(uri.parts.options[0].value, "graph");
    assert_string_equal(uri.parts.options[1].key, "lib");
    assert_string_equal(uri.parts.options[1].value, "/a/b=c");
    assert_null(uri_parse("cpu://", &uri));
    assert_string_equal(uri.parts.which, "");
    assert_int_equal(uri.parts.option_count, 0);
}

static void test_bad_ones_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *uri, *says;
    } rows[] = {
        {"", "is not DRIVER://WHICH"},
        {"cpu", "is not DRIVER://WHICH"},
        {"://x", "is not DRIVER://WHICH"},
        {"cpu://?", "option '' is not KEY=VALUE"},
        {"cpu://?threads", "option 'threads' is not KEY=VALUE"},
        {"cpu://?=2", "option '=2' is not KEY=VALUE"},
        {"cpu://?a=1&&b=2", "option '' is not KEY=VALUE"},
        {"cpu://?a=1&a=2", "gives option 'a' twice"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uri_t uri;
        keel_status_t status = uri_parse(rows[i].uri, &uri);
        assert_int_equal(keel_status_code(status), KEEL_INVALID_ARGUMENT);
        assert_non_null(strstr(keel_status_message(status), rows[i].says));
        keel_status_release(status);
    }
}

static void test_limits(void **state)
{
    (void)state;
    uri_t uri;
    char text[URI_MAX_LENGTH + 16] = "cpu://";
    memset(text + 6, 'x', URI_MAX_LENGTH - 7);
    assert_null(uri_parse(text, &uri));
    strcat(text, "x");
    keel_status_t status = uri_parse(text, &uri);
    assert_int_equal(keel_status_code(status), KEEL_INVALID_ARGUMENT);
    keel_status_release(status);
    strcpy(text, "cpu://?");
    for (int i = 0; i <= URI_MAX_OPTIONS; i++) {
        char option[16];
        snprintf(option, sizeof option, "%so%d=1", i ? "&" : "", i);
        strcat(text, option);
    }
    status = uri_parse(text, &uri);
    assert_non_null(strstr(keel_status_message(status), "more than 32 options"));
    keel_status_release(status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_bad_ones_are_named),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
