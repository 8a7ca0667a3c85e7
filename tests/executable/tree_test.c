// SPDX-License-Identifier: Apache-2.0
#include "executable/tree.h"

#include "executable/bytes.h"
#include "refusing.h"
#include "tools.h"

static void test_members_are_unpacked(void **state)
{
    (void)state;
    size_t size;
    char *data = tools_read(TESTS_DATA "/native.zstd.fatbin", &size);
    keel_image_info_t root;
    read_well(tree_read(data, size, &root));
    free(data);
    assert_int_equal(root.kind, KEEL_IMAGE_FATBIN);
    assert_true(root.member_count > 0);
    for (uint32_t i = 0; i < root.member_count; i++) {
        const keel_image_info_t *member = &root.members[i];
        assert_null(member->failure);
        assert_true(member->entry_count > 0);
        assert_true(member->stored < member->size);
        assert_string_equal(member->packing, "zstd");
        assert_memory_equal(member->target, "nvptx:sm_", 9);
    }
    tree_finish(&root);
}

// Two levels down: the plain bundle in a compressed one, and its members.
static void test_members_of_members(void **state)
{
    (void)state;
    size_t size;
    char *data = tools_read(TESTS_DATA "/../fuzz/corpus/bundle/seed-three--compress", &size);
    keel_image_info_t root;
    read_well(tree_read(data, size, &root));
    free(data);
    assert_int_equal(root.member_count, 1);
    const keel_image_info_t *plain = root.members;
    assert_int_equal(plain->kind, KEEL_IMAGE_BUNDLE);
    assert_true(plain->member_count > 1);
    for (uint32_t i = 0; i < plain->member_count; i++) assert_true(plain->members[i].name[0]);
    tree_finish(&root);
}

static void put_u64(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++) at[i] = (uint8_t)(value >> 8 * i);
}

static void count(const keel_image_info_t *node, int depth, uint64_t *read, uint64_t *refused)
{
    assert_true(depth <= 5);
    if (keel_status_code(node->failure) == KEEL_RESOURCE_EXHAUSTED)
        ++*refused;
    else
        ++*read;
    for (uint32_t i = 0; i < node->member_count; i++)
        count(&node->members[i], depth + 1, read, refused);
}

// A bundle of a hundred members, each of which is the bundle: read in full, these were 10^8 images.
static void test_image_that_holds_itself(void **state)
{
    (void)state;
    enum { MEMBERS = 100, HEAD = 32, ENTRY = 24, SIZE = HEAD + MEMBERS * ENTRY };
    static uint8_t bytes[SIZE];
    memcpy(bytes, "__CLANG_OFFLOAD_BUNDLE__", 24);
    put_u64(bytes + 24, MEMBERS);
    for (int i = 0; i < MEMBERS; i++) put_u64(bytes + HEAD + i * ENTRY + 8, SIZE);
    keel_image_info_t root;
    uint64_t read = 0, refused = 0;
    read_well(tree_read(bytes, SIZE, &root));
    assert_int_equal(root.member_count, MEMBERS);
    count(&root, 0, &read, &refused);
    assert_true(refused > 0);
    assert_true(read <= 4097);
    tree_finish(&root);
}

static void test_damaged_member(void **state)
{
    (void)state;
    size_t size;
    char *data = tools_read(TESTS_DATA "/native.zstd.fatbin", &size);
    memset(data + size - 64, 0xff, 32);
    keel_image_info_t root;
    read_well(tree_read(data, size, &root));
    const keel_image_info_t *last = &root.members[root.member_count - 1];
    assert_int_equal(keel_status_code(last->failure), KEEL_CORRUPT);
    assert_memory_equal(last->target, "nvptx:sm_", 9); // as its owner says
    assert_int_equal(last->entry_count, 0);
    tree_finish(&root);
    free(data);
}

// Each allocation fails in turn: the call does, and leaves nothing.
static void test_no_memory(void **state)
{
    (void)state;
    size_t size;
    char *data = tools_read(TESTS_DATA "/../fuzz/corpus/bundle/seed-three--compress", &size);
    keel_allocator_set(&refusing);
    bool whole = false;
    for (refused_at = 1; !whole && refused_at < 1000; refused_at++) {
        keel_image_info_t root;
        made = 0;
        keel_status_t status = tree_read(data, size, &root);
        whole = made < refused_at;
        if (!whole) assert_int_equal(keel_status_code(status), KEEL_OUT_OF_MEMORY);
        if (whole) assert_null(status);
        keel_status_release(status);
        tree_finish(&root);
        assert_int_equal(live, 0);
    }
    assert_true(whole);
    keel_allocator_set(NULL);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_are_unpacked),
        cmocka_unit_test(test_members_of_members),
        cmocka_unit_test(test_image_that_holds_itself),
        cmocka_unit_test(test_damaged_member),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
