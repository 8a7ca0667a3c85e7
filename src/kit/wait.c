// SPDX-License-Identifier: Apache-2.0
#include "kit/wait.h"

#include "base/clock.h"
#include "base/status.h"

enum { NAP_LEAST_NS = 1000000, NAP_MOST_NS = 1024000000 };

// Says how one point ended. Afterwards nothing of the wait may be touched unless it is still
// counted.
static void wait_note(wait_t *wait, size_t index, keel_status_t failure)
{
    if (!failure && wait->mode == KEEL_ALL) return;
    size_t none = SIZE_MAX;
    if (atomic_compare_exchange_strong(&wait->index, &none, index))
        atomic_store(&wait->failure, keel_status_retain(failure));
    atomic_fetch_or(&wait->word, WAIT_DECIDED);
}

static void wait_fire(waiter_t *waiter, keel_status_t failure)
{
    wait_entry_t *entry = (wait_entry_t *)(void *)waiter;
    wait_t *wait = entry->wait;
    wait_note(wait, (size_t)(entry - wait->entries), failure);
    _Atomic uint32_t *word = &wait->word;
    // acq_rel: the last touch; what was noted above is seen by the thread that finds the count at
    // zero.
    uint32_t old = atomic_fetch_sub_explicit(word, 1, memory_order_acq_rel);
    bool decided = (old & WAIT_DECIDED) || (old & WAIT_COUNT) == 1;
    if (decided && (old & WAIT_SLEEPING)) futex_wake(word, 1);
}

void wait_begin(wait_t *wait, keel_wait_mode_t mode, wait_entry_t *entries, size_t count)
{
    wait->mode = mode;
    wait->entries = entries;
    wait->count = count;
    atomic_init(&wait->index, SIZE_MAX);
    atomic_init(&wait->failure, NULL);
    // All entries, and ourselves: nothing is decided while they are added.
    atomic_init(&wait->word, (uint32_t)count + 1);
    for (size_t i = 0; i < count; i++) {
        entries[i].wait = wait;
        entries[i].waiter.fire = wait_fire;
        entries[i].waiter.linked = false;
    }
    uint32_t over = 1; // ourselves, and entries that are not linked
    for (size_t i = 0; i < count; i++) {
        keel_status_t failure = NULL;
        bool decided = atomic_load(&wait->word) & WAIT_DECIDED;
        if (!decided &&
            point_watch(&entries[i].point, &entries[i].waiter, &failure) == POINT_PENDING)
            continue;
        if (!decided) wait_note(wait, i, failure);
        keel_status_release(failure);
        over++;
    }
    atomic_fetch_sub(&wait->word, over);
}

static bool wait_decided(wait_t *wait)
{
    // acquire: pairs with wait_fire.
    uint32_t word = atomic_load_explicit(&wait->word, memory_order_acquire);
    return (word & WAIT_DECIDED) || (word & WAIT_COUNT) == 0;
}

// What a point that is not known to be over hangs on; NULL: nothing.
static promise_t *entry_promise(const wait_entry_t *entry)
{
    const keel_point_t *point = &entry->point;
    if (point_is_past(point)) return NULL;
    return point->semaphore->ops->promised(point->semaphore, point->value, entry->waiter.for_all);
}

// What the first point from there on that is still pending hangs on.
static promise_t *wait_promise(wait_t *wait, size_t from)
{
    promise_t *promise = NULL;
    for (size_t i = 0; !promise && i < wait->count; i++)
        promise = entry_promise(&wait->entries[(from + i) % wait->count]);
    return promise;
}

// Polls what a point hangs on. True: nothing, or that has come true.
static bool entry_poll(const wait_entry_t *entry)
{
    promise_t *promise = entry_promise(entry);
    if (!promise) return true;
    promise->ops->poll(promise);
    promise_t *now = entry_promise(entry);
    bool came = now != promise;
    promise_release(now);
    promise_release(promise);
    return came;
}

// Polls all points up to the first that has not come; if any will do, all.
static void wait_look(wait_t *wait)
{
    bool more = true;
    for (size_t i = 0; more && i < wait->count; i++) {
        more = entry_poll(&wait->entries[i]) || wait->mode == KEEL_ANY;
        if (wait_decided(wait)) more = false;
    }
}

// Polls for as long as was asked for, or as is worth it for what is promised. All points must come,
// so one at a time is looked at until it has; or any will do, and then each is in turn.
static void wait_spin(wait_t *wait, uint64_t deadline_ns, uint64_t spin_ns)
{
    size_t turn = 0;
    promise_t *promise = wait_promise(wait, turn);
    if (promise && spin_ns < promise->ops->poll_ns) spin_ns = promise->ops->poll_ns;
    if (spin_ns && deadline_ns != KEEL_FOREVER) {
        uint64_t now = keel_now_ns(), left = deadline_ns > now ? deadline_ns - now : 0;
        if (left < spin_ns) spin_ns = left;
    }
    uint64_t start = clock_ticks(), ticks = spin_ns ? clock_ticks_of_ns(spin_ns) : 0;
    bool any = wait->mode == KEEL_ANY && wait->count > 1;
    while (!wait_decided(wait) && clock_ticks() - start < ticks) {
        if (promise) promise->ops->poll(promise);
        if (!promise) cpu_relax();
        if (any || !promise || atomic_load_explicit(&promise->refs, memory_order_relaxed) == 1) {
            promise_release(promise); // it has come true, or came only now
            promise = wait_promise(wait, any ? ++turn : 0);
        }
    }
    promise_release(promise);
}

static void promise_ask(promise_t *promise)
{
    if (promise) promise->ops->ask(promise);
    promise_release(promise);
}

// Asks for a wake-up. If all points of a queue must come, it is enough to ask for the last.
static void wait_ask(wait_t *wait)
{
    const keel_semaphore_t *queue = NULL; // whose promise is the last
    promise_t *last = NULL;
    for (size_t i = 0; i < wait->count && !wait_decided(wait); i++) {
        wait_entry_t *entry = &wait->entries[i];
        if (point_is_past(&entry->point) && !entry->waiter.for_all) continue;
        promise_t *promise = point_ask(&entry->point, &entry->waiter);
        if (!promise) continue;
        if (entry->point.semaphore != queue) {
            promise_ask(last);
            last = NULL;
        } else if (promise->number < last->number) {
            promise_release(promise);
            continue;
        }
        promise_release(last);
        last = promise;
        bool all = wait->mode == KEEL_ALL && entry->point.semaphore->ops->one_queue;
        queue = all ? entry->point.semaphore : NULL;
    }
    promise_ask(last);
}

static bool deadline_is_past(uint64_t deadline_ns)
{
    return deadline_ns != KEEL_FOREVER && deadline_ns <= keel_now_ns();
}

// Sleeps until it is woken. If the system gives no thread to wake it,
// it polls by itself now and then, ever more rarely. A thread that will not sleep asks for nothing.
void wait_sleep(wait_t *wait, uint64_t deadline_ns, uint64_t spin_ns)
{
    if (!wait_decided(wait)) wait_look(wait);
    if (!wait_decided(wait)) wait_spin(wait, deadline_ns, spin_ns);
    if (wait_decided(wait) || deadline_is_past(deadline_ns)) return;
    wait_ask(wait);
    bool in_time = true;
    for (uint64_t nap_ns = NAP_LEAST_NS; in_time && !wait_decided(wait);) {
        uint32_t word = atomic_fetch_or(&wait->word, WAIT_SLEEPING) | WAIT_SLEEPING;
        if ((word & WAIT_DECIDED) || (word & WAIT_COUNT) == 0) break;
        uint64_t look_ns = clock_deadline(nap_ns);
        if (futex_wait(&wait->word, word, look_ns < deadline_ns ? look_ns : deadline_ns)) continue;
        in_time = look_ns < deadline_ns;
        if (in_time) wait_look(wait);
        if (nap_ns < NAP_MOST_NS) nap_ns *= 2;
    }
}

keel_status_t wait_end(wait_t *wait, size_t *index)
{
    bool given_up = false;
    for (size_t i = 0; i < wait->count && (atomic_load(&wait->word) & WAIT_COUNT); i++) {
        if (!point_unwatch(&wait->entries[i].point, &wait->entries[i].waiter)) continue;
        atomic_fetch_sub(&wait->word, 1);
        given_up = true;
    }
    // What could not be unlinked is being told right now.
    uint32_t word;
    while ((word = atomic_load_explicit(&wait->word, memory_order_acquire)) & WAIT_COUNT)
        if (atomic_compare_exchange_strong(&wait->word, &word, word | WAIT_SLEEPING))
            futex_wait(&wait->word, word | WAIT_SLEEPING, KEEL_FOREVER);

    size_t decided = atomic_load(&wait->index);
    if (index && decided != SIZE_MAX) *index = decided;
    if (decided != SIZE_MAX) return atomic_load(&wait->failure);
    return given_up ? status_timed_out() : NULL;
}
