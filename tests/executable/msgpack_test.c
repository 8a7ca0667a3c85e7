// SPDX-License-Identifier: Apache-2.0
#include "executable/msgpack.h"

#include "tools.h"

static msgpack_t reader_of(const void *data, size_t size)
{
    return (msgpack_t){data, (const uint8_t *)data + size};
}

static void test_every_form(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        msgpack_type_t type;
        uint64_t number, size;
    } forms[] = {
        {"\x07", 1, MSGPACK_UNSIGNED, 7, 0},
        {"\xff", 1, MSGPACK_NEGATIVE, UINT64_MAX, 0},
        {"\xe0", 1, MSGPACK_NEGATIVE, (uint64_t)-32, 0},
        {"\x81\1\2", 3, MSGPACK_MAP, 0, 1},
        {"\x92\1\2", 3, MSGPACK_ARRAY, 0, 2},
        {"\xa2hi", 3, MSGPACK_TEXT, 0, 2},
        {"\xc0", 1, MSGPACK_NIL, 0, 0},
        {"\xc2", 1, MSGPACK_BOOL, 0, 0},
        {"\xc3", 1, MSGPACK_BOOL, 1, 0},
        {"\xc4\1x", 3, MSGPACK_BINARY, 0, 1},
        {"\xc5\0\1x", 4, MSGPACK_BINARY, 0, 1},
        {"\xc6\0\0\0\1x", 6, MSGPACK_BINARY, 0, 1},
        {"\xc7\1tx", 4, MSGPACK_EXTENSION, 0, 2},
        {"\xca\0\0\0\0", 5, MSGPACK_FLOAT, 0, 0},
        {"\xcb\0\0\0\0\0\0\0\0", 9, MSGPACK_FLOAT, 0, 0},
        {"\xcc\x80", 2, MSGPACK_UNSIGNED, 128, 0},
        {"\xcd\x01\x02", 3, MSGPACK_UNSIGNED, 0x102, 0},
        {"\xce\1\2\3\4", 5, MSGPACK_UNSIGNED, 0x1020304, 0},
        {"\xcf\1\2\3\4\5\6\7\x08", 9, MSGPACK_UNSIGNED, 0x102030405060708, 0},
        {"\xd0\x80", 2, MSGPACK_NEGATIVE, (uint64_t)-128, 0},
        {"\xd1\xff\xfe", 3, MSGPACK_NEGATIVE, (uint64_t)-2, 0},
        {"\xd2\0\0\0\5", 5, MSGPACK_UNSIGNED, 5, 0},
        {"\xd3\x80\0\0\0\0\0\0\0", 9, MSGPACK_NEGATIVE, UINT64_C(1) << 63, 0},
        {"\xd4tx", 3, MSGPACK_EXTENSION, 0, 2},
        {"\xd6txxxx", 6, MSGPACK_EXTENSION, 0, 5},
        {"\xd9\2hi", 4, MSGPACK_TEXT, 0, 2},
        {"\xda\0\2hi", 5, MSGPACK_TEXT, 0, 2},
        {"\xdb\0\0\0\2hi", 7, MSGPACK_TEXT, 0, 2},
        {"\xdc\0\1\1", 4, MSGPACK_ARRAY, 0, 1},
        {"\xdd\0\0\0\1\1", 6, MSGPACK_ARRAY, 0, 1},
        {"\xde\0\1\1\1", 5, MSGPACK_MAP, 0, 1},
        {"\xdf\0\0\0\1\1\1", 7, MSGPACK_MAP, 0, 1},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        msgpack_t reader = reader_of(forms[i].bytes, forms[i].length);
        msgpack_value_t value;
        read_well(msgpack_next(&reader, &value));
        assert_int_equal(value.type, forms[i].type);
        assert_true(value.number == forms[i].number);
        assert_int_equal(value.size, forms[i].size);
        reader = reader_of(forms[i].bytes, forms[i].length);
        read_well(msgpack_skip(&reader));
        assert_ptr_equal(reader.at, reader.end);
        for (size_t cut = 0; cut < forms[i].length; cut++) {
            reader = reader_of(forms[i].bytes, cut);
            read_badly(msgpack_skip(&reader), KEEL_CORRUPT, "cut off");
        }
    }
}

static void test_nesting_takes_no_stack(void **state)
{
    (void)state;
    enum { DEPTH = 1 << 22 };
    char *deep = malloc(DEPTH + 1);
    assert_non_null(deep);
    memset(deep, 0x91, DEPTH); // an array of one, which is an array of one ...
    deep[DEPTH] = 1;
    msgpack_t reader = reader_of(deep, DEPTH + 1);
    read_well(msgpack_skip(&reader));
    assert_ptr_equal(reader.at, reader.end);
    free(deep);
}

// Sizes that no data could follow are refused before anybody believes them.
static void test_lies(void **state)
{
    (void)state;
    static const char *const lies[] = {"\xdd\xff\xff\xff\xff", "\xdf\xff\xff\xff\xff",
                                       "\xdb\xff\xff\xff\xff", "\xc9\xff\xff\xff\xff"};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        msgpack_t reader = reader_of(lies[i], 5);
        msgpack_value_t value;
        read_badly(msgpack_next(&reader, &value), KEEL_CORRUPT, "cut off");
    }
    msgpack_t reader = reader_of("\xc1", 1);
    read_badly(msgpack_skip(&reader), KEEL_CORRUPT, "0xc1");
    msgpack_value_t value;
    reader = reader_of("\xa1x", 2);
    read_badly(msgpack_expect(&reader, MSGPACK_MAP, &value), KEEL_CORRUPT,
               "a text where a map belongs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_form),
        cmocka_unit_test(test_nesting_takes_no_stack),
        cmocka_unit_test(test_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
