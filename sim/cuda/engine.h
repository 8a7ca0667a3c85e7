// SPDX-License-Identifier: Apache-2.0
// How streams go on: commands in order, marks between them, workers that do the work. All of it
// under the lock.
#ifndef SIM_CUDA_ENGINE_H_
#define SIM_CUDA_ENGINE_H_

#include "cuda/state.h"

mark_t *mark_create(void);
mark_t *mark_retain(mark_t *mark);
void mark_release(mark_t *mark);
void mark_reach(mark_t *mark);
// False: it is reached already. Otherwise `waiter` is woken once, when it is.
bool mark_watch(mark_t *mark, waiter_t *waiter);
void mark_forget(mark_t *mark, waiter_t *waiter);
// Whether a wait for the mark includes that command: of its stream, or of one that
// its stream had waited for.
bool mark_covers(const mark_t *mark, uint64_t stream, uint64_t number);

// Starts all workers that a context may have.
void engine_start(CUcontext context);
// Hands a task to the workers of a context.
void engine_push(CUcontext context, task_t *task);
// Stops the workers of a context; lets go of the lock meanwhile.
void engine_stop(CUcontext context);

command_t *command_create(command_kind_t kind);
void command_destroy(command_t *command);

// Appends a command, which is the stream's from then on. Blocks while the stream has as much work
// as it takes, and follows the rules of default streams.
void stream_push(CUstream stream, command_t *command);
// Looks at what a stream can do now, and at every stream that this wakes.
void stream_pump(CUstream stream);
// Ends the command at the head of a stream.
void stream_pop(CUstream stream);
bool stream_idle(CUstream stream);
// Waits for all that is enqueued now.
CUresult stream_drain(CUstream stream);
CUresult context_drain(CUcontext context);
// The same for calls of which it is a side effect: nothing is reported, nor given back.
void context_wait(CUcontext context);
// And no thread can enqueue work meanwhile, nor make events, which wait until that is over.
void context_settle(CUcontext context);
// The exported function that enqueued some work that fits, in any context that has not failed, if
// there is any that is not over; else NULL.
const char *work_find(work_fits_fn fits, const void *what);
void context_await_settled(CUcontext context);

// A mark at the present end of a stream, retained.
mark_t *stream_mark(CUstream stream);
// Everything that comes is done after the mark.
void stream_wait(CUstream stream, mark_t *mark);
// Whether a command of another stream is known to be over before what comes in this one.
bool stream_has_seen(CUstream stream, uint64_t other, uint64_t number);

// Enqueues work that has been made and checked; takes it over.
CUresult stream_work(CUstream stream, work_t *work);

#endif
