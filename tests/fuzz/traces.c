// SPDX-License-Identifier: Apache-2.0
#include "fuzz/traces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "tracer/compare.h"
#include "tracer/export.h"
#include "tracer/merge.h"
#include "tracer/rocpd3.h"
#include "tracer/sqlite.h"
#include "tracer/summary.h"

void traces_file(const void *data, size_t size, char path[TRACES_PATH])
{
    snprintf(path, TRACES_PATH, "/tmp/keel-fuzz-XXXXXX");
    int fd = mkstemp(path);
    FUZZ_CHECK(fd >= 0);
    FUZZ_CHECK(write(fd, data, size) == (ssize_t)size);
    close(fd);
}

bool traces_has_sqlite(void)
{
    const sqlite_t *sqlite;
    keel_status_t status = sqlite_open(&sqlite);
    keel_status_release(status);
    return !status;
}

// A failure says what is wrong with the file, and is no fault of the program.
static bool is_fine(keel_status_t status)
{
    if (!status) return true;
    keel_code_t code = keel_status_code(status);
    FUZZ_CHECK(code == KEEL_INVALID_ARGUMENT || code == KEEL_IO ||
               (code == KEEL_UNSUPPORTED && !traces_has_sqlite()));
    FUZZ_CHECK(*keel_status_message(status));
    keel_status_release(status);
    return false;
}

static void event_look(const model_t *model, const event_t *event)
{
    FUZZ_CHECK(event->start_ns <= event->end_ns);
    FUZZ_CHECK(event->kind < EVENT_KINDS);
    FUZZ_CHECK(event->track < model->track_count);
    FUZZ_CHECK(event->link <= model->event_count);
    FUZZ_CHECK(!event->link || model->events[event->link - 1].kind != EVENT_OP);
    FUZZ_CHECK(event->kind != EVENT_OP || model->tracks[event->track].is_queue);
    if (event->kind == EVENT_OP && event->op == TRACE_OP_DISPATCH)
        FUZZ_CHECK(!event->value || event->value < model->shape_count);
    FUZZ_CHECK(event->name <= model->strings.count && event->args <= model->strings.count);
}

static void model_look(const model_t *model)
{
    for (uint32_t i = 0; i < model->track_count; i++) {
        const track_t *track = &model->tracks[i];
        FUZZ_CHECK(track->process < model->process_count);
        FUZZ_CHECK(!track->is_queue || track->device < model->device_count);
    }
    for (uint32_t i = 0; i < model->device_count; i++)
        FUZZ_CHECK(model->devices[i].process < model->process_count);
    for (uint32_t i = 0; i < model->event_count; i++) event_look(model, &model->events[i]);
    for (uint32_t i = 0; i < model->work_count; i++) {
        FUZZ_CHECK(model->works[i].track < model->track_count);
        FUZZ_CHECK(model->tracks[model->works[i].track].is_queue);
        FUZZ_CHECK(model->works[i].call <= model->event_count);
    }
    for (uint32_t i = 0; i < model->need_count; i++)
        FUZZ_CHECK(model->needs[i].work < model->work_count &&
                   model->needs[i].on <= model->work_count);
}

// How many bytes a character of UTF-8 has; 0: it is none.
static size_t utf8_look(const unsigned char *at)
{
    static const struct {
        unsigned char first, last, least, most; // of the first byte and of the second
        size_t size;
    } forms[] = {
        {0x00, 0x7f, 0x00, 0xff, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (*at < forms[i].first || *at > forms[i].last) continue;
        if (forms[i].size > 1 && (at[1] < forms[i].least || at[1] > forms[i].most)) return 0;
        for (size_t k = 2; k < forms[i].size; k++)
            if ((at[k] & 0xc0) != 0x80) return 0;
        return forms[i].size;
    }
    return 0;
}

// Of a value of JSON, what follows it; aborts at what is none.
static const char *json_look(const char *at)
{
    at += strspn(at, " \n");
    char end = *at == '{' ? '}' : *at == '[' ? ']' : *at == '"' ? '"' : 0;
    if (end == '"') {
        for (at++; *at != '"'; at += *at == '\\' ? 2 : utf8_look((const unsigned char *)at)) {
            FUZZ_CHECK((unsigned char)*at >= 0x20 && utf8_look((const unsigned char *)at));
            FUZZ_CHECK(*at != '\\' || strchr("\"\\u", at[1]));
        }
        return at + 1;
    }
    if (!end) {
        size_t number = strspn(at, "+-.0123456789eE");
        FUZZ_CHECK(number);
        return at + number;
    }
    for (at++; *at != end; at += *at == ',') {
        if (end == '}') at = json_look(at) + 1; // the name and its colon
        at = json_look(at);
        at += strspn(at, " \n");
        FUZZ_CHECK(*at == ',' || *at == end);
    }
    return at + 1;
}

typedef keel_status_t (*print_fn)(const model_t *model, FILE *out);

static keel_status_t summary_all(const model_t *model, FILE *out)
{
    return summary_print(model, 20, out);
}

static keel_status_t compare_all(const model_t *model, FILE *out)
{
    return compare_print(model, model, 20, out);
}

// Makes one text of a model, and looks at that of Chrome's form.
static void text_make(const model_t *model, print_fn print)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    FUZZ_CHECK(out);
    FUZZ_CHECK(!print(model, out));
    FUZZ_CHECK(fclose(out) == 0);
    if (print == export_chrome) FUZZ_CHECK(strcmp(json_look(text), "\n") == 0);
    free(text);
}

static void database_make(const model_t *model)
{
    char path[TRACES_PATH];
    model_t again = {0};
    traces_file("", 0, path);
    FUZZ_CHECK(!rocpd3_write(model, path));
    FUZZ_CHECK(!rocpd_write(model, path));
    FUZZ_CHECK(!rocpd_read(&again, path));
    model_look(&again);
    FUZZ_CHECK(again.process_count == model->process_count);
    FUZZ_CHECK(again.work_count == model->work_count);
    model_finish(&again);
    unlink(path);
}

void traces_use(const char *path, const char *other, bool databases)
{
    static const print_fn prints[] = {summary_all,   compare_all, export_perfetto,
                                      export_chrome, export_csv,  export_report};
    model_t model = {0};
    int64_t moved_ns;
    fuzz_begin(64 << 20);
    bool fine = is_fine(merge_add(&model, path, &moved_ns));
    if (fine && other) fine = is_fine(merge_add(&model, other, &moved_ns));
    if (fine) {
        model_look(&model);
        for (size_t i = 0; i < sizeof prints / sizeof *prints; i++) text_make(&model, prints[i]);
        if (databases && traces_has_sqlite()) database_make(&model);
    }
    model_finish(&model);
    fuzz_end();
}
