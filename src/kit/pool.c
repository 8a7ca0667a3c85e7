// SPDX-License-Identifier: Apache-2.0
#include "kit/pool.h"

#include <stddef.h>

#include "base/live.h"
#include "base/memory.h"
#include "base/status.h"
#include "kit/label.h"
#include "kit/object.h"
#include "kit/request.h"
#include "trace/event.h"

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

static pool_word_t *word_of(kit_pool_t *pool, const keel_buffer_t *buffer)
{
    lock_enter(&pool->lock);
    pool_word_t *word = words_find(&pool->words, buffer);
    lock_leave(&pool->lock);
    return word;
}

// Makes it the word of a buffer, which may have got one meanwhile. False: it has, or there is no
// memory.
static bool word_keep(kit_pool_t *pool, const keel_buffer_t *buffer, pool_word_t *word)
{
    lock_enter(&pool->lock);
    bool kept = !words_find(&pool->words, buffer) && words_add(&pool->words, buffer, word);
    if (kept) word->bin = bin_choose(pool, buffer);
    if (kept && word->bin) pool->shelf.bins[word->bin - 1].words++;
    if (kept) pool_word_write(pool, buffer);
    lock_leave(&pool->lock);
    return kept;
}

keel_status_t pool_word(const keel_buffer_t *buffer, pool_word_t **word)
{
    kit_pool_t *pool = kit_pool(buffer->pool);
    pool_word_t *taken;
    *word = word_of(pool, buffer);
    if (*word) return NULL;
    KEEL_TRY(pool->words_ops->take(buffer, &taken));
    if (!word_keep(pool, buffer, taken)) pool->words_ops->give_back(buffer->device, taken);
    *word = word_of(pool, buffer);
    return *word ? NULL : status_no_memory();
}

// A buffer has lent memory, or got it back.
static void word_lent(const keel_buffer_t *lender)
{
    kit_pool_t *pool = lender->pool ? kit_pool(lender->pool) : NULL;
    if (!pool || !pool->words_ops) return;
    lock_enter(&pool->lock);
    pool_word_t *word = words_find(&pool->words, lender);
    // relaxed: points order it with the device's look.
    if (word) atomic_store_explicit(&word->lent, atomic_load(&lender->lent), memory_order_relaxed);
    lock_leave(&pool->lock);
}

// The buffer goes away.
static void word_give_back(kit_pool_t *pool, const keel_buffer_t *buffer)
{
    if (!pool->words_ops) return;
    lock_enter(&pool->lock);
    pool_word_t *word = words_remove(&pool->words, buffer);
    if (word && word->bin) pool->shelf.bins[word->bin - 1].words--;
    lock_leave(&pool->lock);
    if (word) pool->words_ops->give_back(buffer->device, word);
}

void pool_follow(keel_pool_t *pool, pool_behind_t *behind)
{
    if (!kit_pool(pool)->behind) kit_pool(pool)->behind = behind;
}

void *pool_driver(const keel_pool_t *pool)
{
    return ((const kit_pool_t *)(const void *)pool)->driver;
}

void pool_destroy(keel_pool_t *pool)
{
    shelf_finish(&kit_pool(pool)->shelf);
    slabs_destroy(kit_pool(pool)->slabs);
    mem_free(pool);
}

// Under the lock: as pool_is_suspect. The pool is kept then, for an alloca that waits may be served
// at once, and all be gone.
static bool pool_keep_suspect(kit_pool_t *pool)
{
    bool suspect = pool_is_suspect(pool);
    if (suspect) object_retain(&pool->base.object);
    return suspect;
}

static void pool_look_kept(kit_pool_t *pool)
{
    pool_look(&pool->base);
    keel_pool_release(&pool->base);
}

// Under the lock, which it leaves: there was nothing for the alloca at once.
static pool_result_t alloca_starved(kit_pool_t *pool, keel_buffer_t *buffer,
                                    keel_pool_request_t *request, keel_status_t *status)
{
    pool_result_t result = POOL_DONE;
    keel_pool_request_t *ended = NULL;
    keel_status_t refusal = NULL;
    bool got = pool_grow(pool, buffer, &refusal) && pool_serve(pool, buffer, NULL);
    shelf_tell(&pool->shelf, true); // from here on no block comes back unseen
    got = got || pool_serve(pool, buffer, request->order);
    if (pool->requests)
        pool_retry_growing(pool, &ended); // some may have waited for this one's slab
    request_init(request, buffer);
    if (!got) *status = request_doom(pool, request, refusal);
    if (!got && !*status) {
        request_wait(pool, request);
        result = POOL_WAITING;
    }
    shelf_update(pool);
    bool suspect = pool_keep_suspect(pool);
    lock_leave(&pool->lock);
    keel_status_release(refusal);
    pool_tell(ended);
    if (suspect) pool_look_kept(pool);
    return result;
}

static keel_status_t nothing_to_give(const keel_buffer_t *buffer)
{
    return KEEL_ERROR(KEEL_FAILED_PRECONDITION, "%s has no memory to give back",
                      BUFFER_LABEL(buffer));
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
    pool_enter(pool);
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
    pool_enter(pool);
    bool has = buffer_has(buffer) || buffer->lender;
    if (!has) {
        buffer->lender = keel_buffer_retain(root);
        atomic_fetch_add(&root->lent, 1);
        memory_attach(buffer, data ? data + offset : NULL, address);
        pool_word_write(pool, buffer);
    }
    lock_leave(&pool->lock);
    if (!has) word_lent(root);
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
        pool_word_write(pool, buffer);
    }
    lock_leave(&pool->lock);
    if (lender) atomic_fetch_sub(&lender->lent, 1);
    if (lender) word_lent(lender);
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
    if (block_of(buffer)) {
        piece->handle = block_handle(block_take_back(pool, buffer));
        return;
    }
    pool->deallocas -= buffer->deallocas;
    pool->changes++;
    buffer->capacity = 0;
    if (!pool->reclaim) memory_detach(buffer); // else the driver has
    pool_word_write(pool, buffer);
}

// Under the lock: puts memory back.
static inline void pool_put(kit_pool_t *pool, const keel_pool_piece_t *piece)
{
    if (piece->slab && piece->handle & 1) {
        uint64_t block = piece->handle >> 1; // 0: the device has it by now
        if (block) pool->shelf.ops->put(pool->shelf.shelf, block);
    } else {
        if (piece->slab) slab_take_back(piece->slab, piece);
        pool->used -= piece->capacity;
        pool->buffers--;
    }
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
    shelf_update(pool);
    slab_t *excess = pool->slabs ? pool_excess(pool) : NULL;
    bool suspect = pool_is_suspect(pool);
    lock_leave(&pool->lock);
    if (excess) slabs_destroy(excess);
    if (told) pool_tell(told);
    if (suspect) pool_look(&pool->base); // the caller has a buffer of it
}

// Ends `ended` deallocas of the buffer; if `put`, its memory goes back. Serves the requests that
// waited for that. False if there was nothing to put.
static bool pool_end(kit_pool_t *pool, keel_buffer_t *buffer, uint32_t ended, bool put)
{
    pool_enter(pool);
    bool has = buffer_has(buffer);
    pool->changes++;
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
    pool_enter(pool);
    buffer->deallocas++;
    pool->changes++;
    if (buffer_has(buffer)) pool->deallocas++;
    lock_leave(&pool->lock);
}

keel_status_t pool_mismatch(const keel_buffer_t *buffer, bool given)
{
    return given ? nothing_to_give(buffer) : has_memory_already(buffer);
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
    pool->changes++;
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
    bool suspect = pool_keep_suspect(pool);
    lock_leave(&pool->lock);
    pool_tell(told);
    if (suspect) pool_look_kept(pool);
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
    if (pool->shelf.ops) pool_catch_up(&pool->base, false);
    if (buffer->lender) keel_buffer_release(pool_unlend(buffer, 0));
    if (buffer->capacity) memory_reclaim(pool, buffer);
    word_give_back(pool, buffer);
}

void pool_stats(keel_pool_t *base, keel_pool_stats_t *stats)
{
    kit_pool_t *pool = kit_pool(base);
    pool_enter(pool);
    *stats = (keel_pool_stats_t){
        .limit = base->options.limit,
        .used = pool_used(pool),
        .peak = pool_peak(pool),
        .reserved = pool->reserved,
        .buffers = pool->buffers + pool->shelf.buffers,
        .waiting = pool->waiting + shelf_waiting(&pool->shelf),
    };
    lock_leave(&pool->lock);
}

keel_status_t pool_trim(keel_pool_t *base, uint64_t keep)
{
    kit_pool_t *pool = kit_pool(base);
    slab_t *idle_slabs = NULL;
    pool_enter(pool);
    pool_peak(pool);
    bins_empty(pool);
    for (slab_t **at = &pool->slabs; *at;) {
        uint64_t idle = pool->reserved - pool_used(pool);
        if (idle < keep || idle - keep < (*at)->memory.size ||
            !shelf_leave(&pool->shelf, *at, slab_unit(pool)))
            at = &(*at)->next;
        else
            slab_unlink(pool, at, &idle_slabs);
    }
    pool_learn(pool); // of buffers that had blocks there
    shelf_update(pool);
    lock_leave(&pool->lock);
    slabs_destroy(idle_slabs);
    return NULL;
}

void pool_catch_up(keel_pool_t *base, bool retry)
{
    kit_pool_t *pool = kit_pool(base);
    pool_enter(pool);
    if (retry)
        pool_leave(pool);
    else
        lock_leave(&pool->lock);
}
