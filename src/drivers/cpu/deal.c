// SPDX-License-Identifier: Apache-2.0
// Dealing out the units of one command to all who are on a run, without a lock.
//
// Each worker of the node has a share: units in a row, always the same ones of a grid, so that it
// finds in its cache what it wrote there in the stage before. It claims them from the front. A
// worker that has no more of its own takes them from the end of another's share.
//
//     63  62 | 61               31 | 30                0
//      slot  |   the next unit     |   the end             a share
//
// A claim changes this word by compare and exchange. What the units are of stands in the slot of
// the deal, which is not reused before all of them have ended; so it is read after the claim, never
// before. Ends are counted down in the slot, and who brings it to zero ends the deal. A deal counts
// as one chunk in flight.
//
// A worker that finds all shares empty notes the number of the deal in `exhausted`: others need not
// look. A number that comes too late is another's, and makes them look once more.
#include "drivers/cpu/cpu.h"

enum {
    UNIT_BITS = 31,
    MOST_UNITS = 1 << 30,
    MOST_CLAIM = 1 << 16,
};

#define UNIT_MASK ((UINT64_C(1) << UNIT_BITS) - 1)

static uint64_t word_make(uint64_t slot, uint64_t next, uint64_t end)
{
    return slot << 62 | next << UNIT_BITS | end;
}

static uint64_t word_next(uint64_t word)
{
    return word >> UNIT_BITS & UNIT_MASK;
}

static uint64_t word_end(uint64_t word)
{
    return word & UNIT_MASK;
}

// The most to claim at once: what takes some microseconds.
static uint32_t claim_most(const cpu_run_t *run, uint64_t share_ticks)
{
    uint32_t cost = cpu_command_cost(run->at);
    uint64_t fit = cost ? 8 * share_ticks / cost : 1;
    if (!fit) return 1;
    return fit < MOST_CLAIM ? (uint32_t)fit : MOST_CLAIM;
}

bool cpu_deal_publish(cpu_run_t *run, uint64_t share_ticks)
{
    uint64_t count = run->units - run->unit, slot = (run->deal_slot + 1) % CPU_DEALS;
    cpu_deal_t *deal = &run->deals[slot];
    // acquire: pairs with cpu_deal_end; those who ended it have read what we overwrite.
    bool busy = atomic_load_explicit(&deal->left, memory_order_acquire) != 0;
    if (count < 2 || busy || cpu_deal_left(run)) return false;
    if (count > MOST_UNITS) count = MOST_UNITS;
    deal->command = run->at;
    deal->commands = run->commands;
    deal->execute = run->execute;
    deal->first = run->unit;
    deal->number = atomic_load_explicit(&run->dealt, memory_order_relaxed) + 1;
    atomic_store_explicit(&deal->left, count, memory_order_relaxed);
    atomic_store_explicit(&run->most, claim_most(run, share_ticks), memory_order_relaxed);
    run->deal_slot = (uint32_t)slot;
    uint64_t shares = cpu_run_node(run)->share_count;
    for (uint64_t i = 0; i < shares; i++) {
        uint64_t word = word_make(slot, count * i / shares, count * (i + 1) / shares);
        // release: pairs with the claim.
        atomic_store_explicit(&run->shares[i].word, word, memory_order_release);
    }
    // release: pairs with cpu_deal_is_open.
    atomic_store_explicit(&run->dealt, deal->number, memory_order_release);
    run->unit += count;
    run->in_flight++;
    return true;
}

// Of its own share a worker takes all that is over soon: claiming again would take longer than
// ending together saves. Else half, and so less as the end nears.
static uint64_t claim_size(uint64_t left, uint64_t most, bool own)
{
    uint64_t half = (left + 1) / 2;
    if (own && left <= most) return left;
    return half < most ? half : most;
}

static bool share_claim(cpu_run_t *run, uint32_t index, bool own, cpu_chunk_t *chunk)
{
    _Atomic uint64_t *share = &run->shares[index].word;
    uint64_t most = atomic_load_explicit(&run->most, memory_order_relaxed);
    uint64_t word = atomic_load_explicit(share, memory_order_relaxed), rest, first, count;
    do {
        uint64_t next = word_next(word), end = word_end(word);
        if (next == end) return false;
        count = claim_size(end - next, most, own);
        first = own ? next : end - count;
        rest = own ? word + (count << UNIT_BITS) : word - count;
        // acquire: pairs with the publication. It may be another deal by now: as good.
    } while (!atomic_compare_exchange_weak_explicit(share, &word, rest, memory_order_acquire,
                                                    memory_order_relaxed));
    cpu_deal_t *deal = &run->deals[word >> 62];
    *chunk = (cpu_chunk_t){
        .command = deal->command,
        .commands = deal->commands,
        .execute = deal->execute,
        .first = deal->first + first,
        .count = count,
        .deal = deal,
    };
    return true;
}

bool cpu_deal_claim(cpu_run_t *run, uint32_t index, cpu_chunk_t *chunk)
{
    if (!cpu_deal_is_open(run)) return false;
    uint32_t dealt = atomic_load_explicit(&run->dealt, memory_order_acquire);
    uint32_t shares = cpu_run_node(run)->share_count, own = index % shares;
    if (share_claim(run, own, true, chunk)) return true;
    for (uint32_t i = 1; i < shares; i++)
        if (share_claim(run, (own + i) % shares, false, chunk)) return true;
    // relaxed: says only where not to look.
    atomic_store_explicit(&run->exhausted, dealt, memory_order_relaxed);
    return false;
}

bool cpu_deal_end(cpu_run_t *run, cpu_deal_t *deal, uint64_t count)
{
    uint32_t number = deal->number;
    // acq_rel: the last one sees what the others did.
    if (atomic_fetch_sub_explicit(&deal->left, count, memory_order_acq_rel) != count) return false;
    atomic_store_explicit(&run->exhausted, number, memory_order_relaxed);
    return true;
}

bool cpu_deal_withdraw(cpu_run_t *run)
{
    if (!cpu_deal_is_open(run)) return false;
    uint64_t count = 0;
    for (uint32_t i = 0; i < cpu_run_node(run)->share_count; i++) {
        _Atomic uint64_t *share = &run->shares[i].word;
        uint64_t word = atomic_load_explicit(share, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(
            share, &word, word_make(word >> 62, word_end(word), word_end(word)),
            memory_order_acquire, memory_order_relaxed)) {
        }
        count += word_end(word) - word_next(word);
    }
    return count && cpu_deal_end(run, &run->deals[run->deal_slot], count);
}
