// SPDX-License-Identifier: Apache-2.0
#include "kit/bind.h"

#include <stdlib.h>
#include <string.h>

#include <keel/driver/driver.h>

#include "kit/command.h"
#include "unit.h"

enum { BASE = 0x10000, PART = 0x100, LENGTH = 0x1000 };

static keel_buffer_t whole = {.root = &whole, .address = BASE};
static keel_buffer_t part = {.root = &whole, .offset = PART};
static char late_name[] = "late";
static keel_buffer_t nowhere = {.root = &nowhere, .name = late_name};

static void check_ref(const binder_t *binder, keel_ref_t ref, uint64_t address, uint64_t length)
{
    bound_t bound;
    assert_null(bind_ref(binder, &ref, &bound));
    assert_int_equal(bound.address, address);
    assert_int_equal(bound.length, length);
}

// By both ways: what is known can be bound at once.
static void check(const binder_t *binder, keel_ref_t ref, uint64_t address, uint64_t length)
{
    bound_t bound;
    check_ref(binder, ref, address, length);
    assert_null(bind_now(binder->table, &ref, &bound));
    assert_int_equal(bound.address, address);
    assert_int_equal(bound.length, length);
    assert_int_equal(bind_length(binder->table, &ref), length);
}

static void test_references(void **state)
{
    (void)state;
    const keel_ref_t table[] = {{.buffer = &whole, .offset = 8, .length = 64},
                                {.buffer = &part, .offset = 16, .length = LENGTH}};
    binder_t none = {0}, slots = {.table = table};
    check(&none, (keel_ref_t){.buffer = &whole, .offset = 4, .length = 12}, BASE + 4, 12);
    check(&none, (keel_ref_t){.buffer = &part, .offset = 4, .length = 12}, BASE + PART + 4, 12);
    check(&slots, (keel_ref_t){.slot = 1, .offset = 2, .length = 5}, BASE + PART + 18, 5);
    check(&slots, (keel_ref_t){.slot = 0, .offset = 24, .length = KEEL_WHOLE}, BASE + 32, 40);
}

static void test_local(void **state)
{
    (void)state;
    keel_buffer_t seen = {.memory = KEEL_MEMORY_HOST_VISIBLE};
    seen.root = &seen;
    const keel_ref_t table[] = {{.buffer = &whole}, {.buffer = &seen}};
    binder_t none = {0}, slots = {.table = table};
    assert_true(bind_is_local(&none, &(keel_ref_t){.buffer = &part}));
    assert_false(bind_is_local(&none, &(keel_ref_t){.buffer = &seen}));
    assert_true(bind_is_local(&slots, &(keel_ref_t){.slot = 0}));
    assert_false(bind_is_local(&slots, &(keel_ref_t){.slot = 1}));
    assert_false(bind_is_local(&none, &(keel_ref_t){.slot = 1})); // not known
    seen = (keel_buffer_t){.root = &seen, .external.size = 1};
    assert_false(bind_is_local(&none, &(keel_ref_t){.buffer = &seen})); // another device's, perhaps
}

// What has no address is an error, unless anything will do for the time being.
static void test_nowhere(void **state)
{
    (void)state;
    binder_t none = {0}, guess = {.anywhere = 0x5000};
    keel_ref_t late = {.buffer = &nowhere, .length = 12}, slot = {.slot = 3, .length = LENGTH};
    bound_t bound;
    keel_status_t status = bind_ref(&none, &late, &bound);
    assert_int_equal(keel_status_code(status), KEEL_FAILED_PRECONDITION);
    assert_non_null(strstr(keel_status_message(status), "buffer 'late' has no memory"));
    keel_status_release(status);
    check_ref(&guess, late, 0x5000, 12);
    check_ref(&guess, slot, 0x5000, BIND_ANYWHERE);
    // At once, it is an error in any case, also behind a slot.
    const keel_ref_t table[] = {{.buffer = &whole, .length = 8}, {.buffer = &nowhere, .length = 8}};
    keel_ref_t second = {.slot = 1, .length = KEEL_WHOLE};
    for (int i = 0; i < 2; i++) {
        status = bind_now(table, i ? &second : &late, &bound);
        assert_int_equal(keel_status_code(status), KEEL_FAILED_PRECONDITION);
        assert_non_null(strstr(keel_status_message(status), "buffer 'late' has no memory"));
        keel_status_release(status);
    }
    assert_int_equal(bind_length(table, &second), 8);
}

static void test_copies(void **state)
{
    (void)state;
    binder_t none = {0}, guess = {.anywhere = 0x5000};
    keel_cmd_copy_t c = {.source = {.buffer = &whole, .length = 64},
                         .target = {.buffer = &part, .length = 64}};
    bound_copy_t copy;
    assert_null(bind_copy(&none, &c, &copy));
    assert_int_equal(copy.source, BASE);
    assert_int_equal(copy.target, BASE + PART);
    assert_int_equal(copy.size, 64);
    c.target.length = 63;
    keel_status_t status = bind_copy(&none, &c, &copy);
    assert_non_null(strstr(keel_status_message(status), "source has 64 bytes and target 63"));
    keel_status_release(status);
    // Side by side is fine, whichever comes first.
    c.source.length = c.target.length = PART;
    assert_null(bind_copy(&none, &c, &copy));
    keel_cmd_copy_t back = {.source = c.target, .target = c.source};
    assert_null(bind_copy(&none, &back, &copy));
    assert_int_equal(copy.target, BASE);
    c.source.length = c.target.length = PART + 1;
    status = bind_copy(&none, &c, &copy);
    assert_non_null(strstr(keel_status_message(status), "overlap"));
    keel_status_release(status);
    c.target = (keel_ref_t){.slot = 0, .length = LENGTH};
    c.source.length = LENGTH;
    assert_null(bind_copy(&guess, &c, &copy));
    assert_int_equal(copy.size, BIND_ANYWHERE);
}

// The widest words that the place and the pattern allow.
static void test_fills(void **state)
{
    (void)state;
    static const struct {
        uint32_t offset, length, pattern, pattern_size, size;
        bool plain;
    } rows[] = {
        {0, 64, 0x12345678, 4, 4, true},  {0, 64, 0x34343434, 1, 4, true},
        {2, 6, 0x12341234, 2, 2, true},   {2, 64, 0x12345678, 4, 1, false},
        {1, 64, 0x12341234, 2, 1, false}, {1, 7, 0x77777777, 1, 1, true},
        {2, 64, 0x77777777, 4, 2, true},
    };
    binder_t none = {0};
    bound_fill_t fill;
    bool plain;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        keel_cmd_fill_t c = {
            .target = {.buffer = &whole, .offset = rows[i].offset, .length = rows[i].length},
            .pattern = rows[i].pattern,
            .pattern_size = rows[i].pattern_size};
        assert_null(bind_fill(&none, &c, &fill, &plain));
        assert_int_equal(fill.target, BASE + rows[i].offset);
        assert_int_equal(fill.size, rows[i].size);
        assert_int_equal(fill.count * fill.size, rows[i].length);
        assert_int_equal(plain, rows[i].plain);
    }
    keel_cmd_fill_t c = {.target = {.buffer = &whole, .length = 6}, .pattern_size = 4};
    keel_status_t status = bind_fill(&none, &c, &fill, &plain);
    assert_non_null(strstr(keel_status_message(status), "6 bytes are filled with a pattern of 4"));
    keel_status_release(status);
}

// As docs/kernels.md lays them down.
static void test_blocks(void **state)
{
    (void)state;
    enum { BINDINGS = 2, CONSTANTS = 5 };
    keel_cmd_dispatch_t *c = calloc(1, 4096);
    assert_non_null(c);
    command_layout(c, BINDINGS, CONSTANTS, 0);
    for (int i = 0; i < 3; i++) c->groups[i] = 5 + (uint32_t)i;
    c->bindings[0] = (keel_ref_t){.buffer = &whole, .length = 16};
    c->bindings[1] = (keel_ref_t){.buffer = &part, .length = 32};
    memcpy((char *)c + c->constants, "abcde", CONSTANTS);
    c->counts = (keel_ref_t){.buffer = &part, .offset = 8, .length = 12};
    struct {
        uint32_t grid[4];
        uint64_t addresses[2], lengths[2];
        char constants[8];
    } block;
    struct {
        uint32_t grid[4];
        uint64_t counts, table, addresses[2], lengths[2];
        char constants[8];
    } walk;
    binder_t none = {0};
    uint32_t size = 0;
    memset(&block, 0xff, sizeof block);
    memset(&walk, 0xff, sizeof walk);
    assert_null(bind_block(&none, c, (unsigned char *)&block, &size));
    assert_int_equal(size, sizeof block);
    assert_memory_equal(block.grid, ((uint32_t[]){5, 6, 7, 0}), 16);
    assert_memory_equal(block.addresses, ((uint64_t[]){BASE, BASE + PART}), 16);
    assert_memory_equal(block.lengths, ((uint64_t[]){16, 32}), 16);
    assert_memory_equal(block.constants, "abcde\0\0\0", 8);
    c->counts_kind = KEEL_COUNTS_STATIC;
    assert_null(bind_walk(&none, c, (unsigned char *)&walk, &size));
    assert_int_equal(size, sizeof walk);
    assert_int_equal(walk.counts, BASE + PART + 8);
    assert_int_equal(walk.table, 0);
    assert_memory_equal(walk.addresses, block.addresses, 40);
    c->counts_kind = KEEL_COUNTS_DIRECT;
    assert_null(bind_walk(&none, c, (unsigned char *)&walk, &size));
    assert_memory_equal(walk.grid, block.grid, 16);
    assert_int_equal(walk.counts, 0);
    free(c);
}

static void test_patches(void **state)
{
    (void)state;
    enum { CONSTANTS = 16 };
    keel_cmd_dispatch_t *c = calloc(1, 4096);
    assert_non_null(c);
    command_layout(c, 0, CONSTANTS, 2);
    memcpy((char *)c + c->constants, "abcdefghijklmnop", CONSTANTS);
    keel_patch_t *patches = (keel_patch_t *)(void *)((char *)c + c->patches);
    patches[0] = (keel_patch_t){0, {.buffer = &part, .length = 8}};
    patches[1] = (keel_patch_t){9, keel_parameter(2, 3)};
    unsigned char bytes[CONSTANTS];
    uint64_t address = BASE + PART;
    binder_t early = {0}, given = {.parameters = (const unsigned char *)"01234567"};
    assert_null(bind_constants(&early, c, bytes));
    assert_memory_equal(bytes, &address, 8);
    assert_memory_equal(bytes + 8, "ijklmnop", 8);
    assert_null(bind_constants(&given, c, bytes));
    assert_memory_equal(bytes, &address, 8);
    assert_memory_equal(bytes + 8, "i234mnop", 8);
    free(c);
}

static void test_parameters(void **state)
{
    (void)state;
    binder_t binder = {.parameters = (const unsigned char *)"ABCDEFGH", .parameters_at = 0x700};
    keel_ref_t parameter = keel_parameter(4, 12), memory = {.buffer = &whole, .length = 4};
    keel_cmd_fill_t c = {.target = memory, .pattern_size = 2, .offset = 3, .given = true};
    bound_t bound;
    bound_fill_t fill;
    bool plain;
    assert_null(bind_value(&binder, &parameter, &bound));
    assert_int_equal(bound.address, 0x704);
    assert_int_equal(bound.length, 12);
    assert_null(bind_value(&binder, &memory, &bound));
    assert_int_equal(bound.address, BASE);
    assert_null(bind_fill(&binder, &c, &fill, &plain));
    assert_memory_equal(&fill.pattern, "DEDE", 4);
    // What writes it does not depend on what it is: equal bytes are written like any others.
    c.target = (keel_ref_t){.buffer = &whole, .offset = 1, .length = 6};
    binder.parameters = (const unsigned char *)"zzzzzzzz";
    assert_null(bind_fill(&binder, &c, &fill, &plain));
    assert_false(plain);
    c.pattern_size = 1;
    assert_null(bind_fill(&binder, &c, &fill, &plain));
    assert_true(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_references), cmocka_unit_test(test_local),
        cmocka_unit_test(test_nowhere),    cmocka_unit_test(test_copies),
        cmocka_unit_test(test_fills),      cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_patches),    cmocka_unit_test(test_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
