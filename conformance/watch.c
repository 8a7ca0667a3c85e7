// SPDX-License-Identifier: Apache-2.0
// Watches: waits for people with an event loop.
#include "suite/suite.h"

#include <poll.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/epoll.h>
#endif

static keel_watch_t *new_watch(const keel_point_t *points, size_t count, keel_wait_mode_t mode)
{
    keel_watch_t *watch = NULL;
    TRY(keel_watch_create(keel_points(points, count), mode, &watch));
    OWN(watch);
    return watch;
}

static bool readable(const keel_watch_t *watch, int timeout_ms)
{
    struct pollfd fd = {.fd = keel_watch_fd(watch), .events = POLLIN};
    CHECK(fd.fd >= 0);
    int ready = poll(&fd, 1, timeout_ms);
    CHECK(ready >= 0);
    return ready == 1 && fd.revents & POLLIN;
}

#define SOON ((int)(patience() / 1000000))

TEST(watch, readable_after_the_signal)
{
    keel_point_t point = {new_semaphore(0), 2};
    keel_watch_t *watch = new_watch(&point, 1, KEEL_ALL);
    CHECK(!readable(watch, 0));
    TRY(keel_semaphore_signal(point.semaphore, 1));
    CHECK(!readable(watch, 5));
    TRY(keel_semaphore_signal(point.semaphore, 2));
    CHECK(readable(watch, SOON));
    CHECK(readable(watch, 0)); // and stays so
    TRY(keel_wait(KEEL_POINTS(point), KEEL_ALL, 0));
}

TEST(watch, readable_at_once)
{
    keel_point_t point = {new_semaphore(2), 1};
    CHECK(readable(new_watch(&point, 1, KEEL_ALL), SOON));
    CHECK(readable(new_watch(&point, 1, KEEL_ANY), SOON));
    CHECK(readable(new_watch(NULL, 0, KEEL_ALL), SOON));
}

TEST(watch, all_and_any)
{
    keel_point_t points[] = {{new_semaphore(0), 1}, {new_semaphore(0), 1}};
    keel_watch_t *all = new_watch(points, 2, KEEL_ALL), *any = new_watch(points, 2, KEEL_ANY);
    TRY(keel_semaphore_signal(points[1].semaphore, 1));
    CHECK(readable(any, SOON));
    CHECK(!readable(all, 5));
    TRY(keel_semaphore_signal(points[0].semaphore, 1));
    CHECK(readable(all, SOON));
}

TEST(watch, readable_after_a_failure)
{
    keel_point_t points[] = {{new_semaphore(0), 1}, {new_semaphore(0), 1}};
    keel_watch_t *all = new_watch(points, 2, KEEL_ALL), *any = new_watch(points, 2, KEEL_ANY);
    keel_semaphore_fail(points[1].semaphore, KEEL_ERROR(KEEL_ABORTED, "broken"));
    CHECK(readable(all, SOON));
    CHECK(readable(any, SOON));
    FAILS_SAYING(KEEL_ABORTED, "broken", keel_wait(keel_points(points, 2), KEEL_ALL, 0));
}

TEST(watch, readable_after_work)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t done = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_barrier());
    keel_watch_t *watch = new_watch(&done, 1, KEEL_ALL);
    CHECK(!readable(watch, 0));
    TRY(keel_semaphore_signal(gate, 1));
    CHECK(readable(watch, SOON));
}

TEST(watch, readable_when_the_device_closes)
{
    keel_point_t point = {new_semaphore(0), 1};
    keel_watch_t *watch = new_watch(&point, 1, KEEL_ALL);
    drop(the_device());
    CHECK(readable(watch, SOON));
}

TEST(watch, retains_its_semaphores)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    keel_point_t point = keel_point(semaphore, 1);
    keel_watch_t *watch = new_watch(&point, 1, KEEL_ALL);
    keel_semaphore_retain(semaphore);
    drop(semaphore);
    keel_status_t status = keel_semaphore_signal(semaphore, 1);
    keel_semaphore_release(semaphore);
    TRY(status);
    CHECK(readable(watch, SOON));
    keel_live_t live;
    keel_live_objects(&live);
    CHECK_EQ(live.semaphores, 1);
    drop(watch);
    keel_live_objects(&live);
    CHECK_EQ(live.semaphores, 0);
}

TEST(watch, released_early)
{
    keel_point_t point = {new_semaphore(0), 1};
    drop(new_watch(&point, 1, KEEL_ALL));
    TRY(keel_semaphore_signal(point.semaphore, 1));
    keel_watch_release(NULL);
}

TEST(watch, many_on_one_point)
{
    keel_point_t point = {new_semaphore(0), 1};
    keel_watch_t *watches[40];
    for (size_t i = 0; i < COUNT(watches); i++) watches[i] = new_watch(&point, 1, KEEL_ALL);
    TRY(keel_semaphore_signal(point.semaphore, 1));
    for (size_t i = 0; i < COUNT(watches); i++) CHECK(readable(watches[i], SOON));
}

TEST(watch, bad_arguments)
{
    keel_watch_t *watch = NULL;
    keel_point_t nowhere = {NULL, 1}, point = {new_semaphore(0), 1};
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "points",
                 keel_watch_create(keel_points(NULL, 1), KEEL_ALL, &watch));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "points[0]",
                 keel_watch_create(KEEL_POINTS(nowhere), KEEL_ALL, &watch));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "watch",
                 keel_watch_create(KEEL_POINTS(point), KEEL_ALL, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "mode",
                 keel_watch_create(KEEL_POINTS(point), (keel_wait_mode_t)5, &watch));
    CHECK(watch == NULL);
}

static void signal_later(void *user)
{
    sleep_ms(10);
    TRY(keel_semaphore_signal(user, 1));
}

TEST(watch, wakes_a_poll)
{
    keel_point_t point = {new_semaphore(0), 1};
    keel_watch_t *watch = new_watch(&point, 1, KEEL_ALL);
    thread_t *thread = thread_start(signal_later, point.semaphore);
    CHECK(readable(watch, SOON));
    thread_join(thread);
}

#ifdef __linux__
// As an event loop would: one epoll, many watches, each told of once.
TEST(watch, epoll)
{
    enum { N = 10 };
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    CHECK(epoll >= 0);
    own_descriptor(epoll);
    keel_semaphore_t *semaphore = new_semaphore(0);
    for (uint32_t i = 0; i < N; i++) {
        keel_point_t point = keel_point(semaphore, i + 1);
        struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = i};
        keel_watch_t *watch = new_watch(&point, 1, KEEL_ALL);
        CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, keel_watch_fd(watch), &event) == 0);
    }
    for (uint32_t i = 0; i < N; i++) {
        struct epoll_event event;
        CHECK_EQ(epoll_wait(epoll, &event, 1, 0), 0);
        TRY(keel_semaphore_signal(semaphore, i + 1));
        CHECK_EQ(epoll_wait(epoll, &event, 1, SOON), 1);
        CHECK_EQ(event.data.u32, i);
    }
}
#endif

static void watch_in_a_loop(void *user)
{
    keel_semaphore_t *semaphore = user;
    for (size_t i = 0; i < few(400); i++) {
        keel_point_t point = keel_point(semaphore, 1 + random_below(200));
        keel_watch_t *watch = NULL;
        TRY(keel_watch_create(KEEL_POINTS(point), KEEL_ALL, &watch));
        keel_watch_release(watch);
    }
}

// Watches that come and go while signals come.
TEST(watch, release_races_with_signals)
{
    keel_semaphore_t *semaphore = new_semaphore(0);
    thread_t *threads[2];
    for (int i = 0; i < 2; i++) threads[i] = thread_start(watch_in_a_loop, semaphore);
    for (uint64_t i = 1; i <= 200; i++) TRY(keel_semaphore_signal(semaphore, i));
    for (int i = 0; i < 2; i++) thread_join(threads[i]);
}
