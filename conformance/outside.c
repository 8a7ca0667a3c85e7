// SPDX-License-Identifier: Apache-2.0
// Semaphores of another API, which has its own ways to signal and to read them.
#include "suite/other.h"
#include "suite/suite.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#define SHARED .needs = KEEL_CAP_IMPORT_SEMAPHORE, .also = NEED_OTHER_SIDE
#define BY_FD  .needs = KEEL_CAP_IMPORT_SEMAPHORE, .also = NEED_OTHER_SIDE | NEED_DESCRIPTORS
#define RUNS   .needs = KEEL_CAP_IMPORT_SEMAPHORE | KEEL_CAP_EXECUTES, .also = NEED_OTHER_SIDE

static const other_side_t *side(void)
{
    return other_side(the_uri());
}

// After the test: nothing stays parked, however it ended.
static void signal_at_last(void *user)
{
    side()->signal(*(int *)user, UINT64_C(1) << 62);
    usleep(1000);
    side()->close(*(int *)user);
}

static void own_side(int fd)
{
    int *kept = scratch(sizeof *kept);
    *kept = fd;
    own_cleanup(signal_at_last, kept);
}

// A semaphore of the other side's; *fd is the test's.
static keel_semaphore_t *import(uint64_t initial, int *fd)
{
    *fd = side()->create(initial);
    CHECK(*fd >= 0);
    own_side(*fd);
    keel_external_semaphore_t external = side()->external(*fd);
    keel_semaphore_options_t options = {.initial = initial, .name = "shared"};
    keel_semaphore_t *semaphore = NULL;
    TRY(keel_semaphore_import(the_device(), &external, &options, &semaphore));
    OWN(semaphore);
    return semaphore;
}

static uint64_t value_there(int fd)
{
    uint64_t value = 0;
    CHECK_EQ(side()->value(fd, &value), 0);
    return value;
}

static void signal_there(int fd, uint64_t value)
{
    CHECK_EQ(side()->signal(fd, value), 0);
}

// Waits until the other side sees a value, or until the semaphore has failed here.
static void seen_there(keel_semaphore_t *semaphore, int fd, uint64_t value)
{
    uint64_t known, deadline = keel_now_ns() + patience();
    while (value_there(fd) < value) {
        TRY(keel_semaphore_value(semaphore, &known));
        CHECK(keel_now_ns() < deadline);
        usleep(200);
    }
    CHECK_EQ(value_there(fd), value);
}

static keel_point_t submit_to(keel_queue_t *queue, keel_points_t waits, keel_points_t signals)
{
    keel_point_t done;
    keel_op_t op = keel_op_barrier();
    TRY(keel_queue_submit(queue, waits, &op, 1, signals, &done));
    return done;
}

// Goes to the other side and back with a semaphore of its own: by then others that could have gone
// have gone too.
static void round_trip(void)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd);
    keel_point_t done = submit_to(the_queue(), KEEL_AFTER(keel_point(semaphore, 1)),
                                  KEEL_SIGNAL(keel_point(semaphore, 2)));
    signal_there(fd, 1);
    reach(done);
    seen_there(semaphore, fd, 2);
}

TEST(outside, host_waits_for_the_other_side, SHARED)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd);
    signal_there(fd, 3);
    reach_value(semaphore, 3);
    CHECK_GE(value_of(semaphore), 3);
    CHECK(pending(keel_point(semaphore, 4)));
    signal_there(fd, 4);
    reach_value(semaphore, 4);
}

TEST(outside, host_signals, SHARED)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd);
    for (uint64_t value = 1; value <= 10; value += 3) {
        TRY(keel_semaphore_signal(semaphore, value));
        CHECK_EQ(value_of(semaphore), value);
        seen_there(semaphore, fd, value);
    }
    FAILS(KEEL_FAILED_PRECONDITION, keel_semaphore_signal(semaphore, 10));
    CHECK_EQ(value_there(fd), 10);
}

TEST(outside, begins_where_told, SHARED)
{
    int fd;
    keel_semaphore_t *semaphore = import(7, &fd);
    CHECK_EQ(value_of(semaphore), 7);
    reach_value(semaphore, 7);
    FAILS(KEEL_FAILED_PRECONDITION, keel_semaphore_signal(semaphore, 7));
    TRY(keel_semaphore_signal(semaphore, 8));
    seen_there(semaphore, fd, 8);
}

TEST(outside, queue_waits_for_the_other_side, RUNS)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd);
    keel_buffer_t *x = new_buffer(64);
    keel_point_t done =
        submit_after(KEEL_AFTER(keel_point(semaphore, 2)), keel_op_fill(keel_whole(x), 5, 1));
    signal_there(fd, 1);
    reach(submit(keel_op_fill(keel_whole(new_buffer(16)), 1, 1))); // others are not held up
    round_trip();
    CHECK(pending(done));
    signal_there(fd, 2);
    reach(done);
    check_filled(x, 0, 64, 5);
}

TEST(outside, queue_signals, RUNS)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd), *gate = new_semaphore(0);
    keel_buffer_t *x = new_buffer(64);
    keel_op_t op = keel_op_fill(keel_whole(x), 9, 1);
    keel_point_t done;
    TRY(keel_queue_submit(the_queue(), KEEL_AFTER(keel_point(gate, 1)), &op, 1,
                          KEEL_SIGNAL(keel_point(semaphore, 5)), &done));
    round_trip();
    CHECK_EQ(value_there(fd), 0);
    TRY(keel_semaphore_signal(gate, 1));
    seen_there(semaphore, fd, 5); // without anybody here having waited for it
    reach_value(semaphore, 5);
    reach(done);
    check_filled(x, 0, 64, 9);
}

// Signals of several queues, and of the host between them, keep their order on the way.
TEST(outside, signals_keep_their_order, SHARED)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd);
    keel_queue_t *queues[] = {the_queue(), new_queue(0), new_queue(the_caps()->max_priority)};
    uint64_t value = 0;
    for (size_t round = 0; round < few(64); round++) {
        for (size_t i = 0; i < COUNT(queues); i++, value++)
            submit_to(queues[i], KEEL_AFTER(keel_point(semaphore, value)),
                      KEEL_SIGNAL(keel_point(semaphore, value + 1)));
        if (round % 8) continue;
        reach_value(semaphore, value);
        TRY(keel_semaphore_signal(semaphore, ++value));
    }
    reach_value(semaphore, value);
    seen_there(semaphore, fd, value);
}

// The other side goes past what is awaited.
TEST(outside, values_jump, SHARED)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd);
    keel_point_t seven =
        submit_to(the_queue(), KEEL_AFTER(keel_point(semaphore, 7)), KEEL_NO_SIGNALS);
    keel_point_t three =
        submit_to(the_queue(), KEEL_AFTER(keel_point(semaphore, 3)), KEEL_NO_SIGNALS);
    CHECK(pending(three));
    signal_there(fd, 10);
    reach(three);
    reach(seven);
    reach_value(semaphore, 10);
    TRY(keel_semaphore_signal(semaphore, 11));
    seen_there(semaphore, fd, 11);
}

// A value that never comes holds up no smaller one, in whichever order they were asked for.
TEST(outside, awaited_in_falling_order, SHARED)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd);
    keel_point_t done[8];
    for (uint64_t i = 0; i < COUNT(done); i++)
        done[i] = submit_to(the_queue(), KEEL_AFTER(keel_point(semaphore, 10 * (COUNT(done) - i))),
                            KEEL_NO_SIGNALS);
    for (uint64_t i = COUNT(done); i-- > 0;) {
        CHECK(pending(done[i]));
        signal_there(fd, 10 * (COUNT(done) - i));
        reach(done[i]);
        if (i) CHECK(pending(done[i - 1]));
    }
}

TEST(outside, many_wait_for_one_value, SHARED)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd);
    keel_point_t done[64];
    for (size_t i = 0; i < few(COUNT(done)); i++)
        done[i] = submit_to(the_queue(), KEEL_AFTER(keel_point(semaphore, 1)), KEEL_NO_SIGNALS);
    for (int i = 0; i < 100; i++) CHECK(pending(keel_point(semaphore, 1)));
    signal_there(fd, 1);
    for (size_t i = 0; i < few(COUNT(done)); i++) reach(done[i]);
}

TEST(outside, polls_see_the_other_side, SHARED)
{
    int first, second;
    keel_point_t points[] = {keel_point(import(0, &first), 1), keel_point(import(0, &second), 4)};
    for (size_t i = 0; i < 2; i++) CHECK(pending(points[i]));
    signal_there(first, 1);
    signal_there(second, 4);
    reach_polling(keel_points(points, 2), KEEL_ALL);
}

TEST(outside, any_of_several, SHARED)
{
    int first, second;
    keel_semaphore_t *a = import(0, &first), *b = import(0, &second), *c = new_semaphore(0);
    keel_point_t points[] = {keel_point(a, 1), keel_point(c, 1), keel_point(b, 4)};
    size_t index = 0;
    keel_wait_options_t options = {.index = &index};
    signal_there(second, 4);
    TRY(keel_wait_with(keel_points(points, COUNT(points)), KEEL_ANY, patience(), &options));
    CHECK_EQ(index, 2);
    signal_there(first, 1);
    TRY(keel_semaphore_signal(c, 1));
    TRY(keel_wait(keel_points(points, COUNT(points)), KEEL_ALL, patience()));
}

TEST(outside, descriptor_becomes_readable, SHARED)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd);
    keel_point_t point = keel_point(semaphore, 2);
    keel_completion_t *queue = NULL;
    TRY(keel_completion_create(&queue));
    OWN(queue);
    TRY(keel_completion_add(queue, KEEL_POINTS(point), KEEL_ALL, NULL));
    struct pollfd polled = {.fd = keel_completion_fd(queue), .events = POLLIN};
    int early = poll(&polled, 1, 0);
    if (!faulted()) CHECK_EQ(early, 0);
    signal_there(fd, 2);
    CHECK_EQ(poll(&polled, 1, (int)(patience() / 1000000)), 1);
    reach(point);
}

TEST(outside, another_device, SHARED)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd);
    keel_device_t *cpu = open_device("cpu://?threads=1");
    keel_queue_t *queue = keel_device_queue(cpu, 0);
    keel_point_t done = submit_to(queue, KEEL_AFTER(keel_point(semaphore, 1)),
                                  KEEL_SIGNAL(keel_point(semaphore, 2)));
    round_trip();
    CHECK(pending(done));
    signal_there(fd, 1);
    reach(done);
    seen_there(semaphore, fd, 2);
}

typedef struct echo_t {
    int fd;
    uint64_t last;
    gate_t *end;
} echo_t;

// The other side: answers every odd value with the next one.
static void echo(void *user)
{
    echo_t *e = user;
    for (uint64_t value = 1; value < e->last; value += 2) {
        while (value_there(e->fd) < value) {
            if (gate_is_open(e->end)) return;
            usleep(20);
        }
        signal_there(e->fd, value + 1);
    }
}

static thread_t *new_echo(int fd, uint64_t last)
{
    echo_t *e = scratch(sizeof *e);
    *e = (echo_t){fd, last, new_gate()};
    return thread_start(echo, e);
}

TEST(outside, back_and_forth, SHARED)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd);
    uint64_t last = 2 * few(100);
    thread_t *other = new_echo(fd, last);
    keel_point_t done = {0};
    for (uint64_t value = 0; value < last; value += 2)
        done = submit_to(the_queue(), KEEL_AFTER(keel_point(semaphore, value)),
                         KEEL_SIGNAL(keel_point(semaphore, value + 1)));
    reach(done);
    reach_value(semaphore, last);
    thread_join(other);
}

// A thread that sees the answer finds reached what it answers, however it came here.
TEST(outside, what_led_to_it_is_reached, RUNS)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd), *signalled = new_semaphore(0);
    uint64_t last = 2 * few(100);
    keel_buffer_t *x = new_buffer(4096);
    thread_t *other = new_echo(fd, last);
    for (uint64_t value = 0; value < last; value += 2) {
        keel_op_t op = keel_op_fill(keel_whole(x), (uint32_t)value, 1);
        keel_point_t done;
        TRY(keel_queue_submit(
            the_queue(), KEEL_NO_WAITS, &op, 1,
            KEEL_SIGNAL(keel_point(signalled, value + 1), keel_point(semaphore, value + 1)),
            &done));
        reach_value(semaphore, value + 2);
        CHECK_GE(value_of(signalled), value + 1);
    }
    thread_join(other);
}

TEST(outside, failure_stays_here, SHARED)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd);
    keel_point_t done = submit_to(the_queue(), KEEL_AFTER(keel_point(semaphore, 1)),
                                  KEEL_SIGNAL(keel_point(semaphore, 2)));
    TRY(keel_semaphore_fail(semaphore, KEEL_ERROR(KEEL_ABORTED, "the boiler burst")));
    reach_failure(done, KEEL_ABORTED);
    FAILS(KEEL_ABORTED, keel_semaphore_signal(semaphore, 3));
    signal_there(fd, 1);
    round_trip();
    CHECK_EQ(value_there(fd), 1);
}

// Its values only grow, so up to a point is the point. An end is a value or a failure.
TEST(outside, ended_and_up_to, SHARED)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd);
    keel_point_t one = keel_point(semaphore, 1), two = keel_point(semaphore, 2);
    keel_point_t all[] = {submit_to(the_queue(), KEEL_AFTER(keel_ended(one)), KEEL_NO_SIGNALS),
                          submit_to(the_queue(), KEEL_AFTER(keel_up_to(one)), KEEL_NO_SIGNALS),
                          submit_to(the_queue(), KEEL_AFTER(keel_ended(two)), KEEL_NO_SIGNALS),
                          submit_to(the_queue(), KEEL_AFTER(keel_up_to(two)), KEEL_NO_SIGNALS)};
    CHECK(pending(keel_ended(one)) && pending(keel_up_to(one)));
    for (size_t i = 0; i < COUNT(all); i++) CHECK(pending(all[i]));
    signal_there(fd, 1);
    reach(keel_ended(one));
    reach(keel_up_to(one));
    reach(all[0]);
    reach(all[1]);
    CHECK(pending(keel_ended(two)) && pending(all[2]) && pending(all[3]));
    TRY(keel_semaphore_fail(semaphore, KEEL_ERROR(KEEL_ABORTED, "the boiler burst")));
    reach(keel_ended(two));
    reach_failure(keel_up_to(two), KEEL_ABORTED);
    reach(all[2]);
    reach_failure(all[3], KEEL_ABORTED);
    reach(keel_up_to(one)); // it stays reached
}

// What was signalled arrives also when the semaphore was released here.
TEST(outside, released_at_once, SHARED)
{
    int fd = side()->create(0);
    CHECK(fd >= 0);
    own_side(fd);
    keel_external_semaphore_t external = side()->external(fd);
    keel_semaphore_t *semaphore = NULL;
    TRY(keel_semaphore_import(the_device(), &external, NULL, &semaphore));
    OWN(semaphore);
    submit_to(the_queue(), KEEL_NO_WAITS, KEEL_SIGNAL(keel_point(semaphore, 6)));
    drop(semaphore);
    uint64_t deadline = keel_now_ns() + patience();
    while (value_there(fd) < 6 && !starved()) {
        CHECK(keel_now_ns() < deadline);
        usleep(200);
    }
}

TEST(outside, signalled_before_the_device_closes, SHARED)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd);
    submit_to(the_queue(), KEEL_NO_WAITS, KEEL_SIGNAL(keel_point(semaphore, 2)));
    drop(the_device());
    if (!starved()) CHECK_EQ(value_there(fd), 2);
}

// A value that does not come keeps nothing waiting. What waited for it is gone when it comes after
// all, which the suite sees by threads and memory.
TEST(outside, released_while_awaited, SHARED)
{
    int fds[3];
    for (uint64_t i = 0; i < COUNT(fds); i++) {
        keel_semaphore_t *semaphore = import(0, &fds[i]);
        keel_point_t point = keel_point(semaphore, 1 + i);
        FAILS(KEEL_DEADLINE_EXCEEDED, keel_wait(KEEL_POINTS(point), KEEL_ALL, 3000000));
        drop(semaphore);
    }
    reach(submit_to(the_queue(), KEEL_NO_WAITS, KEEL_NO_SIGNALS));
    drop(the_device());
}

static void wait_for_ever(void *user)
{
    keel_point_t point = keel_point(user, 1);
    keel_status_t status = keel_wait(KEEL_POINTS(point), KEEL_ALL, patience());
    if (!faulted()) CHECK_EQ(keel_status_code(status), KEEL_CANCELLED);
    keel_status_release(status);
}

TEST(outside, closing_ends_waits, SHARED)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd);
    keel_point_t done = submit_to(the_queue(), KEEL_AFTER(keel_point(semaphore, 1)),
                                  KEEL_SIGNAL(keel_point(semaphore, 2)));
    thread_t *thread = thread_start(wait_for_ever, semaphore);
    thread_asleep(thread);
    CHECK(pending(done));
    drop(the_device());
    thread_join(thread);
    uint64_t value;
    keel_status_t status = keel_semaphore_value(semaphore, &value);
    CHECK(status);
    keel_status_release(status);
}

// Code is loaded while a thread waits for the other side.
TEST(outside, others_go_on_while_it_is_awaited, RUNS)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd);
    keel_buffer_t *x = new_buffer_filled(64 * 4, 255), *y = new_buffer(64 * 4);
    keel_point_t late =
        submit_after(KEEL_AFTER(keel_point(semaphore, 1)), keel_op_fill(keel_whole(x), 0, 1));
    round_trip();
    reach(submit(keel_op_dispatch(kernel("abs"), keel_groups(4, 1, 1), NULL, 0, KEEL_BIND(x, y))));
    CHECK_EQ(buffer_u32(y, 63), 1);
    keel_queue_t *queue = new_queue(0);
    reach(submit_to(queue, KEEL_NO_WAITS, KEEL_NO_SIGNALS));
    CHECK(pending(late));
    signal_there(fd, 1);
    reach(late);
}

static void signal_in_child(void *user)
{
    echo_t *e = user;
    CHECK_EQ(side()->signal(e->fd, e->last), 0);
}

TEST(outside, another_process_signals, BY_FD)
{
    echo_t *e = scratch(sizeof *e);
    keel_semaphore_t *semaphore = import(0, &e->fd);
    keel_point_t done =
        submit_to(the_queue(), KEEL_AFTER(keel_point(semaphore, 3)), KEEL_NO_SIGNALS);
    e->last = 3;
    in_child(signal_in_child, e);
    reach(done);
}

TEST(outside, descriptor_stays_the_callers, BY_FD)
{
    int fd, copy;
    keel_semaphore_t *semaphore = import(0, &fd);
    CHECK(fcntl(fd, F_GETFD) >= 0);
    copy = dup(fd);
    CHECK(copy >= 0);
    keel_external_semaphore_t external = side()->external(copy);
    keel_semaphore_t *again = NULL;
    keel_status_t status = keel_semaphore_import(the_device(), &external, NULL, &again);
    OWN(again);
    CHECK_EQ(close(copy), 0);
    TRY(status);
    signal_there(fd, 1);
    reach_value(again, 1);
    reach_value(semaphore, 1);
    TRY(keel_semaphore_signal(again, 2)); // two of one and the same
    seen_there(again, fd, 2);
    reach_value(semaphore, 2);
}

TEST(outside, exported_again, BY_FD)
{
    int fd;
    keel_semaphore_t *semaphore = import(0, &fd);
    keel_external_semaphore_t external = {.kind = KEEL_SEMAPHORE_TIMELINE_FD};
    TRY(keel_semaphore_export(semaphore, &external));
    own_descriptor(external.handle.fd);
    CHECK_NE(external.handle.fd, fd);
    signal_there(external.handle.fd, 4);
    reach_value(semaphore, 4);
    external.kind = (keel_semaphore_kind_t)77;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "external->kind",
                 keel_semaphore_export(semaphore, &external));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "external", keel_semaphore_export(semaphore, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "semaphore", keel_semaphore_export(NULL, &external));
}

// On any device.
TEST(outside, own_ones_stay_inside)
{
    keel_external_semaphore_t external = {.kind = KEEL_SEMAPHORE_TIMELINE_FD};
    keel_semaphore_t *semaphore = NULL;
    FAILS_SAYING(KEEL_UNSUPPORTED, "import", keel_semaphore_export(new_semaphore(0), &external));
    if (the_caps()->bits & KEEL_CAP_IMPORT_SEMAPHORE) return;
    FAILS_SAYING(KEEL_UNSUPPORTED, "KEEL_CAP_IMPORT_SEMAPHORE",
                 keel_semaphore_import(the_device(), &external, NULL, &semaphore));
    CHECK(!semaphore);
}

static keel_external_semaphore_t descriptor(int fd)
{
    return (keel_external_semaphore_t){.kind = KEEL_SEMAPHORE_TIMELINE_FD, .handle.fd = fd};
}

TEST(outside, bad_arguments, .needs = KEEL_CAP_IMPORT_SEMAPHORE, .also = NEED_DESCRIPTORS)
{
    int pipes[2], file = open("/dev/null", O_RDWR);
    CHECK(file >= 0 && pipe(pipes) == 0);
    own_descriptor(file);
    own_descriptor(pipes[0]);
    own_descriptor(pipes[1]);
    int closed = fcntl(file, F_DUPFD, 900); // a number that no other thread's next one gets
    close(closed);
    struct {
        int fd;
        const char *says;
    } rows[] = {{-1, "not open"},
                {closed, "not open"},
                {file, "timeline semaphore"},
                {pipes[0], "timeline semaphore"}};
    keel_semaphore_t *semaphore = NULL;
    for (size_t i = 0; i < COUNT(rows); i++) {
        row("%zu", i);
        keel_external_semaphore_t external = descriptor(rows[i].fd);
        FAILS_SAYING(KEEL_INVALID_ARGUMENT, rows[i].says,
                     keel_semaphore_import(the_device(), &external, NULL, &semaphore));
        CHECK(!semaphore);
    }
    keel_external_semaphore_t external = {.kind = (keel_semaphore_kind_t)77};
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "external->kind",
                 keel_semaphore_import(the_device(), &external, NULL, &semaphore));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "external",
                 keel_semaphore_import(the_device(), NULL, NULL, &semaphore));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device",
                 keel_semaphore_import(NULL, &external, NULL, &semaphore));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "semaphore",
                 keel_semaphore_import(the_device(), &external, NULL, NULL));
    reach(submit_to(the_queue(), KEEL_NO_WAITS, KEEL_NO_SIGNALS)); // the device is none the worse
}

TEST(outside, objects, .needs = KEEL_CAP_IMPORT_SEMAPHORE, .also = NEED_OTHER_SIDE,
     .driver = "metal")
{
    int event;
    keel_semaphore_t *semaphore = import(3, &event), *other = NULL;
    keel_external_semaphore_t external = {.kind = KEEL_SEMAPHORE_NATIVE}, file = {0};
    uint64_t device;
    TRY(keel_semaphore_export(semaphore, &external));
    CHECK(external.handle.object == side()->external(event).handle.object);
    keel_semaphore_options_t options = {.initial = 4};
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "options->initial",
                 keel_semaphore_import(the_device(), &external, &options, &other));
    external.handle.object = NULL;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "NULL",
                 keel_semaphore_import(the_device(), &external, NULL, &other));
    TRY(keel_device_native(the_device(), KEEL_NATIVE_METAL_DEVICE, &device));
    external.handle.object = (void *)(uintptr_t)device;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "MTLSharedEvent",
                 keel_semaphore_import(the_device(), &external, NULL, &other));
    FAILS_SAYING(KEEL_UNSUPPORTED, "import", keel_semaphore_export(semaphore, &file));
    file.handle.fd = open("/dev/null", O_RDWR);
    CHECK(file.handle.fd >= 0);
    own_descriptor(file.handle.fd);
    FAILS_SAYING(KEEL_UNSUPPORTED, "MTLSharedEvent",
                 keel_semaphore_import(the_device(), &file, NULL, &other));
    CHECK(!other);
}

// What the other side may set and Keel has no number for.
TEST(outside, largest_value, SHARED)
{
    int event;
    keel_semaphore_t *semaphore = import(0, &event);
    keel_point_t last = keel_point(semaphore, (UINT64_C(1) << 63) - 1);
    CHECK(pending(last));
    signal_there(event, last.value);
    reach(last);
}
