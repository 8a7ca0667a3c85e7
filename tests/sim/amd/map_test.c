// SPDX-License-Identifier: Apache-2.0
// map_test: spans, and bytes of them that are filled when they are first looked for.
#include "sim/amd/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned wrong;

static void check(bool good, const char *what, int line)
{
    if (good) return;
    fprintf(stderr, "line %d: not true: %s\n", line, what);
    wrong++;
}
#define CHECK(condition) check((condition), #condition, __LINE__)

enum { BASE = 0x100000, SIZE = (4 << 20) + 4096, VALUE = 0xdb };

static bool is_all(const uint8_t *bytes, size_t size, uint8_t value)
{
    return bytes[0] == value && !memcmp(bytes, bytes + 1, size - 1);
}

static void plain(uint8_t *bytes)
{
    span_t span;
    CHECK(map_add(&(span_t){.base = BASE, .size = SIZE, .host = bytes, .nodes = 2}));
    CHECK(!map_add(&(span_t){.base = BASE + SIZE - 1, .size = 1, .host = bytes, .nodes = 2}));
    CHECK(!map_fresh(BASE + 1, VALUE));
    CHECK(map_find(BASE + 5, 1, &span) && span.base == BASE && span.size == SIZE);
    CHECK(!map_find(BASE + SIZE, 1, &span) && !map_find(BASE - 1, 1, &span));
    CHECK(map_bytes(BASE + 8, SIZE - 8, 1) == bytes + 8);
    CHECK(!map_bytes(BASE + 8, SIZE, 1) && !map_bytes(BASE, 1, 0));
    CHECK(is_all(bytes, SIZE, 0));
}

static void fresh(uint8_t *bytes)
{
    enum { MIDDLE = 2 << 20 }; // where two pieces meet
    span_t span;
    uint64_t generation = map_generation();
    CHECK(map_fresh(BASE, VALUE) && map_generation() != generation);
    CHECK(map_find(BASE + MIDDLE, 0, &span) && span.base == BASE && span.size == SIZE);
    CHECK(is_all(bytes, SIZE, 0)); // who asks for no bytes touches none
    CHECK(map_find(BASE + MIDDLE - 2, 4, &span));
    CHECK(span.base < BASE + MIDDLE && span.base + span.size > BASE + MIDDLE && span.size < SIZE);
    CHECK(span.host == bytes + (span.base - BASE) && is_all(span.host, span.size, VALUE));
    CHECK(bytes[0] == 0 && bytes[SIZE - 1] == 0);
    bytes[MIDDLE] = 7;
    CHECK(map_bytes(BASE + SIZE - 8, 8, 1) == bytes + SIZE - 8 && bytes[SIZE - 1] == VALUE);
    CHECK(!map_bytes(BASE + SIZE - 8, 9, 1) && bytes[0] == 0);
    map_fill(BASE);
    CHECK(bytes[MIDDLE] == 7 && is_all(bytes, MIDDLE, VALUE));
    CHECK(is_all(bytes + MIDDLE + 1, SIZE - MIDDLE - 1, VALUE));
    CHECK(map_find(BASE + 5, 1, &span) && span.base == BASE && span.size == SIZE);
    CHECK(map_remove(BASE) && !map_remove(BASE) && !map_find(BASE, 0, &span));
}

int main(void)
{
    uint8_t *bytes = calloc(1, SIZE);
    if (!bytes) return 1;
    plain(bytes);
    fresh(bytes);
    free(bytes);
    printf("%u wrong\n", wrong);
    return wrong != 0;
}
