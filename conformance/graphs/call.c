// SPDX-License-Identifier: Apache-2.0
// Host calls of a graph: they change memory, put their end off or fail, as the graph says.
#include "graphs/runner.h"
#include "graphs/stage.h"
#include "graphs/verdict.h"

#include <sched.h>

static keel_buffer_t *call_buffer(const call_t *call)
{
    uint8_t device = call->run->graph->actions[call->action].device;
    return call->run->buffers[call->op->spans[0].id][device];
}

static keel_status_t call_work(const call_t *call)
{
    const span_t *span = &call->op->spans[0];
    uint8_t index = call->run->graph->actions[call->action].device;
    env_device_t *device = &call->run->env->devices[index];
    keel_buffer_t *buffer = call_buffer(call);
    uint8_t bytes[SPACE_SIZE];
    if (call->op->numbers[1] == CALL_FAIL || call->op->numbers[1] == CALL_FAIL_LATER)
        return KEEL_ERROR(injected_code(call->run->graph, call->action), "host call fails with %zu",
                          FIRST_NUMBER + call->action);
    KEEL_TRY(stage_read(device, buffer, span->offset, bytes, span->length));
    for (size_t i = 0; i < span->length; i++) bytes[i] = call_byte(bytes[i], call->op->numbers[0]);
    return stage_write(device, buffer, span->offset, bytes, span->length);
}

keel_status_t call_begin(void *user, keel_host_call_t *handle)
{
    call_t *call = user;
    run_t *run = call->run;
    if (call->op->kind == OP_CALL_SIGNAL)
        return keel_semaphore_signal(run->semaphores[call->op->numbers[0]], call->op->numbers[1]);
    bool waits = call->op->numbers[1] == CALL_NOW && stage_needed(call_buffer(call));
    if (!waits && (call->op->numbers[1] == CALL_NOW || call->op->numbers[1] == CALL_FAIL))
        return call_work(call);
    keel_call_defer(handle);
    pthread_mutex_lock(&run->mutex);
    call->handle = handle;
    call->next = run->put_off;
    run->put_off = call;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->mutex);
    return NULL;
}

void *calls_end(void *user)
{
    run_t *run = user;
    pthread_mutex_lock(&run->mutex);
    while (!run->closing || run->put_off) {
        call_t *call = run->put_off;
        if (!call) {
            pthread_cond_wait(&run->changed, &run->mutex);
            continue;
        }
        run->put_off = call->next;
        pthread_mutex_unlock(&run->mutex);
        for (size_t i = 0; i < call->action % 4; i++) sched_yield();
        keel_call_complete(call->handle, call_work(call));
        pthread_mutex_lock(&run->mutex);
    }
    pthread_mutex_unlock(&run->mutex);
    return NULL;
}
