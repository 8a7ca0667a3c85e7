// SPDX-License-Identifier: Apache-2.0
#include "executable/ptx.h"

#include "executable/ptx_token.h"
#include "tools.h"

#define HEAD ".version 8.5\n.target sm_90a, debug\n.address_size 64\n"

static void test_words(void **state)
{
    (void)state;
    static const char text[] =
        "/* a\n * b */ .entry // c\n#line 3\n%tid.x $L_1: 8.5 0x1F \"a\\\"b\"";
    static const struct {
        ptx_token_kind_t kind;
        const char *text;
        uint32_t line;
    } words[] = {
        {PTX_DIRECTIVE, ".entry", 2},
        {PTX_NAME, "%tid", 4},
        {PTX_DIRECTIVE, ".x", 4},
        {PTX_NAME, "$L_1", 4},
        {PTX_MARK, ":", 4},
        {PTX_NUMBER, "8.5", 4},
        {PTX_NUMBER, "0x1F", 4},
        {PTX_STRING, "\"a\\\"b\"", 4},
        {PTX_END, "", 4},
    };
    ptx_lexer_t lexer;
    ptx_lexer_init(&lexer, text, sizeof text - 1);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        ptx_next(&lexer);
        assert_int_equal(lexer.token.kind, words[i].kind);
        assert_int_equal(lexer.token.length, strlen(words[i].text));
        assert_memory_equal(lexer.token.text, words[i].text, lexer.token.length);
        assert_int_equal(lexer.line, words[i].line);
    }
}

static void test_integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        uint64_t value;
    } numbers[] = {
        {"0", true, 0},
        {"64", true, 64},
        {"7U", true, 7},
        {"0x1f", true, 31},
        {"0XFU", true, 15},
        {"017", true, 15},
        {"0b101", true, 5},
        {"09", false, 0},
        {"0x", false, 0},
        {"1.5", false, 0},
        {"12a", false, 0},
        {"18446744073709551615", true, UINT64_MAX},
        {"18446744073709551616", false, 0},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        ptx_lexer_t lexer;
        uint64_t value = 0;
        ptx_lexer_init(&lexer, numbers[i].text, strlen(numbers[i].text));
        ptx_next(&lexer);
        assert_int_equal(ptx_integer(&lexer, &value), numbers[i].good);
        if (numbers[i].good) assert_int_equal(value, numbers[i].value);
    }
}

// All that a module may hold, around an entry.
static const char whole[] =
    "//\n// made by hand\n//\n" HEAD ".file 1 \"a.cu\", 12, 34\n"
    ".extern .shared .align 16 .b8 dynamic[];\n"
    ".shared .align 8 .b8 tile[1024];\n"
    ".shared .f32 one, pair[2];\n"
    ".visible .global .align 4 .u32 table[3] = {1, 2, {3}};\n"
    ".const .b8 text[6] = \"}{;ab\";\n"
    ".extern .func (.param .b32 r) helper (.param .b64 a, .param .b64 b) .noreturn;\n"
    ".weak .func helper2()\n{\n  { ret; }\n}\n"
    ".visible .entry later(.param .u64 later_0);\n"
    ".visible .entry many(\n"
    "  .param .u64 .ptr .global .align 4 many_0,\n"
    "  .param .u8 many_1, // a } in a comment\n"
    "  .param .u64 .ptr .shared .align 1 many_2,\n"
    "  .param .align 16 .b8 many_3[24],\n"
    "  .param .v2 .f32 many_4,\n"
    "  .param .texref many_5\n"
    ")\n"
    ".maxntid 128, 2\n.minnctapersm 2\n.pragma \"nounroll {\";\n"
    "{\n"
    "  .reg .b32 %r<4>;\n"
    "  .shared .align 4 .b8 inner[10];\n"
    "  .shared .u64 wide;\n"
    "$L: ld.shared.u32 %r1, [tile+4];\n"
    "  st.shared::cta.u32 [tile], %r1; /* one */\n"
    "  ret;\n"
    "}\n";

static void test_whole_module(void **state)
{
    (void)state;
    char text[4096];
    memset(text, 0, sizeof text); // bytes that are 0 may follow
    snprintf(text, sizeof text, "%s%s", whole,
             ".entry none\n{ ret; }\n.entry fixed() .reqntid 8, 4, 2 { mov.u64 %rd, pair; }\n"
             ".section .debug_str { info_string0: .b8 1,2 }\n");
    image_info_t info;
    read_well(ptx_read(text, sizeof text, &info));
    assert_int_equal(info.kind, KEEL_IMAGE_PTX);
    assert_string_equal(info.target, "nvptx:sm_90a");
    assert_string_equal(info.version, "8.5");
    assert_int_equal(info.entry_count, 3);

    static const struct {
        const char *type;
        keel_param_kind_t kind;
        uint32_t offset, size, align;
    } params[] = {
        {".u64", KEEL_PARAM_POINTER, 0, 8, 8}, {".u8", KEEL_PARAM_VALUE, 8, 1, 1},
        {".u64", KEEL_PARAM_LOCAL, 16, 8, 8},  {".b8[]", KEEL_PARAM_VALUE, 32, 24, 16},
        {".f32", KEEL_PARAM_VALUE, 56, 8, 8},  {".texref", KEEL_PARAM_OPAQUE, 64, 8, 8},
    };
    const keel_image_entry_info_t *many = entry_named(&info, "many");
    assert_int_equal(many->param_count, 6);
    assert_int_equal(many->param_size, 72);
    for (size_t i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "many_%zu", i);
        assert_string_equal(many->params[i].name, name);
        assert_string_equal(many->params[i].type, params[i].type);
        assert_int_equal(many->params[i].kind, params[i].kind);
        assert_int_equal(many->params[i].offset, params[i].offset);
        assert_int_equal(many->params[i].size, params[i].size);
        assert_int_equal(many->params[i].align, params[i].align);
    }
    assert_int_equal(many->max_group_size, 256);
    assert_int_equal(many->group_size[0], KEEL_UNSAID);
    assert_int_equal(many->local_memory, 10 + 6 + 8 + 1024); // inner, a hole, wide, tile once

    const keel_image_entry_info_t *fixed = entry_named(&info, "fixed");
    assert_int_equal(fixed->group_size[0], 8);
    assert_int_equal(fixed->group_size[1], 4);
    assert_int_equal(fixed->group_size[2], 2);
    assert_int_equal(fixed->local_memory, 8);
    assert_int_equal(entry_named(&info, "none")->param_count, 0);
    image_info_finish(&info);
    image_info_finish(&info);
}

static void test_bad_modules(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
        keel_code_t code;
    } bad[] = {
        {"", "before .version", KEEL_CORRUPT},
        {"\x01", "a byte 0x01", KEEL_CORRUPT},
        {".version 8.5 .entry", "expected .target, found '.entry'", KEEL_CORRUPT},
        {".version 8.5\n.target sm_90 .address_size 32", "32 bits", KEEL_UNSUPPORTED},
        {HEAD "/* ", "line 4: a comment or string", KEEL_CORRUPT},
        {HEAD ".const .b8 x[] = \"abc;", "line 4: a comment or string", KEEL_CORRUPT},
        {HEAD ".entry a(.param .u64 b", "before )", KEEL_CORRUPT},
        {HEAD ".entry a(.param .u64 b) { {", "the end of a block", KEEL_CORRUPT},
        {HEAD ".entry a(.param .u65 b) {}", "expected a type", KEEL_CORRUPT},
        {HEAD ".entry a(.param .u64 b[]) {}", "1 byte to 1 MiB", KEEL_CORRUPT},
        {HEAD ".entry a(.param .u64 b[99999999]) {}", "1 byte to 1 MiB", KEEL_CORRUPT},
        {HEAD ".entry a(.param .u64 b[99999999][99999999]) {}", "4 GiB", KEEL_CORRUPT},
        {HEAD ".entry a(.param .align 3 .u64 b) {}", "power of two", KEEL_CORRUPT},
        {HEAD ".entry a(.param .align 0 .u64 b) {}", "power of two", KEEL_CORRUPT},
        {HEAD ".entry a() .maxntid 0 {}", "not 0", KEEL_CORRUPT},
        {HEAD ".entry a() .maxntid 1000000, 1000000, 1000000 {}", "smaller group", KEEL_CORRUPT},
        {HEAD ".entry a() { .shared .u64 x[400000000]; .shared .u64 y[400000000]; }", "4 GiB",
         KEEL_CORRUPT},
        {HEAD "\n.surprise x;", "line 5: expected a directive of a module", KEEL_CORRUPT},
        {HEAD ".global .b8 x = {", "the end of a block", KEEL_CORRUPT},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        image_info_t info;
        read_badly(ptx_read(bad[i].text, strlen(bad[i].text), &info), bad[i].code, bad[i].words);
        assert_null(info.memory);
    }
}

// Cut off anywhere it is refused or has fewer entries, and nothing else happens.
static void test_truncated(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof whole; size++) {
        char *copy = malloc(size ? size : 1); // so that a sanitizer knows where it ends
        assert_non_null(copy);
        memcpy(copy, whole, size);
        image_info_t info;
        keel_status_t status = ptx_read(copy, size, &info);
        assert_true(status || info.entry_count <= 1);
        keel_status_release(status);
        image_info_finish(&info);
        free(copy);
    }
}

// What clang makes of kernels in C, whose parameters a compiler for the host lays out alike.
static void test_from_clang(void **state)
{
    (void)state;
    tools_need("clang-19");
    static const char source[] =
        "typedef struct { char tag; double value; } pair_t;\n"
        "typedef struct { unsigned short entries[5]; } table_t;\n"
        "__attribute__((address_space(3))) int tile[256];\n"
        "[[clang::nvptx_kernel]] void saxpy(float *y, const float *x, float a, char b, long n)\n"
        "{ y[n] = x[n] * a + b; }\n"
        "[[clang::nvptx_kernel]] void grouped(pair_t p, table_t t, int *out)\n"
        "{ tile[out[0]] = t.entries[out[2]]; out[1] = tile[out[3]] + (int)p.value; }\n";
    tools_write("k.c", source, sizeof source - 1);
    tools_run("clang-19 --target=nvptx64-nvidia-cuda -march=sm_70 -std=c23 -O2 -nogpulib -S k.c "
              "-o k.ptx");
    size_t size;
    char *text = tools_read("k.ptx", &size);
    assert_int_equal(image_recognise(text, size), KEEL_IMAGE_PTX);
    image_info_t info;
    read_well(image_read(text, size, &info));
    assert_string_equal(info.target, "nvptx:sm_70");
    assert_int_equal(info.entry_count, 2);
    static const uint32_t offsets[] = {0, 8, 16, 20, 24}, sizes[] = {8, 8, 4, 1, 8};
    const keel_image_entry_info_t *saxpy = entry_named(&info, "saxpy");
    assert_int_equal(saxpy->param_count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(saxpy->params[i].offset, offsets[i]);
        assert_int_equal(saxpy->params[i].size, sizes[i]);
    }
    const keel_image_entry_info_t *grouped = entry_named(&info, "grouped");
    assert_int_equal(grouped->param_count, 3);
    assert_int_equal(grouped->params[0].size, 16);
    assert_int_equal(grouped->params[1].size, 10);
    assert_int_equal(grouped->params[2].offset, 32);
    assert_int_equal(grouped->param_size, 40);
    assert_int_equal(grouped->local_memory, 1024);
    assert_int_equal(saxpy->local_memory, 0);
    image_info_finish(&info);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_whole_module), cmocka_unit_test(test_bad_modules),
        cmocka_unit_test(test_truncated),    cmocka_unit_test(test_from_clang),
    };
    return cmocka_run_group_tests(tests, tools_begin, tools_end);
}
