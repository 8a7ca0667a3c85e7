// SPDX-License-Identifier: Apache-2.0
// What a GPU is given to do, as the trace has it.
#ifndef KEEL_SRC_CAPTURE_HSA_WORK_H_
#define KEEL_SRC_CAPTURE_HSA_WORK_H_

#include "capture/hsa/table.h"
#include "trace/format.h"

typedef struct work_t {
    trace_op_t op;
    hsa_agent_t agent;
    uint32_t queue, name; // of the trace
    uint64_t call;        // that it came from; 0: none
    uint64_t submitted;   // the host's clock
    union {
        trace_shape_t shape;
        struct {
            uint64_t size, kind; // bytes, trace_copy_t
        };
    };
} work_t;

// Records work that has ended, with times of the runtime's clock.
void work_end(const work_t *work, hsa_time_t time);

// Records work of which only the time of its submission is known.
void work_note(const work_t *work);

#endif
