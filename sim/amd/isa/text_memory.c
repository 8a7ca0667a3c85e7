// SPDX-License-Identifier: Apache-2.0
// The disassembler: instructions on memory. How many registers they take follows from their names.
#include "amd/isa/text.h"

static bool has(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

// Words of the value that a load, a store or an atomic moves.
static unsigned words_of(const char *name)
{
    if (has(name, "x16")) return 16;
    if (has(name, "x8")) return 8;
    if (has(name, "x4") || has(name, "b128")) return 4;
    if (has(name, "x3") || has(name, "b96")) return 3;
    bool two = has(name, "_x2") || has(name, "x2") || has(name, "64");
    return two && !has(name, "2st64_b32") ? 2 : 1;
}

// Bits for coherence, streaming, and coherence beyond the GPU.
static void flags(text_t *t, uint32_t word, unsigned coherent, unsigned streaming, unsigned system)
{
    bool scopes = t->target->scopes;
    if (word >> coherent & 1) text_put(t, scopes ? " sc0" : " glc");
    if (word >> streaming & 1) text_put(t, scopes ? " nt" : " slc");
    if (word >> system & 1) text_put(t, scopes ? " sc1" : " scc");
}

static void scalar_memory(text_t *t)
{
    const insn_t *i = t->i;
    const char *name = i->name;
    if (has(name, "time")) {
        text_scalar(t, i->dst, 2);
        return;
    }
    if (has(name, "dcache") && !has(name, "discard")) return;
    unsigned words = words_of(name) * (has(name, "cmpswap") ? 2 : 1);
    if (!has(name, "discard")) text_scalar(t, i->dst, words);
    text_scalar(t, i->address, has(name, "buffer") ? 4 : 2);
    if (i->has_scalar) text_scalar(t, i->scalar, 1);
    if (!i->has_scalar) {
        text_next(t);
        text_put(t, "%s0x%x", i->offset < 0 ? "-" : "", i->offset < 0 ? -i->offset : i->offset);
    } else if (i->offset) {
        text_put(t, " offset:0x%x", i->offset);
    }
    if (i->returns) text_put(t, " glc");
}

static void flat_address(text_t *t)
{
    const insn_t *i = t->i;
    bool scratch = i->segment == ENC_SCRATCH;
    if (scratch && !i->has_vector) {
        text_next(t);
        text_put(t, "off");
    } else {
        text_vector(t, i->address, scratch || i->has_scalar ? 1 : 2);
    }
}

static void flat_base(text_t *t)
{
    const insn_t *i = t->i;
    if (i->segment == ENC_FLAT) return;
    if (i->has_scalar) {
        text_scalar(t, i->scalar, i->segment == ENC_SCRATCH ? 1 : 2);
    } else {
        text_next(t);
        text_put(t, "off");
    }
}

static void flat_memory(text_t *t)
{
    const insn_t *i = t->i;
    const char *name = i->name;
    unsigned words = words_of(name);
    bool store = has(name, "store"), atomic = has(name, "atomic"), lds = has(name, "_lds");
    if (!store && !lds && (!atomic || i->returns)) text_vector(t, i->dst, words);
    flat_address(t);
    if (store || atomic) text_vector(t, i->data[0], has(name, "cmpswap") ? 2 * words : words);
    flat_base(t);
    if (i->offset) text_put(t, " offset:%d", i->offset);
    flags(t, i->raw[0], 16, 17, 25);
}

static void buffer_memory(text_t *t)
{
    const insn_t *i = t->i;
    const char *name = i->name;
    if (has(name, "wb") || has(name, "inv")) {
        if (t->target->scopes) flags(t, i->raw[0], 14, 17, 15);
        return;
    }
    bool lds = text_bits(i->raw[0], 16, 1);
    if (!lds) text_vector(t, i->data[0], words_of(name) * (has(name, "cmpswap") ? 2 : 1));
    if (i->has_vector || i->has_index) {
        text_vector(t, i->data[1], i->has_vector && i->has_index ? 2 : 1);
    } else if (!has(name, "store_lds")) {
        text_next(t);
        text_put(t, "off");
    }
    text_scalar(t, i->address, 4);
    text_source(t, text_bits(i->raw[1], 24, 8), TYPE_u32);
    if (i->has_index) text_put(t, " idxen");
    if (i->has_vector) text_put(t, " offen");
    if (i->offset) text_put(t, " offset:%d", i->offset);
    flags(t, i->raw[0], 14, 17, 15);
    if (lds) text_put(t, " lds");
}

static void lds_offset(text_t *t, bool two)
{
    unsigned offset = (unsigned)t->i->offset;
    if (two) {
        if (offset & 0xff) text_put(t, " offset0:%u", offset & 0xff);
        if (offset >> 8) text_put(t, " offset1:%u", offset >> 8);
    } else if (offset) {
        text_put(t, has(t->i->name, "swizzle") ? " offset:0x%x" : " offset:%u", offset);
    }
}

static void lds_memory(text_t *t)
{
    const insn_t *i = t->i;
    const char *name = i->name;
    if (has(name, "nop")) return;
    if (has(name, "gws")) {
        text_vector(t, i->address, 1);
        lds_offset(t, false);
        text_put(t, " gds");
        return;
    }
    bool read = has(name, "read"), memory = has(name, "src2");
    bool counts = has(name, "append") || has(name, "consume"), lanes = has(name, "addtid");
    bool swizzle = has(name, "swizzle"), two = !memory && (has(name, "2_") || has(name, "2st64"));
    bool returns = read || has(name, "_rtn") || has(name, "permute") || counts || swizzle;
    bool pair = two || has(name, "cmpst") || has(name, "mskor") || has(name, "wrap");
    unsigned words = words_of(name);
    if (returns) text_vector(t, i->dst, two ? 2 * words : words);
    if (!counts && !lanes) text_vector(t, i->address, 1);
    if (!read && !counts && !memory && !swizzle) text_vector(t, i->data[0], words);
    if (!read && pair) text_vector(t, i->data[1], words);
    lds_offset(t, two);
}

void text_memory(text_t *t)
{
    switch ((encoding_t)t->i->segment) {
    case ENC_SMEM: scalar_memory(t); break;
    case ENC_DS: lds_memory(t); break;
    case ENC_MUBUF: buffer_memory(t); break;
    default: flat_memory(t); break;
    }
}
