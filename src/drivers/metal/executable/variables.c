// SPDX-License-Identifier: Apache-2.0
#include "drivers/metal/executable/variables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"

static keel_status_t damaged(void)
{
    return KEEL_ERROR(KEEL_CORRUPT, "the text says something of its variables that is damaged");
}

static bool line_begins(const char *line, const char *with, const char **rest)
{
    size_t length = strlen(with);
    if (strncmp(line, with, length) != 0) return false;
    *rest = line + length;
    return true;
}

// NAME OFFSET LENGTH
static keel_status_t variable_read(metal_variables_t *v, const char *line)
{
    char name[256];
    unsigned long long offset, size;
    if (sscanf(line, "%255s %llu %llu", name, &offset, &size) != 3) return damaged();
    if (offset > UINT32_MAX || size > UINT32_MAX) return damaged();
    metal_variable_t *items = mem_reserve(v->items, &v->capacity, v->count, sizeof *items);
    if (!items) return status_no_memory();
    v->items = items;
    items[v->count] = (metal_variable_t){mem_copy_text(name), offset, size};
    return items[v->count++].name ? NULL : status_no_memory();
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static keel_status_t values_read(metal_variables_t *v, const char *line)
{
    size_t length = strcspn(line, "\r\n");
    if (length % 2 || v->values) return damaged();
    v->size = length / 2;
    v->values = mem_zalloc(v->size + 1);
    if (!v->values) return status_no_memory();
    for (uint64_t i = 0; i < v->size; i++) {
        int high = digit_of(line[2 * i]), low = digit_of(line[2 * i + 1]);
        if (high < 0 || low < 0) return damaged();
        v->values[i] = (unsigned char)(high * 16 + low);
    }
    return NULL;
}

keel_status_t metal_variables_read(metal_variables_t *v, const char *text)
{
    const char *rest;
    v->by_keel = line_begins(text, "// keel cc:", &rest);
    for (const char *line = text; v->by_keel && line_begins(line, "// keel ", &rest);
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : "") {
        if (line_begins(line, "// keel grid: ", &rest)) v->launched = true;
        if (line_begins(line, "// keel variable: ", &rest)) KEEL_TRY(variable_read(v, rest));
        if (line_begins(line, "// keel values: ", &rest)) KEEL_TRY(values_read(v, rest));
    }
    for (uint32_t i = 0; i < v->count; i++)
        if (v->items[i].offset + v->items[i].size > v->size) return damaged();
    return NULL;
}

const metal_variable_t *metal_variables_find(const metal_variables_t *v, const char *name)
{
    for (uint32_t i = 0; i < v->count; i++)
        if (!strcmp(v->items[i].name, name)) return &v->items[i];
    return NULL;
}

void metal_variables_finish(metal_variables_t *v)
{
    for (uint32_t i = 0; i < v->count; i++) mem_free(v->items[i].name);
    mem_free(v->items);
    mem_free(v->values);
    *v = (metal_variables_t){0};
}
