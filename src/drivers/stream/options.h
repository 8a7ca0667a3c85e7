// SPDX-License-Identifier: Apache-2.0
// The options of a device's URI that all vendors have in common.
#ifndef KEEL_SRC_DRIVERS_STREAM_OPTIONS_H_
#define KEEL_SRC_DRIVERS_STREAM_OPTIONS_H_

#include <keel/driver/driver.h>

#include "drivers/stream/api.h"

typedef enum stream_commands_t {
    STREAM_COMMANDS_CHOSEN, // per recording: graphs for reusable ones
    STREAM_COMMANDS_GRAPH,
    STREAM_COMMANDS_STREAM,
} stream_commands_t;

enum { STREAM_ADOPTED = 8 }; // streams of the application's that a device takes, at most

typedef struct stream_options_t {
    const char *library; // the vendor's, borrowed from the URI; NULL: the system's, or it is open
    void *context;       // the application's; NULL: the device's own
    stream_h adopted[STREAM_ADOPTED]; // the application's, for queues in their order; NULL: none
    uint8_t commands;                 // stream_commands_t
    uint8_t serial;                   // 1: wait after each operation, so that errors name it
    uint8_t alloc_sync;               // 1: pools of the kit instead of the vendor's
} stream_options_t;

// Reads the options of a URI. An unknown one is an error that names it.
keel_status_t stream_options_parse(const keel_uri_t *uri, stream_options_t *options);

#endif
