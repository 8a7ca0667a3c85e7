// SPDX-License-Identifier: Apache-2.0
#include "tools/cc/log.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "tools/cc/check.h"

// The first thing that KEEL_KERNEL defines, and so the first that is there already.
#define FIRST "keel_once_"

// A part of the text; length 0: none.
typedef struct part_t {
    const char *text;
    size_t length;
} part_t;

static part_t line_of(const char *text)
{
    const char *end = strchr(text, '\n');
    return (part_t){text, end ? (size_t)(end + 1 - text) : strlen(text)};
}

static const char *find(part_t in, const char *what)
{
    size_t length = strlen(what);
    for (size_t i = 0; i + length <= in.length; i++)
        if (memcmp(in.text + i, what, length) == 0) return in.text + i;
    return NULL;
}

// FILE:LINE:COLUMN of a line that says something of this kind about it.
static part_t place_of(part_t line, const char *kind)
{
    const char *at = line.text[0] == ' ' ? NULL : find(line, kind);
    return (part_t){line.text, at ? (size_t)(at - line.text) : 0};
}

static bool is_message(part_t line)
{
    return place_of(line, ": error: ").length || place_of(line, ": warning: ").length ||
           place_of(line, ": fatal error: ").length;
}

// A message with all that belongs to it, up to the next.
static part_t message_of(const char *text)
{
    part_t message = {text, 0};
    bool told = false;
    while (text[message.length]) {
        part_t line = line_of(text + message.length);
        if (told && (is_message(line) || find(line, "In file included from ") == line.text)) break;
        told |= is_message(line);
        message.length += line.length;
    }
    return message;
}

// The place that the first line of this kind is about, but for the scratch space of macros.
static part_t place_in(part_t message, const char *kind)
{
    for (size_t at = 0; at < message.length;) {
        part_t line = line_of(message.text + at), place = place_of(line, kind);
        if (place.length && place.text[0] != '<') return place;
        at += line.length;
    }
    return (part_t){message.text, 0};
}

static bool same(part_t a, part_t b)
{
    return a.length && a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

static void duplicate_print(part_t message, part_t place, FILE *to)
{
    const char *name = find(message, FIRST) + strlen(FIRST);
    part_t first = place_in(message, ": note: ");
    size_t length = 0;
    while (isalnum((unsigned char)name[length]) || name[length] == '_') length++;
    fprintf(to, "%.*s: error: there is a kernel '%.*s' already\n", (int)place.length, place.text,
            (int)length, name);
    if (first.length) fprintf(to, "%.*s: note: here\n", (int)first.length, first.text);
}

// The first thing in quotes behind some words, 'so' or as gcc has it.
static part_t quoted_after(part_t message, const char *words)
{
    static const char *const marks[][2] = {{"'", "'"}, {"\u2018", "\u2019"}};
    const char *at = find(message, words), *end = message.text + message.length;
    for (int i = 0; at && i < 2; i++) {
        const char *open = find((part_t){at, (size_t)(end - at)}, marks[i][0]);
        if (!open) continue;
        open += strlen(marks[i][0]);
        const char *close = find((part_t){open, (size_t)(end - open)}, marks[i][1]);
        if (close) return (part_t){open, (size_t)(close - open)};
    }
    return (part_t){at, 0};
}

// A function that is not there, by a message of a compiler or a linker.
static part_t missing_of(part_t message)
{
    static const char *const words[] = {"undeclared", "implicit declaration of"};
    static const char linker[] = "undefined symbol: ";
    const char *name = find(message, linker);
    if (name) return (part_t){name + strlen(linker), strcspn(name + strlen(linker), "\n")};
    part_t missing = {message.text, 0};
    for (int i = 0; i < 2 && !missing.length; i++) missing = quoted_after(message, words[i]);
    return missing;
}

// What the compiler cannot know.
static void advice_print(part_t message, FILE *to)
{
    part_t missing = missing_of(message);
    const char *instead = missing.length ? function_instead(missing.text, missing.length) : NULL;
    if (instead)
        fprintf(to, "note: a kernel calls %s instead of %.*s\n", instead, (int)missing.length,
                missing.text);
    if (find(message, "stack frame size") || find(message, "the frame size of"))
        fprintf(to, "note: KEEL_PRIVATE and other variables of a kernel take that much; smaller "
                    "groups take less on a processor, and KEEL_LOCAL memory lies elsewhere\n");
}

void log_print(const char *text, FILE *to)
{
    part_t duplicate = {text, 0}; // the place of the last one
    for (part_t message; *text; text += message.length) {
        message = message_of(text);
        part_t place = place_in(message, ": error: ");
        if (same(place, duplicate)) continue; // more of it
        if (place.length && find(message, "redefinition of") && find(message, FIRST)) {
            duplicate = place;
            duplicate_print(message, place, to);
        } else {
            fwrite(message.text, 1, message.length, to);
            advice_print(message, to);
        }
    }
}
