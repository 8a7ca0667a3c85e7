// SPDX-License-Identifier: Apache-2.0
// Memory that several processes have open, and the knowledge whether another one has.
//
// The memory is behind a file descriptor and sealed: no process can make it smaller, so touching it
// never faults. Its contents are another matter: every process that has it open can write all of it
// at any time.
//
// Each opening is an open file description of its own, which holds a lock on the file. So does each
// descriptor that shared_page_export gives away, with all copies of it, also on the way in a
// socket. The system drops the lock when the last copy is closed, or the last process that has one
// ends, however it does. So an opening that finds no lock but its own is alone, and no descriptor
// is left by which another could come.
#ifndef KEEL_SRC_BASE_SHARED_PAGE_H_
#define KEEL_SRC_BASE_SHARED_PAGE_H_

#include <keel/status.h>

typedef struct shared_page_t {
    void *memory; // NULL in the child of a fork
    size_t size;
    int fd; // owned: of this opening alone; -1 in the child of a fork
} shared_page_t;

// Whether the system has all of this.
bool shared_page_is_supported(void);

// Makes one, of zeros. KEEL_UNSUPPORTED if the system has no such thing.
keel_status_t shared_page_create(size_t size, shared_page_t *page) KEEL_MUST_USE;
// Opens one by a descriptor that shared_page_export gave, which stays the caller's.
// KEEL_INVALID_ARGUMENT if it is none.
keel_status_t shared_page_open(int fd, size_t size, shared_page_t *page) KEEL_MUST_USE;
// A new descriptor, closed on exec, to be passed on. KEEL_UNSUPPORTED without /proc.
keel_status_t shared_page_export(const shared_page_t *page, int *fd) KEEL_MUST_USE;
// No other opening is left, and no descriptor.
bool shared_page_is_alone(const shared_page_t *page);
void shared_page_close(shared_page_t *page);

// In the child of a fork, which has the parent's descriptors: the opening stays the parent's alone.
// The child has no such memory either. Nothing but a system call.
void shared_page_leave(shared_page_t *page);

#endif
