// SPDX-License-Identifier: Apache-2.0
// The beginning of every exported function: counts the call, lets it fail where the settings say
// so, refuses it where the rules of CUDA do, and takes the lock under which all state is changed.
#ifndef SIM_CUDA_CALL_H_
#define SIM_CUDA_CALL_H_

#include "cuda/base.h"

typedef enum call_needs_t {
    CALL_PLAIN = 0,       // cuInit has succeeded
    CALL_BEFORE_INIT = 1, // not even that
    CALL_CONTEXT = 2,     // a current context that is alive and has not failed
    CALL_RELEASE = 4,     // goes on whatever has failed, and returns call.late at its end
    CALL_UNCOUNTED = 8,   // a rule that names no symbol does not mean it
    CALL_UNSAFE = 16,     // not while a stream is captured (capture.h)
} call_needs_t;

typedef struct call_site_t {
    const char *name;
    uint64_t count;
    tally_t *tally; // NULL: not called before, or no room
} call_site_t;

typedef struct call_t {
    CUresult result;   // why the call ends at once
    CUresult late;     // CALL_RELEASE: what it returns when it has done its work
    CUcontext context; // that of the stream it is given, or the current one, if there is any
    bool locked;
    const char *name;     // NULL: no tool is told
    uint64_t start;       // and when it began,
    uint32_t correlation; // and its number
} call_t;

call_t call_enter(call_site_t *site, unsigned needs, CUstream stream);
void call_leave(call_t *call);

// The exported function that this thread is in, for messages.
const char *call_name(void);

// Its number, for a tool; 0: there is none.
uint32_t call_correlation(void);

// While a host function runs on this thread, CUDA may not be called.
void call_forbid(bool forbidden);

// A graph, built or executable, that a call works on. CUDA does not lock it: no other thread may be
// in a call on it, which is seen even while that one waits for the lock.
typedef struct use_t {
    const void *object; // NULL: nothing to watch
    bool clashes;       // with a call of another thread
} use_t;

use_t use_begin(const void *object, const char *name);
// Also before the lock is let go by who has destroyed it: another one may soon be at its address.
void use_end(use_t *use);

// Before CALL in such a function.
#define USES(object)                                                                               \
    __attribute__((cleanup(use_end))) use_t use = use_begin((object), __func__);                   \
    if (use.clashes) return CUDA_ERROR_ILLEGAL_STATE

// The same where a node says which part of an executable graph is meant: its graph is looked at.
#define USES_NODE(exec, node)                                                                      \
    USES(exec);                                                                                    \
    __attribute__((cleanup(use_end))) use_t graph_use = use_begin(node_graph(node), __func__);     \
    if (graph_use.clashes) return CUDA_ERROR_ILLEGAL_STATE

// Declares `call`; the lock is held until the function returns.
#define CALL(needs) CALL_ON(NULL, needs)

// The same of a function that, as seen on an H200, does not care for the thread's context but for
// its stream's; the default streams are the current context's.
#define CALL_ON(stream, needs)                                                                     \
    static call_site_t call_site = {.name = __func__};                                             \
    __attribute__((cleanup(call_leave))) call_t call = call_enter(&call_site, (needs), (stream));  \
    if (call.result) return call.result

#endif
