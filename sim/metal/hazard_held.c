// SPDX-License-Identifier: Apache-2.0
#include "metal/hazard_held.h"

enum { LINES_LOG = 12, LINES = 1 << LINES_LOG };

typedef struct line_t {
    const char *at;   // NULL: none
    uint64_t bits[2]; // of its bytes, by READS and WRITES
} line_t;

// Each line has one place, which others share with it.
typedef struct table_t {
    struct table_t *next; // of those that no work uses
    line_t lines[LINES];
    unsigned used; // places that have had a line
    uint16_t places[LINES];
} table_t;

static table_t *spare;
static PER_THREAD table_t *own; // NULL: the work holds nothing

static const char *line_of(const char *at)
{
    return at - (uintptr_t)at % HELD_LINE;
}

static unsigned place_of(const char *line)
{
    return (unsigned)((uintptr_t)line / HELD_LINE * 0x9e3779b97f4a7c15u >> (64 - LINES_LOG));
}

bool held_add(const char *at, size_t size, access_t access)
{
    const char *begin = line_of(at);
    size_t offset = (size_t)(at - begin);
    if (!own || access > WRITES || size > HELD_LINE - offset) return false;
    line_t *line = &own->lines[place_of(begin)];
    if (line->at != begin) return false;
    line->bits[access] |= (size < HELD_LINE ? (1ull << size) - 1 : ~0ull) << offset;
    return true;
}

static void bits_settle(const char *at, uint64_t bits, access_t access, held_settle_fn *settle)
{
    for (unsigned begin = 0, end; begin < HELD_LINE; begin = end) {
        bool is = bits >> begin & 1;
        for (end = begin + 1; end < HELD_LINE && (bits >> end & 1) == is;) end++;
        if (is) settle(at + begin, end - begin, access);
    }
}

static void line_settle(line_t *line, held_settle_fn *settle)
{
    line_t old = *line;
    *line = (line_t){0};
    if (!old.at) return;
    bits_settle(old.at, old.bits[READS], READS, settle);
    bits_settle(old.at, old.bits[WRITES], WRITES, settle);
}

void held_open(const char *at, held_settle_fn *settle)
{
    const char *begin = line_of(at);
    unsigned place = place_of(begin);
    if (!own) own = spare ? spare : make(sizeof *own);
    if (own == spare) spare = own->next;
    line_t *line = &own->lines[place];
    if (!line->at) own->places[own->used++] = (uint16_t)place;
    line_settle(line, settle);
    line->at = begin;
}

void held_settle(const char *at, held_settle_fn *settle)
{
    const char *begin = line_of(at);
    line_t *line = own ? &own->lines[place_of(begin)] : NULL;
    if (!line || line->at != begin) return;
    line_settle(line, settle);
    line->at = begin; // its place stays used
}

void held_settle_all(held_settle_fn *settle)
{
    if (!own) return;
    while (own->used) line_settle(&own->lines[own->places[--own->used]], settle);
    own->next = spare;
    spare = own;
    own = NULL;
}
