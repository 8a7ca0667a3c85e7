// SPDX-License-Identifier: Apache-2.0
// A vendor in plain memory that a test scripts call by call: a driver fake:// on the stream core.
//
// Memory of the device is memory of the process, and addresses are pointers. A kernel is a C
// function that does the work of all groups of a launch. Work on a stream runs on the thread that
// issued it, at once, unless the test holds the streams of queues: then it runs when the test says
// so. Of the nodes of a graph that nothing orders, the one that was added last runs first.
//
// There is one vendor in a process, and one device of it at a time. Functions may be called from
// any thread.
#ifndef TESTS_DRIVERS_STREAM_VENDOR_H_
#define TESTS_DRIVERS_STREAM_VENDOR_H_

#include <keel/keel.h>

#include "drivers/stream/api.h"

// What the device has, and how it behaves.
typedef struct vendor_kind_t {
    const char *name; // of tests on it
    uint32_t features;
    uint32_t clock_khz; // 0: the clock counts nanoseconds
    int32_t least;      // the least urgent priority of streams; the most urgent is -2
    stream_quirks_t quirks;
} vendor_kind_t;

// All features that this vendor can have.
#define VENDOR_FEATURES                                                                            \
    (STREAM_GRAPHS | STREAM_CONDITIONS | STREAM_UPDATABLE | STREAM_UPLOAD | STREAM_POOLS |         \
     STREAM_MANAGED | STREAM_ARGUMENTS)

// A slot of stream_api_t, by its number in the table.
#define SLOT(name) ((int)(offsetof(stream_api_t, name) / sizeof(void *)))
enum { SLOTS = sizeof(stream_api_t) / sizeof(void *) };

// From here on devices are of that kind. Nothing is scripted and nothing counted yet.
void vendor_begin(const vendor_kind_t *kind);
// What stream_api_check is asked about: the table as devices of that kind get it.
stream_api_t *vendor_api(void);
// After the device is closed: what handles are left, and what the core did that it must not do, as
// a text; "" if all is well. After a loss handles may be left. Frees all.
const char *vendor_end(bool lost);

// Bytes of memory that the device has, from now on.
void vendor_memory(uint64_t bytes);

// Calls so far; by the thread that called vendor_begin; and a name for messages, which is "" until
// the slot was called.
uint64_t vendor_calls(int slot);
uint64_t vendor_calls_here(int slot);
const char *vendor_slot_name(int slot);
bool vendor_slot_fails(int slot); // whether it was called and can return an error
// Waits until so many calls of the slot have begun. False: they have not, for long.
bool vendor_await(int slot, uint64_t calls);

// The nth call of the slot from now on, from 1, fails with the code.
void vendor_fail(int slot, uint64_t nth, keel_code_t code);
// So does every call of any slot after it, as those of a dead context do.
void vendor_die(int slot, uint64_t nth);
bool vendor_failed(void); // a call has failed as told

// Calls of the slot do not return until they are let go.
void vendor_block(int slot);
void vendor_unblock(int slot);
bool vendor_await_blocked(int slot); // a thread is in there

// Holds the streams of all queues, those of later queues too; lets that of one queue run, or all.
// Queues count from 0 in the order in which they were made.
void vendor_hold(void);
void vendor_let(uint32_t queue);
void vendor_go(void);
// Runs up to n pieces of work on a held stream, with the waits and events around them. Returns how
// many ran.
uint32_t vendor_run(uint32_t queue, uint32_t n);
uint32_t vendor_pending(uint32_t queue);               // pieces of work on it
int32_t vendor_priority(uint32_t queue);               // of its stream
uint32_t vendor_most_load(uint32_t queue);             // room that was taken at once, in launches
bool vendor_await_pending(uint32_t queue, uint32_t n); // waits until there are so many
// A stream has room for so many launches that have not run; then calls block. 0: any number. What
// else takes room is the quirks'. With full_shared a call that blocks is misuse.
void vendor_room(uint32_t launches);
// Streams of one priority share so many channels of the device, in turn. Work waits for all that
// was put on its channel before it. 0: each stream has a channel of its own. A drain that waits for
// another stream is misuse.
void vendor_channels(uint32_t count);
// The host is told of no event of the queue, though streams that wait for them go on.
void vendor_late(uint32_t queue, bool late);

// An executable with the kernels below, as keel_executable_load takes it: to be freed by mem_free.
//     add      of `keel cc`: one binding and a constant k; adds k for each group
//     raw_add  made elsewhere: {address, k}; the same
keel_status_t vendor_image(void **bytes, size_t *size);

#endif
