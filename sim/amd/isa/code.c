// SPDX-License-Identifier: Apache-2.0
// Keeps decoded code, finds memory, and reports faults.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "amd/base.h"
#include "amd/isa/caches.h"

enum { BLOCK_BYTES = BLOCK_WORDS * 4 };

const uint32_t *pool_constant(isa_t *isa, uint64_t value)
{
    pool_t *pool = isa->pool;
    if (!pool || pool->used == sizeof pool->values / sizeof *pool->values) {
        pool = aligned_alloc(64, sizeof *pool);
        if (!pool) return NULL;
        pool->next = isa->pool;
        pool->used = 0;
        isa->pool = pool;
    }
    uint32_t *lanes = pool->values[pool->used++];
    for (unsigned l = 0; l < LANES; l++) {
        lanes[l] = (uint32_t)value;
        lanes[LANES + l] = (uint32_t)(value >> 32);
    }
    return lanes;
}

void code_forget(isa_t *isa)
{
    for (unsigned i = 0; i < BLOCK_HASH; i++) {
        while (isa->blocks[i]) {
            block_t *block = isa->blocks[i];
            isa->blocks[i] = block->next;
            free(block);
        }
    }
    while (isa->pool) {
        pool_t *pool = isa->pool;
        isa->pool = pool->next;
        free(pool);
    }
    isa->last_block = NULL;
}

static block_t *block_at(isa_t *isa, uint64_t address)
{
    uint64_t base = address & ~(uint64_t)(BLOCK_BYTES - 1);
    if (isa->last_block && isa->last_block->base == base) return isa->last_block;
    block_t **bucket = &isa->blocks[base / BLOCK_BYTES % BLOCK_HASH];
    block_t *block = *bucket;
    while (block && block->base != base) block = block->next;
    if (!block) {
        block = calloc(1, sizeof *block);
        if (!block) return NULL;
        for (unsigned k = 0; k < BLOCK_WORDS + 2; k++) block->insns[k].run = run_undecoded;
        block->base = base;
        block->next = *bucket;
        *bucket = block;
    }
    isa->last_block = block;
    return block;
}

const insn_t *code_at(isa_t *isa, uint64_t address)
{
    block_t *block = block_at(isa, address);
    return block ? &block->insns[address % BLOCK_BYTES / 4] : NULL;
}

static const block_t *block_of(const isa_t *isa, const insn_t *i)
{
    for (unsigned k = 0; k < BLOCK_HASH; k++) {
        for (const block_t *block = isa->blocks[k]; block; block = block->next) {
            if (i >= block->insns && i < block->insns + BLOCK_WORDS + 2) return block;
        }
    }
    return NULL;
}

uint64_t code_address(const isa_t *isa, const insn_t *i)
{
    const block_t *block = isa->last_block;
    if (!block || i < block->insns || i >= block->insns + BLOCK_WORDS + 2) block = block_of(isa, i);
    return block ? block->base + (uint64_t)(i - block->insns) * 4 : 0;
}

const insn_t *wave_jump(wave_t *w, const insn_t *from, uint64_t address)
{
    const insn_t *to = address % 4 ? NULL : code_at(w->isa, address);
    return to ? to : wave_memory_fault(w, from, -1, address);
}

void code_fetch(isa_t *isa, uint64_t address, const void *p, void *out, size_t size)
{
    if (isa->caches) {
        caches_fetch(isa->caches, address, out, size);
    } else {
        memcpy(out, p, size);
    }
}

const insn_t *run_undecoded(wave_t *w, const insn_t *i)
{
    isa_t *isa = w->isa;
    uint64_t address = code_address(isa, i);
    block_t *block = block_at(isa, address);
    if (!block) return wave_memory_fault(w, i, -1, address);
    // Beyond its end a block only leads to the next.
    if (i - block->insns >= BLOCK_WORDS || i < block->insns) return wave_jump(w, i, address);
    const span_t *both = isa_span(isa, address, 8), *span = both ? both : isa_span(isa, address, 4);
    if (!span) return wave_memory_fault(w, i, -1, address);
    uint32_t code[2] = {0};
    code_fetch(isa, address, span->host + (address - span->base), code, both ? 8 : 4);
    insn_t *slot = &block->insns[i - block->insns];
    insn_decode(isa, slot, code);
    return slot;
}

const insn_t *run_unknown(wave_t *w, const insn_t *i)
{
    return wave_fault(w, i, FAULT_INSTRUCTION, "%s",
                      i->name ? "is not modelled" : "no such instruction");
}

const span_t *isa_span(isa_t *isa, uint64_t address, uint64_t size)
{
    uint64_t generation = map_generation();
    if (isa->span_generation != generation) {
        memset(isa->span, 0, sizeof isa->span);
        isa->span_generation = generation;
    }
    for (unsigned k = 0; k < SPAN_CACHE; k++) {
        const span_t *span = &isa->span[k];
        if (address - span->base < span->size && size <= span->size - (address - span->base)) {
            return span;
        }
    }
    span_t found;
    if (!map_find(address, size, &found) || !(found.nodes >> isa->node & 1)) return NULL;
    if (size > found.size - (address - found.base)) return NULL;
    span_t *span = &isa->span[isa->span_next++ % SPAN_CACHE];
    *span = found;
    return span;
}

// What the wave looked like, for people.
static void log_state(const wave_t *w, const insn_t *i)
{
    char scalars[16 * 9 + 1];
    for (unsigned k = 0; k < 16; k++) snprintf(scalars + 9 * k, 10, " %08x", w->s[k]);
    log_line(LOG_ERROR, "    words %08x %08x, exec %016llx, vcc %016llx, scc %u, m0 %08x",
             i->raw[0], i->raw[1], (unsigned long long)wave_exec(w),
             (unsigned long long)wave_s64(w, SGPR_VCC), w->scc, w->s[SGPR_M0]);
    log_line(LOG_ERROR, "    s0 to s15%s", scalars);
}

const insn_t *wave_fault(wave_t *w, const insn_t *i, fault_kind_t kind, const char *format, ...)
{
    isa_t *isa = w->isa;
    fault_t *fault = &isa->fault;
    if (fault->kind == FAULT_NONE) {
        char text[128], kernel[96];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        kernel_name(isa->dispatch->kernel, kernel, sizeof kernel);
        fault->kind = kind;
        char code[160];
        insn_text(isa, i, code, sizeof code);
        snprintf(fault->text, sizeof fault->text, "kernel %s, at 0x%llx: %s: %s", kernel,
                 (unsigned long long)code_address(isa, i), code, text);
        log_line(LOG_ERROR, "%s", fault->text);
        log_state(w, i);
    }
    return wave_leave(w, i, WAVE_FAULTED);
}

const insn_t *wave_memory_fault(wave_t *w, const insn_t *i, int lane, uint64_t address)
{
    span_t span;
    const char *why = !map_find(address, 0, &span)        ? "no such memory"
                      : !(span.nodes >> w->isa->node & 1) ? "this node may not touch it"
                                                          : "reaches over the end of it";
    if (w->isa->fault.kind == FAULT_NONE) w->isa->fault.address = address;
    return lane < 0 ? wave_fault(w, i, FAULT_MEMORY, "address 0x%llx: %s",
                                 (unsigned long long)address, why)
                    : wave_fault(w, i, FAULT_MEMORY, "lane %d, address 0x%llx: %s", lane,
                                 (unsigned long long)address, why);
}
