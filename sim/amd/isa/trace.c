// SPDX-License-Identifier: Apache-2.0
// Watching a kernel: --log=isa writes every instruction with the registers that it read and
// changed;
// --break stops a debugger before each instruction of a kernel.
#include "amd/isa/trace.h"

#include <stdio.h>
#include <stdlib.h>

#include "amd/base.h"

bool trace_breaks(uint64_t kernel)
{
    const char *wanted = getenv("KEEL_SIM_BREAK");
    char name[128];
    if (!wanted || !*wanted) return false;
    kernel_name(kernel, name, sizeof name);
    return !strcmp(name, wanted);
}

// Debuggers have breakpoints here; their arguments are all there is to them.
__attribute__((noinline)) void keel_sim_break(const wave_t *wave, const char *kernel)
{
    __asm__ volatile("" ::"r"(wave), "r"(kernel) : "memory");
}

__attribute__((noinline)) void keel_sim_step(const wave_t *wave, uint64_t address, const char *text)
{
    __asm__ volatile("" ::"r"(wave), "r"(address), "r"(text) : "memory");
}

void trace_break(const wave_t *w)
{
    char name[128];
    kernel_name(w->isa->dispatch->kernel, name, sizeof name);
    keel_sim_break(w, name);
}

void trace_step(const wave_t *w, const insn_t *i)
{
    char text[160];
    if (i->run == run_undecoded) return;
    insn_text(w->isa, i, text, sizeof text);
    keel_sim_step(w, code_address(w->isa, i), text);
}

typedef struct {
    char text[896];
    size_t length;
} line_t;

__attribute__((format(printf, 2, 3))) static void add(line_t *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length =
        vsnprintf(line->text + line->length, sizeof line->text - line->length, format, arguments);
    va_end(arguments);
    line->length += length < 0 ? 0 : (size_t)length;
    if (line->length >= sizeof line->text) line->length = sizeof line->text - 1;
}

static const char *file_of(unsigned vector)
{
    return vector >= VGPR_ACC ? "a" : "v";
}

// What the operands of an arithmetic instruction hold, of vectors the first lane that is active.
static void add_sources(line_t *line, const wave_t *w, const insn_t *i)
{
    uint64_t exec = wave_exec(w);
    unsigned lane = exec ? (unsigned)__builtin_ctzll(exec) : 0;
    for (unsigned k = 0; k < 3; k++) {
        unsigned index = i->src[k].index;
        for (unsigned n = 0; n < i->src[k].words; n++) {
            if (i->src[k].from == FROM_SCALAR) add(line, " s%u=%x", index + n, w->s[index + n]);
            if (i->src[k].from != FROM_VECTOR) continue;
            add(line, " %s%u=%x", file_of(index + n), (index + n) % VGPR_ACC,
                w->v[index + n][lane]);
        }
    }
}

static void add_scalars(line_t *line, const wave_t *now, const wave_t *before)
{
    for (unsigned k = 0; k < SGPR_COUNT; k++) {
        if (k == SGPR_VCC || k == SGPR_EXEC) {
            uint64_t value = wave_s64(now, k);
            if (value != wave_s64(before, k)) {
                add(line, " %s=%llx", k == SGPR_VCC ? "vcc" : "exec", (unsigned long long)value);
            }
            k++;
        } else if (now->s[k] != before->s[k]) {
            if (k == SGPR_M0) add(line, " m0=%x", now->s[k]);
            if (k != SGPR_M0) add(line, " s%u=%x", k, now->s[k]);
        }
    }
    if (now->scc != before->scc) add(line, " scc=%u", now->scc);
}

// The lanes that changed: how many, and the first of them.
static void add_vectors(line_t *line, const wave_t *now, const wave_t *before)
{
    enum { SHOWN = 4 };
    for (unsigned k = 0; k < VGPR_COUNT; k++) {
        unsigned changed = 0;
        if (!memcmp(now->v[k], before->v[k], sizeof now->v[k])) continue;
        for (unsigned l = 0; l < LANES; l++) {
            if (now->v[k][l] == before->v[k][l]) continue;
            if (!changed) add(line, " %s%u=[%u]", file_of(k), k % VGPR_ACC, l);
            if (changed++ < SHOWN) add(line, "%s%x", changed == 1 ? "" : ",", now->v[k][l]);
        }
        if (changed > SHOWN) add(line, "..(%u lanes)", changed);
    }
}

const insn_t *trace_run(wave_t *w, const insn_t *i)
{
    if (i->run == run_undecoded) return i->run(w, i);
    wave_t *before = aligned_alloc(64, sizeof *before);
    if (!before) return i->run(w, i);
    char text[160];
    line_t line = {.length = 0};
    insn_text(w->isa, i, text, sizeof text);
    uint64_t address = code_address(w->isa, i);
    add_sources(&line, w, i);
    memcpy(before, w, sizeof *before);
    const insn_t *next = i->run(w, i);
    add(&line, " ->");
    add_scalars(&line, w, before);
    add_vectors(&line, w, before);
    log_line(LOG_ISA, "group %llu wave %u 0x%llx: %-44s |%s", (unsigned long long)w->group,
             w->number, (unsigned long long)address, text, line.text);
    free(before);
    return next;
}
