// SPDX-License-Identifier: Apache-2.0
// Checks operations and writes them down as commands: for a recording, or for one submission.
#ifndef KEEL_SRC_CORE_RECORDER_H_
#define KEEL_SRC_CORE_RECORDER_H_

#include <stddef.h>
#include <string.h>

#include <keel/driver/command.h>

enum { MAX_DEPTH = 16 };

// Bits 1 << keel_op_kind_t: what may be in a recording, in a submission, and in one to a transfer
// queue.
#define OPS_FROM_TO(first, last) ((UINT32_C(2) << (last)) - (UINT32_C(1) << (first)))
#define QUEUE_OPS                OPS_FROM_TO(KEEL_OP_BARRIER, KEEL_OP_HOST_CALL)
#define TRANSFER_OPS             (QUEUE_OPS & ~(1u << KEEL_OP_DISPATCH | 1u << KEEL_OP_EXECUTE))
#define RECORDING_OPS                                                                              \
    (OPS_FROM_TO(KEEL_OP_BARRIER, KEEL_OP_GROUP_END) | OPS_FROM_TO(KEEL_OP_EVENT_SET, KEEL_OP_END))

// An open if, while or switch.
typedef struct block_t {
    keel_op_kind_t kind;
    uint32_t begin; // offset of its first record
    uint32_t last;  // offset of its newest record: that one, an else or a case
    uint32_t group_depth;
    uint32_t serial; // which block it is, to tell where events belong
} block_t;

typedef struct keel_recorder_t {
    keel_device_t *device;     // borrowed
    keel_commands_t *commands; // borrowed
    uint32_t allowed;          // RECORDING_OPS, QUEUE_OPS or TRANSFER_OPS
    bool is_recording;
    bool takes_parameters; // or would, but for errors
    uint32_t slots;
    keel_slot_need_t *needs; // borrowed, [slots]
    uint32_t depth;
    uint32_t serial;
    uint32_t group_depth;
    uint32_t *events; // owned: by event, 1 + the serial of the block that set it; 0: not set
    uint32_t event_count;
    block_t blocks[MAX_DEPTH]; // [depth]
} recorder_t;

// Begins with nothing allowed; the caller says what is.
static inline void recorder_init(recorder_t *recorder, keel_device_t *device,
                                 keel_commands_t *commands)
{
    memset(recorder, 0, offsetof(recorder_t, blocks));
    recorder->device = device;
    recorder->commands = commands;
}

keel_status_t recorder_add(recorder_t *recorder, const keel_op_t *ops, size_t count) KEEL_MUST_USE;

// That blocks and groups are closed.
keel_status_t recorder_end(recorder_t *recorder) KEEL_MUST_USE;

// Makes what the commands need of parameters; the caller frees it.
keel_status_t parameters_count(const keel_commands_t *commands,
                               keel_parameter_need_t **need) KEEL_MUST_USE;
void recorder_finish(recorder_t *recorder);

// Takes back that one-shot recordings were executed, for a submission that did not happen.
void recorder_undo_executes(const keel_commands_t *commands) KEEL_COLD;

#endif
