// SPDX-License-Identifier: Apache-2.0
// Tests that go wrong in every way, for suite_test.c. "bad" ones fail in plain mode, "greedy" ones
// only when allocations do.
#include "conformance/suite/suite.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

TEST(good, passes)
{
    CHECK(new_buffer(16));
    printf("a passing test is not heard\n");
}

static void check_in_thread(void *user)
{
    CHECK(!user);
}

TEST(good, with_a_thread)
{
    thread_join(thread_start(check_in_thread, NULL));
}

TEST(good, with_a_child)
{
    in_child(check_in_thread, NULL);
}

TEST(bad, check)
{
    new_buffer(16);
    CHECK_EQ(1 + 1, 3);
}

// What the suite checks in making them does not count.
TEST(bad, checks_nothing)
{
    if (new_buffer(16)) return;
    CHECK(!"reached");
}

TEST(bad, expectation)
{
    EXPECT(!the_device());
    new_buffer(16);
}

TEST(bad, status)
{
    TRY(keel_wait(KEEL_POINTS(keel_point(new_semaphore(0), 1)), KEEL_ALL, 0));
}

TEST(bad, wrong_code)
{
    FAILS(KEEL_NOT_FOUND, keel_wait(KEEL_POINTS(keel_point(new_semaphore(0), 1)), KEEL_ALL, 0));
}

TEST(bad, no_error)
{
    FAILS(KEEL_NOT_FOUND, keel_wait(KEEL_NO_WAITS, KEEL_ALL, 0));
}

TEST(bad, wrong_words)
{
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "bananas", keel_device_open(NULL, NULL, NULL));
}

static void fail_in_thread(void *user)
{
    CHECK(user);
}

TEST(bad, thread)
{
    thread_join(thread_start(fail_in_thread, NULL));
}

TEST(bad, thread_not_joined)
{
    thread_start(fail_in_thread, NULL);
}

static void fail_in_process(void *user)
{
    CHECK(user);
}

TEST(bad, child)
{
    in_child(fail_in_process, NULL);
}

TEST(bad, hangs)
{
    reach_value(new_semaphore(0), 1);
    for (;;) pause();
}

TEST(bad, hangs_with_children)
{
    if (fork() == 0) {
        for (;;) pause();
    }
    for (;;) pause();
}

TEST(bad, crashes)
{
    raise(SIGKILL);
}

TEST(bad, exits)
{
    _exit(0);
}

TEST(bad, leaks_an_object)
{
    disown(new_semaphore(0));
}

TEST(bad, leaks_a_status)
{
    keel_status_retain(KEEL_ERROR(KEEL_IO, "lost"));
}

TEST(bad, leaks_a_descriptor)
{
    CHECK(open("/dev/null", O_RDONLY) >= 0);
}

static void *stay(void *user)
{
    for (;;) pause();
    return NULL;
}

TEST(bad, leaks_a_thread)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, stay, NULL) == 0);
}

TEST(bad, row)
{
    for (int i = 0; i < 5; i++) {
        row("i is %d", i);
        CHECK(i < 3);
    }
}

TEST(greedy, ignores_errors)
{
    keel_semaphore_t *semaphore = NULL;
    keel_status_release(keel_semaphore_create(the_device(), NULL, &semaphore));
    CHECK(semaphore);
    keel_semaphore_release(semaphore);
}

TEST(greedy, leaks_on_errors)
{
    keel_semaphore_t *semaphores[2] = {NULL, NULL};
    TRY(keel_semaphore_create(the_device(), NULL, &semaphores[0]));
    TRY(keel_semaphore_create(the_device(), NULL, &semaphores[1]));
    keel_semaphore_release(semaphores[0]);
    keel_semaphore_release(semaphores[1]);
}

TEST(greedy, crashes_on_errors)
{
    keel_buffer_options_t options = {.size = 16};
    keel_buffer_t *buffer = NULL;
    keel_status_release(keel_buffer_create(the_device(), &options, &buffer));
    if (!buffer) raise(SIGKILL);
    CHECK(buffer);
    keel_buffer_release(buffer);
}

TEST(fatal, loses, .loses = true)
{
    CHECK(the_device());
}

TEST(fatal, does_not)
{
    CHECK(the_device());
}

TEST(choosy, needs_the_impossible, .needs = UINT32_C(1) << 12 | UINT32_C(1) << 11)
{
    CHECK(the_device());
}

TEST(choosy, skips_itself)
{
    skip("NODES", "it does not feel like it");
}
