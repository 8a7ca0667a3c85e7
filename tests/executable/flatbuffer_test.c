// SPDX-License-Identifier: Apache-2.0
#include "executable/flatbuffer.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#include "unit.h"

enum { LEAF_TEXT, LEAF_BYTE, LEAF_LONG, LEAF_FIELDS };
enum { TREE_WORD, TREE_SIZE, TREE_LEAVES, TREE_FIELDS };

static const flat_field_t leaf_fields[] = {
    [LEAF_TEXT] = {.name = "text", .kind = FLAT_TEXT},
    [LEAF_BYTE] = {.name = "byte", .kind = FLAT_U8},
    [LEAF_LONG] = {.name = "long", .kind = FLAT_U64},
};
static const flat_table_t leaf = {"Leaf", LEAF_FIELDS, leaf_fields};

static const flat_field_t tree_fields[] = {
    [TREE_WORD] = {.name = "word", .kind = FLAT_U32},
    [TREE_SIZE] = {.name = "size", .kind = FLAT_STRUCT, .required = true, .size = 12, .align = 4},
    [TREE_LEAVES] = {.name = "leaves", .kind = FLAT_TABLES, .table = &leaf},
};
static const flat_table_t tree = {"Tree", TREE_FIELDS, tree_fields};

static const uint32_t size_123[3] = {1, 2, 3};

// A tree with so many leaves; free b->data.
static size_t build(flat_builder_t *b, uint32_t leaves, const char *text)
{
    size_t root = flat_build(b, "TEST", &tree);
    flat_set_number(b, root, TREE_WORD, 77);
    flat_set_struct(b, root, TREE_SIZE, size_123);
    flat_set_tables(b, root, TREE_LEAVES, leaves);
    for (uint32_t i = 0; i < leaves; i++) {
        size_t item = flat_make_item(b, root, TREE_LEAVES, i);
        flat_set_text(b, item, LEAF_TEXT, text);
        flat_set_number(b, item, LEAF_BYTE, 200 + i);
        flat_set_number(b, item, LEAF_LONG, UINT64_MAX - i);
    }
    assert_false(b->failed);
    return root;
}

static void refused(const void *data, size_t size, const char *words)
{
    keel_status_t status = flat_verify(data, size, "TEST", &tree);
    assert_int_equal(keel_status_code(status), KEEL_CORRUPT);
    if (!strstr(keel_status_message(status), words))
        fail_msg("'%s' is not in '%s'", words, keel_status_message(status));
    keel_status_release(status);
}

static void test_round_trip(void **state)
{
    (void)state;
    flat_builder_t b;
    build(&b, 3, "Grüße");
    assert_null(flat_verify(b.data, b.size, "TEST", &tree));
    flat_t root = flat_root(b.data);
    assert_int_equal(flat_number(root, TREE_WORD, FLAT_U32), 77);
    assert_memory_equal(flat_struct(root, TREE_SIZE), size_123, 12);
    assert_int_equal(flat_count(root, TREE_LEAVES), 3);
    for (uint32_t i = 0; i < 3; i++) {
        flat_t item = flat_item(root, TREE_LEAVES, i);
        assert_string_equal(flat_text(item, LEAF_TEXT), "Grüße");
        assert_int_equal(flat_number(item, LEAF_BYTE, FLAT_U8), 200 + i);
        assert_true(flat_number(item, LEAF_LONG, FLAT_U64) == UINT64_MAX - i);
    }
    mem_free(b.data);
}

static void test_cut_short(void **state)
{
    (void)state;
    flat_builder_t b;
    build(&b, 2, "x");
    for (size_t size = 0; size < b.size; size++) {
        void *part = mem_alloc(size); // the sanitizer knows where it ends
        memcpy(part, b.data, size);
        keel_status_t status = flat_verify(part, size, "TEST", &tree);
        assert_int_equal(keel_status_code(status), KEEL_CORRUPT);
        keel_status_release(status);
        mem_free(part);
    }
    mem_free(b.data);
}

static void test_identifier(void **state)
{
    (void)state;
    flat_builder_t b;
    build(&b, 0, "");
    b.data[4] = 'F';
    refused(b.data, b.size, "identifier");
    mem_free(b.data);
}

static void put_u32(flat_builder_t *b, size_t at, uint32_t value)
{
    memcpy(b->data + at, &value, 4);
}

static uint32_t get_u32(const flat_builder_t *b, size_t at)
{
    uint32_t value;
    memcpy(&value, b->data + at, 4);
    return value;
}

// Where a field of a table lies.
static size_t field_at(const flat_builder_t *b, size_t table, uint32_t field)
{
    uint16_t offset;
    memcpy(&offset, b->data + table - get_u32(b, table) + 4 + 2 * field, 2);
    return table + offset;
}

static const flat_field_t bare_fields[] = {{.name = "byte", .kind = FLAT_U8}};
static const flat_table_t bare = {"Bare", 1, bare_fields};
static const flat_field_t bush_fields[] = {{.name = "bares", .kind = FLAT_TABLES, .table = &bare}};
static const flat_table_t bush = {"Bush", 1, bush_fields};

// All elements of a vector are one and the same table: the work must not multiply.
static void test_shared_tables(void **state)
{
    (void)state;
    flat_builder_t b;
    size_t root = flat_build(&b, "TEST", &bush);
    flat_set_tables(&b, root, 0, 1000);
    size_t place = field_at(&b, root, 0), first = place + get_u32(&b, place) + 4;
    size_t item = flat_make_item(&b, root, 0, 0);
    for (size_t at = first; at < first + 4000; at += 4) put_u32(&b, at, (uint32_t)(item - at));
    keel_status_t status = flat_verify(b.data, b.size, "TEST", &bush);
    assert_int_equal(keel_status_code(status), KEEL_CORRUPT);
    assert_non_null(strstr(keel_status_message(status), "Bare makes it refer to more"));
    keel_status_release(status);
    mem_free(b.data);
}

// All texts of different tables are one and the same.
static void test_shared_texts(void **state)
{
    (void)state;
    flat_builder_t b;
    size_t root = build(&b, 4, ""), end = (b.size + 3) / 4 * 4;
    b.data = mem_resize(b.data, end + 4 + 1001);
    memset(b.data + b.size, 0, end - b.size);
    put_u32(&b, end, 1000);
    memset(b.data + end + 4, 'x', 1000);
    b.data[end + 4 + 1000] = 0;
    b.size = end + 4 + 1001;
    size_t place = field_at(&b, root, TREE_LEAVES), first = place + get_u32(&b, place) + 4;
    for (size_t at = first; at < first + 4 * 4; at += 4) {
        assert_null(flat_verify(b.data, b.size, "TEST", &tree)); // one of them may
        size_t text = field_at(&b, at + get_u32(&b, at), LEAF_TEXT);
        put_u32(&b, text, (uint32_t)(end - text));
        if (at > first) break;
    }
    refused(b.data, b.size, "Leaf.text makes it refer to more than it holds");
    // Not ended, where the buffer ends.
    put_u32(&b, end, 1001);
    refused(b.data, b.size, "ends outside");
    put_u32(&b, end, 1000);
    b.data[b.size - 1] = 'x';
    refused(b.data, b.size, "Leaf.text is not ended");
    mem_free(b.data);
}

static void test_texts(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\x07",                 // control characters
        "\x7f",                 //
        "\xc2\x85",             //
        "\x80",                 // a continuation of nothing
        "\xc3",                 // nothing follows
        "\xe2\x82",             //
        "\xc0\xaf",             // longer than need be
        "\xe0\x80\xaf",         //
        "\xf0\x80\x80\xaf",     //
        "\xed\xa0\x80",         // halves of a pair
        "\xed\xbf\xbf",         //
        "\xf4\x90\x80\x80",     // beyond the last character
        "\xf8\x88\x80\x80\x80", // five bytes
        "\xff",                 //
    };
    flat_builder_t b;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(flat_text_is_good(bad[i]));
        build(&b, 1, bad[i]);
        refused(b.data, b.size, "Leaf.text is no printable UTF-8");
        mem_free(b.data);
    }
    assert_true(flat_text_is_good("ä €𝄞 \xc2\xa0"));
    assert_true(
        flat_text_is_good("\xe0\xa0\x80 \xf0\x90\x80\x80 \xf4\x8f\xbf\xbf")); // the outermost
    char text[FLAT_MAX_TEXT + 2];
    memset(text, 'x', sizeof text);
    text[FLAT_MAX_TEXT] = 0;
    assert_true(flat_text_is_good(text));
    build(&b, 1, text);
    assert_null(flat_verify(b.data, b.size, "TEST", &tree));
    mem_free(b.data);
    text[FLAT_MAX_TEXT] = 'x';
    text[FLAT_MAX_TEXT + 1] = 0;
    assert_false(flat_text_is_good(text));
    build(&b, 1, text);
    refused(b.data, b.size, "too long");
    mem_free(b.data);
}

// One word changed in a sound buffer.
static void test_words(void **state)
{
    (void)state;
    flat_builder_t b;
    size_t root = build(&b, 1, "text");
    size_t shape = root - get_u32(&b, root), leaves = field_at(&b, root, TREE_LEAVES);
    size_t vector = leaves + get_u32(&b, leaves), item = vector + 4 + get_u32(&b, vector + 4);
    size_t text = field_at(&b, item, LEAF_TEXT), text_at = text + get_u32(&b, text);
    const struct {
        size_t at;
        uint32_t value;
        const char *words;
    } cases[] = {
        {0, 0, "Tree lies outside"},
        {0, (uint32_t)b.size, "Tree lies outside"},
        {0, UINT32_MAX, "Tree lies outside"},
        {0, (uint32_t)root + 2, "Tree lies outside"}, // not aligned
        {root, 0x7fffffff, "Tree has no shape"},
        {root, 0x80000000, "Tree has no shape"},
        {root, (uint32_t)(root - shape) + 1, "Tree has no shape"},
        {shape, 0x00200003, "Tree has a shape that ends outside"},
        {shape, 0x00200002, "Tree has a shape that ends outside"},
        {shape, 0x0020fffe, "Tree has a shape that ends outside"},
        {shape, 0xffff000a, "Tree ends outside"},
        {shape, 0x0002000a, "Tree ends outside"},
        {shape + 4, 0xffff0004, "Tree.size lies outside"},
        {shape + 4, 0x00020004, "Tree.size lies outside"},
        {shape + 4, 0x00000004, "Tree.size is missing"},
        {shape + 4, 0x00080005, "Tree.word is not aligned"},
        {leaves, 0, "Tree.leaves lies outside"},
        {leaves, 0xfffffffc, "Tree.leaves lies outside"},
        {vector, UINT32_MAX, "Tree.leaves ends outside"},
        {vector, 0x40000000, "Tree.leaves ends outside"},
        {vector + 4, UINT32_MAX, "Tree.leaves has a part that lies outside"},
        {text, 0x7ffffffc, "Leaf.text lies outside"},
        {text_at, 3, "Leaf.text is not ended"},
        {text_at, 5, "Leaf.text ends outside"},
        {text_at, 4000, "Leaf.text ends outside"},
        {text_at + 4, 0x00780078, "Leaf.text is not ended"}, // a zero within
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t good = get_u32(&b, cases[i].at);
        put_u32(&b, cases[i].at, cases[i].value);
        refused(b.data, b.size, cases[i].words);
        put_u32(&b, cases[i].at, good);
    }
    assert_null(flat_verify(b.data, b.size, "TEST", &tree));
    mem_free(b.data);
}

// A later schema may have fields that this one does not know, and a table may lack those that it
// knows.
static void test_other_schemas(void **state)
{
    (void)state;
    static const flat_table_t old = {"Leaf", 1, leaf_fields};
    flat_builder_t b;
    size_t root = flat_build(&b, "TEST", &leaf);
    flat_set_text(&b, root, LEAF_TEXT, "new");
    assert_null(flat_verify(b.data, b.size, "TEST", &old));
    assert_string_equal(flat_text(flat_root(b.data), LEAF_TEXT), "new");
    mem_free(b.data);
    root = flat_build(&b, "TEST", &old);
    flat_set_text(&b, root, LEAF_TEXT, "old");
    assert_null(flat_verify(b.data, b.size, "TEST", &leaf));
    assert_string_equal(flat_text(flat_root(b.data), LEAF_TEXT), "old");
    assert_int_equal(flat_number(flat_root(b.data), LEAF_LONG, FLAT_U64), 0);
    mem_free(b.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_identifier),   cmocka_unit_test(test_shared_tables),
        cmocka_unit_test(test_shared_texts), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_words),        cmocka_unit_test(test_other_schemas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
