// SPDX-License-Identifier: Apache-2.0
// Tries the orders in which threads can do the steps of a protocol: each thread is a coroutine that
// hands over before every step, and all choices are gone through, depth first. Steps are those of
// one order of memory (sequentially consistent): lost wake-ups show so, missing fences do not.
#ifndef TESTS_DRIVERS_AMDGPU_MODEL_H_
#define TESTS_DRIVERS_AMDGPU_MODEL_H_

#include <assert.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

enum { MODEL_THREADS = 8, MODEL_STEPS = 400, MODEL_STACK = 64 << 10 };

typedef struct model_t {
    ucontext_t begins[MODEL_THREADS];
    jmp_buf back, threads[MODEL_THREADS]; // switching by these takes no call of the system
    bool begun[MODEL_THREADS];
    void (*bodies[MODEL_THREADS])(void);
    _Alignas(64) char stacks[MODEL_THREADS][MODEL_STACK];
    int count, running;
    bool (*waits[MODEL_THREADS])(void); // until that is so; NULL: it can go on
    // The choices of this run: which of those that could go on did.
    uint8_t chosen[MODEL_STEPS], choices[MODEL_STEPS];
    int depth, steps;
    int switches, most_switches; // to another thread than the one whose turn it was
    uint64_t runs;
} model_t;

static model_t model;

// Before a step.
static inline void model_step(void)
{
    if (model.running >= 0 && !_setjmp(model.threads[model.running])) _longjmp(model.back, 1);
}

// Goes on when that is so; if it never is, the thread has come to its end.
static inline void model_wait(bool (*until)(void))
{
    model.waits[model.running] = until;
    model_step();
    model.waits[model.running] = NULL;
}

static inline bool model_never(void)
{
    return false;
}

static void model_main(void)
{
    model.bodies[model.running]();
    model_wait(model_never);
}

// Lets a thread do its next step.
static inline void model_go(int thread)
{
    model.running = thread;
    if (!_setjmp(model.back)) {
        if (model.begun[thread]) _longjmp(model.threads[thread], 1);
        model.begun[thread] = true;
        setcontext(&model.begins[thread]);
    }
    model.running = -1;
}

// Adds a thread to the run.
static inline void model_add(void (*body)(void))
{
    int i = model.count++;
    assert(i < MODEL_THREADS);
    model.bodies[i] = body;
    model.waits[i] = NULL;
    model.begun[i] = false;
    getcontext(&model.begins[i]);
    model.begins[i].uc_stack.ss_sp = model.stacks[i];
    model.begins[i].uc_stack.ss_size = MODEL_STACK;
    model.begins[i].uc_link = NULL;
    makecontext(&model.begins[i], model_main, 0);
}

static inline bool model_can(int thread)
{
    return !model.waits[thread] || model.waits[thread]();
}

// The threads that can go on: first the one that ran last, or else the first one there is, which
// is no switch; if there may be more switches, then the others.
static inline int model_ready(int last, int ready[MODEL_THREADS])
{
    int count = 0;
    if (last >= 0 && model_can(last)) ready[count++] = last;
    for (int i = 0; i < model.count; i++) {
        if (count && model.switches == model.most_switches) break;
        if (i != last && model_can(i)) ready[count++] = i;
    }
    return count;
}

static inline void model_run(void)
{
    int ready[MODEL_THREADS], count, last = -1;
    model.steps = model.switches = 0;
    while ((count = model_ready(last, ready))) {
        assert(model.steps < MODEL_STEPS);
        if (model.steps == model.depth) {
            model.chosen[model.depth] = 0;
            model.choices[model.depth++] = (uint8_t)count;
        }
        int choice = model.chosen[model.steps++];
        if (choice) model.switches++;
        last = ready[choice];
        model_go(last);
    }
}

// Goes through all orders with at most so many switches. `begin` sets up a run and adds its
// threads, `end` says whether it went right. False: there is an order in which it did not.
static inline bool model_try(void (*begin)(void), bool (*end)(void), int switches)
{
    model.running = -1;
    model.most_switches = switches;
    model.depth = 0;
    for (model.runs = 1;; model.runs++) {
        model.count = 0;
        begin();
        model_run();
        if (!end()) return false;
        while (model.depth && model.chosen[model.depth - 1] + 1 == model.choices[model.depth - 1])
            model.depth--;
        if (!model.depth) return true;
        model.chosen[model.depth - 1]++;
    }
}

#endif
