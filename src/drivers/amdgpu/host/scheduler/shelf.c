// SPDX-License-Identifier: Apache-2.0
// Shelves: blocks of pools that GPU and host take beside each other (device/shelf.h).
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "drivers/amdgpu/host/scheduler/scheduler.h"
#include "kit/object.h"
#include "kit/pool.h"

_Static_assert((int)SHELF_RULE_ASKS == (int)SHELF_ASKS &&
                   (int)SHELF_RULE_WAITS == (int)SHELF_WAITS &&
                   (int)SHELF_RULE_CLOSED == (int)SHELF_CLOSED,
               "the rules are those of the pool");

enum { ROWS = 1024 }; // of a pool of blocks, at most

struct amdgpu_shelf_t {
    amdgpu_device_t *device; // borrowed: the pool has a reference
    keel_pool_t *pool;       // borrowed
    block_t *memory;         // owned: of `shared`, its bins, rows and sides
    shelf_t *shared;
    uint64_t learned; // handle_t: those that were taken off `changed` and not looked at yet
    amdgpu_shelf_t *next, **link;
};

static shelf_bin_t *bins_of(const amdgpu_shelf_t *shelf)
{
    return PROTOCOL_AT(shelf_bin_t, shelf->shared->bins);
}

// Those of all bins.
static shelf_row_t *rows_of(const amdgpu_shelf_t *shelf)
{
    return PROTOCOL_AT(shelf_row_t, bins_of(shelf)->rows);
}

// That a block is of.
static shelf_bin_t *bin_at(const amdgpu_shelf_t *shelf, uint64_t block)
{
    shelf_bin_t *bins = bins_of(shelf);
    uint32_t i = shelf->shared->bin_count - 1;
    while (block <= bins[i].first) i--;
    return &bins[i];
}

// Records that wait for blocks look again; nothing, if the device is closed.
static void blocks_came(const amdgpu_shelf_t *shelf)
{
    amdgpu_scheduler_t *s = shelf->device->scheduler;
    lock_enter(&s->lock);
    if (!s->closing) shelf_wake(shelf->shared);
    lock_leave(&s->lock);
}

static uint64_t rows_for(uint64_t count)
{
    return (count + SHELF_ROW - 1) / SHELF_ROW;
}

// The bits of a row that has the blocks from number `at` of so many on.
static uint64_t row_bits(uint64_t at, uint64_t count)
{
    return count - at < SHELF_ROW ? (UINT64_C(1) << (count - at)) - 1 : UINT64_MAX;
}

// So many rows side by side that have no blocks.
static bool rows_find(const amdgpu_shelf_t *shelf, uint64_t count, uint64_t *first)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < bins_of(shelf)->row_count && found < count; i++) {
        found = rows_of(shelf)[i].base ? 0 : found + 1;
        *first = i + 1 - found;
    }
    return found == count;
}

static bool shelf_blocks_add(void *user, uint64_t address, uint64_t count)
{
    amdgpu_shelf_t *shelf = user;
    uint64_t first = 0;
    if (!rows_find(shelf, rows_for(count), &first)) return false;
    for (uint64_t at = 0; at < count; at += SHELF_ROW) {
        shelf_row_t *row = &rows_of(shelf)[first + at / SHELF_ROW];
        row->base = address + at * bins_of(shelf)->block_size;
        // release: pairs with bin_pick, behind which the address is read.
        PROTOCOL_STORE(&row->free, row_bits(at, count), __ATOMIC_RELEASE);
    }
    PROTOCOL_ADD(&bins_of(shelf)->free, count, __ATOMIC_RELEASE);
    blocks_came(shelf);
    return true;
}

// The row that begins with the block at an address.
static shelf_row_t *row_at(const amdgpu_shelf_t *shelf, uint64_t address)
{
    shelf_row_t *row = rows_of(shelf);
    while (row->base != address) row++;
    return row;
}

// Their bits, if all are there: up to which one.
static uint64_t bits_take(shelf_row_t *row, uint64_t count)
{
    uint64_t at = 0;
    for (; at < count; at += SHELF_ROW, row++) {
        uint64_t bits = row_bits(at, count);
        if (!PROTOCOL_CAS(&row->free, &bits, 0)) break;
    }
    return at;
}

static bool shelf_blocks_remove(void *user, uint64_t address, uint64_t count)
{
    amdgpu_shelf_t *shelf = user;
    shelf_row_t *row = row_at(shelf, address);
    if (!bin_count_off(bins_of(shelf), count)) return false;
    uint64_t taken = bits_take(row, count);
    bool all = taken >= count;
    for (uint64_t at = 0; at < taken; at += SHELF_ROW) {
        if (all)
            row[at / SHELF_ROW].base = 0;
        else
            PROTOCOL_STORE(&row[at / SHELF_ROW].free, row_bits(at, count), __ATOMIC_RELEASE);
    }
    if (all) return true;
    PROTOCOL_ADD(&bins_of(shelf)->free, count, __ATOMIC_RELEASE);
    blocks_came(shelf);
    return false;
}

static void shelf_bin_size(void *user, uint32_t number, uint64_t size)
{
    shelf_bin_t *bin = &bins_of(user)[number];
    bin->block_size = size;
    bin->row_count = bin->row = 0;
}

// A row for each.
static uint64_t shelf_block_enlist(void *user, uint32_t number, uint32_t cut, uint64_t address)
{
    const amdgpu_shelf_t *shelf = user;
    shelf_bin_t *bin = &bins_of(shelf)[number];
    PROTOCOL_AT(shelf_row_t, bin->rows)[cut].base = address;
    // relaxed: who looks for a block there goes round until it is seen.
    if (bin->row_count <= cut) PROTOCOL_STORE(&bin->row_count, cut + 1, __ATOMIC_RELAXED);
    shelf_use(shelf->shared, bin->block_size);
    return bin->first + (uint64_t)cut * SHELF_ROW + 1;
}

static uint32_t shelf_block_drop(void *user, uint32_t number)
{
    shelf_bin_t *bin = &bins_of(user)[number];
    if (!bin_count_off(bin, 1)) return 0;
    return (uint32_t)((bin_pick(bin) - 1 - bin->first) / SHELF_ROW) + 1;
}

static uint64_t shelf_block_take(void *user, uint32_t number)
{
    const amdgpu_shelf_t *shelf = user;
    shelf_bin_t *bin = &bins_of(shelf)[number];
    if (!bin_count_off(bin, 1)) return 0;
    shelf_use(shelf->shared, bin->block_size);
    return bin_pick(bin);
}

static void shelf_block_put(void *user, uint64_t block)
{
    amdgpu_shelf_t *shelf = user;
    shelf_put(shelf->shared, bin_at(shelf, block), block);
    blocks_came(shelf);
}

static uint64_t shelf_block_address(const void *user, uint64_t block)
{
    return bin_address(bin_at(user, block), block);
}

static uint64_t shelf_bytes(const void *user)
{
    return PROTOCOL_LOAD(&((const amdgpu_shelf_t *)user)->shared->used, __ATOMIC_ACQUIRE);
}

static uint64_t shelf_most(void *user)
{
    shelf_t *shared = ((amdgpu_shelf_t *)user)->shared;
    uint64_t used = PROTOCOL_LOAD(&shared->used, __ATOMIC_RELAXED);
    uint64_t most = PROTOCOL_SWAP(&shared->most, used, __ATOMIC_ACQ_REL);
    // It may have become more since.
    PROTOCOL_MOST(&shared->most, PROTOCOL_LOAD(&shared->used, __ATOMIC_RELAXED));
    return most > used ? most : used;
}

static uint64_t shelf_waits(const void *user)
{
    const shelf_t *shared = ((const amdgpu_shelf_t *)user)->shared;
    const shelf_side_t *sides = PROTOCOL_AT(const shelf_side_t, shared->sides);
    uint64_t count = 0;
    for (uint32_t i = 0; i < shared->side_count; i++)
        count += PROTOCOL_LOAD(&sides[i].waiting, __ATOMIC_RELAXED);
    return count;
}

static void shelf_rule(void *user, uint32_t number, shelf_lack_t lack)
{
    PROTOCOL_STORE(&bins_of(user)[number].rule, (uint32_t)lack, __ATOMIC_RELAXED);
    blocks_came(user);
}

static void shelf_set(void *user, bool host)
{
    PROTOCOL_STORE(&((amdgpu_shelf_t *)user)->shared->host, host, __ATOMIC_RELAXED);
    // seq_cst: pairs with room_give_back. Either that sees that the host waits, or the pool's next
    // look sees the blocks.
    PROTOCOL_FENCE();
}

static keel_buffer_t *shelf_changed(void *user)
{
    amdgpu_shelf_t *shelf = user;
    // acquire: pairs with handle_touch.
    if (!shelf->learned && PROTOCOL_LOAD(&shelf->shared->changed, __ATOMIC_RELAXED))
        shelf->learned = PROTOCOL_SWAP(&shelf->shared->changed, 0, __ATOMIC_ACQUIRE);
    if (!shelf->learned) return NULL;
    handle_t *handle = PROTOCOL_AT(handle_t, shelf->learned);
    shelf->learned = PROTOCOL_LOAD(&handle->next, __ATOMIC_RELAXED); // before it may come again
    // acq_rel: pairs with handle_touch. Either the pool sees the block, or it comes again.
    PROTOCOL_SWAP(&handle->changed, 0, __ATOMIC_ACQ_REL);
    return (keel_buffer_t *)(uintptr_t)handle->user;
}

static void shelf_destroy(void *user)
{
    amdgpu_shelf_t *shelf = user;
    amdgpu_scheduler_t *s = shelf->device->scheduler;
    if (object_is_ours(&shelf->device->base.object)) {
        lock_enter(&s->shelves_lock);
        *shelf->link = shelf->next;
        if (shelf->next) shelf->next->link = shelf->link;
        atomic_fetch_sub(&s->shelf_count, 1);
        lock_leave(&s->shelves_lock);
        blocks_return(&shelf->device->blocks, shelf->memory, false);
    }
    mem_free(shelf);
}

static const shelf_ops_t shelf_ops = {
    .add = shelf_blocks_add,
    .remove = shelf_blocks_remove,
    .size = shelf_bin_size,
    .enlist = shelf_block_enlist,
    .drop = shelf_block_drop,
    .take = shelf_block_take,
    .put = shelf_block_put,
    .address = shelf_block_address,
    .used = shelf_bytes,
    .most = shelf_most,
    .waiting = shelf_waits,
    .rule = shelf_rule,
    .set = shelf_set,
    .changed = shelf_changed,
    .destroy = shelf_destroy,
};

// The rows that a pool of blocks needs at its limit, about; in others, those of each bin.
static uint32_t rows_want(const keel_pool_options_t *options)
{
    if (!options->block_size) return SHELF_CUTS;
    uint64_t blocks = options->limit / options->block_size;
    uint64_t each = SLAB_SIZE / options->block_size;
    uint64_t rows = each ? (blocks / each + 1) * rows_for(each) : blocks;
    return rows < ROWS ? (uint32_t)rows + 1 : ROWS;
}

static uint32_t bins_want(const keel_pool_options_t *options)
{
    return options->block_size ? 1 : SHELF_BINS;
}

static uint64_t shelf_size(const amdgpu_device_t *device, const keel_pool_options_t *options)
{
    uint64_t bin = sizeof(shelf_bin_t) + rows_want(options) * sizeof(shelf_row_t);
    return sizeof(shelf_t) + bins_want(options) * bin +
           device->scheduler->control_count * sizeof(shelf_side_t);
}

static void shelf_fill(amdgpu_shelf_t *shelf, const keel_pool_options_t *options)
{
    const amdgpu_scheduler_t *s = shelf->device->scheduler;
    uint32_t count = bins_want(options), rows = rows_want(options);
    memset(shelf->memory->data, 0, shelf->memory->size);
    shelf_t *shared = shelf->shared = (shelf_t *)(void *)shelf->memory->data;
    shelf_bin_t *bins = (shelf_bin_t *)(void *)(shared + 1);
    shelf_row_t *first = (shelf_row_t *)(void *)(bins + count);
    shelf_side_t *sides = (shelf_side_t *)(void *)(first + count * rows);
    shared->bins = (uintptr_t)bins;
    shared->bin_count = count;
    shared->sides = (uintptr_t)sides;
    shared->side_count = s->control_count;
    for (uint32_t i = 0; i < count; i++)
        bins[i] = (shelf_bin_t){.rows = (uintptr_t)(first + i * rows),
                                .first = i * rows * SHELF_ROW,
                                .row_count = options->block_size ? rows : 0,
                                .block_size = options->block_size};
    for (uint32_t i = 0; i < s->control_count; i++)
        sides[i].scheduler = (uintptr_t)s->controls[i].shared;
}

static void shelf_list(amdgpu_shelf_t *shelf)
{
    amdgpu_scheduler_t *s = shelf->device->scheduler;
    lock_enter(&s->shelves_lock);
    shelf->next = s->shelves;
    shelf->link = &s->shelves;
    if (shelf->next) shelf->next->link = &shelf->next;
    s->shelves = shelf;
    atomic_fetch_add(&s->shelf_count, 1);
    lock_leave(&s->shelves_lock);
}

void amdgpu_shelf_make(amdgpu_device_t *device, const keel_pool_options_t *options,
                       keel_pool_t *pool)
{
    amdgpu_shelf_t *shelf = mem_zalloc(sizeof *shelf);
    if (!shelf) return;
    shelf->device = device;
    shelf->pool = pool;
    keel_status_t status =
        blocks_acquire(&device->blocks, shelf_size(device, options), &shelf->memory);
    if (!status && pool_shelve(pool, &shelf_ops, shelf, options->block_size)) {
        shelf_fill(shelf, options);
        shelf_list(shelf);
        return;
    }
    if (!status) blocks_return(&device->blocks, shelf->memory, true);
    keel_status_release(status);
    mem_free(shelf);
}

shelf_t *amdgpu_shelf_of(const keel_pool_t *pool)
{
    const amdgpu_shelf_t *shelf = pool_shelf(pool);
    return shelf ? shelf->shared : NULL;
}

void amdgpu_shelves_look(amdgpu_device_t *device)
{
    amdgpu_scheduler_t *s = device->scheduler;
    // relaxed: the pool of a buffer that a point tells of was made before.
    if (!atomic_load_explicit(&s->shelf_count, memory_order_relaxed)) return;
    lock_enter(&s->shelves_lock);
    for (const amdgpu_shelf_t *shelf = s->shelves; shelf; shelf = shelf->next)
        if (PROTOCOL_LOAD(&shelf->shared->changed, __ATOMIC_RELAXED))
            pool_catch_up(shelf->pool, false);
    lock_leave(&s->shelves_lock);
}

// One that the host waits for blocks of, retained; behind `after`. NULL: there is none.
static keel_pool_t *pool_next(amdgpu_scheduler_t *s, uint32_t *number)
{
    keel_pool_t *found = NULL;
    uint32_t i = 0;
    lock_enter(&s->shelves_lock);
    for (const amdgpu_shelf_t *shelf = s->shelves; shelf && !found; shelf = shelf->next) {
        if (i++ < *number) continue;
        *number = i;
        if (PROTOCOL_LOAD(&shelf->shared->host, __ATOMIC_RELAXED) &&
            object_hold(&shelf->pool->object))
            found = shelf->pool;
    }
    lock_leave(&s->shelves_lock);
    return found;
}

void amdgpu_shelves_work(amdgpu_device_t *device)
{
    uint32_t number = 0;
    for (keel_pool_t *pool; (pool = pool_next(device->scheduler, &number));) {
        pool_catch_up(pool, true);
        keel_pool_release(pool);
    }
}
