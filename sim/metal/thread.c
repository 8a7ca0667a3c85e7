// SPDX-License-Identifier: Apache-2.0
#include "metal/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK = 64 << 10, GUARD = 4 << 10 };

// ThreadSanitizer must know of fibers. Elsewhere these do not exist.
__attribute__((weak)) void *__tsan_get_current_fiber(void);
__attribute__((weak)) void *__tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void *fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void *fiber, unsigned flags);

typedef enum fiber_state_t { NEW, READY, AT_GROUP_BARRIER, AT_LANE_BARRIER, ENDED } fiber_state_t;

// Where a thread runs. One that ends without having waited leaves its stack to the next.
typedef struct fiber_stack_t {
    struct fiber_stack_t *next;
    ucontext_t context;
    void *sanitizer;
    char *memory;
    bool idle; // all threads that it was for have ended: it can take more
} fiber_stack_t;

// Those that no grid uses now.
static fiber_stack_t *stacks_kept;
static pthread_mutex_t stacks_lock = PTHREAD_MUTEX_INITIALIZER;

// Some that a thread of the host keeps, idle, with what ThreadSanitizer knows of them: to make that
// takes longer than most groups. Others of the host never get these: ThreadSanitizer would take
// what one has done there to come before what the next does.
enum { OWN = LANES };
static PER_THREAD fiber_stack_t *stacks_own;
static PER_THREAD unsigned stacks_own_count;
static pthread_key_t stacks_own_end; // for the end of the thread
static pthread_once_t stacks_own_once = PTHREAD_ONCE_INIT;

typedef struct fiber_t {
    fiber_stack_t *stack; // while it runs or waits
    fiber_state_t state;
    uint64_t shown[2]; // to its SIMD-group
} fiber_t;

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// All numbers below `count`, each once: every step-th, from any on. Without a seed, 0, 1, 2 ...
typedef struct order_t {
    uint64_t count, step, first;
} order_t;

static order_t order_make(uint64_t count)
{
    static _Atomic uint64_t made;
    order_t order = {.count = count, .step = 1};
    if (!settings()->seed || count < 2) return order;
    uint64_t x = (settings()->seed + ++made) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    order.first = x % count;
    order.step = 1 + (x >> 32) % (count - 1);
    while (gcd(order.step, count) != 1) order.step++;
    return order;
}

static uint64_t order_at(const order_t *order, uint64_t index)
{
    return (order->first + (unsigned __int128)index * order->step) % order->count;
}

typedef struct group_t {
    kernel_fn kernel;
    const thread_t *arguments;
    const grid_t *grid;
    uint32_t place[3];
    fiber_t *fibers;
    unsigned count;
    fiber_stack_t *stacks; // of this group's threads
    ucontext_t scheduler;
    void *sanitizer;
    order_t order; // of the threads, and where in it `current` is
    unsigned index;
    fiber_t *current;
} group_t;

static PER_THREAD group_t *running;

static void fiber_leave(group_t *group, fiber_stack_t *stack)
{
    if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(group->sanitizer, 0);
    swapcontext(&stack->context, &group->scheduler);
}

static void fiber_yield(fiber_state_t state)
{
    group_t *group = running;
    group->current->state = state;
    fiber_leave(group, group->current->stack);
}

void simMetalGroupBarrier(void)
{
    fiber_yield(AT_GROUP_BARRIER);
}

void simMetalLaneBarrier(void)
{
    fiber_yield(AT_LANE_BARRIER);
}

static unsigned lanes_begin(void)
{
    return (unsigned)(running->current - running->fibers) / LANES * LANES;
}

uint32_t simMetalLaneIndex(void)
{
    return (uint32_t)(running->current - running->fibers) % LANES;
}

uint32_t simMetalLaneCount(void)
{
    unsigned left = running->count - lanes_begin();
    return left < LANES ? left : LANES;
}

void *simMetalLane(uint32_t lane)
{
    return running->fibers[lanes_begin() + lane % simMetalLaneCount()].shown;
}

static void positions_set(thread_t *thread, unsigned index, const uint32_t place[3],
                          const grid_t *grid)
{
    const uint32_t *size = grid->threads;
    uint32_t local[3] = {index % size[0], index / size[0] % size[1], index / size[0] / size[1]};
    for (int i = 0; i < 3; i++) {
        thread->at[IN_GRID][i] = place[i] * size[i] + local[i];
        thread->at[IN_GROUP][i] = local[i];
        thread->at[GROUP_IN_GRID][i] = place[i];
        thread->at[THREADS_PER_GROUP][i] = size[i];
        thread->at[THREADS_PER_GRID][i] = size[i] * grid->groups[i];
        thread->at[GROUPS_PER_GRID][i] = grid->groups[i];
    }
    thread->at[INDEX_IN_GROUP][0] = index;
    thread->at[INDEX_IN_LANES][0] = index % LANES;
    thread->at[LANES_INDEX][0] = index / LANES;
    thread->at[LANES_PER_GROUP][0] = (size[0] * size[1] * size[2] + LANES - 1) / LANES;
    thread->at[THREADS_PER_LANES][0] = LANES;
}

static void fiber_run(group_t *group)
{
    thread_t thread = *group->arguments;
    positions_set(&thread, (unsigned)(group->current - group->fibers), group->place, group->grid);
    group->kernel(&thread);
    group->current->state = ENDED;
}

static fiber_t *fiber_at(const group_t *group, unsigned index)
{
    return &group->fibers[order_at(&group->order, index)];
}

// The thread it was begun for, and after it those that have not begun: a stack each would cost
// several calls of the system for each.
static void fibers_serve(group_t *group, fiber_stack_t *stack)
{
    for (;;) {
        fiber_run(group);
        unsigned next = group->index + 1;
        if (next == group->count || fiber_at(group, next)->state != NEW) return;
        group->index = next;
        group->current = fiber_at(group, next);
        group->current->stack = stack;
    }
}

// It comes back for another group of the same thread of the host, or never.
static void fiber_main(void)
{
    fiber_stack_t *stack = running->current->stack;
    for (;;) {
        fibers_serve(running, stack);
        stack->idle = true;
        fiber_leave(running, stack);
    }
}

bool grid_is_own(const void *at)
{
    const fiber_stack_t *stack = running && running->current ? running->current->stack : NULL;
    return stack && (uintptr_t)at - (uintptr_t)stack->memory < STACK;
}

static fiber_stack_t *stack_make(void)
{
    fiber_stack_t *stack = make(sizeof *stack);
    stack->memory = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack->memory == MAP_FAILED) die("no memory for a thread of a kernel");
    mprotect(stack->memory, GUARD, PROT_NONE);
    return stack;
}

// One that begins anew.
static fiber_stack_t *stack_begin(void)
{
    pthread_mutex_lock(&stacks_lock);
    fiber_stack_t *stack = stacks_kept;
    if (stack) stacks_kept = stack->next;
    pthread_mutex_unlock(&stacks_lock);
    if (!stack) stack = stack_make();
    getcontext(&stack->context);
    stack->context.uc_stack.ss_sp = stack->memory + GUARD;
    stack->context.uc_stack.ss_size = STACK - GUARD;
    makecontext(&stack->context, fiber_main, 0);
    if (__tsan_create_fiber) stack->sanitizer = __tsan_create_fiber(0);
    return stack;
}

static void stack_end(fiber_stack_t *stack)
{
    if (stack->sanitizer) __tsan_destroy_fiber(stack->sanitizer);
    pthread_mutex_lock(&stacks_lock);
    stack->next = stacks_kept;
    stacks_kept = stack;
    pthread_mutex_unlock(&stacks_lock);
}

static fiber_stack_t *own_take(void)
{
    fiber_stack_t *stack = stacks_own;
    if (!stack) return NULL;
    stacks_own = stack->next;
    stacks_own_count--;
    return stack;
}

static void own_end(void *unused)
{
    (void)unused;
    for (fiber_stack_t *stack; (stack = own_take()) != NULL;) stack_end(stack);
}

static void own_prepare(void)
{
    if (pthread_key_create(&stacks_own_end, own_end))
        die("the process has no key for threads left");
}

static void own_keep(fiber_stack_t *stack)
{
    if (!stacks_own) pthread_setspecific(stacks_own_end, &stacks_own);
    stack->next = stacks_own;
    stacks_own = stack;
    stacks_own_count++;
}

static fiber_stack_t *stack_take(group_t *group)
{
    fiber_stack_t *stack = own_take();
    if (!stack) stack = stack_begin();
    stack->idle = false;
    stack->next = group->stacks;
    group->stacks = stack;
    return stack;
}

static void stacks_give_back(group_t *group)
{
    for (fiber_stack_t *stack; (stack = group->stacks) != NULL;) {
        group->stacks = stack->next;
        if (stack->idle && stacks_own_count < OWN)
            own_keep(stack);
        else
            stack_end(stack);
    }
}

static void fibers_run(group_t *group)
{
    group->order = order_make(group->count);
    for (group->index = 0; group->index < group->count; group->index++) {
        fiber_t *fiber = fiber_at(group, group->index);
        if (fiber->state != READY && fiber->state != NEW) continue;
        if (fiber->state == NEW) fiber->stack = stack_take(group);
        group->current = fiber;
        if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(fiber->stack->sanitizer, 0);
        swapcontext(&group->scheduler, &fiber->stack->context);
    }
}

static unsigned fibers_in(const group_t *group, fiber_state_t state, unsigned begin, unsigned end)
{
    unsigned count = 0;
    for (unsigned i = begin; i < end; i++) count += group->fibers[i].state == state;
    return count;
}

static void fibers_wake(group_t *group, unsigned begin, unsigned end)
{
    for (unsigned i = begin; i < end; i++)
        if (group->fibers[i].state != ENDED) group->fibers[i].state = READY;
}

// A barrier of the group is for all of its threads, that of a SIMD-group for those that have not
// ended. Whether a thread can go on.
static bool barriers_open(group_t *group)
{
    bool woke = fibers_in(group, AT_GROUP_BARRIER, 0, group->count) == group->count;
    if (woke) fibers_wake(group, 0, group->count);
    for (unsigned begin = 0; !woke && begin < group->count; begin += LANES) {
        unsigned end = begin + LANES < group->count ? begin + LANES : group->count;
        unsigned waiting = fibers_in(group, AT_LANE_BARRIER, begin, end);
        if (!waiting || waiting + fibers_in(group, ENDED, begin, end) != end - begin) continue;
        fibers_wake(group, begin, end);
        woke = true;
    }
    return woke;
}

static bool group_run(group_t *group)
{
    memset(group->fibers, 0, group->count * sizeof *group->fibers);
    do fibers_run(group);
    while (barriers_open(group));
    stacks_give_back(group);
    return fibers_in(group, ENDED, 0, group->count) == group->count;
}

static bool groups_run(group_t *group)
{
    uint32_t *place = group->place;
    const uint32_t *groups = group->grid->groups;
    order_t order = order_make((uint64_t)groups[0] * groups[1] * groups[2]);
    for (uint64_t i = 0; i < order.count; i++) {
        uint64_t number = order_at(&order, i), row = number / groups[0];
        place[0] = (uint32_t)(number % groups[0]);
        place[1] = (uint32_t)(row % groups[1]);
        place[2] = (uint32_t)(row / groups[1]);
        if (!group_run(group)) return false;
    }
    return true;
}

bool grid_run(kernel_fn kernel, const thread_t *arguments, const grid_t *grid)
{
    group_t group = {.kernel = kernel, .arguments = arguments, .grid = grid};
    pthread_once(&stacks_own_once, own_prepare);
    group.count = grid->threads[0] * grid->threads[1] * grid->threads[2];
    group.fibers = make(group.count * sizeof *group.fibers);
    if (__tsan_get_current_fiber) group.sanitizer = __tsan_get_current_fiber();
    running = &group;
    bool good = groups_run(&group);
    running = NULL;
    free(group.fibers);
    return good;
}
