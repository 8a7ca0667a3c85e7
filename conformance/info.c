// SPDX-License-Identifier: Apache-2.0
// What objects say about themselves: whose they are, and what they are called.
#include "suite/suite.h"

#include <unistd.h>

TEST(info, semaphore)
{
    keel_semaphore_options_t options = {.name = "baton"};
    keel_semaphore_t *semaphore = NULL;
    TRY(keel_semaphore_create(the_device(), &options, &semaphore));
    OWN(semaphore);
    CHECK(keel_semaphore_info(semaphore)->device == the_device());
    CHECK_STR(keel_semaphore_info(semaphore)->name, "baton");
    CHECK_STR(keel_semaphore_info(new_semaphore(0))->name, "");
    const keel_semaphore_info_t *info = keel_semaphore_info(keel_queue_timeline(the_queue()));
    CHECK(info->device == the_device());
    CHECK_STR(info->name, "");
}

TEST(info, buffer)
{
    keel_buffer_options_t options = {.size = 64, .name = "weights"};
    keel_buffer_t *buffer = NULL;
    keel_buffer_info_t info;
    TRY(keel_buffer_create(the_device(), &options, &buffer));
    OWN(buffer);
    keel_buffer_info(buffer, &info);
    CHECK(info.device == the_device());
    CHECK_STR(info.name, "weights");
    keel_buffer_info(new_buffer(64), &info);
    CHECK_STR(info.name, "");
}

TEST(info, pool, .needs = KEEL_CAP_QUEUE_ALLOCA)
{
    keel_pool_options_t options = {.limit = 1 << 20, .name = "arena"};
    keel_pool_t *pool = NULL;
    TRY(keel_pool_create(the_device(), &options, &pool));
    OWN(pool);
    const keel_pool_info_t *info = keel_pool_info(pool);
    CHECK(info->device == the_device());
    CHECK_STR(info->options.name, "arena");
    CHECK_EQ(info->options.limit, 1 << 20);
    CHECK(info->options.memory && info->options.usage); // what 0 stands for
    CHECK(keel_pool_info(pool) == info);
    CHECK_STR(keel_pool_info(new_pool(1 << 20, 0))->options.name, "");
}

TEST(info, recording)
{
    keel_recording_options_t options = {.slots = 3, .one_shot = true, .name = "step"};
    keel_recording_t *recording = NULL;
    TRY(keel_recording_create(the_device(), &options, &recording));
    OWN(recording);
    const keel_recording_info_t *info = keel_recording_info(recording);
    CHECK(info->device == the_device());
    CHECK_STR(info->options.name, "step");
    CHECK_EQ(info->options.slots, 3);
    CHECK(info->options.one_shot);
    CHECK_STR(keel_recording_info(new_recording(0, NULL, 0))->options.name, "");
}

TEST(info, executable)
{
    CHECK(keel_executable_info(kernels())->device == the_device());
    CHECK_STR(keel_executable_info(kernels())->name, "kernels");
}

static void remove_file(void *user)
{
    unlink(user);
}

TEST(info, file, .needs = KEEL_CAP_FILES)
{
    char *path = scratch(64);
    strcpy(path, "/tmp/keel-conformance-XXXXXX");
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    own_cleanup(remove_file, path);
    own_descriptor(fd);
    keel_file_t *file = NULL, *imported = NULL;
    TRY(keel_file_open(the_device(), path, KEEL_FILE_READ, &file));
    OWN(file);
    CHECK(keel_file_info(file)->device == the_device());
    CHECK_STR(keel_file_info(file)->path, path);
    CHECK_EQ(keel_file_info(file)->flags, KEEL_FILE_READ);
    TRY(keel_file_import(the_device(), fd, &imported));
    OWN(imported);
    CHECK(keel_file_info(imported)->device == the_device());
    CHECK_EQ(keel_file_info(imported)->flags, KEEL_FILE_READ | KEEL_FILE_WRITE);
}
