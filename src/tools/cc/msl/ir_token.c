// SPDX-License-Identifier: Apache-2.0
// The text as tokens.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cc/msl/reader.h"

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("._$-", c));
}

static void token_set(ir_reader_t *r, token_kind_t kind, const char *text, const char *end)
{
    r->token = (token_t){kind, text, (size_t)(end - text)};
}

// What stands in quotes, from behind the first on.
static void read_quoted(ir_reader_t *r, token_kind_t kind)
{
    const char *end = strchr(r->at, '"');
    if (!end) end = r->at + strlen(r->at);
    token_set(r, kind, r->at, end);
    r->at = end + (*end == '"');
}

static void read_word(ir_reader_t *r, token_kind_t kind)
{
    const char *end = r->at;
    while (is_name(*end) || (*end == '+' && end > r->at && strchr("eE", end[-1]))) end++;
    token_set(r, kind, r->at, end);
    r->at = end;
}

static void read_marked(ir_reader_t *r, token_kind_t kind)
{
    r->at++;
    if (*r->at == '"') {
        r->at++;
        read_quoted(r, kind);
    } else {
        read_word(r, kind);
    }
}

static void token_read(ir_reader_t *r)
{
    while (*r->at == ' ' || *r->at == '\t') r->at++;
    if (*r->at == ';') r->at += strcspn(r->at, "\n");
    char c = *r->at;
    if (!c) {
        token_set(r, TOKEN_END, r->at, r->at);
    } else if (c == '\n') {
        token_set(r, TOKEN_LINE, r->at, r->at + 1);
        r->at++;
    } else if (c == '%') {
        read_marked(r, TOKEN_LOCAL);
    } else if (c == '@') {
        read_marked(r, TOKEN_GLOBAL);
    } else if (c == '"') {
        r->at++;
        read_quoted(r, TOKEN_STRING);
    } else if (c == 'c' && r->at[1] == '"') {
        r->at += 2;
        read_quoted(r, TOKEN_BYTES);
    } else if (is_name(c)) {
        read_word(r, TOKEN_WORD);
    } else {
        token_set(r, TOKEN_OTHER, r->at, r->at + 1);
        r->at++;
    }
}

void ir_reader_next(ir_reader_t *r)
{
    token_read(r);
    bool named = r->token.kind == TOKEN_WORD || r->token.kind == TOKEN_STRING;
    if (!named || *r->at != ':' || !r->function) return;
    r->token.kind = TOKEN_LABEL;
    r->at++;
}

bool ir_reader_is(const ir_reader_t *r, const char *text)
{
    return (r->token.kind == TOKEN_WORD || r->token.kind == TOKEN_OTHER) &&
           r->token.length == strlen(text) && !memcmp(r->token.text, text, r->token.length);
}

bool ir_reader_take(ir_reader_t *r, const char *text)
{
    if (!ir_reader_is(r, text)) return false;
    ir_reader_next(r);
    return true;
}

void ir_reader_fail(ir_reader_t *r, keel_status_t status)
{
    if (r->status) {
        keel_status_release(status);
        return;
    }
    r->status = status;
    r->at = "";
    token_set(r, TOKEN_END, r->at, r->at);
}

void ir_reader_stray(ir_reader_t *r, const char *what)
{
    int length = r->token.kind == TOKEN_LINE ? 0 : (int)r->token.length;
    ir_reader_fail(r, KEEL_ERROR(KEEL_UNSUPPORTED,
                                 "clang made code that is not understood: %s, and there is '%.*s'",
                                 what, length, r->token.text));
}

void ir_reader_expect(ir_reader_t *r, const char *text)
{
    if (ir_reader_take(r, text)) return;
    char what[32];
    strcpy(what, "expected is ");
    strncat(what, text, sizeof what - strlen(what) - 1);
    ir_reader_stray(r, what);
}

void ir_reader_skip_line(ir_reader_t *r)
{
    while (r->token.kind != TOKEN_LINE && r->token.kind != TOKEN_END) ir_reader_next(r);
    if (r->token.kind == TOKEN_LINE) ir_reader_next(r);
}

void ir_reader_skip_group(ir_reader_t *r)
{
    int depth = 0;
    do {
        depth += ir_reader_is(r, "(") - ir_reader_is(r, ")");
        ir_reader_next(r);
    } while (depth && r->token.kind != TOKEN_END);
}

void ir_reader_skip_flags(ir_reader_t *r)
{
    static const char *const flags[] = {"inbounds", "nuw",  "nsw",      "nusw",     "exact",
                                        "disjoint", "nneg", "samesign", "fast",     "nnan",
                                        "ninf",     "nsz",  "arcp",     "contract", "afn",
                                        "reassoc",  "tail", "musttail", "notail"};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (ir_reader_take(r, flags[i])) i = (size_t)-1;
}

static int digit_of(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : (tolower((unsigned char)c) - 'a' + 10) & 15;
}

// \41 is A; the length is not kept, so bytes are read by others.
char *ir_reader_name(ir_reader_t *r)
{
    char *name = arena_copy(&r->module->arena, r->token.text, r->token.length), *to = name;
    for (const char *from = name; *from; from++) {
        bool escaped = from[0] == '\\' && isxdigit((unsigned char)from[1]) && from[2];
        *to++ = (char)(escaped ? digit_of(from[1]) * 16 + digit_of(from[2]) : *from);
        from += escaped ? 2 : 0;
    }
    *to = 0;
    ir_reader_next(r);
    return name;
}

uint64_t ir_reader_number(ir_reader_t *r)
{
    if (r->token.kind != TOKEN_WORD || !isdigit((unsigned char)*r->token.text))
        ir_reader_stray(r, "a number is expected");
    uint64_t number = strtoull(r->token.text, NULL, 10);
    ir_reader_next(r);
    return number;
}

ir_op_t op_named(const token_t *token)
{
    static const char *const names[] = {
#define X(name) #name,
        IR_OPS(X)
#undef X
    };
    for (int i = 0; i < IR_OP_COUNT && token->kind == TOKEN_WORD; i++)
        if (strlen(names[i]) == token->length && !memcmp(names[i], token->text, token->length))
            return (ir_op_t)i;
    return IR_OP_COUNT;
}
