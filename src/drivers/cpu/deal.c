// SPDX-License-Identifier: Apache-2.0
// Dealing out the units of one command to all who are on a run, without a lock.
//
// A deal is published in one word that claimers add to:
//
//     63  62 | 61    56 | 55              28 | 27               0
//      slot  | log2 of  |   units in it      |  the next one,
//            | the most |                    |  or beyond the end
//            | to claim |                    |
//
// A worker that finds the old `next` below the number of units has claimed some. What they are
// units of stands in the slot, which is not reused before all of them have ended; so it is read
// after the claim, never before. Ends are counted down in the slot, and who brings it to zero ends
// the deal. A deal counts as one chunk in flight.
#include "drivers/cpu/cpu.h"

enum {
    UNIT_BITS = 28,
    MOST_UNITS = 1 << (UNIT_BITS - 1), // beyond it each worker may add one claim more
    MOST_CLAIM_LOG2 = 16,
};

#define UNIT_MASK ((UINT64_C(1) << UNIT_BITS) - 1)

static uint64_t word_units(uint64_t word)
{
    return word >> UNIT_BITS & UNIT_MASK;
}

static uint64_t word_next(uint64_t word)
{
    return word & UNIT_MASK;
}

static cpu_deal_t *word_deal(cpu_run_t *run, uint64_t word)
{
    return &run->deals[word >> 62];
}

// The most to claim at once: what takes some microseconds.
static uint64_t claim_log2(const cpu_run_t *run, uint64_t share_ticks)
{
    uint32_t cost = cpu_command_cost(run->at);
    uint64_t fit = cost ? 8 * share_ticks / cost : 1;
    uint64_t log2 = fit > 1 ? 63u - (unsigned)__builtin_clzll(fit) : 0;
    return log2 < MOST_CLAIM_LOG2 ? log2 : MOST_CLAIM_LOG2;
}

uint64_t cpu_deal_left(const cpu_run_t *run)
{
    uint64_t word = atomic_load_explicit(&run->deal, memory_order_relaxed);
    return word_next(word) < word_units(word) ? word_units(word) - word_next(word) : 0;
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
    atomic_store_explicit(&deal->left, count, memory_order_relaxed);
    run->deal_slot = (uint32_t)slot;
    // release: pairs with the claim.
    atomic_store_explicit(&run->deal,
                          slot << 62 | claim_log2(run, share_ticks) << 56 | count << UNIT_BITS,
                          memory_order_release);
    run->unit += count;
    run->in_flight++;
    return true;
}

// What is over soon is dealt out in fair parts: claiming would take longer than ending together
// saves. Else less as the end nears.
static uint64_t claim_size(uint64_t word, uint64_t workers)
{
    uint64_t left = word_units(word) - word_next(word), most = UINT64_C(1) << (word >> 56 & 63);
    uint64_t fair = (left + workers - 1) / workers, part = left / (2 * workers);
    if (fair <= most) return fair;
    return part > most ? most : part ? part : 1;
}

bool cpu_deal_claim(cpu_run_t *run, uint64_t workers, cpu_chunk_t *chunk)
{
    uint64_t word = atomic_load_explicit(&run->deal, memory_order_relaxed);
    if (word_next(word) >= word_units(word)) return false;
    uint64_t count = claim_size(word, workers);
    // acquire: pairs with the publication, through the other claims. It may be another deal by now:
    // as good.
    word = atomic_fetch_add_explicit(&run->deal, count, memory_order_acquire);
    uint64_t next = word_next(word), units = word_units(word);
    if (next >= units) return false;
    if (count > units - next) count = units - next;
    cpu_deal_t *deal = word_deal(run, word);
    *chunk = (cpu_chunk_t){
        .command = deal->command,
        .commands = deal->commands,
        .execute = deal->execute,
        .first = deal->first + next,
        .count = count,
        .deal = deal,
    };
    return true;
}

bool cpu_deal_end(cpu_deal_t *deal, uint64_t count)
{
    // acq_rel: the last one sees what the others did.
    return atomic_fetch_sub_explicit(&deal->left, count, memory_order_acq_rel) == count;
}

uint64_t cpu_deal_withdraw(cpu_run_t *run, cpu_deal_t **deal, uint64_t *next)
{
    uint64_t word = atomic_load_explicit(&run->deal, memory_order_relaxed);
    do {
        if (word_next(word) >= word_units(word)) return 0;
    } while (!atomic_compare_exchange_weak_explicit(&run->deal, &word,
                                                    (word & ~UNIT_MASK) | word_units(word),
                                                    memory_order_acquire, memory_order_relaxed));
    *deal = word_deal(run, word);
    *next = word_next(word);
    return word_units(word) - word_next(word);
}
