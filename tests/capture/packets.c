// SPDX-License-Identifier: Apache-2.0
// packets LIBRARY: what the library makes of packets, on a runtime that is played.
//
// Of dispatches that are handed over at once, as newer runtimes do, those that may overlap get no
// barrier packet between them. A dispatch of an exit handler that runs after the library's is
// recorded before the runtime ends: ROCR 7 tells no times any more once hsa_shut_down has come to
// it, and after OnUnload the runtime is gone. A queue may be destroyed while the library's thread
// does not run.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "played.h"

enum { SIZE = 64, LOOKS = 5 };
static const uint16_t DISPATCH = HSA_PACKET_DISPATCH, BARRED = DISPATCH | HSA_HEADER_BARRIER;

static hsa_packet_t ring[SIZE];
static hsa_queue_t handle = {.base = ring, .size = SIZE};
static hsa_packets_fn seen;
static void *seen_data;
static hsa_packet_t written[SIZE];
static uint64_t written_count;
static hsa_signal_t own; // the application's signals of the last packets begin here
static bool good = true;

static _Atomic bool held = true; // dispatches do not end, or else after some looks
static _Atomic int looks;        // at signals that are not held
static _Atomic int times;        // that were told
static _Atomic bool closed;      // no times are told
static _Atomic bool starved;     // the library's thread does not go on
static _Atomic uint64_t made;    // signals

static HSA_FUNCTION(intercept_create, HSA_QUEUE_CREATE)
{
    *queue = &handle;
    return 0;
}

static hsa_status_t intercept_register(hsa_queue_t *queue, hsa_packets_fn fn, void *data)
{
    seen = fn;
    seen_data = data;
    return 0;
}

static hsa_status_t signal_create(int64_t value, uint32_t count, const hsa_agent_t *agents,
                                  uint64_t attributes, hsa_signal_t *signal)
{
    *signal = ++made;
    return 0;
}

static int64_t signal_load(hsa_signal_t signal)
{
    while (starved) usleep(100);
    return held || ++looks < LOOKS;
}

static hsa_status_t dispatch_time(hsa_agent_t agent, hsa_signal_t signal, hsa_time_t *time)
{
    if (closed) return 1;
    *time = (hsa_time_t){1, 2};
    times++;
    return 0;
}

static hsa_status_t shut_down(void)
{
    closed = true;
    return 0;
}

static void writer(const void *packets, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) written[i] = ((const hsa_packet_t *)packets)[i];
    written_count = count;
}

static void check(int line, bool is)
{
    if (!is) fprintf(stderr, "line %d: not so\n", line);
    good &= is;
}

// A queue to which dispatches are handed over with these headers, each with a signal of its own,
// while `next` is in the ring after them. Returns how many packets the library has made of them.
static uint64_t packets_hand(const uint16_t *headers, uint64_t count, uint16_t next)
{
    hsa_packet_t packets[SIZE];
    hsa_queue_t *queue;
    hsa_fn create = played_core.slots[PLAYED_QUEUE_CREATE];
    check(__LINE__,
          ((hsa_status_t(*) HSA_QUEUE_CREATE)create)(1, SIZE, 0, NULL, NULL, 0, 0, &queue) == 0);
    for (int i = 0; i < SIZE; i++) ring[i].header = HSA_PACKET_INVALID;
    ring[count].header = next;
    own += 1000;
    for (uint64_t i = 0; i < count; i++)
        packets[i] = (hsa_packet_t){.header = headers[i], .signal = own + i};
    seen(packets, count, 0, seen_data, writer);
    return written_count;
}

static void check_overlap(void)
{
    const uint16_t apart[] = {BARRED, BARRED}, beside[] = {BARRED, DISPATCH};
    check(__LINE__, packets_hand(apart, 2, HSA_PACKET_INVALID) == 4);
    check(__LINE__, written[1].header == (HSA_PACKET_BARRIER_AND | HSA_HEADER_BARRIER));
    check(__LINE__, written[1].signal == own && written[0].signal != own);
    check(__LINE__, packets_hand(beside, 2, HSA_PACKET_INVALID) == 2);
    check(__LINE__, written[0].signal == own && written[1].signal == own + 1);
    check(__LINE__, packets_hand(apart, 1, DISPATCH) == 1); // the next one is in the ring
    check(__LINE__, packets_hand(apart, 1, BARRED) == 2);
}

// The thread comes to a dispatch of a queue that is gone.
static void check_starved(void)
{
    const uint16_t plain[] = {BARRED};
    hsa_fn destroy = played_core.slots[PLAYED_QUEUE_DESTROY];
    starved = true;
    packets_hand(plain, 1, HSA_PACKET_INVALID);
    check(__LINE__, ((hsa_status_t(*)(hsa_queue_t *))destroy)(&handle) == 0);
    looks = LOOKS;
    held = false;
    starved = false;
    while (!times) usleep(100);
}

// Hands a dispatch over, and ends the runtime while it is in flight.
static void dispatch_then(void (*end)(void))
{
    const uint16_t plain[] = {BARRED};
    held = true;
    closed = false;
    times = 0;
    packets_hand(plain, 1, HSA_PACKET_INVALID);
    looks = 0;
    held = false;
    end();
    check(__LINE__, times == 1);
}

static void close_table(void)
{
    hsa_fn function = played_core.slots[PLAYED_SHUT_DOWN];
    check(__LINE__, ((hsa_status_t(*)(void))function)() == 0 && closed);
}

// Runs after the exit handler of the library.
static void late(void)
{
    dispatch_then(close_table);
    dispatch_then(played_unload);
    played_exit(good);
}

int main(int argc, char **argv)
{
    played_begin();
    played_core.slots[PLAYED_SHUT_DOWN] = (hsa_fn)shut_down;
    played_core.slots[PLAYED_SIGNAL_LOAD] = (hsa_fn)signal_load;
    played_amd.slots[PLAYED_SIGNAL_CREATE] = (hsa_fn)signal_create;
    played_amd.slots[PLAYED_DISPATCH_TIME] = (hsa_fn)dispatch_time;
    played_amd.slots[PLAYED_INTERCEPT_CREATE] = (hsa_fn)intercept_create;
    played_amd.slots[PLAYED_INTERCEPT_REGISTER] = (hsa_fn)intercept_register;
    if (atexit(late) != 0 || argc != 2 || !played_open(argv[1])) return 1;
    check_overlap();
    check_starved();
    return 0;
}
