// SPDX-License-Identifier: Apache-2.0
// A ROCm runtime that is played for libkeeltrace.so: tables of version 2, of which a test sets the
// functions that it needs. The others succeed and do nothing.
#ifndef TESTS_CAPTURE_PLAYED_H_
#define TESTS_CAPTURE_PLAYED_H_

#include "capture/hsa/abi.h"

// Places in the tables.
enum {
    PLAYED_SHUT_DOWN = 1,
    PLAYED_QUEUE_CREATE = 7,
    PLAYED_QUEUE_DESTROY = 9,
    PLAYED_SIGNAL_DESTROY = 38,
    PLAYED_SIGNAL_LOAD = 40,
    PLAYED_DISPATCH_TIME = 4, // from here on AMD's own
    PLAYED_COPY_TIME = 5,
    PLAYED_COPY = 15,
    PLAYED_SIGNAL_CREATE = 33,
    PLAYED_INTERCEPT_CREATE = 37,
    PLAYED_INTERCEPT_REGISTER = 38,
};

typedef struct played_t {
    hsa_version_t version;
    hsa_fn slots[128];
} played_t;
extern played_t played_core, played_amd;

// Fills the tables.
void played_begin(void);

// Opens the library, which records into a new folder, and hands the tables over. False, after a
// message: it does not work.
bool played_open(const char *library);

// The runtime ends.
void played_unload(void);

// Ends the process by _exit, without handlers, after the folder was removed.
_Noreturn void played_exit(bool good);

#endif
