// SPDX-License-Identifier: Apache-2.0
#include "kit/pages.h"

#include <limits.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"

typedef struct span_t {
    uintptr_t start, end;
} span_t;

typedef struct piece_t {
    struct piece_t *next;
    struct piece_t *more; // that the same import adds
    span_t span;
    pages_user_t *user; // NULL: it is gone, and the vendor's device is left to its last piece
    pages_user_t own;   // a copy
    uint64_t offset;    // device address less host address
    uint32_t users;
    bool busy;     // it is being locked or unlocked
    bool borrowed; // somebody else has locked it, or nobody yet: not to be unlocked
    bool lost;     // the device was, when it went
} piece_t;

static lock_t pages_guard;
static piece_t *pieces;
static _Atomic uint32_t pages_turn; // counts what sleepers wait for

static bool is_within(const piece_t *piece, span_t span)
{
    return piece->span.start < span.end && span.start < piece->span.end;
}

static bool pages_are_busy(span_t span)
{
    const piece_t *piece = pieces;
    while (piece && !(piece->busy && is_within(piece, span))) piece = piece->next;
    return piece;
}

// Takes the lock when nobody is at these pages.
static void pages_enter(span_t span)
{
    lock_enter(&pages_guard);
    while (pages_are_busy(span)) {
        uint32_t seen = atomic_load(&pages_turn);
        lock_leave(&pages_guard);
        futex_wait(&pages_turn, seen, KEEL_FOREVER);
        lock_enter(&pages_guard);
    }
}

static void pages_leave(void)
{
    atomic_fetch_add(&pages_turn, 1);
    lock_leave(&pages_guard);
    futex_wake(&pages_turn, INT_MAX);
}

// The device's piece at an address; NULL: none, and *stop is where the next one of anybody's begins
// or ends.
static piece_t *piece_at(const pages_user_t *user, uintptr_t at, uintptr_t *stop)
{
    for (piece_t *piece = pieces; piece; piece = piece->next) {
        const span_t *span = &piece->span;
        if (piece->user == user && span->start <= at && at < span->end) return piece;
        if (span->start > at && span->start < *stop) *stop = span->start;
        if (span->end > at && span->end < *stop) *stop = span->end;
    }
    return NULL;
}

// Adds what the device has no pieces for, still to be locked.
static keel_status_t pieces_add(pages_user_t *user, span_t span, piece_t **added)
{
    for (uintptr_t at = span.start; at < span.end;) {
        uintptr_t stop = span.end;
        piece_t *piece = piece_at(user, at, &stop);
        if (!piece) {
            piece = mem_zalloc(sizeof *piece);
            if (!piece) return status_no_memory();
            *piece = (piece_t){.next = pieces, .more = *added, .span = {at, stop}};
            piece->user = user;
            piece->busy = piece->borrowed = true;
            piece->own = *user;
            pieces = *added = piece;
        }
        at = piece->span.end;
    }
    return NULL;
}

// Asks where the device sees these bytes, as far as they lie in the piece.
static keel_status_t piece_find(const piece_t *piece, span_t bytes, uint64_t *offset)
{
    uintptr_t first = bytes.start > piece->span.start ? bytes.start : piece->span.start;
    uintptr_t last = (bytes.end < piece->span.end ? bytes.end : piece->span.end) - 1;
    uint64_t address = 0;
    KEEL_TRY(piece->own.ops->address(&piece->own, (void *)last, &address));
    KEEL_TRY(piece->own.ops->address(&piece->own, (void *)first, &address));
    *offset = address - first;
    return NULL;
}

static keel_status_t piece_refuse(keel_status_t status)
{
    if (!status || keel_status_code(status) == KEEL_DEVICE_LOST) return status;
    keel_status_release(status);
    return KEEL_ERROR(KEEL_FAILED_PRECONDITION,
                      "external->handle.host: somebody else has page-locked a part of the memory's "
                      "pages; it must be all of the memory, or nothing");
}

static void piece_note(piece_t *piece, uint64_t offset, bool borrowed)
{
    lock_enter(&pages_guard);
    piece->offset = offset;
    piece->borrowed = borrowed;
    lock_leave(&pages_guard);
}

// Locks a piece for these bytes. What others have locked need not be whole pages, and a vendor may
// refuse to lock what comes from himself.
static keel_status_t piece_lock(piece_t *piece, span_t bytes)
{
    const pages_ops_t *ops = piece->own.ops;
    void *data = (void *)piece->span.start;
    uint64_t offset = 0, size = piece->span.end - piece->span.start;
    bool already = false;
    keel_status_t status = ops->lock(&piece->own, data, size, &already);
    bool borrows = already || keel_status_code(status) == KEEL_INVALID_ARGUMENT;
    if (status && !borrows) return status;
    keel_status_t unknown = piece_find(piece, borrows ? bytes : piece->span, &offset);
    if (!unknown) {
        keel_status_release(status);
        piece_note(piece, offset, borrows);
        return NULL;
    }
    if (!borrows) ops->unlock(&piece->own, data);
    if (!status) return borrows ? piece_refuse(unknown) : unknown;
    keel_status_release(unknown);
    return status;
}

// Of pages that others have locked a part of, only that part can be imported.
static keel_status_t borrowed_check(const pages_user_t *user, span_t bytes)
{
    for (uintptr_t at = bytes.start; at < bytes.end;) {
        uintptr_t stop = bytes.end;
        uint64_t offset;
        lock_enter(&pages_guard);
        const piece_t *piece = piece_at(user, at, &stop); // stays, for we are counted
        bool borrowed = piece->borrowed;
        lock_leave(&pages_guard);
        if (borrowed) KEEL_TRY(piece_refuse(piece_find(piece, bytes, &offset)));
        at = piece->span.end;
    }
    return NULL;
}

static bool piece_is_lost(const piece_t *piece)
{
    return piece->user ? atomic_load(piece->own.lost) != NULL : piece->lost;
}

// Whether nobody needs it. One of a lost device cannot be unlocked, and goes with the device.
static bool piece_is_idle(const piece_t *piece)
{
    if (piece->users || piece->busy || (piece->user && piece_is_lost(piece))) return false;
    if (piece->borrowed) return true;
    for (const piece_t *other = pieces; other; other = other->next)
        if (other != piece && is_within(other, piece->span)) return false;
    return true;
}

static void piece_remove(piece_t *piece)
{
    piece_t **at = &pieces;
    while (*at != piece) at = &(*at)->next;
    *at = piece->next;
}

// Whether a vendor's device is left to the last of its pieces, and that was it.
static bool vendor_is_left(const piece_t *removed)
{
    const piece_t *other = pieces;
    while (other && other->own.vendor != removed->own.vendor) other = other->next;
    return !removed->user && !other;
}

// Removes what nobody needs any more. Under the lock, which is left meanwhile.
static void pieces_clean(void)
{
    piece_t *piece = pieces;
    while (piece) {
        if (!piece_is_idle(piece)) {
            piece = piece->next;
            continue;
        }
        bool locked = !piece->borrowed && !piece_is_lost(piece);
        piece->busy = true;
        lock_leave(&pages_guard);
        if (locked) piece->own.ops->unlock(&piece->own, (void *)piece->span.start);
        lock_enter(&pages_guard);
        piece_remove(piece);
        bool last = vendor_is_left(piece);
        lock_leave(&pages_guard);
        if (last) piece->own.ops->close(&piece->own);
        mem_free(piece);
        lock_enter(&pages_guard);
        piece = pieces; // others may have waited for this one
    }
}

static void pieces_count(const pages_user_t *user, span_t span, int change)
{
    for (piece_t *piece = pieces; piece; piece = piece->next)
        if (piece->user == user && is_within(piece, span)) piece->users += (uint32_t)change;
}

// Where the device sees them: all at the same distance.
static keel_status_t pieces_place(const pages_user_t *user, span_t span, uint64_t *offset)
{
    bool torn = false;
    uintptr_t stop = span.end;
    *offset = piece_at(user, span.start, &stop)->offset;
    for (const piece_t *piece = pieces; piece; piece = piece->next)
        torn |= piece->user == user && is_within(piece, span) && piece->offset != *offset;
    if (!torn) return NULL;
    return KEEL_ERROR(KEEL_UNSUPPORTED, "external->handle.host: to the device, parts of the memory "
                                        "that were imported before lie elsewhere than the rest");
}

static span_t pages_of(span_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return (span_t){bytes.start & ~(page - 1), (bytes.end + page - 1) & ~(page - 1)};
}

static span_t bytes_of(const void *data, uint64_t size)
{
    return (span_t){(uintptr_t)data, (uintptr_t)data + size};
}

keel_status_t pages_lock(pages_user_t *user, void *data, uint64_t size, uint64_t *address)
{
    span_t bytes = bytes_of(data, size), span = pages_of(bytes);
    piece_t *added = NULL;
    uint64_t offset = 0;
    pages_enter(span);
    keel_status_t status = pieces_add(user, span, &added);
    pieces_count(user, span, 1);
    lock_leave(&pages_guard);
    for (piece_t *piece = added; piece && !status; piece = piece->more)
        status = piece_lock(piece, bytes);
    if (!status) status = borrowed_check(user, bytes);
    lock_enter(&pages_guard);
    for (piece_t *piece = added; piece; piece = piece->more) piece->busy = false;
    if (!status) status = pieces_place(user, span, &offset);
    if (status) {
        pieces_count(user, span, -1);
        pieces_clean();
    }
    pages_leave();
    *address = (uint64_t)(uintptr_t)data + offset;
    return status;
}

void pages_unlock(pages_user_t *user, const void *data, uint64_t size)
{
    lock_enter(&pages_guard);
    pieces_count(user, pages_of(bytes_of(data, size)), -1);
    pieces_clean();
    pages_leave();
}

void pages_close(pages_user_t *user)
{
    bool left = false;
    lock_enter(&pages_guard);
    for (piece_t *piece = pieces; piece; piece = piece->next) {
        if (piece->user != user) continue;
        piece->lost = piece_is_lost(piece);
        piece->user = NULL;
        left = true;
    }
    pieces_clean();
    pages_leave();
    if (!left) user->ops->close(user);
}
