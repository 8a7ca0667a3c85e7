// SPDX-License-Identifier: Apache-2.0
// Points in an epoll loop: each watch is a file descriptor that becomes readable when its wait
// ends.
#include <keel/keel.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "kernels.h"

enum { JOBS = 3 };

typedef struct app_t {
    keel_device_t *device;
    keel_executable_t *kernels;
    keel_buffer_t *notes[JOBS];
    keel_point_t done[JOBS];
    keel_watch_t *watches[JOBS];
    int epoll;
} app_t;

// A dispatch that takes a while, and its watch in the epoll set.
static keel_status_t job_submit(app_t *app, int job)
{
    keel_entry_t work;
    uint32_t length_us = 3000u * (JOBS - (uint32_t)job); // the first takes longest
    keel_buffer_options_t options = {.size = 24};
    KEEL_TRY(keel_executable_entry(app->kernels, "work", &work));
    KEEL_TRY(keel_buffer_create(app->device, &options, &app->notes[job]));
    keel_op_t op =
        keel_op_dispatch(work, keel_groups(1, 1, 1), &length_us, 4, KEEL_BIND(app->notes[job]));
    KEEL_TRY(keel_queue_run(keel_device_queue(app->device, 0), KEEL_NO_WAITS, op, &app->done[job]));

    KEEL_TRY(keel_watch_create(&app->done[job], 1, KEEL_ALL, &app->watches[job]));
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)job};
    if (epoll_ctl(app->epoll, EPOLL_CTL_ADD, keel_watch_fd(app->watches[job]), &event) < 0)
        return KEEL_ERROR(KEEL_INTERNAL, "epoll_ctl failed");
    return NULL;
}

// A wait has ended: keel_wait with a timeout of 0 says how.
static keel_status_t job_finish(app_t *app, uint32_t job)
{
    KEEL_TRY(keel_wait(&app->done[job], 1, KEEL_ALL, 0));
    keel_watch_release(app->watches[job]); // closes the descriptor, which leaves the set with it
    app->watches[job] = NULL;
    uint64_t note[3];
    KEEL_TRY(keel_buffer_read(app->notes[job], 0, note, sizeof note));
    printf("job %u took %llu us on worker %llu\n", job,
           (unsigned long long)(note[1] - note[0]) / 1000, (unsigned long long)note[2]);
    bool right = note[1] - note[0] >= 3000000u * (JOBS - job);
    return right ? NULL : KEEL_ERROR(KEEL_INTERNAL, "job %u was too short", job);
}

static keel_status_t app_run(app_t *app, const char *uri)
{
    KEEL_TRY(keel_device_open(uri, NULL, &app->device));
    KEEL_TRY(host_kernels_load(app->device, &app->kernels));
    for (int job = 0; job < JOBS; job++) KEEL_TRY(job_submit(app, job));
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
        keel_buffer_release(app.notes[job]);
    }
    keel_executable_release(app.kernels);
    keel_device_release(app.device);
    close(app.epoll);
    if (status) keel_status_print(status, stderr);
    keel_status_release(status);
    return status ? 1 : 0;
}
