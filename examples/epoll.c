// SPDX-License-Identifier: Apache-2.0
// Points in an epoll loop: each watch is a file descriptor that becomes readable when its wait
// ends.
#include <keel/keel.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "kernels.h"

enum { JOBS = 3, COUNT = 64 };

typedef struct app_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_buffer_t *x[JOBS];
    keel_point_t done[JOBS];
    keel_watch_t *watches[JOBS];
    int epoll;
} app_t;

static uint32_t job_rounds(uint32_t job)
{
    return 200000 * (JOBS - job); // the first takes longest
}

// A dispatch that takes a while, and its watch in the epoll set.
static keel_status_t job_submit(app_t *app, uint32_t job)
{
    keel_entry_t work;
    uint32_t rounds = job_rounds(job);
    keel_buffer_options_t options = {.size = COUNT * 4, .memory = KEEL_MEMORY_HOST_VISIBLE};
    KEEL_TRY(keel_executable_entry(app->kernels, "work", &work));
    KEEL_TRY(keel_buffer_create(app->device, &options, &app->x[job]));
    keel_op_t ops[] = {
        keel_op_fill(keel_whole(app->x[job]), job, 4),
        keel_op_barrier(),
        keel_op_dispatch(work, keel_groups(COUNT / 64, 1, 1), &rounds, 4, KEEL_BIND(app->x[job])),
    };
    KEEL_TRY(keel_queue_submit(keel_device_queue(app->device, 0), KEEL_NO_WAITS, ops, 3,
                               KEEL_NO_SIGNALS, &app->done[job]));

    KEEL_TRY(keel_watch_create(KEEL_POINTS(app->done[job]), KEEL_ALL, &app->watches[job]));
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = job};
    if (epoll_ctl(app->epoll, EPOLL_CTL_ADD, keel_watch_fd(app->watches[job]), &event) < 0)
        return KEEL_ERROR(KEEL_INTERNAL, "epoll_ctl failed");
    return NULL;
}

// A wait has ended: keel_wait with a timeout of 0 says how.
static keel_status_t job_finish(app_t *app, uint32_t job)
{
    KEEL_TRY(keel_wait(KEEL_POINTS(app->done[job]), KEEL_ALL, 0));
    keel_watch_release(app->watches[job]); // closes the descriptor, which leaves the set with it
    app->watches[job] = NULL;
    uint32_t x[COUNT], expected = job;
    KEEL_TRY(keel_buffer_read(app->x[job], 0, x, sizeof x));
    for (uint32_t i = 0; i < job_rounds(job); i++) expected = expected * 1664525 + 1013904223;
    printf("job %u came to %u after %u rounds\n", job, x[COUNT - 1], job_rounds(job));
    bool right = x[0] == expected && x[COUNT - 1] == expected;
    return right ? NULL : KEEL_ERROR(KEEL_INTERNAL, "%u was to be expected", expected);
}

static keel_status_t app_run(app_t *app, const char *uri)
{
    KEEL_TRY(keel_device_open(uri, NULL, &app->device));
    KEEL_TRY(kernels_load(app->device, &app->kernels));
    for (uint32_t job = 0; job < JOBS; job++) KEEL_TRY(job_submit(app, job));
    for (int left = JOBS; left > 0;) {
        struct epoll_event events[JOBS];
        int count = epoll_wait(app->epoll, events, JOBS, 10000);
        if (count <= 0) return KEEL_ERROR(KEEL_INTERNAL, "epoll_wait returned %d", count);
        for (int i = 0; i < count; i++) KEEL_TRY(job_finish(app, events[i].data.u32));
        left -= count;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    app_t app = {.epoll = epoll_create1(EPOLL_CLOEXEC)};
    keel_status_t status = app_run(&app, argc > 1 ? argv[1] : "cpu://");
    for (int job = 0; job < JOBS; job++) {
        keel_watch_release(app.watches[job]);
        keel_buffer_release(app.x[job]);
    }
    keel_executable_release(app.kernels);
    keel_device_release(app.device);
    close(app.epoll);
    if (status) keel_status_print(status, stderr);
    keel_status_release(status);
    return status ? 1 : 0;
}
