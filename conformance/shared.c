// SPDX-License-Identifier: Apache-2.0
// Semaphores of several processes. The other process is the child of a fork that opens a device of
// its own.
#include "suite/suite.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define SHARED    .needs = KEEL_CAP_SHARED_SEMAPHORE, .also = NEED_PROCESS
#define RUNS      .needs = KEEL_CAP_SHARED_SEMAPHORE | KEEL_CAP_EXECUTES, .also = NEED_PROCESS
#define HERE_ONLY .needs = KEEL_CAP_SHARED_SEMAPHORE // without another process

static keel_semaphore_t *new_shared(uint64_t initial)
{
    keel_semaphore_options_t options = {.initial = initial, .name = "baton", .shared = true};
    keel_semaphore_t *semaphore = NULL;
    TRY(keel_semaphore_create(the_device(), &options, &semaphore));
    OWN(semaphore);
    return semaphore;
}

static int export_of(keel_semaphore_t *semaphore)
{
    keel_external_semaphore_t external = {.kind = KEEL_SEMAPHORE_SHARED_FD};
    TRY(keel_semaphore_export(semaphore, &external));
    return external.handle.fd;
}

static keel_semaphore_t *import_on(keel_device_t *device, int fd)
{
    keel_external_semaphore_t external = {.kind = KEEL_SEMAPHORE_SHARED_FD, .handle.fd = fd};
    keel_semaphore_options_t options = {.name = "theirs"};
    keel_semaphore_t *semaphore = NULL;
    TRY(keel_semaphore_import(device, &external, &options, &semaphore));
    OWN(semaphore);
    return semaphore;
}

// What another process gets.
typedef struct gift_t {
    int fds[3];
    uint64_t last;
} gift_t;

// Starts another process that runs `fn` with a descriptor of the semaphore, and keeps none.
static child_t *share_until(keel_semaphore_t *semaphore, uint64_t last, void (*fn)(void *user))
{
    gift_t *gift = scratch(sizeof *gift);
    *gift = (gift_t){{export_of(semaphore)}, last};
    child_t *child = child_start(fn, gift);
    close(gift->fds[0]);
    return child;
}

static child_t *share(keel_semaphore_t *semaphore, void (*fn)(void *user))
{
    return share_until(semaphore, 0, fn);
}

// In the other process: opens it on a device, and gives up the descriptor.
static keel_semaphore_t *take_on(keel_device_t *device, int fd)
{
    keel_semaphore_t *semaphore = import_on(device, fd);
    close(fd);
    return semaphore;
}

static keel_semaphore_t *take(const gift_t *gift)
{
    return take_on(open_device("cpu://inline"), gift->fds[0]);
}

static keel_point_t submit_to(keel_queue_t *queue, keel_points_t waits, keel_points_t signals)
{
    keel_point_t done;
    keel_op_t op = keel_op_barrier();
    TRY(keel_queue_submit(queue, waits, &op, 1, signals, &done));
    return done;
}

static void signals_three(void *user)
{
    TRY(keel_semaphore_signal(take(user), 3));
}

TEST(shared, host_waits, SHARED)
{
    keel_semaphore_t *semaphore = new_shared(0);
    child_t *child = share(semaphore, signals_three);
    reach_value(semaphore, 3);
    child_join(child);
    CHECK_EQ(value_of(semaphore), 3);
}

static void begins_at_seven(void *user)
{
    keel_semaphore_t *semaphore = take(user);
    CHECK_EQ(value_of(semaphore), 7);
    reach_value(semaphore, 7);
    FAILS_SAYING(KEEL_FAILED_PRECONDITION, "reached 7", keel_semaphore_signal(semaphore, 7));
    TRY(keel_semaphore_signal(semaphore, 8));
}

TEST(shared, value_is_the_same, SHARED)
{
    keel_semaphore_t *semaphore = new_shared(7);
    child_join(share(semaphore, begins_at_seven));
    CHECK_EQ(value_of(semaphore), 8);
    FAILS_SAYING(KEEL_FAILED_PRECONDITION, "reached 8", keel_semaphore_signal(semaphore, 8));
    TRY(keel_semaphore_signal(semaphore, 9));
    CHECK_EQ(value_of(semaphore), 9);
}

// Answers every odd value with the next one.
static void echoes(void *user)
{
    const gift_t *gift = user;
    keel_semaphore_t *semaphore = take(gift);
    for (uint64_t value = 1; value < gift->last; value += 2) {
        reach_value(semaphore, value);
        TRY(keel_semaphore_signal(semaphore, value + 1));
    }
}

TEST(shared, hosts_back_and_forth, SHARED)
{
    keel_semaphore_t *semaphore = new_shared(0);
    uint64_t last = 2 * few(200);
    child_t *child = share_until(semaphore, last, echoes);
    for (uint64_t value = 1; value < last; value += 2) {
        TRY(keel_semaphore_signal(semaphore, value));
        reach_value(semaphore, value + 1);
    }
    child_join(child);
}

// The queue waits for each answer, and asks the next question, without the host of this process.
TEST(shared, queue_and_host, SHARED)
{
    keel_semaphore_t *semaphore = new_shared(0);
    uint64_t last = 2 * few(100);
    keel_point_t done = {0};
    for (uint64_t value = 0; value < last; value += 2)
        done = submit_to(the_queue(), KEEL_AFTER(keel_point(semaphore, value)),
                         KEEL_SIGNAL(keel_point(semaphore, value + 1)));
    child_t *child = share_until(semaphore, last, echoes);
    reach(done);
    reach_value(semaphore, last);
    child_join(child);
}

TEST(shared, queue_waits_for_all, RUNS)
{
    keel_semaphore_t *semaphore = new_shared(0), *gate = new_semaphore(0);
    keel_buffer_t *x = new_buffer(64);
    keel_point_t done = submit_after(KEEL_AFTER(keel_point(semaphore, 3), keel_point(gate, 1)),
                                     keel_op_fill(keel_whole(x), 5, 1));
    child_t *child = share(semaphore, signals_three);
    reach_value(semaphore, 3);
    CHECK(pending(done));
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
    check_filled(x, 0, 64, 5);
    child_join(child);
}

// Submissions of a device of the kind under test.
static void answers_on_a_queue(void *user)
{
    const gift_t *gift = user;
    keel_device_t *device = open_device(the_uri());
    keel_semaphore_t *semaphore = take_on(device, gift->fds[0]);
    keel_point_t done = {0};
    for (uint64_t value = 1; value < gift->last; value += 2)
        done = submit_to(keel_device_queue(device, 0), KEEL_AFTER(keel_point(semaphore, value)),
                         KEEL_SIGNAL(keel_point(semaphore, value + 1)));
    reach(done);
}

TEST(shared, queues_of_both, .needs = KEEL_CAP_SHARED_SEMAPHORE, .also = NEED_PROCESS | NEED_FORK)
{
    keel_semaphore_t *semaphore = new_shared(0);
    uint64_t last = 2 * few(100);
    child_t *child = share_until(semaphore, last, answers_on_a_queue);
    keel_point_t done = {0};
    for (uint64_t value = 0; value < last; value += 2)
        done = submit_to(the_queue(), KEEL_AFTER(keel_point(semaphore, value)),
                         KEEL_SIGNAL(keel_point(semaphore, value + 1)));
    reach(done);
    reach_value(semaphore, last);
    child_join(child);
}

TEST(shared, queue_of_another_device, SHARED)
{
    keel_semaphore_t *semaphore = new_shared(0);
    keel_queue_t *queue = keel_device_queue(open_device("cpu://?threads=1"), 0);
    keel_point_t done = submit_to(queue, KEEL_AFTER(keel_point(semaphore, 3)),
                                  KEEL_SIGNAL(keel_point(semaphore, 4)));
    child_t *child = share(semaphore, signals_three);
    reach(done);
    child_join(child);
    CHECK_EQ(value_of(semaphore), 4);
}

TEST(shared, any_and_completion, SHARED)
{
    keel_semaphore_t *theirs = new_shared(0), *ours = new_semaphore(0);
    keel_point_t points[] = {keel_point(ours, 1), keel_point(theirs, 2)};
    keel_completion_t *queue = NULL;
    size_t index = 0;
    TRY(keel_completion_create(&queue));
    OWN(queue);
    TRY(keel_completion_add(queue, KEEL_POINTS(points[1]), KEEL_ALL, &index));
    child_t *child = share(theirs, signals_three);
    keel_wait_options_t options = {.index = &index};
    TRY(keel_wait_with(KEEL_POINTS_OF(points), KEEL_ANY, patience(), &options));
    CHECK_EQ(index, 1);
    struct pollfd polled = {.fd = keel_completion_fd(queue), .events = POLLIN};
    CHECK_EQ(poll(&polled, 1, (int)(patience() / 1000000)), 1);
    void *user = NULL;
    keel_status_t end = NULL;
    TRY(keel_completion_next(queue, patience(), &user, &end));
    TRY(end);
    CHECK(user == &index);
    child_join(child);
}

static void fails_it(void *user)
{
    keel_semaphore_t *semaphore = take(user);
    TRY(keel_semaphore_signal(semaphore, 3));
    TRY(keel_semaphore_fail(semaphore, KEEL_ERROR(KEEL_OUT_OF_RANGE, "the boiler burst")));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "boiler", keel_semaphore_signal(semaphore, 4));
}

TEST(shared, failure_comes, SHARED)
{
    keel_semaphore_t *semaphore = new_shared(0);
    uint64_t value = 0;
    keel_point_t three =
        submit_to(the_queue(), KEEL_AFTER(keel_point(semaphore, 3)), KEEL_NO_SIGNALS);
    keel_point_t four =
        submit_to(the_queue(), KEEL_AFTER(keel_point(semaphore, 4)), KEEL_NO_SIGNALS);
    keel_point_t behind =
        submit_to(the_queue(), KEEL_AFTER(keel_ended(keel_point(semaphore, 4))), KEEL_NO_SIGNALS);
    child_t *child = share(semaphore, fails_it);
    reach_failure_saying(four, KEEL_OUT_OF_RANGE, "the boiler burst");
    reach(behind);
    reach(three);
    reach_value(semaphore, 3);
    child_join(child);
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "the boiler burst", keel_semaphore_signal(semaphore, 9));
    FAILS(KEEL_OUT_OF_RANGE, keel_semaphore_value(semaphore, &value));
    CHECK_EQ(value, 3);
}

static void sees_the_failure(void *user)
{
    keel_semaphore_t *semaphore = take(user);
    reach_value(semaphore, 1);
    reach_failure_saying(keel_point(semaphore, 2), KEEL_ABORTED, "no steam");
}

// Of a host, and of a submission that was to signal; a message that is too long is cut.
TEST(shared, failure_goes, SHARED)
{
    char text[2000];
    memset(text, 'x', sizeof text);
    memcpy(text, "no steam ", 9);
    text[sizeof text - 1] = 0;
    for (int by_queue = 0; by_queue < 2; by_queue++) {
        keel_semaphore_t *semaphore = new_shared(1), *gate = new_semaphore(0);
        child_t *child = share(semaphore, sees_the_failure);
        if (by_queue)
            submit_to(the_queue(), KEEL_AFTER(keel_point(gate, 1)),
                      KEEL_SIGNAL(keel_point(semaphore, 2)));
        TRY(keel_semaphore_fail(by_queue ? gate : semaphore, KEEL_ERROR(KEEL_ABORTED, "%s", text)));
        child_join(child);
    }
}

static void closes_its_device(void *user)
{
    const gift_t *gift = user;
    keel_device_t *device = open_device("cpu://inline");
    take_on(device, gift->fds[0]);
    keel_device_release(device);
}

TEST(shared, device_there_is_closed, SHARED)
{
    keel_semaphore_t *semaphore = new_shared(0);
    child_t *child = share(semaphore, closes_its_device);
    reach_failure(keel_point(semaphore, 1), KEEL_CANCELLED);
    child_join(child);
}

// Signals 3, and waits to be killed.
static void stays(void *user)
{
    const gift_t *gift = user;
    TRY(keel_semaphore_signal(take(gift), 3));
    while (true) pause();
}

static void await_five(void *user)
{
    reach_failure(keel_point(user, 5), KEEL_ABORTED);
}

// What it has signalled stays; what it will never signal fails, on the host and on queues.
TEST(shared, killed_there, SHARED)
{
    keel_semaphore_t *semaphore = new_shared(0);
    keel_point_t done = submit_to(the_queue(), KEEL_AFTER(keel_point(semaphore, 4)),
                                  KEEL_SIGNAL(keel_point(semaphore, 5)));
    child_t *child = share(semaphore, stays);
    thread_t *thread = thread_start(await_five, semaphore);
    reach_value(semaphore, 3);
    thread_asleep(thread);
    CHECK(pending(done));
    child_kill(child);
    reach_failure_saying(done, KEEL_ABORTED, "no other process has semaphore 'baton'");
    thread_join(thread);
    reach_value(semaphore, 3);
    FAILS(KEEL_ABORTED, keel_semaphore_signal(semaphore, 6));
}

static void releases_it(void *user)
{
    keel_semaphore_t *semaphore = take(user);
    TRY(keel_semaphore_signal(semaphore, 1));
    drop(semaphore);
}

// It signals, goes, and that is seen in this order.
TEST(shared, released_there, SHARED)
{
    for (size_t i = 0; i < few(16); i++) {
        keel_semaphore_t *semaphore = new_shared(0);
        child_t *child = share(semaphore, releases_it);
        reach_value(semaphore, 1);
        reach_failure_saying(keel_point(semaphore, 2), KEEL_ABORTED, "no other process");
        child_join(child);
        drop(semaphore);
    }
}

static void does_nothing(void *user)
{
    CHECK(user);
}

// It had the descriptor, and ends without having looked at it.
TEST(shared, never_opened_there, SHARED)
{
    keel_semaphore_t *semaphore = new_shared(0);
    child_t *child = share(semaphore, does_nothing);
    reach_failure_saying(keel_point(semaphore, 1), KEEL_ABORTED, "no other process");
    child_join(child);
}

// While a descriptor is left another process may come. The end of the first one is known when the
// other semaphore has failed.
TEST(shared, another_one_comes, SHARED)
{
    keel_semaphore_t *semaphore = new_shared(0), *witness = new_shared(0);
    keel_point_t done =
        submit_to(the_queue(), KEEL_AFTER(keel_point(semaphore, 3)), KEEL_NO_SIGNALS);
    gift_t *gift = scratch(sizeof *gift);
    gift->fds[0] = export_of(semaphore);
    child_t *first = share(witness, stays);
    reach_value(witness, 3);
    child_kill(first);
    reach_failure(keel_point(witness, 4), KEEL_ABORTED);
    CHECK(pending(done));
    child_t *second = child_start(signals_three, gift);
    close(gift->fds[0]);
    reach(done);
    child_join(second);
}

// Nothing was shared yet: what waits goes on waiting.
TEST(shared, alone_from_the_start, SHARED)
{
    keel_semaphore_t *semaphore = new_shared(0), *witness = new_shared(0);
    keel_point_t done =
        submit_to(the_queue(), KEEL_AFTER(keel_point(semaphore, 3)), KEEL_NO_SIGNALS);
    child_t *child = share(witness, does_nothing);
    reach_failure(keel_point(witness, 1), KEEL_ABORTED);
    child_join(child);
    CHECK(pending(done));
    TRY(keel_semaphore_signal(semaphore, 3));
    reach(done);
}

// The second has it from the first, who ends; the last one answers.
static void passes_it_on(void *user)
{
    keel_semaphore_t *semaphore = take(user);
    child_t *next = share(semaphore, signals_three);
    reach_value(semaphore, 3);
    child_join(next);
    TRY(keel_semaphore_signal(semaphore, 4));
}

TEST(shared, three_processes, SHARED)
{
    keel_semaphore_t *semaphore = new_shared(0);
    child_t *child = share(semaphore, passes_it_on);
    reach_value(semaphore, 4);
    child_join(child);
}

// Has a child that has not opened it, and stays when this process ends.
static void leaves_a_child(void *user)
{
    const gift_t *gift = user;
    keel_semaphore_t *semaphore = take(gift);
    close(gift->fds[2]);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char byte;
        (void)!read(gift->fds[1], &byte, 1); // until the test ends
        _exit(0);
    }
    TRY(keel_semaphore_signal(semaphore, 1));
}

TEST(shared, child_of_a_fork_does_not_count, SHARED)
{
    keel_semaphore_t *semaphore = new_shared(0);
    gift_t *gift = scratch(sizeof *gift);
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    own_descriptor(pipes[0]);
    own_descriptor(pipes[1]);
    *gift = (gift_t){{export_of(semaphore), pipes[0], pipes[1]}, 0};
    child_t *child = child_start(leaves_a_child, gift);
    close(gift->fds[0]);
    reach_value(semaphore, 1);
    reach_failure(keel_point(semaphore, 2), KEEL_ABORTED);
    child_join(child);
}

static void send_descriptor(int socket, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof fd)];
    } control = {0};
    char byte = 's';
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    CHECK_EQ(sendmsg(socket, &message, 0), 1);
}

static int receive_descriptor(int socket)
{
    int fd = -1;
    char byte;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof fd)];
    } control = {0};
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    CHECK_EQ(recvmsg(socket, &message, 0), 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static void receives(void *user)
{
    const gift_t *gift = user;
    keel_semaphore_t *semaphore =
        take_on(open_device("cpu://inline"), receive_descriptor(gift->fds[0]));
    TRY(keel_semaphore_signal(semaphore, 3));
}

// By a socket, to a process that was there before.
TEST(shared, comes_by_a_socket, SHARED)
{
    gift_t *gift = scratch(sizeof *gift);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, gift->fds) == 0);
    own_descriptor(gift->fds[0]);
    own_descriptor(gift->fds[1]);
    child_t *child = child_start(receives, gift);
    keel_semaphore_t *semaphore = new_shared(0);
    int fd = export_of(semaphore);
    own_descriptor(fd);
    send_descriptor(gift->fds[1], fd);
    reach_value(semaphore, 3);
    child_join(child);
}

enum { MANY = 150 }; // more than a thread can sleep on

static void signals_many(void *user)
{
    const int *fds = user;
    keel_device_t *device = open_device("cpu://inline");
    for (size_t i = few(MANY); i-- > 0;) TRY(keel_semaphore_signal(take_on(device, fds[i]), 1));
}

TEST(shared, many, SHARED)
{
    size_t count = few(MANY);
    int *fds = scratch(MANY * sizeof *fds);
    keel_point_t done[MANY];
    for (size_t i = 0; i < count; i++) {
        keel_semaphore_t *semaphore = new_shared(0);
        fds[i] = export_of(semaphore);
        own_descriptor(fds[i]);
        done[i] = submit_to(the_queue(), KEEL_AFTER(keel_point(semaphore, 1)), KEEL_NO_SIGNALS);
    }
    child_t *child = child_start(signals_many, fds);
    for (size_t i = 0; i < count; i++) reach(done[i]);
    child_join(child);
}

// Both are of this process.
TEST(shared, opened_twice_here, HERE_ONLY)
{
    keel_semaphore_t *one = new_shared(2);
    int fd = export_of(one);
    own_descriptor(fd);
    keel_semaphore_t *two = import_on(the_device(), fd);
    keel_point_t done =
        submit_to(the_queue(), KEEL_AFTER(keel_point(one, 3)), KEEL_SIGNAL(keel_point(two, 4)));
    TRY(keel_semaphore_signal(two, 3));
    reach(done);
    reach_value(one, 4);
    TRY(keel_semaphore_fail(one, KEEL_ERROR(KEEL_ABORTED, "enough")));
    reach_failure_saying(keel_point(two, 5), KEEL_ABORTED, "enough");
}

// Those who wait are told, and nothing is left behind, however many wait and give up.
TEST(shared, released_while_awaited, HERE_ONLY)
{
    for (size_t i = 0; i < few(16); i++) {
        keel_semaphore_t *semaphore = new_shared(0);
        FAILS(KEEL_DEADLINE_EXCEEDED,
              keel_wait(KEEL_POINTS(keel_point(semaphore, 1)), KEEL_ALL, 1000000));
        drop(semaphore);
    }
}

TEST(shared, closing_ends_waits, HERE_ONLY)
{
    keel_semaphore_t *semaphore = new_shared(0);
    keel_queue_t *queue = keel_device_queue(open_device("cpu://inline"), 0);
    keel_point_t done = submit_to(queue, KEEL_AFTER(keel_point(semaphore, 1)), KEEL_NO_SIGNALS);
    drop(the_device());
    reach_failure(done, KEEL_CANCELLED);
}

TEST(shared, only_what_is_shared_goes_out, HERE_ONLY)
{
    keel_external_semaphore_t external = {.kind = KEEL_SEMAPHORE_SHARED_FD};
    FAILS_SAYING(KEEL_UNSUPPORTED, "shared", keel_semaphore_export(new_semaphore(0), &external));
    FAILS_SAYING(KEEL_UNSUPPORTED, "shared",
                 keel_semaphore_export(keel_queue_timeline(the_queue()), &external));
    external.kind = KEEL_SEMAPHORE_TIMELINE_FD;
    FAILS_SAYING(KEEL_UNSUPPORTED, "import", keel_semaphore_export(new_shared(0), &external));
}

// Descriptors that are no such semaphore.
static void check_refused(const int *fds, size_t count, const char *says)
{
    for (size_t i = 0; i < count; i++) {
        keel_external_semaphore_t external = {.kind = KEEL_SEMAPHORE_SHARED_FD,
                                              .handle.fd = fds[i]};
        keel_semaphore_t *semaphore = NULL;
        row("%zu", i);
        FAILS_SAYING(KEEL_INVALID_ARGUMENT, says,
                     keel_semaphore_import(the_device(), &external, NULL, &semaphore));
        CHECK(!semaphore);
    }
}

TEST(shared, bad_arguments, HERE_ONLY)
{
    int file = open("/dev/null", O_RDWR), pipes[2];
    CHECK(file >= 0 && pipe(pipes) == 0);
    own_descriptor(file);
    own_descriptor(pipes[0]);
    own_descriptor(pipes[1]);
    int closed = fcntl(file, F_DUPFD, 900); // a number that no other thread's next one gets
    close(closed);
    check_refused((const int[]){-1, closed}, 2, "not open");
    check_refused((const int[]){file, pipes[0]}, 2, "sealed");
    keel_semaphore_t *good = new_shared(4), *semaphore = NULL;
    int fd = export_of(good);
    own_descriptor(fd);
    keel_external_semaphore_t external = {.kind = KEEL_SEMAPHORE_SHARED_FD, .handle.fd = fd};
    keel_semaphore_options_t options = {.initial = 5};
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "options->initial",
                 keel_semaphore_import(the_device(), &external, &options, &semaphore));
    options.initial = UINT64_C(1) << 63;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "options->initial",
                 keel_semaphore_import(the_device(), &external, &options, &semaphore));
    reach_value(good, 4);
}

#if defined(F_ADD_SEALS)
static int memory_of(off_t size, int seals)
{
    int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(fd >= 0 && ftruncate(fd, size) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0);
    own_descriptor(fd);
    return fd;
}

// Memory that may shrink under its users, is too small, or is not ours.
TEST(shared, other_memory, HERE_ONLY)
{
    check_refused((const int[]){memory_of(65536, 0), memory_of(16, F_SEAL_SHRINK)}, 2, "sealed");
    check_refused((const int[]){memory_of(65536, F_SEAL_SHRINK)}, 1, "this version of Keel");
}
#endif

// On a system that shares none.
TEST(shared, refused_without)
{
    keel_semaphore_options_t options = {.shared = true};
    keel_external_semaphore_t external = {.kind = KEEL_SEMAPHORE_SHARED_FD};
    keel_semaphore_t *semaphore = NULL;
    CHECK(the_caps());
    if (the_caps()->bits & KEEL_CAP_SHARED_SEMAPHORE) return;
    FAILS_SAYING(KEEL_UNSUPPORTED, "KEEL_CAP_SHARED_SEMAPHORE",
                 keel_semaphore_create(the_device(), &options, &semaphore));
    FAILS_SAYING(KEEL_UNSUPPORTED, "KEEL_CAP_SHARED_SEMAPHORE",
                 keel_semaphore_import(the_device(), &external, NULL, &semaphore));
}
