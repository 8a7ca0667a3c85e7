// SPDX-License-Identifier: Apache-2.0
// The words of PTX, one after another. Comments, preprocessor lines and blanks are passed over.
#ifndef KEEL_SRC_EXECUTABLE_PTX_TOKEN_H_
#define KEEL_SRC_EXECUTABLE_PTX_TOKEN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ptx_token_kind_t {
    PTX_END,       // of the text, or its first byte that is 0
    PTX_NAME,      // an identifier, registers with their % included
    PTX_DIRECTIVE, // a dot and a word
    PTX_NUMBER,    // digits with what belongs to them; versions, too: 8.5
    PTX_STRING,    // with its quotes
    PTX_MARK,      // any other character, by itself
    PTX_BROKEN,    // a comment or string that does not end
} ptx_token_kind_t;

typedef struct ptx_token_t {
    ptx_token_kind_t kind;
    const char *text; // in the text that is read, not terminated
    size_t length;
} ptx_token_t;

typedef struct ptx_lexer_t {
    const char *at, *end;
    uint32_t line;     // that the last token begins in
    ptx_token_t token; // the last one
} ptx_lexer_t;

// Begins before the first token of `size` bytes, which are borrowed.
void ptx_lexer_init(ptx_lexer_t *lexer, const char *text, size_t size);

// Goes on to the next token; stays at PTX_END and PTX_BROKEN.
void ptx_next(ptx_lexer_t *lexer);

// Whether the last token is this directive or name, or this mark.
bool ptx_is(const ptx_lexer_t *lexer, const char *word);

// The value of an integer in any of PTX's bases; false if the last token is none, or is too large.
bool ptx_integer(const ptx_lexer_t *lexer, uint64_t *value);

#endif
