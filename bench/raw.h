// SPDX-License-Identifier: Apache-2.0
// The vendor's own API, bare: what Keel on a GPU is held against. raw.c does what rows ask for, by
// the calls of a vendor, which raw_cuda.c and raw_hip.c find.
//
// A raw_t is a device with two streams, some events, kernels with an argument block of 64 bytes,
// and an instantiated graph once one was made. One thread uses it, but for raw_sleep.
#ifndef BENCH_RAW_H_
#define BENCH_RAW_H_

#include "bench.h"

typedef struct raw_t raw_t;

enum {
    RAW_STREAMS = 2,
    RAW_EVENTS = 3,
    RAW_BELL = 2, // the event that raw_sleep takes: one on which to sleep is dearer to record
    RAW_BLOCK = 64,
};

// The kernels as an image for a device of Keel's, to be dispatched with raw arguments: raw_empty,
// and raw_nap, which takes as many nanoseconds as its block says first.
keel_executable_options_t raw_image(const keel_device_t *device);

// The vendor is the one of the setting's device. KEEL_UNSUPPORTED without such a device.
keel_status_t raw_open(const setting_t *setting, raw_t **raw) KEEL_MUST_USE;
void raw_close(raw_t *raw);

keel_status_t raw_launch(raw_t *raw, int stream) KEEL_MUST_USE;
keel_status_t raw_nap(raw_t *raw, int stream, uint64_t ns) KEEL_MUST_USE; // a kernel so long
keel_status_t raw_record(raw_t *raw, int event, int stream) KEEL_MUST_USE;
keel_status_t raw_wait(raw_t *raw, int stream, int event) KEEL_MUST_USE;
keel_status_t raw_spin(raw_t *raw, int event) KEEL_MUST_USE;  // polls until it has happened
keel_status_t raw_sleep(raw_t *raw, int event) KEEL_MUST_USE; // blocks until then
keel_status_t raw_sync(raw_t *raw) KEEL_MUST_USE;             // both streams

// A chain of `count` kernels as a graph; its launch on stream 0; three other addresses for each of
// them.
keel_status_t raw_graph(raw_t *raw, uint32_t count) KEEL_MUST_USE;
keel_status_t raw_replay(raw_t *raw) KEEL_MUST_USE;
keel_status_t raw_rebind(raw_t *raw) KEEL_MUST_USE;
// Whether kernels can change nodes of a graph, so that the host need not.
bool raw_updates(const raw_t *raw);

// Stream-ordered memory: got and given back on stream 0. KEEL_UNSUPPORTED if the device has none,
// also from raw_pairs, which comes before.
keel_status_t raw_pairs(raw_t *raw) KEEL_MUST_USE;
keel_status_t raw_pair(raw_t *raw, uint64_t size) KEEL_MUST_USE;

// Two spans of memory, the first one pinned memory of the host if `host`; transfers on stream 0.
keel_status_t raw_spans(raw_t *raw, uint64_t size, bool host) KEEL_MUST_USE;
keel_status_t raw_copy(raw_t *raw, uint64_t size) KEEL_MUST_USE;      // first to second
keel_status_t raw_copy_back(raw_t *raw, uint64_t size) KEEL_MUST_USE; // to the host, if it is that
keel_status_t raw_fill(raw_t *raw, uint64_t size) KEEL_MUST_USE;      // of the second

#endif
