// SPDX-License-Identifier: Apache-2.0
// Two processes hand a buffer to and fro: each has a device of its own, and both see the same
// memory and the same semaphore. Both submit all of their steps at once; then the queues take
// turns, and no thread of either process waits between two of them.
//
//     parent    x = 0     x = 2x + 1                x = 2x + 1               reads x
//     turn   0 ------> 1 ------------> 2 ---------> 3 --------> 4 ... -----> last
//     child                               x = 3x + 1
#include <keel/keel.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels.h"

enum { COUNT = 256, ROUNDS = 4, LAST = 2 * ROUNDS + 1 };

typedef struct app_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_buffer_t *x, *copy;
    keel_semaphore_t *turn;
} app_t;

// Two descriptors through a socket: those of the buffer and of the semaphore.
typedef union message_t {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(2 * sizeof(int))];
} message_t;

static struct msghdr message_of(message_t *control, struct iovec *data)
{
    return (struct msghdr){.msg_iov = data,
                           .msg_iovlen = 1,
                           .msg_control = control->bytes,
                           .msg_controllen = sizeof control->bytes};
}

static keel_status_t descriptors_send(int socket, const int fds[2])
{
    message_t control = {0};
    char byte = 0;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = message_of(&control, &data);
    control.header = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(2 * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), fds, 2 * sizeof(int));
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1
               ? NULL
               : KEEL_ERROR(KEEL_IO, "the other process does not take descriptors");
}

static keel_status_t descriptors_receive(int socket, int fds[2])
{
    message_t control = {0};
    char byte;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = message_of(&control, &data);
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1 ||
        control.header.cmsg_len != CMSG_LEN(2 * sizeof(int)))
        return KEEL_ERROR(KEEL_IO, "the other process sends no descriptors");
    memcpy(fds, CMSG_DATA(&control.header), 2 * sizeof(int));
    return NULL;
}

static keel_status_t app_open(app_t *app, const char *uri)
{
    KEEL_TRY(keel_device_open(uri, NULL, &app->device));
    return kernels_load(app->device, &app->kernels);
}

static void app_close(app_t *app)
{
    keel_semaphore_release(app->turn); // before the device, whose end would fail it for both
    keel_buffer_release(app->x);
    keel_buffer_release(app->copy);
    keel_executable_release(app->kernels);
    keel_device_release(app->device);
}

// When it is turn `value`: x = x * by + 1. Then it is the other process's.
static keel_status_t step_submit(app_t *app, uint64_t value, uint32_t by)
{
    keel_entry_t affine;
    uint32_t k[2] = {by, 1};
    KEEL_TRY(keel_executable_entry(app->kernels, "affine", &affine));
    keel_op_t op =
        keel_op_dispatch(affine, keel_groups(COUNT / 64, 1, 1), k, sizeof k, KEEL_BIND(app->x));
    return keel_queue_submit(keel_device_queue(app->device, 0),
                             KEEL_AFTER(keel_point(app->turn, value)), &op, 1,
                             KEEL_SIGNAL(keel_point(app->turn, value + 1)), NULL);
}

// The parent makes both, and passes them on. A descriptor that stayed open here would let the
// parent believe that another process may come.
static keel_status_t parent_share(app_t *app, int socket)
{
    keel_buffer_options_t memory = {
        .size = COUNT * 4, .usage = KEEL_USAGE_TRANSFER | KEEL_USAGE_DISPATCH | KEEL_USAGE_EXPORT};
    keel_semaphore_options_t turn = {.name = "turn", .shared = true};
    keel_external_buffer_t buffer = {.kind = KEEL_EXTERNAL_FD};
    keel_external_semaphore_t semaphore = {.kind = KEEL_SEMAPHORE_SHARED_FD};
    KEEL_TRY(keel_buffer_create(app->device, &memory, &app->x));
    KEEL_TRY(keel_semaphore_create(app->device, &turn, &app->turn));
    KEEL_TRY(keel_buffer_export(app->x, &buffer));
    keel_status_t status = keel_semaphore_export(app->turn, &semaphore);
    if (!status) {
        int fds[2] = {buffer.handle.fd, semaphore.handle.fd};
        status = descriptors_send(socket, fds);
        close(semaphore.handle.fd);
    }
    close(buffer.handle.fd);
    return status;
}

static keel_status_t parent_run(app_t *app, int socket, uint32_t x[COUNT])
{
    keel_buffer_options_t host = {.size = COUNT * 4, .memory = KEEL_MEMORY_HOST_VISIBLE};
    keel_queue_t *queue = keel_device_queue(app->device, 0);
    keel_op_t zero, copy;
    keel_point_t done;
    KEEL_TRY(parent_share(app, socket));
    KEEL_TRY(keel_buffer_create(app->device, &host, &app->copy));
    zero = keel_op_fill(keel_whole(app->x), 0, 4);
    copy = keel_op_copy(keel_whole(app->x), keel_whole(app->copy));
    KEEL_TRY(keel_queue_submit(queue, KEEL_NO_WAITS, &zero, 1,
                               KEEL_SIGNAL(keel_point(app->turn, 1)), NULL));
    for (uint64_t turn = 1; turn < LAST; turn += 2) KEEL_TRY(step_submit(app, turn, 2));
    KEEL_TRY(keel_queue_submit(queue, KEEL_AFTER(keel_point(app->turn, LAST)), &copy, 1,
                               KEEL_NO_SIGNALS, &done));
    KEEL_TRY(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    return keel_buffer_read(app->copy, 0, x, COUNT * 4);
}

// The child has done its part and ends: what it will never signal fails.
static bool parent_is_left(app_t *app)
{
    keel_status_t status =
        keel_wait(KEEL_POINTS(keel_point(app->turn, LAST + 1)), KEEL_ALL, KEEL_FOREVER);
    printf("a turn that never comes: %s\n", keel_code_name(keel_status_code(status)));
    bool left = keel_status_code(status) == KEEL_ABORTED;
    keel_status_release(status);
    return left;
}

static keel_status_t child_run(app_t *app, int socket)
{
    int fds[2];
    KEEL_TRY(descriptors_receive(socket, fds));
    keel_external_buffer_t buffer = {
        .kind = KEEL_EXTERNAL_FD, .handle.fd = fds[0], .size = COUNT * 4};
    keel_external_semaphore_t semaphore = {.kind = KEEL_SEMAPHORE_SHARED_FD, .handle.fd = fds[1]};
    keel_semaphore_options_t name = {.name = "turn"};
    keel_status_t status = keel_buffer_import(app->device, &buffer, NULL, &app->x);
    if (!status) status = keel_semaphore_import(app->device, &semaphore, &name, &app->turn);
    close(fds[0]);
    close(fds[1]);
    if (status) return status;
    for (uint64_t turn = 2; turn < LAST; turn += 2) KEEL_TRY(step_submit(app, turn, 3));
    return keel_wait(KEEL_POINTS(keel_point(app->turn, LAST)), KEEL_ALL, KEEL_FOREVER);
}

static int child_main(const char *uri, int socket)
{
    app_t app = {0};
    keel_status_t status = app_open(&app, uri);
    if (!status) status = child_run(&app, socket);
    if (status && app.turn)
        keel_status_release(keel_semaphore_fail(app.turn, keel_status_retain(status)));
    if (status) keel_status_print(status, stderr);
    app_close(&app);
    bool failed = status;
    keel_status_release(status);
    return failed;
}

static int parent_main(const char *uri, int socket)
{
    app_t app = {0};
    uint32_t x[COUNT] = {0}, expected = 0;
    for (int i = 0; i < ROUNDS; i++) expected = (expected * 2 + 1) * 3 + 1;
    keel_status_t status = app_open(&app, uri);
    if (!status) status = parent_run(&app, socket, x);
    if (!status) printf("after %d rounds: x = %u, should be %u\n", ROUNDS, x[COUNT - 1], expected);
    bool good = !status && x[0] == expected && x[COUNT - 1] == expected && parent_is_left(&app);
    if (status) keel_status_print(status, stderr);
    keel_status_release(status);
    app_close(&app);
    return !good;
}

// Two programs would do as well: all that they share goes through the socket.
int main(int argc, char **argv)
{
    const char *uri = argc > 1 ? argv[1] : "cpu://";
    int sockets[2], ended = 1;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return 1;
    pid_t child = fork(); // before a device is open: devices stay with the parent
    if (child < 0) return 1;
    close(sockets[child ? 1 : 0]);
    if (!child) return child_main(uri, sockets[1]);
    int result = parent_main(uri, sockets[0]);
    close(sockets[0]);
    waitpid(child, &ended, 0);
    return result || ended;
}
