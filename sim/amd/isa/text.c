// SPDX-License-Identifier: Apache-2.0
// The disassembler, for logs: scalar and vector instructions.
#include "amd/isa/text.h"

#include <stdarg.h>
#include <stdio.h>

void text_put(text_t *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(t->out, t->room, format, arguments);
    va_end(arguments);
    size_t written = length < 0 ? 0 : (size_t)length;
    if (written >= t->room) written = t->room ? t->room - 1 : 0;
    t->out += written;
    t->room -= written;
}

void text_next(text_t *t)
{
    text_put(t, t->some ? ", " : " ");
    t->some = true;
}

static void range(text_t *t, char file, unsigned index, unsigned words)
{
    if (words > 1) {
        text_put(t, "%c[%u:%u]", file, index, index + words - 1);
    } else {
        text_put(t, "%c%u", file, index);
    }
}

void text_vector(text_t *t, unsigned index, unsigned words)
{
    text_next(t);
    range(t, index >= VGPR_ACC ? 'a' : 'v', index % VGPR_ACC, words);
}

// A scalar register without what comes before it.
static void scalar_name(text_t *t, unsigned index, unsigned words)
{
    static const struct {
        uint8_t index;
        const char *name;
    } named[] = {{SGPR_FLAT_SCRATCH, "flat_scratch"},
                 {104, "xnack_mask"},
                 {SGPR_VCC, "vcc"},
                 {SGPR_EXEC, "exec"}};
    for (unsigned k = 0; k < sizeof named / sizeof *named; k++) {
        if ((index & ~1u) != named[k].index) continue;
        text_put(t, "%s%s", named[k].name, words > 1 ? "" : index & 1 ? "_hi" : "_lo");
        return;
    }
    if (index == SGPR_M0) {
        text_put(t, "m0");
    } else if (index >= 108 && index < SGPR_M0) {
        text_put(t, "ttmp");
        if (words > 1) text_put(t, "[%u:%u]", index - 108, index - 108 + words - 1);
        if (words == 1) text_put(t, "%u", index - 108);
    } else {
        range(t, 's', index, words);
    }
}

void text_scalar(text_t *t, unsigned index, unsigned words)
{
    text_next(t);
    scalar_name(t, index, words);
}

static void source_name(text_t *t, unsigned code, type_t type)
{
    static const char *const floats[] = {"0.5", "-0.5", "1.0", "-1.0",
                                         "2.0", "-2.0", "4.0", "-4.0"};
    static const char *const special[] = {"src_shared_base", "src_shared_limit", "src_private_base",
                                          "src_private_limit"};
    static const char *const status[] = {"src_vccz", "src_execz", "src_scc"};
    if (code >= 256) {
        range(t, code >= 256 + VGPR_ACC ? 'a' : 'v', code % 256, type_words(type));
    } else if (code < 128) {
        scalar_name(t, code, type_words(type));
    } else if (code <= 208) {
        text_put(t, "%d", code <= 192 ? (int)code - 128 : 192 - (int)code);
    } else if (code >= 235 && code <= 238) {
        text_put(t, "%s", special[code - 235]);
    } else if (code >= 240 && code < 248) {
        text_put(t, "%s", floats[code - 240]);
    } else if (code == 248) {
        text_put(t, type_words(type) == 2 ? "0.15915494309189532" : "0.15915494");
    } else if (code >= 251 && code <= 253) {
        text_put(t, "%s", status[code - 251]);
    } else {
        int32_t literal = (int32_t)t->i->raw[1], least = type_words(type) == 2 ? 0 : -16;
        text_put(t, literal >= least && literal <= 64 ? "%d" : "0x%x", literal);
    }
}

void text_source(text_t *t, unsigned code, type_t type)
{
    text_next(t);
    source_name(t, code, type);
}

static void wait_counts(text_t *t, uint32_t word)
{
    unsigned vector = text_bits(word, 0, 4) | text_bits(word, 14, 2) << 4;
    unsigned export = text_bits(word, 4, 3), scalar = text_bits(word, 8, 4);
    bool all = vector == 63 && export == 7 && scalar == 15;
    if (vector != 63 || all) text_put(t, " vmcnt(%u)", vector);
    if (export != 7 || all) text_put(t, " expcnt(%u)", export);
    if (scalar != 15 || all) text_put(t, " lgkmcnt(%u)", scalar);
}

static void hardware_register(text_t *t, uint32_t word)
{
    static const char *const names[32] = {
        [1] = "HW_REG_MODE",   [2] = "HW_REG_STATUS",        [3] = "HW_REG_TRAPSTS",
        [4] = "HW_REG_HW_ID",  [5] = "HW_REG_GPR_ALLOC",     [6] = "HW_REG_LDS_ALLOC",
        [7] = "HW_REG_IB_STS", [15] = "HW_REG_SH_MEM_BASES", [20] = "HW_REG_XCC_ID"};
    unsigned which = word & 63, offset = text_bits(word, 6, 5), size = text_bits(word, 11, 5) + 1;
    text_next(t);
    if (which < 32 && names[which] && (which < 16 || t->target->dies > 1)) {
        text_put(t, "hwreg(%s", names[which]);
    } else {
        text_put(t, "hwreg(%u", which);
    }
    if (offset || size != 32) text_put(t, ", %u, %u", offset, size);
    text_put(t, ")");
}

static bool begins(const char *name, const char *with)
{
    return !strncmp(name, with, strlen(with));
}

static void program_control(text_t *t, const char *name)
{
    uint32_t word = t->i->raw[0], value = word & 0xffff;
    if (begins(name, "s_waitcnt")) {
        wait_counts(t, word);
    } else if (begins(name, "s_branch") || begins(name, "s_cbranch")) {
        text_put(t, " %u", value);
    } else if (begins(name, "s_sendmsg")) {
        text_put(t, (value & 15) == 1 ? " sendmsg(MSG_INTERRUPT)" : " sendmsg(%u, 0, 0)", value);
    } else if (begins(name, "s_nop") || begins(name, "s_sleep") || begins(name, "s_trap") ||
               begins(name, "s_set")) {
        if (!begins(name, "s_set_gpr_idx_off")) text_put(t, " %u", value);
    }
}

static void scalar_constant(text_t *t, const char *name)
{
    const insn_t *i = t->i;
    uint32_t value = i->raw[0] & 0xffff;
    if (begins(name, "s_getreg")) {
        text_scalar(t, i->dst, 1);
        hardware_register(t, value);
    } else if (begins(name, "s_setreg")) {
        hardware_register(t, value);
        text_next(t);
        if (begins(name, "s_setreg_imm32")) {
            text_put(t, i->raw[1] <= 64 ? "%u" : "0x%x", i->raw[1]);
        } else {
            scalar_name(t, i->dst, 1);
        }
    } else {
        text_scalar(t, i->dst, i->dst_words ? i->dst_words : 1);
        text_next(t);
        text_put(t, begins(name, "s_call") ? "%u" : "0x%x", value);
    }
}

static void scalar_arithmetic(text_t *t)
{
    const insn_t *i = t->i;
    const op_t *op = i->op;
    uint32_t word = i->raw[0];
    if (op->dst) text_scalar(t, i->dst, type_words(op->dst));
    if (op->src[0]) text_source(t, text_bits(word, 0, 8), op->src[0]);
    if (i->segment == ENC_SOPC && begins(i->name, "s_set_gpr_idx_on")) {
        static const char *const what[] = {"SRC0", "SRC1", "SRC2", "DST"};
        text_put(t, ", gpr_idx(");
        for (unsigned k = 0, some = 0; k < 4; k++) {
            if (word >> (8 + k) & 1) text_put(t, "%s%s", some++ ? "," : "", what[k]);
        }
        text_put(t, ")");
    } else if (op->src[1]) {
        text_source(t, text_bits(word, 8, 8), op->src[1]);
    }
}

// A source with its signs.
static void vector_operand(text_t *t, unsigned k, unsigned code)
{
    const modifiers_t *mod = &t->i->mod;
    bool neg = mod->neg >> k & 1, abs = mod->abs >> k & 1;
    bool sext = mod->sdwa && k < 2 && mod->src_sext[k];
    text_next(t);
    text_put(t, "%s%s%s", neg ? "-" : "", abs ? "|" : "", sext ? "sext(" : "");
    source_name(t, code, (type_t)t->i->op->src[k]);
    text_put(t, "%s%s", abs ? "|" : "", sext ? ")" : "");
}

static void output_modifiers(text_t *t)
{
    static const char *const scales[] = {"", " mul:2", " mul:4", " div:2"};
    const modifiers_t *mod = &t->i->mod;
    text_put(t, "%s%s", mod->clamp ? " clamp" : "", scales[mod->omod & 3]);
}

static void sdwa_selections(text_t *t, bool compare, unsigned sources)
{
    static const char *const selections[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                             "WORD_0", "WORD_1", "DWORD",  "?"};
    static const char *const unused[] = {"PAD", "SEXT", "PRESERVE", "?"};
    const modifiers_t *mod = &t->i->mod;
    bool bytes = t->i->op->flags & OP_OF_BYTES;
    if (!compare) output_modifiers(t);
    if (!compare && !bytes) {
        text_put(t, " dst_sel:%s dst_unused:UNUSED_%s", selections[mod->dst_sel & 7],
                 unused[mod->dst_unused & 3]);
    }
    for (unsigned k = 0; k < sources; k++) {
        text_put(t, " src%u_sel:%s", k, selections[mod->src_sel[k] & 7]);
    }
}

static void dpp_control(text_t *t)
{
    const modifiers_t *mod = &t->i->mod;
    unsigned control = mod->dpp_control;
    static const struct {
        uint16_t control;
        const char *name;
    } named[] = {{0x130, "wave_shl:1"},   {0x134, "wave_rol:1"},  {0x138, "wave_shr:1"},
                 {0x13c, "wave_ror:1"},   {0x140, "row_mirror"},  {0x141, "row_half_mirror"},
                 {0x142, "row_bcast:15"}, {0x143, "row_bcast:31"}};
    if (control <= 0xff) {
        text_put(t, " quad_perm:[%u,%u,%u,%u]", control & 3, control >> 2 & 3, control >> 4 & 3,
                 control >> 6);
    } else if (control < 0x130) {
        static const char *const rows[] = {"row_shl", "row_shr", "row_ror"};
        text_put(t, " %s:%u", rows[(control >> 4) - 0x10], control & 15);
    } else if (control >= 0x150) {
        text_put(t, " row_newbcast:%u", control & 15);
    }
    for (unsigned k = 0; k < sizeof named / sizeof *named; k++) {
        if (named[k].control == control) text_put(t, " %s", named[k].name);
    }
    text_put(t, " row_mask:0x%x bank_mask:0x%x%s", mod->row_mask, mod->bank_mask,
             mod->bound_zero ? " bound_ctrl:0" : "");
}

static void half_selections(text_t *t, unsigned sources)
{
    const modifiers_t *mod = &t->i->mod;
    if (!mod->opsel) return;
    if (t->i->op->flags & OP_KEEP_BYTES) sources++; // a bit more of the destination
    text_put(t, " op_sel:[");
    for (unsigned k = 0; k < sources; k++) text_put(t, "%u,", mod->opsel >> k & 1);
    text_put(t, "%u]", mod->opsel >> 3 & 1);
}

static unsigned source_count(const op_t *op)
{
    unsigned count = 0;
    while (count < 3 && op->src[count]) count++;
    return op->flags & OP_READS_DST ? count - 1 : count;
}

static void vector_destination(text_t *t, bool compare)
{
    const insn_t *i = t->i;
    const op_t *op = i->op;
    if (compare) {
        text_scalar(t, i->sdst, 2);
    } else if (op->flags & OP_SCALAR_DST) {
        text_scalar(t, i->dst & 127, 1);
    } else if (op->dst) {
        text_vector(t, i->dst, type_words(op->dst));
        if (op->flags & OP_MASK_OUT) text_scalar(t, i->sdst, 2);
    }
}

// VOP1, VOP2 and VOPC, with one or two words.
static void vector_short(text_t *t)
{
    const insn_t *i = t->i;
    const op_t *op = i->op;
    uint32_t word = i->raw[0];
    bool compare = i->segment == ENC_VOPC;
    if (!strcmp(i->name, "v_accvgpr_mov_b32")) {
        text_vector(t, VGPR_ACC + i->dst, 1);
        text_vector(t, VGPR_ACC + text_bits(word, 0, 8), 1);
        return;
    }
    unsigned a = text_bits(word, 0, 9), b = 256 + text_bits(word, 9, 8), count = source_count(op);
    if (i->mod.sdwa || i->mod.dpp) {
        a = text_bits(i->raw[1], 0, 8) + (i->mod.sdwa && text_bits(i->raw[1], 23, 1) ? 0 : 256);
        if (i->mod.sdwa && text_bits(i->raw[1], 31, 1)) b -= 256;
    }
    vector_destination(t, compare);
    if (count > 0) vector_operand(t, 0, a);
    if (op->flags & OP_LITERAL_B) text_source(t, 255, TYPE_u32);
    if (count > 1) vector_operand(t, op->flags & OP_LITERAL_B ? 2 : 1, b);
    if (op->flags & OP_LITERAL_C) text_source(t, 255, TYPE_u32);
    if (op->flags & OP_MASK_IN) text_scalar(t, SGPR_VCC, 2);
    if (i->mod.sdwa) sdwa_selections(t, compare, count);
    if (i->mod.dpp) dpp_control(t);
}

static void vector_long(text_t *t, unsigned number)
{
    const insn_t *i = t->i;
    uint32_t more = i->raw[1];
    unsigned count = source_count(i->op);
    vector_destination(t, number < 256);
    for (unsigned k = 0; k < count; k++) vector_operand(t, k, text_bits(more, 9 * k, 9));
    if (i->op->flags & OP_MASK_IN) text_scalar(t, i->mask, 2);
    half_selections(t, count);
    output_modifiers(t);
}

static void bit_list(text_t *t, const char *name, unsigned bits, unsigned count, unsigned usual)
{
    if ((bits & ((1u << count) - 1)) == (usual & ((1u << count) - 1))) return;
    text_put(t, " %s:[", name);
    for (unsigned k = 0; k < count; k++) text_put(t, "%s%u", k ? "," : "", bits >> k & 1);
    text_put(t, "]");
}

static void vector_packed(text_t *t)
{
    const insn_t *i = t->i;
    const modifiers_t *mod = &i->mod;
    unsigned count = source_count(i->op);
    bool mix = strstr(i->name, "_mix") != NULL, acc = strstr(i->name, "accvgpr") != NULL;
    bool to_acc = acc && !strstr(i->name, "read"), from_acc = acc && !strstr(i->name, "write");
    text_vector(t, i->dst + (to_acc ? VGPR_ACC : 0), type_words(i->op->dst));
    for (unsigned k = 0; k < count; k++) {
        unsigned code = text_bits(i->raw[1], 9 * k, 9);
        bool neg = mix && mod->neg >> k & 1, abs = mix && mod->abs >> k & 1;
        text_next(t);
        text_put(t, "%s%s", neg ? "-" : "", abs ? "|" : "");
        source_name(t, code + (from_acc ? VGPR_ACC : 0), (type_t)i->op->src[k]);
        text_put(t, "%s", abs ? "|" : "");
    }
    if (acc) return;
    bit_list(t, "op_sel", mod->opsel, count, 0);
    bit_list(t, "op_sel_hi", mod->omod, count, mix ? 0 : 7);
    if (!mix) bit_list(t, "neg_lo", mod->neg, count, 0);
    if (!mix) bit_list(t, "neg_hi", mod->abs, count, 0);
    if (mod->clamp) text_put(t, " clamp");
}

static void vector_matrix(text_t *t)
{
    const insn_t *i = t->i;
    text_vector(t, i->dst, matrix_registers(i->op, 3));
    for (unsigned k = 0; k < 3; k++) {
        if (i->src[k].from != FROM_VECTOR) {
            text_source(t, text_bits(i->raw[1], 9 * k, 9), (type_t)i->op->src[k]);
        } else {
            text_vector(t, i->src[k].index, matrix_registers(i->op, k));
        }
    }
    if (i->op->dst == TYPE_f64 && t->target->double_signs) {
        bit_list(t, "neg", (unsigned)i->offset >> 8, 3, 0);
        return;
    }
    static const char *const fields[] = {"cbsz", "abid", "blgp"};
    for (unsigned k = 0; k < 3; k++) {
        if (i->offset >> 4 * k & 15) text_put(t, " %s:%u", fields[k], i->offset >> 4 * k & 15);
    }
}

static const char *suffix(const insn_t *i)
{
    bool alone = i->op->flags & (OP_LITERAL_B | OP_LITERAL_C) || !strcmp(i->name, "v_nop") ||
                 !strcmp(i->name, "v_swap_b32") || !strcmp(i->name, "v_readfirstlane_b32") ||
                 !strcmp(i->name, "v_accvgpr_mov_b32");
    switch ((encoding_t)i->segment) {
    case ENC_VOP1:
    case ENC_VOP2:
    case ENC_VOPC: return i->mod.sdwa ? "_sdwa" : i->mod.dpp ? "_dpp" : alone ? "" : "_e32";
    case ENC_VOP3: return text_bits(i->raw[0], 16, 10) < 448 ? "_e64" : "";
    default: return "";
    }
}

void insn_text(const isa_t *isa, const insn_t *i, char *out, size_t size)
{
    text_t t = {isa->target, i, out, size, false};
    if (!i->name || !i->op) {
        text_put(&t, "%s (words %08x %08x)", i->name ? i->name : "?", i->raw[0], i->raw[1]);
        return;
    }
    text_put(&t, "%s%s", i->name, suffix(i));
    switch ((encoding_t)i->segment) {
    case ENC_SOPP: program_control(&t, i->name); break;
    case ENC_SOPK: scalar_constant(&t, i->name); break;
    case ENC_SOP2:
    case ENC_SOP1:
    case ENC_SOPC: scalar_arithmetic(&t); break;
    case ENC_VOP1:
    case ENC_VOP2:
    case ENC_VOPC: vector_short(&t); break;
    case ENC_VOP3: vector_long(&t, text_bits(i->raw[0], 16, 10)); break;
    case ENC_VOP3P:
        if (i->op->flags & OP_MATRIX) {
            vector_matrix(&t);
        } else {
            vector_packed(&t);
        }
        break;
    default: text_memory(&t); break;
    }
}
