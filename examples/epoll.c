// SPDX-License-Identifier: Apache-2.0
// A server with an event loop: requests come in through a pipe, each becomes work on a device, and
// one completion queue tells of all ends. The loop has two descriptors, however many jobs there
// are.
#include <keel/keel.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "kernels.h"

enum { REQUESTS = 8, GONE = 2, COUNT = 64 };

typedef struct job_t {
    uint32_t rounds;
    keel_buffer_t *x;
    keel_point_t done;
} job_t;

typedef struct server_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_completion_t *ends;
    job_t jobs[REQUESTS];
    int epoll;
    int requests[2]; // a pipe, in place of a socket: jobs by their numbers, from REQUESTS on those
                     // whose clients have gone
    int answered;
} server_t;

// A request has come: a dispatch that takes a while, and its end in the completion queue.
static keel_status_t job_begin(server_t *server, job_t *job)
{
    keel_entry_t work;
    keel_buffer_options_t options = {.size = COUNT * 4, .memory = KEEL_MEMORY_HOST_VISIBLE};
    KEEL_TRY(keel_executable_entry(server->kernels, "work", &work));
    KEEL_TRY(keel_buffer_create(server->device, &options, &job->x));
    keel_op_t ops[] = {
        keel_op_fill(keel_whole(job->x), 1, 4),
        keel_op_barrier(),
        keel_op_dispatch(work, keel_groups(COUNT / 64, 1, 1), &job->rounds, 4, KEEL_BIND(job->x)),
    };
    KEEL_TRY(keel_queue_submit(keel_device_queue(server->device, 0), KEEL_NO_WAITS, ops, 3,
                               KEEL_NO_SIGNALS, &job->done));
    return keel_completion_add(server->ends, KEEL_POINTS(job->done), KEEL_ALL, job);
}

// A wait has ended: `status` says how.
static keel_status_t job_finish(job_t *job, keel_status_t status)
{
    if (keel_status_code(status) == KEEL_CANCELLED) {
        printf("%u rounds are no longer wanted\n", job->rounds);
        keel_status_release(status);
        return NULL;
    }
    KEEL_TRY(status);
    uint32_t x[COUNT], expected = 1;
    KEEL_TRY(keel_buffer_read(job->x, 0, x, sizeof x));
    for (uint32_t i = 0; i < job->rounds; i++) expected = expected * 1664525 + 1013904223;
    printf("%u rounds come to %u\n", job->rounds, x[COUNT - 1]);
    bool right = x[0] == expected && x[COUNT - 1] == expected;
    return right ? NULL : KEEL_ERROR(KEEL_INTERNAL, "%u was to be expected", expected);
}

// A request, or one more word for a client that has gone. Its job may be over: too late is no
// error, and the end comes either way.
static keel_status_t server_accept(server_t *server)
{
    uint32_t job;
    if (read(server->requests[0], &job, sizeof job) != sizeof job)
        return KEEL_ERROR(KEEL_INTERNAL, "the pipe broke");
    if (job >= REQUESTS) return keel_queue_cancel(server->jobs[job - REQUESTS].done, NULL);
    return job_begin(server, &server->jobs[job]);
}

// All that has ended. The descriptor stays readable until the last end is taken.
static keel_status_t server_answer(server_t *server)
{
    void *job;
    keel_status_t end, none;
    while (!(none = keel_completion_next(server->ends, 0, &job, &end))) {
        KEEL_TRY(job_finish(job, end));
        server->answered++;
    }
    if (keel_status_code(none) != KEEL_DEADLINE_EXCEEDED) return none;
    keel_status_release(none);
    return NULL;
}

static keel_status_t server_listen(server_t *server, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        return KEEL_ERROR(KEEL_INTERNAL, "epoll_ctl failed");
    return NULL;
}

static keel_status_t server_loop(server_t *server)
{
    while (server->answered < REQUESTS) {
        struct epoll_event event;
        if (epoll_wait(server->epoll, &event, 1, 10000) != 1)
            return KEEL_ERROR(KEEL_INTERNAL, "nothing came for ten seconds");
        if (event.data.fd == server->requests[0])
            KEEL_TRY(server_accept(server));
        else
            KEEL_TRY(server_answer(server));
    }
    return NULL;
}

static keel_status_t server_run(server_t *server, const char *uri)
{
    KEEL_TRY(keel_device_open(uri, NULL, &server->device));
    KEEL_TRY(kernels_load(server->device, &server->kernels));
    KEEL_TRY(keel_completion_create(&server->ends));
    if (pipe(server->requests) < 0) return KEEL_ERROR(KEEL_INTERNAL, "pipe failed");
    KEEL_TRY(server_listen(server, server->requests[0]));
    KEEL_TRY(server_listen(server, keel_completion_fd(server->ends)));
    for (uint32_t job = 0; job < REQUESTS + GONE; job++) { // the clients
        if (job < REQUESTS) server->jobs[job].rounds = 20000 * (REQUESTS - job);
        if (write(server->requests[1], &job, sizeof job) != sizeof job)
            return KEEL_ERROR(KEEL_INTERNAL, "the pipe broke");
    }
    return server_loop(server);
}

int main(int argc, char **argv)
{
    server_t server = {.epoll = epoll_create1(EPOLL_CLOEXEC), .requests = {-1, -1}};
    keel_status_t status = server_run(&server, argc > 1 ? argv[1] : "cpu://");
    keel_completion_release(server.ends); // drops the waits that are left
    for (int job = 0; job < REQUESTS; job++) keel_buffer_release(server.jobs[job].x);
    keel_executable_release(server.kernels);
    keel_device_release(server.device);
    for (int i = 0; i < 2; i++)
        if (server.requests[i] >= 0) close(server.requests[i]);
    close(server.epoll);
    if (status) keel_status_print(status, stderr);
    keel_status_release(status);
    return status ? 1 : 0;
}
