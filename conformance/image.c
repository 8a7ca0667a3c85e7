// SPDX-License-Identifier: Apache-2.0
// What images hold, without loading them. The device matters only where both are compared.
#include "suite/suite.h"

static void release_image(void *image)
{
    keel_image_info_release(image);
}

static const keel_image_info_t *image_of(const void *data, size_t size)
{
    keel_image_info_t *image = NULL;
    TRY(keel_image_info(data, size, &image));
    own_cleanup(release_image, image);
    return image;
}

static const keel_image_info_t *image_of_kernels(void)
{
    const void *data;
    size_t size;
    kernels(); // where the device does not take them, the test ends here
    kernels_image(&data, &size);
    return image_of(data, size);
}

static const keel_image_entry_info_t *entry_find(const keel_image_info_t *image, const char *name)
{
    for (uint32_t i = 0; i < image->entry_count; i++)
        if (strcmp(image->entries[i].name, name) == 0) return &image->entries[i];
    return NULL;
}

TEST(image, container)
{
    const keel_image_info_t *image = image_of_kernels();
    CHECK_EQ(image->kind, KEEL_IMAGE_CONTAINER);
    CHECK_STR(image->kind_name, "container");
    CHECK_GE(image->member_count, 1);
    for (uint32_t i = 0; i < image->member_count; i++) {
        const keel_image_info_t *member = &image->members[i];
        row("member %u, %s for %s", i, member->kind_name, member->target);
        CHECK(*member->target);
        CHECK(member->kind != KEEL_IMAGE_UNKNOWN);
        CHECK_GE(member->size, 1);
        CHECK_GE(member->stored, 1);
        CHECK(entry_find(member, "tally"));
        CHECK(entry_find(member, "scale"));
        CHECK(!entry_find(member, "missing"));
    }
}

// One image is for the family of the device, and says of its entry points what the loaded ones say.
TEST(image, says_what_is_loaded, .needs = KEEL_CAP_EXECUTES)
{
    const keel_image_info_t *image = image_of_kernels(), *member = NULL;
    const char *target = keel_device_info(the_device())->target;
    for (uint32_t i = 0; i < image->member_count && !member; i++)
        if (strncmp(image->members[i].target, target, strcspn(target, ":")) == 0)
            member = &image->members[i];
    CHECK(member);
    CHECK_EQ(member->entry_count, keel_executable_entry_count(kernels()));
    for (uint32_t i = 0; i < member->entry_count; i++) {
        const keel_image_entry_info_t *said = &member->entries[i];
        keel_entry_info_t info;
        row("%s", said->name);
        TRY(keel_entry_info(kernel(said->name), &info));
        CHECK_EQ(said->binding_count, info.bindings);
        CHECK_EQ(said->constants, info.constants);
        if (said->group_size[0] == KEEL_UNSAID) continue;
        for (int d = 0; d < 3; d++) CHECK_EQ(said->group_size[d], info.group_size[d]);
    }
}

// The description holds nothing of the bytes.
TEST(image, outlives_its_bytes)
{
    const void *data;
    size_t size;
    host_kernels_image(&data, &size);
    void *copy = scratch(size);
    memcpy(copy, data, size);
    const keel_image_info_t *image = image_of(copy, size);
    memset(copy, 0x5a, size);
    CHECK_EQ(image->kind, KEEL_IMAGE_HOST);
    CHECK_EQ(image->size, size);
    CHECK_EQ(image->member_count, 0);
    CHECK_GE(image->entry_count, 1);
    for (uint32_t i = 0; i < image->entry_count; i++) CHECK(*image->entries[i].name);
}

TEST(image, text)
{
    static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                              ".entry one(.param .u64 p, .param .u32 n) { ret; }\n";
    const keel_image_info_t *image = image_of(ptx, sizeof ptx - 1);
    CHECK_EQ(image->kind, KEEL_IMAGE_PTX);
    CHECK_STR(image->target, "nvptx:sm_70");
    CHECK_STR(image->version, "7.0");
    CHECK_EQ(image->entry_count, 1);
    const keel_image_entry_info_t *entry = image->entries;
    CHECK_STR(entry->name, "one");
    CHECK_EQ(entry->group_size[0], KEEL_UNSAID);
    CHECK_EQ(entry->param_count, 2);
    CHECK_EQ(entry->params[1].offset, 8);
    CHECK_EQ(entry->params[1].size, 4);
}

TEST(image, damaged)
{
    const void *data;
    size_t size;
    kernels_image(&data, &size);
    const size_t sizes[] = {0, 1, 8, 63, 64, 100, size / 2};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        keel_image_info_t *image = NULL;
        row("the first %zu of %zu bytes", sizes[i], size);
        keel_status_t status = keel_image_info(data, sizes[i], &image);
        keel_code_t code = keel_status_code(status);
        OWN(status);
        CHECK(code == KEEL_CORRUPT || code == KEEL_UNSUPPORTED || starved());
        CHECK(!image);
    }
}

TEST(image, bad_arguments)
{
    keel_image_info_t *image = NULL;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "data", keel_image_info(NULL, 8, &image));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "image", keel_image_info("text", 4, NULL));
    FAILS_SAYING(KEEL_UNSUPPORTED, "kind", keel_image_info("text", 4, &image));
    keel_image_info_release(NULL);
}
