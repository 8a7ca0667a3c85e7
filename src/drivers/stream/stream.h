// SPDX-License-Identifier: Apache-2.0
// The stream core: devices made of streams, events and graphs, whatever vendor they are of. A
// vendor's driver reads the URI (options.h), opens its library, fills in a table (api.h) and makes
// devices here. docs/stream.md explains the core with pictures.
//
// The rooms of the core, from the bottom up. A file uses its own room and those below it.
//
//     base/    the device, the vendor's context around calls, and the count of memory coming back
//     queue/   a stream: its events in flight, the threads that issue to it and watch it
//     memory/  buffers, pools and staging, and giving memory back to the vendor
//     run/     a submission on its way: its commands, issued to the stream one by one
//     graph/   recordings as graphs
//     ./       the operations of a driver: device, queue, semaphore, executable
#ifndef KEEL_SRC_DRIVERS_STREAM_STREAM_H_
#define KEEL_SRC_DRIVERS_STREAM_STREAM_H_

#include "drivers/stream/options.h"

// Makes a device of a vendor's. Takes over `vendor`, also when it fails. KEEL_INTERNAL if the table
// lacks a slot that the features in `limits` need.
keel_status_t stream_device_create(const stream_api_t *api, stream_vendor_t *vendor,
                                   const stream_limits_t *limits, const stream_options_t *options,
                                   keel_device_t **device);

#endif
