// SPDX-License-Identifier: Apache-2.0
#include "executable/ptx_token.h"

#include "fuzz/fuzz.h"

// Tokens lie in the text, one behind the other, and come to an end.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *last = text;
    ptx_lexer_t lexer;
    ptx_lexer_init(&lexer, text, size);
    for (size_t tokens = 0;; tokens++) {
        ptx_next(&lexer);
        FUZZ_CHECK(tokens <= size);
        if (lexer.token.kind == PTX_END || lexer.token.kind == PTX_BROKEN) break;
        FUZZ_CHECK(lexer.token.length > 0);
        FUZZ_CHECK(lexer.token.text >= last);
        last = lexer.token.text + lexer.token.length;
        FUZZ_CHECK(last <= text + size && lexer.at == last);
        uint64_t value;
        FUZZ_CHECK(!ptx_integer(&lexer, &value) || lexer.token.kind == PTX_NUMBER);
    }
    FUZZ_CHECK(lexer.line >= 1 && lexer.line <= size + 1);
    return 0;
}
