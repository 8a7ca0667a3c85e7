// SPDX-License-Identifier: Apache-2.0
// A file descriptor that becomes readable when told to: an eventfd on Linux, a pipe elsewhere.
#ifndef KEEL_SRC_BASE_NOTIFY_H_
#define KEEL_SRC_BASE_NOTIFY_H_

#include <keel/status.h>

typedef struct notify_t {
    int read_fd;  // for poll
    int write_fd; // write 8 bytes, the number 1; never blocks
} notify_t;

keel_status_t notify_init(notify_t *notify) KEEL_MUST_USE;
void notify_finish(notify_t *notify);

// Makes it readable, and not any more. Neither blocks.
void notify_set(notify_t *notify);
void notify_clear(notify_t *notify);

#endif
