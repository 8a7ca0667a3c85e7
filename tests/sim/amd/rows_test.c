// SPDX-License-Identifier: Apache-2.0
// rows_test README: every instruction that the assembler knows for a GPU is modelled, or the table
// in that file names it. What that names is not modelled.
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "sim/amd/isa/state.h"

enum { PATTERN_MAX = 64, LINE_SIZE = 1024 };

typedef struct {
    char text[PATTERN_MAX][64];
    unsigned uses[PATTERN_MAX];
    unsigned count;
} patterns_t;

// What is between backquotes in the first column of the table's rows.
static bool patterns_read(const char *path, patterns_t *out)
{
    char line[LINE_SIZE];
    FILE *file = fopen(path, "r");
    if (!file) return false;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "| `", 3) != 0) continue;
        *strchr(line + 1, '|') = 0;
        for (char *word = strtok(line, "`"); word; word = strtok(NULL, "`")) {
            if (strpbrk(word, " |") || out->count == PATTERN_MAX) continue;
            snprintf(out->text[out->count++], sizeof out->text[0], "%s", word);
        }
    }
    fclose(file);
    return true;
}

static bool named(patterns_t *patterns, const char *name)
{
    bool found = false;
    for (unsigned k = 0; k < patterns->count; k++) {
        if (fnmatch(patterns->text[k], name, 0) != 0) continue;
        patterns->uses[k]++;
        found = true;
    }
    return found;
}

int main(int argc, char **argv)
{
    static patterns_t patterns;
    unsigned bad = 0, count = 0;
    if (argc != 2 || !patterns_read(argv[1], &patterns)) return 2;
    for (unsigned n = 0; n < GFX_COUNT * ENC_COUNT * ENCODING_OPS; n++) {
        gfx_t gfx = (gfx_t)(n / ENCODING_OPS / ENC_COUNT);
        const opcode_t *opcode =
            &opcode_tables(gfx)[n / ENCODING_OPS % ENC_COUNT][n % ENCODING_OPS];
        if (!opcode->name) continue;
        count++;
        bool told = named(&patterns, opcode->name);
        if (told != (opcode->op != NULL)) continue;
        printf("%s of %s %s\n", opcode->name, gfx_name(gfx),
               told ? "is said not to be modelled, but it is" : "is neither modelled nor named");
        bad++;
    }
    for (unsigned k = 0; k < patterns.count; k++) {
        if (patterns.uses[k]) continue;
        printf("%s: no such instruction\n", patterns.text[k]);
        bad++;
    }
    printf("%u instructions, %u wrong\n", count, bad);
    return bad != 0 || !count;
}
