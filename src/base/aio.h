// SPDX-License-Identifier: Apache-2.0
// Asynchronous reads and writes of files: no thread waits for them.
//
// An aio_t has one service thread, started by the first request. Where the library was built with
// liburing and the kernel lets that thread use io_uring (containers often forbid it), the kernel
// does the work; else the thread does it with pread and pwrite. Either way large requests proceed
// by AIO_CHUNK bytes at a time, in turns with the others, and requests end in any order.
#ifndef KEEL_SRC_BASE_AIO_H_
#define KEEL_SRC_BASE_AIO_H_

#include <keel/status.h>

enum {
    AIO_END_OF_FILE = -1, // a read met the end of the file before it had all its bytes
    AIO_CHUNK = 16 << 20, // far below the 2 GiB that one system call may move
};

// The caller's, and left alone by it from aio_submit until `done`.
typedef struct aio_request_t {
    struct aio_request_t *next; // the service's
    uint64_t moved;             // the service's: bytes transferred so far
    int fd;
    bool write;
    unsigned char *data;
    uint64_t size;
    uint64_t offset; // in the file
    // How it ended: 0, an errno or AIO_END_OF_FILE; after an error any part of the bytes may have
    // been transferred. Called once, by the service thread with no lock held. Other requests are
    // held up meanwhile. The request may be freed here, or submitted again.
    void (*done)(struct aio_request_t *request, int error);
    void *context; // the caller's
} aio_request_t;

typedef struct aio_t aio_t;

keel_status_t aio_create(aio_t **aio) KEEL_MUST_USE;

// From any thread, any number of requests; neither blocks nor allocates. If the service thread
// cannot be started, `done` is called right here with the reason.
void aio_submit(aio_t *aio, aio_request_t *request);

// The same on the calling thread, which waits for it: returns what `done` would be told, and does
// not call it.
int aio_perform(aio_request_t *request);

// When all requests have ended. Waits for the service thread to leave, unless called on it (from
// `done`). In the child of a fork it only frees memory and closes descriptors. NULL is fine.
void aio_destroy(aio_t *aio);

#endif
