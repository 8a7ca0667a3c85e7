// SPDX-License-Identifier: Apache-2.0
// From the words of an instruction to insn_t.
#include "amd/isa/caches.h"

static uint32_t bits(uint32_t word, unsigned low, unsigned count)
{
    return word >> low & (uint32_t)((1ull << count) - 1);
}

static uint64_t float_constant(unsigned code, type_t type)
{
    static const float values[] = {0.5f, -0.5f, 1, -1, 2, -2, 4, -4};
    static const uint16_t halves[] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000,
                                      0xc000, 0x4400, 0xc400, 0x3118};
    bool inverse = code == 248;                      // 1 / (2 pi)
    if (type >= TYPE_u16) return halves[code - 240]; // of a pair, the low one
    if (type_words(type) == 2) {
        double value = inverse ? 0.15915494309189532 : (double)values[code - 240];
        uint64_t result;
        memcpy(&result, &value, sizeof result);
        return result;
    }
    float value = inverse ? 0.15915494f : values[code - 240];
    uint32_t result;
    memcpy(&result, &value, sizeof result);
    return result;
}

// The value of a source code that stands for a constant; false when it does not.
static bool constant(unsigned code, type_t type, uint32_t literal, uint64_t *out)
{
    bool wide = type_words(type) == 2;
    if (code >= 128 && code <= 192) {
        *out = code - 128;
    } else if (code >= 193 && code <= 208) {
        int64_t value = 192 - (int64_t)code;
        *out = wide ? (uint64_t)value : (uint32_t)value;
    } else if (code >= 240 && code <= 248) {
        *out = float_constant(code, type);
    } else if (code == 255) {
        *out = type == TYPE_f64   ? (uint64_t)literal << 32
               : type == TYPE_i64 ? (uint64_t)(int64_t)(int32_t)literal
                                  : literal;
    } else if (code == 235 || code == 236) { // base and limit of the workgroup's aperture
        *out = (uint64_t)APERTURE_LDS << 32 | (code == 236 ? UINT32_MAX : 0);
    } else if (code == 237 || code == 238) {
        *out = (uint64_t)APERTURE_SCRATCH << 32 | (code == 238 ? UINT32_MAX : 0);
    } else {
        return false;
    }
    return true;
}

// A source of a scalar instruction. Codes are those of the 8-bit field.
static bool scalar_source(insn_t *i, unsigned k, unsigned code, type_t type)
{
    source_t *src = &i->src[k];
    src->words = (uint8_t)type_words(type);
    src->index = (uint16_t)code;
    if (type == TYPE_NONE) {
        src->from = FROM_NOTHING;
    } else if (code < SGPR_COUNT) {
        src->from = FROM_SCALAR;
    } else if (code >= 251 && code <= 253) {
        src->from = FROM_STATUS;
    } else {
        src->from = FROM_CONSTANT;
        return constant(code, type, i->raw[1], &i->value[k].bits);
    }
    return true;
}

// A source of a vector instruction. Codes are those of the 9-bit field.
static bool vector_source(isa_t *isa, insn_t *i, unsigned k, unsigned code)
{
    type_t type = i->op->src[k];
    bool packed = i->segment == ENC_VOP3P; // whose integers take constants as words
    if (packed && (type == TYPE_u16 || type == TYPE_i16)) type = TYPE_u32;
    if (type != TYPE_NONE && code >= 256) {
        i->src[k] = (source_t){FROM_VECTOR, (uint8_t)type_words(type), (uint16_t)(code - 256)};
        return true;
    }
    if (!scalar_source(i, k, code, type)) return false;
    if (i->src[k].from != FROM_CONSTANT) return true;
    i->value[k].lanes = pool_constant(isa, i->value[k].bits);
    return i->value[k].lanes != NULL;
}

static bool decode_scalar(insn_t *i, encoding_t encoding)
{
    const op_t *op = i->op;
    uint32_t word = i->raw[0];
    i->dst = (uint16_t)bits(word, 16, 7);
    i->dst_words = (uint8_t)type_words(op->dst);
    i->offset = (int16_t)word;
    if (encoding == ENC_SOPK || encoding == ENC_SOPP) {
        // s_setreg_imm32_b32 is the one that carries a literal.
        i->words = op->flags & OP_LITERAL_B ? 2 : 1;
        return true;
    }
    unsigned a = bits(word, 0, 8), b = encoding == ENC_SOP1 ? 0 : bits(word, 8, 8);
    i->words = a == 255 || b == 255 ? 2 : 1;
    return scalar_source(i, 0, a, op->src[0]) && scalar_source(i, 1, b, op->src[1]);
}

static bool decode_smem(insn_t *i)
{
    uint32_t word = i->raw[0], more = i->raw[1];
    i->words = 2;
    i->address = (uint16_t)(2 * bits(word, 0, 6));
    i->dst = (uint16_t)bits(word, 6, 7);
    bool immediate = bits(word, 17, 1), scalar = bits(word, 14, 1);
    i->offset = immediate ? (int32_t)(more << 11) >> 11 : 0;
    i->has_scalar = scalar || !immediate;
    i->scalar = (uint16_t)(scalar ? bits(more, 25, 7) : bits(more, 0, 7));
    i->returns = (uint8_t)bits(word, 16, 1);
    return true;
}

static bool decode_sdwa(insn_t *i, bool compare)
{
    uint32_t word = i->raw[1];
    modifiers_t *mod = &i->mod;
    mod->sdwa = 1;
    if (compare) {
        i->sdst = bits(word, 15, 1) ? (uint16_t)bits(word, 8, 7) : SGPR_VCC;
        mod->dst_sel = 6;
    } else {
        mod->dst_sel = (uint8_t)bits(word, 8, 3);
        mod->dst_unused = (uint8_t)bits(word, 11, 2);
        mod->clamp = (uint8_t)bits(word, 13, 1);
        mod->omod = (uint8_t)bits(word, 14, 2);
    }
    for (unsigned k = 0; k < 2; k++) {
        mod->src_sel[k] = (uint8_t)bits(word, 16 + 8 * k, 3);
        mod->src_sext[k] = (uint8_t)bits(word, 19 + 8 * k, 1);
        mod->neg |= (uint8_t)(bits(word, 20 + 8 * k, 1) << k);
        mod->abs |= (uint8_t)(bits(word, 21 + 8 * k, 1) << k);
    }
    return true;
}

// Where lanes can come from: quads, shifts and rotations of rows, and some by name.
static bool dpp_known(const isa_t *isa, unsigned control)
{
    if (control <= 0xff) return true;
    if (control < 0x130) return (control & 15) != 0;
    if (control < 0x140) return (control & 3) == 0;
    return control <= 0x143 || (isa->target->row_broadcast && control >= 0x150 && control <= 0x15f);
}

static bool decode_dpp(const isa_t *isa, insn_t *i)
{
    uint32_t word = i->raw[1];
    modifiers_t *mod = &i->mod;
    mod->dpp = 1;
    mod->dpp_control = (uint16_t)bits(word, 8, 9);
    mod->bound_zero = (uint8_t)bits(word, 19, 1);
    mod->neg = (uint8_t)(bits(word, 20, 1) | bits(word, 22, 1) << 1);
    mod->abs = (uint8_t)(bits(word, 21, 1) | bits(word, 23, 1) << 1);
    mod->bank_mask = (uint8_t)bits(word, 24, 4);
    mod->row_mask = (uint8_t)bits(word, 28, 4);
    return dpp_known(isa, mod->dpp_control);
}

// The short encodings: the first source may be anything, the others are vector registers.
static bool decode_vop(isa_t *isa, insn_t *i, encoding_t encoding)
{
    const op_t *op = i->op;
    uint32_t word = i->raw[0];
    unsigned a = bits(word, 0, 9), b = 256 + bits(word, 9, 8), c = 256 + bits(word, 17, 8);
    i->words = 1;
    i->dst = encoding == ENC_VOPC ? 0 : (uint16_t)bits(word, 17, 8);
    i->sdst = i->mask = SGPR_VCC;
    if (a == 249 || a == 250) {
        uint32_t extra = i->raw[1];
        i->words = 2;
        if (!(a == 249 ? decode_sdwa(i, encoding == ENC_VOPC) : decode_dpp(isa, i))) return false;
        bool scalar_a = a == 249 && bits(extra, 23, 1), scalar_b = a == 249 && bits(extra, 31, 1);
        a = bits(extra, 0, 8) + (scalar_a ? 0 : 256);
        if (scalar_b) b -= 256;
    } else if (a == 255 || op->flags & (OP_LITERAL_B | OP_LITERAL_C)) {
        i->words = 2;
    }
    if (op->flags & OP_LITERAL_B) {
        c = b;
        b = 255;
    } else if (op->flags & OP_LITERAL_C) {
        c = 255;
    }
    return vector_source(isa, i, 0, a) && vector_source(isa, i, 1, b) &&
           vector_source(isa, i, 2, c);
}

static bool decode_vop3(isa_t *isa, insn_t *i, unsigned number)
{
    const op_t *op = i->op;
    uint32_t word = i->raw[0], more = i->raw[1];
    modifiers_t *mod = &i->mod;
    bool compare = number < 256, carries = !compare && op->flags & OP_MASK_OUT;
    i->words = 2;
    i->dst = compare ? 0 : (uint16_t)bits(word, 0, 8);
    i->sdst = (uint16_t)(compare ? bits(word, 0, 8) : bits(word, 8, 7));
    unsigned c = bits(more, 18, 9);
    i->mask = op->flags & OP_VCC_IN ? SGPR_VCC : (uint16_t)c;
    if (!carries) {
        mod->abs = (uint8_t)bits(word, 8, 3);
        mod->opsel = (uint8_t)bits(word, 11, 4);
    }
    mod->clamp = (uint8_t)bits(word, 15, 1);
    mod->omod = (uint8_t)bits(more, 27, 2);
    mod->neg = (uint8_t)bits(more, 29, 3);
    if (op->flags & OP_READS_DST) c = 256u + i->dst;
    return vector_source(isa, i, 0, bits(more, 0, 9)) &&
           vector_source(isa, i, 1, bits(more, 9, 9)) && vector_source(isa, i, 2, c);
}

// In the packed encoding opsel and neg come in two sets, for the low and for the high result.
// omod keeps opsel_hi and abs keeps neg_hi.
static bool decode_vop3p(isa_t *isa, insn_t *i)
{
    uint32_t word = i->raw[0], more = i->raw[1];
    modifiers_t *mod = &i->mod;
    i->words = 2;
    i->dst = (uint16_t)bits(word, 0, 8);
    mod->abs = (uint8_t)bits(word, 8, 3);
    mod->opsel = (uint8_t)bits(word, 11, 3);
    mod->omod = (uint8_t)(bits(more, 27, 2) | bits(word, 14, 1) << 2);
    mod->clamp = (uint8_t)bits(word, 15, 1);
    mod->neg = (uint8_t)bits(more, 29, 3);
    return vector_source(isa, i, 0, bits(more, 0, 9)) &&
           vector_source(isa, i, 1, bits(more, 9, 9)) &&
           vector_source(isa, i, 2, bits(more, 18, 9));
}

// Whether a matrix is in accumulation registers is told for each source, and for C and D together;
// on gfx908 those always are. Indices of a sparse matrix never are. offset keeps cbsz, abid and
// blgp.
static bool decode_matrix(isa_t *isa, insn_t *i)
{
    uint32_t word = i->raw[0], more = i->raw[1];
    const bool acc[3] = {bits(more, 27, 1), bits(more, 28, 1),
                         isa->target->matrices_in_acc || bits(word, 15, 1)};
    i->words = 2;
    i->dst = (uint16_t)(bits(word, 0, 8) + (acc[2] ? VGPR_ACC : 0));
    i->offset = (int32_t)(bits(word, 8, 3) | bits(word, 11, 4) << 4 | bits(more, 29, 3) << 8);
    for (unsigned k = 0; k < 3; k++) {
        if (!vector_source(isa, i, k, bits(more, 9 * k, 9))) return false;
        if (k == 2 && matrix_sparse(i->op)) break;
        if (i->src[k].from == FROM_VECTOR && acc[k]) i->src[k].index += VGPR_ACC;
    }
    return true;
}

static bool decode_ds(const isa_t *isa, insn_t *i)
{
    uint32_t word = i->raw[0], more = i->raw[1];
    unsigned acc = isa->target->acc_in_memory && bits(word, 25, 1) ? VGPR_ACC : 0;
    i->words = 2;
    i->offset = (int32_t)bits(word, 0, 16);
    i->address = (uint16_t)bits(more, 0, 8);
    i->data[0] = (uint16_t)(bits(more, 8, 8) + acc);
    i->data[1] = (uint16_t)(bits(more, 16, 8) + acc);
    i->dst = (uint16_t)(bits(more, 24, 8) + acc);
    // Of the global data share only the barriers are modelled.
    return bits(word, 16, 1) == (strncmp(i->name, "ds_gws", 6) == 0);
}

static bool decode_flat(const isa_t *isa, insn_t *i, encoding_t encoding)
{
    uint32_t word = i->raw[0], more = i->raw[1];
    unsigned acc = isa->target->acc_in_memory && bits(more, 23, 1) ? VGPR_ACC : 0;
    i->words = 2;
    i->offset = encoding == ENC_FLAT ? (int32_t)bits(word, 0, 12) : (int32_t)(word << 19) >> 19;
    i->returns = (uint8_t)bits(word, 16, 1);
    i->address = (uint16_t)bits(more, 0, 8);
    i->data[0] = (uint16_t)(bits(more, 8, 8) + acc);
    i->scalar = (uint16_t)bits(more, 16, 7);
    i->has_scalar = encoding != ENC_FLAT && i->scalar != 127;
    i->has_vector = encoding != ENC_SCRATCH || !i->has_scalar;
    i->dst = (uint16_t)(bits(more, 24, 8) + acc);
    if (encoding == ENC_SCRATCH && isa->target->own_scratch) {
        i->has_vector = (uint8_t)bits(word, 13, 1);
        return true;
    }
    return !bits(word, 13, 1); // a load into LDS, which compilers do not make here
}

static bool decode_mubuf(const isa_t *isa, insn_t *i)
{
    uint32_t word = i->raw[0], more = i->raw[1];
    unsigned acc = isa->target->acc_in_memory && bits(more, 23, 1) ? VGPR_ACC : 0;
    i->words = 2;
    i->offset = (int32_t)bits(word, 0, 12);
    i->has_vector = (uint8_t)bits(word, 12, 1);
    i->has_index = (uint8_t)bits(word, 13, 1);
    i->returns = (uint8_t)bits(word, 14, 1);
    i->data[1] = (uint16_t)bits(more, 0, 8); // the vector part of the address
    i->data[0] = i->dst = (uint16_t)(bits(more, 8, 8) + acc);
    i->address = (uint16_t)(4 * bits(more, 16, 5));
    if (bits(word, 16, 1)) i->op = memory_with_lds(i->op);
    return i->op && scalar_source(i, 0, bits(more, 24, 8), TYPE_u32);
}

// Where encodings of two words, which begin with these six bits, have their number.
static const struct {
    uint8_t top, encoding, low, count;
} wide_encodings[] = {
    {0x30, ENC_SMEM, 18, 8},   {0x31, ENC_EXP, 0, 0},    {0x34, ENC_VOP3, 16, 10},
    {0x35, ENC_VINTRP, 16, 2}, {0x36, ENC_DS, 17, 8},    {0x37, ENC_FLAT, 18, 7},
    {0x38, ENC_MUBUF, 18, 7},  {0x3a, ENC_MTBUF, 15, 4}, {0x3c, ENC_MIMG, 18, 7},
};

static encoding_t classify_wide(uint32_t word, unsigned *out_number)
{
    static const encoding_t segments[] = {ENC_FLAT, ENC_SCRATCH, ENC_GLOBAL, ENC_COUNT};
    for (size_t k = 0; k < sizeof wide_encodings / sizeof *wide_encodings; k++) {
        if (word >> 26 != wide_encodings[k].top) continue;
        encoding_t encoding = (encoding_t)wide_encodings[k].encoding;
        *out_number = bits(word, wide_encodings[k].low, wide_encodings[k].count);
        if (encoding == ENC_VOP3 && bits(word, 23, 3) == 7) {
            *out_number &= 127;
            return ENC_VOP3P;
        }
        return encoding == ENC_FLAT ? segments[bits(word, 14, 2)] : encoding;
    }
    return ENC_COUNT;
}

static encoding_t classify_scalar(uint32_t word, unsigned *out_number)
{
    *out_number = bits(word, 16, 7);
    switch (word >> 23) {
    case 0x17d: *out_number = bits(word, 8, 8); return ENC_SOP1;
    case 0x17e: return ENC_SOPC;
    case 0x17f: return ENC_SOPP;
    default: break;
    }
    bool constant = word >> 28 == 11;
    *out_number = bits(word, 23, constant ? 5 : 7);
    return constant ? ENC_SOPK : ENC_SOP2;
}

// The encoding and number of an instruction; ENC_COUNT when there is none.
static encoding_t classify(uint32_t word, unsigned *out_number)
{
    if (word >> 30 == 3) return classify_wide(word, out_number);
    if (word >> 31) return classify_scalar(word, out_number);
    unsigned number = *out_number = bits(word, 25, 6);
    if (number == 63) *out_number = bits(word, 9, 8);
    if (number == 62) *out_number = bits(word, 17, 8);
    return number == 63 ? ENC_VOP1 : number == 62 ? ENC_VOPC : ENC_VOP2;
}

static bool decode_fields(isa_t *isa, insn_t *i, encoding_t encoding, unsigned number)
{
    switch (encoding) {
    case ENC_SMEM: return decode_smem(i);
    case ENC_VOP2:
    case ENC_VOP1:
    case ENC_VOPC: return decode_vop(isa, i, encoding);
    case ENC_VOP3: return decode_vop3(isa, i, number);
    case ENC_VOP3P: return i->op->flags & OP_MATRIX ? decode_matrix(isa, i) : decode_vop3p(isa, i);
    case ENC_DS: return decode_ds(isa, i);
    case ENC_FLAT:
    case ENC_GLOBAL:
    case ENC_SCRATCH: return decode_flat(isa, i, encoding);
    case ENC_MUBUF: return decode_mubuf(isa, i);
    default: return decode_scalar(i, encoding);
    }
}

static bool modified(const modifiers_t *mod)
{
    return mod->neg || mod->abs || mod->omod || mod->clamp || mod->opsel || mod->sdwa || mod->dpp;
}

static bool is_float(const op_t *op)
{
    if (op->flags & OP_FLOAT) return true;
    if (op->flags & (OP_BITS | OP_MATRIX)) return false;
    return type_is_float(op->dst) || type_is_float(op->src[0]);
}

void insn_decode(isa_t *isa, insn_t *i, const uint32_t *code)
{
    unsigned number;
    encoding_t encoding = classify(code[0], &number);
    *i = (insn_t){.run = run_unknown, .words = 1, .raw = {code[0], code[1]}};
    if (encoding == ENC_COUNT) return;
    const opcode_t *opcode = &isa->opcodes[encoding][number];
    i->name = opcode->name;
    i->op = opcode->op;
    i->segment = (uint8_t)encoding;
    if (!i->op || !decode_fields(isa, i, encoding, number)) return;
    i->lanes = i->op->lanes;
    i->dst_words = (uint8_t)type_words(i->op->dst);
    i->run = isa->caches ? weak_run(i) : i->op->run;
    if (i->run == run_vector || i->run == run_vector_mask) {
        bool keeps = i->op->flags & (OP_KEEP_HIGH | OP_KEEP_BYTES);
        if (modified(&i->mod) || keeps) i->run = run_vector_modified;
    }
    bool buffer = encoding == ENC_MUBUF && i->op->detail; // without, it is about caches
    if (is_float(i->op) || buffer) {
        i->plain = i->run;
        i->run = buffer ? run_buffer : run_float;
    }
}
