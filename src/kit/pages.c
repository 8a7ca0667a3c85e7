// SPDX-License-Identifier: Apache-2.0
#include "kit/pages.h"

#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/memory.h"
#include "base/spans.h"
#include "base/status.h"
#include "base/thread.h"
#include "kit/mapping.h"

typedef struct span_t {
    uintptr_t start, end;
} span_t;

typedef struct piece_t {
    span_node_t span;     // first
    struct piece_t *more; // that the same import adds
    pages_user_t *user;   // NULL: it is gone, and the vendor's device is left to its last piece
    pages_user_t own;     // a copy
    uint64_t offset;      // device address less host address
    uint32_t users;
    bool busy;     // it is being locked or unlocked
    bool borrowed; // it was locked already, or is not yet: not to be unlocked
    bool constant; // it could not be written, and is locked for reading alone
    bool lost;     // the device was, when it went
} piece_t;

static lock_t pages_guard;
static spans_t pieces;
static _Atomic uint32_t pages_turn; // counts what sleepers wait for

static spans_t parents; // those of the parent's, in the child of a fork: kept, and of no use
static pthread_once_t pages_once = PTHREAD_ONCE_INIT;

static const span_t everything = {0, UINTPTR_MAX};

static void guard_enter(void)
{
    lock_enter(&pages_guard);
}

static void guard_leave(void)
{
    lock_leave(&pages_guard);
}

// The child has locked nothing, and the threads that were locking stay with the parent.
static void pieces_forget(void)
{
    parents = pieces;
    pieces = (spans_t){0};
    lock_leave(&pages_guard);
}

static void pages_init(void)
{
    pthread_atfork(guard_enter, guard_leave, pieces_forget);
}

// The next piece, of anybody's, with pages of the span; `after` NULL: the first.
static piece_t *piece_next(span_t span, const piece_t *after)
{
    return (piece_t *)(void *)spans_next(&pieces, span.start, span.end,
                                         after ? &after->span : NULL);
}

static bool pages_are_busy(span_t span)
{
    const piece_t *piece = piece_next(span, NULL);
    while (piece && !piece->busy) piece = piece_next(span, piece);
    return piece;
}

// Takes the lock when no thread locks or unlocks these pages.
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

// Whether it is of the same library: others know nothing of what that has locked.
static bool piece_is_of(const piece_t *piece, const pages_user_t *user)
{
    return piece->own.ops == user->ops && piece->own.driver == user->driver;
}

// The device's piece at an address; NULL: none, and *stop is where the next one of its library
// begins or ends, if that is before.
static piece_t *piece_at(const pages_user_t *user, uintptr_t at, uintptr_t *stop)
{
    span_t rest = {at, *stop};
    for (piece_t *piece = piece_next(rest, NULL); piece; piece = piece_next(rest, piece)) {
        if (!piece_is_of(piece, user)) continue;
        if (piece->span.start > at) {
            if (piece->span.start < *stop) *stop = piece->span.start;
            break;
        }
        if (piece->user == user) return piece;
        if (piece->span.end < *stop) *stop = piece->span.end;
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
            *piece = (piece_t){.more = *added, .span = {.start = at, .end = stop}};
            piece->user = user;
            piece->busy = piece->borrowed = true;
            piece->own = *user;
            spans_insert(&pieces, &piece->span);
            *added = piece;
        }
        at = piece->span.end;
    }
    return NULL;
}

static span_t span_of(const piece_t *piece)
{
    return (span_t){piece->span.start, piece->span.end};
}

// Asks where the device sees these bytes, as far as they lie in the piece. What others have locked
// in two parts lies at two places; that neither end has been locked with the other shows it.
static keel_status_t piece_find(const piece_t *piece, span_t bytes, uint64_t *offset)
{
    uintptr_t first = bytes.start > piece->span.start ? bytes.start : piece->span.start;
    uintptr_t last = (bytes.end < piece->span.end ? bytes.end : piece->span.end) - 1;
    uint64_t begin = 0, end = 0;
    KEEL_TRY(piece->own.ops->address(&piece->own, (void *)last, &end));
    KEEL_TRY(piece->own.ops->address(&piece->own, (void *)first, &begin));
    *offset = begin - first;
    if (end - begin == last - first) return NULL;
    return KEEL_ERROR(
        KEEL_FAILED_PRECONDITION,
        "external->handle.host: other code of the process has page-locked the memory "
        "in several parts, which the device does not see side by side; lock it by one "
        "call, or import each part");
}

static keel_status_t piece_refuse(keel_status_t status)
{
    keel_code_t code = keel_status_code(status);
    if (!status || code == KEEL_DEVICE_LOST || code == KEEL_FAILED_PRECONDITION) return status;
    keel_status_release(status);
    return KEEL_ERROR(
        KEEL_FAILED_PRECONDITION,
        "external->handle.host: a part of the memory's pages is page-locked by other code "
        "of the process; it must be all of the memory, or nothing");
}

static void piece_note(piece_t *piece, uint64_t offset, bool borrowed, bool constant)
{
    lock_enter(&pages_guard);
    piece->offset = offset;
    piece->borrowed = borrowed;
    piece->constant = constant;
    lock_leave(&pages_guard);
}

// Locks a piece for these bytes. What others have locked need not be whole pages, and a vendor may
// refuse to lock what comes from himself.
static keel_status_t piece_try(piece_t *piece, span_t bytes, bool written)
{
    const pages_ops_t *ops = piece->own.ops;
    void *data = (void *)piece->span.start;
    uint64_t address = 0, offset = 0, size = piece->span.end - piece->span.start;
    bool already = false;
    keel_status_t status = ops->lock(&piece->own, data, size, written, &address, &already);
    if (!status && !already) {
        piece_note(piece, address - piece->span.start, false, !written);
        return NULL;
    }
    if (status && keel_status_code(status) != KEEL_INVALID_ARGUMENT) return status;
    keel_status_t unknown = piece_find(piece, bytes, &offset);
    if (!unknown) {
        keel_status_release(status);
        piece_note(piece, offset, true, false);
        return NULL;
    }
    if (!status) return piece_refuse(unknown);
    keel_status_release(unknown);
    return status;
}

// Whether to lock for reading alone what cannot be locked because of `status`, which is consumed.
// Of private mappings of files a vendor may make no end; what is wrong with others he has said.
static keel_status_t constant_check(const piece_t *piece, span_t bytes, keel_status_t status)
{
    const void *data = (const void *)bytes.start;
    unsigned long long size = bytes.end - bytes.start;
    mapping_t mapping = MAPPING_NONE;
    keel_status_t unknown =
        mapping_of((const void *)piece->span.start, piece->span.end - piece->span.start, &mapping);
    if (!unknown && mapping == MAPPING_NONE) return status;
    keel_status_release(status);
    if (unknown)
        return keel_status_wrap(unknown,
                                "external->handle.host is %p: the %llu bytes there cannot be "
                                "page-locked for writing, and for reading only if they are no "
                                "private mapping of a file, which cannot be told",
                                data, size);
    if (mapping == MAPPING_PLAIN) return NULL;
    return KEEL_ERROR(KEEL_UNSUPPORTED,
                      "external->handle.host is %p: of the %llu bytes there, which cannot be "
                      "page-locked for writing, some are a private mapping of a file, and to lock "
                      "those for reading might never end; map the file with MAP_SHARED",
                      data, size);
}

// What is only to be read is locked like all else if it can be, for the next import. Who has locked
// or allocated it is no matter of reading or writing.
static keel_status_t piece_lock(piece_t *piece, span_t bytes, bool written)
{
    keel_status_t status = piece_try(piece, bytes, true);
    keel_code_t code = keel_status_code(status);
    if (!status || written || code == KEEL_RESOURCE_EXHAUSTED || code == KEEL_DEVICE_LOST ||
        code == KEEL_FAILED_PRECONDITION)
        return status;
    KEEL_TRY(constant_check(piece, bytes, status));
    status = piece_try(piece, bytes, false);
    code = keel_status_code(status);
    if (code != KEEL_UNSUPPORTED && code != KEEL_INVALID_ARGUMENT) return status;
    return keel_status_wrap(status_as(status, KEEL_UNSUPPORTED),
                            "external->handle.host: the memory cannot be written, and the device "
                            "reads only what it could write as well");
}

static keel_status_t written_check(const pages_user_t *user, span_t span)
{
    const piece_t *piece = piece_next(span, NULL);
    while (piece && !(piece->constant && piece_is_of(piece, user))) piece = piece_next(span, piece);
    if (!piece) return NULL;
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                      "a part of it could not be written when it was imported before");
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

// Whether it is not needed: what others borrow is. One of a lost device cannot be unlocked, and
// goes with the device.
static bool piece_is_idle(const piece_t *piece)
{
    if (piece->users || piece->busy || (piece->user && piece_is_lost(piece))) return false;
    if (piece->borrowed) return true;
    const piece_t *other = piece_next(span_of(piece), NULL);
    while (other && (other == piece || !other->borrowed || !piece_is_of(other, &piece->own)))
        other = piece_next(span_of(piece), other);
    return !other;
}

// Whether a vendor's device is left to the last of its pieces, and that was it.
static bool vendor_is_left(const piece_t *removed)
{
    if (removed->user) return false;
    const piece_t *other = piece_next(everything, NULL);
    while (other && other->own.vendor != removed->own.vendor) other = piece_next(everything, other);
    return !other;
}

// Removes what is not needed any more, in the span and in what was built on that. Under the lock,
// which is left meanwhile.
static void pieces_clean(span_t span)
{
    piece_t *piece = piece_next(span, NULL);
    while (piece) {
        if (!piece_is_idle(piece)) {
            piece = piece_next(span, piece);
            continue;
        }
        bool locked = !piece->borrowed && !piece_is_lost(piece);
        piece->busy = true;
        lock_leave(&pages_guard);
        if (locked) piece->own.ops->unlock(&piece->own, (void *)piece->span.start);
        lock_enter(&pages_guard);
        spans_remove(&pieces, &piece->span);
        bool last = vendor_is_left(piece);
        lock_leave(&pages_guard);
        if (last) piece->own.ops->close(&piece->own);
        if (piece->span.start < span.start) span.start = piece->span.start;
        if (piece->span.end > span.end) span.end = piece->span.end;
        mem_free(piece);
        lock_enter(&pages_guard);
        piece = piece_next(span, NULL); // others may have waited for this one
    }
}

static void pieces_count(const pages_user_t *user, span_t span, int change)
{
    for (piece_t *piece = piece_next(span, NULL); piece; piece = piece_next(span, piece))
        if (piece->user == user) piece->users += (uint32_t)change;
}

// Where the device sees them: all at the same distance.
static keel_status_t pieces_place(const pages_user_t *user, span_t span, uint64_t *offset)
{
    bool torn = false;
    uintptr_t stop = span.end;
    *offset = piece_at(user, span.start, &stop)->offset;
    for (const piece_t *piece = piece_next(span, NULL); piece; piece = piece_next(span, piece))
        torn |= piece->user == user && piece->offset != *offset;
    if (!torn) return NULL;
    return KEEL_ERROR(KEEL_UNSUPPORTED,
                      "external->handle.host: a part of the memory is imported already, and lies "
                      "elsewhere to the device than the rest would; import all of it first, and "
                      "parts of it then");
}

// What is locked for these bytes.
static span_t span_for(const pages_user_t *user, span_t bytes)
{
    if (user->bytewise) return bytes;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return (span_t){bytes.start & ~(page - 1), (bytes.end + page - 1) & ~(page - 1)};
}

static span_t bytes_of(const void *data, uint64_t size)
{
    return (span_t){(uintptr_t)data, (uintptr_t)data + size};
}

keel_status_t pages_lock(pages_user_t *user, void *data, uint64_t size, bool written,
                         uint64_t *address)
{
    span_t bytes = bytes_of(data, size), span = span_for(user, bytes);
    piece_t *added = NULL;
    uint64_t offset = 0;
    pthread_once(&pages_once, pages_init);
    pages_enter(span);
    keel_status_t status = pieces_add(user, span, &added);
    bool counted = !status; // else there are gaps, where others may add pieces of theirs
    if (counted) pieces_count(user, span, 1);
    lock_leave(&pages_guard);
    for (piece_t *piece = added; piece && !status; piece = piece->more)
        status = piece_lock(piece, bytes, written);
    if (!status) status = borrowed_check(user, bytes);
    lock_enter(&pages_guard);
    for (piece_t *piece = added; piece; piece = piece->more) piece->busy = false;
    if (!status && written) status = written_check(user, span);
    if (!status) status = pieces_place(user, span, &offset);
    if (status && counted) pieces_count(user, span, -1);
    if (status) pieces_clean(span);
    pages_leave();
    *address = (uint64_t)(uintptr_t)data + offset;
    if (keel_status_code(status) != KEEL_INVALID_ARGUMENT) return status;
    return keel_status_wrap(status,
                            "external->handle.host is %p: the %llu bytes there cannot be "
                            "page-locked; all must be mapped memory that may be %s; some vendors "
                            "say the same when the system lets no more be locked",
                            data, (unsigned long long)size,
                            written ? "written, unless options->access is KEEL_ACCESS_READ"
                                    : "read");
}

uint64_t pages_stretch(const pages_user_t *user, const void *data, uint64_t size)
{
    span_t bytes = bytes_of(data, size);
    uintptr_t stop = bytes.end;
    lock_enter(&pages_guard);
    const piece_t *piece = piece_at(user, bytes.start, &stop);
    if (piece && piece->span.end < bytes.end) bytes.end = piece->span.end;
    lock_leave(&pages_guard);
    return bytes.end - bytes.start;
}

void pages_unlock(pages_user_t *user, const void *data, uint64_t size)
{
    span_t span = span_for(user, bytes_of(data, size));
    lock_enter(&pages_guard);
    pieces_count(user, span, -1);
    pieces_clean(span);
    pages_leave();
}

void pages_close(pages_user_t *user)
{
    bool left = false;
    pthread_once(&pages_once, pages_init); // before a lock that a fork may find taken
    lock_enter(&pages_guard);
    piece_t *piece = piece_next(everything, NULL);
    for (; piece; piece = piece_next(everything, piece)) {
        if (piece->user != user) continue;
        piece->lost = piece_is_lost(piece);
        piece->user = NULL;
        left = true;
    }
    pieces_clean(everything);
    pages_leave();
    if (!left) user->ops->close(user);
}
