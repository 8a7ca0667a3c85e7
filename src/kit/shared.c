// SPDX-License-Identifier: Apache-2.0
#include "kit/shared.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kit/object.h"
#include "kit/watcher.h"

// What processes of the same layout begin their page with.
#define PAGE_MAGIC UINT64_C(0x3130306d65736c6b) // "klsem001"

enum { TRIES = 1000 }; // to signal, while other processes do

typedef enum cause_t {
    CAUSE_NONE,
    CAUSE_CLAIMED, // a process writes it, or died over it
    CAUSE_WRITTEN, // with release; pairs with page_cause
} cause_t;

typedef struct page_t {
    _Atomic uint64_t magic;                 // written last
    _Atomic uint64_t value;                 // and SEMAPHORE_FAILED, which comes behind the cause
    bell_t bell;                            // rung when the value or that has changed
    _Atomic uint32_t cause;                 // cause_t
    _Atomic uint32_t code;                  // of the cause: keel_code_t
    _Atomic uint64_t text[SHARED_TEXT / 8]; // of the cause, in words: others may write meanwhile
} page_t;

typedef struct shared_t {
    watched_t watched; // first
    _Atomic bool met;  // another process has it, or could have
} shared_t;

static shared_t *shared_of(remote_t *remote)
{
    return (shared_t *)(void *)remote;
}

static page_t *page_of(remote_t *remote)
{
    return shared_of(remote)->watched.page.memory;
}

static const char *name_of(const remote_t *remote)
{
    return remote->semaphore.name ? remote->semaphore.name : "";
}

// The first cause stays. If its process has not written it by now, there is none.
static void page_fail(page_t *page, keel_status_t cause)
{
    uint32_t none = CAUSE_NONE;
    if (atomic_compare_exchange_strong(&page->cause, &none, CAUSE_CLAIMED)) {
        char text[SHARED_TEXT] = "";
        uint64_t word;
        const char *path = keel_status_path(cause);
        snprintf(text, sizeof text, "%s%s%s%s", keel_status_message(cause), *path ? " (" : "", path,
                 *path ? ")" : "");
        for (size_t i = 0; i < SHARED_TEXT / 8; i++) {
            memcpy(&word, text + 8 * i, 8);
            // relaxed: what follows publishes them.
            atomic_store_explicit(&page->text[i], word, memory_order_relaxed);
        }
        atomic_store_explicit(&page->code, keel_status_code(cause), memory_order_relaxed);
        atomic_store(&page->cause, CAUSE_WRITTEN);
    }
    atomic_fetch_or(&page->value, SEMAPHORE_FAILED);
    bell_ring(&page->bell);
}

// Copies the text of the cause; what is no text becomes a space.
static void page_text(page_t *page, char text[SHARED_TEXT])
{
    for (size_t i = 0; i < SHARED_TEXT / 8; i++) {
        uint64_t word = atomic_load_explicit(&page->text[i], memory_order_relaxed);
        memcpy(text + 8 * i, &word, 8);
    }
    text[SHARED_TEXT - 1] = 0;
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f) *at = ' ';
}

// Why another process failed it.
static keel_status_t page_cause(remote_t *remote)
{
    page_t *page = page_of(remote);
    char text[SHARED_TEXT] = "it left no cause";
    keel_code_t code = KEEL_ABORTED;
    // acquire: pairs with page_fail.
    if (atomic_load_explicit(&page->cause, memory_order_acquire) == CAUSE_WRITTEN) {
        page_text(page, text);
        code = (keel_code_t)atomic_load_explicit(&page->code, memory_order_relaxed);
    }
    if (code == KEEL_OK) code = KEEL_INTERNAL;
    return KEEL_ERROR(code, "another process failed semaphore '%s': %s", name_of(remote), text);
}

// Fails it for all, and returns why.
static keel_status_t shared_break(remote_t *remote, keel_status_t cause)
{
    page_fail(page_of(remote), cause);
    return cause;
}

// Whether something waits here for what no other process will signal.
static bool shared_is_left(remote_t *remote)
{
    shared_t *shared = shared_of(remote);
    return watcher_is_here() && atomic_load(&shared->met) &&
           shared_page_is_alone(&shared->watched.page);
}

// What is known comes in *value. Whether other processes are left is asked before the value is
// read: one that signals and ends has signalled.
static keel_status_t shared_load(remote_t *remote, uint64_t *value)
{
    uint64_t known = *value;
    bool left = shared_is_left(remote);
    // acquire: pairs with the signal of another process. seq_cst for the bell.
    uint64_t now = atomic_load(&page_of(remote)->value);
    *value = now & ~SEMAPHORE_FAILED;
    if (*value < known) {
        *value = known;
        return shared_break(
            remote,
            KEEL_ERROR(KEEL_ABORTED, "another process has lowered semaphore '%s' from %llu to %llu",
                       name_of(remote), (unsigned long long)known,
                       (unsigned long long)(now & ~SEMAPHORE_FAILED)));
    }
    if (now & SEMAPHORE_FAILED) return page_cause(remote);
    uint64_t awaited = left ? remote_awaited(remote) : UINT64_MAX;
    if (awaited == UINT64_MAX || awaited <= *value) return NULL;
    return shared_break(
        remote,
        KEEL_ERROR(KEEL_ABORTED,
                   "no other process has semaphore '%s' any more, which is at %llu; %llu is "
                   "awaited",
                   name_of(remote), (unsigned long long)*value, (unsigned long long)awaited));
}

static keel_status_t shared_signal(remote_t *remote, uint64_t value)
{
    page_t *page = page_of(remote);
    uint64_t old = atomic_load(&page->value);
    for (int i = 0; i < TRIES; i++) {
        // A failed semaphore's bit is above all values.
        if (value <= old) return remote_refusal(remote, value);
        // release: publishes the writes that the signal stands for. seq_cst for the bell.
        if (!atomic_compare_exchange_strong(&page->value, &old, value)) continue;
        bell_ring(&page->bell);
        return NULL;
    }
    return KEEL_ERROR(KEEL_ABORTED, "other processes do not cease to change semaphore '%s'",
                      name_of(remote));
}

static void shared_fail(remote_t *remote, keel_status_t cause)
{
    page_fail(page_of(remote), cause);
}

static void shared_watch(remote_t *remote)
{
    watcher_watch(&shared_of(remote)->watched);
}

static keel_status_t shared_export(remote_t *remote, keel_external_semaphore_t *external)
{
    shared_t *shared = shared_of(remote);
    if (external->kind != KEEL_SEMAPHORE_SHARED_FD)
        return semaphore_not_exported(&remote->semaphore, external);
    KEEL_TRY(shared_page_export(&shared->watched.page, &external->handle.fd));
    atomic_store(&shared->met, true);
    return NULL;
}

static void shared_destroy(remote_t *remote)
{
    shared_t *shared = shared_of(remote);
    if (object_is_ours(&remote->semaphore.object)) watcher_remove(&shared->watched);
    shared_page_close(&shared->watched.page);
    mem_free_aligned(shared);
}

static const remote_ops_t shared_ops = {
    .load = shared_load,
    .signal = shared_signal,
    .fail = shared_fail,
    .watch = shared_watch,
    .destroy = shared_destroy,
    .export = shared_export,
    .lasts = true,
};

// Makes the semaphore over a page, which it takes over.
static keel_status_t shared_make(const shared_page_t *from, uint64_t value, bool met,
                                 keel_semaphore_t **semaphore)
{
    shared_page_t page = *from;
    shared_t *shared = mem_zalloc_aligned(sizeof *shared, _Alignof(shared_t));
    if (!shared) {
        shared_page_close(&page);
        return status_no_memory();
    }
    remote_init(&shared->watched.remote, &shared_ops, NULL, value);
    shared->watched.page = page;
    shared->watched.bell = &((page_t *)page.memory)->bell;
    atomic_init(&shared->met, met);
    watcher_add(&shared->watched);
    *semaphore = &shared->watched.remote.semaphore;
    return NULL;
}

keel_status_t shared_create(uint64_t initial, keel_semaphore_t **semaphore)
{
    shared_page_t page;
    KEEL_TRY(shared_page_create(sizeof(page_t), &page));
    page_t *memory = page.memory;
    atomic_init(&memory->value, initial);
    atomic_store(&memory->magic, PAGE_MAGIC);
    return shared_make(&page, initial, false, semaphore);
}

// That the page is of this layout, and the value where the caller knows it is.
static keel_status_t page_check(page_t *page, uint64_t initial, uint64_t *value)
{
    if (atomic_load(&page->magic) != PAGE_MAGIC)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                          "external->handle.fd is no semaphore that this version of Keel shares");
    *value = atomic_load(&page->value) & ~SEMAPHORE_FAILED;
    if (*value >= initial) return NULL;
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                      "options->initial is %llu, but the semaphore has only reached %llu",
                      (unsigned long long)initial, (unsigned long long)*value);
}

keel_status_t shared_import(int fd, uint64_t initial, keel_semaphore_t **semaphore)
{
    shared_page_t page;
    uint64_t value = 0;
    KEEL_TRY(shared_page_open(fd, sizeof(page_t), &page));
    keel_status_t status = page_check(page.memory, initial, &value);
    if (!status) return shared_make(&page, value, true, semaphore);
    shared_page_close(&page);
    return status;
}
