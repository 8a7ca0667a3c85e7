// SPDX-License-Identifier: Apache-2.0
#include "kit/request.h"

#include <stddef.h>

#include "base/status.h"
#include "kit/device.h"
#include "kit/object.h"

static _Atomic uint32_t waiting; // in all pools

void slab_unlink(kit_pool_t *pool, slab_t **at, slab_t **slabs)
{
    slab_t *slab = *at;
    *at = slab->next;
    slab->next = *slabs;
    *slabs = slab;
    pool->reserved -= slab->memory.size;
}

// Under the lock: if the limit is in the way of a new slab of that size, takes off those that are
// idle. They are too small, or they would do.
static slab_t *slabs_give_way(kit_pool_t *pool, uint64_t size)
{
    slab_t *idle = NULL;
    if (size <= slabs_left(pool)) return NULL;
    pool_peak(pool);
    for (slab_t **at = &pool->slabs; *at;) {
        if (!shelf_leave(&pool->shelf, *at, slab_unit(pool)))
            at = &(*at)->next;
        else
            slab_unlink(pool, at, &idle);
    }
    pool_learn(pool); // of buffers that had blocks there
    return idle;
}

// Under the lock: the size of a new slab for a request of `size` that the limit has room for; 0 if
// there is too much already. The limit is for what buffers hold: where they lie so that a request
// fits nowhere, slabs together may have up to twice as much.
static uint64_t slab_fit(const kit_pool_t *pool, uint64_t size)
{
    uint64_t unit = slab_unit(pool), limit = pool_limit(pool);
    uint64_t left = slabs_left(pool), over = left ? 0 : pool->reserved - limit;
    uint64_t want = size > SLAB_SIZE ? size : SLAB_SIZE / unit * unit;
    if (want < size) want = size;
    if (want > left) want = left / unit * unit;
    if (want < size) want = over <= limit && size <= limit - over ? size : 0;
    return want;
}

// Without the lock: gets a slab. If there is not so much, *size is halved, down to `least`.
static keel_status_t slab_get(kit_pool_t *pool, uint64_t least, uint64_t align, uint64_t *size,
                              slab_t **made)
{
    for (;;) {
        keel_status_t status = slab_create(&pool->base, *size, align, made);
        if (keel_status_code(status) != KEEL_RESOURCE_EXHAUSTED || *size <= least) return status;
        keel_status_release(status);
        *size = *size / 2 / slab_unit(pool) * slab_unit(pool);
        if (*size < least) *size = least;
    }
}

// The device may take a block between two looks: then there may be none.
static uint64_t pool_room(const kit_pool_t *pool)
{
    uint64_t limit = pool_limit(pool), used = pool_used(pool);
    return used < limit ? limit - used : 0;
}

// Under the lock: takes what is missing for so much out of pieces of that order, which are then
// counted no more. False if they have less than that.
static bool pieces_take(kit_pool_t *pool, uint64_t size, const void *order)
{
    uint64_t room = pool_room(pool), missing = size - room;
    for (const keel_pool_piece_t *piece = pool->pieces; piece && room < size; piece = piece->next)
        if (piece->order == order) room += piece->capacity;
    if (room < size) return false;
    for (keel_pool_piece_t *piece = pool->pieces; missing; piece = piece->next) {
        if (piece->order != order) continue;
        uint64_t taken = missing < piece->capacity ? missing : piece->capacity;
        piece->capacity -= taken;
        pool->used -= taken;
        missing -= taken;
        if (!piece->capacity) piece_unlink(piece);
    }
    return true;
}

static bool slabs_cut(kit_pool_t *pool, keel_buffer_t *buffer, uint64_t size)
{
    for (slab_t *slab = pool->slabs; slab; slab = slab->next)
        if (!slab->shared && slab->memory.size - slab->used >= size && slab_cut(slab, buffer, size))
            return true;
    return false;
}

// Under the lock: whether all that is cut will be below the limit, with so much more.
static bool cut_fits(const kit_pool_t *pool, uint64_t size)
{
    uint64_t cut = pool->used + pool->shelf.cut, limit = pool_limit(pool);
    return cut <= limit && size <= limit - cut;
}

// Under the lock: cuts memory for a buffer. If it has to, of what is free in bins of other sizes.
static bool cut_serve(kit_pool_t *pool, keel_buffer_t *buffer, uint64_t size)
{
    bool cut = cut_fits(pool, size) && slabs_cut(pool, buffer, size);
    if (!cut && bins_empty(pool)) cut = cut_fits(pool, size) && slabs_cut(pool, buffer, size);
    if (!cut) return false;
    block_enlist(pool, buffer, size);
    pool_count(pool, buffer, size);
    pool_word_write(pool, buffer);
    return true;
}

bool pool_serve(kit_pool_t *pool, keel_buffer_t *buffer, const void *order)
{
    uint64_t size = pool_size_of(pool, buffer);
    if (size > pool_room(pool) && !pieces_take(pool, size, order)) return false;
    if (pool->reclaim) {
        pool_count(pool, buffer, size);
        return true;
    }
    return block_serve(pool, buffer) || cut_serve(pool, buffer, size);
}

bool pool_grow(kit_pool_t *pool, const keel_buffer_t *buffer, keel_status_t *refusal)
{
    uint64_t size = pool_size_of(pool, buffer), align = buffer->alignment;
    if (pool->reclaim || size > pool_room(pool)) return false;
    bool shelved = pool->shelf.ops && pool->base.options.block_size && align <= SLAB_ALIGN;
    if (shelved && size > slabs_left(pool)) return false; // one has come back
    slab_t *idle = slabs_give_way(pool, size), *slab = NULL;
    uint64_t booked = slab_fit(pool, size), got = booked;
    if (!booked) return false;
    pool->reserved += booked;
    pool->making++;
    lock_leave(&pool->lock);
    slabs_destroy(idle);
    *refusal = slab_get(pool, size, align, &got, &slab);
    lock_enter(&pool->lock);
    pool->making--;
    pool->reserved -= *refusal ? booked : booked - got;
    if (*refusal) return false;
    slab->next = pool->slabs;
    pool->slabs = slab;
    pool_peak(pool);
    shelf_add(&pool->shelf, slab, slab_unit(pool), pool->reserved <= pool_limit(pool));
    return true;
}

// Under the lock: adds what was asked for and what the pool has.
static keel_status_t pool_refusal(const kit_pool_t *pool, const keel_buffer_t *buffer,
                                  keel_status_t status)
{
    return keel_status_wrap(
        status, "pool '%s' cannot give %llu bytes: %llu of at most %llu are in use",
        pool->base.name ? pool->base.name : "", (unsigned long long)buffer->size,
        (unsigned long long)pool_used(pool), (unsigned long long)pool->base.options.limit);
}

keel_status_t pool_refuse(const keel_buffer_t *buffer, keel_status_t status)
{
    kit_pool_t *pool = kit_pool(buffer->pool);
    lock_enter(&pool->lock);
    status = pool_refusal(pool, buffer, status);
    lock_leave(&pool->lock);
    return status;
}

static keel_status_t pool_exhausted(const kit_pool_t *pool, const keel_buffer_t *buffer,
                                    const char *deallocas)
{
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED,
                      "pool '%s' cannot give %llu bytes: %llu of at most %llu are in use, and %s",
                      pool->base.name ? pool->base.name : "", (unsigned long long)buffer->size,
                      (unsigned long long)pool_used(pool),
                      (unsigned long long)pool->base.options.limit, deallocas);
}

static const keel_cmd_alloca_t *alloca_of(const keel_command_t *command)
{
    bool is = command->kind == KEEL_CMD_ALLOCA || command->kind == KEEL_CMD_DEALLOCA;
    return is ? (const keel_cmd_alloca_t *)(const void *)command : NULL;
}

// Under the lock: adds up the buffers of the submission that are marked, and removes the marks.
static uint64_t marks_take(const keel_commands_t *commands)
{
    uint64_t bytes = 0;
    KEEL_EACH_COMMAND (c, commands) {
        const keel_cmd_alloca_t *a = alloca_of(c);
        if (!a || !a->buffer->kept) continue;
        a->buffer->kept = false;
        bytes += a->buffer->capacity;
    }
    return bytes;
}

kept_t request_keeps(const kit_pool_t *pool, const keel_pool_request_t *request)
{
    kept_t kept = {0};
    bool seen = false, behind = false;
    if (!request->suspect) return kept;
    KEEL_EACH_COMMAND (c, request->commands) {
        const keel_cmd_alloca_t *a = alloca_of(c);
        behind |= seen && keel_command_is_barrier(c->kind);
        if (a && &a->request == request) seen = true;
        if (!a || a->buffer->pool != &pool->base || !buffer_has(a->buffer)) continue;
        bool gives = c->kind == KEEL_CMD_DEALLOCA;
        if (gives || !behind) a->buffer->kept = !gives || behind;
        kept.deallocas += gives && behind;
    }
    kept.bytes = marks_take(request->commands);
    return kept;
}

bool pool_may_get_more(const kit_pool_t *pool, kept_t kept)
{
    return pool->making || pool->deallocas > kept.deallocas || shelf_moves(&pool->shelf);
}

// Allocas are in submissions alone, of which their list is a part. NULL: it has none.
static const keel_submission_t *request_submission(const keel_pool_request_t *request)
{
    const char *commands = (const char *)request->commands;
    if (!commands) return NULL;
    return (const void *)(commands - offsetof(keel_submission_t, commands));
}

bool request_is_cancelled(const keel_pool_request_t *request)
{
    const keel_submission_t *submission = request_submission(request);
    return submission && atomic_load(&submission->cancelled);
}

static keel_status_t request_cancelled(void)
{
    return KEEL_ERROR(KEEL_CANCELLED, "the submission was cancelled while it waited for memory");
}

keel_status_t request_doom(const kit_pool_t *pool, const keel_pool_request_t *request,
                           keel_status_t refusal)
{
    const keel_buffer_t *buffer = request->buffer;
    // seq_cst, as is device_end: it finds the request, or this finds that the device has ended. So
    // with a cancel and pool_withdraw.
    keel_status_t ended = atomic_load(&pool->base.device->ended);
    if (ended) return keel_status_retain(ended);
    if (request_is_cancelled(request)) return request_cancelled();
    kept_t kept = request_keeps(pool, request);
    uint64_t size = pool_size_of(pool, buffer), limit = pool_limit(pool);
    if (kept.bytes > limit || size > limit - kept.bytes)
        return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED,
                          "pool '%s' can never give %llu bytes: %llu of at most %llu are held by "
                          "buffers of the same submission, which keeps them until this alloca ends",
                          pool->base.name ? pool->base.name : "", (unsigned long long)buffer->size,
                          (unsigned long long)kept.bytes,
                          (unsigned long long)pool->base.options.limit);
    if (pool_may_get_more(pool, kept)) return NULL;
    if (refusal && size <= pool_room(pool))
        return pool_refusal(pool, buffer, keel_status_retain(refusal));
    bool waits = pool->base.options.full == KEEL_POOL_WAITS;
    return waits ? NULL : pool_exhausted(pool, buffer, "no dealloca is on its way");
}

// Under the lock: whether nothing has changed for those that wait: none fits, and none is doomed.
static bool requests_are_still(const kit_pool_t *pool)
{
    bool fits = pool->pieces || pool_room(pool) >= pool->requests_least;
    bool hope = pool->base.options.full == KEEL_POOL_WAITS || pool->making || pool->deallocas ||
                shelf_moves(&pool->shelf);
    return !fits && hope && !pool->suspects;
}

// Under the lock: takes the request off the list, into that of those that have ended.
static void request_unlink(kit_pool_t *pool, keel_pool_request_t **at, keel_pool_request_t **ended)
{
    keel_pool_request_t *request = *at;
    *at = request->next;
    if (!*at) pool->requests_last = at;
    request->next = *ended;
    *ended = request;
    pool->suspects -= request->suspect;
    pool->waiting--;
    pool->changes++;
    atomic_fetch_sub(&waiting, 1);
}

// Not in strict order: a small request behind a large one may be what the dealloca that the large
// one needs is waiting for.
void pool_retry(kit_pool_t *pool, keel_status_t refusal, keel_pool_request_t **ended)
{
    uint64_t least = UINT64_MAX;
    for (keel_pool_request_t **at = &pool->requests; *at;) {
        keel_pool_request_t *request = *at;
        if (requests_are_still(pool)) return;
        bool got = pool_serve(pool, request->buffer, request->order);
        request->status = got ? NULL : request_doom(pool, request, refusal);
        if (got || request->status) {
            request_unlink(pool, at, ended);
            continue;
        }
        uint64_t size = pool_size_of(pool, request->buffer);
        if (size < least) least = size;
        at = &request->next;
    }
    pool->requests_least = least;
}

void pool_retry_growing(kit_pool_t *pool, keel_pool_request_t **ended)
{
    keel_status_t refusal = NULL;
    do {
        pool_retry(pool, refusal, ended);
        if (refusal) break;
        const keel_pool_request_t *fits = pool->requests;
        while (fits && pool_size_of(pool, fits->buffer) > pool_room(pool)) fits = fits->next;
        if (!fits) break;
        if (!pool_grow(pool, fits->buffer, &refusal) && !refusal) break;
    } while (pool->requests);
    keel_status_release(refusal);
}

void pool_tell(keel_pool_request_t *ended)
{
    while (ended) {
        keel_pool_request_t *request = ended;
        ended = request->next;
        request->done(request, request->status);
    }
}

void pool_cancel(keel_pool_t *base, keel_status_t cause)
{
    kit_pool_t *pool = kit_pool(base);
    keel_pool_request_t *ended = NULL;
    lock_enter(&pool->lock);
    while (pool->requests) {
        pool->requests->status = keel_status_retain(cause);
        request_unlink(pool, &pool->requests, &ended);
    }
    lock_leave(&pool->lock);
    pool_tell(ended);
}

void pool_withdraw(keel_pool_t *base)
{
    kit_pool_t *pool = kit_pool(base);
    keel_pool_request_t *ended = NULL;
    lock_enter(&pool->lock);
    for (keel_pool_request_t **at = &pool->requests; *at;) {
        if (!request_is_cancelled(*at)) {
            at = &(*at)->next;
            continue;
        }
        (*at)->status = request_cancelled();
        request_unlink(pool, at, &ended);
    }
    lock_leave(&pool->lock);
    pool_tell(ended);
}

void request_init(keel_pool_request_t *request, keel_buffer_t *buffer)
{
    request->buffer = buffer;
    request->next = NULL;
    request->suspect = request->commands && request->commands->count > 1;
}

void request_wait(kit_pool_t *pool, keel_pool_request_t *request)
{
    uint64_t size = pool_size_of(pool, request->buffer);
    if (size < pool->requests_least || !pool->requests) pool->requests_least = size;
    *pool->requests_last = request;
    pool->requests_last = &request->next;
    pool->suspects += request->suspect;
    pool->waiting++;
    pool->changes++;
    atomic_fetch_add(&waiting, 1); // seq_cst: pairs with pools_look
}

// Under the lock: whether it fails when no dealloca is left that could help: not if it is the limit
// that is in its way, and the pool lets it wait.
static bool request_hopes(const kit_pool_t *pool, const keel_pool_request_t *request)
{
    uint64_t size = pool_size_of(pool, request->buffer);
    if (pool->base.options.full == KEEL_POOL_FAILS) return true;
    return size <= pool_room(pool) && (pool->reclaim || slab_fit(pool, size));
}

bool pool_is_suspect(const kit_pool_t *pool)
{
    return pool->requests && pool->deallocas && !pool->making && pool->behind &&
           !shelf_moves(&pool->shelf);
}

typedef struct look_t {
    kit_pool_t *pool;
    points_t points;    // of submissions whose allocas wait, and of those behind them
    uint64_t changes;   // in the pool, before
    uint64_t deallocas; // in them
} look_t;

// A submission waits for allocas that wait.
static void look_found(void *user, const keel_submission_t *submission)
{
    look_t *look = user;
    pool_enter(look->pool);
    KEEL_EACH_COMMAND (c, &submission->commands) {
        const keel_cmd_alloca_t *a = alloca_of(c);
        bool ours = a && c->kind == KEEL_CMD_DEALLOCA && a->buffer->pool == &look->pool->base;
        look->deallocas += ours && buffer_has(a->buffer);
    }
    lock_leave(&look->pool->lock);
}

// False if there is nothing to look for.
static bool look_begin(look_t *look)
{
    kit_pool_t *pool = look->pool;
    pool_enter(pool);
    look->changes = pool->changes;
    look->deallocas = 0;
    for (const keel_pool_request_t *r = pool->requests; r; r = r->next) {
        const keel_submission_t *submission = request_submission(r);
        if (!submission || !request_hopes(pool, r) || points_of(&look->points, submission))
            continue;
        points_add(&look->points, submission);
        look->deallocas += request_keeps(pool, r).deallocas;
    }
    bool begun = pool_is_suspect(pool) && look->points.count;
    lock_leave(&pool->lock);
    return begun;
}

static keel_status_t request_in_vain(const kit_pool_t *pool, const keel_pool_request_t *request)
{
    return pool_exhausted(pool, request->buffer,
                          "all deallocas on their way wait for this alloca, or for others that "
                          "wait");
}

// False if the pool has changed meanwhile. If all deallocas are in what was found, the requests
// fail; and without memory to find out.
static bool look_end(const look_t *look)
{
    kit_pool_t *pool = look->pool;
    keel_pool_request_t *ended = NULL;
    bool failed = look->points.failed;
    pool_enter(pool);
    bool same = pool->changes == look->changes && !shelf_moves(&pool->shelf);
    bool vain = failed || (same && pool->deallocas <= look->deallocas);
    for (keel_pool_request_t **at = &pool->requests; vain && *at;) {
        if (!request_hopes(pool, *at)) {
            at = &(*at)->next;
            continue;
        }
        (*at)->status = failed ? status_no_memory() : request_in_vain(pool, *at);
        request_unlink(pool, at, &ended);
    }
    lock_leave(&pool->lock);
    pool_tell(ended);
    return same || failed;
}

void pool_look(keel_pool_t *base)
{
    look_t look = {.pool = kit_pool(base)};
    bool over = false;
    while (!over && look_begin(&look)) {
        look.pool->behind(base->device, &look.points, look_found, &look);
        over = look_end(&look);
        points_clear(&look.points);
    }
    points_clear(&look.points);
}

keel_pool_t *pools_next(keel_device_t *device, keel_pool_t *after)
{
    lock_enter(device_lock(device));
    keel_pool_t *pool = after ? after->link.next : device->all_pools;
    while (pool && !object_hold(&pool->object)) pool = pool->link.next;
    lock_leave(device_lock(device));
    keel_pool_release(after);
    return pool;
}

void pools_look(keel_device_t *device)
{
    // The waits of the submission were linked before. A look at them comes after that, or it began
    // when its request was counted, which is then seen here.
    atomic_thread_fence(memory_order_seq_cst);
    if (!atomic_load(&waiting)) return;
    for (keel_pool_t *p = pools_next(device, NULL); p; p = pools_next(device, p)) pool_look(p);
}
