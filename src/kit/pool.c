// SPDX-License-Identifier: Apache-2.0
#include "kit/pool.h"

#include <stddef.h>

#include "base/live.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/status.h"
#include "kit/label.h"
#include "kit/slab.h"
#include "kit/word.h"
#include "trace/event.h"

typedef struct kit_pool_t {
    keel_pool_t base;
    const pool_words_t *words_ops; // NULL: its buffers have no words
    lock_t lock; // for everything below, and for `deallocas`, `kept` and `lender` of its buffers
    words_t words;
    slab_t *slabs;
    uint64_t used, peak, buffers, waiting;
    uint64_t reserved;                      // by slabs, those being got included
    uint64_t deallocas;                     // on their way, of buffers that have memory
    uint32_t making;                        // slabs on their way
    void (*reclaim)(keel_buffer_t *buffer); // the books only: takes memory back; NULL: slabs
    void *driver;
    keel_pool_piece_t *pieces; // on their way, and to be had in their order, newest first
    keel_pool_request_t *requests, **requests_last; // allocas that wait, oldest first
    uint64_t requests_least;                        // what the smallest of them wants, or less
    uint32_t suspects; // requests that may come to wait for their own submission
    uint32_t traced;   // its counter in a trace; 0: none so far
} kit_pool_t;

static kit_pool_t *kit_pool(keel_pool_t *pool)
{
    return (kit_pool_t *)(void *)pool;
}

static uint64_t round_up(uint64_t size, uint64_t unit)
{
    return (size + unit - 1) / unit * unit;
}

keel_status_t pool_create(keel_device_t *device, const keel_pool_options_t *options,
                          keel_pool_t **pool)
{
    (void)device, (void)options;
    kit_pool_t *p = mem_zalloc(sizeof *p);
    if (!p) return status_no_memory();
    p->requests_last = &p->requests;
    *pool = &p->base;
    return NULL;
}

keel_status_t pool_create_books(void (*reclaim)(keel_buffer_t *buffer), void *driver,
                                keel_pool_t **pool)
{
    KEEL_TRY(pool_create(NULL, NULL, pool));
    kit_pool(*pool)->reclaim = reclaim;
    kit_pool(*pool)->driver = driver;
    return NULL;
}

keel_status_t pool_create_words(const pool_words_t *words, keel_pool_t **pool)
{
    KEEL_TRY(pool_create(NULL, NULL, pool));
    kit_pool(*pool)->words_ops = words;
    return NULL;
}

// Under the lock: the buffer got memory, or has it no more. The device is told where it is.
static void word_write(const kit_pool_t *pool, const keel_buffer_t *buffer)
{
    _Atomic uint64_t *word = pool->words_ops ? words_find(&pool->words, buffer) : NULL;
    // relaxed: a point orders it with the device's look, as all uses of the memory.
    if (word)
        atomic_store_explicit(word, atomic_load_explicit(&buffer->address, memory_order_relaxed),
                              memory_order_relaxed);
}

static _Atomic uint64_t *word_of(kit_pool_t *pool, const keel_buffer_t *buffer)
{
    lock_enter(&pool->lock);
    _Atomic uint64_t *word = words_find(&pool->words, buffer);
    lock_leave(&pool->lock);
    return word;
}

// Makes it the word of a buffer, which may have got one meanwhile. False: it has, or there is no
// memory.
static bool word_keep(kit_pool_t *pool, const keel_buffer_t *buffer, _Atomic uint64_t *word)
{
    lock_enter(&pool->lock);
    bool kept = !words_find(&pool->words, buffer) && words_add(&pool->words, buffer, word);
    if (kept) word_write(pool, buffer);
    lock_leave(&pool->lock);
    return kept;
}

keel_status_t pool_word(const keel_buffer_t *buffer, _Atomic uint64_t **word)
{
    kit_pool_t *pool = kit_pool(buffer->pool);
    _Atomic uint64_t *taken;
    *word = word_of(pool, buffer);
    if (*word) return NULL;
    KEEL_TRY(pool->words_ops->take(buffer->device, &taken));
    if (!word_keep(pool, buffer, taken)) pool->words_ops->give_back(buffer->device, taken);
    *word = word_of(pool, buffer);
    return *word ? NULL : status_no_memory();
}

// The buffer goes away.
static void word_give_back(kit_pool_t *pool, const keel_buffer_t *buffer)
{
    if (!pool->words_ops) return;
    lock_enter(&pool->lock);
    _Atomic uint64_t *word = words_remove(&pool->words, buffer);
    lock_leave(&pool->lock);
    if (word) pool->words_ops->give_back(buffer->device, word);
}

void *pool_driver(const keel_pool_t *pool)
{
    return ((const kit_pool_t *)(const void *)pool)->driver;
}

void pool_destroy(keel_pool_t *pool)
{
    slabs_destroy(kit_pool(pool)->slabs);
    mem_free(pool);
}

static uint64_t pool_limit(const kit_pool_t *pool)
{
    uint64_t limit = pool->base.options.limit;
    return limit > UINT64_MAX - SLAB_GRANULE ? limit : round_up(limit, SLAB_GRANULE);
}

static uint64_t slab_unit(const kit_pool_t *pool)
{
    return pool->base.options.block_size ? pool->base.options.block_size : SLAB_GRANULE;
}

// Under the lock: takes the slab off the list, into another.
static void slab_unlink(kit_pool_t *pool, slab_t **at, slab_t **slabs)
{
    slab_t *slab = *at;
    *at = slab->next;
    slab->next = *slabs;
    *slabs = slab;
    pool->reserved -= slab->memory.size;
}

static uint64_t slabs_left(const kit_pool_t *pool)
{
    uint64_t limit = pool_limit(pool);
    return limit > pool->reserved ? limit - pool->reserved : 0;
}

// Under the lock: if the limit is in the way of a new slab of that size, takes off those that are
// idle. They are too small, or they would do.
static slab_t *slabs_give_way(kit_pool_t *pool, uint64_t size)
{
    slab_t *idle = NULL;
    if (size <= slabs_left(pool)) return NULL;
    for (slab_t **at = &pool->slabs; *at;) {
        if ((*at)->used)
            at = &(*at)->next;
        else
            slab_unlink(pool, at, &idle);
    }
    return idle;
}

// Under the lock: the size of a new slab for a request of `size` that the limit has room for, which
// is booked as reserved; 0 if there is too much already. The limit is for what buffers hold: where
// they lie so that a request fits nowhere, slabs together may have up to twice as much.
static uint64_t slab_book(kit_pool_t *pool, uint64_t size)
{
    uint64_t unit = slab_unit(pool), limit = pool_limit(pool);
    uint64_t left = slabs_left(pool), over = left ? 0 : pool->reserved - limit;
    uint64_t want = size > SLAB_SIZE ? size : SLAB_SIZE / unit * unit;
    if (want < size) want = size;
    if (want > left) want = left / unit * unit;
    if (want < size) want = over <= limit && size <= limit - over ? size : 0;
    pool->reserved += want;
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

// Under the lock: `used` has changed.
KEEL_COLD __attribute__((noinline)) static void pool_trace(kit_pool_t *pool)
{
    trace_pool(&pool->traced, pool->base.device->name, pool->base.name, pool->used);
}

// Counts a buffer that got `size` bytes.
static void pool_count(kit_pool_t *pool, keel_buffer_t *buffer, uint64_t size)
{
    buffer->capacity = size;
    pool->buffers++;
    pool->deallocas += buffer->deallocas;
    pool->used += size;
    if (pool->used > pool->peak) pool->peak = pool->used;
    if (trace_is_on()) pool_trace(pool);
}

// Under the lock: whether the buffer has memory, or was granted some.
static bool buffer_has(const keel_buffer_t *buffer)
{
    return buffer->capacity != 0;
}

static uint64_t pool_size_of(const kit_pool_t *pool, const keel_buffer_t *buffer)
{
    uint64_t block = pool->base.options.block_size;
    return block ? block : round_up(buffer->size ? buffer->size : 1, SLAB_GRANULE);
}

static uint64_t pool_room(const kit_pool_t *pool)
{
    return pool_limit(pool) - pool->used;
}

static void piece_unlink(keel_pool_piece_t *piece)
{
    *piece->link = piece->next;
    if (piece->next) piece->next->link = piece->link;
    piece->link = NULL;
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

// Under the lock: true if it was served.
static bool pool_serve(kit_pool_t *pool, keel_buffer_t *buffer, const void *order)
{
    uint64_t size = pool_size_of(pool, buffer);
    if (size > pool_room(pool) && !pieces_take(pool, size, order)) return false;
    if (pool->reclaim) {
        pool_count(pool, buffer, size);
        return true;
    }
    for (slab_t *slab = pool->slabs; slab; slab = slab->next)
        if (slab->memory.size - slab->used >= size && slab_cut(slab, buffer, size)) {
            pool_count(pool, buffer, size);
            word_write(pool, buffer);
            return true;
        }
    return false;
}

// Under the lock, which is left for the while: gets a slab with room for such a buffer. False with
// the device's error, or without one if the limit is in the way.
static bool pool_grow(kit_pool_t *pool, const keel_buffer_t *buffer, keel_status_t *refusal)
{
    uint64_t size = pool_size_of(pool, buffer), align = buffer->alignment;
    if (pool->reclaim || size > pool_room(pool)) return false;
    slab_t *idle = slabs_give_way(pool, size), *slab = NULL;
    uint64_t booked = slab_book(pool, size), got = booked;
    if (!booked) return false;
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
    return true;
}

// Under the lock: adds what was asked for and what the pool has.
static keel_status_t pool_refusal(const kit_pool_t *pool, const keel_buffer_t *buffer,
                                  keel_status_t status)
{
    return keel_status_wrap(
        status, "pool '%s' cannot give %llu bytes: %llu of at most %llu are in use",
        pool->base.name ? pool->base.name : "", (unsigned long long)buffer->size,
        (unsigned long long)pool->used, (unsigned long long)pool->base.options.limit);
}

keel_status_t pool_refuse(const keel_buffer_t *buffer, keel_status_t status)
{
    kit_pool_t *pool = kit_pool(buffer->pool);
    lock_enter(&pool->lock);
    status = pool_refusal(pool, buffer, status);
    lock_leave(&pool->lock);
    return status;
}

static keel_status_t pool_exhausted(const kit_pool_t *pool, const keel_buffer_t *buffer)
{
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED,
                      "pool '%s' cannot give %llu bytes: %llu of at most %llu are in use, and no "
                      "dealloca is on its way",
                      pool->base.name ? pool->base.name : "", (unsigned long long)buffer->size,
                      (unsigned long long)pool->used, (unsigned long long)pool->base.options.limit);
}

// What the submission of a request keeps of the pool until the request is served.
typedef struct kept_t {
    uint64_t bytes;     // of buffers that it gave memory before, or takes it from later
    uint64_t deallocas; // that it runs later
} kept_t;

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

// Under the lock. Deallocas of the request's own stage and before are not kept: they run without
// it.
static kept_t request_keeps(const kit_pool_t *pool, const keel_pool_request_t *request)
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

// Under the lock: whether memory may come back without the request, or is just being got from the
// system by another thread.
static bool pool_may_get_more(const kit_pool_t *pool, kept_t kept)
{
    return pool->making || pool->deallocas > kept.deallocas;
}

static bool request_is_cancelled(const keel_pool_request_t *request)
{
    const char *commands = (const char *)request->commands;
    if (!commands) return false;
    // Allocas are in submissions alone, of which their list is a part.
    const void *submission = commands - offsetof(keel_submission_t, commands);
    return atomic_load(&((const keel_submission_t *)submission)->cancelled);
}

static keel_status_t request_cancelled(void)
{
    return KEEL_ERROR(KEEL_CANCELLED, "the submission was cancelled while it waited for memory");
}

// Under the lock: why a request that was not served never will be; NULL: it may be. `refusal` is
// what the device said to a slab for it, or NULL.
static keel_status_t request_doom(const kit_pool_t *pool, const keel_pool_request_t *request,
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
    return waits ? NULL : pool_exhausted(pool, buffer);
}

// Under the lock: whether nothing has changed for those that wait: none fits, and none is doomed.
static bool requests_are_still(const kit_pool_t *pool)
{
    bool fits = pool->pieces || pool_room(pool) >= pool->requests_least;
    bool hope = pool->base.options.full == KEEL_POOL_WAITS || pool->making || pool->deallocas;
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
}

// Under the lock: serves what can be served now, oldest first, and fails what never will be; puts
// both onto the list `ended`. Not in strict order: a small request behind a large one may be what
// the dealloca that the large one needs is waiting for. `refusal` as above.
static void pool_retry(kit_pool_t *pool, keel_status_t refusal, keel_pool_request_t **ended)
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

// Under the lock, which may be left for a while: the same, and gets slabs for those that the limit
// has room for.
static void pool_retry_growing(kit_pool_t *pool, keel_pool_request_t **ended)
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

static void pool_tell(keel_pool_request_t *ended)
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

static void request_init(keel_pool_request_t *request, keel_buffer_t *buffer)
{
    request->buffer = buffer;
    request->next = NULL;
    request->suspect = request->commands && request->commands->count > 1;
}

// Under the lock: at the end of the list.
static void request_wait(kit_pool_t *pool, keel_pool_request_t *request)
{
    uint64_t size = pool_size_of(pool, request->buffer);
    if (size < pool->requests_least || !pool->requests) pool->requests_least = size;
    *pool->requests_last = request;
    pool->requests_last = &request->next;
    pool->suspects += request->suspect;
    pool->waiting++;
}

// Under the lock, which it leaves: there was nothing for the alloca at once.
static pool_result_t alloca_starved(kit_pool_t *pool, keel_buffer_t *buffer,
                                    keel_pool_request_t *request, keel_status_t *status)
{
    pool_result_t result = POOL_DONE;
    keel_pool_request_t *ended = NULL;
    keel_status_t refusal = NULL;
    bool got = pool_grow(pool, buffer, &refusal) && pool_serve(pool, buffer, NULL);
    if (pool->requests)
        pool_retry_growing(pool, &ended); // some may have waited for this one's slab
    request_init(request, buffer);
    if (!got) *status = request_doom(pool, request, refusal);
    if (!got && !*status) {
        request_wait(pool, request);
        result = POOL_WAITING;
    }
    lock_leave(&pool->lock);
    keel_status_release(refusal);
    pool_tell(ended);
    return result;
}

static keel_status_t has_memory_already(const keel_buffer_t *buffer)
{
    return KEEL_ERROR(KEEL_FAILED_PRECONDITION, "%s has memory already", BUFFER_LABEL(buffer));
}

pool_result_t pool_alloca(keel_buffer_t *buffer, keel_pool_request_t *request,
                          keel_status_t *status)
{
    kit_pool_t *pool = kit_pool(buffer->pool);
    *status = NULL;
    lock_enter(&pool->lock);
    keel_pool_request_t *ended = NULL;
    bool has = buffer_has(buffer) || buffer->lender;
    if (!has && !pool_serve(pool, buffer, request->order))
        return alloca_starved(pool, buffer, request, status);
    if (pool->suspects) pool_retry(pool, NULL, &ended); // one may now wait for what this one got
    lock_leave(&pool->lock);
    pool_tell(ended);
    if (has) *status = has_memory_already(buffer);
    return POOL_DONE;
}

keel_status_t pool_place_check(const keel_buffer_t *buffer, uint64_t address)
{
    if (address % buffer->alignment == 0) return NULL;
    return KEEL_ERROR(
        KEEL_INVALID_ARGUMENT, "memory: address %#llx is no multiple of %llu, the alignment of %s",
        (unsigned long long)address, (unsigned long long)buffer->alignment, BUFFER_LABEL(buffer));
}

// Where the range begins.
static keel_status_t place_find(const keel_cmd_alloca_t *c, uint64_t *address)
{
    const keel_buffer_t *from = c->memory.buffer;
    // acquire: pairs with the alloca that gave it memory.
    if (!atomic_load_explicit(&from->root->resident, memory_order_acquire))
        return KEEL_ERROR(KEEL_FAILED_PRECONDITION,
                          "memory: %s has none: its alloca has not run, or its dealloca has",
                          BUFFER_LABEL(from));
    *address = atomic_load(&from->root->address) + from->offset + c->memory.offset;
    return pool_place_check(c->buffer, *address);
}

keel_status_t pool_lend(keel_cmd_alloca_t *c)
{
    keel_buffer_t *buffer = c->buffer, *root = c->memory.buffer->root;
    kit_pool_t *pool = kit_pool(buffer->pool);
    uint64_t address = 0;
    KEEL_TRY(place_find(c, &address));
    char *data = atomic_load(&root->data);
    uint64_t offset = address - atomic_load(&root->address);
    lock_enter(&pool->lock);
    bool has = buffer_has(buffer) || buffer->lender;
    if (!has) {
        buffer->lender = keel_buffer_retain(root);
        atomic_fetch_add(&root->lent, 1);
        memory_attach(buffer, data ? data + offset : NULL, address);
        word_write(pool, buffer);
    }
    lock_leave(&pool->lock);
    return has ? has_memory_already(buffer) : NULL;
}

// Takes memory from the buffer that is another one's, which it returns; NULL: it has none of that.
static keel_buffer_t *pool_unlend(keel_buffer_t *buffer, uint32_t ended)
{
    kit_pool_t *pool = kit_pool(buffer->pool);
    lock_enter(&pool->lock);
    keel_buffer_t *lender = buffer->lender;
    buffer->lender = NULL;
    if (lender) {
        buffer->deallocas -= ended; // the pool counts only those of its own memory
        memory_detach(buffer);
        word_write(pool, buffer);
    }
    lock_leave(&pool->lock);
    if (lender) atomic_fetch_sub(&lender->lent, 1);
    return lender;
}

bool pool_dealloca_starts(keel_cmd_alloca_t *c, keel_status_t *status)
{
    uint32_t lent = atomic_load(&c->buffer->lent);
    c->settled = true;
    *status = NULL;
    if (lent) {
        pool_dealloca_dropped(c->buffer);
        *status =
            KEEL_ERROR(KEEL_FAILED_PRECONDITION,
                       "%s has lent memory (keel_op_alloca_at) to %u that are not deallocated",
                       BUFFER_LABEL(c->buffer), lent);
        return false;
    }
    c->memory.buffer = pool_unlend(c->buffer, 1); // work on it may not be over yet
    return !c->memory.buffer;
}

keel_cmd_alloca_t *pool_dealloca_beside(const keel_cmd_alloca_t *alloca)
{
    const keel_commands_t *commands = alloca->request.commands;
    const keel_command_t *c = keel_command_next(&alloca->head);
    if (!(commands->kinds & 1u << KEEL_CMD_DEALLOCA)) return NULL;
    for (; c != keel_commands_end(commands) && !keel_command_is_barrier(c->kind);
         c = keel_command_next(c)) {
        keel_cmd_alloca_t *dealloca = (keel_cmd_alloca_t *)(uintptr_t)c;
        if (c->kind != KEEL_CMD_DEALLOCA || dealloca->settled) continue;
        if (atomic_load(&dealloca->buffer->resident)) return dealloca;
    }
    return NULL;
}

// Under the lock: takes the memory from the buffer.
static void pool_detach(kit_pool_t *pool, keel_buffer_t *buffer, keel_pool_piece_t *piece)
{
    *piece = (keel_pool_piece_t){
        .slab = buffer->slab, .handle = buffer->handle, .capacity = buffer->capacity};
    pool->deallocas -= buffer->deallocas;
    buffer->capacity = 0;
    if (!pool->reclaim) memory_detach(buffer); // else the driver has
    word_write(pool, buffer);
}

// Under the lock: puts memory back.
static inline void pool_put(kit_pool_t *pool, const keel_pool_piece_t *piece)
{
    if (piece->slab) slab_take_back(piece->slab, piece);
    pool->used -= piece->capacity;
    pool->buffers--;
    if (trace_is_on()) pool_trace(pool);
}

// Under the lock: the slabs beyond the threshold that nothing is cut from.
static slab_t *pool_excess(kit_pool_t *pool)
{
    uint64_t threshold = pool->base.options.threshold;
    slab_t *slabs = NULL;
    if (!threshold) return NULL;
    for (slab_t **at = &pool->slabs; *at && pool->reserved > threshold;) {
        if ((*at)->used)
            at = &(*at)->next;
        else
            slab_unlink(pool, at, &slabs);
    }
    return slabs;
}

// Leaves the lock when memory may have come back: serves the requests that waited for that, and
// gives the device what is too much.
static void pool_leave(kit_pool_t *pool)
{
    keel_pool_request_t *told = NULL;
    if (pool->requests) pool_retry_growing(pool, &told);
    slab_t *excess = pool->slabs ? pool_excess(pool) : NULL;
    lock_leave(&pool->lock);
    if (excess) slabs_destroy(excess);
    if (told) pool_tell(told);
}

// Ends `ended` deallocas of the buffer; if `put`, its memory goes back. Serves the requests that
// waited for that. False if there was nothing to put.
static bool pool_end(kit_pool_t *pool, keel_buffer_t *buffer, uint32_t ended, bool put)
{
    lock_enter(&pool->lock);
    bool has = buffer_has(buffer);
    buffer->deallocas -= ended;
    if (has) pool->deallocas -= ended;
    if (has && put) {
        keel_pool_piece_t piece;
        pool_detach(pool, buffer, &piece);
        pool_put(pool, &piece);
    }
    pool_leave(pool);
    return has;
}

void pool_dealloca_submitted(keel_buffer_t *buffer)
{
    kit_pool_t *pool = kit_pool(buffer->pool);
    lock_enter(&pool->lock);
    buffer->deallocas++;
    if (buffer_has(buffer)) pool->deallocas++;
    lock_leave(&pool->lock);
}

static keel_status_t nothing_to_give(const keel_buffer_t *buffer)
{
    return KEEL_ERROR(KEEL_FAILED_PRECONDITION, "%s has no memory to give back",
                      BUFFER_LABEL(buffer));
}

keel_status_t pool_dealloca(keel_buffer_t *buffer)
{
    return pool_end(kit_pool(buffer->pool), buffer, 1, true) ? NULL : nothing_to_give(buffer);
}

// Under the lock: lets allocas of that order have it.
static void piece_link(kit_pool_t *pool, keel_pool_piece_t *piece, const void *order)
{
    piece->order = order;
    piece->link = &pool->pieces;
    piece->next = pool->pieces;
    if (piece->next) piece->next->link = &piece->next;
    pool->pieces = piece;
}

keel_status_t pool_dealloca_begin(keel_buffer_t *buffer, const void *order,
                                  keel_pool_piece_t *piece)
{
    kit_pool_t *pool = kit_pool(buffer->pool);
    keel_pool_request_t *told = NULL;
    lock_enter(&pool->lock);
    bool has = buffer_has(buffer);
    if (has) {
        pool_detach(pool, buffer, piece);
        piece->open = true;
        buffer->deallocas--;
        pool->deallocas++; // this one is still on its way
        if (order) piece_link(pool, piece, order);
        if (order && pool->requests) pool_retry(pool, NULL, &told);
    }
    lock_leave(&pool->lock);
    pool_tell(told);
    if (has) return NULL;
    pool_dealloca_dropped(buffer);
    return nothing_to_give(buffer);
}

void pool_dealloca_end(keel_buffer_t *buffer, keel_pool_piece_t *piece)
{
    kit_pool_t *pool = kit_pool(buffer->pool);
    lock_enter(&pool->lock);
    if (piece->link) piece_unlink(piece);
    pool_put(pool, piece);
    *piece = (keel_pool_piece_t){0};
    pool->deallocas--;
    pool_leave(pool);
}

void pool_alloca_undo(keel_buffer_t *buffer)
{
    pool_end(kit_pool(buffer->pool), buffer, 0, true);
}

bool pool_alloca_again(keel_buffer_t *buffer, keel_pool_request_t *request)
{
    kit_pool_t *pool = kit_pool(buffer->pool);
    keel_pool_request_t *told = NULL;
    keel_pool_piece_t piece;
    lock_enter(&pool->lock);
    pool_detach(pool, buffer, &piece);
    pool_put(pool, &piece);
    request_init(request, buffer);
    // seq_cst: as in request_doom.
    bool ended = atomic_load(&pool->base.device->ended) || request_is_cancelled(request);
    bool waits = !ended && pool_may_get_more(pool, request_keeps(pool, request));
    if (waits) // and no other request is tried: there is no more memory than before
        request_wait(pool, request);
    else if (pool->requests)
        pool_retry(pool, NULL, &told);
    lock_leave(&pool->lock);
    pool_tell(told);
    return waits;
}

void pool_dealloca_dropped(keel_buffer_t *buffer)
{
    pool_end(kit_pool(buffer->pool), buffer, 1, false);
}

// Takes back memory of the pool's own.
static void memory_reclaim(kit_pool_t *pool, keel_buffer_t *buffer)
{
    // acquire: pairs with the thread that gave it memory. What was granted may never have come.
    bool resident = atomic_load_explicit(&buffer->resident, memory_order_acquire);
    if (pool->reclaim && resident) pool->reclaim(buffer);
    pool_end(pool, buffer, 0, true);
}

void pool_reclaim(keel_buffer_t *buffer)
{
    kit_pool_t *pool = kit_pool(buffer->pool);
    // No other reference to the buffer is left.
    if (buffer->lender) keel_buffer_release(pool_unlend(buffer, 0));
    if (buffer->capacity) memory_reclaim(pool, buffer);
    word_give_back(pool, buffer);
}

void pool_stats(keel_pool_t *base, keel_pool_stats_t *stats)
{
    kit_pool_t *pool = kit_pool(base);
    lock_enter(&pool->lock);
    *stats = (keel_pool_stats_t){
        .limit = base->options.limit,
        .used = pool->used,
        .peak = pool->peak,
        .reserved = pool->reserved,
        .buffers = pool->buffers,
        .waiting = pool->waiting,
    };
    lock_leave(&pool->lock);
}

keel_status_t pool_trim(keel_pool_t *base, uint64_t keep)
{
    kit_pool_t *pool = kit_pool(base);
    slab_t *idle_slabs = NULL;
    lock_enter(&pool->lock);
    for (slab_t **at = &pool->slabs; *at;) {
        uint64_t idle = pool->reserved - pool->used;
        if ((*at)->used || idle < keep || idle - keep < (*at)->memory.size)
            at = &(*at)->next;
        else
            slab_unlink(pool, at, &idle_slabs);
    }
    lock_leave(&pool->lock);
    slabs_destroy(idle_slabs);
    return NULL;
}
