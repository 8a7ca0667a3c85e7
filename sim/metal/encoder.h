// SPDX-License-Identifier: Apache-2.0
// What all encoders have: a command buffer, of which at most one encoder is open.
#ifndef SIM_METAL_ENCODER_H_
#define SIM_METAL_ENCODER_H_

#include "metal/command.h"

#include <pthread.h>

typedef struct encoder_t {
    object_t object;
    command_t *command; // retained
    bool ended;
    pthread_t owner;    // the one thread that may use it
    unsigned number;    // of hazard.h; 0: none
    bool concurrent;    // nothing orders its works but those that are `ordered`
    work_t **begin;     // where its works begin, in the command buffer
    object_t **updated; // fences; owned
    unsigned updated_count;
    // Of counter.c: where times go; NULL: nowhere.
    void *samples; // retained
    work_t *first_sample;
    unsigned long last_sample;
} encoder_t;

// Count 1.
void *encoder_new(class_t *class, command_t *command);
void encoder_dealloc(void *self); // for classes that own nothing else
void encoder_check_open(encoder_t *self, sel_t cmd);
// Of a command buffer that is committed now: each fence that it waits for is updated by it before,
// or by another that was committed before.
void encoder_check_fences(const command_t *command, sel_t cmd);
// Methods.
void encoder_end(encoder_t *self, sel_t cmd);
void encoder_update_fence(encoder_t *self, sel_t cmd, void *fence);
void encoder_wait_for_fence(encoder_t *self, sel_t cmd, void *fence);
#define ENCODER_METHODS                                                                            \
    METHOD("endEncoding", encoder_end), METHOD("updateFence:", encoder_update_fence),              \
        METHOD("waitForFence:", encoder_wait_for_fence)

#endif
