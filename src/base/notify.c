// SPDX-License-Identifier: Apache-2.0
#include "base/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/status.h"

#if defined(__linux__) && !KEEL_PORTABLE

#include <sys/eventfd.h>

keel_status_t notify_init(notify_t *notify)
{
    notify->read_fd = notify->write_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return notify->read_fd >= 0 ? NULL
                                : status_from_errno(KEEL_RESOURCE_EXHAUSTED, errno, "eventfd");
}

#else

keel_status_t notify_init(notify_t *notify)
{
    int fds[2];
    if (pipe(fds) < 0) return status_from_errno(KEEL_RESOURCE_EXHAUSTED, errno, "pipe");
    for (int i = 0; i < 2; i++) {
        fcntl(fds[i], F_SETFD, FD_CLOEXEC);
        fcntl(fds[i], F_SETFL, O_NONBLOCK);
    }
    notify->read_fd = fds[0];
    notify->write_fd = fds[1];
    return NULL;
}

#endif

void notify_finish(notify_t *notify)
{
    close(notify->read_fd);
    if (notify->write_fd != notify->read_fd) close(notify->write_fd);
}

void notify_set(notify_t *notify)
{
    uint64_t one = 1;
    // It fails only if there is no room for more, when it is readable anyway.
    if (write(notify->write_fd, &one, sizeof one) < 0) return;
}

void notify_clear(notify_t *notify)
{
    uint64_t all;
    if (read(notify->read_fd, &all, sizeof all) < 0) return;
}
