// SPDX-License-Identifier: Apache-2.0
#include "suite/expect.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_need(const char *name)
{
    for (unsigned bit = 0; bit < 32; bit++) {
        if (strcmp(need_name(1u << bit, 0), name) == 0) return true;
        if (strcmp(need_name(0, 1u << bit), name) == 0) return true;
    }
    return false;
}

// The capability of that name, or the NEED_; 0: it is none.
static uint32_t capability_named(const char *name, bool also)
{
    for (unsigned bit = 0; bit < 32 && *name; bit++) {
        if (strcmp(also ? need_name(0, 1u << bit) : need_name(1u << bit, 0), name) == 0)
            return 1u << bit;
    }
    return 0;
}

static bool file_read(expectations_t *all, const char *path, int depth);

static bool add(expectations_t *all, const char *path, char *text, int number)
{
    expectation_t line = {.line = number};
    int end = 0;
    snprintf(line.path, sizeof line.path, "%s", path);
    line.without = sscanf(text, " without %63s %n", line.option, &end) == 1;
    if (line.without || sscanf(text, " with %63s %n", line.option, &end) == 1) text += end;
    if (sscanf(text, " unsupported %63s %31s %199[^\n]", line.glob, line.need, line.reason) != 3) {
        fprintf(stderr,
                "%s:%d: not of the form: [with|without OPTION] unsupported GLOB NEED reason\n",
                path, number);
        return false;
    }
    line.capability = capability_named(line.option, false);
    line.also = capability_named(line.option, true);
    if (isupper((unsigned char)line.option[0]) && !line.capability && !line.also) {
        fprintf(stderr, "%s:%d: %s is neither a capability nor an option of a URI\n", path, number,
                line.option);
        return false;
    }
    if (!*line.need || !is_need(line.need)) {
        fprintf(stderr, "%s:%d: %s is no capability\n", path, number, line.need);
        return false;
    }
    expectation_t *list = realloc(all->list, (all->count + 1) * sizeof *list);
    if (!list) abort();
    all->list = list;
    all->list[all->count++] = line;
    return true;
}

static bool parse(expectations_t *all, const char *path, char *text, int number, int depth)
{
    char name[64], other[256];
    text[strcspn(text, "#\n")] = 0;
    if (text[strspn(text, " ")] == 0) return true;
    if (sscanf(text, " include %63s", name) != 1) return add(all, path, text, number);
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    snprintf(other, sizeof other, "%.*s%s", folder, path, name);
    return file_read(all, other, depth + 1);
}

static bool file_read(expectations_t *all, const char *path, int depth)
{
    FILE *file = depth < 4 ? fopen(path, "r") : NULL;
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, depth < 4 ? strerror(errno) : "it includes itself");
        return false;
    }
    char text[300];
    bool good = true;
    for (int number = 1; fgets(text, sizeof text, file); number++)
        good &= parse(all, path, text, number, depth);
    fclose(file);
    return good;
}

bool expect_read(expectations_t *all, const char *path, const char *uri)
{
    *all = (expectations_t){.path = path, .uri = uri};
    return file_read(all, path, 0);
}

void expect_finish(expectations_t *all)
{
    free(all->list);
    *all = (expectations_t){0};
}

// Whether the line speaks of this device.
static bool suits(const expectation_t *line, const expectations_t *all)
{
    if (!line->option[0]) return true;
    bool has = line->capability ? line->capability & all->native
               : line->also     ? line->also & all->others
                                : uri_has(all->uri, line->option);
    return has != line->without;
}

static bool needs(const test_t *test, const char *need)
{
    if (strcmp(need_name(0, NEED_KERNELS), need) == 0) return true; // any test may load them
    for (unsigned bit = 0; bit < 32; bit++) {
        if (test->needs >> bit & 1 && strcmp(need_name(1u << bit, 0), need) == 0) return true;
        if (test->also >> bit & 1 && strcmp(need_name(0, 1u << bit), need) == 0) return true;
    }
    return false;
}

static bool speaks_of(const expectation_t *line, const test_t *test)
{
    char name[128];
    return needs(test, line->need) &&
           fnmatch(line->glob, test_name(test, name, sizeof name), 0) == 0;
}

const expectation_t *expect_find(const expectations_t *all, const test_t *test, const char *need)
{
    const char *kernels = need_name(0, NEED_KERNELS);
    for (size_t i = 0; i < all->count; i++) {
        const expectation_t *line = &all->list[i];
        if (need ? strcmp(line->need, need) != 0 : strcmp(line->need, kernels) == 0) continue;
        if (!suits(line, all)) continue;
        if (speaks_of(line, test)) return line;
    }
    return NULL;
}

bool expect_all_used(const expectations_t *all)
{
    size_t count;
    test_t **tests = test_all(&count);
    bool good = true;
    for (size_t i = 0; i < all->count; i++) {
        size_t t = 0;
        while (t < count && !speaks_of(&all->list[i], tests[t])) t++;
        if (t < count) continue;
        fprintf(stderr, "%s:%d: no test is called %s and needs %s\n", all->list[i].path,
                all->list[i].line, all->list[i].glob, all->list[i].need);
        good = false;
    }
    return good;
}
