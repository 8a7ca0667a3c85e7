// SPDX-License-Identifier: Apache-2.0
#include "kit/watcher.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"

enum {
    LOOK_NS = 100000000, // how often each is looked at, rung or not; and how long the thread stays
                         // when nothing is awaited
    POLL_NS = 1000000,   // the same where bells are of no use
    VAIN = 64,           // so many wake-ups in a row without news are more than chance
};

static struct {
    lock_t lock;    // for what follows, but `word`
    watched_t *all; // open
    remote_list_t awaited;
    const remote_t *looked_at; // that the thread has a reference of; NULL: none
    bool running;              // there is a thread
    _Atomic uint32_t word;     // counts changes that the thread must see
    _Atomic bool without_any;  // the system has no futex_wait_any
    pthread_once_t once;
} watcher = {.once = PTHREAD_ONCE_INIT};

static THREAD_LOCAL bool here;

bool watcher_is_here(void)
{
    return here;
}

static watched_t *watched_of(remote_t *remote)
{
    return (watched_t *)(void *)remote;
}

static void fork_prepare(void)
{
    lock_enter(&watcher.lock);
}

static void fork_parent(void)
{
    lock_leave(&watcher.lock);
}

// The thread and all that is open stay with the parent, whose end is not to wait for the child's.
static void fork_child(void)
{
    for (watched_t *w = watcher.all; w; w = w->next) shared_page_leave(&w->page);
    watcher.all = NULL;
    watcher.awaited = (remote_list_t){0};
    watcher.looked_at = NULL;
    watcher.running = here = false;
    lock_leave(&watcher.lock);
}

static void watcher_init(void)
{
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static remote_t *entry_take(void)
{
    lock_enter(&watcher.lock);
    remote_t *remote = remote_list_take(&watcher.awaited);
    watcher.looked_at = remote;
    lock_leave(&watcher.lock);
    return remote;
}

// Gives back what entry_take has retained. The last reference goes without the lock, and it stays
// noted as this thread's: no other can come but that of watcher_is_last's caller.
static void entry_drop(remote_t *remote)
{
    _Atomic uint32_t *count = &remote->semaphore.object.refs;
    lock_enter(&watcher.lock);
    uint32_t refs = atomic_load(count);
    while (refs > 1 && !atomic_compare_exchange_weak(count, &refs, refs - 1)) {
    }
    if (refs > 1) watcher.looked_at = NULL;
    lock_leave(&watcher.lock);
    if (refs == 1) keel_semaphore_release(&remote->semaphore);
}

bool watcher_is_last(const keel_semaphore_t *semaphore)
{
    lock_enter(&watcher.lock);
    bool looks = watcher.looked_at && &watcher.looked_at->semaphore == semaphore;
    bool last = atomic_load(&semaphore->object.refs) <= 1u + looks;
    lock_leave(&watcher.lock);
    return last;
}

// True if it was not on the list.
static bool entry_add(remote_t *remote)
{
    lock_enter(&watcher.lock);
    bool added = remote_list_add(&watcher.awaited, remote);
    lock_leave(&watcher.lock);
    return added;
}

// What the thread sleeps on.
typedef struct sleep_t {
    futex_word_t words[FUTEX_WORDS]; // the first is the watcher's own
    uint32_t count;
    bool idle;     // nothing is awaited
    bool news;     // something had come
    bool crowded;  // there are more than it can sleep on
    bool in_time;  // something has woken it
    uint32_t vain; // how often a bell has since there was news
} sleep_t;

// Looks at one that is awaited, and goes on to watch it if it still is.
static void entry_look(remote_t *remote, sleep_t *sleep)
{
    watched_t *watched = watched_of(remote);
    uint32_t expected = bell_listen(watched->bell);
    remote_look(remote);
    uint64_t now = atomic_load(&remote->semaphore.value);
    sleep->news |= now != watched->seen; // also what another thread has found meanwhile
    watched->seen = now;
    if (remote_awaited(remote) == UINT64_MAX) return;
    entry_add(remote);
    sleep->idle = false;
    if (sleep->count < FUTEX_WORDS)
        sleep->words[sleep->count++] = (futex_word_t){watched->bell, expected, true};
    else
        sleep->crowded = true;
}

// Each is off the list while it is looked at. The thread sleeps without a reference: what is freed
// meanwhile is only an address to it.
static void watcher_look(sleep_t *sleep)
{
    sleep->words[0] = (futex_word_t){&watcher.word, atomic_load(&watcher.word), false};
    sleep->count = 1;
    sleep->idle = true;
    sleep->news = sleep->crowded = false;
    lock_enter(&watcher.lock);
    size_t count = watcher.awaited.count;
    lock_leave(&watcher.lock);
    while (count--) {
        remote_t *remote = entry_take();
        if (!remote) continue;
        entry_look(remote, sleep);
        entry_drop(remote);
    }
}

static void watcher_sleep(sleep_t *sleep)
{
    const futex_word_t *own = &sleep->words[0];
    bool polls = sleep->crowded || sleep->vain > VAIN || atomic_load(&watcher.without_any);
    uint64_t deadline_ns = clock_deadline(polls && !sleep->idle ? POLL_NS : LOOK_NS);
    if (polls || sleep->idle)
        futex_wait(own->word, own->expected, deadline_ns);
    else if (!futex_wait_any(sleep->words, sleep->count, deadline_ns))
        atomic_store(&watcher.without_any, true);
    sleep->in_time = keel_now_ns() < deadline_ns;
    // A bell that rings for nothing may be another process's malice.
    bool rung = sleep->in_time && atomic_load(own->word) == own->expected;
    if (rung) sleep->vain++;
}

// Whether the thread is over: nothing was awaited for a while, or nothing is open.
static bool watcher_ends(bool waited)
{
    lock_enter(&watcher.lock);
    bool ends = !watcher.awaited.first && (waited || !watcher.all);
    if (ends) watcher.running = false;
    lock_leave(&watcher.lock);
    return ends;
}

static void *watcher_main(void *argument)
{
    sleep_t sleep = {.in_time = true};
    here = true;
    watcher_look(&sleep);
    while (!sleep.idle || !watcher_ends(!sleep.in_time)) {
        watcher_sleep(&sleep);
        watcher_look(&sleep);
        if (sleep.news) sleep.vain = 0;
    }
    return argument;
}

static void watcher_wake(void)
{
    atomic_fetch_add(&watcher.word, 1);
    futex_wake(&watcher.word, 1);
}

// Has the thread look, and starts it if there is none. False if there is none to be had.
static bool watcher_start(void)
{
    lock_enter(&watcher.lock);
    if (!watcher.running) watcher.running = thread_detach("keel-shared", watcher_main, NULL);
    bool running = watcher.running;
    lock_leave(&watcher.lock);
    if (running) watcher_wake();
    return running;
}

void watcher_watch(watched_t *watched)
{
    remote_t *remote = &watched->remote;
    if (!entry_add(remote) || watcher_start()) return;
    remote->semaphore.ops->fail(&remote->semaphore,
                                KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED,
                                           "there is no thread to watch semaphore '%s'",
                                           remote->semaphore.name ? remote->semaphore.name : ""));
}

void watcher_add(watched_t *watched)
{
    pthread_once(&watcher.once, watcher_init);
    lock_enter(&watcher.lock);
    watched->previous = NULL;
    watched->next = watcher.all;
    if (watcher.all) watcher.all->previous = watched;
    watcher.all = watched;
    lock_leave(&watcher.lock);
}

void watcher_remove(watched_t *watched)
{
    lock_enter(&watcher.lock);
    *(watched->previous ? &watched->previous->next : &watcher.all) = watched->next;
    if (watched->next) watched->next->previous = watched->previous;
    remote_list_remove(&watcher.awaited, &watched->remote);
    if (watcher.looked_at == &watched->remote) watcher.looked_at = NULL;
    bool last = !watcher.all && watcher.running;
    lock_leave(&watcher.lock);
    if (last) watcher_wake(); // the thread ends
}
