// SPDX-License-Identifier: Apache-2.0
#include "executable/ptx_token.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

static bool is_word(char c)
{
    return is_letter(c) || is_digit(c);
}

void ptx_lexer_init(ptx_lexer_t *lexer, const char *text, size_t size)
{
    const char *zero = size ? memchr(text, 0, size) : NULL;
    *lexer = (ptx_lexer_t){
        .at = text, .end = zero ? zero : text + size, .line = 1, .token.kind = PTX_MARK};
}

static bool follows(const ptx_lexer_t *lexer, const char *two)
{
    return lexer->end - lexer->at >= 2 && lexer->at[0] == two[0] && lexer->at[1] == two[1];
}

static void line_pass(ptx_lexer_t *lexer)
{
    const char *end = memchr(lexer->at, '\n', (size_t)(lexer->end - lexer->at));
    lexer->at = end ? end : lexer->end;
}

// False if the comment does not end.
static bool comment_pass(ptx_lexer_t *lexer)
{
    lexer->at += 2;
    while (!follows(lexer, "*/")) {
        if (lexer->at == lexer->end) return false;
        if (*lexer->at++ == '\n') lexer->line++;
    }
    lexer->at += 2;
    return true;
}

// To the first character of a token. False if a comment does not end.
static bool blanks_pass(ptx_lexer_t *lexer)
{
    while (lexer->at < lexer->end) {
        char c = *lexer->at;
        if (c == '\n') lexer->line++;
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v')
            lexer->at++;
        else if (follows(lexer, "//") || c == '#')
            line_pass(lexer);
        else if (!follows(lexer, "/*"))
            return true;
        else if (!comment_pass(lexer))
            return false;
    }
    return true;
}

static void word_pass(ptx_lexer_t *lexer)
{
    while (lexer->at < lexer->end && is_word(*lexer->at)) lexer->at++;
}

static ptx_token_kind_t number_pass(ptx_lexer_t *lexer)
{
    word_pass(lexer);
    if (lexer->end - lexer->at >= 2 && lexer->at[0] == '.' && is_digit(lexer->at[1])) {
        lexer->at++;
        word_pass(lexer);
    }
    return PTX_NUMBER;
}

static ptx_token_kind_t string_pass(ptx_lexer_t *lexer)
{
    for (lexer->at++; lexer->at < lexer->end && *lexer->at != '\n'; lexer->at++) {
        if (*lexer->at == '"') {
            lexer->at++;
            return PTX_STRING;
        }
        if (*lexer->at == '\\' && lexer->end - lexer->at >= 2 && lexer->at[1] != '\n') lexer->at++;
    }
    return PTX_BROKEN;
}

static ptx_token_kind_t token_pass(ptx_lexer_t *lexer)
{
    char c = *lexer->at;
    char after = lexer->end - lexer->at >= 2 ? lexer->at[1] : 0;
    if (is_digit(c)) return number_pass(lexer);
    if (c == '"') return string_pass(lexer);
    lexer->at++;
    if (!is_letter(c) && !((c == '%' || c == '.') && is_word(after))) return PTX_MARK;
    word_pass(lexer);
    return c == '.' ? PTX_DIRECTIVE : PTX_NAME;
}

void ptx_next(ptx_lexer_t *lexer)
{
    if (lexer->token.kind == PTX_END || lexer->token.kind == PTX_BROKEN) return;
    bool whole = blanks_pass(lexer);
    lexer->token.text = lexer->at;
    if (!whole)
        lexer->token.kind = PTX_BROKEN;
    else if (lexer->at == lexer->end)
        lexer->token.kind = PTX_END;
    else
        lexer->token.kind = token_pass(lexer);
    lexer->token.length = (size_t)(lexer->at - lexer->token.text);
}

bool ptx_is(const ptx_lexer_t *lexer, const char *word)
{
    size_t length = strlen(word);
    return lexer->token.kind != PTX_END && lexer->token.length == length &&
           memcmp(lexer->token.text, word, length) == 0;
}

static int digit_value(char c)
{
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : 99;
}

bool ptx_integer(const ptx_lexer_t *lexer, uint64_t *value)
{
    const char *at = lexer->token.text, *end = at + lexer->token.length;
    if (lexer->token.kind != PTX_NUMBER) return false;
    if (end - at > 1 && end[-1] == 'U') end--;
    uint64_t base = 10;
    if (end - at > 1 && at[0] == '0') {
        base = at[1] == 'x' || at[1] == 'X' ? 16 : at[1] == 'b' || at[1] == 'B' ? 2 : 8;
        at += base == 8 ? 1 : 2;
    }
    uint64_t sum = 0;
    for (const char *digit = at; digit < end; digit++) {
        uint64_t next = (uint64_t)digit_value(*digit);
        if (next >= base || sum > (UINT64_MAX - next) / base) return false;
        sum = sum * base + next;
    }
    *value = sum;
    return at < end;
}
