// SPDX-License-Identifier: Apache-2.0
// Times of the commands of a run, as the device writes them.
#ifndef KEEL_SRC_DRIVERS_STREAM_RUN_STAMP_H_
#define KEEL_SRC_DRIVERS_STREAM_RUN_STAMP_H_

#include "drivers/stream/run/run.h"

enum { STAMPS = 32 };

typedef struct stamped_t {
    const keel_cmd_execute_t *execute; // whose recording the command is of; NULL: the submission's
    const keel_command_t *command;
    uint32_t begin; // its times are this one and the next
} stamped_t;

// In staging.
struct stream_stamps_t {
    struct stream_stamps_t *older;
    uint64_t address;     // of `times`, as the device sees it
    uint64_t load;        // of the queue, up to the last time
    uint32_t times_count; // put on the stream
    uint32_t count;       // commands
    bool open;            // the last time is the begin of a command
    stamped_t of[STAMPS];
    volatile uint64_t times[2 * STAMPS]; // by the device
};

#endif
