// SPDX-License-Identifier: Apache-2.0
// A bundle of texts has lines around each, with the mark of a comment before them:
//
//     # __CLANG_OFFLOAD_BUNDLE____START__ NAME        # __CLANG_OFFLOAD_BUNDLE____END__ NAME
#include "executable/bundle_text.h"

#include <string.h>

enum { GLANCE = 256 }; // bytes that tell a bundle of texts from others

static const char start_mark[] = " __CLANG_OFFLOAD_BUNDLE____START__ ";
static const char end_mark[] = " __CLANG_OFFLOAD_BUNDLE____END__ ";

// Lines of a text that is not terminated.
typedef struct lines_t {
    const char *at, *end;
} lines_t;

// Takes the next line off; false at the end.
static bool line_next(lines_t *lines, lines_t *line)
{
    if (lines->at == lines->end) return false;
    const char *end = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
    *line = (lines_t){lines->at, end ? end : lines->end};
    lines->at = end ? end + 1 : lines->end;
    return true;
}

// Whether a line is a comment that begins with `mark`; what follows is taken to be the line.
static bool line_is(lines_t *line, const char *mark)
{
    const char *at = line->at;
    size_t length = strlen(mark);
    if (at < line->end && (*at == '#' || *at == ';'))
        at++;
    else if (line->end - at >= 2 && at[0] == '/' && at[1] == '/')
        at += 2;
    if (at == line->at || (size_t)(line->end - at) < length || memcmp(at, mark, length) != 0)
        return false;
    line->at = at + length;
    return true;
}

bool bundle_is_text(const void *data, size_t size)
{
    lines_t lines = {data, (const char *)data + (size < GLANCE ? size : GLANCE)}, line;
    if (lines.at < lines.end && *lines.at == '\n') lines.at++;
    return line_next(&lines, &line) && line_is(&line, start_mark);
}

// Goes to the line that begins a member.
static bool member_begin(bundle_text_t *text, lines_t *lines)
{
    lines_t line;
    while (line_next(lines, &line)) {
        if (!line_is(&line, start_mark)) continue;
        text->name = line.at;
        text->name_length = (size_t)(line.end - line.at);
        return true;
    }
    return false;
}

// Goes to the line that ends it, if there is one.
static void member_end(bundle_text_t *text, lines_t *lines)
{
    lines_t line;
    const char *start = lines->at;
    text->data = NULL;
    while (line_next(lines, &line)) {
        const char *end = line.at;
        if (!line_is(&line, end_mark)) continue;
        text->data = start;
        // The newline before the mark belongs to the mark.
        text->size = end > start ? (size_t)(end - start) - 1 : 0;
        return;
    }
}

bool bundle_text_next(bundle_text_t *text)
{
    lines_t lines = {text->rest, text->end};
    bool found = member_begin(text, &lines);
    if (found) member_end(text, &lines);
    text->rest = lines.at;
    return found;
}
