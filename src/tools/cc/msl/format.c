// SPDX-License-Identifier: Apache-2.0
// A statement a line. The writers and the preprocessor leave lines as it suits them.
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "tools/cc/msl/msl.h"

// Writes what is up to the end of a statement, or of a line of the preprocessor or of comments.
// Returns where that is.
static const char *statement_write(text_t *out, const char *at, int *depth)
{
    int parens = 0;
    bool line = *at == '#' || (at[0] == '/' && at[1] == '/');
    bool closes = *at == '}';
    *depth -= closes;
    for (int i = 0; i < *depth && !line; i++) text_add(out, "    ");
    for (; *at; at++) {
        if (*at == '\n' && line) return at + 1;
        bool space = isspace((unsigned char)*at);
        if (space && !line && (isspace((unsigned char)at[1]) || !at[1])) continue;
        text_add(out, "%c", space ? ' ' : *at);
        if (line) continue;
        parens += (*at == '(') - (*at == ')');
        if (*at == '{') ++*depth;
        if (*at == '}' && closes) { // else, while and ; stand in its line
            const char *next = at + 1 + strspn(at + 1, " \n");
            bool goes_on = !strncmp(next, "else", 4) || !strncmp(next, "while (false)", 13);
            closes = false;
            if (!goes_on && *next != ';') return at + 1;
            if (*next == ';') at = next - 1;
            continue;
        }
        if (*at == '{' || (*at == ';' && !parens)) return at + 1;
    }
    return at;
}

void format_write(text_t *out, const char *code)
{
    int depth = 0;
    for (;;) {
        code += strspn(code, " \t\n");
        if (!*code) return;
        code = statement_write(out, code, &depth);
        text_add(out, "\n");
    }
}
